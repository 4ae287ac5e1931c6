"""Reads the text form of the Loop language; `text` says what it is and prints it. Nothing here recurses."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from pyfinch.algebra.carriers import cast, choose, initwrite, known_fill
from pyfinch.algebra.dtypes import from_julia_name, is_supported
from pyfinch.algebra.errors import DTypeError, ParseError, PyFinchError
from pyfinch.algebra.operators import Operator, get
from pyfinch.formats.format import FType
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
from pyfinch.loops.numbers import DIGITS, TYPED, read_number
from pyfinch.loops.simplify import dtype_of

__all__ = ["ASSIGNMENTS", "CARRIERS", "FOLDS", "INFIX", "parse"]

#: Julia's infix operators and how tightly they bind.
INFIX: Final = {
    **dict.fromkeys(("==", "!=", "<", "<=", ">", ">="), 1),
    **dict.fromkeys(("+", "-", "|"), 2),
    **dict.fromkeys(("*", "/", "&"), 3),
    **dict.fromkeys(("<<", ">>"), 4),
    "^": 5,
}
#: The infix operators of which Julia reads a chain as one call.
FOLDS: Final = ("+", "*")
_OF_VALUE: Final[Mapping[str, Callable[..., Operator]]] = {
    "initwrite": initwrite,
    "choose": choose,
    "known_fill": known_fill,
}
#: Operators that carry a value or a dtype, which stands in brackets behind the name.
CARRIERS: Final = ("cast", *_OF_VALUE)
#: Operators that have an assignment of their own; others are written ``<<op>>=``.
ASSIGNMENTS: Final = ("+", "*", "-", "/", "&", "|")

_TOKEN: Final = re.compile(
    rf"""[ \t\r]*(?:\#[^\n]*)?(?:
        (?P<literal>{TYPED}|{DIGITS}|(?:true|false)\b)
      | (?P<quoted>var"(?:[^"\\]|\\.)*")
      | (?P<name>@?[^\W\d](?:\w|!(?!=))*)
      | (?P<sign>\.=|>>=|<<|>>|[=!<>+*/&|^-]=|[-+*/^&|~!<>=()\[\],:;\n])
      | (?P<end>\Z))""",
    re.VERBOSE,
)
_ABBREVIATION: Final = re.compile(r"_\d+\Z")


def parse(text: str, bindings: Mapping[str, Any] | None = None) -> LoopNode:
    """Read the text of a program or a statement.

    Parameters
    ----------
    text
        What ``str(program)`` gives.
    bindings
        By name: a tensor's ftype (or the tensor), a run-time value's dtype, a user's operator.

    Raises
    ------
    ParseError
        Where the text does not follow the grammar or names something unknown, and DTypeError where an operator
        does not take its arguments.

    Examples
    --------
    >>> from pyfinch.formats.format import format
    >>> vector = format("vector").specify("float64", 0.0)
    >>> print(parse("for i = _; y[i] += x[i]*2.0 end", {"x": vector, "y": vector}))
    for i = _
        y[i] += x[i] * 2.0
    end
    """
    return _Reader(text, bindings or {}).program()


@dataclass(slots=True)
class _Opened:
    """A statement whose ``end`` is still to come."""

    close: Callable[[list[LoopNode]], LoopNode]
    statements: list[LoopNode] = field(default_factory=list)
    hidden: dict[str, LoopNode | None] = field(default_factory=dict)  # what names meant outside


@dataclass(slots=True)
class _Bracket:
    """An expression under way: operands, and the infix operators that wait, each with how many follow it."""

    closing: str
    close: Callable[[list[LoopNode]], LoopNode]
    done: list[LoopNode] = field(default_factory=list)
    operands: list[LoopNode] = field(default_factory=list)
    waiting: list[tuple[str, int]] = field(default_factory=list)
    signs: list[str] = field(default_factory=list)


class _Reader:
    def __init__(self, text: str, bindings: Mapping[str, Any]) -> None:
        self.text, self.bindings = text, bindings
        self.names: dict[str, LoopNode] = {}
        self.place = self.next_place = 0
        self.kind, self.token = "", ""
        self.advance()

    # ------------------------------------------------------------------------------------------------ tokens

    def error(self, message: str) -> ParseError:
        line = self.text.count("\n", 0, self.place) + 1
        return ParseError(f"{message} at character {self.place} (line {line}) of the Loop text")

    def advance(self) -> str:
        """Step to the next token; the one that was at hand."""
        before = self.token
        found = _TOKEN.match(self.text, self.next_place)
        if found is None:
            self.place = self.next_place
            raise self.error(f"cannot read {self.text[self.place : self.place + 10].strip()!r}")
        self.kind = found.lastgroup or ""
        self.token = found.group(self.kind)
        self.place, self.next_place = found.start(self.kind), found.end()
        return before

    def take(self, wanted: str) -> str:
        if self.token != wanted or self.kind == "quoted":
            raise self.error(f"expected {wanted!r}, found {self.token or 'the end'!r}")
        return self.advance()

    def name(self) -> str:
        """A name, quoted or not."""
        if self.kind == "quoted":
            return str(json.loads(self.advance()[3:]))
        if self.kind != "name":
            raise self.error(f"expected a name, found {self.token or 'the end'!r}")
        return self.advance()

    def skip_lines(self) -> None:
        while self.token in ("\n", ";"):
            self.advance()

    # -------------------------------------------------------------------------------------------- statements

    def program(self) -> LoopNode:
        opened = [_Opened(_body)]
        while True:
            self.skip_lines()
            if self.kind == "end":
                if len(opened) > 1:
                    raise self.error(f"{len(opened) - 1} 'end' missing")
                return _body(opened[0].statements)
            if self.kind == "name" and self.token == "end":
                self.advance()
                if len(opened) == 1:
                    raise self.error("an 'end' too many")
                last = opened.pop()
                for name, meaning in last.hidden.items():
                    self.names.pop(name)
                    if meaning is not None:
                        self.names[name] = meaning
                opened[-1].statements.append(last.close(last.statements))
            else:
                made = self.statement()
                if isinstance(made, _Opened):
                    opened.append(made)
                    continue
                opened[-1].statements.append(made)
            if self.kind != "end" and self.token not in ("\n", ";", "end"):
                raise self.error(f"unexpected {self.token!r}")

    def statement(self) -> LoopNode | _Opened:
        if self.kind == "name":
            match self.token:
                case "for":
                    return self.loop()
                case "if":
                    self.advance()
                    cond = self.expression()
                    return _Opened(lambda parts: Sieve(cond, _body(parts)))
                case "let":
                    return self.let()
                case "begin":
                    self.advance()
                    return _Opened(lambda parts: Block(tuple(parts)))
                case "return":
                    self.advance()
                    return self.results()
                case "@freeze" | "@thaw":
                    kind = Freeze if self.advance() == "@freeze" else Thaw
                    self.take("(")
                    tensor = self.tensor(self.name())
                    self.take(")")
                    return kind(tensor)
        return self.assignment()

    def assignment(self) -> LoopNode:
        tensor = self.tensor(self.name())
        if self.token == ".=":
            self.advance()
            return Declare(tensor, self.expression())
        self.take("[")
        idxs = self.expressions("]")
        lhs = Access(tensor, tuple(idxs))
        if self.token == "<<":
            self.advance()
            op = self.operator_head(2)
            self.take(">>=")
        elif self.token == "=":
            self.advance()
            op = get("overwrite")
        elif self.token[:-1] in ASSIGNMENTS and self.token[-1:] == "=":
            op = get(self.advance()[:-1], 2)
        else:
            raise self.error(f"expected an assignment, found {self.token or 'the end'!r}")
        return Assign(lhs, op, self.expression())

    def loop(self) -> _Opened:
        self.advance()
        name = self.name()
        index = Index(name)
        self.take("=")
        extent: LoopNode | None = None
        if self.token == "_":
            self.advance()
        else:
            if self.advance() != "0":
                raise self.error("a loop's range is _ or starts at 0")
            self.take(":")
            extent = self.extent(self.expression())
        opened = _Opened(lambda parts: Loop(index, extent, _body(parts)))
        self.bind(opened, name, index)
        return opened

    def extent(self, last: LoopNode) -> LoopNode:
        """The extent of a loop that ends at an expression."""
        match last:
            case Literal(value) if value.dtype == np.int64:
                return Literal(np.int64(int(value) + 1))
            case Call(op, (size, one), _) if op is get("subtract") and one is Literal(np.int64(1)):
                return size
        raise self.error("a loop's range ends at a number or at an extent minus 1")

    def let(self) -> _Opened:
        self.advance()
        opened = _Opened(_body)
        while True:
            self.skip_lines()
            plain = self.kind == "name"
            name = self.name()
            self.take("=")
            rhs = self.expression()
            if plain and _key(name) != name:
                self.bind(opened, _key(name), rhs)
            else:
                lhs = Variable(name, dtype_of(rhs))
                self.bind(opened, name, lhs)
                inner = opened.close
                opened.close = _defining(lhs, rhs, inner)
            if self.token != ",":
                return opened
            self.advance()

    def bind(self, opened: _Opened, name: str, meaning: LoopNode) -> None:
        opened.hidden.setdefault(name, self.names.get(name))
        self.names[name] = meaning

    def results(self) -> LoopNode:
        if self.token == "(":
            self.advance()
            return Yield(tuple(self.expressions(")")))
        return Yield((self.expression(),))

    # ------------------------------------------------------------------------------------------- expressions

    def tensor(self, name: str) -> Variable:
        found = self.bindings.get(name)
        found = getattr(found, "ftype", found)
        if isinstance(found, Variable):
            return found
        if not isinstance(found, FType):
            raise self.error(f"{name} is not a tensor: bindings have {sorted(self.bindings)};")
        return Variable(name, found)

    def leaf(self, name: str, quoted: bool) -> LoopNode:
        """What a bare name stands for."""
        key = name if quoted else _key(name)
        if key in self.names:
            return self.names[key]
        found = self.bindings.get(name)
        if isinstance(found, LoopNode):
            return found
        if isinstance(found, FType) or hasattr(found, "ftype"):
            return self.tensor(name)
        if found is not None and not isinstance(found, Operator) and is_supported(found):
            return Value(name, np.dtype(found))
        return Index(name)

    def operator_head(self, arity: int | None = None) -> Operator:
        """An operator by its symbol or name, ``cast(float32)``, ``initwrite(0.0)`` or a user's."""
        name = self.name() if self.kind in ("name", "quoted") else self.advance()
        bound = self.bindings.get(name)
        if isinstance(bound, Operator):
            return bound
        if name in CARRIERS:
            self.take("(")
            if name == "cast":
                found = cast(self.name())
            else:
                sign = self.advance() if self.token == "-" else ""
                found = _OF_VALUE[name](read_number(sign + self.advance()))
            self.take(")")
            return found
        try:
            return get(name, arity)
        except PyFinchError:
            raise self.error(f"no operator is called {name!r}, and no binding of that name is given,") from None

    def call(self, op: Operator | str, args: list[LoopNode]) -> LoopNode:
        """An application; a symbol's operator depends on the number of arguments."""
        try:
            found = get(op, len(args)) if isinstance(op, str) else op
            if len(args) != found.arity and found.arity != -1:
                found = get(found.symbol, len(args))
            found.check_arity(len(args))
            return Call(found, tuple(args), found.result_dtype(*[dtype_of(arg) for arg in args]))
        except TypeError as error:
            if isinstance(error, DTypeError):
                raise
            raise self.error(str(error)) from None

    def expression(self) -> LoopNode:
        """One expression."""
        return self.expressions("")[0]

    def expressions(self, closing: str) -> list[LoopNode]:
        """Expressions with commas between them up to a closing bracket, which is taken; or just one."""
        stack = [_Bracket(closing, _only)]
        while True:
            top = stack[-1]
            if not (top.closing and self.at(top.closing) and not (top.done or top.operands or top.signs)):
                opened = self.operand(top)
                if opened is not None:
                    stack.append(opened)
                    continue
            while not (self.kind == "sign" and self.token in INFIX):
                if top.operands:
                    while top.waiting:
                        self.apply(top)
                    top.done.append(top.operands.pop())
                if not top.closing:
                    return top.done
                self.skip_lines()
                if self.at(","):
                    break
                self.take(top.closing)
                if len(stack) == 1:
                    return top.done
                closed = stack.pop()
                top = stack[-1]
                self.push(top, closed.close(closed.done))
            sign = self.advance()
            if sign != ",":
                self.infix(top, sign)

    def at(self, sign: str) -> bool:
        return self.kind == "sign" and self.token == sign

    def push(self, top: _Bracket, operand: LoopNode) -> None:
        """Add an operand, under the signs that stand before it."""
        while top.signs:
            operand = self.call(top.signs.pop(), [operand])
        top.operands.append(operand)

    def infix(self, top: _Bracket, sign: str) -> None:
        """Apply what binds tighter; the operator waits for its right side (E. W. Dijkstra's shunting yard, 1961)."""
        level = INFIX[sign]
        while top.waiting:
            before, count = top.waiting[-1]
            folds = before == sign and sign in FOLDS
            if INFIX[before] < level or (INFIX[before] == level and (folds or sign == "^")):
                if folds:
                    top.waiting[-1] = (sign, count + 1)
                    return
                break
            self.apply(top)
        top.waiting.append((sign, 2))

    def apply(self, top: _Bracket) -> None:
        """Apply the operator that waits last."""
        sign, count = top.waiting.pop()
        args = top.operands[-count:]
        del top.operands[-count:]
        top.operands.append(self.call(sign, args))

    def operand(self, top: _Bracket) -> _Bracket | None:
        """Read an operand; if it opens a bracket, that."""
        if top.closing:
            self.skip_lines()
        match self.kind:
            case "literal":
                self.push(top, Literal(read_number(self.advance())))
                return None
            case "name" if self.token in CARRIERS:
                op = self.operator_head()
                self.take("(")
                return _Bracket(")", lambda args: self.call(op, args))
            case "name" | "quoted":
                return self.named(top)
        sign = self.token
        if sign == "(":
            self.advance()
            return _Bracket(")", _only)
        if sign in INFIX or sign in ("!", "~"):
            self.advance()
            if self.token == "(":
                self.advance()
                return _Bracket(")", lambda args: self.call(sign, args))
            if sign == "-" and self.kind == "literal" and re.match(DIGITS, self.token):
                self.push(top, Literal(read_number("-" + self.advance())))
                return None
            if sign in ("-", "!", "~"):
                top.signs.append(sign)
                return self.operand(top)
        raise self.error(f"expected an expression, found {sign or 'the end'!r}")

    def named(self, top: _Bracket) -> _Bracket | None:
        quoted = self.kind == "quoted"
        name = self.name()
        if self.token == "[":
            self.advance()
            tensor = self.tensor(name)
            return _Bracket("]", lambda idxs: Access(tensor, tuple(idxs)))
        if self.token != "(":
            self.push(top, self.leaf(name, quoted))
            return None
        self.advance()
        bound = self.bindings.get(name)
        if isinstance(bound, Operator):
            return _Bracket(")", lambda args: self.call(bound, args))
        if not quoted:
            try:
                to = cast(from_julia_name(name))
                return _Bracket(")", lambda args: self.call(to, args))
            except DTypeError:
                pass
        try:
            get(name)
        except PyFinchError:
            raise self.error(f"no operator is called {name!r}, and no binding of that name is given,") from None
        return _Bracket(")", lambda args: self.call(name, args))


def _body(statements: list[LoopNode]) -> LoopNode:
    """One statement stands for itself, any other number are a block."""
    return statements[0] if len(statements) == 1 else Block(tuple(statements))


def _defining(
    lhs: Variable, rhs: LoopNode, outer: Callable[[list[LoopNode]], LoopNode]
) -> Callable[[list[LoopNode]], LoopNode]:
    return lambda parts: outer([Define(lhs, rhs, _body(parts))])


def _only(parts: list[LoopNode]) -> LoopNode:
    if len(parts) != 1:
        raise ParseError(f"one expression belongs between brackets, found {len(parts)}")
    return parts[0]


def _key(name: str) -> str:
    """What a name is known by: abbreviations of the text and names of the program do not meet."""
    return f"abbreviation {name}" if _ABBREVIATION.match(name) else name
