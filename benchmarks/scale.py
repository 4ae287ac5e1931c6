"""The cost of a stored entry, from ten thousand of them to ten million (a hundred million with ``--large``)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

import pyfinch as pf
from benchmarks.harness import OURS, Bench, Figure, Record, Row
from benchmarks.inputs import uniform

PER_ROW, WIDTH = 10, 8


def run(bench: Bench) -> Iterator[Record]:
    """Measure."""
    costs = []

    def case(workload: str, count: int, entries: int, calls: dict[str, Any]) -> Row:
        row = bench.measure(f"{workload}, by size", f"{count:.0e} entries", calls)
        cost = {peer: 1e9 * timing.median / entries for peer, timing in row.timings.items()}
        if OURS in cost:
            note = ", ".join(f"{peer} {value:.3g}" for peer, value in cost.items() if peer != OURS)
            costs.append(Figure("scale", f"{workload}, {count:.0e} entries", cost[OURS], "ns an entry", note=note))
        return row

    for power in range(4, 9 if bench.large else 7 if bench.quick else 8):
        a = uniform(10**power // PER_ROW, PER_ROW)
        b = uniform(10**power // PER_ROW, PER_ROW, seed=1)
        rng = np.random.default_rng(1)
        x, wide = rng.random(a.shape[1]), rng.random((a.shape[1], WIDTH))
        fa, fb, fx, fw = map(pf.asarray, (a, b, x, wide))
        count = 10**power
        calls = {"pyfinch": lambda fa=fa, fb=fb: fa + fb, "scipy": lambda a=a, b=b: a + b}
        yield case("A + B", count, a.nnz + b.nnz, calls)
        calls = {"pyfinch": lambda fa=fa, fx=fx: fa @ fx, "scipy": lambda a=a, x=x: a @ x}
        yield case("SpMV", count, a.nnz, calls)
        calls = {"pyfinch": lambda fa=fa, fw=fw: fa @ fw, "scipy": lambda a=a, wide=wide: a @ wide}
        yield case(f"SpMM {WIDTH}", count, a.nnz, calls)
    yield from sorted(costs, key=lambda figure: figure.case.split(",")[0])
