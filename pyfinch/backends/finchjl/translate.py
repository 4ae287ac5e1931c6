"""Loop programs as Finch.jl means them: conversions are written out, fills are literals, what scatters has a workspace.

Julia's promotion, its booleans and its integer division differ from NumPy's. So each argument is converted to the dtype
that NumPy's loop takes, and the Julia side's operators give NumPy's values on arguments of these dtypes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from pyfinch.algebra.carriers import CastOperator, ValueOperator, cast, choose, initwrite
from pyfinch.algebra.errors import ScheduleError
from pyfinch.algebra.operators import Operator, UserOperator, get
from pyfinch.algebra.term import postorder
from pyfinch.formats.format import FType
from pyfinch.formats.levels import Level
from pyfinch.loops.nodes import (
    Access,
    Assign,
    Block,
    Call,
    Declare,
    Freeze,
    Index,
    Literal,
    Loop,
    LoopNode,
    Value,
    Variable,
    Yield,
)
from pyfinch.loops.simplify import as_dtype, dtype_of
from pyfinch.lowering import Step

__all__ = ["Translated", "converted_assignment", "converted_call", "translate"]

DType = np.dtype[Any]
#: Operators of which Julia's own function takes any number of arguments.
_VARIADIC: Final = ("+", "*", "max", "min", "&", "|", "xor", "and", "or")
_OF_BOOLS: Final = {"add": "bitwise_or", "multiply": "bitwise_and"}
_LOGICAL: Final = ("logical_and", "logical_or", "logical_xor", "logical_not")


@dataclass(frozen=True, slots=True)
class Room:
    """A workspace: its variable, what it is filled with, and the operand and slot that its extent is that of.

    The one of a program that scatters has no place: it is of the result's shape.
    """

    variable: Variable
    fill: np.generic
    place: tuple[int, int] | None


@dataclass(frozen=True, slots=True)
class Translated:
    """A program for Finch.jl, and the workspaces that it needs; ``scatter`` says that one is written in any order."""

    program: Block
    workspaces: tuple[Room, ...]
    scatter: bool


def translate(step: Step, operands: Sequence[FType], fills: Mapping[str, np.generic], start: np.generic) -> Translated:
    """The program of a step.

    Parameters
    ----------
    step
        A kernel, an accumulation or a permutation.
    operands
        The types of the step's operands.
    fills
        The operands' fill values, by variable.
    start
        The value that the result is filled with.
    """
    result = Variable("R", step.ftype)
    if step.kind == "permute":
        program = _permutation(Variable("A", operands[0].in_storage_order()), step)
        scattered = not all(_is_random_access(level) for level in step.ftype.levels[:-1])
    else:
        assert step.program is not None
        program = step.program
        scattered = step.kind == "accumulate"
    body = _Translation(fills, start, step.combine).block(program)
    if scattered:
        return Translated(_through_workspace(body, result), (Room(Variable("W", step.ftype), start, None),), True)
    terms = list(postorder(body))
    rooms = [term for term in terms if isinstance(term, Declare) and term.tensor.name != result.name]
    return Translated(body, tuple([_room(room, terms, step) for room in rooms]), False)


def _room(declare: Declare, terms: Sequence[Any], step: Step) -> Room:
    reads = [term for term in terms if isinstance(term, Access)]
    (index, *_) = [access.idxs[0] for access in reads if access.tensor is declare.tensor]
    for access in reads:
        if access.tensor.name in step.variables and index in access.idxs:
            place = step.variables.index(access.tensor.name), access.idxs.index(index)
            assert isinstance(declare.init, Literal)
            return Room(declare.tensor, declare.init.value, place)
    raise ScheduleError(f"no operand tells the extent of the workspace {declare.tensor.name}")


def _is_random_access(level: Level) -> bool:
    return not level.appends


def _permutation(operand: Variable, step: Step) -> Block:
    idxs = tuple(Index(f"i{k}") for k in range(len(step.order)))
    result = Variable("R", step.ftype)
    body: LoopNode = Assign(
        Access(result, tuple(idxs[slot] for slot in step.order)), get("overwrite"), Access(operand, idxs)
    )
    for idx in reversed(idxs):
        body = Loop(idx, None, body)
    fill = Value("A_fill", step.ftype.dtype)
    return Block((Declare(result, fill), body, Freeze(result), Yield((result,))))


def _through_workspace(program: Block, result: Variable) -> Block:
    """The program writing to a workspace, which is copied to the result in order."""
    room = Variable("W", result.type)
    done: dict[Any, Any] = {}
    for term in postorder(program):
        if isinstance(term, Variable) and term.name == result.name:
            done[term] = room
        else:
            done[term] = term.with_children([done[child] for child in term.children])
    declare, body, freeze, _ = done[program].bodies
    assert isinstance(result.type, FType)
    idxs = tuple(Index(f"w{k}") for k in range(result.type.ndim))
    copy: LoopNode = Assign(Access(result, idxs), get("overwrite"), Access(room, idxs))
    for idx in reversed(idxs):
        copy = Loop(idx, None, copy)
    return Block((declare, body, freeze, Declare(result, declare.init), copy, Freeze(result), Yield((result,))))


class _Translation:
    def __init__(self, fills: Mapping[str, np.generic], start: np.generic, combine: Operator | None) -> None:
        self.fills, self.start, self.combine = fills, start, combine
        self.init: LoopNode | None = None  # the result's, as the program has it

    def block(self, program: Block) -> Block:
        self.init = program.bodies[0].init  # type: ignore[attr-defined]
        done: dict[Any, Any] = {}
        for term in postorder(program):
            done[term] = self.node(term, done)
        result: Block = done[program]
        return result

    def node(self, term: Any, done: Mapping[Any, Any]) -> Any:
        match term:
            case Value(name, _) if name.endswith("_fill"):
                return Literal(self.fills[name.removesuffix("_fill")])
            case Call(op, args, dtype):
                return converted_call(op, tuple([done[arg] for arg in args]), dtype)
            case Assign(lhs, op, rhs):
                target: Access = done[lhs]
                if self.combine is not None and target.tensor.name == "R":
                    op = self.combine
                return converted_assignment(target, op, done[rhs])
            case Declare(Variable(name="R") as tensor, _):
                return Declare(tensor, Literal(self.start))
            case Declare(tensor, init):
                value = self.start if init is self.init else done[init].value
                return Declare(tensor, Literal(np.asarray(value).astype(dtype_of(tensor))[()]))
        return term.with_children([done[child] for child in term.children])


def converted_call(op: Operator, args: tuple[LoopNode, ...], dtype: DType) -> LoopNode:
    """A call with its arguments converted as NumPy would."""
    if isinstance(op, CastOperator):
        return Call(op, args, dtype)
    if isinstance(op, UserOperator):
        return Call(cast(dtype), (Call(op, args, dtype),), dtype)
    if isinstance(op, ValueOperator):
        if op.name == "known_fill":  # fills are literals here
            return args[0]
        return Call(_of_dtype(op, dtype), tuple(as_dtype(arg, dtype) for arg in args), dtype)
    if op.name in _LOGICAL:
        bools = tuple(as_dtype(arg, np.dtype(np.bool_)) for arg in args)
        if len(bools) < 3 or op.symbol in _VARIADIC:
            return Call(op, bools, dtype)
        args = bools
    dtypes = [dtype_of(arg) for arg in args]
    if len(args) == 1 and op.arity == -1:
        return as_dtype(args[0], dtype)
    if len(args) > 2 and op.arity == -1:
        if any(d != dtype for d in dtypes) or op.symbol not in _VARIADIC:
            first = op.result_dtype(*dtypes[:2])
            return converted_call(op, (converted_call(op, args[:2], first), *args[2:]), dtype)
        return Call(_of_bools(op, dtype), args, dtype)
    wanted = op.operand_dtypes(*dtypes)
    converted = tuple(as_dtype(arg, want) for arg, want in zip(args, wanted, strict=True))
    return Call(_of_bools(op, wanted[0]), converted, dtype)


def _of_bools(op: Operator, dtype: DType) -> Operator:
    """The operator that means this one on bools, whose sums Julia counts."""
    return get(_OF_BOOLS[op.name]) if dtype.kind == "b" and op.name in _OF_BOOLS else op


def _of_dtype(op: ValueOperator, dtype: DType) -> Operator:
    value = np.asarray(op.value).astype(dtype)[()]
    return choose(value) if op.name == "choose" else initwrite(value)


def converted_assignment(lhs: Access, op: Operator, rhs: LoopNode) -> Assign:
    """An assignment whose value is converted to what NumPy would accumulate it as."""
    dtype = dtype_of(lhs)
    if op.name == "overwrite":
        return Assign(lhs, op, as_dtype(rhs, dtype))
    if isinstance(op, ValueOperator):
        return Assign(lhs, _of_dtype(op, dtype), as_dtype(rhs, dtype))
    if isinstance(op, UserOperator):
        return Assign(lhs, op, rhs)
    if op.name in _LOGICAL and dtype.kind == "b":
        return Assign(lhs, op, as_dtype(rhs, dtype))
    wanted = op.operand_dtypes(dtype, dtype_of(rhs))
    if wanted[0] != dtype:
        wanted = op.operand_dtypes(dtype, dtype)
        if wanted[0] != dtype:
            raise ScheduleError(f"Finch.jl cannot accumulate {dtype} by {op.name}, which works on {wanted[0]}")
    return Assign(lhs, _of_bools(op, dtype), as_dtype(rhs, wanted[1]))
