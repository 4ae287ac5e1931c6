"""Measuring: interleaved rounds of pyfinch and its peers on the same input, medians and their spread."""

from __future__ import annotations

import gc
import random
import signal
import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from benchmarks.agreement import agree

Call = Callable[[], Any]
OURS = "pyfinch"


@dataclass(frozen=True)
class Bound:
    """What is wanted: pyfinch's time at most ``limit`` times that of the fastest of some peers."""

    limit: float
    peers: tuple[str, ...]

    def text(self) -> str:
        """As in ``≤ 1.05 × min(scipy, hand)``."""
        names = self.peers[0] if len(self.peers) == 1 else f"min({', '.join(self.peers)})"
        return f"≤ {self.limit:g} × {names}"


def at_most(limit: float, *peers: str) -> Bound:
    """A bound, as a workload states it."""
    return Bound(limit, peers)


@dataclass(frozen=True)
class Timing:
    """Median seconds of a call, and its quartiles over the median."""

    median: float
    low: float
    high: float
    rounds: int


@dataclass(frozen=True)
class Row:
    """One case: a timing for each peer that ran, and a reason for each that failed."""

    workload: str
    case: str
    timings: Mapping[str, Timing]
    failures: Mapping[str, str] = field(default_factory=dict)
    wanted: tuple[Bound, ...] = ()

    def ratios(self) -> dict[str, float]:
        """Pyfinch's time over each peer's."""
        ours = self.timings.get(OURS)
        if ours is None:
            return {}
        return {name: ours.median / timing.median for name, timing in self.timings.items() if name != OURS}

    def against(self, bound: Bound) -> float | None:
        """Pyfinch's time over that of the fastest peer of a bound; None if any was not timed."""
        ratios = self.ratios()
        known = [ratios[name] for name in bound.peers if name in ratios]
        return max(known) if known else None


@dataclass(frozen=True)
class Figure:
    """One number that is no comparison of calls, such as the time of an import."""

    workload: str
    case: str
    value: float
    unit: str
    limit: float | None = None
    at_least: bool = False
    note: str = ""

    def met(self) -> bool | None:
        """Whether the number is as wanted."""
        if self.limit is None:
            return None
        return self.value >= self.limit if self.at_least else self.value <= self.limit


@dataclass(frozen=True)
class Failure:
    """A part of a workload that did not run at all."""

    workload: str
    case: str
    reason: str


Record = Row | Figure | Failure


class SlowError(Exception):
    """A call took longer than it may."""


@contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Interrupt Python code that runs longer; compiled code is interrupted when it returns."""

    def interrupt(*_: Any) -> None:
        raise SlowError(f"longer than {seconds:g} s")

    before = signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def clock(call: Call, number: int = 1) -> float:
    """Seconds of one of ``number`` calls in a row; a single result is freed outside the time."""
    if number == 1:
        start = time.perf_counter()
        result = call()
        taken = time.perf_counter() - start
        del result
        return taken
    start = time.perf_counter()
    for _ in range(number):
        call()
    return (time.perf_counter() - start) / number


def reason(error: BaseException) -> str:
    """An error in one line."""
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text[:160]}" if text else type(error).__name__


@dataclass(frozen=True)
class Bench:
    """How thoroughly to measure: small inputs or all, and how many seconds a case may take."""

    quick: bool = False
    large: bool = False
    budget: float = 1.0
    limit: float = 60.0

    def measure(
        self,
        workload: str,
        case: str,
        calls: Mapping[str, Call | None],
        *,
        wanted: Sequence[Bound] = (),
        views: Mapping[str, Callable[[Any], Any]] | None = None,
        tolerance: float = 1e-9,
    ) -> Row:
        """Check each peer's result against pyfinch's, then time the calls, interleaved.

        Parameters
        ----------
        calls : dict
            By peer; None for a peer that is absent.
        views : dict, optional
            Functions from a peer's result to what is compared, where that is not the result itself.
        tolerance : float
            The largest difference of elements that counts as equal, relative to the largest element.
        """
        present = {name: call for name, call in calls.items() if call is not None}
        failures = self._check(present, views or {}, tolerance)
        alive = {name: call for name, call in present.items() if name not in failures}
        return Row(workload, case, self.rounds(alive), failures, tuple(wanted))

    def _check(
        self, calls: Mapping[str, Call], views: Mapping[str, Callable[[Any], Any]], tolerance: float
    ) -> dict[str, str]:
        failures: dict[str, str] = {}
        ours = None
        for name, call in calls.items():
            try:
                with time_limit(self.limit):
                    result = call()
                    result = views[name](result) if name in views else result
                if name == OURS:
                    ours = result
                elif OURS not in failures and not agree(ours, result, tolerance):
                    failures[name] = "WRONG: the result differs from pyfinch's"
            except Exception as error:
                failures[name] = f"failed: {reason(error)}"
        return failures

    def rounds(self, calls: Mapping[str, Call]) -> dict[str, Timing]:
        """Time calls in turn, round after round; how often, and how many calls a time, follows from a first timing."""
        first = {name: min(clock(call), clock(call)) for name, call in calls.items()}
        number = {name: max(1, int(5e-4 / max(taken, 1e-7))) for name, taken in first.items()}
        share = self.budget / max(sum(first[name] * number[name] for name in calls), 1e-9)
        most = {name: 3 if first[name] > 1.0 else max(7, min(25, int(share))) for name in calls}
        times: dict[str, list[float]] = {name: [] for name in calls}
        shuffle = random.Random(0)
        gc.collect()
        gc.disable()
        try:
            for turn in range(max(most.values(), default=0)):
                # Who follows whom changes: peers share buffers, and find them in the cache.
                for name in shuffle.sample(sorted(calls), len(calls)):
                    if turn < most[name]:
                        times[name].append(clock(calls[name], number[name]))
        finally:
            gc.enable()
        return {name: timing(values) for name, values in times.items()}


def timing(values: Sequence[float]) -> Timing:
    """Median and quartiles."""
    ordered = sorted(values)
    middle = statistics.median(ordered)
    low, high = ordered[len(ordered) // 4], ordered[(3 * len(ordered)) // 4]
    return Timing(middle, low / middle, high / middle, len(ordered))
