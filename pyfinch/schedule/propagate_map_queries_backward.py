"""Pass: inline what is used once, and pull reductions out of what distributes over them."""

from __future__ import annotations

from pyfinch.algebra.term import Term
from pyfinch.logic.nodes import (
    Aggregate,
    Alias,
    LogicNode,
    MapJoin,
    Plan,
    Produces,
    Query,
)
from pyfinch.logic.rewrite import Postwalk, Prewalk, Rewrite
from pyfinch.schedule.common import field_finder, occurrences, productions, statements
from pyfinch.schedule.pull_aggregates import pull_aggregates
from pyfinch.schedule.push_fields import push_fields

__all__ = ["empty_aggregate_to_map", "propagate_map_queries_backward"]


def propagate_map_queries_backward(plan: Plan) -> Plan:
    """Inline each query that is used exactly once, then lift reductions as far as the operators' laws allow.

    In: a plan without subqueries. Out: the same grammar; an inlined query leaves an empty plan. To a
    fixpoint, (1) an aggregate leaves a map-join whose operator distributes over it, if the init annihilates
    the map-join's operator and the other arguments have as many fields as the aggregate: this fuses ``S *
    (A @ B)``; (2) nested aggregates of one operator become one if the inner init is its identity; (3) a
    reorder of an aggregate moves inside.

    Examples
    --------
    >>> from pyfinch.logic.text import parse
    >>> table = "table(deferred(T, nothing), field(i), field(k))"
    >>> inner = f"aggregate(immediate(+), immediate(0.0), {table}, field(k))"
    >>> times = f"mapjoin(immediate(*), table(deferred(S, nothing), field(i)), {inner})"
    >>> plan = propagate_map_queries_backward(parse(f"plan(query(alias(A), {times}), produces(alias(A)))"))
    >>> type(plan.bodies[0].rhs).__name__
    'Aggregate'
    """
    plan = Rewrite(Postwalk(empty_aggregate_to_map))(plan)
    plan = push_fields(_inline_single_uses(plan))
    return pull_aggregates(plan, field_finder(plan))


def empty_aggregate_to_map(node: LogicNode) -> LogicNode | None:
    """An aggregate over no field is one application of its operator."""
    match node:
        case Aggregate(op, init, arg, ()):
            return MapJoin(op, (init, arg))
        case _:
            return None


def _inline_single_uses(plan: Plan) -> Plan:
    definitions: dict[Term, LogicNode] = {}
    users: list[LogicNode] = []
    for statement in statements(plan):
        match statement:
            case Query(lhs, rhs):
                definitions[lhs] = rhs
                users.append(rhs)
            case Produces():
                users.append(statement)
    times = occurrences(users, 2)
    kept = productions(plan)
    once = {alias for alias in definitions if times.get(alias) == 1 and alias not in kept}  # type: ignore[call-overload]
    if not once:
        return plan

    def inline(node: LogicNode) -> LogicNode | None:
        match node:
            case Query(lhs, _) if lhs in once:
                return Plan(())
            case Alias():
                while node in once:
                    node = definitions[node]
                return node
            case _:
                return None

    return Rewrite(Prewalk(inline))(plan)
