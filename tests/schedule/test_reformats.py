"""Programs that ask for formats; Finch.jl's recordings have none."""

from __future__ import annotations

import numpy as np
import pytest

from pyfinch.formats.format import format
from pyfinch.logic.grammar import validate
from pyfinch.logic.interpreter import evaluate
from pyfinch.logic.nodes import Immediate, Query, Reformat
from pyfinch.schedule.pipeline import STAGES, schedule_default, schedule_trace

from .programs import Array, apply, matmul, program, reduce, squeeze_and_expand, subquery, tensor, transpose

A = np.arange(9.0).reshape(3, 3)
B = A % 4
V = np.arange(3.0)
GIVEN = {"A": A.T, "B": B.T, "v": V}
CSR_A, CSR_B, VECTOR = tensor("A", "csr"), tensor("B", "csr"), tensor("v", "vector")


def reformat(array: Array, spec: str) -> Array:
    return subquery(Reformat(Immediate(format(spec)), array.node), array.ndim)


TIMES = reformat(apply("*", CSR_A, CSR_B), "dcsr")
PLUS = reformat(apply("+", CSR_A, CSR_B), "dcsr")


@pytest.mark.parametrize(
    "array, wanted, queries",
    [
        (PLUS, A + B, 1),
        (reformat(CSR_A, "dcsr"), A, 1),
        (reformat(transpose(CSR_A), "csr"), A.T, 1),
        (apply("+", transpose(reformat(transpose(CSR_A), "csr")), CSR_B), A + B, 3),
        (apply("+", TIMES, CSR_A), A * B + A, 2),
        (apply("+", apply("*", TIMES, TIMES), TIMES), (A * B) ** 2 + A * B, 2),
        (apply("+", TIMES, PLUS), A * B + A + B, 3),
        (reformat(matmul(CSR_A, CSR_B), "dcsr"), A @ B, 1),
        (reformat(matmul(transpose(CSR_A), CSR_B), "dcsr"), A.T @ B, 2),
        (apply("*", reformat(reduce("+", CSR_A, 0.0, 1), "sparse_vector"), VECTOR), A.sum(1) * V, 2),
        (reformat(PLUS, "csr"), A + B, 2),
        (transpose(PLUS), (A + B).T, 1),
        (reformat(squeeze_and_expand(VECTOR, None, 1), "csr"), V[None], 1),
    ],
)
def test_a_program_with_formats(array: Array, wanted: np.ndarray, queries: int) -> None:
    for name, plan in schedule_trace(program(array)):
        if name in STAGES:
            validate(plan, STAGES[name])
        (result,) = evaluate(plan, GIVEN)
        np.testing.assert_array_equal(result.T, wanted, err_msg=name)
    assert sum(isinstance(q, Query) and isinstance(q.rhs, Reformat) for q in plan.bodies) == queries


def test_a_number_that_is_stored_under_a_field_has_that_field() -> None:
    array = reformat(squeeze_and_expand(tensor("s", "scalar"), None, 0), "sparse_vector")
    plan = schedule_default(program(squeeze_and_expand(array, 0, None)))
    formats = [q.rhs.tensor.value.ndim for q in plan.bodies if isinstance(q, Query) and isinstance(q.rhs, Reformat)]
    assert formats == [1, 0]
