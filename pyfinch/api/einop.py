"""`einop`: an assignment over named indices, with any operators.

The grammar, loosest binding first::

    statement  := NAME [ "[" indices "]" ] [ OP ] "=" expression
    expression := expression BINARY expression | UNARY expression | "(" expression ")"
                | NUMBER | NAME "(" expression, … ")" | NAME [ "[" indices "]" ]
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

from pyfinch.algebra import operators as ops
from pyfinch.algebra.errors import DTypeError, ParseError, PyFinchError, ShapeError
from pyfinch.algebra.operators import Operator
from pyfinch.api.eager import as_lazy, as_number, as_operand, run
from pyfinch.api.elementwise import apply
from pyfinch.api.lazy import LazyTensor, aggregate, relabeled
from pyfinch.api.products import index_sizes, lazy_diagonal

__all__ = ["einop"]


@dataclass(frozen=True, slots=True)
class Read:
    """A tensor's element."""

    name: str
    idxs: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Apply:
    """An operator, by name, on expressions."""

    name: str
    args: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Number:
    """A number."""

    value: int | float | complex | bool


Expression = Read | Apply | Number


@dataclass(frozen=True, slots=True)
class Statement:
    """``out[idxs] op= value``; op is "" for a plain assignment."""

    idxs: tuple[str, ...]
    op: str
    value: Expression


_COMPARED: Final = 4
# Python's operators: how tightly they bind, and the operator they are.
_BINARY: Final[dict[str, tuple[int, str]]] = {
    "or": (1, "logical_or"),
    "and": (2, "logical_and"),
    **{
        sign: (_COMPARED, name)
        for sign, name in {
            "==": "equal",
            "!=": "not_equal",
            "<": "less",
            "<=": "less_equal",
            ">": "greater",
            ">=": "greater_equal",
        }.items()
    },
    "|": (5, "bitwise_or"),
    "^": (6, "bitwise_xor"),
    "&": (7, "bitwise_and"),
    "<<": (8, "bitwise_left_shift"),
    ">>": (8, "bitwise_right_shift"),
    "+": (9, "add"),
    "-": (9, "subtract"),
    "*": (10, "multiply"),
    "/": (10, "divide"),
    "//": (10, "floor_divide"),
    "%": (10, "remainder"),
    "**": (12, "pow"),
}
_UNARY: Final[dict[str, tuple[int, str]]] = {
    "not": (3, "logical_not"),
    "-": (11, "negative"),
    "+": (11, "positive"),
    "~": (11, "bitwise_invert"),
}
_VALUES: Final[dict[str, Any]] = {"True": True, "False": False, "inf": float("inf"), "nan": float("nan")}
_TOKEN: Final = re.compile(
    r"\s*(?:(?P<number>(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?j?)|(?P<name>[^\W\d]\w*)"
    r"|(?P<sign>\*\*|//|<<|>>|==|!=|<=|>=|[-+*/%&|^~<>()\[\],]))"
)
_STATEMENT: Final = re.compile(r"\s*([^\W\d]\w*)\s*(?:\[([^\]]*)\])?\s*([^\s\w=\[\]]+|[^\W\d]\w*)?\s*=(?!=)(.*)", re.S)


