"""What several passes need: sub-sequences of fields, fresh names, the productions and fields of a plan."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import count

from pyfinch.algebra.term import Term, postorder
from pyfinch.logic.nodes import Aggregate, Alias, Field, LogicNode, Plan, Produces, Query, fields

Fields = tuple[Field, ...]
FieldsOf = Callable[[LogicNode], Fields]

__all__ = [
    "Fields",
    "FieldsOf",
    "Names",
    "field_finder",
    "intersect",
    "is_subsequence",
    "occurrences",
    "pointwise",
    "productions",
    "statements",
    "with_subsequence",
]


def intersect(a: Iterable[Field], b: Iterable[Field]) -> Fields:
    """The fields of ``a`` that are in ``b``, in the order of ``a``."""
    keep = set(b)
    return tuple([field for field in a if field in keep])


def is_subsequence(a: Fields, b: Fields) -> bool:
    """Whether ``b`` without some of its fields is ``a``."""
    return len(set(a)) == len(a) and intersect(b, a) == a


def with_subsequence(a: Fields, b: Fields) -> Fields:
    """``b``, its fields that are in ``a`` put in the order of ``a``, in the places that they had."""
    keep = set(a)
    rest = iter(intersect(a, b))
    return tuple([next(rest) if field in keep else field for field in b])


class Names:
    """Gives names that no alias and no field of some program has."""

    def __init__(self, program: LogicNode) -> None:
        self._taken = {term.name for term in postorder(program) if isinstance(term, (Alias, Field))}
        self._counts: dict[str, Iterator[int]] = {}

    def alias(self, like: str = "A") -> Alias:
        """A new alias whose name starts like this."""
        return Alias(self._new(like))

    def field(self, like: str = "i") -> Field:
        """A new field whose name starts like this."""
        return Field(self._new(like))

    def _new(self, like: str) -> str:
        numbers = self._counts.setdefault(like, count())
        while (name := f"{like}_{next(numbers)}") in self._taken:
            pass
        self._taken.add(name)
        return name


def statements(program: LogicNode) -> Iterator[LogicNode]:
    """The queries and productions of a program in the order in which they run, nested plans opened."""
    stack = [program]
    while stack:
        statement = stack.pop()
        if isinstance(statement, Plan):
            stack.extend(reversed(statement.bodies))
        else:
            yield statement


def productions(program: LogicNode) -> frozenset[Alias]:
    """The aliases that the first ``produces`` of a program names."""
    for statement in statements(program):
        if isinstance(statement, Produces):
            return frozenset(term for term in postorder(statement) if isinstance(term, Alias))
    return frozenset()


def field_finder(program: LogicNode) -> FieldsOf:
    """A function giving the fields of any expression over the aliases that a program binds."""
    bindings: dict[Alias, Fields] = {}
    memo: dict[LogicNode, Fields] = {}
    for statement in statements(program):
        if isinstance(statement, Query):
            bindings[statement.lhs] = fields(statement.rhs, bindings, memo)
    return lambda expr: fields(expr, bindings, memo)


def pointwise(expr: LogicNode) -> Iterator[Term]:
    """The distinct parts of an expression, those below a reduction left out; parents first."""
    seen: set[Term] = set()
    stack: list[Term] = [expr]
    while stack:
        term = stack.pop()
        if term not in seen:
            seen.add(term)
            yield term
            if term is expr or not isinstance(term, Aggregate):
                stack.extend(reversed(term.children))


def occurrences(roots: Iterable[LogicNode], limit: int) -> Mapping[LogicNode, int]:
    """How often each distinct part stands in some expressions written as trees, numbers cut at ``limit``."""
    roots = list(roots)
    times: dict[LogicNode, int] = {}
    for root in roots:
        times[root] = min(limit, times.get(root, 0) + 1)
    for term in reversed(list(postorder(*roots))):
        number = times[term]  # type: ignore[index]
        for child in term.children:
            times[child] = min(limit, times.get(child, 0) + number)  # type: ignore[index, call-overload]
    return times
