"""Random programs keep their value through every pass; large ones do not blow up."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pyfinch.algebra.operators import get
from pyfinch.algebra.term import postorder
from pyfinch.formats.format import format as a_format
from pyfinch.logic.grammar import validate
from pyfinch.logic.interpreter import evaluate
from pyfinch.logic.nodes import (
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
    Table,
)
from pyfinch.logic.text import bindings_of, parse
from pyfinch.schedule.bound_queries import LIMIT, bound_queries
from pyfinch.schedule.pipeline import DEFAULT, STAGES, schedule_default, schedule_trace

from .programs import (
    Array,
    apply,
    matmul,
    new_fields,
    number,
    outer,
    program,
    reduce,
    squeeze_and_expand,
    subquery,
    tensor,
    transpose,
)

N = 3
_rng = np.random.default_rng(5)
INPUTS = {
    "A": _rng.integers(-3, 4, (N, N)).astype(float),
    "B": _rng.integers(-3, 4, (N, N)).astype(float),
    "v": _rng.integers(-3, 4, N).astype(float),
    "r": _rng.integers(-3, 4, (1, N)).astype(float),
}


def inputs() -> list[Array]:
    return [tensor("A", "csr"), tensor("B", "dense", 2), tensor("v", "vector"), tensor("r", "dense", 2)]


# The interpreter reads a bare array's axes as fields, that is innermost first.
GIVEN = {name: array.transpose() for name, array in INPUTS.items()}


@st.composite
def programs(draw: st.DrawFn) -> tuple[Plan, list[np.ndarray]]:
    """A program and, for each result, its value by NumPy."""
    pool = [(array, value) for array, value in zip(inputs(), INPUTS.values(), strict=True)]
    for _ in range(draw(st.integers(1, 8))):
        array, value = draw(st.sampled_from(pool))
        other, other_value = draw(st.sampled_from(pool))
        square = value.shape == (N, N)
        kind = draw(st.integers(0, 7))
        if kind == 0:
            made = apply("+", array, number(2.0)), value + 2.0
        elif kind == 1 and value.shape == other_value.shape:
            name = draw(st.sampled_from(["+", "*", "-", "max", "min"]))
            made = apply(name, array, other), get(name)(value, other_value)
        elif kind == 2 and value.ndim:
            axis = draw(st.integers(0, value.ndim - 1))
            name, init = draw(st.sampled_from([("+", 0.0), ("max", -np.inf), ("min", np.inf), ("+", 1.0)]))
            ufunc = {"+": np.add, "max": np.maximum, "min": np.minimum}[name]
            made = reduce(name, array, init, axis), ufunc.reduce(value, axis=axis, initial=init)
        elif kind == 3 and value.ndim == 2:
            made = transpose(array), value.T
        elif kind == 4 and square and other_value.shape in ((N, N), (N,)):
            made = matmul(array, other), value @ other_value
        elif kind == 5 and value.ndim == 1 and other_value.ndim == 1:
            made = outer(array, other), np.outer(value, other_value)
        elif kind == 6 and value.shape[:1] == (1,):
            made = squeeze_and_expand(array, value.ndim - 1, None), value[0]
        elif kind == 7 and value.ndim == 1:
            made = squeeze_and_expand(array, None, 1), value[None]
        else:
            continue
        pool.append((made[0], np.asarray(made[1])))
    results = draw(st.lists(st.sampled_from(pool), min_size=1, max_size=3))
    return program(*[array for array, _ in results]), [value for _, value in results]


@settings(max_examples=150, deadline=None)
@given(programs())
def test_every_pass_keeps_the_value_and_gives_its_grammar(case: tuple[Plan, list[np.ndarray]]) -> None:
    plan, wanted = case
    validate(plan, "raw")
    trace = schedule_trace(plan, (*DEFAULT[:-1], lambda p: bound_queries(p, limit=1), DEFAULT[-1]))
    for name, now in trace:
        if name in STAGES:
            validate(now, STAGES[name])
        results = evaluate(now, GIVEN)
        assert len(results) == len(wanted)
        for result, value in zip(results, wanted, strict=True):
            np.testing.assert_allclose(result.transpose(), value, rtol=1e-9, err_msg=name)


@settings(max_examples=50, deadline=None)
@given(programs())
def test_scheduled_programs_read_back_and_schedule_the_same_again(
    case: tuple[Plan, list[np.ndarray]],
) -> None:
    plan = schedule_default(case[0])
    assert parse(str(plan), bindings_of(plan)) is plan
    assert schedule_default(case[0]) is plan


def chain(length: int) -> Plan:
    array = tensor("A", "csr")
    other = tensor("B", "csr")
    for _ in range(length):
        array = apply("+", array, other)
    return program(array)


def map_joins(plan: Plan) -> list[int]:
    return [
        sum(isinstance(term, MapJoin) for term in postorder(query.rhs))
        for query in plan.bodies
        if isinstance(query, Query) and isinstance(query.rhs, Reformat)
    ]


def test_a_chain_of_5000_operations_becomes_equal_pieces() -> None:
    sizes = map_joins(schedule_default(chain(5000)))
    assert sum(sizes) == 5000
    assert max(sizes) <= LIMIT
    assert sizes[1:-1] == [LIMIT] * (len(sizes) - 2)


def test_a_chain_keeps_its_value_when_it_is_split() -> None:
    (result,) = evaluate(schedule_default(chain(300)), GIVEN)
    np.testing.assert_array_equal(result.transpose(), INPUTS["A"] + 300 * INPUTS["B"])


def test_a_plan_of_1000_queries() -> None:
    arrays = [apply("+", tensor(f"A{n}", "csr"), tensor(f"B{n}", "csr")) for n in range(1000)]
    plan = schedule_default(program(*arrays))
    assert map_joins(plan) == [1] * 1000


def test_results_that_share_a_long_chain_are_computed_once() -> None:
    array, arrays = tensor("A", "csr"), []
    for _ in range(300):
        array = apply("+", array, tensor("B", "csr"))
        arrays.append(array)
    assert sum(map_joins(schedule_default(program(*arrays)))) == 300


@pytest.mark.parametrize("wrapped", [True, False])
def test_a_dag_with_2_to_the_40_paths(wrapped: bool) -> None:
    array = tensor("A", "csr")
    for _ in range(40):
        if wrapped:
            array = apply("+", array, array)
        else:
            array = Array(MapJoin(Immediate(get("+")), (array.node, array.node)), 2)
    plan = schedule_default(program(array))
    assert sum(map_joins(plan)) == 40
    (result,) = evaluate(plan, GIVEN)
    np.testing.assert_array_equal(result.transpose(), INPUTS["A"] * 2.0**40)


def test_a_dag_of_bare_map_joins_with_transposes() -> None:
    node, _ = tensor("A", "csr").node, 2
    for _ in range(40):
        i, j = new_fields(2)
        node = subquery(MapJoin(Immediate(get("max")), (Relabel(node, (i, j)), Relabel(node, (j, i)))), 2).node
    (result,) = evaluate(schedule_default(Plan((Query(Alias("R"), node), Produces((Alias("R"),))))), GIVEN)
    symmetric = np.maximum(INPUTS["A"], INPUTS["A"].T)
    np.testing.assert_array_equal(result, symmetric)


def test_a_reduction_leaves_a_long_product() -> None:
    array = reduce("+", tensor("A", "csr"), 0.0, 1)
    for _ in range(400):
        array = apply("*", array, tensor("v", "vector"))
    plan = schedule_default(program(array))
    assert sum(map_joins(plan)) == 400


def test_a_fold_of_very_many_arguments_is_split() -> None:
    i = new_fields(2)
    args = tuple(Relabel(tensor(f"A{n}", "csr").node, i) for n in range(3000))
    plan = schedule_default(program(subquery(MapJoin(Immediate(get("+")), args), 2)))
    for query in plan.bodies:
        assert sum(isinstance(t, MapJoin) for t in postorder(query)) <= LIMIT
        assert all(len(t.args) <= 32 for t in postorder(query) if isinstance(t, MapJoin))


def test_a_sum_of_many_sparse_tensors_is_merged_a_few_at_a_time() -> None:
    csr = a_format("csr").specify(np.float64, 0.0)
    i, j = Field("i"), Field("j")
    names = [f"T{k}" for k in range(32)]
    x: LogicNode = Table(Deferred(names[0], csr), (i, j))
    for name in names[1:]:
        x = MapJoin(Immediate(get("+")), (x, Table(Deferred(name, csr), (i, j))))
    plan = schedule_default(Plan((Query(Alias("R"), Reorder(x, (i, j))), Produces((Alias("R"),)))))
    queries = [query for query in plan.bodies if isinstance(query, Query) and isinstance(query.rhs, Reformat)]
    assert len(queries) == 5
    for query in queries:
        assert len({term for term in postorder(query.rhs) if isinstance(term, Alias)}) <= 8
    arrays = {name: np.full((2, 3), float(k)) for k, name in enumerate(names)}
    (value,) = evaluate(plan, arrays)
    np.testing.assert_array_equal(value, np.full((2, 3), float(sum(range(32)))))
