"""Functions that move, add, drop and repeat modes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from pyfinch.algebra import operators as ops
from pyfinch.algebra.errors import ShapeError
from pyfinch.api.eager import as_operand
from pyfinch.api.lazy import LazyTensor, map_join, relabeled, table
from pyfinch.api.methods import provides
from pyfinch.api.reductions import normal_axes
from pyfinch.api.structure import expanded, repeated, selected
from pyfinch.api.tensor import dense_tensor
from pyfinch.formats.tensor import check_shape

__all__ = [
    "broadcast_to",
    "expand_dims",
    "matrix_transpose",
    "permute_dims",
    "squeeze",
]


def _taken(x: Any) -> Any:
    return x if isinstance(x, LazyTensor) else as_operand(x)


@provides
def permute_dims(x: Any, /, axes: Sequence[int] | None = None) -> Any:
    """The tensor with its modes permuted; shares all buffers.

    Parameters
    ----------
    x : tensor or array
    axes : sequence of int, optional
        Mode d of the result is mode ``axes[d]`` of ``x``; in reverse order by default.

    Raises
    ------
    ShapeError
        If ``axes`` is no permutation of the modes.

    Examples
    --------
    >>> import pyfinch as pf
    >>> pf.permute_dims(pf.zeros((2, 3, 4)), (2, 0, 1)).shape
    (4, 2, 3)
    """
    x = _taken(x)
    order = tuple(reversed(range(x.ndim))) if axes is None else normal_axes(tuple(axes), x.ndim, "permute_dims")
    if len(order) != x.ndim:
        raise ShapeError(f"permute_dims: axes {axes} must permute the {x.ndim} modes of shape {x.shape}")
    return relabeled(x, order) if isinstance(x, LazyTensor) else x.permuted(order)


@provides
def matrix_transpose(x: Any, /) -> Any:
    """The tensor with its last two modes swapped.

    Raises
    ------
    ShapeError
        If it has fewer than two.
    """
    x = _taken(x)
    if x.ndim < 2:
        raise ShapeError(f"matrix_transpose needs two modes or more, got shape {x.shape}")
    return permute_dims(x, (*range(x.ndim - 2), x.ndim - 1, x.ndim - 2))


@provides
def expand_dims(x: Any, /, *, axis: int | tuple[int, ...] = 0) -> Any:
    """The tensor with a new mode of size 1 at each place ``axis`` of the result.

    Examples
    --------
    >>> import pyfinch as pf
    >>> pf.expand_dims(pf.eye(3), axis=1).shape
    (3, 1, 3)
    """
    x = _taken(x)
    count = len(axis) if isinstance(axis, tuple) else 1
    axes = normal_axes(axis, x.ndim + count, "expand_dims")
    if not isinstance(x, LazyTensor):
        return expanded(x, axes)
    rest = iter(range(x.ndim))
    return relabeled(x, [None if mode in axes else next(rest) for mode in range(x.ndim + count)])


@provides
def squeeze(x: Any, /, axis: int | tuple[int, ...] | None = None) -> Any:
    """The tensor without some modes of size 1 (NumPy's default, all of them, is accepted).

    Raises
    ------
    ShapeError
        If one of them is not of size 1.
    """
    x = _taken(x)
    if axis is None:
        axes = tuple(mode for mode, size in enumerate(x.shape) if size == 1)
    else:
        axes = normal_axes(axis, x.ndim, "squeeze")
    for mode in axes:
        if x.shape[mode] != 1:
            raise ShapeError(f"squeeze: axis {mode} of shape {x.shape} has size {x.shape[mode]}, not 1")
    if not axes:
        return x
    if isinstance(x, LazyTensor):
        return relabeled(x, [mode for mode in range(x.ndim) if mode not in axes])
    return selected(x, [0 if mode in axes else range(size) for mode, size in enumerate(x.shape)])


@provides
def broadcast_to(x: Any, /, shape: Sequence[int]) -> Any:
    """The tensor repeated to fill a shape, as sparse as it was.

    Parameters
    ----------
    x : tensor or array
    shape : tuple of int
        Each mode of ``x``, aligned from the last one, has this size or size 1.

    Raises
    ------
    ShapeError
        If that is not so.

    Examples
    --------
    >>> import pyfinch as pf
    >>> pf.broadcast_to(pf.asarray([0.0, 1.0], format="sparse_vector"), (3, 2)).nnz
    3
    """
    x = _taken(x)
    full = check_shape(shape)
    new = len(full) - x.ndim
    for axis in range(-x.ndim, 0):
        if new < 0 or x.shape[axis] not in (1, full[axis]):
            raise ShapeError(f"broadcast_to: shape {x.shape} does not broadcast to {full} at axis {axis}")
    if x.shape == full:
        return x
    if not isinstance(x, LazyTensor):
        return repeated(expanded(x, range(new)), full)
    if new:
        x = expand_dims(x, axis=tuple(range(new)))
    for mode, (own, size) in enumerate(zip(x.shape, full, strict=True)):
        if own != size:
            # A vector that brings the extent and nothing else.
            extent = table(dense_tensor(np.zeros(size, dtype=x.dtype)))
            ones = [0 if k == mode else None for k in range(len(full))]
            x = map_join(ops.get("first"), [x, relabeled(extent, ones)])
    return x
