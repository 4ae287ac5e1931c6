"""Run the suite: ``python -m benchmarks [--quick | --large] [workload …]``."""

from __future__ import annotations

import argparse
import os
import platform
import sys
import time
from collections.abc import Iterator
from importlib import import_module, metadata
from pathlib import Path
from typing import Any

from benchmarks import peers, report
from benchmarks.harness import OURS, Bench, Failure, Figure, Record, Row, reason

WORKLOADS = (
    "spmv",
    "spmm",
    "spgemm",
    "elementwise",
    "reductions",
    "sddmm",
    "graphs",
    "tensors",
    "dnn",
    "structured",
    "conversion",
    "overhead",
    "threads",
    "scale",
    "finchjl",
)
RESULTS = Path(__file__).parent / "results"


def about(bench: Bench) -> dict[str, Any]:
    """Where, and with which versions, this is measured."""
    versions = {}
    for package in ("numpy", "scipy", "numba", "sparse", "python-graphblas", "mkl", "torch", "finch-tensor"):
        try:
            versions[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    return {
        "machine": platform.machine(),
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "quick": bench.quick,
        "versions": versions,
    }


def records(name: str, bench: Bench) -> Iterator[Record]:
    """What a workload measures; where it breaks off, a failure."""
    try:
        yield from import_module(f"benchmarks.{name}").run(bench)
    except Exception as error:
        yield Failure(name, "the rest of the workload", reason(error))


def main() -> int:
    """Measure, print, and write ``benchmarks/results/latest.md``, ``.json`` and ``.svg``."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks")
    parser.add_argument("workloads", nargs="*", choices=[*WORKLOADS, []], help="all if none is given")
    parser.add_argument("--quick", action="store_true", help="small inputs")
    parser.add_argument("--large", action="store_true", help="also inputs that need several gigabytes")
    parser.add_argument("--output", type=Path, default=RESULTS / "latest", help="path without suffix")
    chosen = parser.parse_args()
    bench = Bench(quick=chosen.quick, large=chosen.large, budget=0.3 if chosen.quick else 1.0)
    start = time.perf_counter()
    print(f"peers: scipy, hand, {', '.join(peers.announce())}", flush=True)
    found: list[Record] = []
    header = None
    for name in chosen.workloads or WORKLOADS:
        began = time.perf_counter()
        for record in records(name, bench):
            found.append(record)
            wanted = report.FIGURE_HEADER if isinstance(record, Figure) else report.ROW_HEADER
            if wanted != header and not isinstance(record, Failure):
                header = wanted
                print(f"\n{header}")
            print(report.line(record), flush=True)
        print(f"{name} took {time.perf_counter() - began:.0f} s", flush=True)
        header = None
    write(chosen.output, bench, found)
    print(f"\n{time.perf_counter() - start:.0f} s; written to {chosen.output}.md and .json")
    return 1 if any(is_wrong(record) for record in found) else 0


def write(path: Path, bench: Bench, found: list[Record]) -> None:
    """The report in its three forms; a summary goes to the terminal."""
    facts = about(bench)
    title = f"pyfinch on {facts['machine']}, Python {facts['python']}" + (", small inputs" if bench.quick else "")
    rows = [record for record in found if isinstance(record, Row)]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.with_suffix(".md").write_text(report.markdown(title, found))
    path.with_suffix(".json").write_text(report.as_json(facts, found))
    report.plot(path.with_suffix(".svg"), title, rows)
    if rows:
        print("", *report.wanted_table(rows), "", *report.means_table(rows), sep="\n")
    print("", *report.failed(found), sep="\n")


def is_wrong(record: Record) -> bool:
    """Whether a result differs from a peer's, or pyfinch could not compute it."""
    if isinstance(record, Row):
        return OURS in record.failures or any(text.startswith("WRONG") for text in record.failures.values())
    return isinstance(record, Failure)


if __name__ == "__main__":
    sys.exit(main())
