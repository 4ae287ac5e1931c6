"""Pass: compute straight into the format that is asked for."""

from __future__ import annotations

from pyfinch.algebra.term import Term, postorder
from pyfinch.logic.nodes import Aggregate, Alias, LogicNode, MapJoin, Plan, Query, Reformat, Relabel, Reorder
from pyfinch.logic.rewrite import Fixpoint, Postwalk, Rewrite

__all__ = ["propagate_into_reformats"]


def propagate_into_reformats(plan: Plan) -> Plan:
    """Join a query with the reformat of it, if nothing after it uses it otherwise.

    In: a plan with ``query(B, reformat(f, A))`` somewhere after ``query(A, expr)``. Out: ``query(B,
    reformat(f, expr))`` where the first of them was. Finch.jl joins one such pair of a plan, and none where
    `set_loop_order` gave A a relabel with its own fields; pyfinch joins all.

    Examples
    --------
    >>> from pyfinch.logic.text import parse
    >>> first = "query(alias(A), reorder(relabel(alias(T), field(i)), field(i)))"
    >>> second = "query(alias(B), reformat(deferred(F, nothing), alias(A)))"
    >>> print(propagate_into_reformats(parse(f"plan({first}, {second}, produces(alias(B)))")).bodies[0].lhs)
    alias(B)
    """
    return Rewrite(Postwalk(Fixpoint(_join)))(plan)


def _join(node: LogicNode) -> LogicNode | None:
    match node:
        case Plan(bodies) if any(_reformatted(body) for body in bodies):
            pass
        case _:
            return None
    users: dict[Term, set[int]] = {}
    for place, body in enumerate(bodies):
        for term in postorder(body.rhs if isinstance(body, Query) else body):
            if isinstance(term, Alias):
                users.setdefault(term, set()).add(place)
    defined = {body.lhs: place for place, body in enumerate(bodies) if isinstance(body, Query)}
    made: list[LogicNode | None] = list(bodies)
    for place, body in enumerate(bodies):
        source = _reformatted(body)
        if source is None or users[source] != {place} or defined.get(source, place) >= place:
            continue
        match made[defined[source]]:
            case Query(_, (MapJoin() | Aggregate() | Reorder()) as rhs):
                assert isinstance(body, Query) and isinstance(body.rhs, Reformat)
                made[defined[source]] = Query(body.lhs, Reformat(body.rhs.tensor, rhs))
                made[place] = None
    return Plan(tuple([body for body in made if body is not None]))


def _reformatted(statement: LogicNode) -> Alias | None:
    match statement:
        case Query(_, Reformat(_, Alias() as source)) | Query(_, Reformat(_, Relabel(Alias() as source, _))):
            return source
        case Query(_, Reformat(_, Reorder(Relabel(Alias() as source, stored), wanted))) if stored == wanted:
            return source
        case _:
            return None
