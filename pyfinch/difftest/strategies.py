"""The random programs as Hypothesis strategies, so that failures shrink. Needs hypothesis, which pyfinch does not."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from hypothesis import strategies as st

from pyfinch.difftest.case import Case
from pyfinch.difftest.config import SMALL, Config
from pyfinch.difftest.generate import draw_case

__all__ = ["cases"]

T = TypeVar("T")


class _Drawn:
    def __init__(self, draw: st.DrawFn) -> None:
        self.draw = draw

    def choice(self, items: Sequence[T]) -> T:
        """One of the items; the first is the simplest."""
        return items[self.draw(st.integers(0, len(items) - 1))]

    def integer(self, low: int, high: int) -> int:
        """An integer, both ends included."""
        return self.draw(st.integers(low, high))


def cases(config: Config = SMALL) -> st.SearchStrategy[Case]:
    """Cases of a configuration."""

    @st.composite
    def made(draw: st.DrawFn) -> Case:
        return draw_case(_Drawn(draw), config)

    return made()
