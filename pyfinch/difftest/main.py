"""``python -m pyfinch difftest``."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from pyfinch.algebra.errors import PyFinchError
from pyfinch.difftest.case import Case
from pyfinch.difftest.config import CAMPAIGN, SMALL
from pyfinch.difftest.generate import random_case
from pyfinch.difftest.recordings import read, record, replay
from pyfinch.difftest.report import julia_code, python_test
from pyfinch.difftest.run import Mismatch, Pair, compare_passes, pairs, run
from pyfinch.difftest.shrink import shrink

__all__ = ["add_arguments", "main"]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command's options."""
    parser.add_argument(
        "--pairs",
        default="numba,reference",
        help="what to run programs on, scheduler:executor with commas between; 'numba' is 'default:numba', 'compute' "
        "is Finch.jl's own compute (default: numba,reference)",
    )
    parser.add_argument("--programs", type=int, default=100, help="how many (default: 100)")
    parser.add_argument("--seed", type=int, default=0, help="of the first program; the next have the next seeds")
    parser.add_argument("--config", choices=["small", "campaign"], default="small", help="what programs are made of")
    parser.add_argument("--passes", action="store_true", help="compare each pass with Finch.jl's too")
    parser.add_argument("--shrink", action="store_true", help="make what fails as small as it goes")
    parser.add_argument("--report", type=Path, metavar="DIR", help="write what fails as Python tests and Julia scripts")
    parser.add_argument("--record", type=Path, metavar="FILE", help="write what Finch.jl answers, and compare nothing")
    parser.add_argument("--replay", type=Path, metavar="FILE", help="compare with what Finch.jl answered")


def main(chosen: argparse.Namespace) -> int:
    """Run; the exit code is 1 if something disagrees, 2 if it cannot be run."""
    try:
        if chosen.replay is not None:
            return _replay(chosen.replay)
        if chosen.programs < 1:
            raise PyFinchError(f"--programs must be at least 1, got {chosen.programs}")
        config = CAMPAIGN if chosen.config == "campaign" else SMALL
        cases = (random_case(seed, config) for seed in range(chosen.seed, chosen.seed + chosen.programs))
        if chosen.record is not None:
            print(f"{record(cases, chosen.record)} cases in {chosen.record}")
            return 0
        return _compare(cases, pairs(chosen.pairs), chosen)
    except (PyFinchError, OSError) as error:
        print(f"difftest: {error}", file=sys.stderr)
        return 2


def _replay(path: Path) -> int:
    cases = read(path)
    differing = list(replay(cases))
    for name, text in differing:
        print(f"{name}: {text}")
    print(f"{len(cases)} recorded programs, {len(differing)} differences")
    return int(bool(differing))


def _compare(cases: Iterable[Case], on: list[Pair], chosen: Any) -> int:
    failed = known = 0
    count = 0
    for count, case in enumerate(cases, 1):
        outcome = run(case, on)
        found = outcome.mismatches + (compare_passes(case) if chosen.passes else [])
        known += len(outcome.known)
        if found:
            failed += 1
            _tell(case, found, on, chosen)
        if sys.stderr.isatty():
            print(f"\r{count} of {chosen.programs} programs, {failed} disagree", end="", file=sys.stderr, flush=True)
    if sys.stderr.isatty():
        print(file=sys.stderr)
    names = ", ".join(":".join(one) for one in on)
    print(f"{count} programs on {names}: {failed} disagree, {known} intended differences")
    return int(bool(failed))


def _tell(case: Case, found: list[Mismatch], on: list[Pair], chosen: Any) -> None:
    kinds = {(mismatch.pair, mismatch.kind) for mismatch in found}

    def fails(smaller: Case) -> bool:
        return any((m.pair, m.kind) in kinds for m in run(smaller, on).mismatches)

    small = shrink(case, fails, attempts=300) if chosen.shrink and fails(case) else case
    print(f"{case.name}: {small.program}")
    for mismatch in found:
        print(f"  {':'.join(mismatch.pair)}: {mismatch.kind}: {mismatch.text}")
    if chosen.report is not None:
        chosen.report.mkdir(parents=True, exist_ok=True)
        stem = chosen.report / ("test_" + case.name.replace(" ", "_"))
        stem.with_suffix(".py").write_text(python_test(small, on))
        stem.with_suffix(".jl").write_text(julia_code(small))
