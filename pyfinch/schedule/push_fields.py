"""Pass: push relabels and reorders down to the leaves."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from pyfinch.logic.nodes import (
    Aggregate,
    Field,
    Immediate,
    LogicNode,
    MapJoin,
    Plan,
    Relabel,
    Reorder,
    Table,
    fields,
)
from pyfinch.logic.rewrite import Chain, Fixpoint, Prewalk, Rewrite, T
from pyfinch.schedule.common import (
    Fields,
    FieldsOf,
    field_finder,
    intersect,
    is_subsequence,
    with_subsequence,
)

__all__ = ["push_expression", "push_fields"]


def push_fields(plan: Plan) -> Plan:
    """Push relabels and reorders down to the leaves.

    In: ``leaf = relabel(ALIAS, FIELD…) | table(…) | immediate``, ``expr = leaf | reorder(expr, FIELD…) |
    relabel(expr, FIELD…) | mapjoin(op, expr…) | aggregate(op, init, expr, FIELD…)``. Out: every relabel
    stands on an alias; tables and immediates took theirs in; reorders stand on leaves as ``reorder(leaf,
    FIELD…)``, and a copy of each also stays where it was, naming the loop order of what is below.

    Examples
    --------
    >>> from pyfinch.logic.text import parse
    >>> table = "table(deferred(T, nothing), field(i), field(j))"
    >>> plan = parse(f"plan(query(alias(A), relabel({table}, field(k), field(l))))")
    >>> print(push_fields(plan).bodies[0])
    query(alias(A), table(deferred(T, nothing), field(k), field(l)))
    """
    return push_expression(plan, field_finder(plan))


def push_expression(node: T, fields_of: FieldsOf = fields) -> T:
    """Push relabels and reorders down in an expression, a statement or a plan."""
    named = Rewrite(Prewalk(Fixpoint(lambda n: _push_relabel(n, fields_of))))(node)
    ordered = Prewalk(Chain([Fixpoint(_merge_reorders), lambda n: _push_reorder(n, fields_of)]))
    return Rewrite(ordered)(named)


def _push_relabel(node: LogicNode, fields_of: FieldsOf) -> LogicNode | None:
    """One step of a relabel towards the leaves."""
    if not isinstance(node, Relabel):
        return None
    new = node.idxs
    match node.arg:
        case MapJoin(op, args) as below:
            names = dict(zip(fields_of(below), new, strict=True))
            return MapJoin(op, tuple([Relabel(arg, _renamed(fields_of(arg), names)) for arg in args]))
        case Aggregate(op, init, arg, idxs) as below:
            names = dict(zip(fields_of(below), new, strict=True))
            # A bound field must not be caught by a new name that equals its own.
            bound = {idx: _apart(idx, new) for idx in idxs}
            return Aggregate(op, init, Relabel(arg, _renamed(fields_of(arg), names | bound)), _renamed(idxs, bound))
        case Relabel(arg, _):
            return Relabel(arg, new)
        case Reorder(arg, idxs):
            names = dict(zip(idxs, new, strict=True))
            dropped = {idx: _apart(idx, new) for idx in fields_of(arg) if idx not in names}
            return Reorder(Relabel(arg, _renamed(fields_of(arg), names | dropped)), new)
        case Table(tensor, _):
            return Table(tensor, new)
        case Immediate() as value:
            return value
        case _:
            return None


def _renamed(idxs: Iterable[Field], names: Mapping[Field, Field]) -> Fields:
    return tuple([names.get(idx, idx) for idx in idxs])


def _apart(idx: Field, others: Fields) -> Field:
    """The field, under another name if it is one of the others."""
    while idx in others:
        idx = Field(idx.name + "'")
    return idx


def _merge_reorders(node: LogicNode) -> LogicNode | None:
    match node:
        case Reorder(Reorder(arg, _), idxs):
            return Reorder(arg, idxs)
        case _:
            return None


def _push_reorder(node: LogicNode, fields_of: FieldsOf) -> LogicNode | None:
    """Tell what is below a reorder in which order its fields are wanted."""
    match node:
        case Reorder(MapJoin(op, args), idxs):
            below = [Reorder(arg, intersect(idxs, fields_of(arg))) for arg in args]
            return Reorder(MapJoin(op, tuple(below)), idxs)
        case Reorder(Aggregate(op, init, arg, bound), idxs):
            inner = fields_of(arg)
            if is_subsequence(intersect(inner, idxs), idxs):
                return None
            return Reorder(Aggregate(op, init, Reorder(arg, with_subsequence(idxs, inner)), bound), idxs)
        case _:
            return None
