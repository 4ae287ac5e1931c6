"""The scheduler that users get when they say nothing: the default one's front half, then decisions by cost."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pyfinch.formats.statistics import Bins
from pyfinch.logic.nodes import Plan
from pyfinch.schedule.factor_products import factor_products
from pyfinch.schedule.order_loops import order_loops
from pyfinch.schedule.order_reductions import order_reductions
from pyfinch.schedule.pin_formats import pin_formats
from pyfinch.schedule.pipeline import DEFAULT, Pass, schedule_trace
from pyfinch.schedule.propagate_map_queries_backward import propagate_map_queries_backward
from pyfinch.schedule.set_loop_order import set_loop_order
from pyfinch.schedule.sizes import Sizes

__all__ = ["Traced", "auto_passes", "schedule_auto", "trace_auto"]


def auto_passes(first: Sizes, second: Sizes) -> tuple[Pass, ...]:
    """The passes of the auto scheduler; ``first`` serves those before queries are cut apart, ``second`` the others."""

    def factored(plan: Plan) -> Plan:
        return factor_products(plan, first)

    def ordered(plan: Plan) -> Plan:
        return order_loops(plan, second)

    factored.__name__, ordered.__name__ = "factor_products", "order_loops"
    passes: list[Pass] = []
    for run in DEFAULT:
        if run is order_reductions:
            continue
        passes.append(ordered if run is set_loop_order else run)
        if run is propagate_map_queries_backward:
            passes.append(factored)
    return tuple(passes)


def schedule_auto(program: Plan, statistics: Mapping[str, Bins] | None = None) -> tuple[Plan, bool]:
    """The plan of a program, and whether other statistics may give another one.

    The format of a result never depends on statistics.
    """
    traced = trace_auto(program, statistics)
    return traced.passes[-1][1], traced.adapts


@dataclass(frozen=True, slots=True)
class Traced:
    """The plan after each pass, whether other statistics may give another one, and in words what was decided."""

    passes: list[tuple[str, Plan]]
    adapts: bool
    notes: list[str]


def trace_auto(program: Plan, statistics: Mapping[str, Bins] | None = None) -> Traced:
    """Schedule a program, and keep what became of it pass by pass."""
    traced = _trace(program, statistics)
    if statistics is None or not traced.adapts:
        return traced
    plain = _trace(program, None)
    pinned = pin_formats(traced.passes[-1][1], plain.passes[-1][1])
    if pinned is None:
        return plain
    return Traced([*traced.passes, ("pin_formats", pinned)], True, traced.notes)


def _trace(program: Plan, statistics: Mapping[str, Bins] | None) -> Traced:
    first, second = Sizes(statistics), Sizes(statistics)
    passes = schedule_trace(program, auto_passes(first, second))
    return Traced(passes, first.used or second.used, first.notes + second.notes)
