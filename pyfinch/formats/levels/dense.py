"""The dense level: every slice is stored."""

from __future__ import annotations

from dataclasses import dataclass

from pyfinch.algebra.dtypes import DT
from pyfinch.formats.levels.base import Buffer, LevelCode
from pyfinch.looplets import Emitter, Fiber, Lookup

__all__ = ["Dense"]


@dataclass(frozen=True, slots=True)
class Dense(LevelCode):
    """Child position = pos * dim + i."""

    @property
    def modes(self) -> int:
        return 1

    @property
    def appends(self) -> bool:
        return False

    @property
    def buffer_names(self) -> tuple[str, ...]:
        return ()

    @property
    def buffer_dtypes(self) -> tuple[DT | None, ...]:
        return ()

    def text(self, child: str = "") -> str:
        """Format text."""
        return f"dense({child})"

    def validate(self, buffers: tuple[Buffer, ...], dims: tuple[int, ...], npos: int, where: str) -> int:
        """Nothing can be wrong here; see `Level.validate`."""
        return npos * dims[0]

    def unfurl(self, fiber: Fiber, out: Emitter) -> Lookup:
        """Any coordinate is at hand."""
        return Lookup(lambda i: self.find(fiber, i, out))

    def find(self, fiber: Fiber, coordinate: str, out: Emitter) -> Fiber:
        """The slice at a coordinate."""
        at = coordinate if fiber.pos == "0" else f"{fiber.pos} * {fiber.dim} + {coordinate}"
        return fiber.down(out.let("p", at), fiber.present)
