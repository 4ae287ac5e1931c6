"""Runs a loop program element by element over dense views: slow and obvious, what kernels are compared with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from pyfinch.algebra.errors import ShapeError
from pyfinch.algebra.fixed import fixed_result
from pyfinch.algebra.operators import Operator, cast
from pyfinch.algebra.term import Term, postorder
from pyfinch.algebra.values import is_special, same_value
from pyfinch.formats.format import FType
from pyfinch.formats.tensor import Tensor
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

__all__ = ["interpret"]

Array = np.ndarray[Any, np.dtype[Any]]


def interpret(program: LoopNode, inputs: Mapping[str, Any], *, annihilate: bool = False) -> tuple[Array, ...]:
    """Run a loop program.

    Parameters
    ----------
    program
        A program that passes `checks.check`.
    inputs
        Operands by name (arrays, or tensors, in their logical mode order) and run-time values by name; the fill
        value of a tensor ``A`` need not be given as ``A_fill``.
    annihilate
        Whether ``0 * inf`` is 0, and alike wherever one argument decides (`fixed_result`). Kernels take that
        freedom where the 0 is not stored; by default everything is NumPy's.

    Returns
    -------
    tuple of ndarray
        What the program yields, in logical mode order.

    Raises
    ------
    ShapeError
        If nothing gives a loop's extent, or two operands give different ones.

    Examples
    --------
    >>> from pyfinch.formats.format import format
    >>> from pyfinch.loops.text import parse
    >>> types = {"A": format("csr").specify("float64", 0.0), "y": format("vector").specify("float64", 0.0)}
    >>> text = "y .= 0.0; for i = _; for j = _; y[i] += A[i, j] end end; @freeze(y); return y"
    >>> interpret(parse(text, types), {"A": np.ones((2, 3))})
    (array([3., 3.]),)
    """
    return _Run(program, inputs, annihilate).run()


class _Run:
    def __init__(self, program: LoopNode, inputs: Mapping[str, Any], annihilate: bool) -> None:
        self.program = program
        self.annihilate = annihilate
        self.values: dict[str, Any] = {
            f"{name}_fill": given.fill_value for name, given in inputs.items() if isinstance(given, Tensor)
        }
        self.arrays: dict[Variable, Array] = {}
        self.known: dict[Term, Any] = {}  # indices and scalars at hand
        self.orders: dict[LoopNode, list[Term]] = {}
        self.results: tuple[Array, ...] = ()
        declared = {term.tensor for term in postorder(program) if isinstance(term, Declare)}
        for term in postorder(program):
            match term:
                case Variable(name, FType() as ftype) if term not in declared:
                    given = inputs[name]
                    given = given.todense() if isinstance(given, Tensor) else given
                    self.arrays[term] = np.asarray(given, ftype.dtype).transpose(ftype.mode_order)
                case Value(name, dtype):
                    given = inputs[name] if name in inputs else self.values[name]
                    self.values[name] = np.asarray(given, dtype)[()]
        self.extents = self.find_extents()

    def run(self) -> tuple[Array, ...]:
        """Run the whole program."""
        self.statement(self.program)
        return self.results

    # ----------------------------------------------------------------------------------------------- shapes

    def find_extents(self) -> dict[Index, int]:
        """Each index's extent: a loop's own, or that of the operands that it indexes."""
        extents: dict[Index, int] = {}
        for term in postorder(self.program):
            match term:
                case Loop(index, LoopNode() as extent, _):
                    extents[index] = int(self.value(extent))
                case Access(tensor, idxs) if tensor in self.arrays:
                    for idx, size in zip(idxs, self.arrays[tensor].shape, strict=True):
                        if isinstance(idx, Index) and extents.setdefault(idx, size) != size:
                            raise ShapeError(f"{idx} runs over {extents[idx]}, but {term} has {size} there")
        return extents

    def extent(self, idx: LoopNode) -> int:
        if isinstance(idx, Literal):
            return int(idx.value) + 1
        if not isinstance(idx, Index) or idx not in self.extents:
            raise ShapeError(f"nothing gives the extent of {idx}")
        return self.extents[idx]

    def shape(self, tensor: Variable) -> tuple[int, ...]:
        """A declared tensor's extents in storage order, by its accesses."""
        uses = [t.idxs for t in postorder(self.program) if isinstance(t, Access) and t.tensor is tensor]
        sizes = [tuple(self.extent(idx) for idx in idxs) for idxs in uses]
        return tuple(max(slot) for slot in zip(*sizes, strict=True))

    # ------------------------------------------------------------------------------------------- statements

    def statement(self, node: LoopNode) -> None:
        match node:
            case Block(bodies):
                for body in bodies:
                    self.statement(body)
            case Loop(index, _, body):
                for at in range(self.extent(index)):
                    self.known[index] = np.int64(at)
                    self.statement(body)
                self.known.pop(index, None)
            case Sieve(cond, body):
                if self.value(cond):
                    self.statement(body)
            case Define(lhs, rhs, body):
                self.known[lhs] = self.value(rhs)
                self.statement(body)
                del self.known[lhs]
            case Declare(Variable(_, FType() as ftype) as tensor, init):
                self.arrays[tensor] = np.full(self.shape(tensor), self.value(init), ftype.dtype)
            case Assign(lhs, op, rhs):
                self.assign(lhs, op, self.value(rhs))
            case Freeze() | Thaw():
                pass
            case Yield(args):
                self.results = tuple(self.logical(arg) for arg in args)
            case _:
                raise TypeError(f"not a statement: {node!r}")

    def assign(self, lhs: Access, op: Operator, value: Any) -> None:
        array = self.arrays[lhs.tensor]
        place = tuple(int(self.value(idx)) for idx in lhs.idxs)
        dtype = op.result_dtype(array.dtype, np.asarray(value).dtype)
        array[place] = cast(array.dtype)(self.call(op, [array[place], value], dtype))

    def logical(self, arg: LoopNode) -> Array:
        """A result in logical mode order."""
        assert isinstance(arg, Variable) and isinstance(arg.type, FType)
        return self.arrays[arg].transpose(np.argsort(arg.type.mode_order).tolist())

    # ------------------------------------------------------------------------------------------- expressions

    def value(self, node: LoopNode) -> Any:
        """The value of an expression; every call's has NumPy's dtype."""
        if node not in self.orders:
            self.orders[node] = list(postorder(node))
        done: dict[Term, Any] = {}
        for term in self.orders[node]:
            match term:
                case Literal(value):
                    done[term] = value
                case Value(name, _):
                    done[term] = self.values[name]
                case Index() | Variable(_, np.dtype()):
                    done[term] = self.known[term]
                case Access(tensor, idxs):
                    done[term] = self.arrays[tensor][tuple(int(done[idx]) for idx in idxs)]
                case Call(op, args, dtype):
                    done[term] = self.call(op, [done[arg] for arg in args], dtype)
        return done[node]

    def call(self, op: Operator, args: Sequence[Any], dtype: np.dtype[Any]) -> Any:
        strict = np.asarray(op(*args)).astype(dtype)[()]
        if self.annihilate and len(args) > 1:
            dtypes = [np.asarray(arg).dtype for arg in args]
            for k, arg in enumerate(args):
                known = [np.asarray(arg)[()] if j == k else None for j in range(len(args))]
                fixed = fixed_result(op, known, dtypes) if is_special(arg) else None
                if fixed is not None and not same_value(cast(dtype)(fixed), strict):
                    return cast(dtype)(fixed)
        return strict
