"""Reductions: sum, prod, min, max, any, all, mean, and any operator with an identity."""

from __future__ import annotations

from typing import Any

import numpy as np

from pyfinch.algebra import operators as ops
from pyfinch.algebra.dtypes import DT, check_dtype
from pyfinch.algebra.errors import DTypeError, ShapeError
from pyfinch.algebra.operators import Operator
from pyfinch.api.eager import as_operand, run
from pyfinch.api.lazy import LazyTensor, aggregate, map_join, table
from pyfinch.api.methods import provides
from pyfinch.api.tensor import number

__all__ = ["all", "any", "max", "mean", "min", "normal_axes", "prod", "sum"]

_BOOL = np.dtype(np.bool_)


def normal_axes(axis: Any, ndim: int, what: str) -> tuple[int, ...]:
    """Axes as distinct numbers in 0 … ndim - 1, in the order given; all of them for None.

    Raises
    ------
    ShapeError
        If one is out of range or given twice.
    """
    if axis is None:
        return tuple(range(ndim))
    given = axis if isinstance(axis, tuple | list) else (axis,)
    axes = []
    for a in given:
        try:
            k = int(a.__index__())
        except (AttributeError, TypeError):
            raise ShapeError(f"{what}: an axis is an integer, got {a!r}") from None
        if not -ndim <= k < ndim:
            raise ShapeError(f"{what}: axis {k} is out of range for {ndim} modes")
        axes.append(k % ndim)
    if len(set(axes)) != len(axes):
        raise ShapeError(f"{what}: axis {axis} names a mode twice")
    return tuple(axes)


def _reduced(
    name: str, op: Operator, x: Any, axis: Any, keepdims: bool, start: DT, dense: Any, cast: bool = False
) -> Any:
    """Reduce by an operator from its identity in dtype ``start``; ``cast``: elements are cast to it first."""
    x = x if isinstance(x, LazyTensor) else as_operand(x)
    axes = normal_axes(axis, x.ndim, name)
    init = op.identity(start)
    if init is None:
        raise DTypeError(f"{name} is not defined for {start}")

    def build(lazy: LazyTensor) -> LazyTensor:
        if op.name in ("minimum", "maximum") and 0 in [lazy.shape[a] for a in axes]:
            raise ShapeError(f"{name} over no elements (shape {lazy.shape}, axis {axis}) has no value")
        if (cast and lazy.dtype != start) or op.result_dtype(start, lazy.dtype) != start:
            lazy = map_join(ops.cast(start), [lazy])
        return aggregate(op, init, lazy, axes, keepdims) if axes else _unreduced(op, init, lazy)

    if isinstance(x, LazyTensor):
        return build(x)
    static = (name, op, start, axes, bool(keepdims), cast)
    return run(static, [x], build, lambda array: dense(array, axis=axes, keepdims=keepdims))


def _unreduced(op: Operator, init: np.generic, x: LazyTensor) -> LazyTensor:
    """A reduction over no axes: each element for itself."""
    return x if x.dtype == init.dtype else map_join(ops.cast(init.dtype), [x])


def _sum_dtype(dtype: DT, wanted: Any) -> DT:
    """The array API's: small integers add up in 64 bits."""
    if wanted is not None:
        return check_dtype(wanted)
    match dtype.kind:
        case "b" | "i":
            return np.dtype(np.int64)
        case "u":
            return np.dtype(np.uint64)
    return dtype


def _dtype_of(x: Any) -> tuple[Any, DT]:
    x = x if isinstance(x, LazyTensor) else as_operand(x)
    return x, x.dtype


