"""Pass: compute productions that drop or add fields."""

from __future__ import annotations

from pyfinch.logic.nodes import Alias, LogicNode, Plan, Produces, Query, Relabel, Reorder
from pyfinch.logic.rewrite import Postwalk, Rewrite
from pyfinch.schedule.common import Names, intersect, with_subsequence

__all__ = ["materialize_squeeze_expand_productions"]


def materialize_squeeze_expand_productions(plan: Plan) -> Plan:
    """Give a production that drops or adds fields a query of its own; what only permutes stays a view.

    In: ``produces((ALIAS | relabel(ALIAS, FIELD…) | reorder(relabel(ALIAS, FIELD…), FIELD…))…)``. Out: the
    same, in a plan of its own after the new queries; a ``reorder`` in it has the fields of its relabel.

    Examples
    --------
    >>> from pyfinch.logic.text import parse
    >>> plan = parse("plan(produces(reorder(relabel(alias(A), field(i)), field(i), field(j))))")
    >>> print(materialize_squeeze_expand_productions(plan))
    plan(plan(query(alias(A_0), reorder(relabel(alias(A), field(i)), field(i), field(j))), \
produces(alias(A_0))))
    """
    names = Names(plan)
    return Rewrite(Postwalk(lambda node: _materialize(node, names)))(plan)


def _materialize(node: LogicNode, names: Names) -> LogicNode | None:
    if not isinstance(node, Produces):
        return None
    queries: list[LogicNode] = []
    args: list[LogicNode] = []
    for arg in node.args:
        match arg:
            case Reorder(Relabel(Alias() as alias, stored), wanted) if set(stored) != set(wanted):
                made = names.alias()
                order = with_subsequence(intersect(stored, wanted), wanted)
                queries.append(Query(made, Reorder(Relabel(alias, stored), order)))
                args.append(made if order == wanted else Reorder(Relabel(made, order), wanted))
            case Reorder(Relabel(alias, stored), wanted) if stored == wanted:
                args.append(alias)
            case _:
                args.append(arg)
    return Plan((*queries, Produces(tuple(args))))
