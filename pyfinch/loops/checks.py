"""Checks of a loop program before it is lowered, each with an error of its own.

They are what every lowering counts on: names mean one thing, indices are bound, accesses are concordant, a tensor
is written only between its declaration and its freeze and read only outside of that, operators and dtypes fit.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pyfinch.algebra.errors import ScheduleError
from pyfinch.algebra.operators import Operator
from pyfinch.algebra.term import Term, postorder
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
from pyfinch.loops.simplify import dtype_of

__all__ = [
    "ConcordanceError",
    "DeclarationError",
    "LoopError",
    "ModeError",
    "NameClashError",
    "OperatorError",
    "RankError",
    "UnboundError",
    "check",
]

DType = np.dtype[np.generic]


class LoopError(ScheduleError):
    """A loop program breaks a rule of its language."""


class NameClashError(LoopError):
    """One name stands for two things, or a loop's index is bound again inside of it."""


class UnboundError(LoopError):
    """An index that no loop binds, or a scalar that no ``let`` binds."""


class ConcordanceError(LoopError):
    """An access whose modes are not bound outermost first, in storage order."""


class DeclarationError(LoopError):
    """A tensor written, frozen or thawed where no declaration is in scope, or declared with another fill value."""


class ModeError(LoopError):
    """Reads and writes of one tensor that no freeze or thaw separates."""


class RankError(LoopError):
    """An access with more or fewer indices than the tensor has modes."""


class OperatorError(LoopError):
    """An operator with arguments that it does not take, or a dtype other than the one that follows."""


def check(program: LoopNode) -> None:
    """Check a loop program.

    Parameters
    ----------
    program
        A whole program: what it does not declare are its operands.

    Raises
    ------
    LoopError
        One of its kinds, naming the first statement or expression that breaks a rule.

    Examples
    --------
    >>> from pyfinch.formats.format import format
    >>> from pyfinch.loops.text import parse
    >>> types = {"A": format("csr").specify("float64", 0.0), "y": format("vector").specify("float64", 0.0)}
    >>> check(parse("y .= 0.0; for i = _; y[i] += A[i] end", types))
    Traceback (most recent call last):
    pyfinch.loops.checks.RankError: A[i] has 1 indices, but A has 2 modes
    """
    _Checker().run(program)


