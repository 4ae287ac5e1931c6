"""The sparse-list level: each fiber is a sorted list of coordinates."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from pyfinch.algebra.dtypes import DT
from pyfinch.formats.levels.base import Buffer, LevelCode, bounds, check_fibers, check_index_dtype
from pyfinch.looplets import Emitter, Fiber, Spike, Stepper

__all__ = ["SparseList", "index_text"]


def index_text(child: str, ptr: DT | None, idx: DT | None) -> str:
    """The arguments of a level with ptr and idx arrays, in format text."""
    parts = [child] if child else []
    parts += [f"{name}={dtype.name}" for name, dtype in (("ptr", ptr), ("idx", idx)) if dtype is not None]
    return ", ".join(parts)


@dataclass(frozen=True, slots=True)
class SparseList(LevelCode):
    """The coordinates of fiber pos are idx[ptr[pos]:ptr[pos + 1]]; child position = place in idx."""

    ptr: DT | None = None
    idx: DT | None = None

    def __post_init__(self) -> None:
        check_index_dtype(self.ptr, "sparse_list: ptr")
        check_index_dtype(self.idx, "sparse_list: idx")

    @property
    def modes(self) -> int:
        return 1

    @property
    def appends(self) -> bool:
        return True

    @property
    def buffer_names(self) -> tuple[str, ...]:
        return ("ptr", "idx")

    @property
    def buffer_dtypes(self) -> tuple[DT | None, ...]:
        return (self.ptr, self.idx)

    def text(self, child: str = "") -> str:
        """Format text."""
        return f"sparse_list({index_text(child, self.ptr, self.idx)})"

    def validate(self, buffers: tuple[Buffer, ...], dims: tuple[int, ...], npos: int, where: str) -> int:
        """Check ptr and idx; see `Level.validate`."""
        ptr, idx = buffers
        check_fibers(ptr, (idx,), dims, npos, where)
        return len(idx)

    def unfurl(self, fiber: Fiber, out: Emitter) -> Stepper:
        """One spike an entry."""
        start, stop = bounds(fiber, out)
        return Stepper(start, stop, fiber.buffer("idx"), Spike(lambda p, end, i: fiber.down(p)))

    def find(self, fiber: Fiber, coordinate: str, out: Emitter) -> Fiber:
        """The entry at a coordinate, by bisection; absent if there is none."""
        start, stop = bounds(fiber, out)
        idx = fiber.buffer("idx")
        p = out.let("p", f"lower_bound({idx}, {start}, {stop}, {coordinate})")
        return fiber.down(p, out.let("present", f"{p} < {stop} and {idx}[uintp({p})] == {coordinate}"))

    def append(self, buffer: Callable[[str], str], at: str, coords: tuple[str, ...]) -> tuple[str, ...]:
        """The statements that store the coordinate of entry ``at``."""
        return (f"{buffer('idx')}[uintp({at})] = {coords[0]}",)
