"""Pass: push relabels and reorders down to the leaves."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar, cast

from pyfinch.algebra.term import Term
from pyfinch.logic.nodes import (
    Aggregate,
    Alias,
    Deferred,
    Field,
    Immediate,
    MapJoin,
    Plan,
    Relabel,
    Reorder,
    Table,
    fields,
)
from pyfinch.schedule.common import (
    Fields,
    FieldsOf,
    field_finder,
    intersect,
    is_subsequence,
    with_subsequence,
)

__all__ = ["push_expression", "push_fields"]

T = TypeVar("T", bound=Term)
_LEAVES = (Field, Immediate, Deferred, Alias)


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
    return cast(T, _Ordering(fields_of)(_Naming(fields_of)(node)))


# A term to push into, and the names, or the order, that its fields are to have; None where it keeps its own.
_Key = tuple[Any, Fields | None]
_Built = Callable[[Sequence[Any]], Term]


class _Push:
    """Builds each term once for each way in which it is used; iterates, as terms can be deep."""

    def __init__(self, fields_of: FieldsOf) -> None:
        self.fields_of = fields_of

    def __call__(self, root: Term) -> Term:
        done: dict[_Key, Term] = {}
        plans: dict[_Key, tuple[list[_Key], _Built]] = {}
        stack: list[_Key] = [(root, None)]
        while stack:
            key = stack[-1]
            if key in done:
                stack.pop()
                continue
            plan = plans.get(key)
            if plan is None:
                term, wanted = key
                if isinstance(term, _LEAVES) and wanted is None:
                    done[stack.pop()] = term
                    continue
                plan = plans[key] = self.plan(term, wanted)
                missing = [part for part in plan[0] if part not in done]
                if missing:
                    stack.extend(missing)
                    continue
            parts, build = plan
            done[stack.pop()] = build([done[part] for part in parts])
        return done[root, None]

    def plan(self, term: Any, wanted: Fields | None) -> tuple[list[_Key], _Built]:
        """What a term is made of, and how."""
        raise NotImplementedError

    def same(self, arg: Any, wanted: Fields) -> tuple[list[_Key], _Built]:
        """What stands below a relabel or a reorder, which gives it its names or its order."""
        return [(arg, wanted)], lambda made: made[0]

    def inside(self, term: Term) -> tuple[list[_Key], _Built]:
        """A term that keeps its fields."""
        return [(child, None) for child in term.children], term.with_children


class _Naming(_Push):
    """Pushes relabels."""

    def plan(self, term: Any, wanted: Fields | None) -> tuple[list[_Key], _Built]:
        if wanted is None:
            return self.same(term.arg, term.idxs) if isinstance(term, Relabel) else self.inside(term)
        match term:
            case MapJoin(op, args):
                names = dict(zip(self.fields_of(term), wanted, strict=True))
                parts = [(arg, _renamed(self.fields_of(arg), names)) for arg in args]
                return parts, lambda made: MapJoin(op, tuple(made))
            case Aggregate(op, init, arg, idxs):
                names = dict(zip(self.fields_of(term), wanted, strict=True))
                # A bound field must not be caught by a new name that equals its own.
                bound = {idx: _apart(idx, wanted) for idx in idxs}
                apart = _renamed(idxs, bound)
                inner = _renamed(self.fields_of(arg), names | bound)
                return [(arg, inner)], lambda made: Aggregate(op, init, made[0], apart)
            case Relabel(arg, _):
                return self.same(arg, wanted)
            case Reorder(arg, idxs):
                names = dict(zip(idxs, wanted, strict=True))
                dropped = {idx: _apart(idx, wanted) for idx in self.fields_of(arg) if idx not in names}
                inner = _renamed(self.fields_of(arg), names | dropped)
                return [(arg, inner)], lambda made: Reorder(made[0], wanted)
            case Table(tensor, _):
                return [], lambda made: Table(tensor, wanted)
            case Immediate():
                return [], lambda made: term
            case _:
                return [(term, None)], lambda made: Relabel(made[0], wanted)


class _Ordering(_Push):
    """Pushes reorders: tells what is below one in which order its fields are wanted."""

    def plan(self, term: Any, wanted: Fields | None) -> tuple[list[_Key], _Built]:
        if wanted is None:
            return self.same(term.arg, term.idxs) if isinstance(term, Reorder) else self.inside(term)
        match term:
            case Reorder(arg, _):
                return self.same(arg, wanted)
            case MapJoin(op, args):
                parts = [(arg, intersect(wanted, self.fields_of(arg))) for arg in args]
                return parts, lambda made: Reorder(MapJoin(op, tuple(made)), wanted)
            case Aggregate(op, init, arg, bound):
                inner = self.fields_of(arg)
                order = None
                if not is_subsequence(intersect(inner, wanted), wanted):
                    order = with_subsequence(wanted, inner)
                return [(arg, order)], lambda made: Reorder(Aggregate(op, init, made[0], bound), wanted)
            case _:
                return [(term, None)], lambda made: Reorder(made[0], wanted)


def _renamed(idxs: Iterable[Field], names: Mapping[Field, Field]) -> Fields:
    return tuple([names.get(idx, idx) for idx in idxs])


def _apart(idx: Field, others: Fields) -> Field:
    """The field, under another name if it is one of the others."""
    while idx in others:
        idx = Field(idx.name + "'")
    return idx
