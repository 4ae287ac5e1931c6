"""Compare two runs: ``python -m benchmarks.compare base.json [new.json]``.

A case's time is taken relative to its peers' in the same run, so that a busy machine is no regression. One that is
more than a tenth slower, and slower even from the worse to the better quartiles, is marked, and the exit code is 1.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from benchmarks.harness import OURS
from benchmarks.report import geometric_mean

LATEST = Path(__file__).parent / "results" / "latest.json"
SLOWER = 1.10
Rows = dict[tuple[str, str], dict[str, Any]]


def read(path: Path) -> tuple[Rows, Rows]:
    """Rows and figures by workload and case."""
    data = json.loads(path.read_text())
    keyed = [{(r["workload"], r["case"]): r for r in data[kind]} for kind in ("rows", "figures")]
    return keyed[0], keyed[1]


def relative(row: dict[str, Any], peers: list[str], ours: str = "", theirs: str = "") -> float:
    """Pyfinch's time over the geometric mean of the peers'; its seconds if there are none.

    The times are medians, or the quartiles "low" or "high".
    """

    def time(name: str, quartile: str) -> float:
        timing = row["timings"][name]
        return float(timing["median"] * (timing[quartile] if quartile else 1.0))

    return time(OURS, ours) / (geometric_mean([time(name, theirs) for name in peers]) if peers else 1.0)


def changed(base: dict[str, Any], new: dict[str, Any]) -> tuple[float, float, bool]:
    """The change of pyfinch's time, the same relative to the peers, and whether it is a regression."""
    before, after = base["timings"][OURS], new["timings"][OURS]
    peers = [name for name in base["timings"] if name != OURS and name in new["timings"]]
    change = relative(new, peers) / relative(base, peers)
    apart = relative(new, peers, "low", "high") > relative(base, peers, "high", "low")
    return after["median"] / before["median"], change, change > SLOWER and apart


def spread(row: dict[str, Any]) -> str:
    """Median and quartiles of pyfinch's time."""
    ours = row["timings"][OURS]
    return f"{1e3 * ours['median']:.3f} ({ours['low']:.2f}–{ours['high']:.2f})"


def compare_rows(base: Rows, new: Rows) -> tuple[list[str], int]:
    """Lines of a table, largest change first, and the number of regressions."""
    lines, regressions = [], 0
    for key, row in new.items():
        if key not in base:
            continue
        had, has = OURS in base[key]["timings"], OURS in row["timings"]
        if had and has:
            absolute, change, worse = changed(base[key], row)
            times = f"{spread(base[key])} | {spread(row)} | {absolute - 1:+.0%} | {change - 1:+.0%}"
        else:
            change, worse = (float("inf"), True) if had else (0.0, False)
            times = "ran | fails | | " if had else f"failed | {'runs' if has else 'fails'} | | "
        regressions += worse
        lines.append((change, f"| {key[0]} | {key[1]} | {times} | {'REGRESSION' if worse else ''} |"))
    return [text for _, text in sorted(lines, key=lambda pair: -pair[0])], regressions


def compare_figures(base: Rows, new: Rows) -> tuple[list[str], int]:
    """Lines of a table, and the number of figures that got worse by more than a fifth: they are noisier."""
    lines, regressions = [], 0
    for key, figure in new.items():
        if key not in base or not base[key]["value"]:
            continue
        before, after = base[key]["value"], figure["value"]
        change = after / before
        worse = (1 / change if figure["at_least"] else change) > SLOWER + 0.1
        regressions += worse
        mark = "REGRESSION" if worse else ""
        unit = figure["unit"]
        lines.append(f"| {key[0]} | {key[1]} | {before:.3g} {unit} | {after:.3g} {unit} | {change - 1:+.0%} | {mark} |")
    return lines, regressions


def main() -> int:
    """Print the tables."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.compare")
    parser.add_argument("base", type=Path)
    parser.add_argument("new", type=Path, nargs="?", default=LATEST)
    chosen = parser.parse_args()
    base, new = read(chosen.base), read(chosen.new)
    lines, regressions = compare_rows(base[0], new[0])
    print("| workload | input | base, ms (quartiles) | new, ms (quartiles) | change | against peers | |")
    print("|---|---|---|---|---|---|---|", *lines, sep="\n")
    lines, more = compare_figures(base[1], new[1])
    if lines:
        print("\n| workload | what | base | new | change | |\n|---|---|---|---|---|---|", *lines, sep="\n")
    missing = [key for key in (*base[0], *base[1]) if key not in new[0] and key not in new[1]]
    print(f"\n{regressions + more} regressions; {len(missing)} cases of the base are not in the new run")
    return 1 if regressions + more else 0


if __name__ == "__main__":
    sys.exit(main())
