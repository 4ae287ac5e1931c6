"""Pass: make each aggregate a subquery."""

from __future__ import annotations

from pyfinch.logic.nodes import Aggregate, Plan
from pyfinch.schedule.isolate import isolate

__all__ = ["isolate_aggregates"]


def isolate_aggregates(plan: Plan) -> Plan:
    """Make each aggregate a subquery of a new alias.

    In: any plan. Out: the same, every ``aggregate`` inside a ``subquery(ALIAS, aggregate(…))``.

    Examples
    --------
    >>> from pyfinch.logic.text import parse
    >>> plan = parse("plan(query(alias(B), aggregate(immediate(+), immediate(0), alias(C), field(i))))")
    >>> print(isolate_aggregates(plan))
    plan(query(alias(B), subquery(alias(A_0), aggregate(immediate(+), immediate(0), alias(C), field(i)))))
    """
    return isolate(plan, Aggregate)
