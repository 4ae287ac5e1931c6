"""The scheduler that fuses nothing: one operation a query, in plans that every backend can run."""

from __future__ import annotations

import numpy as np
import pytest

import pyfinch as pf
from pyfinch.algebra.term import postorder
from pyfinch.backends.base import get_backend, get_scheduler
from pyfinch.difftest import random_case
from pyfinch.logic.grammar import validate
from pyfinch.logic.nodes import Aggregate, MapJoin, Plan, Query
from pyfinch.schedule.unfused import schedule_unfused

from .programs import apply, matmul, number, program, reduce, tensor

A, B = tensor("A", "csr"), tensor("B", "csr")


def operations(plan: Plan) -> list[int]:
    """How many operations each query has."""
    return [
        sum(isinstance(term, MapJoin | Aggregate) for term in postorder(statement.rhs))
        for statement in plan.bodies
        if isinstance(statement, Query)
    ]


@pytest.mark.parametrize(
    "array, count",
    [
        (apply("*", apply("+", A, B), number(2.0)), 2),
        (reduce("+", apply("*", A, B), 0.0, 1), 2),
        (matmul(A, B), 2),
        (reduce("max", apply("abs", matmul(A, B)), 0.0, 0, 1), 4),
    ],
)
def test_every_operation_is_a_query(array: object, count: int) -> None:
    plan = schedule_unfused(program(array))  # type: ignore[arg-type]
    validate(plan, "formatted")
    assert max(operations(plan)) == 1
    assert sum(operations(plan)) == count


def test_random_programs_have_one_operation_a_query() -> None:
    for seed in range(60):
        plan = get_scheduler("unfused")[1](random_case(seed).program).plan
        validate(plan, "formatted")
        assert max(operations(plan)) <= 1


@pytest.mark.parametrize("backend", ["numba", "reference"])
def test_it_is_chosen_by_name(backend: str) -> None:
    assert get_backend(backend).name == backend
    x = pf.asarray(np.arange(6.0).reshape(2, 3)).to_format("csr")
    with pf.use_backend(backend), pf.use_scheduler("unfused"):
        result = pf.compute(pf.sum(pf.lazy(x) * 2 + 1, axis=1))
    np.testing.assert_array_equal(result.todense(), [9.0, 27.0])
