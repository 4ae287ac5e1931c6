"""Algebra on Loop programs: what a body becomes where some accesses read as fill.

Everything follows from the operator table (identity, annihilator, idempotence, repeat law) and from each tensor's
fill value; no operator and no level is named here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from pyfinch.algebra.carriers import ValueOperator
from pyfinch.algebra.fixed import fixed_result
from pyfinch.algebra.operators import Operator, cast
from pyfinch.algebra.term import postorder
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
    Value,
    Variable,
    indices,
)

__all__ = ["NOTHING", "Formula", "fill_of", "is_nothing", "repeated", "simplify", "substitute", "support"]

NOTHING = Block(())

#: A monotone boolean formula over keys of operands ("the operand has a stored entry here"): True, False, a key, or
#: ``("and" | "or", formulas)``.
Formula = Any


def fill_of(tensor: Variable) -> LoopNode:
    """The fill value of a tensor variable: a literal if it is part of its type, else a run-time value."""
    assert isinstance(tensor.type, FType)
    if tensor.type.fill is not None:
        return Literal(tensor.type.fill)
    return Value(f"{tensor.name}_fill", tensor.type.dtype)


def dtype_of(node: LoopNode) -> np.dtype[np.generic]:
    """The dtype of a scalar expression."""
    match node:
        case Literal(value):
            own: np.dtype[np.generic] = value.dtype
            return own
        case Value(_, dtype) | Call(_, _, dtype):
            return dtype
        case Access(Variable(_, kind), _):
            return kind.dtype if isinstance(kind, FType) else kind
        case Variable(_, kind):
            return kind.dtype if isinstance(kind, FType) else kind
        case _:
            return np.dtype(np.int64)


def is_nothing(node: LoopNode) -> bool:
    """Whether a simplified statement does nothing."""
    return isinstance(node, Block) and not node.bodies


def _equals(node: LoopNode, value: object) -> bool:
    if value is None or not isinstance(node, Literal):
        return False
    mine = node.value
    return bool(mine == value) or bool(mine != mine and value != value)


# ------------------------------------------------------------------------------------------------ expressions


def simplify_call(op: Operator, args: tuple[LoopNode, ...], dtype: np.dtype[np.generic]) -> LoopNode:
    """One application of an operator, its arguments already simple."""
    if isinstance(op, ValueOperator) and op.name == "known_fill" and _is_fill(args[0]):
        return Literal(np.asarray(cast(dtype)(op.value))[()])
    known = [arg.value if isinstance(arg, Literal) else None for arg in args]
    fixed = fixed_result(op, known, [dtype_of(arg) for arg in args])
    if fixed is not None:
        return Literal(np.asarray(cast(dtype)(fixed))[()])
    kept = args
    if op.associative and op.commutative:
        one = op.identity(dtype)
        kept = tuple(arg for arg in args if not _equals(arg, one)) or args[:1]
        if op.idempotent:
            kept = tuple(dict.fromkeys(kept))
        if len(kept) == 1:
            return as_dtype(kept[0], dtype)
        if op.result_dtype(*[dtype_of(arg) for arg in kept]) != dtype:
            kept = args  # an identity of a wider dtype decides the result's
    if op.name == "where" and isinstance(args[0], Literal):
        return as_dtype(args[1] if args[0].value else args[2], dtype)
    if len(kept) != len(args) and op.arity > 0 and len(kept) != op.arity:
        kept = args
    return Call(op, kept, dtype)


def _is_fill(node: LoopNode) -> bool:
    """Whether an expression is made of fills and run-time numbers only."""
    return not any(isinstance(term, Access) and term.idxs for term in postorder(node))


def as_dtype(node: LoopNode, dtype: np.dtype[np.generic]) -> LoopNode:
    """The expression converted to a dtype, unless it has it."""
    if dtype_of(node) == dtype:
        return node
    if isinstance(node, Literal):
        return Literal(np.asarray(cast(dtype)(node.value))[()])
    return Call(cast(dtype), (node,), dtype)


# ------------------------------------------------------------------------------------------------- statements


@dataclass(frozen=True, slots=True)
class Context:
    """What is known outside a statement: the initial value of each tensor that is written."""

    inits: Mapping[Variable, LoopNode]


def adds_nothing(op: Operator, rhs: LoopNode, init: LoopNode | None, dtype: np.dtype[np.generic]) -> bool:
    """Whether ``lhs <<op>>= rhs`` leaves a tensor as it is that holds its initial value, or accumulates by op."""
    if op.associative and _equals(rhs, op.identity(dtype)):
        return True
    if op.idempotent or op.name in ("overwrite", "initwrite", "choose"):
        return init is not None and (rhs is init or (isinstance(init, Literal) and _equals(rhs, init.value)))
    return False


def substitute(node: LoopNode, mapping: Mapping[LoopNode, LoopNode], context: Context) -> LoopNode:
    """The statement or expression with terms replaced and everything simplified."""
    done: dict[LoopNode, LoopNode] = {}
    for term in postorder(node):
        if not isinstance(term, LoopNode):
            continue
        if term in mapping:
            done[term] = mapping[term]
            continue
        done[term] = _rebuild(term, done, context, mapping)
    return done[node]


def simplify(node: LoopNode, context: Context) -> LoopNode:
    """The statement without what does nothing, its expressions folded."""
    return substitute(node, {}, context)


def _rebuild(
    term: LoopNode, done: dict[LoopNode, LoopNode], context: Context, mapping: Mapping[LoopNode, LoopNode]
) -> LoopNode:
    match term:
        case Call(op, args, dtype):
            return simplify_call(op, tuple([done[arg] for arg in args]), dtype)
        case Assign(lhs, op, rhs):
            init = context.inits.get(lhs.tensor)
            new = done[rhs]
            if adds_nothing(op, new, init, dtype_of(lhs)):
                return NOTHING
            return Assign(lhs, op, new)
        case Loop(index, extent, body):
            inner = done[body]
            if is_nothing(inner) or (isinstance(extent, Literal) and extent.value == 0):
                return NOTHING
            return Loop(index, extent, inner)
        case Sieve(cond, body):
            test = done[cond]
            if is_nothing(done[body]) or _equals(test, False):
                return NOTHING
            return done[body] if _equals(test, True) else Sieve(test, done[body])
        case Define(lhs, rhs, body):
            return NOTHING if is_nothing(done[body]) else Define(lhs, done[rhs], done[body])
        case Block():
            return _block(term, done, context, mapping)
        case Access(tensor, idxs):
            return Access(tensor, tuple([done[idx] for idx in idxs]))
        case _:
            return term


def _block(
    block: Block, done: dict[LoopNode, LoopNode], context: Context, mapping: Mapping[LoopNode, LoopNode]
) -> LoopNode:
    """A block; a tensor declared in it that nothing writes any more reads as its initial value."""
    bodies = [done[body] for body in block.bodies]
    declared = {body.tensor: body.init for body in bodies if isinstance(body, Declare)}
    written = {term.lhs.tensor for body in bodies for term in postorder(body) if isinstance(term, Assign)}
    dead = {tensor: init for tensor, init in declared.items() if tensor not in written}
    if dead:
        reads: dict[LoopNode, LoopNode] = {
            term: dead[term.tensor]
            for body in bodies
            for term in postorder(body)
            if isinstance(term, Access) and term.tensor in dead
        }
        bodies = [
            substitute(body, reads, context)
            for body in bodies
            if not (isinstance(body, (Declare, Freeze)) and body.tensor in dead)
        ]
    flat: list[LoopNode] = []
    for body in bodies:
        flat.extend(body.bodies if isinstance(body, Block) else (body,))
    if not any(isinstance(term, Assign) for body in flat for term in postorder(body)):
        return NOTHING
    return flat[0] if len(flat) == 1 else Block(tuple(flat))


# ------------------------------------------------------------------------------------------------ repetition


def repeated(body: LoopNode, index: Index, count: LoopNode, context: Context) -> LoopNode | None:
    """One statement that does what ``body``, which may not depend on ``index``, does ``count`` times; or None.

    ``a += x`` repeated n times is ``a += n * x``; an idempotent operator needs no repetition.
    """
    match body:
        case Loop(inner, extent, deeper) if extent is not None:
            once = repeated(deeper, inner, extent, context)
            return None if once is None else repeated(once, index, count, context)
        case Assign(lhs, op, rhs):
            if index in indices(lhs) or index in indices(rhs):
                return None
            dtype = dtype_of(lhs)
            if op.idempotent:
                return body
            if not isinstance(op.repeat, Operator):
                return None
            times = as_dtype(count, op.count_dtype(dtype))
            return Assign(lhs, op, simplify_call(op.repeat, (as_dtype(rhs, dtype), times), dtype))
        case Block(bodies):
            parts = [repeated(part, index, count, context) for part in bodies]
            if any(part is None for part in parts):
                return None
            return Block(tuple(part for part in parts if part is not None))
        case _:
            return None


# --------------------------------------------------------------------------------------------------- support


def _all(parts: list[Formula]) -> Formula:
    kept = list(dict.fromkeys(part for part in parts if part is not True))
    if any(part is False for part in kept):
        return False
    return True if not kept else kept[0] if len(kept) == 1 else ("and", tuple(kept))


def _any(parts: list[Formula]) -> Formula:
    kept = list(dict.fromkeys(part for part in parts if part is not False))
    if any(part is True for part in kept):
        return True
    return False if not kept else kept[0] if len(kept) == 1 else ("or", tuple(kept))


def support(node: LoopNode, operands: Mapping[LoopNode, object], context: Context) -> Formula:
    """When a statement does something: a formula over the operands that have a stored entry at hand.

    ``operands`` maps accesses to the key that stands for "stored here"; any other access counts as stored.
    Where the formula is False the statement changes nothing.
    """
    known: dict[LoopNode, tuple[Formula, LoopNode]] = {}
    workspaces: dict[Variable, Formula] = {}

    def look(term: LoopNode) -> tuple[Formula, LoopNode]:
        if isinstance(term, Access) and term.tensor in workspaces:
            return workspaces[term.tensor], context.inits.get(term.tensor, term)
        return known[term]

    for term in postorder(node):
        match term:
            case Access(tensor, _):
                if term in operands:
                    known[term] = (operands[term], context.inits.get(tensor) or fill_of(tensor))
                else:
                    known[term] = (True, term)
            case Call(op, args, dtype):
                known[term] = _support_of_call(op, [look(arg) for arg in args], dtype)
            case Assign(lhs, op, rhs):
                formula, fill = look(rhs)
                quiet = adds_nothing(op, fill, context.inits.get(lhs.tensor), dtype_of(lhs))
                known[term] = (formula if quiet else True, fill)
                workspaces[lhs.tensor] = _any([workspaces.get(lhs.tensor, False), known[term][0]])
            case Loop(_, _, body) | Define(_, _, body) | Sieve(_, body):
                known[term] = known[body]
            case Block(bodies):
                known[term] = (_any([known[body][0] for body in bodies]), NOTHING)
            case Declare() | Freeze():
                known[term] = (False, NOTHING)
            case LoopNode():
                known[term] = (True, term)
    return known[node][0]


def _support_of_call(
    op: Operator, args: list[tuple[Formula, LoopNode]], dtype: np.dtype[np.generic]
) -> tuple[Formula, LoopNode]:
    fill = simplify_call(op, tuple([fill for _, fill in args]), dtype)
    dtypes = [dtype_of(value) for _, value in args]
    # An argument decides alone if it fixes the result, and at what it is where all are unstored: in 0 / 0 it does not.
    holders = [
        formula
        for k, (formula, value) in enumerate(args)
        if isinstance(value, Literal) and _equals(fill, fixed_result(op, _only(k, value, len(args)), dtypes))
    ]
    if holders:
        return _all(holders), fill
    if op.name == "where" and isinstance(args[0][1], Literal):
        chosen = args[1] if args[0][1].value else args[2]
        return _any([args[0][0], chosen[0]]), fill
    return _any([formula for formula, _ in args]), fill


def _only(k: int, value: Literal, count: int) -> list[np.generic | None]:
    return [value.value if j == k else None for j in range(count)]
