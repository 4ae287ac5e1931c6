"""Kernels over pieces of their outermost loop, in several threads.

A loop may be cut if each iteration writes its own slices of the result, or if all of them reduce into one result by an
operator whose order does not matter. Pieces are of about equal numbers of entries of the operand that the loop goes
over, and there are more of them than threads, so that uneven work evens out. Where they are depends on the operands
and the number of threads alone.
"""

from __future__ import annotations

import math
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
from pyfinch.loops.nodes import Assign, Block, Declare, Literal, Loop

if TYPE_CHECKING:
    from pyfinch.backends.numba.execute import Execution, Part

__all__ = ["Split", "run_parallel", "split_of", "weight_of"]

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
def weight_of(program: Block) -> float:
    """What an entry of an operand costs, in steps of a plain loop.

    Two loops that add up entries are bound by memory, and gain from threads only where nothing fits a cache.
    """
    terms = list(postorder(program))
    if sum(isinstance(term, Declare) for term in terms) > 1:
        return 8.0  # a workspace: a product
    return 1.0 if len({term.index for term in terms if isinstance(term, Loop)}) > 2 else 1 / 32


@cache
def split_of(program: Block) -> Split | None:
    """How the pieces of a kernel's outermost loop may run side by side; None if they may not, or need not.

    What appends without reducing anything is bound by memory, and to join its pieces moves all of that once more.
    """
    result, init = program.bodies[0].tensor, program.bodies[0].init  # type: ignore[attr-defined]
    body = program.bodies[1]
    if not isinstance(body, Loop):
        return None
    writes = [term for term in postorder(body) if isinstance(term, Assign) and term.lhs.tensor is result]
    ftype = result.type
    if not writes or any(isinstance(level, SparseByteMap) for level in ftype.levels):
        return None
    if all(write.lhs.idxs and write.lhs.idxs[0] is body.index for write in writes):
        indices = {term.index for term in postorder(body) if isinstance(term, Loop)}
        appends = any(level.appends for level in ftype.levels)
        return None if appends and len(indices) <= ftype.ndim else Split(None)
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
    size = execution.operand_size()
    if size * weight_of(execution.source.program) < LARGE:
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
    """Pieces that append. Each thread appends its pieces to arrays of its own, from which they are put in order."""

    def __init__(self, execution: Execution, kernel: Kernel, cuts: list[int], threads: int, shared: Part) -> None:
        self.execution, self.kernel, self.cuts = execution, kernel, cuts
        self.levels = execution.ftype.levels
        self.first = next(number for number, level in enumerate(self.levels) if level.appends)
        slots = sum(level.modes for level in self.levels[: self.first])
        self.rows = math.prod(execution.shape[1:slots])  # positions above the lists, a coordinate of the loop
        self.threads, self.pieces = threads, len(cuts) - 1
        self.parts: list[Part | None] = [shared, *[None] * (threads - 1)]
        self.pointer = shared.buffers[self.first][0]
        self.owners = [0] * self.pieces
        self.begins = np.zeros((self.pieces, len(self.levels)), np.int64)  # entries of the thread's before the piece
        self.ends = np.zeros((self.pieces, len(self.levels)), np.int64)

    def run(self) -> Tensor:
        """Run all pieces, then join them level by level."""
        run_pieces(self.pieces, self.threads, self.work)
        made: list[list[Array]] = []
        # where the pieces' positions are among their thread's, and how many they are, above the level at hand
        begins = np.zeros(self.pieces, np.int64)
        counts = np.diff(self.cuts) * self.rows
        for number, level in enumerate(self.levels):
            if level.appends:
                own = self.ends[:, number] - self.begins[:, number]
                starts = np.concatenate([[0], np.cumsum(own)])
                self.execution.check_room(number, int(starts[-1]))
                ptr = self.pointers(number, begins, counts, starts)
                begins, counts = self.begins[:, number], own
                made.append([ptr, *self.joined(number, begins, counts)])
            elif number < self.first or not level.buffer_names:
                if number > self.first and level.modes:
                    dim = self.execution.shape[sum(above.modes for above in self.levels[:number])]
                    begins, counts = begins * dim, counts * dim
                made.append([])
            else:
                made.append(self.joined(number, begins, counts))
        return self.execution.tensor(made)

    def work(self, piece: int, thread: int) -> None:
        """Run one piece."""
        part = self.parts[thread]
        if part is None:
            part = self.parts[thread] = self.execution.part(None)
            if self.first > 0:
                part.buffers[self.first][0] = self.pointer
        self.owners[piece] = thread
        self.begins[piece] = part.state[::2]
        self.execution.advance(self.kernel, part, self.cuts[piece], self.cuts[piece + 1])
        self.ends[piece] = part.state[::2]

    def pointers(self, number: int, begins: Array, counts: Array, starts: Array) -> Array:
        """The pointers of a level: the pieces', each moved on to where it is put."""
        counted = number in self.execution.source.counted
        moves = starts[:-1] - self.begins[:, number]
        if number == self.first and number > 0:
            ptr = self.pointer
            if counted:
                np.cumsum(ptr, out=ptr)
                return ptr
            for piece in range(self.pieces):
                if moves[piece]:
                    low, high = self.cuts[piece] * self.rows, self.cuts[piece + 1] * self.rows
                    ptr[low + 1 : high + 1] += ptr.dtype.type(moves[piece])
            return ptr
        dtype = self.levels[number].buffer_dtypes[0]
        if number == 0:
            return np.array([0, starts[-1]], dtype)
        ptr = np.zeros(int(counts.sum()) + 1, dtype)
        at = 1
        for piece, owner in enumerate(self.owners):
            part = self.parts[owner]
            assert part is not None
            begin, count = int(begins[piece]), int(counts[piece])
            own = part.buffers[number][0][begin + 1 : begin + count + 1]
            ptr[at : at + count] = own if counted else own + own.dtype.type(moves[piece])
            at += count
        return np.cumsum(ptr, dtype=dtype) if counted else ptr

    def joined(self, number: int, begins: Array, counts: Array) -> list[Array]:
        """The arrays of a level but its pointers, the pieces' one behind the other."""
        whole = self.parts[0]
        assert whole is not None
        made = []
        for place in range(1 if self.levels[number].appends else 0, len(whole.buffers[number])):
            if not any(self.owners):  # one thread did it all, in order
                made.append(whole.buffers[number][place])
                made[-1].resize(int(counts.sum()), refcheck=False)
                continue
            pieces = []
            for owner, begin, count in zip(self.owners, begins.tolist(), counts.tolist(), strict=True):
                part = self.parts[owner]
                assert part is not None
                pieces.append(part.buffers[number][place][begin : begin + count])
            made.append(np.concatenate(pieces))
            del pieces
            for part in self.parts:
                if part is not None:
                    part.buffers[number][place] = made[-1][:0]  # its memory is free for the next one
        return made
