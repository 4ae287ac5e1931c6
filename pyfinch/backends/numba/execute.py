"""Calling kernels: allocate the result, run, make more room when a kernel asks for it, trim, wrap."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from pyfinch.algebra.values import same_value
from pyfinch.backends.base import BrokenPromise
from pyfinch.backends.numba.kernel import KernelSource
from pyfinch.backends.steps import evaluate
from pyfinch.formats.format import FType
from pyfinch.formats.levels import SparseByteMap
from pyfinch.formats.tensor import Tensor
from pyfinch.loops.nodes import Literal

__all__ = ["IndexOverflow", "WorkspaceTooLarge", "run", "writable"]

Kernel = Callable[..., int]
Array = np.ndarray[Any, np.dtype[Any]]


class WorkspaceTooLarge(Exception):  # noqa: N818 - not an error: the plan is lowered again to sort instead
    """A workspace over a mode would be far larger than the data."""


class IndexOverflow(Exception):  # noqa: N818 - not an error: the plan is lowered again with int64
    """A result has coordinates or positions that its index dtype does not hold."""


#: The largest position and coordinate that each index dtype is used for.
LIMITS = {np.dtype(np.int32): 2**31 - 1, np.dtype(np.int64): 2**63 - 1}


def run(
    kernel: Kernel,
    source: KernelSource,
    tensors: Sequence[Tensor],
    shape: tuple[int, ...],
    given: Mapping[str, Any] | None = None,
) -> Tensor:
    """Run a kernel.

    Parameters
    ----------
    kernel
        The compiled or plain function.
    source
        What it was built from.
    tensors
        The operands, in the order of ``source.operands``.
    shape
        The result's extents in storage order, outermost first.
    given
        The extents of loops that no operand tells, by index, and any tensors, by name, that only the result's
        initial value depends on.
    """
    return _Run(source, tensors, shape, given or {}).run(kernel)


class _Run:
    def __init__(
        self, source: KernelSource, tensors: Sequence[Tensor], shape: tuple[int, ...], given: Mapping[str, Any]
    ) -> None:
        self.source, self.tensors, self.shape, self.given = source, tensors, shape, given
        for tensor in tensors:
            tensor.check_ends()
        assert isinstance(source.result.type, FType)
        self.ftype = source.result.type
        if isinstance(source.init, Literal) and not source.promises:
            self.init: np.generic = source.init.value
        else:
            by_name = {**given, **{var.name: t for var, t in zip(source.operands, tensors, strict=True)}}
            self.init = evaluate(source.init, by_name)
            for fill, promised in source.promises:
                if not same_value(evaluate(fill, by_name), promised):
                    raise BrokenPromise(f"an intermediate fill is not {promised} for these numbers")
        self.state = np.zeros(2 * len(self.ftype.levels), np.int64)
        self.buffers: list[list[Array]] = []

    def extent(self, place: Any) -> int:
        """A loop's extent: a number, or a storage slot of an operand."""
        if isinstance(place, int):
            return place
        k, slot = place
        if k == "given":
            return int(self.given[slot])
        size: int = self.tensors[k].storage_shape[slot]
        return size

    # ------------------------------------------------------------------------------------------ allocation

    def allocate(self) -> None:
        """First buffers of the result: room for as many entries as the operands have together."""
        guess = sum(tensor.nnz for tensor in self.tensors if tensor.ndim)
        if any(argument.kind == "workspace" for argument in self.source.arguments):
            # products have more entries than their operands; untouched memory costs nothing
            guess = min(16 * guess, max(2 * guess, 2**26))
        npos, slot, appended = 1, 0, False
        levels = self.ftype.levels
        for number, level in enumerate(levels):
            dims = self.shape[slot : slot + level.modes]
            slot += level.modes
            if level.appends:
                if max(dims) > LIMITS[level.buffer_dtypes[1]]:
                    raise IndexOverflow
                room = min(max(guess, 16), max(npos * int(np.prod(dims, dtype=object)), 1))
                ptr = self.empty(npos + 1, level.buffer_dtypes[0], number in self.source.counted)
                ptr[0] = 0
                self.buffers.append([ptr, *[self.empty(room, dtype) for dtype in level.buffer_dtypes[1:]]])
                npos, appended = room, True
            elif level.modes:
                npos *= dims[0]
                listed = [np.empty(0, dtype) for dtype in level.buffer_dtypes[:2]]
                is_map = isinstance(level, SparseByteMap)
                self.buffers.append([*listed, self.empty(npos, np.dtype(np.bool_), zero=True)] if is_map else [])
            elif level.buffer_names:
                self.buffers.append([self.values(npos, level.buffer_dtypes[0], appended)])
            else:
                self.buffers.append([])

    def empty(self, size: int, dtype: np.dtype[Any] | None, zero: bool = False) -> Array:
        """An array, or MemoryError saying what it was for."""
        try:
            return np.zeros(size, dtype) if zero else np.empty(size, dtype)
        except (MemoryError, ValueError) as error:
            raise MemoryError(
                f"the result of shape {self.shape} in format {self.ftype.text} needs {size} elements of {dtype}"
            ) from error

    def values(self, size: int, dtype: np.dtype[Any] | None, appended: bool) -> Array:
        """The array of values: filled where the kernel counts on it."""
        if appended or not self.source.prefilled:
            return self.empty(size, dtype)
        if not self.init.tobytes().strip(b"\0"):
            return self.empty(size, dtype, zero=True)
        values = self.empty(size, dtype)
        values.fill(self.init)
        return values

    def grow(self) -> None:
        """Make room, geometrically, for the level that asked; only what is filled is moved."""
        levels = self.ftype.levels
        for number, level in enumerate(levels):
            need = int(self.state[2 * number + 1])
            if not level.appends or need <= len(self.buffers[number][1]):
                continue
            if need > LIMITS[level.buffer_dtypes[0]]:
                raise IndexOverflow
            room = max(need, 4 * len(self.buffers[number][1]))
            filled = int(self.state[2 * number])
            for b in range(1, len(self.buffers[number])):
                self.buffers[number][b] = self.moved(self.buffers[number][b], filled, room)
            self.grow_below(number + 1, filled, room)

    def moved(self, array: Array, filled: int, room: int) -> Array:
        """A longer array whose first elements are those of another one."""
        made = self.empty(room, array.dtype)
        made[:filled] = array[:filled]
        return made

    def grow_below(self, number: int, filled: int, room: int) -> None:
        """Give the levels below an appending level as many positions as it has room."""
        slot = sum(level.modes for level in self.ftype.levels[:number])
        for level, buffers in zip(self.ftype.levels[number:], self.buffers[number:], strict=True):
            if level.appends:
                ptr = self.empty(room + 1, buffers[0].dtype, number in self.source.counted)
                ptr[: filled + 1] = buffers[0][: filled + 1]
                buffers[0] = ptr
                return
            if level.modes:
                filled, room = filled * self.shape[slot], room * self.shape[slot]
                slot += 1
            elif buffers:
                buffers[0] = self.moved(buffers[0], filled, room)
            number += 1

    def resize_below(self, number: int, npos: int) -> None:
        """Give the levels below an appending level as many positions as it has room."""
        slot = sum(level.modes for level in self.ftype.levels[:number])
        for level, buffers in zip(self.ftype.levels[number:], self.buffers[number:], strict=True):
            if level.appends:
                buffers[0].resize(npos + 1, refcheck=False)
                return
            if level.modes:
                npos *= self.shape[slot]
                slot += 1
            elif buffers:
                buffers[0].resize(npos, refcheck=False)

    def trim(self) -> None:
        """Cut buffers to what was appended, in place."""
        for number, level in enumerate(self.ftype.levels):
            if level.appends:
                count = int(self.state[2 * number])
                if number in self.source.counted:
                    np.cumsum(self.buffers[number][0], out=self.buffers[number][0])
                for b in range(1, len(self.buffers[number])):
                    self.buffers[number][b].resize(count, refcheck=False)
                self.resize_below(number + 1, count)
            elif isinstance(level, SparseByteMap):
                self.list_marks(number)

    def list_marks(self, number: int) -> None:
        """Give a byte map the list of what its table marks."""
        slot = sum(level.modes for level in self.ftype.levels[:number])
        ptr, idx, table = self.buffers[number]
        dim = self.shape[slot]
        marked = np.flatnonzero(table)
        if len(marked) > LIMITS[ptr.dtype] or dim - 1 > LIMITS[idx.dtype]:
            raise IndexOverflow
        positions = int(np.prod(self.shape[:slot], dtype=np.int64))  # the levels above are dense or byte maps
        counts = np.bincount(marked // max(dim, 1), minlength=positions)
        made = np.concatenate([[0], np.cumsum(counts)])
        self.buffers[number][:2] = [made.astype(ptr.dtype), (marked % max(dim, 1)).astype(idx.dtype)]

    def workspace(self, number: int, dtype: str, place: object) -> Array:
        """A workspace's buffer: its table and bit sets are clean, the rest need not be."""
        size = self.extent(place)
        if size > 2**24 and size > 64 * sum(tensor.nnz for tensor in self.tensors if tensor.ndim):
            raise WorkspaceTooLarge
        if number > 2:  # bits of coordinates, and bits of the words of these
            size = (size >> 6 * (number - 2)) + 1
        return self.empty(size, np.dtype(dtype), zero=number not in (1, 2))

    # ----------------------------------------------------------------------------------------------- calls

    def arguments(self) -> list[Any]:
        """The kernel's arguments after ``lo``, ``hi`` and ``state``."""
        args: list[Any] = []
        for argument in self.source.arguments[3:]:
            parts: Any = argument.parts
            match argument.kind:
                case "buffer":
                    args.append(writable(self.tensors[parts[0]].buffers[parts[1]][parts[2]]))
                case "fill":
                    args.append(self.tensors[parts[0]].fill_value)
                case "extent":
                    args.append(self.extent(parts))
                case "init":
                    args.append(self.init)
                case "result":
                    args.append(self.buffers[parts[0]][parts[1]])
                case "workspace":
                    args.append(self.workspace(*parts))
        return args

    def run(self, kernel: Kernel) -> Tensor:
        """Call the kernel until it is done."""
        source = self.source
        if source.mirror is None:
            self.allocate()
        else:
            shared = self.tensors[source.mirror]
            self.buffers = [list(buffers) for buffers in shared.buffers[:-1]]
            size = len(shared.buffers[-1][0]) if shared.buffers[-1] else shared.nnz
            self.buffers.append([self.empty(size, self.ftype.dtype)])
        low, high = 0, self.outer_extent()
        while True:
            low = kernel(low, high, self.state, *self.arguments())
            if low >= high:
                break
            self.grow()
        if source.mirror is None:
            self.trim()
        return Tensor._trusted(self.ftype, self.logical_shape(), self.init, tuple(map(tuple, self.buffers)))

    def outer_extent(self) -> int:
        """The extent of the outermost loop; 1 if there is none."""
        return max(self.extent(self.source.outer), 0) if self.source.outer is not None else 1

    def logical_shape(self) -> tuple[int, ...]:
        """The shape in logical mode order."""
        shape = [0] * len(self.shape)
        for slot, mode in enumerate(self.ftype.mode_order):
            shape[mode] = self.shape[slot]
        return tuple(shape)


def writable(array: Array) -> Array:
    """The array, or a view of a read-only one that Numba types as writable; kernels never write operands."""
    if array.flags.writeable:
        return array
    return np.asarray(_Unlocked(array))


class _Unlocked:
    """Offers an array's memory as writable, keeping the array alive."""

    def __init__(self, array: Array) -> None:
        self.array = array
        self.__array_interface__ = {**array.__array_interface__, "data": (array.ctypes.data, False)}