class _Parser:
    """Precedence climbing over tokens."""

    def __init__(self, text: str, rest: str) -> None:
        self.text = text
        self.offset = len(text) - len(rest)
        self.tokens = list(self._split(rest))
        self.at = 0

    def _split(self, rest: str) -> Iterator[tuple[str, str, int]]:
        place = 0
        while rest[place:].strip():
            found = _TOKEN.match(rest, place)
            if found is None:
                place += len(rest[place:]) - len(rest[place:].lstrip())
                raise self.error(f"unexpected {rest[place]!r}", self.offset + place)
            assert found.lastgroup is not None
            kind = found.lastgroup
            yield kind, found[kind], self.offset + found.start(kind)
            place = found.end()

    def error(self, what: str, place: int | None = None) -> ParseError:
        if place is None:
            place = self.tokens[self.at][2] if self.at < len(self.tokens) else len(self.text)
        return ParseError(f"einop {self.text!r}: {what} at character {place}")

    @property
    def token(self) -> str:
        return self.tokens[self.at][1] if self.at < len(self.tokens) else ""

    def take(self, wanted: str | None = None) -> str:
        token = self.token
        if wanted is not None and token != wanted:
            raise self.error(f"expected {wanted!r}, got {token or 'the end'!r}")
        self.at += 1
        return token

    def expression(self, loosest: int = 0) -> Expression:
        left = self.operand()
        while self.token in _BINARY and _BINARY[self.token][0] > loosest:
            power, name = _BINARY[self.take()]
            # Powers group from the right: 2 ** 3 ** 2 is 2 ** 9.
            left = Apply(name, (left, self.expression(power - 1 if name == "pow" else power)))
            if power == _COMPARED and self.token in _BINARY and _BINARY[self.token][0] == _COMPARED:
                raise self.error("comparisons do not chain: write (a < b) & (b < c)")
        return left

    def operand(self) -> Expression:
        if self.at >= len(self.tokens):
            raise self.error("expected an expression, got the end")
        kind, token, _ = self.tokens[self.at]
        if token in _UNARY:
            self.take()
            power, name = _UNARY[token]
            return Apply(name, (self.expression(power - 1),))
        if token == "(":
            self.take()
            inner = self.expression()
            self.take(")")
            return inner
        if kind == "number":
            return Number(_number(self.take()))
        if kind != "name" or token in ("and", "or"):
            raise self.error(f"unexpected {token!r}")
        self.take()
        if token in _VALUES and self.token not in ("[", "("):
            return Number(_VALUES[token])
        return self.named(token)

    def named(self, name: str) -> Expression:
        if self.token == "(":
            return Apply(name, tuple(self.items("(", ")")))
        if self.token != "[":
            return Read(name, ())
        self.take("[")
        idxs: list[str] = []
        while self.token != "]":
            if self.at >= len(self.tokens) or self.tokens[self.at][0] != "name":
                raise self.error(f"expected an index name, got {self.token or 'the end'!r}")
            idxs.append(self.take())
            if self.token != "]":
                self.take(",")
        self.take("]")
        return Read(name, tuple(idxs))

    def items(self, start: str, stop: str) -> Iterator[Expression]:
        self.take(start)
        while self.token != stop:
            yield self.expression()
            if self.token != stop:
                self.take(",")
        self.take(stop)


def _number(text: str) -> int | float | complex:
    if text.endswith("j"):
        return complex(text)
    return int(text) if text.isdigit() else float(text)


@lru_cache(maxsize=1024)
def _parsed(text: str) -> Statement:
    found = _STATEMENT.fullmatch(text)
    if found is None:
        raise ParseError(f'einop {text!r}: expected such as "C[i,j] += A[i,k] * B[k,j]"')
    _, inside, op, rest = found.groups()
    idxs = tuple(part.strip() for part in (inside or "").split(",") if part.strip())
    for k, name in enumerate(idxs):
        if not name.isidentifier():
            raise ParseError(f"einop {text!r}: {name!r} is no index name")
        if name in idxs[:k]:
            raise ParseError(f"einop {text!r}: index {name!r} is twice in the result")
    parser = _Parser(text, rest)
    value = parser.expression()
    if parser.token:
        raise parser.error(f"unexpected {parser.token!r}")
    return Statement(idxs, op or "", value)


def _reads(value: Expression) -> list[Read]:
    found: list[Read] = []
    stack = [value]
    while stack:
        match stack.pop():
            case Read() as read:
                found.append(read)
            case Apply(_, args):
                stack.extend(reversed(args))
            case Number():
                pass
    return found


def einop(text: str, /, **operands: Any) -> Any:
    """An assignment over named indices, with any operators: ``"C[i,j] min= A[i,k] + B[k,j]"``.

    Parameters
    ----------
    text : str
        ``NAME[indices] OP= expression``. The expression has Python's operators, numbers, and functions by the
        names of operators (``sqrt(A[i])``, ``where(A[i] > 0, B[i], 0)``); indices that the result lacks are
        reduced by OP: ``+ * min max & | and or``, or any operator that has an identity, by name.
    **operands : tensor, array, number or operator
        What the names stand for; a name that is called may be an operator made by `pyfinch.operator`.

    Returns
    -------
    Tensor, or LazyTensor if an operand is lazy

    Raises
    ------
    ParseError
        If the text does not follow the grammar (it says where), or a name or an index is not known.
    ShapeError
        If a tensor has another number of modes, or an index has two sizes.

    Examples
    --------
    >>> import pyfinch as pf
    >>> A = pf.asarray([[0.0, 1.0], [2.0, 0.0]])
    >>> pf.einop("C[i,j] min= A[i,k] + A[k,j]", A=A).todense()
    array([[0., 1.],
           [2., 0.]])
    """
    statement = _parsed(text)
    numbers = {name: x for name, x in operands.items() if type(x) in (bool, int, float, complex)}
    statement = _with_numbers(statement, tuple((name, type(x), x) for name, x in numbers.items()))
    reads = _reads(statement.value)
    user_ops = {name: op for name, op in operands.items() if isinstance(op, Operator)}
    names = list(dict.fromkeys(read.name for read in reads))
    for name in names:
        if name not in operands or name in user_ops:
            raise ParseError(f"einop {text!r}: {name!r} stands for no tensor; got {sorted(operands)}")
    unused = set(operands) - set(names) - set(user_ops) - set(numbers)
    if unused:
        raise ParseError(f"einop {text!r}: {', '.join(sorted(unused))} is not in the expression")

    def build(*lazies: LazyTensor) -> LazyTensor:
        return _built(text, statement, dict(zip(names, lazies, strict=True)), user_ops)

    given = [operands[name] for name in names]
    if any(isinstance(x, LazyTensor) for x in given):
        return build(*[as_lazy(x) for x in given])
    taken = [as_operand(x) for x in given]
    known = tuple((name, repr(x)) for name, x in numbers.items())
    return run(("einop", text, known, *user_ops.items()), [x if x.ndim else as_number(x) for x in taken], build)


