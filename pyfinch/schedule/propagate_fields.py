"""Pass: write the fields of each alias where it is used."""

from __future__ import annotations

from pyfinch.logic.nodes import Alias, Field, LogicNode, Plan, Query, Relabel, fields
from pyfinch.logic.rewrite import Postwalk, Rewrite

__all__ = ["propagate_fields"]


def propagate_fields(plan: Plan) -> Plan:
    """Replace each alias in an expression by a relabel with the fields of the query that binds it.

    In: a plan without subqueries. Out: the same, ``ALIAS`` only as ``relabel(ALIAS, FIELD…)`` or in
    ``produces``, so that the fields of every expression can be read off it.

    Examples
    --------
    >>> from pyfinch.logic.text import parse
    >>> table = "query(alias(A), table(deferred(T, nothing), field(i)))"
    >>> plan = parse(f"plan({table}, query(alias(B), alias(A)))")
    >>> print(propagate_fields(plan).bodies[1])
    query(alias(B), relabel(alias(A), field(i)))
    """
    return _propagate(plan, {})


def _propagate(plan: Plan, known: dict[LogicNode, tuple[Field, ...]]) -> Plan:
    def name(term: LogicNode) -> LogicNode | None:
        return Relabel(term, known[term]) if isinstance(term, Alias) else None

    bodies: list[LogicNode] = []
    for statement in plan.bodies:
        match statement:
            case Plan():
                bodies.append(_propagate(statement, known))
            case Query(lhs, rhs):
                named = Rewrite(Postwalk(name))(rhs)
                known[lhs] = fields(named)
                bodies.append(Query(lhs, named))
            case _:
                bodies.append(statement)
    return Plan(tuple(bodies))
