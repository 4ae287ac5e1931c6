"""The text form of Logic: print a program, read it back, exactly.

The text is what Finch.jl prints for the same program. Operators are written by their Julia names, numbers
as Julia literals (``1.0``, ``2.5f0``, ``Int32(7)``, ``true``, ``-Inf``). Anything else that a program may
hold (a tensor, a format, a type) is written between backticks and read back through ``bindings``, see
`bindings_of`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from pyfinch.algebra.carriers import CastOperator, ValueOperator, choose, initwrite, known_fill
from pyfinch.algebra.dtypes import from_julia_name, is_supported, julia_name
from pyfinch.algebra.errors import DTypeError, ParseError, PyFinchError
from pyfinch.algebra.operator import Operator
from pyfinch.algebra.operators import get
from pyfinch.algebra.term import Term, postorder
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

__all__ = ["bindings_of", "number_text", "parse", "parse_number", "to_text", "with_arity"]

_WORDS: dict[type, str] = {
    Aggregate: "aggregate",
    Alias: "alias",
    Deferred: "deferred",
    Field: "field",
    Immediate: "immediate",
    MapJoin: "mapjoin",
    Plan: "plan",
    Produces: "produces",
    Query: "query",
    Reformat: "reformat",
    Relabel: "relabel",
    Reorder: "reorder",
    Subquery: "subquery",
    Table: "table",
}
_PLAIN = re.compile(r"[^\W\d]\w*[!']*\Z")
_TOKEN = re.compile(r"""\s*([(),]|`[^`]*`|"(?:[^"\\]|\\.)*"|[^\s(),`"]+)""")


def to_text(node: LogicNode) -> str:
    """The text of a node; a part that is shared is written wherever it stands."""
    names = _opaque_names(node)
    out: list[str] = []
    stack: list[LogicNode | str] = [node]
    while stack:
        item = stack.pop()
        if isinstance(item, str):
            out.append(item)
            continue
        head = _WORDS[type(item)]
        match item:
            case Immediate(value):
                out.append(f"{head}({_value_text(value, names)})")
            case Deferred(expr, kind):
                out.append(f"{head}({_name_text(expr)}, {_value_text(kind, names)})")
            case Field(name) | Alias(name):
                out.append(f"{head}({_name_text(name)})")
            case _:
                parts: list[Any] = list(item.children)
                if isinstance(item, MapJoin):
                    parts[0] = _map_operator(item, names)
                out.append(f"{head}(")
                stack.append(")")
                for place, child in enumerate(reversed(parts)):
                    if place:
                        stack.append(", ")
                    stack.append(child)
    return "".join(out)


def _map_operator(node: MapJoin, names: Mapping[int, tuple[Any, str]]) -> LogicNode | str:
    """The operator of a map-join, by the symbol that means it before this many arguments."""
    match node.op:
        case Immediate(Operator(symbol=symbol) as op) if _operator(symbol, len(node.args)) is op:
            return f"immediate({symbol})"
        case op:
            return op


def bindings_of(node: LogicNode) -> dict[str, Any]:
    """The objects that the text of a node names between backticks, by that name; what `parse` needs."""
    return {name[1:-1]: value for value, name in _opaque_names(node).values()}


def _opaque_names(node: LogicNode) -> dict[int, tuple[Any, str]]:
    """The values that have no text of their own, and the name that each gets, by identity."""
    found: dict[int, tuple[Any, str]] = {}
    taken: set[str] = set()
    for term in postorder(node):
        if isinstance(term, Immediate):
            value = term.value
        elif isinstance(term, Deferred):
            value = term.type
        else:
            continue
        if id(value) in found or _own_text(value) is not None:
            continue
        base = str(getattr(value, "text", None) or getattr(value, "name", None) or type(value).__name__)
        base = base.replace("`", "'")
        name, count = base, 1
        while name in taken:
            count += 1
            name = f"{base}#{count}"
        taken.add(name)
        found[id(value)] = (value, f"`{name}`")
    return found


def _value_text(value: Any, names: Mapping[int, tuple[Any, str]]) -> str:
    own = _own_text(value)
    return names[id(value)][1] if own is None else own


def _own_text(value: Any) -> str | None:
    """The text that reads back as this value without any binding; None if there is none."""
    match value:
        case None:
            return "nothing"
        case np.generic() if is_supported(value.dtype):
            return number_text(value)
        case np.dtype() if is_supported(value):
            return julia_name(value)
        case CastOperator():
            return value.symbol
        case ValueOperator():
            return f"{value.symbol}({number_text(value.value)})"
        case Operator():
            return next((text for text in (value.symbol, value.name) if _operator(text) is value), None)
        case _:
            return None


def _operator(text: str, arity: int | None = None) -> Operator | None:
    """The operator of a name or symbol; None if there is none."""
    try:
        return get(text, arity)
    except PyFinchError:
        return None


