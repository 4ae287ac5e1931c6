"""Tensors across the bridge: types as text, buffers as addresses, results as views of Julia's memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from pyfinch.algebra.dtypes import julia_name
from pyfinch.algebra.errors import FormatError
from pyfinch.formats.format import FType
from pyfinch.formats.levels import Dense, Element, Level, Pattern, SparseByteMap, SparseCOO, SparseList
from pyfinch.formats.tensor import Tensor
from pyfinch.loops.numbers import number_text

__all__ = ["Kept", "Views", "numbers_of", "row", "spec"]

Array = np.ndarray[Any, np.dtype[Any]]


def spec(ftype: FType, fill: np.generic) -> str:
    """The type of a tensor for the Julia side: levels outermost first, the fill a literal that carries the dtype.

    Examples
    --------
    >>> from pyfinch.formats.format import format
    >>> spec(format("csr").specify("float64", 0.0), np.float64(0))
    'dense(sparse_list(element(0.0), Int64, Int64))'
    """
    if not ftype.ndim:
        return f"scalar({number_text(fill)})"
    text = ""
    for level in reversed(ftype.levels):
        text = _level_text(level, text, fill)
    return text


def _level_text(level: Level, child: str, fill: np.generic) -> str:
    match level:
        case Element():
            return f"element({number_text(fill)})"
        case Pattern():
            return "pattern()"
        case Dense():
            return f"dense({child})"
        case SparseList():
            name = "sparse_list"
        case SparseByteMap():
            name = "sparse_bytemap"
        case SparseCOO(n=n):
            name = f"sparse_coo[{n}]"
        case _:
            raise FormatError(f"{level.text()} has no counterpart in Finch.jl")
    ptr, idx = level.buffer_dtypes[:2]
    return f"{name}({child}, {julia_name(ptr)}, {julia_name(idx)})"


def row(tensors: Sequence[Tensor]) -> tuple[list[int], list[Array]]:
    """What describes tensors to the Julia side: for each level its extents, then address and length of each buffer.

    The arrays, of which some had to be copied, must live until the call is over.
    """
    numbers: list[int] = []
    kept: list[Array] = []
    for tensor in tensors:
        tensor.check_ends()
        dims = iter(tensor.storage_shape)
        for level, buffers in zip(tensor.ftype.levels, tensor.buffers, strict=True):
            numbers.extend([next(dims) for _ in range(level.modes)])
            for buffer in buffers:
                array = _aligned(buffer)
                kept.append(array)
                numbers.append(array.ctypes.data)
                numbers.append(array.size)
    return numbers, kept


def _aligned(array: Array) -> Array:
    """The array, or a copy where Julia could not read it as it lies."""
    flags = array.flags
    if flags.c_contiguous and flags.aligned and array.dtype.isnative:
        return array
    return np.array(array, dtype=array.dtype.newbyteorder("="), order="C")


def numbers_of(ftype: FType) -> int:
    """How many numbers describe the buffers of a result."""
    return 2 * sum(len(level.buffer_names) for level in ftype.levels)


class Kept:
    """Holds a result on the Julia side; its number goes to ``dropped`` when nothing views it any more."""

    __slots__ = ("dropped", "number")

    def __init__(self, number: int, dropped: Any) -> None:
        self.number = number
        self.dropped = dropped

    def __del__(self) -> None:
        # Any thread may run this, so Julia is not called here; appending to a deque is atomic.
        self.dropped.append(self.number)


class _View:
    """Memory of Julia's, offered to NumPy."""

    __slots__ = ("__array_interface__", "kept")

    def __init__(self, address: int, size: int, dtype: np.dtype[Any], kept: Kept) -> None:
        self.__array_interface__ = {
            "data": (address, False),
            "shape": (size,),
            "typestr": dtype.str,
            "version": 3,
        }
        self.kept = kept


class Views:
    """Reads the description of a result."""

    def __init__(self, numbers: Sequence[int], kept: Kept) -> None:
        self.numbers: Iterator[int] = iter(numbers)
        self.kept = kept

    def array(self, dtype: np.dtype[Any]) -> Array:
        """The next buffer."""
        address, size = next(self.numbers), next(self.numbers)
        if not size:
            return np.empty(0, dtype)
        return np.asarray(_View(address, size, dtype, self.kept))

    def tensor(self, ftype: FType, shape: tuple[int, ...], fill: np.generic) -> Tensor:
        """A tensor whose modes are in storage order."""
        buffers = tuple(tuple([self.array(np.dtype(dtype)) for dtype in level.buffer_dtypes]) for level in ftype.levels)
        return Tensor._trusted(ftype, shape, fill, buffers)
