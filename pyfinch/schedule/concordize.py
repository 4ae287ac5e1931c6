"""Pass: copy what is stored in another order than it is read."""

from __future__ import annotations

from pyfinch.logic.nodes import Alias, LogicNode, Plan, Produces, Query, Relabel, Reorder, fields
from pyfinch.logic.rewrite import Postwalk, Rewrite
from pyfinch.schedule.common import Fields, Names, intersect, is_subsequence, with_subsequence
from pyfinch.schedule.flatten_plans import flatten_plans

__all__ = ["concordize"]

Copies = dict[Alias, dict[tuple[int, ...], Alias]]


def concordize(plan: Plan) -> Plan:
    """Insert a permuting copy of each tensor that is read in another order than it is stored in.

    In: every access is ``reorder(relabel(ALIAS, a…), b…)``, ``b`` the loop order. Out: one flat plan in
    which the fields that ``a`` and ``b`` share come in one order, but for productions; all users that need
    the same permutation of an alias share the copy ``query(COPY, reorder(relabel(ALIAS, FIELD…),
    FIELD…))``, which follows the query that it copies.

    Examples
    --------
    >>> from pyfinch.logic.text import parse
    >>> table = "query(alias(A), table(deferred(T, nothing), field(i), field(j)))"
    >>> access = "reorder(relabel(alias(A), field(i), field(j)), field(j), field(i))"
    >>> query = f"query(alias(B), reorder(mapjoin(immediate(abs), {access}), field(j), field(i)))"
    >>> for statement in concordize(parse(f"plan({table}, {query}, produces(alias(B)))")).bodies[1:3]:
    ...     print(statement)
    query(alias(A_0), reorder(relabel(alias(A), field(i), field(j)), field(j), field(i)))
    query(alias(B), reorder(mapjoin(immediate(abs), reorder(relabel(alias(A_0), field(j), field(i)), \
field(j), field(i))), field(j), field(i)))
    """
    names = Names(plan)
    copies: Copies = {}
    walk = Rewrite(Postwalk(lambda node: _concordant(node, copies, names)))
    changed = [
        statement if isinstance(statement, Produces) else walk(statement) for statement in flatten_plans(plan).bodies
    ]
    bodies: list[LogicNode] = []
    bound: dict[Alias, Fields] = {}
    for statement in changed:
        bodies.append(statement)
        if isinstance(statement, Query):
            bound[statement.lhs] = fields(statement.rhs, bound)
            bodies.extend(_copy_queries(statement.lhs, bound[statement.lhs], copies))
    return Plan(tuple(bodies))


def _concordant(node: LogicNode, copies: Copies, names: Names) -> LogicNode | None:
    match node:
        case Reorder(Relabel(Alias() as alias, stored), wanted):
            pass
        case _:
            return None
    if is_subsequence(intersect(stored, wanted), wanted):
        return None
    order = with_subsequence(intersect(wanted, stored), stored)
    permutation = tuple([stored.index(idx) for idx in order])
    of_alias = copies.setdefault(alias, {})
    if permutation not in of_alias:
        of_alias[permutation] = names.alias(alias.name)
    return Reorder(Relabel(of_alias[permutation], order), wanted)


def _copy_queries(alias: Alias, idxs: Fields, copies: Copies) -> list[LogicNode]:
    source = Relabel(alias, idxs)
    return [
        Query(copy, Reorder(source, tuple([idxs[place] for place in permutation])))
        for permutation, copy in copies.get(alias, {}).items()
    ]
