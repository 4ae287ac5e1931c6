"""Pass: bind each subquery once, as a query of its own."""

from __future__ import annotations

from pyfinch.algebra.term import postorder
from pyfinch.logic.nodes import Alias, LogicNode, Plan, Query, Subquery

__all__ = ["lift_subqueries"]


def lift_subqueries(plan: Plan) -> Plan:
    """Bind each distinct subquery once per query, just before the query that holds it.

    In: ``expr = … | subquery(ALIAS, expr)``. Out: no subqueries; a query that held some is a plan that ends in it.
    A subquery that two queries share is bound before each, under one alias. Linear in the number of distinct
    nodes, however many paths lead to them.

    Examples
    --------
    >>> from pyfinch.logic.text import parse
    >>> print(lift_subqueries(parse("plan(query(alias(A), subquery(alias(B), alias(C))))")))
    plan(plan(query(alias(B), alias(C)), query(alias(A), alias(B))))
    """
    bodies: list[LogicNode] = []
    for statement in plan.bodies:
        match statement:
            case Plan():
                bodies.append(lift_subqueries(statement))
            case Query():
                bodies.append(_lift(statement))
            case _:
                bodies.append(statement)
    return Plan(tuple(bodies))


def _lift(query: Query) -> Plan:
    bound: dict[Alias, LogicNode] = {}
    done: dict[LogicNode, LogicNode] = {}
    for term in postorder(query.rhs):
        assert isinstance(term, LogicNode)
        match term:
            case Subquery(lhs, arg):
                bound.setdefault(lhs, done[arg])
                done[term] = lhs
            case _:
                done[term] = term.with_children([done[child] for child in term.children])  # type: ignore[index]
    queries = [Query(lhs, rhs) for lhs, rhs in bound.items()]
    return Plan((*queries, Query(query.lhs, done[query.rhs])))
