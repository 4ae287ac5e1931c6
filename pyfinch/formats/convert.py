"""Conversion between formats in plain NumPy: coordinates out, levels in.

Generated kernels do the same faster; this is what they are tested against.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from pyfinch.algebra import operators as ops
from pyfinch.algebra.dtypes import DT, index_dtype
from pyfinch.algebra.errors import DTypeError, FormatError
from pyfinch.algebra.values import as_scalar, same_value
from pyfinch.formats.format import Format, FType
from pyfinch.formats.levels import (
    Buffer,
    Dense,
    Element,
    Level,
    Pattern,
    SparseByteMap,
    SparseCOO,
    SparseList,
)
from pyfinch.formats.tensor import Tensor

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["build", "convert", "from_coords", "is_stored_so", "target_of", "to_coords", "todense"]

Ints = np.ndarray[Any, np.dtype[np.int64]]


def to_coords(tensor: Tensor) -> tuple[Ints, NDArray[Any]]:
    """Coordinates (ndim, nnz) by logical mode, and values, of the stored entries in storage order."""
    tensor.check_ends()
    dims = tensor.storage_shape
    pos: Ints = np.zeros(1, dtype=np.int64)
    columns: list[Ints] = []
    for level, buffers in zip(tensor.ftype.levels[:-1], tensor.buffers[:-1], strict=True):
        own = dims[len(columns) : len(columns) + level.modes]
        if isinstance(level, Dense):
            # No fibers: the extent may be too large to count up to.
            place = np.tile(np.arange(own[0] if len(pos) else 0, dtype=np.int64), len(pos))
            columns = [np.repeat(column, own[0]) for column in columns] + [place]
            pos = np.repeat(pos, own[0]) * own[0] + place
            continue
        ptr, idxs = buffers[0].astype(np.int64), buffers[1 : 1 + level.modes]
        counts = ptr[pos + 1] - ptr[pos]
        entries = _ranges(ptr[pos], counts)
        columns = [np.repeat(column, counts) for column in columns]
        columns += [idx[entries].astype(np.int64) for idx in idxs]
        pos = np.repeat(pos, counts) * own[0] + columns[-1] if isinstance(level, SparseByteMap) else entries
    values = tensor.buffers[-1][0][pos] if tensor.buffers[-1] else np.ones(len(pos), dtype=np.bool_)
    coords = np.empty((tensor.ndim, len(pos)), dtype=np.int64)
    for slot, mode in enumerate(tensor.ftype.mode_order):
        coords[mode] = columns[slot]
    return coords, values


def _ranges(starts: Ints, counts: Ints) -> Ints:
    """The ranges start … start + count, one after another."""
    total = int(counts.sum())
    before = np.cumsum(counts) - counts
    entries: Ints = np.arange(total, dtype=np.int64) + np.repeat(starts - before, counts)
    return entries


def todense(tensor: Tensor) -> NDArray[Any]:
    """A new C-contiguous array of the logical shape."""
    dims = tensor.storage_shape
    inverse = np.argsort(tensor.ftype.mode_order) if tensor.ndim else ()
    if all(isinstance(level, Dense) for level in tensor.ftype.levels[:-1]) and tensor.buffers[-1]:
        stored = tensor.buffers[-1][0].reshape(dims)
        return np.array(np.transpose(stored, inverse), order="C")
    try:
        dense = np.full(tensor.shape, tensor.fill_value, dtype=tensor.dtype)
    except ValueError as error:
        raise MemoryError(f"shape {tensor.shape} cannot be dense: {error}") from None
    coords, values = to_coords(tensor)
    dense[tuple(coords)] = values
    return dense


def convert(tensor: Tensor, format: Format | FType, prune: bool = False) -> Tensor:
    """Store a tensor in another format.

    Parameters
    ----------
    tensor : Tensor
    format : Format or FType
        Of as many modes. A dtype or a fill value that it leaves open is the tensor's; another dtype casts,
        another fill value keeps every element's value (so what was not stored may have to be).
    prune : bool
        Whether to drop stored entries that equal the fill value. Those that were stored only because the
        innermost level is dense are dropped in any case, if the new format has a level that can.

    Raises
    ------
    FormatError
        If the format has another number of modes, or is a pattern and the values are not bools with
        fill False.
    """
    fmt = format.format if isinstance(format, FType) else format
    if fmt.ndim != tensor.ndim:
        raise FormatError(f"format {fmt} has {fmt.ndim} modes, the tensor has {tensor.ndim}")
    dtype, fill = target_of(tensor, fmt)
    if dtype != tensor.dtype:
        tensor = tensor.astype(dtype)
    refill = not same_value(fill, tensor.fill_value)
    if not prune and not refill and is_stored_so(tensor, fmt):
        return tensor
    if refill:
        tensor = _densified(tensor)
    coords, values = to_coords(tensor)
    can_drop = not all(isinstance(level, Dense) for level in fmt.levels[:-1])
    if can_drop and (prune or isinstance(fmt.leaf, Pattern) or _is_dense_inside(tensor)):
        kept = ~_equals(values, fill)
        if not kept.all():
            coords, values = coords[:, kept], values[kept]
    return build(tensor.shape, coords, values, fmt, fill, in_order_of=tensor.ftype.mode_order)


def target_of(tensor: Tensor, fmt: Format) -> tuple[DT, Any]:
    """The dtype and the fill value of a tensor after conversion to a format."""
    if isinstance(fmt.leaf, Pattern):
        if tensor.dtype.kind != "b" or tensor.fill_value:
            raise FormatError(
                f"a pattern holds bools with fill False, not {tensor.dtype} with fill {tensor.fill_value}"
            )
        return tensor.dtype, tensor.fill_value
    dtype = fmt.dtype if fmt.dtype is not None else tensor.dtype
    if fmt.fill is not None:
        return dtype, as_scalar(fmt.fill, dtype)
    return dtype, tensor.fill_value if dtype == tensor.dtype else ops.cast(dtype)(tensor.fill_value)


def _is_dense_inside(tensor: Tensor) -> bool:
    levels = tensor.ftype.levels
    return len(levels) > 1 and isinstance(levels[-2], Dense)


def is_stored_so(tensor: Tensor, fmt: Format) -> bool:
    """Whether a tensor's levels are those of a format, up to what it leaves open."""
    if fmt.mode_order != tensor.ftype.mode_order or len(fmt.levels) != len(tensor.ftype.levels):
        return False
    return all(_level_fits(own, level) for own, level in zip(tensor.ftype.levels, fmt.levels, strict=True))


