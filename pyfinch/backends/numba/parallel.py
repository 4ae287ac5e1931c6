"""Kernels over pieces of their outermost loop, in several threads.

A loop may be cut if each iteration writes its own slices of the result, or if all of them reduce into one result by an
operator whose order does not matter. Pieces are of about equal numbers of entries of the operand that the loop goes
over, and there are more of them than threads, so that uneven work evens out. Where they are depends on the operands
and the number of threads alone.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from pyfinch.algebra.operators import Operator
from pyfinch.algebra.term import postorder
from pyfinch.backends.threads import get_num_threads, run_pieces
from pyfinch.formats.format import FType
from pyfinch.formats.levels import Dense, SparseByteMap
from pyfinch.formats.tensor import Tensor
from pyfinch.loops.nodes import Assign, Block, Literal, Loop

if TYPE_CHECKING:
    from pyfinch.backends.numba.execute import Execution, Part

__all__ = ["Split", "run_parallel", "split_of"]

#: Elements of operands and result from which a computation is worth more than one thread.
LARGE = 150_000
_PIECES = 4  # a thread

Array = np.ndarray[Any, np.dtype[Any]]
Kernel = Callable[..., int]


@dataclass(frozen=True, slots=True)
class Split:
    """How the outermost loop may be cut: ``op`` combines the pieces' results; None if each writes its own slices."""

    op: Operator | None


@cache
def split_of(program: Block) -> Split | None:
    """How the pieces of a kernel's outermost loop may run side by side; None if they may not."""
    result, init = program.bodies[0].tensor, program.bodies[0].init  # type: ignore[attr-defined]
    body = program.bodies[1]
    if not isinstance(body, Loop):
        return None
    writes = [term for term in postorder(body) if isinstance(term, Assign) and term.lhs.tensor is result]
    ftype = result.type
    if not writes or any(isinstance(level, SparseByteMap) for level in ftype.levels):
        return None
    if all(write.lhs.idxs and write.lhs.idxs[0] is body.index for write in writes):
        return Split(None)
    op = writes[0].op
    sums = all(write.op is op and body.index not in write.lhs.idxs for write in writes)
    neutral = isinstance(init, Literal) and (op.idempotent or op.is_identity(init.value))
    if sums and neutral and op.associative and op.commutative and all_dense(ftype):
        return Split(op)
    return None


def all_dense(ftype: FType) -> bool:
    """Whether every element is stored."""
    return all(isinstance(level, Dense) for level in ftype.levels[:-1])


def run_parallel(execution: Execution, kernel: Kernel, total: int) -> Tensor | None:
    """Run a kernel in pieces; None if it is too small, or may not be cut."""
    threads = get_num_threads()
    if threads == 1 or total < 2:
        return None
    split = split_of(execution.source.program)
    if split is None:
        return None
    weight = 8 if execution.has_workspace else 1
    size = execution.operand_size()
    if size * weight < LARGE:
        return None
    space = int(np.prod(execution.shape, dtype=object))
    if split.op is not None and threads * space > size:
        return None  # copies of the result would cost more than the work
    cuts = _cuts(execution, total, threads * _PIECES)
    count = len(cuts) - 1
    if count < 2:
        return None
    if split.op is not None:
        return _reduced(execution, kernel, cuts, threads, split.op)
    return _sliced(execution, kernel, cuts, threads)


def _cuts(execution: Execution, total: int, count: int) -> list[int]:
    """Where the outermost loop is cut: coordinates from 0 to ``total``."""
    outer = execution.source.program.bodies[1]
    assert isinstance(outer, Loop)
    best: Array | None = None
    most = 0
    for access in execution.source.reads:
        if access.idxs and access.idxs[0] is outer.index:
            tensor = execution.operand(access.tensor)
            found = _coordinates(tensor, count)
            size = sum(map(len, tensor.buffers[-1])) or len(tensor.buffers[-2][-1])
            if found is not None and size > most:
                best, most = found, size
    if best is None:
        best = np.arange(1, count) * total // count
    inner = np.unique(best)
    return [0, *[int(cut) for cut in inner if 0 < cut < total], total]


