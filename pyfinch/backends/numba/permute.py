"""Changing storage order, and combining entries that were appended out of order: coordinates are sorted by counting."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from pyfinch.algebra.operators import Operator
from pyfinch.algebra.operators import get as operator
from pyfinch.backends.numba.execute import writable
from pyfinch.backends.numba.tiers import kernel_for
from pyfinch.formats.format import FType
from pyfinch.formats.levels import Dense, SparseList
from pyfinch.formats.tensor import Tensor
from pyfinch.loops.nodes import (
    Access,
    Assign,
    Block,
    Call,
    Declare,
    Freeze,
    Index,
    Literal,
    Loop,
    LoopNode,
    Sieve,
    Variable,
    Yield,
)
from pyfinch.loops.simplify import fill_of

__all__ = ["combine", "copy", "permute"]

Array = np.ndarray[Any, np.dtype[Any]]

#: Entries from which the compiled counting sort pays for loading Numba.
_LARGE = 50_000


def permute(tensor: Tensor, order: tuple[int, ...], ftype: FType, *, prune: bool = False) -> Tensor:
    """A tensor stored in another order of its slots.

    Parameters
    ----------
    tensor
        Any tensor.
    order
        ``order[d]`` is the slot of the tensor that becomes slot ``d``.
    ftype
        The type of the result, whose modes are in storage order.
    """
    is_large = tensor.nnz >= _LARGE and max(tensor.shape, default=0) <= 4 * tensor.nnz
    if order == (1, 0) and is_large and tensor.buffers[-1] and ftype.levels[-1].buffer_names:
        return copy(_transposed(tensor, ftype), ftype, prune=prune or _stores_all(tensor.ftype))
    coords, values = _storage_coords(tensor)
    shape = [tensor.shape[tensor.ftype.mode_order[slot]] for slot in order]
    prefix = len(order)
    while prefix > 0 and (prefix == len(order) or order[prefix - 1] < order[prefix]):
        prefix -= 1
    perm = _sorted([coords[slot] for slot in order[:prefix]], shape[:prefix], len(values))
    if perm is not None:
        coords = [coord[perm] for coord in coords]
        values = values[perm]
    loose = _coo(ftype, tuple(shape), tensor.fill_value, [coords[s] for s in order], values)
    return copy(loose, ftype, prune=prune or _stores_all(tensor.ftype))


def _transposed(tensor: Tensor, ftype: FType) -> Tensor:
    """A matrix stored by its inner slot: as lists of rows first, then as lists of columns."""
    from pyfinch.backends.numba.compile import helper

    own = [level for level in ftype.levels if isinstance(level, SparseList)]
    level = own[-1] if own else ftype.as_coo().levels[0]
    lists = (Dense(), SparseList(level.buffer_dtypes[0], level.buffer_dtypes[1]), ftype.levels[-1])
    kind = FType(lists, (0, 1))
    rows = copy(tensor, kind)
    _, (ptr, idx), (val,) = rows.buffers
    columns = rows.shape[1]
    out_ptr, out_idx, out_val = np.zeros(columns + 2, ptr.dtype), np.empty_like(idx), np.empty_like(val)
    helper("transpose_lists")(writable(ptr), writable(idx), writable(val), out_ptr, out_idx, out_val)
    return Tensor._trusted(kind, (columns, rows.shape[0]), tensor.fill_value, ((), (out_ptr[:-1], out_idx), (out_val,)))


def _storage_coords(tensor: Tensor) -> tuple[list[Array], Array]:
    """The coordinates of the stored entries, one array a storage slot, and their values."""
    coords, values = tensor.to_coords()
    return [coords[mode] for mode in tensor.ftype.mode_order], values


def _coo(ftype: FType, shape: tuple[int, ...], fill: np.generic, coords: Sequence[Array], values: Array) -> Tensor:
    """Sorted coordinates as one coordinate level, with the dtypes of a type."""
    loose = ftype.as_coo()
    level = loose.levels[0]
    ptr = np.array([0, len(values)], level.buffer_dtypes[0])
    idxs = tuple(
        np.ascontiguousarray(coord, dtype) for coord, dtype in zip(coords, level.buffer_dtypes[1:], strict=True)
    )
    return Tensor._trusted(loose, shape, fill, ((ptr, *idxs), (np.ascontiguousarray(values),)))


def _sorted(keys: Sequence[Array], extents: Sequence[int], count: int) -> Array | None:
    """The stable order by the keys, the first one most significant; None if there is nothing to sort by."""
    perm: Array | None = None
    for key, extent in zip(reversed(keys), reversed(extents), strict=True):
        now = key if perm is None else key[perm]
        step = _order(now, extent)
        perm = step if perm is None else perm[step]
    return perm


def _order(keys: Array, extent: int) -> Array:
    count = len(keys)
    if count < _LARGE or extent > 4 * count:
        return np.argsort(keys, kind="stable")
    from pyfinch.backends.numba.compile import helper

    order = np.empty(count, np.int32 if count < 2**31 else np.int64)
    helper("counting_order")(keys, np.zeros(extent + 1, np.int64), order)
    return order


def combine(tensor: Tensor, op: Operator, ftype: FType) -> Tensor:
    """Sort entries that were appended in any order, and fold those of equal coordinates, from the fill, by ``op``."""
    coords, values = _storage_coords(tensor)
    shape = tensor.storage_shape
    perm = _sorted(coords, shape, len(values))
    if perm is not None:
        coords = [coord[perm] for coord in coords]
        values = values[perm]
    if len(values):
        first = np.zeros(len(values), bool)
        first[0] = True
        for coord in coords:
            first[1:] |= coord[1:] != coord[:-1]
        starts = np.flatnonzero(first)
        coords = [coord[starts] for coord in coords]
        values = _fold(op, values, starts, tensor.fill_value).astype(ftype.dtype)
    loose = _coo(ftype, shape, tensor.fill_value, coords, values)
    return copy(loose, ftype)


def _fold(op: Operator, values: Array, starts: Array, init: np.generic) -> Array:
    """Fold each segment of values by an operator, rank by rank: the k-th element of every segment at once."""
    ends = np.append(starts[1:], len(values))
    result = np.asarray(op(np.full(len(starts), init), values[starts]))
    if isinstance(op.func, np.ufunc) and op.func.nin == 2:
        with np.errstate(all="ignore"):
            return np.asarray(op(np.full(len(starts), init), op.func.reduceat(values, starts)))
    rank = 1
    alive = np.flatnonzero(ends - starts > rank)
    while len(alive):
        result[alive] = op(result[alive], values[starts[alive] + rank])
        rank += 1
        alive = alive[ends[alive] - starts[alive] > rank]
    return result


def copy(tensor: Tensor, ftype: FType, *, prune: bool = False) -> Tensor:
    """A tensor in the levels of another type, by a generated kernel; its storage order stays.

    Stored fills that the result can leave out are dropped if ``prune``, or if the source's innermost level is dense.
    """
    source = tensor.ftype.in_storage_order()
    shape = tuple(tensor.shape[mode] for mode in tensor.ftype.mode_order)
    if source.levels == ftype.levels and not prune:
        return Tensor._trusted(ftype, shape, tensor.fill_value, tensor.buffers)
    return kernel_for(copy_program(source, ftype, prune))([tensor], shape)


def _stores_all(ftype: FType) -> bool:
    """Whether the innermost level stores every element, fills too."""
    return ftype.ndim > 0 and isinstance(ftype.levels[-2], Dense)


def copy_program(source: FType, ftype: FType, prune: bool) -> Block:
    """The loop program that copies element by element."""
    operand, result = Variable("A", source), Variable("R", ftype)
    idxs = tuple(Index("ijklmn"[k] if k < 6 else f"i{k}") for k in range(source.ndim))
    read = Access(operand, idxs)
    fill = fill_of(operand)
    body: LoopNode = Assign(Access(result, idxs), operator("overwrite"), read)
    if (prune or _stores_all(source)) and any(len(level.buffer_names) > 1 for level in ftype.levels):
        is_nan = isinstance(fill, Literal) and bool(fill.value != fill.value)
        test = ("equal", (read, read)) if is_nan else ("not_equal", (read, fill))
        body = Sieve(Call(operator(test[0]), test[1], np.dtype(np.bool_)), body)
    for idx in reversed(idxs):
        body = Loop(idx, None, body)
    return Block((Declare(result, fill), body, Freeze(result), Yield((result,))))
