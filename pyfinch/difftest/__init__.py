"""Differential testing: random programs on any schedulers and executors, Finch.jl among them, all compared."""

from __future__ import annotations

from pyfinch.difftest.case import Case, case_of
from pyfinch.difftest.config import CAMPAIGN, SMALL, Config
from pyfinch.difftest.generate import random_case
from pyfinch.difftest.run import Mismatch, Outcome, compare_passes, pair, run

__all__ = [
    "CAMPAIGN",
    "SMALL",
    "Case",
    "Config",
    "Mismatch",
    "Outcome",
    "case_of",
    "compare_passes",
    "pair",
    "random_case",
    "run",
]