def _level_fits(own: Level, wanted: Level) -> bool:
    if type(own) is not type(wanted) or own.modes != wanted.modes:
        return False
    pairs = zip(own.buffer_dtypes, wanted.buffer_dtypes, strict=True)
    return all(open_ is None or open_ == dtype for dtype, open_ in pairs)


def _densified(tensor: Tensor) -> Tensor:
    dense = Format((*[Dense()] * tensor.ndim, Element()), tensor.ftype.mode_order)
    values = np.transpose(todense(tensor), tensor.ftype.mode_order).reshape(-1)
    ftype = dense.specify(tensor.dtype, tensor.fill_value)
    buffers = (*[()] * tensor.ndim, (np.ascontiguousarray(values),))
    return Tensor._trusted(ftype, tensor.shape, tensor.fill_value, buffers)


def _equals(values: NDArray[Any], fill: Any) -> NDArray[np.bool_]:
    if fill != fill:
        return np.asarray(values != values)
    return np.asarray(values == fill)


def from_coords(
    shape: tuple[int, ...],
    coords: NDArray[Any] | Sequence[NDArray[Any]],
    values: NDArray[Any],
    format: Format,
    fill: Any,
) -> Tensor:
    """A tensor of coordinates in any order; values at equal coordinates are summed in their dtype.

    The coordinates must be in range.
    """
    slots = [np.asarray(coords[mode]) for mode in format.mode_order]
    order = _sorting(slots, tuple(shape[mode] for mode in format.mode_order))
    if order is not None:
        slots, values = [slot[order] for slot in slots], values[order]
    if len(values) > 1:
        new = np.zeros(len(values), dtype=np.bool_)
        new[0] = True
        for slot in slots:
            new[1:] |= slot[1:] != slot[:-1]
        if not new.all():
            starts = np.flatnonzero(new)
            with np.errstate(all="ignore"):
                values = np.add.reduceat(values, starts, dtype=values.dtype)
            slots = [slot[starts] for slot in slots]
    return _assemble(shape, slots, values, format, fill)


def build(
    shape: tuple[int, ...],
    coords: NDArray[Any],
    values: NDArray[Any],
    format: Format,
    fill: Any,
    *,
    in_order_of: tuple[int, ...] = (),
) -> Tensor:
    """A tensor of distinct coordinates; `in_order_of` is a mode order that they are known to be sorted by."""
    slots = [coords[mode] for mode in format.mode_order]
    if in_order_of != format.mode_order:
        order = _sorting(slots, tuple(shape[mode] for mode in format.mode_order))
        if order is not None:
            slots, values = [slot[order] for slot in slots], values[order]
    return _assemble(shape, slots, values, format, as_scalar(fill, values.dtype))


