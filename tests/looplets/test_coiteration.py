"""What comes out of coiteration: code of linear size, canonical results, room that grows."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pyfinch.algebra.operators import get
from pyfinch.backends.numba import execute, tiers
from pyfinch.backends.numba.kernel import build
from pyfinch.backends.numba.tiers import kernel_for
from pyfinch.formats.format import format
from pyfinch.formats.tensor import Tensor
from pyfinch.interop.convert import to_tensor
from pyfinch.loops.nodes import Access, Assign, Block, Call, Declare, Freeze, Index, LoopNode, Variable
from pyfinch.loops.simplify import simplify_call
from tests.loops.random_programs import Case, Maker, Seeded, compare, fill_expression, nest, program_of, result_type

i, j, k = Index("i"), Index("j"), Index("k")
F8 = np.dtype("float64")
SPARSE = ("csr", "dcsr", "coo", "dense(sparse_bytemap(element()))")


def operand(name: str, values: Any, text: str, idxs: Sequence[Index], fill: float = 0.0) -> tuple[Tensor, Access]:
    tensor = to_tensor(np.asarray(values), format=format(text, len(idxs)), fill_value=fill)
    return tensor, Access(Variable(name, tensor.ftype), tuple(idxs))


def pointwise(value: LoopNode, idxs: Sequence[Index], text: str) -> Block:
    """``R[…] = value``"""
    init = fill_expression(value)
    result = Variable("R", result_type(text, len(idxs), init))
    return program_of(result, init, nest(Assign(Access(result, tuple(idxs)), get("overwrite"), value), idxs))


def sparse_matrices(count: int, shape: tuple[int, int], density: float = 0.3) -> list[np.ndarray[Any, Any]]:
    rng = np.random.default_rng(count)
    return [np.where(rng.random(shape) < density, rng.integers(1, 9, shape), 0).astype(float) for _ in range(count)]


def union(op: str, count: int, text: str, *, mixed: bool = False, fill: float = 0.0) -> Case:
    """A fold of distinct operands."""
    tensors, value = {}, None
    for n, values in enumerate(sparse_matrices(count, (4, 7))):
        descriptor = SPARSE[n % len(SPARSE)] if mixed else "csr"
        tensors[f"A{n}"], access = operand(f"A{n}", values + fill, descriptor, (i, j), fill)
        value = access if value is None else simplify_call(get(op), (value, access), F8)
    assert value is not None
    return Case(pointwise(value, (i, j), text), tensors, (4, 7))


@pytest.mark.parametrize("count", [3, 4, 5, 32])
@pytest.mark.parametrize("mixed", [False, True])
@pytest.mark.parametrize(("op", "fill"), [("+", 0.0), ("max", 0.0), ("min", 7.5), ("*", 0.0)])
def test_folds_of_many_operands(op: str, fill: float, mixed: bool, count: int) -> None:
    for text in ("csr", "coo", "dense"):
        compare(union(op, count, text, mixed=mixed, fill=fill))


def source_lines(program: Block) -> int:
    return len(build(program).source.splitlines())


@pytest.mark.parametrize("mixed", [False, True])
def test_code_of_unions_is_linear(mixed: bool) -> None:
    sizes = {n: source_lines(union("+", n, "csr", mixed=mixed).program) for n in (8, 16, 32)}
    assert sizes[32] - sizes[16] <= 2.2 * (sizes[16] - sizes[8])


def chain(length: int) -> tuple[Block, dict[str, Tensor]]:
    """The product and the sums of one matrix with itself, again and again."""
    tensor, access = operand("A", sparse_matrices(1, (5, 6))[0], "csr", (i, j))
    value: LoopNode = access
    for n in range(length - 1):
        value = Call(get("*" if n % 2 else "+"), (value, access), F8)
    return pointwise(value, (i, j), "csr"), {"A": tensor}


def test_a_chain_over_one_matrix_has_one_iterator() -> None:
    sizes = {n: source_lines(chain(n)[0]) for n in (4, 13, 22, 31)}
    assert sizes[13] - sizes[4] <= 2 * 9
    assert sizes[22] - sizes[13] == sizes[31] - sizes[22]
    program, tensors = chain(13)
    assert build(program).source.count("for ") == 2
    compare(Case(program, tensors, (5, 6)))


@pytest.mark.parametrize("fill", [0.0, 1.0, 7.5, np.inf, np.nan])
@pytest.mark.parametrize("shape", list(itertools.product((0, 1, 4), repeat=2)))
def test_small_and_empty_shapes(shape: tuple[int, int], fill: float) -> None:
    rng = np.random.default_rng(1)
    a, b = (np.where(rng.random(shape) < 0.5, fill, rng.random(shape)) for _ in "AB")
    for first, second, text in itertools.product(("csr", "coo", "dense"), SPARSE, ("csr", "dcsr", "coo", "dense")):
        x, ax = operand("A", a, first, (i, j), fill)
        y, ay = operand("B", b, second, (i, j), fill)
        value = simplify_call(get("-"), (ax, ay), F8)
        compare(Case(pointwise(value, (i, j), text), {"A": x, "B": y}, shape))


def test_a_result_with_an_operands_structure_shares_it() -> None:
    x, ax = operand("A", sparse_matrices(1, (4, 7))[0], "csr", (i, j))
    program = pointwise(simplify_call(get("-", 1), (ax,), F8), (i, j), "csr")
    result = compare(Case(program, {"A": x}, (4, 7)))
    assert result.buffers[1][0] is x.buffers[1][0]
    assert result.buffers[1][1] is x.buffers[1][1]


# --------------------------------------------------------------------------------------------------- growing


@pytest.fixture
def tight(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    return tighten(monkeypatch)


def tighten(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """First buffers of one entry, grown by no more than what is asked; counts how often they grow."""
    grown: list[int] = []
    allocated, grow = execute.Execution.allocated, execute.Execution.grow

    def small(self: Any, guess: int) -> list[list[Any]]:
        made = allocated(self, guess)
        for number, level in enumerate(self.ftype.levels):
            if level.appends:
                for k in range(1, len(made[number])):
                    made[number][k] = made[number][k][:1].copy()
                self.trim_below(execute.Part(made, np.zeros(0, np.int64), None), number + 1, 1)
        return made

    def counted(self: Any, part: Any) -> None:
        grown.append(1)
        grow(self, part)

    monkeypatch.setattr(execute.Execution, "allocated", small)
    monkeypatch.setattr(execute.Execution, "grow", counted)
    monkeypatch.setattr(tiers.Kernel, "quick", lambda self, tensors, given: None)
    return grown


OUTPUTS = (
    "csr",
    "dcsr",
    "coo",
    "sparse_list(dense(element()))",
)


@pytest.mark.parametrize("text", OUTPUTS)
@pytest.mark.parametrize("fill", [0.0, 7.5])
def test_results_grow(tight: list[int], text: str, fill: float) -> None:
    tensors, value = {}, None
    for n, values in enumerate(sparse_matrices(3, (20, 9), 0.4)):
        tensors["ABC"[n]], access = operand("ABC"[n], values + fill, SPARSE[n], (i, j), fill)
        value = access if value is None else simplify_call(get("+"), (value, access), F8)
    assert value is not None
    result = compare(Case(pointwise(value, (i, j), text), tensors, (20, 9)))
    assert len(tight) > 2 or (tight and text.startswith("sparse_list"))  # there the outermost loop reserves all
    assert result.nnz > 100


@pytest.mark.parametrize(
    "text", ["csf", "coo", "dense(dense(sparse_list(element())))", "sparse_list(sparse_coo[2](element()))"]
)
def test_results_of_three_modes_grow(tight: list[int], text: str) -> None:
    rng = np.random.default_rng(0)
    values = np.where(rng.random((6, 5, 4)) < 0.5, rng.random((6, 5, 4)), 0)
    x, ax = operand("A", values, "csf", (i, j, k))
    y, ay = operand("B", values[::-1].copy(), "coo", (i, j, k))
    compare(Case(pointwise(simplify_call(get("+"), (ax, ay), F8), (i, j, k), text), {"A": x, "B": y}, values.shape))
    assert tight


@pytest.mark.parametrize("text", ["csr", "dcsr", "coo"])
def test_rows_much_bigger_than_the_operands(tight: list[int], text: str) -> None:
    """One full column times one full row, and dense rows out of sparse ones by an operator that fills gaps."""
    column, row = np.zeros((30, 2)), np.zeros((2, 40))
    column[::3, 1], row[1] = 2.0, 3.0
    x, ax = operand("A", column, "csr", (i, k))
    y, ay = operand("B", row, "csr", (k, j))
    zero = simplify_call(get("*"), (fill_expression(ax), fill_expression(ay)), F8)
    result = Variable("R", result_type(text, 2, zero))
    workspace = Variable("W", result_type("sparse_bytemap(element())", 1, zero))
    scatter = nest(Assign(Access(workspace, (j,)), get("+"), Call(get("*"), (ax, ay), F8)), (k, j))
    flush = nest(Assign(Access(result, (i, j)), get("overwrite"), Access(workspace, (j,))), (j,))
    body = nest(Block((Declare(workspace, zero), scatter, Freeze(workspace), flush)), (i,))
    found = compare(Case(program_of(result, zero, body), {"A": x, "B": y}, (30, 40)))
    assert found.nnz == 400
    assert len(tight) > 2


@given(seed=st.integers(0, 2**32 - 1))
@settings(max_examples=60, deadline=None, derandomize=True)
def test_any_room_gives_the_same_result(seed: int) -> None:
    """A gap in the outermost loop that runs out of room goes on where it stopped."""
    choices = Seeded(np.random.default_rng(seed))
    maker = Maker(choices)
    maker.dtypes = ("float64",)
    value = maker.expression([maker.operand((i, j)), maker.operand((i, j))], [get("+"), get("min"), get("*")], 0)
    program = pointwise(value, (i, j), choices.pick(OUTPUTS))
    with pytest.MonkeyPatch.context() as patch, np.errstate(all="ignore"):
        tighten(patch)
        compare(Case(program, maker.tensors, (maker.sizes[i], maker.sizes[j])))


def test_kernels_are_shared_by_program() -> None:
    first, second = union("+", 3, "csr"), union("+", 3, "csr")
    assert first.program is second.program
    assert kernel_for(first.program) is kernel_for(second.program)
