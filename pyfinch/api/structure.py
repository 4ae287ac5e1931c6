"""Tensors' levels rearranged in NumPy: modes added, dropped, repeated and selected on storage."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from pyfinch.api.tensor import Tensor, as_array, dense_tensor, is_dense, wrapped
from pyfinch.formats.convert import build
from pyfinch.formats.format import Format, FType
from pyfinch.formats.levels import Dense, Element, Level, Pattern, SparseCOO, SparseList
from pyfinch.formats.tensor import Tensor as StorageTensor

__all__ = ["Pick", "diagonal", "expanded", "repeated", "selected"]

#: What is taken of a mode: one place (an int), or places of a range.
Pick = int | range


def expanded(x: StorageTensor, axes: Sequence[int]) -> Tensor:
    """``x`` with new modes of size 1 at places ``axes`` of the result, as outermost dense levels; no copy."""
    if not axes:
        return wrapped(x)
    ndim = x.ndim + len(axes)
    rest = [mode for mode in range(ndim) if mode not in axes]
    order = (*sorted(axes), *[rest[mode] for mode in x.ftype.mode_order])
    sizes = iter(x.shape)
    shape = tuple(1 if mode in axes else next(sizes) for mode in range(ndim))
    levels = (*[Dense()] * len(axes), *x.ftype.levels)
    if is_dense(x.ftype):
        return dense_tensor(as_array(x).reshape(shape))
    buffers = (*[()] * len(axes), *x.buffers)
    return Tensor._trusted(FType(levels, order), shape, x.fill_value, buffers)


def _kept_levels(ftype: FType, kept: Sequence[bool]) -> tuple[Level, ...]:
    """The levels of the storage slots that are kept; a pattern that would have to be full becomes values."""
    levels: list[Level] = []
    slot = 0
    dropped: SparseList | SparseCOO | None = None
    for level in ftype.levels[:-1]:
        own = sum(kept[slot : slot + level.modes])
        slot += level.modes
        if not own and isinstance(level, SparseList | SparseCOO):
            dropped = level
        if isinstance(level, SparseCOO) and own:
            levels.append(SparseCOO(own, level.ptr, level.idx))
        elif own:
            levels.append(level)
    if levels and dropped is not None and all(isinstance(level, Dense) for level in levels):
        levels[-1] = SparseList(dropped.ptr, dropped.idx)  # a column of a csr is as sparse as a row
    leaf: Level = ftype.leaf
    if isinstance(leaf, Pattern) and (not levels or isinstance(levels[-1], Dense)):
        leaf = Element(np.bool_(False), np.dtype(np.bool_))
    elif isinstance(leaf, Element):
        leaf = Element(None, leaf.dtype)
    return (*levels, leaf)


def _renumbered(order: Sequence[int]) -> tuple[int, ...]:
    """A mode order with its modes numbered without gaps."""
    rank = {mode: k for k, mode in enumerate(sorted(order))}
    return tuple(rank[mode] for mode in order)


def selected(x: StorageTensor, picks: Sequence[Pick]) -> Tensor:
    """What ``picks`` take of each mode; a mode of which one place is taken is dropped.

    Levels of the other modes stay of their kind, except that sparse data stays sparse: a row of a csr is a sparse
    vector, and so is a column.
    """
    if is_dense(x.ftype):
        index = tuple(pick if isinstance(pick, int) else _slice(pick) for pick in picks)
        return dense_tensor(np.asarray(as_array(x)[index]))
    lists = _of_lists(x, picks)
    if lists is not None:
        return lists
    ftype = x.ftype
    kept = [not isinstance(picks[mode], int) for mode in ftype.mode_order]
    levels = _kept_levels(ftype, kept)
    order = _renumbered([mode for mode, keep in zip(ftype.mode_order, kept, strict=True) if keep])
    shape = tuple(len(pick) for pick in picks if isinstance(pick, range))
    row = _row(x, picks)
    if row is not None:
        coords, values = row
    else:
        coords, values = x.to_coords()
    masks = [
        mask
        for mode, (pick, size) in enumerate(zip(picks, x.shape, strict=True))
        if (mask := _mask(coords[mode], pick, size)) is not None
    ]
    if masks:
        where = np.logical_and.reduce(masks)
        coords, values = coords[:, where], values[where]
    columns = [
        coords[mode] if _is_whole(pick, x.shape[mode]) else (coords[mode] - pick.start) // pick.step
        for mode, pick in enumerate(picks)
        if isinstance(pick, range)
    ]
    new = np.array(columns, dtype=np.int64).reshape(len(columns), len(values))
    rising = all(isinstance(pick, int) or pick.step > 0 for pick in picks)
    known = order if rising else ()
    return wrapped(build(shape, new, values, Format(levels, order), x.fill_value, in_order_of=known))


def _slice(pick: range) -> slice:
    stop: int | None = pick.stop
    if pick.step < 0 and pick.stop < 0:
        stop = None
    return slice(pick.start, stop, pick.step) if len(pick) else slice(0, 0)


def _is_whole(pick: Pick, size: int) -> bool:
    return isinstance(pick, range) and pick == range(size)


def _mask(column: Any, pick: Pick, size: int) -> Any:
    """Which coordinates a pick takes; None for all."""
    if isinstance(pick, int):
        return column == pick
    if _is_whole(pick, size):
        return None
    if not len(pick):
        return np.zeros(len(column), dtype=np.bool_)
    low, high = min(pick[0], pick[-1]), max(pick[0], pick[-1])
    inside = (column >= low) & (column <= high)
    return inside if abs(pick.step) == 1 else inside & ((column - low) % abs(pick.step) == 0)


def _of_lists(x: StorageTensor, picks: Sequence[Pick]) -> Tensor | None:
    """Ranges of rows and columns of a csr or csc, list by list; None for other tensors and picks."""
    levels, order = x.ftype.levels, x.ftype.mode_order
    if [type(level) for level in levels[:-1]] != [Dense, SparseList]:
        return None
    outer, inner = picks[order[0]], picks[order[1]]
    if isinstance(outer, int) or isinstance(inner, int) or outer.step < 1 or inner.step < 1:
        return None
    ptr, idx = x.buffers[1]
    leaf = x.buffers[-1]
    low, high = outer.start, max(outer.stop, outer.start)
    if outer.step == 1:
        taken: Any = slice(int(ptr[low]), int(ptr[high]))
        ptr = ptr[low : high + 1] - ptr[low]
    else:
        starts = ptr[low : high : outer.step]
        counts = ptr[low + 1 : high + 1 : outer.step] - starts
        ptr = np.concatenate([ptr[:1], np.cumsum(counts, dtype=ptr.dtype)])
        taken = np.repeat(starts - ptr[:-1], counts) + np.arange(ptr[-1], dtype=ptr.dtype)
    idx, values = idx[taken], [value[taken] for value in leaf]
    if not _is_whole(inner, x.shape[order[1]]):
        inside = _mask(idx, inner, x.shape[order[1]])
        ptr = np.concatenate([ptr[:1], np.cumsum(inside, dtype=ptr.dtype)])[ptr]
        idx, values = idx[inside] - idx.dtype.type(inner.start), [value[inside] for value in values]
        if inner.step > 1:
            idx //= idx.dtype.type(inner.step)
    shape = tuple([len(pick) for pick in picks if isinstance(pick, range)])
    return wrapped(StorageTensor._trusted(x.ftype, shape, x.fill_value, ((), (ptr, idx), tuple(values))))


def _row(x: StorageTensor, picks: Sequence[Pick]) -> Any:
    """Coordinates and values of the picked outer slices of a csr or csc, without reading the others."""
    levels, order = x.ftype.levels, x.ftype.mode_order
    if [type(level) for level in levels[:-1]] != [Dense, SparseList]:
        return None
    outer = picks[order[0]]
    if isinstance(outer, int):
        low, high = outer, outer + 1
    elif len(outer) and outer.step == 1 and not _is_whole(outer, x.shape[order[0]]):
        low, high = outer.start, outer.stop
    else:
        return None
    ptr, idx = x.buffers[1]
    start, stop = int(ptr[low]), int(ptr[high])
    coords = np.empty((2, stop - start), dtype=np.int64)
    coords[order[0]] = np.repeat(np.arange(low, high), np.diff(ptr[low : high + 1]))
    coords[order[1]] = idx[start:stop]
    values = x.buffers[-1][0][start:stop] if x.buffers[-1] else np.ones(stop - start, dtype=np.bool_)
    return coords, values


def repeated(x: StorageTensor, shape: tuple[int, ...]) -> Tensor:
    """``x``, of as many modes as ``shape``, with modes of size 1 repeated to fill it; as sparse as it was."""
    if is_dense(x.ftype):
        return dense_tensor(np.ascontiguousarray(np.broadcast_to(as_array(x), shape)))
    modes = [mode for mode, (own, full) in enumerate(zip(x.shape, shape, strict=True)) if own != full]
    if not modes:
        return wrapped(x)
    coords, values = x.to_coords()
    for mode in modes:
        count, size = len(values), shape[mode]
        coords, values = np.tile(coords, (1, size)), np.tile(values, size)
        coords[mode] = np.repeat(np.arange(size, dtype=np.int64), count)
    fmt = Format(_kept_levels(x.ftype, [True] * x.ndim), x.ftype.mode_order)
    return wrapped(build(shape, coords, values, fmt, x.fill_value))


def diagonal(x: StorageTensor, first: int, second: int) -> Tensor:
    """The elements whose coordinates in two modes of one size are equal; mode ``second`` is dropped."""
    if is_dense(x.ftype):
        moved = np.diagonal(as_array(x), axis1=first, axis2=second)
        return dense_tensor(np.moveaxis(moved, -1, first - (second < first)))
    coords, values = x.to_coords()
    where = coords[first] == coords[second]
    modes = [mode for mode in range(x.ndim) if mode != second]
    # The slot of the two that comes later in storage is the one to drop, so that order is kept.
    order = x.ftype.mode_order
    later = max(order.index(first), order.index(second))
    kept = [slot != later for slot in range(x.ndim)]
    names = [first if mode == second else mode for slot, mode in enumerate(order) if slot != later]
    rank = {mode: k for k, mode in enumerate(modes)}
    new_order = tuple(rank[mode] for mode in names)
    fmt = Format(_kept_levels(x.ftype, kept), new_order)
    shape = tuple(x.shape[mode] for mode in modes)
    new = coords[modes][:, where].reshape(len(modes), -1)
    return wrapped(build(shape, new, values[where], fmt, x.fill_value, in_order_of=new_order))