def _sorting(slots: list[NDArray[Any]], dims: tuple[int, ...]) -> NDArray[np.intp] | None:
    """The stable permutation that sorts coordinates lexicographically; None if they are sorted."""
    if not slots or len(slots[0]) < 2:
        return None
    rises = slots[0][1:] > slots[0][:-1]
    equal = slots[0][1:] == slots[0][:-1]
    for slot in slots[1:]:
        rises |= equal & (slot[1:] > slot[:-1])
        equal &= slot[1:] == slot[:-1]
    if (rises | equal).all():
        return None
    size = 1
    for dim in dims:
        size *= dim
    if size >= 2**63:
        return np.lexsort(slots[::-1])
    key = slots[0].astype(np.int64)
    for slot, dim in zip(slots[1:], dims[1:], strict=True):
        key = key * dim + slot
    return np.argsort(key, kind="stable")


def _assemble(
    shape: tuple[int, ...], slots: list[NDArray[Any]], values: NDArray[Any], fmt: Format, fill: Any
) -> Tensor:
    """Levels of sorted distinct coordinates."""
    count = len(values)
    dims = tuple(shape[mode] for mode in fmt.mode_order)
    narrow = index_dtype(*dims, count)
    ftype = fmt.specify(values.dtype, fill, narrow, narrow)
    pos: Ints = np.zeros(count, dtype=np.int64)
    npos, slot = 1, 0
    buffers: list[tuple[Buffer, ...]] = []
    for level in ftype.levels[:-1]:
        own = slots[slot : slot + level.modes]
        if isinstance(level, Dense):
            pos = pos * dims[slot] + own[0]
            npos *= dims[slot]
            buffers.append(())
        else:
            made, pos, npos = _assemble_sparse(level, own, dims[slot], pos, npos)
            buffers.append(made)
        slot += level.modes
    buffers.append(_assemble_leaf(ftype, values, pos, npos, fill))
    return Tensor._trusted(ftype, shape, fill, tuple(buffers))


def _assemble_sparse(
    level: Level, own: list[NDArray[Any]], dim: int, pos: Ints, npos: int
) -> tuple[tuple[Buffer, ...], Ints, int]:
    """Buffers of one level, and the child position of every entry."""
    assert isinstance(level, SparseList | SparseCOO | SparseByteMap)
    new = np.ones(len(pos), dtype=np.bool_)
    if len(pos) > 1:
        new[1:] = pos[1:] != pos[:-1]
        for column in own:
            new[1:] |= column[1:] != column[:-1]
    for dtype, limit in ((level.idx, dim - 1 if len(pos) else 0), (level.ptr, len(pos))):
        if dtype == np.int32 and limit > np.iinfo(np.int32).max:
            raise DTypeError(f"{level.text('…')}: int32 does not hold {limit}; use int64")
    ptr = _allocate(npos + 1, np.int64)
    np.cumsum(np.bincount(pos[new], minlength=npos), out=ptr[1:])
    idxs = tuple(np.ascontiguousarray(column[new], dtype=level.idx) for column in own)
    buffers: tuple[Buffer, ...] = (ptr.astype(level.ptr), *idxs)
    if isinstance(level, SparseByteMap):
        pos = pos * dim + own[0]
        table = _allocate(npos * dim, np.bool_)
        table[pos] = True
        return (*buffers, table), pos, npos * dim
    return buffers, np.cumsum(new) - 1, int(np.count_nonzero(new))


def _allocate(size: int, dtype: Any) -> NDArray[Any]:
    try:
        return np.zeros(size, dtype=dtype)
    except (ValueError, OverflowError) as error:
        raise MemoryError(f"{size} elements of {np.dtype(dtype)} do not fit in memory") from error


def _assemble_leaf(ftype: FType, values: NDArray[Any], pos: Ints, npos: int, fill: Any) -> tuple[Buffer, ...]:
    if isinstance(ftype.leaf, Pattern):
        full = len(ftype.levels) == 1 or isinstance(ftype.levels[-2], Dense)
        if not values.all() or (full and npos != len(values)):
            raise FormatError(f"{ftype}: a pattern in a dense level is True everywhere; some elements are False")
        return ()
    if npos == len(values) and (npos == 0 or bool(pos[-1] == npos - 1)):
        # As many positions as entries, which are distinct and in order.
        return (np.ascontiguousarray(values),)
    filled = _allocate(npos, values.dtype)
    filled[:] = fill
    filled[pos] = values
    return (filled,)
