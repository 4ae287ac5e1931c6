"""The JSON form of Logic: nested lists, the kind of node first, as recorded from Finch.jl.

The names in a recording are numbered by first appearance (``A0``, ``A1``, …, ``i0``, ``i1``, …), so
programs that differ in names only are equal after `numbered`. A format that a program asks for is ``["format", text]``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from pyfinch.algebra.dtypes import from_julia_name, julia_name
from pyfinch.algebra.errors import ParseError
from pyfinch.algebra.operator import Operator
from pyfinch.algebra.operators import get
from pyfinch.algebra.term import preorder
from pyfinch.formats.format import Format, format
from pyfinch.logic.nodes import (
    Aggregate,
    Alias,
    Deferred,
    Field,
    Immediate,
    LogicNode,
    MapJoin,
    Plan,
    Produces,
    Query,
    Reformat,
    Relabel,
    Reorder,
    Subquery,
    Table,
)
from pyfinch.logic.rewrite import Postwalk, Rewrite
from pyfinch.logic.text import with_arity

__all__ = ["from_json", "numbered", "to_json"]

_BUILD: dict[str, Callable[..., LogicNode]] = {
    "plan": lambda *bodies: Plan(bodies),
    "query": Query,
    "produces": lambda *args: Produces(args),
    "table": lambda tensor, *idxs: Table(tensor, idxs),
    "mapjoin": lambda op, *args: MapJoin(with_arity(op, len(args)), args),
    "aggregate": lambda op, init, arg, *idxs: Aggregate(op, init, arg, idxs),
    "reorder": lambda arg, *idxs: Reorder(arg, idxs),
    "relabel": lambda arg, *idxs: Relabel(arg, idxs),
    "reformat": Reformat,
    "subquery": Subquery,
}
_KIND: dict[type, str] = {
    Plan: "plan",
    Query: "query",
    Produces: "produces",
    Table: "table",
    MapJoin: "mapjoin",
    Aggregate: "aggregate",
    Reorder: "reorder",
    Relabel: "relabel",
    Reformat: "reformat",
    Subquery: "subquery",
}


def from_json(form: list[Any], types: Mapping[str, Any] | None = None) -> LogicNode:
    """The node that a JSON form stands for.

    Parameters
    ----------
    form
        Nested lists; a tensor ``["tensor", name]`` becomes ``Deferred(name, types[name])``.
    types
        The type of each tensor (an ftype); None for those not in it.

    Raises
    ------
    ParseError
        If a list is not a node.
    """
    kinds = types or {}
    made: dict[int, LogicNode] = {}
    stack: list[tuple[list[Any], bool]] = [(form, False)]
    while stack:
        item, ready = stack.pop()
        if not isinstance(item, list) or not item:
            raise ParseError(f"{item!r} is not the JSON form of a Logic node")
        if item[0] in _BUILD:
            if ready:
                made[id(item)] = _BUILD[item[0]](*[made[id(part)] for part in item[1:]])
            else:
                stack.append((item, True))
                stack.extend((part, False) for part in item[1:])
        else:
            made[id(item)] = _leaf(item, kinds)
    return made[id(form)]


def _leaf(item: list[Any], types: Mapping[str, Any]) -> LogicNode:
    match item:
        case ["alias", str(name)]:
            return Alias(name)
        case ["field", str(name)]:
            return Field(name)
        case ["tensor", str(name)]:
            return Deferred(name, types.get(name))
        case ["format", str(text)]:
            return Immediate(format(text))
        case ["op", str(name)]:
            return Immediate(get(name))
        case ["lit", value, str(kind)]:
            dtype = from_julia_name(kind)
            if isinstance(value, list):
                return Immediate(dtype.type(complex(*[float(part) for part in value])))
            return Immediate(dtype.type(value))
        case _:
            raise ParseError(f"{item!r} is not the JSON form of a Logic node")


def to_json(node: LogicNode) -> list[Any]:
    """The JSON form of a node; what is shared in the node is one list object in several places."""
    made: dict[LogicNode, list[Any]] = {}
    stack = [node]
    while stack:
        item = stack[-1]
        if item in made:
            stack.pop()
            continue
        kind = _KIND.get(type(item))
        if kind is None:
            made[stack.pop()] = _leaf_form(item)
            continue
        missing = [child for child in item.children if child not in made]
        if missing:
            stack.extend(missing)  # type: ignore[arg-type]
            continue
        made[stack.pop()] = [kind, *[made[child] for child in item.children]]  # type: ignore[index]
    return made[node]


def _leaf_form(node: LogicNode) -> list[Any]:
    match node:
        case Alias(name):
            return ["alias", name]
        case Field(name):
            return ["field", name]
        case Deferred(expr, _):
            return ["tensor", expr]
        case Immediate(Operator() as op):
            return ["op", op.symbol]
        case Immediate(np.generic() as value):
            if value.dtype.kind == "c":
                return ["lit", [_number(value.real), _number(value.imag)], julia_name(value.dtype)]
            return ["lit", _number(value), julia_name(value.dtype)]
        case Immediate(Format() as fmt):
            return ["format", str(fmt)]
        case Immediate(value):
            return ["opaque", type(value).__name__]
        case _:
            raise TypeError(f"{type(node).__name__} has no JSON form")


def _number(value: Any) -> Any:
    plain = value.item()
    if isinstance(plain, float) and (plain != plain or plain in (float("inf"), float("-inf"))):
        return "NaN" if plain != plain else "Inf" if plain > 0 else "-Inf"
    return plain


def numbered(node: LogicNode) -> LogicNode:
    """The node with its aliases called A0, A1, … and its fields i0, i1, … by first appearance in its text."""
    names: dict[LogicNode, LogicNode] = {}
    aliases = fields = 0
    for term in preorder(node):
        if isinstance(term, Alias):
            names[term] = Alias(f"A{aliases}")
            aliases += 1
        elif isinstance(term, Field):
            names[term] = Field(f"i{fields}")
            fields += 1
    return Rewrite(Postwalk(names.get))(node)
