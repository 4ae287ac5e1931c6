"""Pass, pyfinch's own: one flat plan without anything computed twice or in vain."""

from __future__ import annotations

from pyfinch.algebra.term import Term, postorder
from pyfinch.logic.nodes import Alias, LogicNode, Plan, Produces, Query, Relabel, Reorder, Table
from pyfinch.logic.rewrite import Postwalk, Rewrite
from pyfinch.schedule.flatten_plans import flatten_plans

__all__ = ["tidy"]


def tidy(plan: Plan) -> Plan:
    """Flatten the plan, bind each alias and each table once, and drop queries that nothing uses.

    In: any plan without subqueries. Out: a flat plan; two tables of one tensor are one alias, so that equal
    accesses are equal nodes; a production is ``ALIAS`` or ``reorder(relabel(ALIAS, FIELD…), FIELD…)``, the
    latter with its fields permuted. Finch.jl binds a subquery that two productions share twice; the second
    goes away.

    Examples
    --------
    >>> from pyfinch.logic.text import parse
    >>> once = "query(alias(A), table(deferred(T, nothing), field(i)))"
    >>> again = "query(alias(B), table(deferred(T, nothing), field(j)))"
    >>> print(tidy(parse(f"plan({once}, plan({again}), produces(relabel(alias(B), field(k))))")))
    plan(query(alias(A), table(deferred(T, nothing), field(i))), produces(alias(A)))
    """
    first: dict[tuple[LogicNode, int], Alias] = {}
    same: dict[Term, LogicNode] = {}
    bound: dict[Alias, LogicNode] = {}
    rename = Rewrite(Postwalk(same.get))
    produced: Produces | None = None
    for statement in flatten_plans(plan).bodies:
        match statement:
            case Query(lhs, _) if lhs in bound or lhs in same:
                continue
            case Query(lhs, Table(tensor, idxs) as rhs):
                kept = first.setdefault((tensor, len(idxs)), lhs)
                if kept is lhs:
                    bound[lhs] = rhs
                else:
                    same[lhs] = kept
            case Query(lhs, rhs):
                bound[lhs] = rename(rhs)
            case Produces(args):
                produced = Produces(tuple([_production(rename(arg)) for arg in args]))
    if produced is None:
        return Plan(tuple([Query(lhs, rhs) for lhs, rhs in bound.items()]))
    used = set(postorder(produced))
    for lhs in reversed(bound):
        if lhs in used:
            for _ in postorder(bound[lhs], seen=used):
                pass
    return Plan((*[Query(lhs, rhs) for lhs, rhs in bound.items() if lhs in used], produced))


def _production(arg: LogicNode) -> LogicNode:
    match arg:
        case Relabel(Alias() as alias, _) | Reorder(Alias() as alias, _):
            return alias
        case Reorder(Relabel(Alias() as alias, stored), wanted) if stored == wanted:
            return alias
        case _:
            return arg