class _Checker:
    def __init__(self) -> None:
        self.names: dict[str, Term] = {}
        self.depth: dict[Index, int] = {}
        self.scalars: set[Variable] = set()
        self.written: dict[Variable, bool] = {}  # declared tensors: whether they may be written, or else read
        self.gone: set[Variable] = set()  # tensors whose declaration went out of scope

    # -------------------------------------------------------------------------------------------- statements

    def run(self, program: LoopNode) -> None:
        """Visit the statements in the order in which they run."""
        stack: list[LoopNode | _Exit] = [program]
        while stack:
            node = stack.pop()
            match node:
                case _Exit():
                    self.leave(node)
                case Block(bodies):
                    stack.extend(reversed(bodies))
                case Loop(index, extent, body):
                    if extent is not None:
                        self.integer(extent, "a loop's extent")
                    self.name(index.name, index)
                    if index in self.depth:
                        raise NameClashError(f"a loop over {index.name} stands inside of a loop over {index.name}")
                    stack += [_Exit(node, self.written), body]
                    self.depth[index] = len(self.depth)
                case Sieve(cond, body):
                    if self.expression(cond).kind != "b":
                        raise OperatorError(f"a condition is bool, {cond} is {dtype_of(cond)}")
                    stack += [_Exit(node, self.written), body]
                case Define(lhs, rhs, body):
                    self.define(lhs, rhs)
                    stack += [_Exit(node, self.written), body]
                case _:
                    self.simple(node)

    def simple(self, node: LoopNode) -> None:
        """A statement that holds no other."""
        match node:
            case Assign(lhs, op, rhs):
                self.assign(lhs, op, rhs)
            case Declare(tensor, init):
                self.declare(tensor, init)
            case Freeze(tensor):
                if not self.mode(tensor, "frozen"):
                    raise ModeError(f"{tensor.name} is frozen already")
                self.written[tensor] = False
            case Thaw(tensor):
                if self.mode(tensor, "thawed"):
                    raise ModeError(f"{tensor.name} is written already: nothing to thaw")
                self.written[tensor] = True
            case Yield(args):
                for arg in args:
                    if not isinstance(arg, Variable) or not isinstance(arg.type, FType):
                        raise DeclarationError(f"a program returns tensors, not {arg}")
                    if arg in self.gone:
                        raise DeclarationError(f"{arg.name} is returned outside of the scope that declares it")
                    if self.written.get(arg):
                        raise ModeError(f"{arg.name} is returned while it is written: freeze it first")
            case _:
                raise LoopError(f"{node} is not a statement")

    def leave(self, scope: _Exit) -> None:
        """The end of a statement's body: what it bound and declared goes out of scope."""
        match scope.node:
            case Loop(index, _, _):
                del self.depth[index]
            case Define(lhs, _, _):
                self.scalars.discard(lhs)
        for tensor, written in list(self.written.items()):
            if tensor not in scope.written:
                self.gone.add(tensor)
                del self.written[tensor]
            elif scope.written[tensor] != written:
                raise ModeError(
                    f"{tensor.name} is {'thawed' if written else 'frozen'} in a body that may run many times or never; "
                    "do it outside"
                )

    def define(self, lhs: Variable, rhs: LoopNode) -> None:
        dtype = self.expression(rhs)
        if lhs.type != dtype:
            raise OperatorError(f"{lhs.name} is a scalar of {lhs.type}, but {rhs} is {dtype}")
        self.name(lhs.name, lhs)
        if lhs in self.scalars:
            raise NameClashError(f"{lhs.name} is bound again inside of its own let")
        self.scalars.add(lhs)

    def declare(self, tensor: Variable, init: LoopNode) -> None:
        ftype = self.tensor(tensor)
        dtype = self.expression(init)
        if dtype != ftype.dtype:
            raise OperatorError(f"{tensor.name} holds {ftype.dtype} and cannot start as {init}, which is {dtype}")
        if self.written.get(tensor):
            raise ModeError(f"{tensor.name} is declared again while it is written")
        if ftype.fill is not None and init is not Literal(ftype.fill):
            raise DeclarationError(f"{tensor.name} starts as {init}, but its type says {Literal(ftype.fill)}")
        self.gone.discard(tensor)
        self.written[tensor] = True

    def assign(self, lhs: Access, op: Operator, rhs: LoopNode) -> None:
        value = self.expression(rhs)
        self.expression(*lhs.idxs)
        dtype = self.access(lhs)
        tensor = lhs.tensor
        if tensor not in self.written:
            raise DeclarationError(
                f"{tensor.name} is written outside of the scope that declares it"
                if tensor in self.gone
                else f"{tensor.name} is written but not declared"
            )
        if not self.written[tensor]:
            raise ModeError(f"{tensor.name} is written after it was frozen: thaw it first")
        self.apply(op, (dtype, value), f"{lhs} <<{op}>>= …")

    def mode(self, tensor: Variable, what: str) -> bool:
        """Whether a declared tensor is being written."""
        if tensor not in self.written:
            raise DeclarationError(f"{tensor.name} is {what} where no declaration of it is in scope")
        return self.written[tensor]

    # ------------------------------------------------------------------------------------------- expressions

    def name(self, name: str, term: Term) -> None:
        if self.names.setdefault(name, term) is not term:
            raise NameClashError(f"{name} is the name of two things: {self.names[name]!r} and {term!r}")

    def tensor(self, tensor: Variable) -> FType:
        if not isinstance(tensor.type, FType):
            raise DeclarationError(f"{tensor.name} is a scalar, not a tensor")
        self.name(tensor.name, tensor)
        return tensor.type

    def integer(self, node: LoopNode, what: str) -> None:
        dtype = self.expression(node)
        if dtype.kind not in "iu":
            raise OperatorError(f"{what} is an integer, {node} is {dtype}")

    def expression(self, *nodes: LoopNode) -> DType:
        """Check expressions; the dtype of the last."""
        for term in postorder(*nodes):
            match term:
                case Access(tensor, _):
                    self.access(term)
                    if self.written.get(tensor):
                        raise ModeError(f"{tensor.name} is read while it is written: freeze it first")
                    if tensor in self.gone:
                        raise DeclarationError(f"{tensor.name} is read outside of the scope that declares it")
                case Call(op, args, dtype):
                    found = self.apply(op, [dtype_of(arg) for arg in args], term)
                    if found != dtype:
                        raise OperatorError(f"{term} is {found}, not {dtype}")
                case Index(name):
                    if term not in self.depth:
                        raise UnboundError(f"no loop binds the index {name}")
                case Variable(name, kind):
                    if not isinstance(kind, FType) and term not in self.scalars:
                        raise UnboundError(f"no let binds the scalar {name}")
                case Value(name, _):
                    self.name(name, term)
                case Literal():
                    pass
                case _:
                    raise LoopError(f"{term} is not an expression")
        if not nodes:
            return np.dtype(np.int64)
        last = nodes[-1]
        if isinstance(last, Variable) and isinstance(last.type, FType):
            raise RankError(f"the tensor {last.name} stands where a number belongs; {last.name}[…] is one")
        return dtype_of(last)

    def access(self, access: Access) -> DType:
        """Check rank and concordance of an access whose indices are checked."""
        tensor, idxs = access.tensor, access.idxs
        ftype = self.tensor(tensor)
        if len(idxs) != ftype.ndim:
            raise RankError(f"{access} has {len(idxs)} indices, but {tensor.name} has {ftype.ndim} modes")
        outer: Index | None = None
        for idx in idxs:
            match idx:
                case Index(name):
                    if idx not in self.depth:
                        raise UnboundError(f"no loop binds the index {name}")
                    if outer is not None and self.depth[idx] < self.depth[outer]:
                        raise ConcordanceError(
                            f"{access}: the loop over {name} is outside of the one over {outer.name}; "
                            f"store {tensor.name} in another mode order or exchange the loops"
                        )
                    outer = idx
                case Literal(value):
                    if value.dtype.kind not in "iu" or value < 0:
                        raise OperatorError(f"{access}: an index is an integer from 0, got {idx}")
                case _:
                    if dtype_of(idx).kind not in "iu":
                        raise OperatorError(f"{access}: an index is an integer, {idx} is {dtype_of(idx)}")
        return ftype.dtype

    def apply(self, op: Operator, dtypes: Sequence[DType], where: object) -> DType:
        """The dtype of an operator's result."""
        try:
            op.check_arity(len(dtypes))
            return op.result_dtype(*dtypes)
        except TypeError as error:
            raise OperatorError(f"{where}: {error}") from None


class _Exit:
    """Marks the end of a statement's body, with the modes of tensors before it."""

    __slots__ = ("node", "written")

    def __init__(self, node: LoopNode, written: dict[Variable, bool]) -> None:
        self.node = node
        self.written = dict(written)