def with_arity(op: LogicNode, count: int) -> LogicNode:
    """The operator that a symbol stands for before this many arguments: ``-`` is a sign or a difference."""
    match op:
        case Immediate(Operator(symbol=symbol, arity=arity)) if arity not in (count, -1):
            other = _operator(symbol, count)
            if other is not None and other.arity == count:
                return Immediate(other)
    return op


def _name_text(name: str) -> str:
    return name if _PLAIN.match(name) else json.dumps(name)


def number_text(value: np.generic) -> str:
    """A NumPy scalar as a Julia literal that has its type.

    Examples
    --------
    >>> [number_text(x) for x in (np.float64(1), np.float32(0.5), np.int8(-3), np.bool_(True))]
    ['1.0', '0.5f0', 'Int8(-3)', 'true']
    """
    dtype = value.dtype
    match dtype.name:
        case "bool":
            return "true" if value else "false"
        case "int64":
            return str(int(value))
        case "float64":
            return _float_text(value, "")
        case "float32":
            return _float_text(value, "f0")
        case "complex64" | "complex128":
            real, imag = np.real(value), np.imag(value)
            return f"{julia_name(dtype)}({number_text(real)}, {number_text(imag)})"
        case _:
            return f"{julia_name(dtype)}({int(value)})"


def _float_text(value: Any, suffix: str) -> str:
    kind = "32" if suffix else ""
    if np.isnan(value):
        return f"NaN{kind}"
    if np.isinf(value):
        return f"Inf{kind}" if value > 0 else f"-Inf{kind}"
    text = repr(value.item()) if not suffix else np.format_float_positional(value, trim="0")
    if suffix and len(text) > 16:
        text = np.format_float_scientific(value, trim="0")
    if "e" in text and suffix:
        return text.replace("e", "f")
    return text + suffix


_SPECIAL: dict[str, Any] = {
    "true": np.bool_(True),
    "false": np.bool_(False),
    "NaN": np.float64("nan"),
    "NaN32": np.float32("nan"),
    "Inf": np.float64("inf"),
    "-Inf": np.float64("-inf"),
    "Inf32": np.float32("inf"),
    "-Inf32": np.float32("-inf"),
}
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)(?:([ef])([+-]?\d+))?\Z")


def parse_number(text: str) -> Any:
    """The NumPy scalar of a bare Julia literal (``1``, ``1.0``, ``0.5f0``, ``true``, ``-Inf``), or None."""
    if text in _SPECIAL:
        return _SPECIAL[text]
    found = _NUMBER.match(text)
    if not found:
        return None
    digits, mark, _ = found.groups()
    if mark == "f":
        return np.float32(text.replace("f", "e"))
    if mark == "e" or "." in digits:
        return np.float64(text)
    value = int(text)
    return np.int64(value) if value < 2**63 else np.uint64(value)


_CARRIERS: dict[str, Callable[..., Operator]] = {"initwrite": initwrite, "choose": choose, "known_fill": known_fill}


class _Reader:
    """The tokens of a text, and how values are read from them."""

    def __init__(self, text: str, bindings: Mapping[str, Any]) -> None:
        self.text = text
        self.bindings = bindings
        self.place = 0

    def error(self, message: str) -> ParseError:
        line = self.text.count("\n", 0, self.place) + 1
        return ParseError(f"{message} at character {self.place} (line {line}) of the Logic text")

    def peek(self) -> str:
        found = _TOKEN.match(self.text, self.place)
        return found.group(1) if found else ""

    def take(self, wanted: str | None = None) -> str:
        found = _TOKEN.match(self.text, self.place)
        token = found.group(1) if found else ""
        if not token or (wanted is not None and token != wanted):
            raise self.error(f"expected {wanted or 'more text'!r}, found {token or 'the end'!r}")
        assert found is not None
        self.place = found.end()
        return token

    def name(self) -> str:
        token = self.take()
        if token.startswith('"'):
            return str(json.loads(token))
        if not _PLAIN.match(token):
            raise self.error(f"{token!r} is not a name")
        return token

    def value(self) -> Any:
        token = self.take()
        if token.startswith("`"):
            return self.bound(token[1:-1])
        if token == "nothing":
            return None
        number = parse_number(token)
        if number is not None:
            return number
        try:
            dtype = from_julia_name(token)
        except DTypeError:
            return self.operator(token)
        if self.peek() != "(":
            return dtype
        parts = self.arguments()
        if dtype.kind == "c" and len(parts) == 2:
            made = np.zeros((), dtype)
            made.real, made.imag = parts
            return made[()]
        if len(parts) != 1:
            raise self.error(f"{token} takes one number, got {len(parts)}")
        return dtype.type(int(parts[0]) if dtype.kind in "iu" else parts[0])

    def arguments(self) -> list[Any]:
        self.take("(")
        parts = [self.value()]
        while self.peek() == ",":
            self.take()
            parts.append(self.value())
        self.take(")")
        return parts

    def operator(self, symbol: str) -> Any:
        if symbol in self.bindings:
            return self.bindings[symbol]
        if self.peek() == "(" and symbol == "cast":
            self.take()
            symbol = f"cast({self.take()})"
            self.take(")")
        elif self.peek() == "(" and symbol in _CARRIERS:
            return _CARRIERS[symbol](*self.arguments())
        found = _operator(symbol)
        if found is None:
            raise self.error(f"no operator is called {symbol!r}, and no binding of that name is given,")
        return found

    def bound(self, name: str) -> Any:
        if name not in self.bindings:
            raise self.error(f"`{name}` is not in the bindings {sorted(self.bindings)}")
        return self.bindings[name]


