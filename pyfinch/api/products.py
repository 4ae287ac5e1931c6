"""Products with contraction: matmul, tensordot, vecdot, and what einsum shares with them."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np

from pyfinch.algebra import operators as ops
from pyfinch.algebra.dtypes import index_dtype
from pyfinch.algebra.errors import ShapeError
from pyfinch.api.eager import as_lazy, as_operand, run
from pyfinch.api.lazy import LazyTensor, aggregate, contract, map_join, relabeled, table
from pyfinch.api.methods import provides
from pyfinch.api.reductions import normal_axes
from pyfinch.formats.format import format
from pyfinch.formats.tensor import Tensor as StorageTensor

__all__ = ["matmul", "tensordot", "vecdot"]

Modes = Sequence[str]


def index_sizes(
    what: str, shapes: Sequence[tuple[int, ...]], modes: Sequence[Modes], exact: str | None = None
) -> dict[str, int]:
    """The size of each named mode; size 1 broadcasts, except for the name ``exact``.

    Raises
    ------
    ShapeError
        If a name has two sizes; it names the index and both shapes.
    """
    sizes: dict[str, int] = {}
    seen: dict[str, int] = {}
    for k, (shape, names) in enumerate(zip(shapes, modes, strict=True)):
        for name, size in zip(names, shape, strict=True):
            known = sizes.get(name, 1)
            if name in sizes and size != known and (name == exact or 1 not in (size, known)):
                raise ShapeError(
                    f"{what}: index {name!r} has size {known} in operand {seen[name]} of shape "
                    f"{shapes[seen[name]]}, and size {size} in operand {k} of shape {shape}"
                )
            if name not in sizes or known == 1:
                sizes[name], seen[name] = size, k
    return sizes


def sum_of_products(operands: Sequence[tuple[LazyTensor, Modes]], out: Modes, sizes: Mapping[str, int]) -> LazyTensor:
    """The sum of products over the names that are not in ``out``, in the dtype of the product."""
    multiply = ops.get("multiply")
    dtype = multiply.result_dtype(*[x.dtype for x, _ in operands])
    return contract(ops.get("add"), dtype.type(0), multiply, operands, out, sizes)


def product(static: Hashable, args: Sequence[Any], build: Any, dense: Any) -> Any:
    """Run a product, or build it if an argument is lazy."""
    if any(isinstance(x, LazyTensor) for x in args):
        return build(*[as_lazy(x) for x in args])
    return run(static, [as_operand(x) for x in args], build, dense)


def lazy_diagonal(x: LazyTensor, first: int, second: int) -> LazyTensor:
    """The elements at equal coordinates in two modes; ``second`` is dropped."""
    n = x.shape[first]
    places = np.arange(n + 1, dtype=index_dtype(n))
    buffers = [(), (places, places[:n]), (np.ones(n, dtype=np.bool_),)]
    equal = table(StorageTensor.from_buffers(format("csr"), (n, n), buffers, fill_value=False))
    at: list[int | None] = [None] * x.ndim
    at[first], at[second] = 0, 1
    zero = x.dtype.type(0)
    chosen = map_join(ops.get("where"), [relabeled(equal, at), x, zero])
    add = ops.get("logical_or" if x.dtype.kind == "b" else "add")
    return aggregate(add, zero, chosen, [second])


@provides
def matmul(x1: Any, x2: Any, /) -> Any:
    """The matrix product, as ``numpy.matmul``: batches broadcast, a vector is a row or a column.

    Parameters
    ----------
    x1, x2 : tensor or array, one mode or more
        ``(…, n, k)`` and ``(…, k, m)``, or ``(k,)``.

    Returns
    -------
    Tensor of shape (…, n, m), or LazyTensor if an argument is lazy

    Raises
    ------
    ShapeError
        If the sizes of k differ, or an argument is 0-d.

    Examples
    --------
    >>> import pyfinch as pf
    >>> A = pf.asarray([[1, 0], [0, 2]], format="csr")
    >>> (A @ A).todense()
    array([[1, 0],
           [0, 4]])
    """

    def build(a: LazyTensor, b: LazyTensor) -> LazyTensor:
        if not a.ndim or not b.ndim:
            raise ShapeError(f"matmul: shapes {a.shape} and {b.shape}: use * to multiply by a number")
        batch = max(a.ndim, b.ndim, 2) - 2
        names = [f"batch {k}" for k in range(batch)]
        rows, columns = (["i"] if a.ndim > 1 else []), (["j"] if b.ndim > 1 else [])
        a_modes = [*names[batch - max(a.ndim - 2, 0) :], *rows, "k"]
        b_modes = [*names[batch - max(b.ndim - 2, 0) :], "k", *columns]
        sizes = index_sizes("matmul", [a.shape, b.shape], [a_modes, b_modes], exact="k")
        return sum_of_products([(a, a_modes), (b, b_modes)], [*names, *rows, *columns], sizes)

    return product("matmul", (x1, x2), build, np.matmul)


@provides
def tensordot(x1: Any, x2: Any, /, *, axes: Any = 2) -> Any:
    """The sum of products over pairs of axes, as ``numpy.tensordot``.

    Parameters
    ----------
    x1, x2 : tensor or array
    axes : int or pair of sequences of int
        How many of the last axes of ``x1`` meet the first of ``x2``, or which of each.

    Raises
    ------
    ShapeError
        If paired axes differ in size.
    """

    def build(a: LazyTensor, b: LazyTensor) -> LazyTensor:
        if isinstance(axes, int | np.integer):
            n = int(axes)
            if not 0 <= n <= min(a.ndim, b.ndim):
                raise ShapeError(f"tensordot: axes={n} for shapes {a.shape} and {b.shape}")
            left, right = tuple(range(a.ndim - n, a.ndim)), tuple(range(n))
        else:
            first, second = axes
            left, right = normal_axes(first, a.ndim, "tensordot"), normal_axes(second, b.ndim, "tensordot")
        if len(left) != len(right):
            raise ShapeError(f"tensordot: {len(left)} axes of the first operand, {len(right)} of the second")
        a_modes = [f"a{mode}" for mode in range(a.ndim)]
        b_modes = [f"b{mode}" for mode in range(b.ndim)]
        for k, m in zip(left, right, strict=True):
            if a.shape[k] != b.shape[m]:
                raise ShapeError(
                    f"tensordot: axis {k} of shape {a.shape} and axis {m} of shape {b.shape} differ in size"
                )
            b_modes[m] = a_modes[k]
        out = [name for name in a_modes if name not in b_modes] + [name for name in b_modes if name[0] == "b"]
        sizes = index_sizes("tensordot", [a.shape, b.shape], [a_modes, b_modes])
        return sum_of_products([(a, a_modes), (b, b_modes)], out, sizes)

    static = ("tensordot", repr(axes))
    return product(static, (x1, x2), build, lambda a, b: np.tensordot(a, b, axes))


def _vecdot(axis: int) -> Any:
    dense: Any = np.vecdot
    return lambda a, b: dense(a, b, axis=axis)


@provides
def vecdot(x1: Any, x2: Any, /, *, axis: int = -1) -> Any:
    """The sum of ``conj(x1) * x2`` over one axis, with broadcasting of the others.

    Raises
    ------
    ShapeError
        If the axis differs in size.
    """

    def build(a: LazyTensor, b: LazyTensor) -> LazyTensor:
        for x in (a, b):
            if not -x.ndim <= axis < 0:
                raise ShapeError(f"vecdot: axis {axis} must be in -{x.ndim} … -1 for shape {x.shape}")
        if a.shape[axis] != b.shape[axis]:
            raise ShapeError(f"vecdot: axis {axis} of shapes {a.shape} and {b.shape} differs in size")
        ndim = max(a.ndim, b.ndim)
        names = [f"mode {k}" for k in range(ndim)]
        modes = [names[ndim - x.ndim :] for x in (a, b)]
        sizes = index_sizes("vecdot", [a.shape, b.shape], modes)
        if a.dtype.kind == "c":
            a = map_join(ops.get("conj"), [a])
        out = [name for k, name in enumerate(names) if k != ndim + axis]
        return sum_of_products([(a, modes[0]), (b, modes[1])], out, sizes)

    return product(("vecdot", axis), (x1, x2), build, _vecdot(axis))
