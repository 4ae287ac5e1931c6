"""Basic indexing: integers, slices with any step, None and Ellipsis."""

from __future__ import annotations

import operator as python_operator
from typing import Any

import numpy as np

from pyfinch.algebra import operators as ops
from pyfinch.algebra.dtypes import index_dtype
from pyfinch.algebra.errors import IndexBoundsError, PyFinchError
from pyfinch.api.eager import as_operand
from pyfinch.api.lazy import LazyTensor, aggregate, map_join, relabeled, table
from pyfinch.api.methods import provides
from pyfinch.api.structure import Pick, expanded, selected
from pyfinch.formats.format import format
from pyfinch.formats.tensor import Tensor as StorageTensor

__all__ = ["getitem"]


@provides
def getitem(x: Any, key: Any) -> Any:
    """``x[key]`` by NumPy's basic indexing.

    Parameters
    ----------
    x : tensor
    key : int, slice, None, Ellipsis, or a tuple of these

    Raises
    ------
    IndexBoundsError
        If an integer is out of range, or there are more indices than modes.
    PyFinchError
        For index arrays and masks, which are not supported.

    Examples
    --------
    >>> import pyfinch as pf
    >>> x = pf.asarray([[1, 2, 3], [4, 5, 6]], format="csr")
    >>> x[1, ::-2].todense(), int(x[0, -1])
    (array([6, 4]), 3)
    """
    if not isinstance(x, LazyTensor):
        x = as_operand(x)
    picks, new = _parsed(key, x.shape)
    if isinstance(x, LazyTensor):
        return _lazily(x, picks, new)
    if any(pick != range(size) for pick, size in zip(picks, x.shape, strict=True)):
        x = selected(x, picks)
    return expanded(x, new)


def _parsed(key: Any, shape: tuple[int, ...]) -> tuple[list[Pick], list[int]]:
    """What is taken of each mode, and at which places of the result there are new modes."""
    items = list(key) if isinstance(key, tuple) else [key]
    dots = [k for k, item in enumerate(items) if item is Ellipsis]
    if len(dots) > 1:
        raise IndexBoundsError("an index has one ellipsis (...) at most")
    given = sum(item is not None and item is not Ellipsis for item in items)
    if given > len(shape):
        raise IndexBoundsError(f"{given} indices for a tensor of {len(shape)} modes, shape {shape}")
    fill: list[Any] = [slice(None)] * (len(shape) - given)
    at = dots[0] if dots else len(items)
    items[at : at + 1] = fill
    picks: list[Pick] = []
    new: list[int] = []
    place = 0
    for item in items:
        if item is None:
            new.append(place)
            place += 1
            continue
        pick = _pick(item, len(picks), shape)
        picks.append(pick)
        place += not isinstance(pick, int)
    return picks, new


def _pick(item: Any, mode: int, shape: tuple[int, ...]) -> Pick:
    size = shape[mode]
    if isinstance(item, slice):
        try:
            return range(*item.indices(size))
        except (TypeError, ValueError) as error:
            raise IndexBoundsError(f"{item} in mode {mode}: {error}") from None
    if isinstance(item, bool | np.bool_ | list | np.ndarray) or (isinstance(item, StorageTensor) and item.ndim):
        raise PyFinchError(
            "index arrays and masks are not supported; use integers, slices, None and ..., or pyfinch.where"
        )
    try:
        k = python_operator.index(item)
    except TypeError:
        raise IndexBoundsError(
            f"an index is an integer, a slice, None or ..., got {type(item).__name__} for mode {mode}"
        ) from None
    if not -size <= k < size:
        raise IndexBoundsError(f"index {k} is out of bounds for mode {mode} of size {size} (shape {shape})")
    return k % size


def _lazily(x: LazyTensor, picks: list[Pick], new: list[int]) -> LazyTensor:
    """Each partial mode is reduced against a 0-1 matrix that selects from it."""
    dropped = []
    for mode, (pick, size) in enumerate(zip(picks, x.shape, strict=True)):
        if isinstance(pick, int):
            dropped.append(mode)
            pick = range(pick, pick + 1)
        if pick != range(size):
            x = _selection(x, mode, pick)
    kept: list[int | None] = [mode for mode in range(x.ndim) if mode not in dropped]
    for place in new:
        kept.insert(place, None)
    if kept == list(range(x.ndim)):
        return x
    return relabeled(x, kept)


def _selection(x: LazyTensor, mode: int, pick: range) -> LazyTensor:
    """``x`` with places ``pick`` of one mode."""
    count = len(pick)
    narrow = index_dtype(count, x.shape[mode])
    buffers = [
        (),
        (np.arange(count + 1, dtype=narrow), np.array(pick, dtype=narrow)),
        (np.ones(count, dtype=np.bool_),),
    ]
    picks = StorageTensor.from_buffers(format("csr"), (count, x.shape[mode]), buffers, fill_value=False)
    # Modes: those of x, and the new one just before `mode`.
    places: list[int | None] = [None] * (x.ndim + 1)
    places[mode], places[mode + 1] = 0, 1
    wide: list[int | None] = [*range(mode), None, *range(mode, x.ndim)]
    zero = x.dtype.type(0)
    taken = map_join(ops.get("where"), [relabeled(table(picks), places), relabeled(x, wide), zero])
    add = ops.get("logical_or" if x.dtype.kind == "b" else "add")
    return aggregate(add, zero, taken, [mode + 1])
