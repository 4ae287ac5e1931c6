"""Pass: choose the order of the loops of each query."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import pairwise

from pyfinch.algebra.term import postorder
from pyfinch.logic.nodes import (
    Aggregate,
    Alias,
    Field,
    LogicNode,
    Plan,
    Produces,
    Query,
    Reformat,
    Relabel,
    Reorder,
    Table,
    fields,
)
from pyfinch.logic.rewrite import Postwalk, Rewrite
from pyfinch.schedule.common import Fields, Names, intersect
from pyfinch.schedule.push_fields import push_expression

__all__ = ["loop_order", "preferred_order", "set_loop_order"]

Preferred = Mapping[Alias, Fields]
Choice = Callable[[Query], Query]


def set_loop_order(plan: Plan, preferred: Preferred | None = None, choose: Choice | None = None) -> Plan:
    """Fix a total order of loops for each query, by the storage orders of what it reads.

    In: ``query(ALIAS, e)``, ``e`` a pointwise expression in a ``reorder`` or an aggregate of one, a table,
    a permuting copy, or a reformat of these. Out: the same, with ``reorder(…, FIELD…)`` giving the loops,
    the last one outermost; a result whose loops run in another order than its fields is stored in loop
    order, and its users read it through a reorder. ``query(A, reformat(f, e))`` becomes a query for ``e``
    and one for the format.

    Parameters
    ----------
    plan
        What `push_fields` and `propagate_transpose_queries` left.
    preferred
        For an alias, the order of loops to take wherever the storage orders leave a choice. By default it
        is the order of the fields of the result as the program has it.
    choose
        Given each query as it would be, it gives the query as it is to be: with the same result fields in the
        same order, the loops in any order.

    Examples
    --------
    >>> from pyfinch.logic.text import parse
    >>> a = "reorder(relabel(alias(A), field(k), field(i)), field(i), field(k))"
    >>> b = "reorder(relabel(alias(B), field(j), field(k)), field(j), field(k))"
    >>> times = f"reorder(mapjoin(immediate(*), {a}, {b}), field(i), field(k), field(j))"
    >>> plan = parse(f"plan(query(alias(C), aggregate(immediate(+), immediate(0.0), {times}, field(k))))")
    >>> [idx.name for idx in set_loop_order(plan).bodies[0].rhs.arg.idxs]
    ['j', 'k', 'i']
    """
    return _set_orders(plan, {}, preferred or {}, choose or (lambda query: query), Names(plan))


def _set_orders(
    plan: Plan, views: dict[LogicNode, LogicNode], preferred: Preferred, choose: Choice, names: Names
) -> Plan:
    bodies: list[LogicNode] = []
    for statement in plan.bodies:
        match statement:
            case Plan():
                bodies.append(_set_orders(statement, views, preferred, choose, names))
            case Query(lhs, Reformat(tensor, Alias() as source)):
                bodies.append(choose(Query(lhs, Reformat(tensor, views.get(source, source)))))
            case Query(lhs, Reformat(tensor, rhs)):
                source = names.alias()
                inner = _set_orders(Plan((Query(source, rhs),)), views, preferred, choose, names)
                view = views.get(source, source)
                bodies.append(Plan((*inner.bodies, choose(Query(lhs, Reformat(tensor, view))))))
            case Query():
                bodies.append(_set_order(statement, views, preferred, choose))
            case Produces():
                bodies.append(Rewrite(Postwalk(views.get))(statement))
            case _:
                bodies.append(statement)
    return Plan(tuple(bodies))


def _set_order(query: Query, views: dict[LogicNode, LogicNode], preferred: Preferred, choose: Choice) -> Query:
    """One query; notes in ``views`` how its users read what it stores."""
    lhs = query.lhs
    if isinstance(query.rhs, Table):
        return choose(query)
    old = fields(query.rhs)
    rhs = push_expression(Rewrite(Postwalk(views.get))(query.rhs))
    made: LogicNode
    match rhs:
        case Reorder(Relabel(Alias(), _), _):
            return choose(Query(lhs, rhs))
        case Aggregate(op, init, arg, idxs):
            made = Aggregate(op, init, Reorder(arg, loop_order(arg, preferred.get(lhs))), idxs)
        case _:
            made = Reorder(rhs, loop_order(rhs, preferred.get(lhs)))
    views[lhs] = Reorder(Relabel(lhs, fields(made)), old)
    return choose(Query(lhs, made))


def loop_order(expr: LogicNode, preferred: Sequence[Field] | None = None) -> Fields:
    """An order of an expression's fields in which its leaves are read as stored, if there is one.

    Where no leaf reads all fields, those that are in no leaf go last, that is outermost.
    """
    own = fields(expr)
    chains: dict[Fields, None] = {}
    for term in postorder(expr):
        match term:
            case Reorder(Relabel(_, stored), wanted):
                chains[intersect(intersect(stored, wanted), own)] = None
    asked = {field for chain in chains for field in chain}
    longest = max([1 if own else 0, *map(len, chains)], default=0)
    order = preferred_order(chains, own, preferred or own) or own
    if longest < len(own):
        order = tuple(sorted(order, key=lambda idx: idx not in asked))
    return order


def preferred_order(chains: Iterable[Fields], own: Fields, preferred: Sequence[Field]) -> Fields | None:
    """The topological order that takes, of the fields that may come next, the most preferred; or None."""
    after: dict[Field, list[Field]] = {idx: [] for idx in own}
    waiting: dict[Field, int] = dict.fromkeys(own, 0)
    for chain in chains:
        for first, second in pairwise(chain):
            after[first].append(second)
            waiting[second] += 1
    rank = {idx: place for place, idx in enumerate(preferred)}
    ready = [(rank.get(idx, len(rank)), place, idx) for place, idx in enumerate(own) if not waiting[idx]]
    heapq.heapify(ready)
    order: list[Field] = []
    place = len(own)
    while ready:
        idx = heapq.heappop(ready)[2]
        order.append(idx)
        for second in after[idx]:
            waiting[second] -= 1
            if not waiting[second]:
                place += 1
                heapq.heappush(ready, (rank.get(second, len(rank)), place, second))
    return tuple(order) if len(order) == len(own) else None
