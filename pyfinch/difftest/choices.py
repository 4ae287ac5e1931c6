"""Where random choices come from."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Protocol, TypeVar

__all__ = ["Draw", "Seeded"]

T = TypeVar("T")


class Draw(Protocol):
    """Where choices come from: a seeded generator, or Hypothesis."""

    def choice(self, items: Sequence[T]) -> T:
        """One of the items."""

    def integer(self, low: int, high: int) -> int:
        """An integer, both ends included."""


class Seeded:
    """Choices by a seed; equal on every machine."""

    def __init__(self, seed: int | random.Random) -> None:
        self.random = seed if isinstance(seed, random.Random) else random.Random(seed)

    def choice(self, items: Sequence[T]) -> T:
        """One of the items."""
        return items[self.random.randrange(len(items))]

    def integer(self, low: int, high: int) -> int:
        """An integer, both ends included."""
        return self.random.randint(low, high)