def _coordinates(tensor: Tensor, count: int) -> Array | None:
    """Coordinates of the outermost slot that cut a tensor's entries into equal parts; None for a dense tensor."""
    levels = tensor.ftype.levels
    first = levels[0]
    if isinstance(first, Dense):
        below = 1
        for number, level in enumerate(levels[1:-1], 1):
            if level.appends:
                ptr = tensor.buffers[number][0]
                targets = np.arange(1, count) * (int(ptr[-1]) / count)
                return np.searchsorted(ptr, targets) // below
            below *= tensor.storage_shape[number]
        return None
    if not first.appends:
        return None
    idx = tensor.buffers[0][1]
    entries = len(idx)
    if not entries:
        return None
    places = np.arange(1, count) * entries // count
    if first.modes == 1 and levels[1].appends:
        ptr = tensor.buffers[1][0]
        places = np.minimum(np.searchsorted(ptr, np.arange(1, count) * (int(ptr[-1]) / count)), entries - 1)
    found: Array = np.asarray(idx[places], np.int64)
    return found


# ----------------------------------------------------------------------------------------------------- reductions


def _reduced(execution: Execution, kernel: Kernel, cuts: list[int], threads: int, op: Operator) -> Tensor:
    """Each piece reduces into a result of its own; these are combined in the order of the pieces."""
    count = len(cuts) - 1
    parts: list[Any] = [None] * count
    kept: list[Any] = [None] * threads

    def work(piece: int, thread: int) -> None:
        part = execution.part(kept[thread])
        execution.advance(kernel, part, cuts[piece], cuts[piece + 1])
        parts[piece], kept[thread] = part.buffers, part.workspaces

    run_pieces(count, threads, work)
    total = parts[0][-1][0]
    for buffers in parts[1:]:
        total = np.asarray(op(total, buffers[-1][0]), total.dtype)
    return execution.tensor([*parts[0][:-1], [np.ascontiguousarray(total).reshape(-1)]])


# --------------------------------------------------------------------------------------------------------- slices


def _sliced(execution: Execution, kernel: Kernel, cuts: list[int], threads: int) -> Tensor:
    """Each piece writes its own slices: in place where everything is stored, else to be joined."""
    shared = execution.part(None)
    if execution.source.mirror is not None or all_dense(execution.ftype):
        kept: list[Any] = [None] * threads
        kept[0] = shared.workspaces

        def in_place(piece: int, thread: int) -> None:
            part = execution.part(kept[thread], shared.buffers)
            execution.advance(kernel, part, cuts[piece], cuts[piece + 1])
            kept[thread] = part.workspaces

        run_pieces(len(cuts) - 1, threads, in_place)
        return execution.tensor(shared.buffers)
    return _Join(execution, kernel, cuts, threads, shared).run()


