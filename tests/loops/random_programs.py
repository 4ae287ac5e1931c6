"""Random loop programs over random tensors, and their comparison with the interpreter.

What is random comes from a `Choices`: Hypothesis in tests, so that failures shrink, or a seeded generator.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from pyfinch.algebra.errors import DTypeError
from pyfinch.algebra.operators import Operator, all_operators, get
from pyfinch.algebra.values import is_special
from pyfinch.backends.numba.tiers import kernel_for
from pyfinch.formats.format import FType, format
from pyfinch.formats.tensor import Tensor
from pyfinch.interop.convert import to_tensor
from pyfinch.loops.checks import check
from pyfinch.loops.interpreter import interpret
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
    Variable,
    Yield,
)
from pyfinch.loops.simplify import Context, as_dtype, dtype_of, fill_of, simplify_call, substitute
from pyfinch.loops.text import bindings_of, parse

INDICES = tuple(Index(name) for name in "ijkl")
DTYPES = ("float64", "float64", "int64", "int8", "uint8", "uint64", "float32", "complex64", "bool", "int32")
# The sign of a nan is nobody's business, so operators that show it are left out.
OPERATORS = tuple(op for op in all_operators() if op.name not in ("overwrite", "first", "signbit", "copysign"))
REDUCTIONS = ("+", "*", "max", "min", "|", "&", "xor", "logical_or", "logical_and")

INPUTS = {
    0: ("scalar",),
    1: ("dense", "sparse_vector", "coo", "sparse_bytemap(element())"),
    2: (
        "dense",
        "csr",
        "dcsr",
        "coo",
        "dense(sparse_bytemap(element()))",
        "sparse_list(dense(element()))",
        "sparse_bytemap(sparse_list(element()))",
    ),
    3: (
        "dense",
        "csf",
        "coo",
        "dense(sparse_list(sparse_list(element())))",
        "sparse_list(sparse_coo[2](element()))",
        "sparse_coo[2](sparse_list(element()))",
        "dense(sparse_list(dense(element())))",
    ),
}
OUTPUTS = {
    0: ("scalar",),
    1: ("dense", "sparse_vector", "coo"),
    2: ("dense", "csr", "dcsr", "coo", "sparse_list(dense(element()))"),
    3: (
        "dense",
        "csf",
        "coo",
        "dense(dense(sparse_list(element())))",
        "dense(sparse_list(sparse_list(element())))",
        "sparse_list(sparse_coo[2](element()))",
        "dense(sparse_list(dense(element())))",
    ),
}


class Choices(Protocol):
    """Where random choices come from."""

    def pick(self, options: Sequence[Any]) -> Any: ...

    def integer(self, low: int, high: int) -> int: ...

    @property
    def values(self) -> np.random.Generator: ...


@dataclass
class Seeded:
    """Choices of a seeded generator."""

    values: np.random.Generator

    def pick(self, options: Sequence[Any]) -> Any:
        return options[int(self.values.integers(len(options)))]

    def integer(self, low: int, high: int) -> int:
        return int(self.values.integers(low, high + 1))


@dataclass
class Case:
    """A program with its operands."""

    program: Block
    tensors: dict[str, Tensor]
    shape: tuple[int, ...]
    what: dict[str, Any] = field(default_factory=dict)


class Maker:
    """Makes the operands of one program."""

    def __init__(self, choices: Choices) -> None:
        self.choices = choices
        self.sizes = {idx: choices.pick((0, 1, 2, 3, 5, 5)) for idx in INDICES}
        self.tensors: dict[str, Tensor] = {}
        self.dtypes = DTYPES if choices.integer(0, 1) else (choices.pick(DTYPES),)

    def operand(self, idxs: tuple[LoopNode, ...], formats: Sequence[str] = ()) -> Access:
        """A tensor that can be read at these indices, and the access."""
        choices, values = self.choices, self.choices.values
        shape = tuple(self.sizes[idx] if isinstance(idx, Index) else choices.integer(1, 3) for idx in idxs)
        dtype = np.dtype(choices.pick(self.dtypes))
        fill = choices.pick((0, 0, 0, 0, 1, 7.5, np.inf, -np.inf, np.nan))
        fill = dtype.type(fill if np.isfinite(fill) or dtype.kind == "f" else 1)
        entries = values.integers(-3 if dtype.kind in "ifc" else 0, 4, shape).astype(dtype)
        if dtype.kind in "fc":
            entries = entries + dtype.type(0.25) * values.integers(0, 3, shape).astype(dtype)
        density = choices.pick((0.0, 0.3, 0.6, 1.0))
        array = np.where(values.random(shape) < density, entries, fill).astype(dtype)
        descriptor = format(choices.pick(formats or INPUTS[len(idxs)]), len(idxs))
        tensor = to_tensor(array, format=descriptor, fill_value=fill)
        if choices.integer(0, 1) and tensor.ndim and not np.isinf(fill):
            with_stored_fills(tensor, values)
        name = "ABCDEFGH"[len(self.tensors)]
        self.tensors[name] = tensor
        return Access(Variable(name, tensor.ftype), idxs)

    def expression(self, leaves: list[LoopNode], operators: Sequence[Operator], size: int) -> LoopNode:
        """A random tree over leaves, every one of which may stand more than once."""
        choices = self.choices
        pool = list(leaves)
        current = pool[0]
        for leaf in pool[1:]:
            current = self.apply(choices.pick(operators), [current, leaf], pool)
        for _ in range(size):
            current = self.apply(choices.pick(operators), [current], pool)
            pool.append(current)
        return current

    def apply(self, op: Operator, args: list[LoopNode], pool: list[LoopNode]) -> LoopNode:
        """An application to the arguments and others of the pool; the sum where the operator does not take them."""
        count = self.choices.integer(2, 3) if op.arity == -1 else op.arity
        while len(args) < count:
            args = [*args, self.choices.pick((*pool, Literal(self.choices.pick((np.float64(2), np.int8(1))))))]
        for candidate in (op, get("+")):
            used = args[:count] if candidate is op else args
            try:
                return Call(candidate, tuple(used), candidate.result_dtype(*map(dtype_of, used)))
            except DTypeError:
                continue
        raise AssertionError("everything can be added")


def with_stored_fills(tensor: Tensor, values: np.random.Generator) -> None:
    """Store the fill value explicitly in a few places."""
    if tensor.buffers[-1]:
        array = tensor.buffers[-1][0]
        if array.flags.writeable:
            array[values.random(len(array)) < 0.2] = tensor.fill_value


def nest(body: LoopNode, idxs: Sequence[Index], fixed: dict[Index, int] | None = None) -> LoopNode:
    """Loops around a statement."""
    for idx in reversed(idxs):
        size = (fixed or {}).get(idx)
        body = Loop(idx, None if size is None else Literal(np.int64(size)), body)
    return body


def result_type(text: str, ndim: int, init: LoopNode) -> FType:
    """The ftype of a result that starts as ``init``."""
    descriptor = format(text, ndim)
    fill = init.value if isinstance(init, Literal) else np.zeros((), dtype_of(init))[()]
    made = descriptor.specify(dtype_of(init), fill, np.int32, np.int32)
    if not isinstance(init, Literal) or not is_special(init.value):
        levels = (*made.levels[:-1], type(made.levels[-1])(None, dtype_of(init)))
        made = FType(levels, made.mode_order)
    return made


def fill_expression(value: LoopNode) -> LoopNode:
    """An expression over the fill values of its operands."""
    reads = {term: fill_of(term.tensor) for term in _accesses(value) if term.idxs}
    return substitute(value, reads, Context({}))


def _accesses(node: LoopNode) -> list[Access]:
    from pyfinch.loops.nodes import accesses

    return list(accesses(node))


def program_of(result: Variable, init: LoopNode, body: LoopNode) -> Block:
    return Block((Declare(result, init), body, Freeze(result), Yield((result,))))


def free_extents(maker: Maker, idxs: Sequence[Index], body: LoopNode) -> dict[Index, int]:
    """Extents for loops that no operand indexes."""
    used = {idx for access in _accesses(body) if access.tensor.name not in "RW" for idx in access.idxs}
    return {idx: maker.sizes[idx] for idx in idxs if idx not in used}


def pointwise(choices: Choices, operators: Sequence[Operator] = OPERATORS) -> Case:
    """``R[i, …] = e``: 1 to 4 operands, broadcast or not, diagonals and fixed indices among them."""
    maker = Maker(choices)
    ndim = choices.pick((0, 1, 1, 2, 2, 2, 3))
    loops = INDICES[:ndim]
    leaves: list[LoopNode] = [maker.operand(_indices(choices, loops)) for _ in range(choices.integer(1, 4))]
    value = maker.expression(leaves, operators, choices.integer(0, 3))
    init = fill_expression(value)
    result = Variable("R", result_type(choices.pick(OUTPUTS[ndim]), ndim, init))
    assign = Assign(Access(result, loops), get("overwrite"), as_dtype(value, dtype_of(init)))
    body = nest(assign, loops, free_extents(maker, loops, value))
    return Case(program_of(result, init, body), maker.tensors, tuple(maker.sizes[i] for i in loops))


def _indices(choices: Choices, loops: Sequence[Index]) -> tuple[LoopNode, ...]:
    """Indices that follow the loops: all of them, mostly; or fewer, or a diagonal, or a fixed one."""
    match choices.integer(0, 7):
        case 0 if loops:
            return tuple(idx for idx in loops if choices.integer(0, 1))
        case 1 if loops:
            doubled = choices.pick(loops)
            return (doubled, doubled)
        case 2 if len(loops) < 3:
            at = choices.integer(0, len(loops))
            return (*loops[:at], Literal(np.int64(0)), *loops[at:])
        case _:
            return tuple(loops)


def reduction(choices: Choices) -> Case:
    """``R[i] <<op>>= e`` over any loops, with any initial value."""
    maker = Maker(choices)
    count = choices.integer(1, 3)
    loops = INDICES[:count]
    leaves: list[LoopNode] = [maker.operand(tuple(loops)) for _ in range(choices.integer(1, 2))]
    if choices.integer(0, 2) == 0:
        leaves.append(maker.operand(_indices(choices, loops)))
    operators = [get(name) for name in ("*", "+", "max", "abs", "ifelse", "<")]
    value = maker.expression(leaves, operators, choices.integer(0, 1))
    op = get(choices.pick(REDUCTIONS))
    try:
        dtype = op.result_dtype(dtype_of(value), dtype_of(value))
    except DTypeError:
        op, dtype = get("+"), dtype_of(value)
    one = op.identity(dtype)
    init = Literal(dtype.type(choices.pick((0, 1, 3)) if one is None or choices.integer(0, 3) == 0 else one))
    out = tuple(idx for idx in loops if choices.integer(0, 1))
    text = choices.pick([text for text in OUTPUTS[len(out)] if writable(text, loops, out)])
    result = Variable("R", result_type(text, len(out), init))
    body = nest(Assign(Access(result, out), op, value), loops, free_extents(maker, loops, value))
    return Case(program_of(result, init, body), maker.tensors, tuple(maker.sizes[i] for i in out))


def writable(text: str, loops: Sequence[Index], out: Sequence[Index]) -> bool:
    """Whether a format can be written in the order of the loops: what stands inside a reduction must be dense."""
    first = next((k for k, idx in enumerate(loops) if idx not in out), len(loops))
    scattered = sum(idx in out for idx in loops[first:])
    levels = format(text, len(out)).levels
    return not any(level.appends for level in levels[max(len(levels) - 1 - scattered, 0) : -1])


def product(choices: Choices) -> Case:
    """``R[i, j] = sum over k``, through a workspace over j: SpGEMM, in any semiring and any formats."""
    maker = Maker(choices)
    i, k, j = INDICES[:3]
    a, b = maker.operand((i, k)), maker.operand((k, j))
    leaves: list[LoopNode] = [a, b]
    if choices.integer(0, 2) == 0:
        leaves.append(maker.operand((i, k)))
    value = maker.expression(leaves, [get(name) for name in ("*", "*", "+", "min", "&")], 0)
    op = get(choices.pick(("+", "+", "max", "min", "|")))
    try:
        dtype = op.result_dtype(dtype_of(value), dtype_of(value))
    except DTypeError:
        op, dtype = get("+"), dtype_of(value)
    one = op.identity(dtype)
    init = Literal(dtype.type(choices.pick((0, 1, 3)) if choices.integer(0, 3) == 0 else one))
    result = Variable("R", result_type(choices.pick(OUTPUTS[2]), 2, init))
    workspace = Variable("W", result_type("sparse_bytemap(element())", 1, init))
    inner = nest(Assign(Access(workspace, (j,)), op, value), (k, j), {})
    flush = nest(Assign(Access(result, (i, j)), get("overwrite"), Access(workspace, (j,))), (j,))
    body = Block((Declare(workspace, init), inner, Freeze(workspace), flush))
    shape = (maker.sizes[i], maker.sizes[j])
    return Case(program_of(result, init, nest(body, (i,))), maker.tensors, shape)


def named_product(choices: Choices) -> Case:
    """SDDMM, MTTKRP, SpMV and relatives: products of operands that are indexed differently."""
    maker = Maker(choices)
    i, j, k, m = INDICES
    shapes: tuple[tuple[str, tuple[tuple[Index, ...], ...], tuple[Index, ...], tuple[Index, ...]], ...] = (
        ("sddmm", ((i, j), (i, k), (j, k)), (i, j, k), (i, j)),
        ("mttkrp", ((i, j, k), (j, m), (k, m)), (i, j, k, m), (i, m)),
        ("ttv", ((i, j, k), (k,)), (i, j, k), (i, j)),
        ("spmv", ((i, j), (j,)), (i, j), (i,)),
        ("spmm", ((i, k), (k, j)), (i, k, j), (i, j)),
        ("inner", ((i, k), (j, k)), (i, j, k), (i, j)),
        ("dot", ((i, j), (i, j)), (i, j), ()),
    )
    name, reads, loops, out = choices.pick(shapes)
    leaves: list[LoopNode] = [maker.operand(idxs) for idxs in reads]
    value = leaves[0]
    for leaf in leaves[1:]:
        value = simplify_call(get("*"), (value, leaf), get("*").result_dtype(dtype_of(value), dtype_of(leaf)))
    init = Literal(dtype_of(value).type(choices.pick((0, 0, 0, 2))))
    if dtype_of(value).kind == "b":
        init = Literal(np.bool_(False))
    text = choices.pick([text for text in OUTPUTS[len(out)] if writable(text, loops, out)])
    result = Variable("R", result_type(text, len(out), init))
    body = nest(Assign(Access(result, out), get("+"), value), loops)
    return Case(program_of(result, init, body), maker.tensors, tuple(maker.sizes[i] for i in out), {"name": name})


def operands_of(case: Case) -> list[Tensor]:
    kernel = kernel_for(case.program)
    return [case.tensors[var.name] for var in kernel.source.operands]


def compare(case: Case) -> Tensor:
    """Run a program as a kernel and by the interpreter; raises AssertionError where they differ."""
    program = case.program
    check(program)
    assert parse(str(program), bindings_of(program)) is program
    result = kernel_for(program)(operands_of(case), case.shape)
    result.validate()
    (expected,) = interpret(program, case.tensors)
    (lenient,) = interpret(program, case.tensors, annihilate=True)
    dense = result.todense()
    assert dense.shape == expected.shape
    assert dense.dtype == expected.dtype
    certain = same(expected, lenient)
    close(dense[certain], expected[certain], case)
    return result


def same(a: Any, b: Any) -> Any:
    """Where two arrays are equal, nans being equal."""
    return (a == b) | ((a != a) & (b != b))


def close(found: Any, expected: Any, case: Case) -> None:
    """Equal, up to rounding where floats are involved."""
    kinds = [tensor.dtype for tensor in case.tensors.values()]
    if expected.dtype.kind not in "fc":
        np.testing.assert_array_equal(found, expected)
        return
    if expected.dtype.kind == "c":  # which parts of a complex number that is not finite are nan differs
        finite = np.isfinite(expected)
        found, expected = found[finite], expected[finite]
    narrow = any(dtype in (np.float32, np.complex64) or dtype.itemsize < 4 for dtype in (*kinds, expected.dtype))
    np.testing.assert_allclose(found, expected, rtol=1e-4 if narrow else 1e-9, atol=1e-4 if narrow else 1e-9)
