"""Pass: make each reformat a subquery."""

from __future__ import annotations

from pyfinch.logic.nodes import Plan, Reformat
from pyfinch.schedule.isolate import isolate

__all__ = ["isolate_reformats"]


def isolate_reformats(plan: Plan) -> Plan:
    """Make each reformat a subquery of a new alias.

    In: any plan. Out: the same, every ``reformat`` inside a ``subquery(ALIAS, reformat(…))``.

    Examples
    --------
    >>> from pyfinch.logic.text import parse
    >>> plan = parse("plan(query(alias(B), reformat(deferred(F, nothing), alias(C))))")
    >>> print(isolate_reformats(plan))
    plan(query(alias(B), subquery(alias(A_0), reformat(deferred(F, nothing), alias(C)))))
    """
    return isolate(plan, Reformat)