class _Join:
    """Pieces that append, each to arrays of its own, which are put one behind the other."""

    def __init__(self, execution: Execution, kernel: Kernel, cuts: list[int], threads: int, shared: Part) -> None:
        self.execution, self.kernel, self.cuts, self.threads = execution, kernel, cuts, threads
        self.shared = shared.buffers
        self.levels = execution.ftype.levels
        self.first = next(number for number, level in enumerate(self.levels) if level.appends)
        slots = sum(level.modes for level in self.levels[: self.first])
        self.rows = int(np.prod(execution.shape[1:slots], dtype=np.int64))  # positions above lists, a coordinate
        self.block = execution.block_below(self.first)
        # one level that appends, right above the values: pieces get slices of one array
        self.is_flat = not any(level.appends for level in self.levels[self.first + 1 :])
        self.parts: list[Any] = [None] * (len(cuts) - 1)
        self.kept: list[Any] = [None] * threads
        self.kept[0] = shared.workspaces

    def run(self) -> Tensor:
        """Run all pieces, then join them level by level."""
        run_pieces(len(self.parts), self.threads, self.work)
        made: list[list[Array]] = []
        bases = [0] * len(self.parts)  # of positions above the level at hand, piece by piece
        counts = [(high - low) * self.rows for low, high in zip(self.cuts, self.cuts[1:], strict=False)]
        for number, level in enumerate(self.levels):
            if level.appends:
                own = [int(part.state[2 * number]) for part in self.parts]
                starts = [0, *np.cumsum(own).tolist()]
                self.execution.check_room(number, starts[-1])
                ptr = self.pointers(number, counts, starts)
                made.append([ptr, *self.joined(number, own, starts)])
                bases, counts = starts[:-1], own
            elif number < self.first:
                made.append(self.shared[number])
            elif level.modes:
                dim = self.execution.shape[sum(above.modes for above in self.levels[:number])]
                counts = [count * dim for count in counts]
                bases = [base * dim for base in bases]
                made.append([])
            elif level.buffer_names:
                made.append(self.joined(number, counts, [*bases, bases[-1] + counts[-1]]))
            else:
                made.append([])
        return self.execution.tensor(made)

    def work(self, piece: int, thread: int) -> None:
        """Run one piece."""
        execution, low, high = self.execution, self.cuts[piece], self.cuts[piece + 1]
        if self.is_flat:
            buffers = self.slices(piece)
        else:
            buffers = execution.allocated(1 + execution.guess() // len(self.parts))
            if self.first > 0:
                buffers[self.first][0] = self.shared[self.first][0]
        part = execution.part(self.kept[thread], buffers)
        execution.advance(self.kernel, part, low, high)
        self.kept[thread] = part.workspaces
        self.parts[piece] = part

    def slices(self, piece: int) -> list[list[Array]]:
        """A piece's share of the arrays, which have room for all."""
        buffers = [list(level) for level in self.shared]
        ptr, *idxs = buffers[self.first]
        count = len(self.parts)
        room = len(idxs[0])
        low, high = room * piece // count, room * (piece + 1) // count
        if self.first == 0:
            ptr = np.zeros(2, ptr.dtype)
        buffers[self.first] = [ptr, *[idx[low:high] for idx in idxs]]
        if buffers[-1]:
            buffers[-1] = [buffers[-1][0][low * self.block : high * self.block]]
        return buffers

    def pointers(self, number: int, counts: list[int], starts: list[int]) -> Array:
        """The pointers of a level: the pieces', each moved on by what was appended before it."""
        counted = number in self.execution.source.counted
        if number == self.first and number > 0:
            ptr = self.shared[number][0]
            if counted:
                np.cumsum(ptr, out=ptr)
            else:
                for piece in range(1, len(self.parts)):
                    low, high = self.cuts[piece] * self.rows, self.cuts[piece + 1] * self.rows
                    ptr[low + 1 : high + 1] += ptr.dtype.type(starts[piece])
            return ptr
        dtype = self.levels[number].buffer_dtypes[0]
        if number == 0:
            return np.array([0, starts[-1]], dtype)
        ptr = np.empty(sum(counts) + 1, dtype)
        ptr[0] = 0
        at = 1
        for piece, part in enumerate(self.parts):
            own = part.buffers[number][0][1 : counts[piece] + 1]
            if counted:
                own = np.cumsum(own, dtype=own.dtype)
            np.add(own, own.dtype.type(starts[piece]), out=ptr[at : at + counts[piece]])
            at += counts[piece]
        return ptr

    def joined(self, number: int, counts: list[int], starts: list[int]) -> list[Array]:
        """The arrays of a level but its pointers, the pieces' one behind the other."""
        skip = 1 if self.levels[number].appends else 0
        made = []
        for place in range(skip, len(self.shared[number])):
            pieces = [part.buffers[number][place] for part in self.parts]
            whole = self.shared[number][place]
            if not all(piece.base is whole for piece in pieces):
                whole = self.execution.empty(starts[-1], whole.dtype)
            for piece, count, start in zip(pieces, counts, starts, strict=False):
                _move(whole, start, piece, count)
            whole.resize(starts[-1], refcheck=False)
            made.append(whole)
        return made


def _move(target: Array, start: int, source: Array, count: int) -> None:
    """Copy elements, which may lie further on in the same memory."""
    size = target.itemsize
    to = target.ctypes.data + start * size
    if count and to != source.ctypes.data:
        ctypes.memmove(to, source.ctypes.data, count * size)
