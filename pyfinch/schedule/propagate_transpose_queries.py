"""Pass: remove queries that only permute or rename."""

from __future__ import annotations

from pyfinch.logic.nodes import Alias, LogicNode, Plan, Produces, Query, Relabel, Reorder
from pyfinch.logic.rewrite import Postwalk, Rewrite
from pyfinch.schedule.push_fields import push_expression

__all__ = ["propagate_transpose_queries"]


def propagate_transpose_queries(plan: Plan) -> Plan:
    """Put queries that only permute, drop, add or rename fields into their users, productions included.

    In: a plan on which `propagate_fields` ran. Out: the same without ``query(ALIAS, reorder(relabel(ALIAS,
    …), …))`` and ``query(ALIAS, relabel(ALIAS, …))``; fields pushed down in every expression. An empty plan
    stays.

    Examples
    --------
    >>> from pyfinch.logic.text import parse
    >>> plan = parse("plan(query(alias(B), relabel(alias(A), field(i))), produces(alias(B)))")
    >>> print(propagate_transpose_queries(plan))
    plan(plan(), produces(relabel(alias(A), field(i))))
    """
    return _propagate(plan, {})


def _propagate(plan: Plan, views: dict[LogicNode, LogicNode]) -> Plan:
    bodies: list[LogicNode] = []
    for statement in plan.bodies:
        match statement:
            case Plan():
                bodies.append(_propagate(statement, views))
            case Query(lhs, rhs):
                made = push_expression(Rewrite(Postwalk(views.get))(rhs))
                match made:
                    case Reorder(Relabel(Alias(), _), _) | Relabel(Alias(), _) | Alias():
                        views[lhs] = made
                        bodies.append(Plan(()))
                    case _:
                        bodies.append(Query(lhs, made))
            case Produces():
                bodies.append(push_expression(Rewrite(Postwalk(views.get))(statement)))
            case _:
                bodies.append(statement)
    return Plan(tuple(bodies))
