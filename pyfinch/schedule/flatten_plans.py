"""Shared by passes: one flat plan of statements."""

from __future__ import annotations

from pyfinch.logic.nodes import LogicNode, Plan, Produces
from pyfinch.schedule.common import statements

__all__ = ["flatten_plans"]


def flatten_plans(plan: Plan) -> Plan:
    """Open nested plans; what comes after the first ``produces`` never runs and goes away.

    Examples
    --------
    >>> from pyfinch.logic.text import parse
    >>> print(flatten_plans(parse("plan(plan(), plan(query(alias(A), alias(B))), produces(alias(A)))")))
    plan(query(alias(A), alias(B)), produces(alias(A)))
    """
    flat: list[LogicNode] = []
    for statement in statements(plan):
        flat.append(statement)
        if isinstance(statement, Produces):
            break
    return Plan(tuple(flat))
