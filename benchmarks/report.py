"""Tables, JSON and a plot of what was measured."""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from benchmarks.harness import OURS, Failure, Figure, Record, Row

ROW_HEADER = "| workload | input | pyfinch, ms | quartiles | ratio to each peer | wanted |\n|---|---|---|---|---|---|"
FIGURE_HEADER = "| workload | what | value | wanted |\n|---|---|---|---|"


def line(record: Record) -> str:
    """A record as a line of its table."""
    match record:
        case Row():
            return _row(record)
        case Figure():
            sign = "≥" if record.at_least else "≤"
            wanted = "" if record.limit is None else f"{sign} {record.limit:g} {_mark(record.met())}"
            note = f" ({record.note})" if record.note else ""
            return f"| {record.workload} | {record.case} | {record.value:.3g} {record.unit}{note} | {wanted} |"
        case Failure():
            return f"| {record.workload} | {record.case} | {record.reason} | |"


def _row(row: Row) -> str:
    ours = row.timings.get(OURS)
    shown = [f"{name} {short(ratio)}" for name, ratio in row.ratios().items()]
    shown += [f"{name} {text}" for name, text in row.failures.items() if name != OURS]
    if ours is None:
        shown += [f"{name} took {1e3 * t.median:.3f} ms" for name, t in row.timings.items()]
        return f"| {row.workload} | {row.case} | {row.failures.get(OURS, '')} | | {', '.join(shown)} | |"
    wanted = []
    for bound in row.wanted:
        ratio = row.against(bound)
        wanted.append(bound.text() + ("" if ratio is None else f" {_mark(ratio <= bound.limit)}"))
    spread = f"{ours.low:.2f}–{ours.high:.2f}"
    return (
        f"| {row.workload} | {row.case} | {1e3 * ours.median:.3f} | {spread} "
        f"| {', '.join(shown)} | {', '.join(wanted)} |"
    )


def _mark(met: bool | None) -> str:
    return {None: "", True: "✓", False: "✗"}[met]


def short(ratio: float) -> str:
    """A ratio with two digits that count."""
    return f"{ratio:.2f}" if ratio >= 0.095 else f"{ratio:.1g}"


def geometric_mean(values: Sequence[float]) -> float:
    """The n-th root of their product."""
    return math.exp(sum(map(math.log, values)) / len(values))


def means(rows: Iterable[Row]) -> dict[str, dict[str, float]]:
    """By workload and peer: the geometric mean of pyfinch's time over the peer's."""
    ratios: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for row in rows:
        for name, ratio in row.ratios().items():
            ratios[row.workload][name].append(ratio)
    return {
        workload: {name: geometric_mean(values) for name, values in peers.items()} for workload, peers in ratios.items()
    }


def wanted_table(rows: Sequence[Row]) -> list[str]:
    """For each workload and bound: the geometric mean of the ratio, the worst, and how often it is met."""
    ratios: dict[tuple[str, str, float], list[float]] = defaultdict(list)
    for row in rows:
        for bound in row.wanted:
            ratio = row.against(bound)
            if ratio is not None:
                ratios[row.workload, bound.text(), bound.limit].append(ratio)
    lines = ["| workload | wanted | geometric mean | worst | met |", "|---|---|---|---|---|"] if ratios else []
    for (workload, text, limit), values in ratios.items():
        mean = geometric_mean(values)
        met = sum(value <= limit for value in values)
        lines.append(
            f"| {workload} | {text} | {mean:.2f} {_mark(mean <= limit)} | {max(values):.2f} | {met} of {len(values)} |"
        )
    return lines


def means_table(rows: Sequence[Row]) -> list[str]:
    """Geometric means: a line a workload, a column a peer."""
    by_workload = means(rows)
    peers = list(dict.fromkeys(name for found in by_workload.values() for name in found))
    lines = [f"| workload | {' | '.join(peers)} |", "|---" * (len(peers) + 1) + "|"]
    for workload, found in by_workload.items():
        cells = [short(found[name]) if name in found else "" for name in peers]
        lines.append(f"| {workload} | {' | '.join(cells)} |")
    return lines


def failed(records: Sequence[Record]) -> list[str]:
    """What went wrong: wrong results, calls that raised, parts that did not run."""
    lines = []
    for record in records:
        match record:
            case Row():
                lines += [f"- {record.workload}, {record.case}: {who} {why}" for who, why in record.failures.items()]
            case Failure():
                lines.append(f"- {record.workload}, {record.case}: {record.reason}")
    return lines


def markdown(title: str, records: Sequence[Record]) -> str:
    """The whole report."""
    rows = [r for r in records if isinstance(r, Row)]
    figures = [r for r in records if isinstance(r, Figure)]
    parts = [f"# {title}", "Ratios are pyfinch's time over the peer's: below 1, pyfinch is faster."]
    if rows:
        parts.append("## What is wanted\n\n" + "\n".join(wanted_table(rows) or ["Nothing of these workloads."]))
        parts.append("## Geometric means\n\n" + "\n".join(means_table(rows)))
    if figures:
        parts.append("## Figures\n\n" + "\n".join([FIGURE_HEADER, *map(line, figures)]))
    if rows:
        parts.append("## Cases\n\n" + "\n".join([ROW_HEADER, *map(line, rows)]))
    wrong = failed(records)
    if wrong:
        parts.append("## Failures\n\n" + "\n".join(wrong))
    return "\n\n".join(parts) + "\n"


def as_json(about: dict[str, Any], records: Sequence[Record]) -> str:
    """Everything, for `benchmarks.compare`."""
    kinds: dict[type, str] = {Row: "rows", Figure: "figures", Failure: "failures"}
    data: dict[str, Any] = {"about": about, "rows": [], "figures": [], "failures": []}
    for record in records:
        data[kinds[type(record)]].append(asdict(record))
    return json.dumps(data, indent=1) + "\n"


def plot(path: Path, title: str, rows: Sequence[Row]) -> bool:
    """A dot for each workload and peer at the geometric mean of the ratios; False without matplotlib."""
    try:
        from matplotlib.figure import Figure as Canvas
    except ImportError:
        return False
    found = means(rows)
    if not found:
        return False
    peers = list(dict.fromkeys(name for group in found.values() for name in group))
    canvas = Canvas(figsize=(8, 1.5 + 0.24 * len(found)), layout="constrained")
    axes = canvas.subplots()
    for peer in peers:
        points = [(group[peer], k) for k, group in enumerate(found.values()) if peer in group]
        axes.scatter(*zip(*points, strict=True), label=peer, s=22)
    axes.axvline(1.0, color="black", linewidth=0.8)
    axes.set_xscale("log")
    axes.set_yticks(range(len(found)), list(found))
    axes.margins(y=0.01)
    axes.invert_yaxis()
    axes.grid(True, axis="x", linewidth=0.3)
    axes.set_xlabel("pyfinch's time over the peer's (left of 1: pyfinch is faster)")
    axes.set_title(title, fontsize=9)
    axes.legend(fontsize=8, ncols=3)
    canvas.savefig(path)
    return True
