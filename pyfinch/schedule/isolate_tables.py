"""Pass: make each table a subquery."""

from __future__ import annotations

from pyfinch.logic.nodes import Plan, Table
from pyfinch.schedule.isolate import isolate

__all__ = ["isolate_tables"]


def isolate_tables(plan: Plan) -> Plan:
    """Make each table a subquery of a new alias.

    In: any plan. Out: the same, every ``table`` inside a ``subquery(ALIAS, table(…))``.

    Examples
    --------
    >>> from pyfinch.logic.text import parse
    >>> plan = parse("plan(query(alias(B), table(deferred(T, nothing), field(i))))")
    >>> print(isolate_tables(plan))
    plan(query(alias(B), subquery(alias(A_0), table(deferred(T, nothing), field(i)))))
    """
    return isolate(plan, Table)