def _with_numbers(statement: Statement, numbers: tuple[tuple[str, type, Any], ...]) -> Statement:
    """The statement with some names standing for numbers."""
    if not numbers:
        return statement
    values = {name: Number(x) for name, _, x in numbers}

    def put(value: Expression) -> Expression:
        match value:
            case Read(name, ()) if name in values:
                return values[name]
            case Apply(name, args):
                return Apply(name, tuple(put(arg) for arg in args))
        return value

    return Statement(statement.idxs, statement.op, put(statement.value))


def _built(
    text: str, statement: Statement, tensors: Mapping[str, LazyTensor], user_ops: Mapping[str, Operator]
) -> LazyTensor:
    reads = _reads(statement.value)
    for read in reads:
        if len(read.idxs) != tensors[read.name].ndim:
            raise ShapeError(
                f"einop {text!r}: {read.name} has shape {tensors[read.name].shape}, "
                f"but {len(read.idxs)} indices ({', '.join(read.idxs)})"
            )
    sizes = index_sizes(f"einop {text!r}", [tensors[r.name].shape for r in reads], [r.idxs for r in reads])
    for name in statement.idxs:
        if name not in sizes:
            raise ParseError(f"einop {text!r}: index {name!r} of the result is not in the expression")
    reduced = [name for name in sizes if name not in statement.idxs]
    order = (*statement.idxs, *reduced)
    value = _value(text, statement.value, order, tensors, user_ops)
    if not isinstance(value, LazyTensor):
        value = as_lazy(value)
    if not reduced:
        return value
    if not statement.op:
        raise ParseError(
            f"einop {text!r}: index {reduced[0]!r} is not in the result; say how it is reduced, such as +="
        )
    op = user_ops.get(statement.op) or _operator(text, statement.op)
    init = op.identity(value.dtype)
    if init is None:
        raise DTypeError(f"einop {text!r}: {op.name} has no identity for {value.dtype} to start from")
    return aggregate(op, init, value, range(len(statement.idxs), len(order)))


def _operator(text: str, name: str) -> Operator:
    if name in _BINARY:
        name = _BINARY[name][1]
    try:
        return ops.get(name)
    except PyFinchError as error:
        raise ParseError(f"einop {text!r}: {error}") from None


def _value(
    text: str,
    value: Expression,
    order: tuple[str, ...],
    tensors: Mapping[str, LazyTensor],
    user_ops: Mapping[str, Operator],
) -> Any:
    """An expression as a lazy tensor with a mode for each name in ``order``, or a number."""
    match value:
        case Number(number):
            return number
        case Read(name, idxs):
            return _read(tensors[name], idxs, order)
        case Apply(name, args):
            parts = [_value(text, arg, order, tensors, user_ops) for arg in args]
            op = user_ops.get(name) or _operator(text, name)
            if op.name in ("negative", "positive") and not isinstance(parts[0], LazyTensor):
                return -parts[0] if op.name == "negative" else parts[0]
            try:
                op.check_arity(len(parts))
            except TypeError as error:
                raise ParseError(f"einop {text!r}: {error}") from None
            if not any(isinstance(part, LazyTensor) for part in parts):
                return apply(op, parts).item()
            return apply(op, parts)


def _read(x: LazyTensor, idxs: tuple[str, ...], order: tuple[str, ...]) -> LazyTensor:
    if not x.ndim:
        return x
    names = list(idxs)
    while len(set(names)) != len(names):
        second = next(k for k, name in enumerate(names) if name in names[:k])
        x = lazy_diagonal(x, names.index(names[second]), second)
        del names[second]
    return relabeled(x, [names.index(name) if name in names else None for name in order])
