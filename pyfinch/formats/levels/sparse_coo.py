"""The coordinate level: n modes at once, entries sorted lexicographically."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from pyfinch.algebra.dtypes import DT
from pyfinch.algebra.errors import FormatError
from pyfinch.formats.levels.base import Buffer, LevelCode, bounds, check_fibers, check_index_dtype
from pyfinch.formats.levels.sparse_list import index_text
from pyfinch.looplets import Emitter, Fiber, Spike, Stepper

__all__ = ["SparseCOO"]


@dataclass(frozen=True, slots=True)
class SparseCOO(LevelCode):
    """The entries of fiber pos are ptr[pos]:ptr[pos + 1] of n coordinate arrays; child position = entry."""

    n: int
    ptr: DT | None = None
    idx: DT | None = None

    def __post_init__(self) -> None:
        if self.n < 1:
            raise FormatError(f"sparse_coo[n] needs n >= 1, got {self.n}")
        check_index_dtype(self.ptr, "sparse_coo: ptr")
        check_index_dtype(self.idx, "sparse_coo: idx")

    @property
    def modes(self) -> int:
        return self.n

    @property
    def appends(self) -> bool:
        return True

    @property
    def buffer_names(self) -> tuple[str, ...]:
        return ("ptr", *(f"idx{k}" for k in range(self.n)))

    @property
    def buffer_dtypes(self) -> tuple[DT | None, ...]:
        return (self.ptr, *(self.idx,) * self.n)

    def text(self, child: str = "") -> str:
        """Format text."""
        return f"sparse_coo[{self.n}]({index_text(child, self.ptr, self.idx)})"

    def validate(self, buffers: tuple[Buffer, ...], dims: tuple[int, ...], npos: int, where: str) -> int:
        """Check ptr and the coordinates; see `Level.validate`."""
        ptr, *idxs = buffers
        check_fibers(ptr, tuple(idxs), dims, npos, where)
        return len(idxs[0])

    def _range(self, fiber: Fiber, out: Emitter) -> tuple[str, str]:
        """The entries that agree with the coordinates bound so far."""
        if fiber.inner_slot == 0:
            return bounds(fiber, out)
        if fiber.present is None:
            return out.let("p", fiber.pos), out.let("p_end", fiber.end)
        return tuple(out.let(h, f"{t} if {fiber.present} else 0") for h, t in (("p", fiber.pos), ("p_end", fiber.end)))  # type: ignore[return-value]

    def unfurl(self, fiber: Fiber, out: Emitter) -> Stepper:
        """One spike a group of entries of equal coordinate; at the last slot one an entry."""
        start, stop = self._range(fiber, out)
        idx = fiber.buffer(f"idx{fiber.inner_slot}_")
        if fiber.inner_slot == self.n - 1:
            return Stepper(start, stop, idx, Spike(lambda p, end, i: fiber.down(p)))
        return Stepper(start, stop, idx, Spike(lambda p, end, i: fiber.across(p, end)), grouped=True)

    def find(self, fiber: Fiber, coordinate: str, out: Emitter) -> Fiber:
        """The entries at a coordinate, by bisection; absent if there are none."""
        start, stop = self._range(fiber, out)
        idx = fiber.buffer(f"idx{fiber.inner_slot}_")
        p = out.let("p", f"lower_bound({idx}, {start}, {stop}, {coordinate})")
        end = out.let("p_end", f"lower_bound({idx}, {p}, {stop}, {coordinate} + 1)")
        present = out.let("present", f"{p} < {end}")
        if fiber.inner_slot == self.n - 1:
            return fiber.down(p, present)
        return fiber.across(p, end, present)

    def append(self, buffer: Callable[[str], str], at: str, coords: tuple[str, ...]) -> tuple[str, ...]:
        """The statements that store the coordinates of entry ``at``."""
        return tuple(f"{buffer(f'idx{k}_')}[uintp({at})] = {coord}" for k, coord in enumerate(coords))
