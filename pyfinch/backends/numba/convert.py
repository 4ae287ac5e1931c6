"""Conversion between formats by generated kernels."""

from __future__ import annotations

from dataclasses import replace

from pyfinch.algebra.dtypes import index_dtype
from pyfinch.algebra.values import same_value
from pyfinch.backends.numba.permute import copy, permute
from pyfinch.formats import convert as plain
from pyfinch.formats.format import Format, FType
from pyfinch.formats.levels import Element, Pattern, SparseByteMap
from pyfinch.formats.tensor import Tensor

__all__ = ["convert"]


def convert(tensor: Tensor, fmt: Format, prune: bool = False) -> Tensor:
    """The same tensor stored in another format; see `pyfinch.formats.convert.convert`, which this agrees with.

    A byte map below lists, and a fill value that unstored elements do not have, are made from coordinates in NumPy.
    """
    dtype, fill = plain.target_of(tensor, fmt)
    refill = not same_value(fill, tensor.fill_value) and dtype == tensor.dtype
    if refill or _has_map_below_lists(fmt):
        return plain.convert(tensor, fmt, prune)
    if dtype != tensor.dtype:
        tensor = tensor.astype(dtype)
        if not same_value(fill, tensor.fill_value):
            return plain.convert(tensor, fmt, prune)
    if not prune and plain.is_stored_so(tensor, fmt):
        return tensor
    ftype = _type(tensor, fmt)
    prune = prune or isinstance(fmt.leaf, Pattern)
    order = tuple(tensor.ftype.mode_order.index(mode) for mode in fmt.mode_order)
    if order == tuple(range(len(order))):
        made = copy(tensor, ftype, prune=prune)
    else:
        made = permute(tensor, order, ftype, prune=prune)
    return Tensor._trusted(FType(ftype.levels, fmt.mode_order), tensor.shape, tensor.fill_value, made.buffers)


def _has_map_below_lists(fmt: Format) -> bool:
    """Whether a byte map stands below a level that appends, which no kernel assembles."""
    lists = [k for k, level in enumerate(fmt.levels) if level.appends]
    maps = [k for k, level in enumerate(fmt.levels) if isinstance(level, SparseByteMap)]
    return bool(lists and maps) and min(lists) < max(maps)


def _type(tensor: Tensor, fmt: Format) -> FType:
    """The result's type in storage order: open index dtypes are the tensor's own, or the narrowest that hold all."""
    narrow = index_dtype(*tensor.shape, tensor.nnz)
    kinds = [d for level in tensor.ftype.levels for d in level.buffer_dtypes[:2] if len(level.buffer_dtypes) > 1]
    widest = max((d for d in kinds if d is not None), key=lambda d: d.itemsize, default=narrow)
    index = widest if widest.itemsize >= narrow.itemsize else narrow
    leaf = fmt.leaf if isinstance(fmt.leaf, Pattern) else Element(None, tensor.dtype)
    opened = replace(fmt, levels=(*fmt.levels[:-1], leaf), mode_order=tuple(range(fmt.ndim)))
    return opened.specify(tensor.dtype, tensor.fill_value, index, index)
