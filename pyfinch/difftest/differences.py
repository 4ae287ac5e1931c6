"""The intended differences: where an executor is known to give something else, why, and how to see it in Julia."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pyfinch.difftest.generate import Case
    from pyfinch.difftest.run import Mismatch

__all__ = ["DIFFERENCES", "Difference", "known"]


@dataclass(frozen=True)
class Difference:
    """One intended difference.

    ``applies`` says whether it explains a mismatch of a case; ``julia`` is a script for Finch.jl alone that shows it,
    or "" where the choice is ours.
    """

    name: str
    reason: str
    applies: Callable[[Case, Mismatch], bool]
    julia: str = ""


DIFFERENCES: Final[tuple[Difference, ...]] = ()


def known(case: Case, mismatch: Mismatch) -> str | None:
    """The name of the difference that explains a mismatch; None if there is none."""
    return next((one.name for one in DIFFERENCES if one.applies(case, mismatch)), None)