def parse(text: str, bindings: Mapping[str, Any] | None = None) -> LogicNode:
    """Read the text of a Logic node.

    Parameters
    ----------
    text
        What ``str(node)`` gives.
    bindings
        The objects that the text names between backticks, and user-defined operators by symbol.

    Raises
    ------
    ParseError
        Where the text does not follow the grammar, names something unknown, or a node has wrong parts.

    Examples
    --------
    >>> node = parse("plan(query(alias(A), aggregate(immediate(+), immediate(0.0), alias(B), field(i))))")
    >>> node.bodies[0].rhs.init.value
    np.float64(0.0)
    """
    reader = _Reader(text, bindings or {})
    node = _read(reader)
    if reader.peek():
        raise reader.error(f"unexpected {reader.peek()!r}")
    return node


def _read(reader: _Reader) -> LogicNode:
    """One node; the open parentheses are on a stack of our own."""
    heads: list[str] = []
    parts: list[list[LogicNode]] = []
    while True:
        word = reader.take()
        if word not in _BUILD:
            raise reader.error(f"{word!r} is not a kind of Logic node")
        reader.take("(")
        leaf = _read_leaf(word, reader)
        if leaf is None:
            heads.append(word)
            parts.append([])
            if reader.peek() != ")":
                continue
        while True:
            if leaf is not None:
                if not heads:
                    return leaf
                parts[-1].append(leaf)
                if reader.peek() == ",":
                    reader.take()
                    break
            reader.take(")")
            word = heads.pop()
            leaf = _build(word, parts.pop(), reader)


def _read_leaf(word: str, reader: _Reader) -> LogicNode | None:
    """The rest of a node that holds no nodes, with its closing parenthesis; None for the other nodes."""
    match word:
        case "immediate":
            made: LogicNode = Immediate(reader.value())
        case "field":
            made = Field(reader.name())
        case "alias":
            made = Alias(reader.name())
        case "deferred":
            name = reader.name()
            reader.take(",")
            made = Deferred(name, reader.value())
        case _:
            return None
    reader.take(")")
    return made


def _build(word: str, parts: list[LogicNode], reader: _Reader) -> LogicNode:
    try:
        return _BUILD[word](*parts)
    except TypeError as error:
        raise reader.error(f"{word} with {len(parts)} parts: {error}") from None


def _with_fields(kind: Callable[..., LogicNode], lead: int) -> Callable[..., LogicNode]:
    def build(*parts: Term) -> LogicNode:
        if len(parts) < lead:
            raise TypeError(f"needs at least {lead}")
        for part in parts[lead:]:
            if not isinstance(part, Field):
                raise TypeError(f"{part} is not a field")
        return kind(*parts[:lead], tuple(parts[lead:]))

    return build


def _map_join(op: LogicNode, *args: LogicNode) -> MapJoin:
    return MapJoin(with_arity(op, len(args)), args)


def _bind(kind: Callable[..., LogicNode]) -> Callable[..., LogicNode]:
    def build(lhs: LogicNode, rhs: LogicNode) -> LogicNode:
        if not isinstance(lhs, Alias):
            raise TypeError(f"{lhs} is not an alias")
        return kind(lhs, rhs)

    return build


_BUILD: dict[str, Callable[..., LogicNode]] = {
    "aggregate": _with_fields(Aggregate, 3),
    "alias": Alias,
    "deferred": Deferred,
    "field": Field,
    "immediate": Immediate,
    "mapjoin": _map_join,
    "plan": lambda *bodies: Plan(bodies),
    "produces": lambda *args: Produces(args),
    "query": _bind(Query),
    "reformat": Reformat,
    "relabel": _with_fields(Relabel, 1),
    "reorder": _with_fields(Reorder, 1),
    "subquery": _bind(Subquery),
    "table": _with_fields(Table, 1),
}
