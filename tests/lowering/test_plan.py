"""Lowering: which steps a scheduled plan becomes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from pyfinch.algebra.operators import get
from pyfinch.algebra.term import postorder
from pyfinch.api.compute import compute_all, program_of
from pyfinch.api.lazy import LazyTensor, aggregate, contract, map_join, relabeled, table
from pyfinch.backends.numba import NumbaBackend, execute
from pyfinch.backends.numba.backend import NumbaExecutable
from pyfinch.formats.levels import SparseList
from pyfinch.interop.convert import to_tensor
from pyfinch.loops.nodes import Declare
from pyfinch.lowering import LoopPlan, lower_plan
from pyfinch.schedule.pipeline import schedule_default

N = 6
ZERO = np.float64(0)


def sparse(seed: int, form: str = "csr") -> Any:
    rng = np.random.default_rng(seed)
    return sp.random_array((N, N), density=0.4, rng=rng, format=form)


def product(a: LazyTensor, b: LazyTensor) -> LazyTensor:
    return contract(get("+"), ZERO, get("*"), [(a, "ik"), (b, "kj")], "ij", {"i": N, "j": N, "k": N})


def plan_of(x: LazyTensor) -> LoopPlan:
    return lower_plan(schedule_default(program_of([x])[0]))


def kinds(plan: LoopPlan) -> list[str]:
    return [step.kind for step in plan.steps]


def test_product_of_csr_scatters_into_a_workspace() -> None:
    (step,) = plan_of(product(table(to_tensor(sparse(0))), table(to_tensor(sparse(1))))).steps
    assert step.program is not None
    declared = [term for term in postorder(step.program) if isinstance(term, Declare)]
    assert sorted(term.tensor.name for term in declared) == ["R", "W"]
    assert isinstance(step.ftype.levels[1], SparseList)


def test_one_operand_read_twice_is_one_operand() -> None:
    a = to_tensor(sparse(0))
    (step,) = plan_of(map_join(get("*"), [table(a), table(a)])).steps
    assert len(step.operands) == 1


def test_transposing_a_production_copies_nothing() -> None:
    a = to_tensor(sparse(0))
    (result,) = compute_all([relabeled(table(a), (1, 0))])
    assert result.buffers[1][1] is a.buffers[1][1]
    np.testing.assert_array_equal(result.todense(), a.todense().T)


def test_conflicting_storage_orders_cost_one_permuting_copy() -> None:
    a = to_tensor(sparse(0))
    assert kinds(plan_of(map_join(get("+"), [table(a), relabeled(table(a), (1, 0))]))) == ["permute", "kernel"]


@pytest.mark.parametrize("forms", [("csr", "csc"), ("csc", "csr"), ("csc", "csc"), ("coo", "csr")])
def test_products_of_any_storage_orders_stay_sparse(forms: tuple[str, str]) -> None:
    a, b = sparse(0, forms[0]), sparse(1, forms[1])
    x = product(table(to_tensor(a)), table(to_tensor(b)))
    assert "accumulate" not in kinds(plan_of(x))
    (result,) = compute_all([x])
    assert any(level.appends for level in result.ftype.levels)
    np.testing.assert_allclose(result.todense(), (a @ b).toarray())


def test_two_scattered_modes_are_accumulated_and_sorted() -> None:
    rng = np.random.default_rng(0)
    a = np.where(rng.random((N, N)) < 0.4, rng.random((N, N)), 0)
    b = np.where(rng.random((N, 3, 4)) < 0.4, rng.random((N, 3, 4)), 0)
    lazy_b = table(to_tensor(b, format="csf"))
    sizes = {"i": N, "k": N, "j": 3, "l": 4}
    x = contract(get("+"), ZERO, get("*"), [(table(to_tensor(sp.csr_array(a))), "ik"), (lazy_b, "kjl")], "ijl", sizes)
    assert "accumulate" in kinds(plan_of(x))
    (result,) = compute_all([x])
    result.validate()
    np.testing.assert_allclose(result.todense(), np.einsum("ik,kjl->ijl", a, b))


def test_a_whole_reduction_is_a_scalar_kernel() -> None:
    a = to_tensor(sparse(0))
    (step,) = plan_of(aggregate(get("+"), ZERO, table(a), (0, 1))).steps
    assert step.ftype.ndim == 0


def test_int32_results_widen_when_they_must(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the limit of int32 lowered to 5, results of more entries are computed again with int64."""
    monkeypatch.setitem(execute.LIMITS, np.dtype(np.int32), 5)
    a = sp.csr_array(np.eye(4, 5)[:, ::-1].copy())
    a.indices, a.indptr = a.indices.astype(np.int32), a.indptr.astype(np.int32)
    b = sp.csr_array(np.ones((4, 5)))
    b.indices, b.indptr = b.indices.astype(np.int32), b.indptr.astype(np.int32)
    x = map_join(get("+"), [table(to_tensor(a)), table(to_tensor(b))])
    executable = NumbaExecutable(schedule_default(program_of([x])[0]))
    names = program_of([x])[1]
    tensors = {f"T{k}": x.operands[name] for k, name in enumerate(names)}
    for _ in range(2):
        (result,) = executable(tensors)
        assert result.buffers[1][0].dtype == np.int64
        np.testing.assert_array_equal(result.todense(), a.toarray() + 1)
    assert executable.widened is not None


def test_the_backend_is_available_without_importing_numba() -> None:
    assert NumbaBackend().available().available


def test_a_plan_of_a_thousand_queries_schedules_and_runs() -> None:
    """500 products and 500 sums that nothing can fuse away."""
    a, b = sparse(0) * 0.3, sparse(1)
    lazy_a, lazy_b = table(to_tensor(a)), table(to_tensor(b))
    x, expected = lazy_a, a.toarray()
    for _ in range(500):
        x = product(x, lazy_a)
        x = map_join(get("+"), [x, aggregate(get("max"), ZERO, x, (0, 1)), lazy_b])
        expected = expected @ a.toarray()
        expected = expected + max(expected.max(), 0) + b.toarray()
    program, _ = program_of([x])
    assert len(lower_plan(schedule_default(program)).steps) >= 1000
    (result,) = compute_all([x])
    np.testing.assert_allclose(result.todense(), expected, rtol=1e-9)


def test_products_of_few_entries_over_huge_modes_are_sorted() -> None:
    """No workspace of the mode's size is made."""
    n = 10**9
    ends = (np.array([0, 5, n - 1, 7]), np.array([7, 2, 5, n - 2]))
    huge = to_tensor(sp.coo_array((np.arange(1.0, 5.0), ends), shape=(n, n)), format="dcsr")
    x = table(huge)
    names = [(x, "ik"), (x, "kj")]
    (result,) = compute_all([contract(get("+"), ZERO, get("*"), names, "ij", {"i": n, "j": n, "k": n})])
    result.validate()
    coords, values = result.to_coords()
    assert coords.T.tolist() == [[0, n - 2], [n - 1, 2]] and values.tolist() == [4.0, 6.0]


def test_the_greatest_of_each_column_does_not_visit_what_is_unstored() -> None:
    a = to_tensor(sparse(0))
    x = aggregate(get("max"), np.float64(-np.inf), table(a), (0,))
    assert kinds(plan_of(x)) == ["permute", "kernel"]
    (result,) = compute_all([x])
    np.testing.assert_array_equal(result.todense(), a.todense().max(axis=0))
