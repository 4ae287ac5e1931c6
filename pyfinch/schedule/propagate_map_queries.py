"""Pass: inline queries that only map."""

from __future__ import annotations

from pyfinch.algebra.term import Term
from pyfinch.logic.nodes import LogicNode, MapJoin, Plan, Query
from pyfinch.logic.rewrite import Postwalk, Prewalk, Rewrite
from pyfinch.schedule.common import productions, statements
from pyfinch.schedule.propagate_map_queries_backward import empty_aggregate_to_map

__all__ = ["propagate_map_queries"]


def propagate_map_queries(plan: Plan) -> Plan:
    """Inline every query that is a bare map-join into all its users, unless it is a production.

    In: a plan without subqueries. Out: the same; an aggregate over no field is a map-join; the last empty
    plan of each plan goes away.

    Examples
    --------
    >>> from pyfinch.logic.text import parse
    >>> map_query = "query(alias(B), mapjoin(immediate(abs), relabel(alias(A), field(i))))"
    >>> use = "query(alias(C), reorder(relabel(alias(B), field(j)), field(j)))"
    >>> plan = propagate_map_queries(parse(f"plan({map_query}, {use}, produces(alias(C)))"))
    >>> print(plan.bodies[0].rhs.arg)
    relabel(mapjoin(immediate(abs), relabel(alias(A), field(i))), field(j))
    """
    plan = Rewrite(Postwalk(empty_aggregate_to_map))(plan)
    kept = productions(plan)
    maps: dict[Term, LogicNode] = {}
    for statement in statements(plan):
        match statement:
            case Query(lhs, MapJoin() as rhs) if lhs not in kept:
                maps[lhs] = rhs

    def inline(node: LogicNode) -> LogicNode | None:
        match node:
            case Query(lhs, _) if lhs in maps:
                return Plan(())
            case _:
                return maps.get(node)

    if maps:
        plan = Rewrite(Prewalk(inline))(plan)
    return Rewrite(Postwalk(_drop_empty_plan))(plan)


def _drop_empty_plan(node: LogicNode) -> LogicNode | None:
    match node:
        case Plan(bodies) if (empty := Plan(())) in bodies:
            place = len(bodies) - 1 - bodies[::-1].index(empty)
            return Plan(bodies[:place] + bodies[place + 1 :])
        case _:
            return None
