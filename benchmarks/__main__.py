"""Run the suite: ``python -m benchmarks [--quick] [workload …]``."""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
from pathlib import Path

os.environ.setdefault("PYFINCH_COMPILE", "always")

from benchmarks import kernels, overhead
from benchmarks.harness import HEADER

WORKLOADS = {
    "spmv": kernels.spmv,
    "elementwise": kernels.elementwise,
    "spgemm": kernels.spgemm,
    "spmm": kernels.spmm,
    "sddmm": kernels.sddmm,
}


def main() -> int:
    """Measure, print, and write ``benchmarks/results/latest.md`` and ``.json``."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks")
    parser.add_argument("workloads", nargs="*", help=f"some of: {' '.join([*WORKLOADS, 'overhead'])}")
    parser.add_argument("--quick", action="store_true", help="small inputs")
    chosen = parser.parse_args()
    names = chosen.workloads or [*WORKLOADS, "overhead"]
    out = [f"pyfinch on {platform.machine()}, Python {platform.python_version()}, one thread", "", HEADER]
    print(HEADER, flush=True)
    rows = []
    for name in names:
        for row in WORKLOADS[name](chosen.quick) if name in WORKLOADS else ():
            rows.append(row)
            out.append(row.text())
            print(row.text(), flush=True)
    if "overhead" in names:
        out.append("")
        for line in overhead.lines(chosen.quick):
            out.append(line)
            print(line, flush=True)
    folder = Path(__file__).parent / "results"
    folder.mkdir(exist_ok=True)
    (folder / "latest.md").write_text("\n".join(out) + "\n")
    data = [{"workload": r.workload, "case": r.case, "medians": dict(r.medians), "spread": r.spread} for r in rows]
    (folder / "latest.json").write_text(json.dumps(data, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
