"""Calling kernels: allocate the result, run, make more room when a kernel asks for it, trim, wrap."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pyfinch.algebra.values import same_value
from pyfinch.backends.base import BrokenPromise
from pyfinch.backends.numba.kernel import KernelSource
from pyfinch.backends.numba.parallel import run_parallel
from pyfinch.backends.steps import evaluate
from pyfinch.formats.format import FType
from pyfinch.formats.levels import SparseByteMap
from pyfinch.formats.tensor import Tensor
from pyfinch.loops.nodes import Literal, Variable

__all__ = ["Execution", "IndexOverflow", "Part", "WorkspaceTooLarge", "run", "writable"]

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
    *,
    threads: bool = False,
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
    threads
        Whether large work may be spread over several threads.
    """
    return Execution(source, tensors, shape, given or {}).run(kernel, threads)


@dataclass(slots=True)
class Part:
    """A range of the outermost loop under way: what it has made, how much of it, and its workspaces."""

    buffers: list[list[Array]]
    state: Array
    workspaces: list[Array] | None


class Execution:
    """One call of a kernel."""

    def __init__(
        self, source: KernelSource, tensors: Sequence[Tensor], shape: tuple[int, ...], given: Mapping[str, Any]
    ) -> None:
        self.source, self.tensors, self.shape, self.given = source, tensors, shape, given
        for tensor in tensors:
            tensor.check_ends()
        assert isinstance(source.result.type, FType)
        self.ftype = source.result.type
        self.has_workspace = any(argument.kind == "workspace" for argument in source.arguments)
        if isinstance(source.init, Literal) and not source.promises:
            self.init: np.generic = source.init.value
        else:
            by_name = {**given, **{var.name: t for var, t in zip(source.operands, tensors, strict=True)}}
            self.init = evaluate(source.init, by_name)
            for fill, promised in source.promises:
                if not same_value(evaluate(fill, by_name), promised):
                    raise BrokenPromise(f"an intermediate fill is not {promised} for these numbers")

    def operand(self, variable: Variable) -> Tensor:
        """The tensor that a variable stands for."""
        return self.tensors[self.source.operands.index(variable)]

    def operand_size(self) -> int:
        """How many elements the operands store."""
        return sum(sum(map(len, t.buffers[-1])) or t.nnz for t in self.tensors if t.ndim)

    def extent(self, place: Any) -> int:
        """A loop's extent: a number, or a storage slot of an operand."""
        if isinstance(place, int):
            return place
        k, slot = place
        if k == "given":
            return int(self.given[slot])
        tensor = self.tensors[k]
        size: int = tensor.shape[tensor.ftype.mode_order[slot]]
        return size

    # ------------------------------------------------------------------------------------------ allocation

    def part(self, workspaces: list[Array] | None, buffers: list[list[Array]] | None = None) -> Part:
        """A range about to start: with clean workspaces, or new ones, and with buffers, or new ones for all."""
        if buffers is None:
            buffers = self.mirrored() if self.source.mirror is not None else self.allocated(self.guess())
        return Part(buffers, np.zeros(2 * len(self.ftype.levels), np.int64), workspaces)

    def guess(self) -> int:
        """Room for as many entries as the operands have together.

        For a product more, as untouched memory costs nothing.
        """
        guess = sum([tensor.nnz for tensor in self.tensors if tensor.ndim])
        return min(16 * guess, max(2 * guess, 2**26)) if self.has_workspace else guess

    def mirrored(self) -> list[list[Array]]:
        """The buffers of a result that shares an operand's structure."""
        assert self.source.mirror is not None
        shared = self.tensors[self.source.mirror]
        size = len(shared.buffers[-1][0]) if shared.buffers[-1] else shared.nnz
        return [*[list(buffers) for buffers in shared.buffers[:-1]], [self.empty(size, self.ftype.dtype)]]

    def allocated(self, guess: int) -> list[list[Array]]:
        """First buffers of the result, with room for so many entries."""
        made: list[list[Array]] = []
        npos, slot, appended = 1, 0, False
        for number, level in enumerate(self.ftype.levels):
            dims = self.shape[slot : slot + level.modes]
            slot += level.modes
            if level.appends:
                if max(dims) > LIMITS[level.buffer_dtypes[1]]:
                    raise IndexOverflow
                most = LIMITS[level.buffer_dtypes[0]]  # a kernel that asks for more is told
                room = min(max(guess, 16), max(npos * math.prod(dims), 1), most)
                ptr = self.empty(npos + 1, level.buffer_dtypes[0], number in self.source.counted)
                ptr[0] = 0
                made.append([ptr, *[self.empty(room, dtype) for dtype in level.buffer_dtypes[1:]]])
                npos, appended = room, True
            elif level.modes:
                npos *= dims[0]
                listed = [np.empty(0, dtype) for dtype in level.buffer_dtypes[:2]]
                is_map = isinstance(level, SparseByteMap)
                made.append([*listed, self.empty(npos, np.dtype(np.bool_), zero=True)] if is_map else [])
            elif level.buffer_names:
                made.append([self.values(npos, level.buffer_dtypes[0], appended)])
            else:
                made.append([])
        return made

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

    def block_below(self, number: int) -> int:
        """How many values stand below each entry of a level, the levels between being dense."""
        slot = sum(level.modes for level in self.ftype.levels[: number + 1])
        return math.prod(self.shape[slot:])

    def check_room(self, number: int, count: int) -> None:
        """Raise IndexOverflow if a level's pointers cannot say so many entries."""
        if count > LIMITS[self.ftype.levels[number].buffer_dtypes[0]]:
            raise IndexOverflow

    def grow(self, part: Part) -> None:
        """Make room, geometrically, for the level that asked; only what is filled is moved."""
        for number, level in enumerate(self.ftype.levels):
            buffers = part.buffers[number]
            need = int(part.state[2 * number + 1])
            if not level.appends or need <= len(buffers[1]):
                continue
            self.check_room(number, need)
            room = max(need, 4 * len(buffers[1]))
            filled = int(part.state[2 * number])
            for b in range(1, len(buffers)):
                buffers[b] = self.moved(buffers[b], filled, room)
            self.grow_below(part, number + 1, filled, room)

    def moved(self, array: Array, filled: int, room: int) -> Array:
        """A longer array whose first elements are those of another one."""
        made = self.empty(room, array.dtype)
        made[:filled] = array[:filled]
        return made

    def grow_below(self, part: Part, number: int, filled: int, room: int) -> None:
        """Give the levels below an appending level as many positions as it has room."""
        slot = sum(level.modes for level in self.ftype.levels[:number])
        for deeper, level in enumerate(self.ftype.levels[number:], number):
            buffers = part.buffers[deeper]
            if level.appends:
                ptr = self.empty(room + 1, buffers[0].dtype, deeper in self.source.counted)
                ptr[: filled + 1] = buffers[0][: filled + 1]
                buffers[0] = ptr
                return
            if level.modes:
                filled, room = filled * self.shape[slot], room * self.shape[slot]
                slot += 1
            elif buffers:
                buffers[0] = self.moved(buffers[0], filled, room)

    def trim(self, part: Part) -> None:
        """Cut buffers to what was appended, in place."""
        for number, level in enumerate(self.ftype.levels):
            buffers = part.buffers[number]
            if level.appends:
                count = int(part.state[2 * number])
                if number in self.source.counted:
                    np.cumsum(buffers[0], out=buffers[0])
                for b in range(1, len(buffers)):
                    buffers[b].resize(count, refcheck=False)
                self.trim_below(part, number + 1, count)
            elif isinstance(level, SparseByteMap):
                self.list_marks(part, number)

    def trim_below(self, part: Part, number: int, npos: int) -> None:
        """Cut the levels below an appending level to as many positions as it has entries."""
        slot = sum(level.modes for level in self.ftype.levels[:number])
        for level, buffers in zip(self.ftype.levels[number:], part.buffers[number:], strict=True):
            if level.appends:
                buffers[0].resize(npos + 1, refcheck=False)
                return
            if level.modes:
                npos *= self.shape[slot]
                slot += 1
            elif buffers:
                buffers[0].resize(npos, refcheck=False)

    def list_marks(self, part: Part, number: int) -> None:
        """Give a byte map the list of what its table marks."""
        slot = sum(level.modes for level in self.ftype.levels[:number])
        ptr, idx, table = part.buffers[number]
        dim = self.shape[slot]
        marked = np.flatnonzero(table)
        if len(marked) > LIMITS[ptr.dtype] or dim - 1 > LIMITS[idx.dtype]:
            raise IndexOverflow
        positions = int(np.prod(self.shape[:slot], dtype=np.int64))  # the levels above are dense or byte maps
        counts = np.bincount(marked // max(dim, 1), minlength=positions)
        made = np.concatenate([[0], np.cumsum(counts)])
        part.buffers[number][:2] = [made.astype(ptr.dtype), (marked % max(dim, 1)).astype(idx.dtype)]

    def workspace(self, number: int, dtype: str, place: object) -> Array:
        """A workspace's buffer: its table and bit sets are clean, the rest need not be."""
        size = self.extent(place)
        if size > 2**24 and size > 64 * sum(tensor.nnz for tensor in self.tensors if tensor.ndim):
            raise WorkspaceTooLarge
        if number > 2:  # bits of coordinates, and bits of the words of these
            size = (size >> 6 * (number - 2)) + 1
        return self.empty(size, np.dtype(dtype), zero=number not in (1, 2))

    # ----------------------------------------------------------------------------------------------- calls

    def arguments(self, part: Part) -> list[Any]:
        """The kernel's arguments after ``lo``, ``hi`` and ``state``."""
        args: list[Any] = []
        workspaces = iter(part.workspaces or ())
        made: list[Array] = []
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
                    args.append(part.buffers[parts[0]][parts[1]])
                case "workspace":
                    array = next(workspaces, None)
                    args.append(self.workspace(*parts) if array is None else array)
                    made.append(args[-1])
        part.workspaces = made
        return args

    def advance(self, kernel: Kernel, part: Part, low: int, high: int) -> None:
        """Run a range of the outermost loop, with more room where it is asked for."""
        while (low := kernel(low, high, part.state, *self.arguments(part))) < high:
            part.workspaces = None  # left as they were in the midst of an iteration
            self.grow(part)

    def resume(self, kernel: Kernel, part: Part, low: int, high: int) -> Tensor:
        """Go on where a kernel ran out of room."""
        self.grow(part)
        self.advance(kernel, part, low, high)
        self.trim(part)
        return self.tensor(part.buffers)

    def run(self, kernel: Kernel, threads: bool = False) -> Tensor:
        """Call the kernel until it is done."""
        total = self.outer_extent()
        if threads and (made := run_parallel(self, kernel, total)) is not None:
            return made
        part = self.part(None)
        self.advance(kernel, part, 0, total)
        if self.source.mirror is None:
            self.trim(part)
        return self.tensor(part.buffers)

    def tensor(self, buffers: list[list[Array]]) -> Tensor:
        """The result."""
        return Tensor._trusted(self.ftype, self.logical_shape(), self.init, tuple(map(tuple, buffers)))

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
