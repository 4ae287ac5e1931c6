"""The intended differences: where an executor is known to give something else, why, and how to see it in Julia."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pyfinch.difftest.case import Case
from pyfinch.difftest.liberties import explains

if TYPE_CHECKING:
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


def _by(liberty: str) -> Callable[[Case, Mismatch], bool]:
    def applies(case: Case, mismatch: Mismatch) -> bool:
        return mismatch.kind == "value" and explains(case, mismatch.result, mismatch.got, liberty)

    return applies


DIFFERENCES: Final = (
    Difference(
        "rounding", "sums are ordered as the loops are, and elementary functions are other ones", _by("rounding")
    ),
    Difference("zero signs", "what is not stored is 0.0, also where NumPy computes -0.0", _by("zero signs")),
    Difference("annihilators", "0 * x is 0 whatever x is: what is not stored is not computed", _by("annihilators")),
    Difference("several liberties", "of the above, more than one", _by("all")),
)


def known(case: Case, mismatch: Mismatch) -> str | None:
    """The name of the difference that explains a mismatch; None if there is none."""
    return next((one.name for one in DIFFERENCES if one.applies(case, mismatch)), None)
