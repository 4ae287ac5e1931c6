"""The format of a result is a function of the operands' types and the operation."""

from __future__ import annotations

import numpy as np
import pytest

from pyfinch.algebra.errors import ScheduleError
from pyfinch.formats.format import Format, format
from pyfinch.logic.nodes import Alias, Deferred, Immediate, LogicNode, Plan, Query, Reformat, Table
from pyfinch.schedule.pipeline import schedule_default

from .programs import (
    Array,
    apply,
    matmul,
    new_fields,
    number,
    outer,
    program,
    reduce,
    subquery,
    tensor,
    transpose,
)


def result_format(array: Array) -> Format:
    plan = schedule_default(program(array))
    produced = plan.bodies[-1].children[0]
    alias = produced if isinstance(produced, Alias) else produced.children[0].children[0]
    query = next(q for q in plan.bodies if isinstance(q, Query) and q.lhs is alias)
    assert isinstance(query.rhs, Reformat)
    assert isinstance(query.rhs.tensor, Immediate)
    return query.rhs.tensor.value


def csr(name: str = "A", **more: object) -> Array:
    return tensor(name, "csr", **more)  # type: ignore[arg-type]


DENSE = tensor("D", "dense", 2)
COO = tensor("E", "coo", 2)
SPARSE = tensor("x", "sparse_vector")
VECTOR = tensor("v", "vector")
ONE = number(1.0)
SCALAR = tensor("s", "scalar")
CSR, MATRIX, DCSR = "dense(sparse_list({}))", "dense(dense({}))", "sparse_list(sparse_list({}))"
ZERO = "element(0.0, float64)"


@pytest.mark.parametrize(
    "array, wanted, leaf",
    [
        (apply("*", csr(), csr("B")), CSR, ZERO),
        (apply("*", csr(), DENSE), CSR, ZERO),
        (apply("/", csr(), DENSE), CSR, ZERO),
        (apply("+", csr(), DENSE), MATRIX, ZERO),
        (apply("+", csr(), csr("B")), CSR, ZERO),
        (apply("-", csr()), CSR, "element(-0.0, float64)"),
        (apply("+", csr(), ONE), CSR, "element(1.0, float64)"),
        (apply("+", csr(), number(0.1)), CSR, "element(float64)"),
        (apply("max", apply("+", csr(), number(0.1)), csr("B")), CSR, "element(float64)"),
        (apply("*", csr(), SCALAR), CSR, ZERO),
        (apply("+", csr(), SCALAR), CSR, "element(float64)"),
        (apply("*", csr(), VECTOR), CSR, ZERO),
        (apply("+", csr(), VECTOR), MATRIX, ZERO),
        (apply("+", csr(), SPARSE), CSR, ZERO),
        (apply(">", csr(), number(0.0)), CSR, "element(False, bool)"),
        (apply("ifelse", apply(">", csr(), number(0.0)), csr("B"), csr("C")), CSR, ZERO),
        (apply("ifelse", apply(">", csr(), number(0.0)), DENSE, number(0.0)), CSR, ZERO),
        (apply("+", csr(fill=3.5), csr("B", fill=3.5)), CSR, "element(float64)"),
        (apply("*", csr(fill=3.5), DENSE), MATRIX, ZERO),
        (apply("+", csr(fill=3.5), DENSE), MATRIX, "element(float64)"),
        (apply("min", csr(fill=np.inf), csr("B", fill=np.inf)), CSR, "element(inf, float64)"),
        (apply("+", csr(dtype=np.float32), csr("B", dtype=np.float32)), CSR, "element(0.0, float32)"),
        (apply("+", COO, COO), DCSR, ZERO),
        (apply("*", COO, tensor("F", "coo", 2)), DCSR, ZERO),
        (apply("+", COO, csr()), CSR, ZERO),
        (matmul(csr(), csr("B")), CSR, ZERO),
        (matmul(csr(), csr()), CSR, ZERO),
        (matmul(csr(), DENSE), MATRIX, ZERO),
        (matmul(DENSE, csr()), MATRIX, ZERO),
        (matmul(DENSE, DENSE), MATRIX, ZERO),
        (matmul(transpose(csr()), csr()), CSR, ZERO),
        (matmul(COO, COO), DCSR, ZERO),
        (apply("*", csr(), matmul(DENSE, tensor("Y", "dense", 2))), CSR, ZERO),
        (apply("*", matmul(csr(), csr()), csr()), CSR, ZERO),
        (matmul(csr(), VECTOR), "dense({})", ZERO),
        (matmul(transpose(csr()), VECTOR), "dense({})", ZERO),
        (matmul(COO, SPARSE), "sparse_list({})", ZERO),
        (reduce("+", csr(), 0.0, 0), "dense({})", ZERO),
        (reduce("+", csr(), 0.0, 1), "dense({})", ZERO),
        (reduce("+", csr(), 0.0, 0, 1), "{}", ZERO),
        (reduce("max", csr(), -np.inf, 1), "dense({})", "element(-inf, float64)"),
        (reduce("+", COO, 0.0, 0), "sparse_list({})", ZERO),
        (reduce("+", csr(dtype=np.int8, fill=0), 0, 1), "dense({})", "element(0, int64)"),
        (reduce("+", csr(dtype=np.int8, fill=0), np.int8(0), 1), "dense({})", "element(0, int8)"),
        (outer(SPARSE, tensor("y", "sparse_vector")), DCSR, ZERO),
        (outer(VECTOR, SPARSE), CSR, ZERO),
    ],
)
def test_result_formats(array: Array, wanted: str, leaf: str) -> None:
    assert str(result_format(array)) == wanted.format(leaf)


def test_an_intermediate_that_is_copied_into_columns_is_dense_over_columns() -> None:
    plan = schedule_default(program(apply("+", csr(), transpose(csr()))))
    formats = [str(q.rhs.tensor.value) for q in plan.bodies if isinstance(q, Query) and isinstance(q.rhs, Reformat)]
    assert formats == [CSR.format(ZERO)] * 2


def test_a_given_format_is_kept_and_its_leaf_completed() -> None:
    target = format("dcsr")
    wanted = subquery(Reformat(Immediate(target), csr().node), 2)
    assert str(result_format(wanted)) == DCSR.format(ZERO)


def test_formats_do_not_depend_on_the_value_of_a_number_without_algebra() -> None:
    assert result_format(apply("*", csr(), number(0.3))) == result_format(apply("*", csr(), number(0.4)))


def test_unknown_types_are_an_error() -> None:
    untyped: LogicNode = Table(Deferred("T", None), new_fields(1))
    with pytest.raises(ScheduleError, match="type of"):
        schedule_default(program(Array(untyped, 1)))
    assert isinstance(schedule_default(program(csr())), Plan)