@provides
def sum(x: Any, /, *, axis: Any = None, dtype: Any = None, keepdims: bool = False) -> Any:
    """The sum of elements over axes.

    Parameters
    ----------
    x : tensor or array
    axis : int, tuple of int, optional
        The axes to sum over; all of them by default.
    dtype : dtype, optional
        To add up in; integers and bools add up in 64 bits by default.
    keepdims : bool
        Whether summed axes stay, of size 1.

    Returns
    -------
    Tensor, or LazyTensor if ``x`` is lazy

    Raises
    ------
    ShapeError
        If an axis is out of range.

    Examples
    --------
    >>> import pyfinch as pf
    >>> pf.sum(pf.asarray([[1, 2], [3, 4]]), axis=0).todense()
    array([4, 6])
    """
    x, own = _dtype_of(x)
    start = _sum_dtype(own, dtype)

    def dense(array: Any, **keywords: Any) -> Any:
        return np.sum(array, dtype=start, **keywords)

    return _reduced("sum", ops.get("add"), x, axis, keepdims, start, dense, cast=dtype is not None)


@provides
def prod(x: Any, /, *, axis: Any = None, dtype: Any = None, keepdims: bool = False) -> Any:
    """The product of elements over axes; see `pyfinch.sum` for the arguments."""
    x, own = _dtype_of(x)
    start = _sum_dtype(own, dtype)

    def dense(array: Any, **keywords: Any) -> Any:
        return np.prod(array, dtype=start, **keywords)

    return _reduced("prod", ops.get("multiply"), x, axis, keepdims, start, dense, cast=dtype is not None)


@provides
def min(x: Any, /, *, axis: Any = None, keepdims: bool = False) -> Any:
    """The least element over axes; a nan is less than any number.

    Raises
    ------
    ShapeError
        If there are no elements to choose from.
    DTypeError
        For complex elements.
    """
    x, own = _dtype_of(x)
    return _reduced("min", ops.get("minimum"), x, axis, keepdims, own, np.min)


@provides
def max(x: Any, /, *, axis: Any = None, keepdims: bool = False) -> Any:
    """The greatest element over axes; see `pyfinch.min`."""
    x, own = _dtype_of(x)
    return _reduced("max", ops.get("maximum"), x, axis, keepdims, own, np.max)


@provides
def any(x: Any, /, *, axis: Any = None, keepdims: bool = False) -> Any:
    """Whether any element over axes is true (not 0)."""
    return _reduced("any", ops.get("logical_or"), x, axis, keepdims, _BOOL, np.any, cast=True)


@provides
def all(x: Any, /, *, axis: Any = None, keepdims: bool = False) -> Any:
    """Whether all elements over axes are true (not 0)."""
    return _reduced("all", ops.get("logical_and"), x, axis, keepdims, _BOOL, np.all, cast=True)


@provides
def mean(x: Any, /, *, axis: Any = None, dtype: Any = None, keepdims: bool = False) -> Any:
    """The arithmetic mean over axes; of integers in float64, of no elements nan.

    Examples
    --------
    >>> import pyfinch as pf
    >>> float(pf.mean(pf.asarray([1, 2, 6])))
    3.0
    """
    x, own = _dtype_of(x)
    start = check_dtype(dtype) if dtype is not None else own
    if start.kind in "biu":
        start = np.dtype(np.float64)
    axes = normal_axes(axis, x.ndim, "mean")
    add, divide = ops.get("add"), ops.get("divide")

    def build(lazy: LazyTensor) -> LazyTensor:
        count = 1
        for a in axes:
            count *= lazy.shape[a]
        lazy = lazy if lazy.dtype == start else map_join(ops.cast(start), [lazy])
        lazy = aggregate(add, start.type(0), lazy, axes, keepdims)
        if count == 0:
            return map_join(add, [lazy, start.type(np.nan)])
        return map_join(divide, [lazy, table(number(start.type(count)))])

    def dense(array: Any) -> Any:
        with np.errstate(all="ignore"):
            total = np.sum(array, axis=axes, dtype=start, keepdims=keepdims)
            size = np.prod([array.shape[a] for a in axes], dtype=object) if axes else 1
            return np.asarray(total / start.type(size)).astype(start)

    if isinstance(x, LazyTensor):
        return build(x)
    return run(("mean", start, axes, bool(keepdims)), [x], build, dense)
