"""The scheduler that users get when they say nothing: the default one's front half, then decisions by cost."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from pyfinch.formats.statistics import Bins
from pyfinch.logic.nodes import Plan
from pyfinch.schedule.factor_products import factor_products
from pyfinch.schedule.order_loops import order_loops
from pyfinch.schedule.order_reductions import order_reductions
from pyfinch.schedule.pipeline import DEFAULT, Pass, schedule_trace
from pyfinch.schedule.propagate_map_queries_backward import propagate_map_queries_backward
from pyfinch.schedule.set_loop_order import set_loop_order
from pyfinch.schedule.sizes import Sizes

__all__ = ["auto_passes", "schedule_auto"]


def auto_passes(statistics: Mapping[str, Bins] | None = None) -> tuple[tuple[Pass, ...], Callable[[], bool]]:
    """The passes of the auto scheduler for tensors of some statistics, and whether they asked for these."""
    first, second = Sizes(statistics), Sizes(statistics)

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
    return tuple(passes), lambda: first.used or second.used


def schedule_auto(program: Plan, statistics: Mapping[str, Bins] | None = None) -> tuple[Plan, bool]:
    """The plan of a program, and whether other statistics may give another one."""
    passes, used = auto_passes(statistics)
    return schedule_trace(program, passes)[-1][1], used()
