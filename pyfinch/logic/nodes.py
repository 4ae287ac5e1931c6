"""The Logic language: what to compute, in named fields.

Every node is a term (see `pyfinch.algebra.term`): built from equal parts it is the same object. An expression
has an ordered tuple of fields, `fields`; the *last* field is the outermost level and loop. The text of a
program (``str(node)``, `pyfinch.logic.text`) reads back exactly.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from pyfinch.algebra.term import Term

__all__ = [
    "Aggregate",
    "Alias",
    "Deferred",
    "Field",
    "Immediate",
    "LogicNode",
    "MapJoin",
    "Plan",
    "Produces",
    "Query",
    "Reformat",
    "Relabel",
    "Reorder",
    "Subquery",
    "Table",
    "fields",
    "union",
]


class LogicNode(Term):
    """The base of the nodes of Logic."""

    __slots__ = ("_fields",)
    _fields: tuple[Field, ...]

    def __str__(self) -> str:
        from pyfinch.logic.text import to_text

        return to_text(self)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Immediate(LogicNode):
    """A value that is part of the program: a number (a NumPy scalar), an operator, a format, a tensor."""

    value: Any

    @classmethod
    def _canonical(cls, args: tuple[Any, ...]) -> tuple[Any, ...]:
        (value,) = args
        if isinstance(value, (bool, int, float, complex)) and not isinstance(value, np.generic):
            return (np.asarray(value)[()],)
        return args


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Deferred(LogicNode):
    """A value known by name and type only, given when the program runs: a tensor, or a scalar."""

    expr: str
    type: Any


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Field(LogicNode):
    """A named dimension."""

    name: str


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Alias(LogicNode):
    """The name of a query's result."""

    name: str


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Table(LogicNode):
    """A tensor with its modes named, in mode order."""

    tensor: LogicNode
    idxs: tuple[Field, ...]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class MapJoin(LogicNode):
    """``op`` applied pointwise; a field absent from an argument broadcasts."""

    op: LogicNode
    args: tuple[LogicNode, ...]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Aggregate(LogicNode):
    """Reduction of ``arg`` over ``idxs`` by ``op``, starting from ``init``, in any order."""

    op: LogicNode
    init: LogicNode
    arg: LogicNode
    idxs: tuple[Field, ...]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Reorder(LogicNode):
    """Permutes fields; may drop a field of size 1 and add one, of size 1."""

    arg: LogicNode
    idxs: tuple[Field, ...]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Relabel(LogicNode):
    """Renames fields, position by position."""

    arg: LogicNode
    idxs: tuple[Field, ...]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Reformat(LogicNode):
    """``arg`` stored in the format of ``tensor``."""

    tensor: LogicNode
    arg: LogicNode


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Subquery(LogicNode):
    """``arg``, bound to ``lhs`` where it stands; the same ``lhs`` always carries the same ``arg``."""

    lhs: Alias
    arg: LogicNode


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Query(LogicNode):
    """The statement that binds ``lhs`` to the value of ``rhs``."""

    lhs: Alias
    rhs: LogicNode


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Produces(LogicNode):
    """The statement that names the program's results."""

    args: tuple[LogicNode, ...]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Plan(LogicNode):
    """Statements in sequence."""

    bodies: tuple[LogicNode, ...]


def fields(
    expr: LogicNode,
    bindings: Mapping[Alias, tuple[Field, ...]] | None = None,
    memo: dict[LogicNode, tuple[Field, ...]] | None = None,
) -> tuple[Field, ...]:
    """The ordered fields of an expression; the last one is the outermost.

    Parameters
    ----------
    expr
        Any expression (not a statement).
    bindings
        The fields of the aliases that stand bare in it.
    memo
        What is known already under these bindings, and is added to.

    Raises
    ------
    KeyError
        If an alias stands bare in the expression and is not in ``bindings``.

    Examples
    --------
    >>> i, j = Field("i"), Field("j")
    >>> [f.name for f in fields(Relabel(Alias("A"), (i, j)))]
    ['i', 'j']
    """
    local = {} if memo is None else memo
    stack = [expr]
    while stack:
        node = stack[-1]
        if node in local:
            stack.pop()
            continue
        try:
            local[node] = node._fields
            stack.pop()
            continue
        except AttributeError:
            pass
        missing = [child for child in _field_sources(node) if child not in local]
        if missing:
            stack.extend(missing)
            continue
        local[stack.pop()] = found = _local_fields(node, local, bindings or {})
        if not bindings:
            object.__setattr__(node, "_fields", found)
    return local[expr]


def _field_sources(node: LogicNode) -> tuple[LogicNode, ...]:
    """The children whose fields decide the node's."""
    match node:
        case MapJoin(_, args):
            return args
        case Aggregate(_, _, arg, _) | Reformat(_, arg) | Subquery(_, arg):
            return (arg,)
        case _:
            return ()


def _local_fields(
    node: LogicNode,
    below: Mapping[LogicNode, tuple[Field, ...]],
    bindings: Mapping[Alias, tuple[Field, ...]],
) -> tuple[Field, ...]:
    match node:
        case Table(_, idxs) | Reorder(_, idxs) | Relabel(_, idxs):
            return idxs
        case MapJoin(_, args):
            return union(below[arg] for arg in args)
        case Aggregate(_, _, arg, idxs):
            return tuple([field for field in below[arg] if field not in idxs])
        case Reformat(_, arg) | Subquery(_, arg):
            return below[arg]
        case Alias():
            return bindings[node]
        case Immediate() | Deferred():
            return ()
        case _:
            raise TypeError(f"{type(node).__name__} is a statement and has no fields")


def union(tuples: Iterable[tuple[Field, ...]]) -> tuple[Field, ...]:
    """All fields of some tuples, in order of first appearance."""
    return tuple(dict.fromkeys([field for some in tuples for field in some]))
