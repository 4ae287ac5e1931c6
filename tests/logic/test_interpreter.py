"""The reference interpreter against NumPy."""

from __future__ import annotations

import numpy as np
import pytest

from pyfinch.algebra.errors import ScheduleError, ShapeError
from pyfinch.formats.format import format
from pyfinch.formats.tensor import Tensor
from pyfinch.logic.interpreter import evaluate
from pyfinch.logic.nodes import Alias, Immediate, LogicNode, MapJoin, Plan, Produces, Query
from pyfinch.logic.text import parse

A = np.arange(6.0).reshape(2, 3)
V = np.array([1.0, 10.0, 100.0])


def run(expr: str, **given: object) -> np.ndarray:
    (result,) = evaluate(parse(f"plan(query(alias(R), {expr}), produces(alias(R)))"), given)
    return result


TA = "table(deferred(A, nothing), field(i), field(j))"
TV = "table(deferred(V, nothing), field(j))"


@pytest.mark.parametrize(
    "expr, wanted",
    [
        (TA, A),
        (f"reorder({TA}, field(j), field(i))", A.T),
        (f"reorder({TA}, field(i), field(k), field(j))", A[:, None, :]),
        (f"relabel({TA}, field(a), field(b))", A),
        (f"mapjoin(immediate(+), {TA}, {TV})", A + V),
        (f"mapjoin(immediate(+), {TV}, {TA})", (A + V).T),
        (f"mapjoin(immediate(-), {TV})", -V),
        (f"mapjoin(immediate(*), {TV}, relabel(immediate(2.0)))", V * 2),
        (f"aggregate(immediate(+), immediate(0.0), {TA}, field(i))", A.sum(0)),
        (f"aggregate(immediate(max), immediate(-Inf), {TA}, field(i), field(j))", A.max()),
        (f"aggregate(immediate(+), immediate(5.0), {TV})", V + 5),
        (f"subquery(alias(S), {TA})", A),
        (f"reformat(deferred(F, nothing), {TA})", A),
        ("reorder(table(deferred(W, nothing), field(i), field(j)), field(j))", V),
    ],
)
def test_each_node_means_what_numpy_says(expr: str, wanted: np.ndarray) -> None:
    np.testing.assert_array_equal(run(expr, A=A, V=V, W=V[None]), wanted)


def test_reduction_over_nothing_is_the_init_and_keeps_its_dtype() -> None:
    empty = np.zeros((2, 0), np.float32)
    result = run(
        "aggregate(immediate(+), immediate(7), table(deferred(A, nothing), field(i), field(j)), field(j))",
        A=empty,
    )
    np.testing.assert_array_equal(result, [7, 7])
    assert result.dtype == np.int64


def test_small_integers_accumulate_in_the_dtype_of_the_init() -> None:
    ones = np.full(1000, 100, np.int8)
    assert (
        run("aggregate(immediate(+), immediate(0), table(deferred(A, nothing), field(i)), field(i))", A=ones) == 100_000
    )


def test_storage_tensors_are_read_in_reverse_storage_order() -> None:
    csr = Tensor.from_buffers(
        format("csr").specify(np.float64, 0.0),
        (2, 3),
        ((), (np.array([0, 1, 2]), np.array([2, 0])), (np.array([5.0, 6.0]),)),
    )
    np.testing.assert_array_equal(run(TA, A=csr), csr.todense().T)


def test_errors() -> None:
    with pytest.raises(ShapeError, match="cannot be dropped"):
        run(f"reorder({TA}, field(i))", A=A)
    with pytest.raises(ShapeError, match="cannot have the fields"):
        run(TA, A=V)
    with pytest.raises(ScheduleError, match="not bound"):
        run("alias(nobody)")
    with pytest.raises(ScheduleError, match="not bound"):
        run(TA)
    with pytest.raises(ScheduleError, match="not a statement"):
        evaluate(parse("alias(A)"))


def test_a_shared_part_is_computed_once() -> None:
    from pyfinch.algebra.operators import get

    node: LogicNode = parse(TV)
    for _ in range(60):
        node = MapJoin(Immediate(get("max")), (node, node))
    (result,) = evaluate(Plan((Query(Alias("R"), node), Produces((Alias("R"),)))), {"V": V})
    np.testing.assert_array_equal(result, V)
