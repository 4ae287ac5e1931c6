"""``python -m pyfinch difftest``."""

from __future__ import annotations

import argparse
import multiprocessing
import sys
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from pyfinch.algebra.errors import PyFinchError
from pyfinch.backends.base import get_backend
from pyfinch.difftest.case import Case
from pyfinch.difftest.config import CAMPAIGN, SMALL, Config
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
        default="auto:numba,numba,reference",
        help="what to run programs on, scheduler:executor with commas between; 'numba' is 'default:numba', 'compute' "
        "is Finch.jl's own compute (default: auto:numba,numba,reference)",
    )
    parser.add_argument("--programs", type=int, default=100, help="how many (default: 100)")
    parser.add_argument("--seed", type=int, default=0, help="of the first program; the next have the next seeds")
    parser.add_argument("--config", choices=["small", "campaign"], default="small", help="what programs are made of")
    parser.add_argument("--passes", action="store_true", help="compare each pass with Finch.jl's too")
    parser.add_argument("--shrink", action="store_true", help="make what fails as small as it goes")
    parser.add_argument("--report", type=Path, metavar="DIR", help="write what fails as Python tests and Julia scripts")
    parser.add_argument("--workers", type=int, default=1, metavar="N", help="in how many processes (default: 1)")
    parser.add_argument("--record", type=Path, metavar="FILE", help="write what Finch.jl answers, and compare nothing")
    parser.add_argument("--replay", type=Path, metavar="FILE", help="run the pairs on what Finch.jl answered")


def main(chosen: argparse.Namespace) -> int:
    """Run; the exit code is 1 if something disagrees, 2 if it cannot be run."""
    try:
        for option in ("programs", "workers"):
            if getattr(chosen, option) < 1:
                raise PyFinchError(f"--{option} must be at least 1, got {getattr(chosen, option)}")
        config = CAMPAIGN if chosen.config == "campaign" else SMALL
        seeds = range(chosen.seed, chosen.seed + chosen.programs)
        if chosen.record is not None:
            print(f"{record((random_case(seed, config) for seed in seeds), chosen.record)} cases in {chosen.record}")
            return 0
        on = pairs(chosen.pairs)
        if not on:
            raise PyFinchError(f"--pairs names no pair, got {chosen.pairs!r}; write for example numba,unfused:numba")
        if chosen.passes:
            get_backend("finchjl")
        if chosen.replay is not None:
            return _replay(chosen.replay, on)
        return _compare(seeds, config, on, chosen)
    except (PyFinchError, OSError) as error:
        print(f"difftest: {error}", file=sys.stderr)
        return 2


def _replay(path: Path, on: list[Pair]) -> int:
    cases = read(path)
    differing = list(replay(cases, on))
    for name, text in differing:
        print(f"{name}: {text}")
    print(f"{len(cases)} recorded programs on {_names(on)}, {len(differing)} differences")
    return int(bool(differing))


@dataclass(frozen=True)
class _Checked:
    """What one seed showed."""

    seed: int
    found: list[Mismatch]
    known: list[str]


def _check(seed: int, config: Config, on: list[Pair], with_passes: bool) -> _Checked:
    case = random_case(seed, config)
    outcome = run(case, on)
    found = outcome.mismatches + (compare_passes(case) if with_passes else [])
    return _Checked(seed, found, [reason for _, reason in outcome.known])


def _compare(seeds: range, config: Config, on: list[Pair], chosen: argparse.Namespace) -> int:
    check = partial(_check, config=config, on=on, with_passes=chosen.passes)
    failed = 0
    known: Counter[str] = Counter()
    for count, one in enumerate(_checked(check, seeds, chosen.workers), 1):
        known.update(one.known)
        if one.found:
            failed += 1
            _tell(random_case(one.seed, config), one.found, on, chosen)
        if sys.stderr.isatty():
            print(f"\r{count} of {len(seeds)} programs, {failed} disagree", end="", file=sys.stderr, flush=True)
    if sys.stderr.isatty():
        print(file=sys.stderr)
    reasons = ", ".join(f"{number} by {reason}" for reason, number in sorted(known.items())) or "none"
    print(f"{len(seeds)} programs on {_names(on)}: {failed} disagree; intended differences: {reasons}")
    return int(bool(failed))


def _checked(check: partial[_Checked], seeds: range, workers: int) -> Iterator[_Checked]:
    if workers == 1:
        yield from map(check, seeds)
        return
    with ProcessPoolExecutor(workers, multiprocessing.get_context("spawn")) as pool:
        yield from pool.map(check, seeds, chunksize=max(1, min(20, len(seeds) // (4 * workers))))


def _names(on: list[Pair]) -> str:
    return ", ".join(":".join(one) for one in on)


def _tell(case: Case, found: list[Mismatch], on: list[Pair], chosen: argparse.Namespace) -> None:
    kinds = {_kind(mismatch) for mismatch in found}

    def fails(smaller: Case) -> bool:
        again = run(smaller, on).mismatches + (compare_passes(smaller) if chosen.passes else [])
        return any(_kind(mismatch) in kinds for mismatch in again)

    small = shrink(case, fails, attempts=500) if chosen.shrink else case
    print(f"{case.name}: {small.program}")
    for mismatch in found:
        print(f"  {':'.join(mismatch.pair)}: {mismatch.kind}: {mismatch.text}")
    if chosen.report is not None:
        chosen.report.mkdir(parents=True, exist_ok=True)
        stem = chosen.report / ("test_" + case.name.replace(" ", "_"))
        stem.with_suffix(".py").write_text(python_test(small, on))
        stem.with_suffix(".jl").write_text(julia_code(small))


def _kind(mismatch: Mismatch) -> tuple[Pair, str, str]:
    """What makes two mismatches the same defect; of an error, its class."""
    return mismatch.pair, mismatch.kind, mismatch.text.partition(":")[0] if mismatch.kind == "error" else ""
