"""The text form of the Loop language: valid inside Finch.jl's ``@finch begin … end``, and read back exactly.

Types are not written: tensors and run-time values get theirs from ``bindings`` (see `bindings_of`), calls from
their operators. A Julia literal carries its dtype: ``0.5`` is float64, ``3`` int64, ``Float32(0.5)``, ``Int8(3)``.
Expressions are DAGs: where a statement's would be long as a tree, its shared parts are named by a ``let`` of
``_1``, ``_2``, …, which is an abbreviation in the text only. Names of indices, scalars and tensors must differ.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from pyfinch.algebra.carriers import CastOperator, ValueOperator
from pyfinch.algebra.dtypes import julia_name
from pyfinch.algebra.errors import PyFinchError
from pyfinch.algebra.operators import Operator, UserOperator, get
from pyfinch.algebra.term import Term, postorder
from pyfinch.loops.nodes import (
    Access,
    Assign,
    Block,
    Call,
    Declare,
    Define,
    Freeze,
    Index,
    Literal,
    Loop,
    LoopNode,
    Sieve,
    Thaw,
    Value,
    Variable,
    Yield,
)
from pyfinch.loops.numbers import number_text
from pyfinch.loops.reader import ASSIGNMENTS, CARRIERS, FOLDS, INFIX, parse

__all__ = ["bindings_of", "parse", "to_text"]

_ALWAYS_BRACKETED: Final = ("&", "|", "<<", ">>", "^")
_TREE_LIMIT: Final = 200  # nodes of one statement's expressions up to which they are written as trees
_NAME: Final = re.compile(r"(?!_\d+\Z)[^\W\d]\w*\Z")
_KEYWORDS: Final = frozenset(
    re.findall(
        r"\S+",
        "_ baremodule begin break catch const continue do else elseif end export false finally for function "
        "global if import let local macro module quote return struct true try using while NaN Inf var",
    )
)


def bindings_of(node: LoopNode) -> dict[str, Any]:
    """What `parse` needs to read the node's text: types of tensors and values, users' operators, by name."""
    return _Names(node).bindings


class _Names:
    """The names that a text uses: of tensors and values, and of operators that have no text of their own."""

    def __init__(self, node: LoopNode) -> None:
        self.bindings: dict[str, Any] = {}
        self.operators: dict[Operator, str] = {}
        own: list[UserOperator] = []
        for term in postorder(node):
            match term:
                case Variable(name, kind):
                    if not isinstance(kind, np.dtype):
                        self.bindings[name] = kind
                case Value(name, dtype):
                    self.bindings[name] = dtype
                case Call(UserOperator() as op, _, _) | Assign(_, UserOperator() as op, _):
                    own.append(op)
        for op in dict.fromkeys(own):
            name, count = op.name, 1
            while name in self.bindings or _is_known(name):
                count += 1
                name = f"{op.name}_{count}"
            self.bindings[name] = op
            self.operators[op] = name

    def operator(self, op: Operator, arity: int) -> str:
        """The text of an operator before this many arguments."""
        match op:
            case ValueOperator():
                return f"{op.name}({number_text(op.value)})"
            case UserOperator():
                return name_text(self.operators[op])
        return op.symbol if get(op.symbol, arity if op.arity != -1 else -1) is op else op.name


def _is_known(name: str) -> bool:
    try:
        get(name)
    except PyFinchError:
        return False
    return True


def name_text(name: str) -> str:
    """A name; one that Julia would not take as it is becomes ``var"…"``."""
    return (
        name
        if _NAME.match(name) and name not in (*_KEYWORDS, *CARRIERS)
        else f"var{json.dumps(name, ensure_ascii=False)}"
    )


# ---------------------------------------------------------------------------------------------------- printing


def to_text(node: LoopNode) -> str:
    """The text of a program, a statement or an expression.

    Examples
    --------
    >>> print(parse("if a < 3; let x = max(a, 2); return x; end; end", {"a": np.dtype("int64")}))
    if a < 3
        let x = max(a, 2)
            return x
        end
    end
    """
    return _Printer(node).print(node)


class _Printer:
    def __init__(self, node: LoopNode) -> None:
        self.names = _Names(node)
        self.count = 0

    def print(self, root: LoopNode) -> str:
        if not _is_statement(root):
            return self.expression(root, {})
        lines: list[str] = []
        stack: list[tuple[int, LoopNode | str]] = [(0, part) for part in reversed(_parts(root))]
        while stack:
            depth, item = stack.pop()
            if isinstance(item, str):
                lines.append("    " * depth + item)
                continue
            short, head = self.abbreviations(item)
            if head:
                lines += ["    " * depth + line for line in head]
                stack.append((depth, "end"))
                depth += 1
            first, body = self.statement(item, short)
            lines.append("    " * depth + first)
            if body is not None:
                stack.append((depth, "end"))
                stack.extend((depth + 1, part) for part in reversed(body))
        return "\n".join(lines)

    def statement(self, node: LoopNode, short: Mapping[Term, str]) -> tuple[str, Sequence[LoopNode] | None]:
        """A statement's first line, and the statements that stand under it, if it has an ``end``."""
        match node:
            case Loop(Index(name), extent, body):
                return f"for {name_text(name)} = {self.extent(extent, short)}", _parts(body)
            case Sieve(cond, body):
                return f"if {self.expression(cond, short)}", _parts(body)
            case Define(Variable(name, _), rhs, body):
                return f"let {name_text(name)} = {self.expression(rhs, short)}", _parts(body)
            case Block(bodies):
                return "begin", bodies
            case Assign(lhs, op, rhs):
                symbol = self.names.operator(op, 2)
                word = op.name if symbol in INFIX else symbol  # <<>>>= would read as something else
                sign = f"{symbol}=" if symbol in ASSIGNMENTS else f"<<{word}>>="
                sign = "=" if op.name == "overwrite" else sign
                return f"{self.expression(lhs, short)} {sign} {self.expression(rhs, short)}", None
            case Declare(Variable(name, _), init):
                return f"{name_text(name)} .= {self.expression(init, short)}", None
            case Freeze(Variable(name, _)):
                return f"@freeze({name_text(name)})", None
            case Thaw(Variable(name, _)):
                return f"@thaw({name_text(name)})", None
            case Yield(args):
                texts = [self.expression(arg, short) for arg in args]
                return f"return {texts[0] if len(texts) == 1 else '(' + ', '.join(texts) + ')'}", None
        raise TypeError(f"not a statement: {node!r}")

    def extent(self, extent: LoopNode | None, short: Mapping[Term, str]) -> str:
        match extent:
            case None:
                return "_"
            case Literal(size) if size.dtype == np.int64:
                return f"0:{int(size) - 1}"
        return f"0:{self.expression(extent, short, INFIX['*'])} - 1"

    def abbreviations(self, node: LoopNode) -> tuple[dict[Term, str], list[str]]:
        """Names for shared parts of a statement's own expressions, and the lines of the ``let`` that makes them."""
        own = _own_expressions(node)
        size: dict[Term, int] = {}
        parents: dict[Term, int] = dict.fromkeys(own, 1)
        for term in postorder(*own):
            size[term] = 1 + sum(size[child] for child in term.children)
            for child in term.children:
                parents[child] = parents.get(child, 0) + 1
        short: dict[Term, str] = {}
        if sum(size[term] for term in own) <= _TREE_LIMIT:
            return short, []
        lines: list[str] = []
        for term in size:
            if isinstance(term, Call) and parents[term] > 1:
                self.count += 1
                name = f"_{self.count}"
                lines.append(f"{'    ' if lines else 'let '}{name} = {self.expression(term, short)}")
                short[term] = name
        return short, [line + "," for line in lines[:-1]] + lines[-1:]

    def expression(self, root: LoopNode, short: Mapping[Term, str], bind: int = 0) -> str:
        """An expression, in brackets if it binds no tighter than ``bind``."""
        out: list[str] = []
        stack: list[str | tuple[LoopNode, int]] = [(root, bind)]
        while stack:
            item = stack.pop()
            if isinstance(item, str):
                out.append(item)
                continue
            node, level = item
            if node in short:
                out.append(short[node])
                continue
            match node:
                case Literal(value):
                    text = number_text(value)
                    out.append(f"({text})" if level and text.startswith("-") else text)
                case Value(name, _) | Index(name) | Variable(name, _):
                    out.append(name_text(name))
                case Access(Variable(name, _), idxs):
                    stack.extend(reversed([f"{name_text(name)}[", *_separated(idxs), "]"]))
                case Call(op, args, _):
                    stack.extend(reversed(self.call(op, args, level)))
                case _:
                    raise TypeError(f"not an expression: {node!r}")
        return "".join(out)

    def call(self, op: Operator, args: tuple[LoopNode, ...], level: int) -> list[str | tuple[LoopNode, int]]:
        """The pieces of a call."""
        match op:
            case CastOperator():
                # Julia's own form would read as a literal of that type if its argument is one.
                head = op.symbol if isinstance(args[0], Literal) else julia_name(op.dtype)
            case _:
                head = self.names.operator(op, len(args))
        if head not in INFIX or not (len(args) == 2 or (len(args) > 2 and head in FOLDS)):
            return [f"{head}(", *_separated(args), ")"]
        bind = INFIX[head]
        inner = max(INFIX.values()) + 1 if head in _ALWAYS_BRACKETED else bind
        pieces: list[str | tuple[LoopNode, int]] = []
        for arg in args:
            pieces += [f" {head} "] if pieces else []
            pieces.append((arg, inner))
        if level >= bind or (level and head in _ALWAYS_BRACKETED):
            return ["(", *pieces, ")"]
        return pieces


def _separated(nodes: tuple[LoopNode, ...]) -> list[str | tuple[LoopNode, int]]:
    pieces: list[str | tuple[LoopNode, int]] = []
    for node in nodes:
        pieces += [", "] if pieces else []
        pieces.append((node, 0))
    return pieces


def _is_statement(node: LoopNode) -> bool:
    return isinstance(node, Assign | Block | Declare | Define | Freeze | Loop | Sieve | Thaw | Yield)


def _parts(body: LoopNode) -> tuple[LoopNode, ...]:
    """The statements of a body; a block of one statement is not that statement."""
    return body.bodies if isinstance(body, Block) and len(body.bodies) != 1 else (body,)


def _own_expressions(node: LoopNode) -> tuple[LoopNode, ...]:
    """The expressions that a statement evaluates itself."""
    match node:
        case Loop(_, LoopNode() as extent, _):
            return (extent,)
        case Sieve(cond, _):
            return (cond,)
        case Define(_, rhs, _) | Declare(_, rhs):
            return (rhs,)
        case Assign(lhs, _, rhs):
            return (lhs, rhs)
        case Yield(args):
            return args
    return ()
