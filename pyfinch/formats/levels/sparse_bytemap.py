"""The byte-map level: a byte a slice says whether it is stored, beside the sorted list of those that are."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pyfinch.algebra.dtypes import DT
from pyfinch.algebra.errors import FormatError
from pyfinch.formats.levels.base import Buffer, LevelCode, bounds, check_fibers, check_index_dtype, check_length
from pyfinch.formats.levels.sparse_list import index_text
from pyfinch.looplets import Emitter, Fiber, Spike, Stepper

__all__ = ["SparseByteMap"]


@dataclass(frozen=True, slots=True)
class SparseByteMap(LevelCode):
    """Child position = pos * dim + i, stored where tbl is True; ptr and idx list those as in sparse_list."""

    ptr: DT | None = None
    idx: DT | None = None

    def __post_init__(self) -> None:
        check_index_dtype(self.ptr, "sparse_bytemap: ptr")
        check_index_dtype(self.idx, "sparse_bytemap: idx")

    @property
    def modes(self) -> int:
        return 1

    @property
    def appends(self) -> bool:
        return False

    @property
    def buffer_names(self) -> tuple[str, ...]:
        return ("ptr", "idx", "tbl")

    @property
    def buffer_dtypes(self) -> tuple[DT | None, ...]:
        return (self.ptr, self.idx, np.dtype(np.bool_))

    def text(self, child: str = "") -> str:
        """Format text."""
        return f"sparse_bytemap({index_text(child, self.ptr, self.idx)})"

    def validate(self, buffers: tuple[Buffer, ...], dims: tuple[int, ...], npos: int, where: str) -> int:
        """Check ptr, idx, and that tbl marks exactly what they list; see `Level.validate`."""
        ptr, idx, tbl = buffers
        check_fibers(ptr, (idx,), dims, npos, where)
        check_length(tbl, npos * dims[0], f"{where}: tbl")
        # A bool array made by a view may hold bytes other than 0 and 1.
        if tbl.size and tbl.view(np.uint8).max() > 1:
            raise FormatError(f"{where}: tbl holds bytes other than 0 and 1")
        place = np.repeat(np.arange(npos, dtype=np.int64), np.diff(ptr)) * dims[0] + idx
        unmarked = np.flatnonzero(~tbl[place])
        if len(unmarked):
            p = int(unmarked[0])
            raise FormatError(f"{where}: idx[{p}] = {idx[p]} is listed but tbl[{place[p]}] is False")
        if np.count_nonzero(tbl) != len(idx):
            marked = tbl.copy()
            marked[place] = False
            raise FormatError(f"{where}: tbl[{int(np.argmax(marked))}] is True but idx does not list it")
        return npos * dims[0]

    def unfurl(self, fiber: Fiber, out: Emitter) -> Stepper:
        """One spike a touched coordinate, in order."""
        start, stop = bounds(fiber, out)
        idx = fiber.buffer("idx")

        def tail(p: str, end: str, i: str) -> Fiber:
            return fiber.down(out.let("p", i if fiber.pos == "0" else f"{fiber.pos} * {fiber.dim} + {i}"))

        return Stepper(start, stop, idx, Spike(tail))

    def find(self, fiber: Fiber, coordinate: str, out: Emitter) -> Fiber:
        """The slice at a coordinate, absent unless the table marks it."""
        at = coordinate if fiber.pos == "0" else f"{fiber.pos} * {fiber.dim} + {coordinate}"
        p = out.let("p", at)
        marked = f"{fiber.buffer('tbl')}[uintp({p})]"
        present = marked if fiber.present is None else f"{fiber.present} and {marked}"
        return fiber.down(p, out.let("present", present))
