"""Pass: write the order of fields explicitly where loops will be."""

from __future__ import annotations

from pyfinch.logic.nodes import Aggregate, LogicNode, MapJoin, Plan, Query, Reformat, Reorder, fields
from pyfinch.logic.rewrite import Postwalk, Rewrite

__all__ = ["lift_fields"]


def lift_fields(plan: Plan) -> Plan:
    """Put a reorder, of the fields as they are, inside each aggregate and around each map-join query.

    In: a plan whose fields were propagated and pushed. Out: the same, aggregates as ``aggregate(op, init,
    reorder(…), FIELD…)`` and map-join queries as ``query(ALIAS, reorder(mapjoin(…), FIELD…))``.

    Examples
    --------
    >>> from pyfinch.logic.text import parse
    >>> plan = parse("plan(query(alias(B), mapjoin(immediate(abs), relabel(alias(A), field(i)))))")
    >>> print(lift_fields(plan).bodies[0].rhs)
    reorder(mapjoin(immediate(abs), relabel(alias(A), field(i))), field(i))
    """
    return Rewrite(Postwalk(_lift))(plan)


def _lift(node: LogicNode) -> LogicNode | None:
    match node:
        case Aggregate(op, init, arg, idxs):
            return Aggregate(op, init, Reorder(arg, fields(arg)), idxs)
        case Query(lhs, MapJoin() as rhs):
            return Query(lhs, Reorder(rhs, fields(rhs)))
        case Query(lhs, Reformat(tensor, MapJoin() as arg)):
            return Query(lhs, Reformat(tensor, Reorder(arg, fields(arg))))
        case _:
            return None
