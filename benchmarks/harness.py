"""Measuring: interleaved rounds of pyfinch and its peers on the same input, medians and their spread."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

Call = Callable[[], Any]


@dataclass(frozen=True)
class Row:
    """One measurement: medians in milliseconds, and the quartiles of pyfinch's time over the median."""

    workload: str
    case: str
    medians: Mapping[str, float]
    spread: tuple[float, float]
    bound: str = ""

    def ratios(self) -> dict[str, float]:
        """Pyfinch's time over each peer's."""
        ours = self.medians["pyfinch"]
        return {name: ours / time for name, time in self.medians.items() if name != "pyfinch"}

    def text(self) -> str:
        """A line of a Markdown table."""
        peers = ", ".join(f"{name} {value:.2f}" for name, value in self.ratios().items())
        low, high = self.spread
        return (
            f"| {self.workload} | {self.case} | {self.medians['pyfinch']:.3f} "
            f"| {low:.2f}–{high:.2f} | {peers} | {self.bound} |"
        )


HEADER = "| workload | input | pyfinch, ms | quartiles / median | ratio to | wanted |\n|---|---|---|---|---|---|"


def dense(result: Any) -> Any:
    """A result as a NumPy array."""
    if hasattr(result, "todense"):
        result = result.todense()
    return np.asarray(result)


def same(ours: Any, theirs: Any) -> bool:
    """Whether results agree, as sparse matrices where both are."""
    if hasattr(ours, "to_scipy") and hasattr(theirs, "tocsr") and getattr(ours, "ndim", 0) == 2:
        difference = abs(ours.to_scipy().tocsr() - theirs.tocsr())
        scale = max(abs(theirs).max(), 1e-300) if theirs.nnz else 1.0
        return bool(difference.nnz == 0 or difference.max() <= 1e-9 * scale)
    return bool(np.allclose(dense(ours), dense(theirs), rtol=1e-9))


def measure(
    workload: str, case: str, calls: Mapping[str, Call], *, rounds: int = 7, bound: str = "", check: bool = True
) -> Row:
    """Time the calls, interleaved; ``calls["pyfinch"]`` is compared with the others before its time counts.

    Raises
    ------
    AssertionError
        If a peer's result differs.
    """
    results = {name: call() for name, call in calls.items()}
    results = {name: call() for name, call in calls.items()}
    if check:
        for name, result in results.items():
            if name != "pyfinch" and not same(results["pyfinch"], result):
                raise AssertionError(f"{workload}, {case}: pyfinch's result differs from {name}'s")
    del results
    times: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(rounds):
        for name, call in calls.items():
            start = time.perf_counter()
            result = call()
            times[name].append((time.perf_counter() - start) * 1e3)
            del result
    ours = sorted(times["pyfinch"])
    middle = statistics.median(ours)
    spread = (ours[len(ours) // 4] / middle, ours[3 * len(ours) // 4] / middle)
    return Row(workload, case, {name: statistics.median(t) for name, t in times.items()}, spread, bound)
