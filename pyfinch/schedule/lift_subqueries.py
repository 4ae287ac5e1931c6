"""Pass: bind each subquery once, as a query of its own."""

from __future__ import annotations

from itertools import islice
from typing import cast

from pyfinch.algebra.term import Term, postorder
from pyfinch.logic.nodes import Alias, LogicNode, Plan, Query, Subquery
from pyfinch.schedule.common import statements

__all__ = ["lift_subqueries"]


_SHARING = 2
_SMALL = 500


def lift_subqueries(plan: Plan) -> Plan:
    """Bind each distinct subquery once per query, just before the query that holds it.

    In: ``expr = … | subquery(ALIAS, expr)``. Out: no subqueries; a query that held some is a plan that ends
    in it. A subquery that two queries share is bound before each, under one alias, as Finch.jl does; where
    that would make a plan much larger, it is bound before the first only. Linear in the number of distinct
    nodes, however many paths lead to them.

    Examples
    --------
    >>> from pyfinch.logic.text import parse
    >>> print(lift_subqueries(parse("plan(query(alias(A), subquery(alias(B), alias(C))))")))
    plan(plan(query(alias(B), alias(C)), query(alias(A), alias(B))))
    """
    shared = _Lifted() if _repeats_too_much(plan) else None
    return _lift_plan(plan, shared)


class _Lifted:
    """What was lifted so far: the bound aliases, and each part without its subqueries."""

    def __init__(self) -> None:
        self.bound: dict[Alias, LogicNode] = {}
        self.done: dict[Term, Term] = {}
        self.seen: set[Term] = set()


def _repeats_too_much(plan: Plan) -> bool:
    """Whether binding subqueries once for each query would make the plan much larger than once for all."""
    if sum(isinstance(statement, Query) for statement in statements(plan)) < 2:
        return False
    distinct = sum(isinstance(term, Subquery) for term in postorder(plan))
    room = _SHARING * distinct + _SMALL
    for statement in statements(plan):
        for term in postorder(statement):
            if isinstance(term, Subquery):
                room -= 1
                if room < 0:
                    return True
    return False


def _lift_plan(plan: Plan, shared: _Lifted | None) -> Plan:
    bodies: list[LogicNode] = []
    for statement in plan.bodies:
        match statement:
            case Plan():
                bodies.append(_lift_plan(statement, shared))
            case Query():
                bodies.append(_lift(statement, shared or _Lifted()))
            case _:
                bodies.append(statement)
    return Plan(tuple(bodies))


def _lift(query: Query, lifted: _Lifted) -> Plan:
    bound, done = lifted.bound, lifted.done
    before = len(bound)
    for term in postorder(query.rhs, seen=lifted.seen):
        match term:
            case Subquery(lhs, arg):
                bound.setdefault(lhs, cast(LogicNode, done[arg]))
                done[term] = lhs
            case _:
                done[term] = term.with_children([done[child] for child in term.children])
    queries = [Query(lhs, rhs) for lhs, rhs in islice(bound.items(), before, None)]
    return Plan((*queries, Query(query.lhs, cast(LogicNode, done[query.rhs]))))
