"""The looplet types, and the little that a level needs to know to make one.

A fiber, asked how it reads along the next index, answers with a looplet. Expressions are Python text; whatever
backend asked turns the text into its target (Ahrens, Collin, Patel, Deeds, Hong, Amarasinghe, "Looplets: A Language
for Structured Coiteration", CGO 2023).
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import Protocol

__all__ = ["Emitter", "Fiber", "Lookup", "Looplet", "Spike", "Stepper"]


class Emitter(Protocol):
    """What a level may ask of the code generator."""

    def let(self, hint: str, expr: str) -> str:
        """Bind a fresh name to the expression and return the name."""

    def line(self, text: str) -> None:
        """Append a statement."""

    def block(self, header: str) -> AbstractContextManager[None]:
        """Open a compound statement; what is emitted inside is its body."""


@dataclass(frozen=True, slots=True)
class Fiber:
    """A place in a tensor's tree: everything below ``pos`` of storage slot ``slot``.

    ``dims`` holds the names of the extents, one a storage slot. Within a level of several slots ``pos`` and ``end``
    are the range of the entries that agree with the coordinates bound so far. Where ``present`` is not None it
    names a boolean: if False the whole fiber reads as fill; ``pos`` is then only in bounds if ``readable``.
    """

    tensor: str
    dims: tuple[str, ...]
    level: int
    slot: int
    pos: str
    end: str = ""
    present: str | None = None
    inner_slot: int = 0
    readable: bool = False

    def buffer(self, name: str) -> str:
        """The name of this level's buffer."""
        return f"{self.tensor}_{name}{self.level}"

    @property
    def dim(self) -> str:
        """The extent of the slot that is bound next."""
        return self.dims[self.slot]

    def down(self, pos: str, present: str | None = None) -> Fiber:
        """The fiber one level below, at a position there."""
        return replace(
            self,
            level=self.level + 1,
            slot=self.slot + 1,
            pos=pos,
            end="",
            present=present,
            inner_slot=0,
            readable=False,
        )

    def across(self, pos: str, end: str, present: str | None = None) -> Fiber:
        """The next slot of the same level, over a range of its entries."""
        return replace(self, slot=self.slot + 1, pos=pos, end=end, present=present, inner_slot=self.inner_slot + 1)


@dataclass(frozen=True, slots=True)
class Lookup:
    """Any coordinate at constant cost: ``body(i)`` is the fiber there."""

    body: Callable[[str], Fiber]


@dataclass(frozen=True, slots=True)
class Spike:
    """Fill everywhere but at one coordinate, where ``tail(p, end, coordinate)`` stands for entries ``p`` to ``end``."""

    tail: Callable[[str, str, str], Fiber]


@dataclass(frozen=True, slots=True)
class Stepper:
    """Spikes one after another, in order of coordinate, and fill after the last.

    Entries ``start`` up to ``stop`` are visited; the array named ``indices`` holds their coordinates. Where
    ``grouped``, neighbouring entries share a coordinate and make one spike. Where ``table`` is given it names an
    array that says of each coordinate whether there is an entry; the entries are in no order then.
    """

    start: str
    stop: str
    indices: str
    body: Spike
    grouped: bool = False
    table: str | None = None

    def coordinate(self, p: str) -> str:
        """The coordinate of entry ``p``."""
        return f"int64({self.indices}[uintp({p})])"


Looplet = Lookup | Stepper
