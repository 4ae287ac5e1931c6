"""Pass: remove queries that only give another name."""

from __future__ import annotations

from pyfinch.logic.nodes import Alias, LogicNode, Plan, Query
from pyfinch.logic.rewrite import Chain, Postwalk, Rewrite
from pyfinch.schedule.common import statements

__all__ = ["propagate_copy_queries"]


def propagate_copy_queries(plan: Plan) -> Plan:
    """Replace an alias bound to another alias by that one; an empty plan stays where the query was.

    In: a plan without subqueries. Out: the same without ``query(ALIAS, ALIAS)``.

    Examples
    --------
    >>> from pyfinch.logic.text import parse
    >>> print(propagate_copy_queries(parse("plan(query(alias(B), alias(A)), produces(alias(B)))")))
    plan(plan(), produces(alias(A)))
    """
    copies: dict[LogicNode, LogicNode] = {}
    for statement in statements(plan):
        match statement:
            case Query(lhs, Alias() as rhs):
                copies[lhs] = copies.get(rhs, rhs)
    if not copies:
        return plan
    return Rewrite(Postwalk(Chain([copies.get, _drop_own])))(plan)


def _drop_own(node: LogicNode) -> LogicNode | None:
    match node:
        case Query(lhs, rhs) if lhs is rhs:
            return Plan(())
        case _:
            return None
