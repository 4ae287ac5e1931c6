"""lazy, compute and fuse."""

from __future__ import annotations

import numpy as np
import pytest

import pyfinch as pf

from .cases import stored

A_ = np.array([[0.0, 2.0, 0.0], [3.0, 0.0, 4.0]])


def test_compute_of_structures():
    x = pf.lazy(stored(A_, "csr"))
    total, (double, same), named = pf.compute((x.sum(), [x * 2, 5], {"max": x.max()}))
    assert float(total) == 9
    assert same == 5
    assert float(named["max"]) == 4
    np.testing.assert_array_equal(double.todense(), A_ * 2)
    eager = stored(A_, "csr")
    assert pf.compute(eager) is eager


def test_compute_takes_a_backend_and_a_scheduler():
    x = pf.lazy(stored(A_, "csr"))
    for backend in ("reference", "numba"):
        np.testing.assert_array_equal(pf.compute(x + x, backend=backend, scheduler="default").todense(), A_ + A_)
    with pytest.raises(pf.BackendUnavailableError, match=r"'fortran'.*numba"):
        pf.compute(x, backend="fortran")
    with pytest.raises(pf.BackendUnavailableError, match="default"):
        pf.compute(x, scheduler="oracle")


def test_use_backend_is_a_switch_and_a_context():
    from pyfinch.backends.base import current

    before = current()[0]
    with pf.use_backend("reference"):
        assert current()[0] == "reference"
    assert current()[0] == before
    pf.use_backend("reference")
    assert current()[0] == "reference"
    pf.use_backend(before)
    with pytest.raises(pf.BackendUnavailableError):
        pf.use_backend("nowhere")


def test_lazy_tensors_do_not_compute_behind_the_users_back():
    x = pf.lazy(stored(A_, "csr"))
    for ask in (bool, int, float, complex, list, np.asarray, lambda y: y.item(), lambda y: y.todense()):
        with pytest.raises(pf.PyFinchError, match="compute"):
            ask(x.sum() if ask is not list else x)
    assert "compute" in repr(x)
    assert (x.ndim, x.size, len(x)) == (2, 6, 2)


def test_mixed_eager_and_lazy_is_lazy():
    x, y = stored(A_, "csr"), pf.lazy(stored(A_, "csc"))
    for z in (x + y, y + x, A_ + y, y * A_, x @ y.T, pf.where(x > 0, y, 0), pf.einsum("ij,ij->i", x, y)):
        assert isinstance(z, pf.LazyTensor)
    np.testing.assert_array_equal(pf.compute(x + y).todense(), A_ * 2)


def test_a_long_chain():
    x = pf.lazy(stored(A_, "csr"))
    for k in range(1000):
        x = x + A_ if k % 2 else x * 0.5
    expected = A_
    for k in range(1000):
        expected = expected + A_ if k % 2 else expected * 0.5
    np.testing.assert_allclose(pf.compute(x).todense(), expected)


def test_fuse_traces_once_for_a_kind_of_arguments():
    traces = []

    @pf.fuse
    def f(x, y, alpha, *, keep=False):
        traces.append(1)
        return (x * alpha + y).sum(axis=1, keepdims=keep)

    x, y = stored(A_, "csr"), stored(A_ + 1, "dense")
    for alpha in (0.5, 2.0, 0.0, float("inf")):
        finite = A_ * alpha if np.isfinite(alpha) else np.where(A_ == 0, 0, np.inf)
        np.testing.assert_allclose(f(x, y, alpha).todense(), (finite + A_ + 1).sum(1))
    assert len(traces) == 1
    assert f(x, y, 0.5, keep=True).shape == (2, 1)
    assert len(traces) == 2
    f(x, x, 0.5)  # one operand twice
    f(x, stored(A_, "csr"), 0.5)
    assert len(traces) == 4
    np.testing.assert_allclose(f(x, stored(A_ * 3, "csr"), 0.5).todense(), (A_ * 3.5).sum(1))
    assert len(traces) == 4


def test_fuse_takes_captured_tensors_as_arguments():
    w = stored(A_, "csr")
    weights = {"first": stored(A_, "coo")}
    traces = []

    @pf.fuse
    def f(x):
        traces.append(1)
        return x * w + weights["first"] + A_

    x = stored(A_ + 1, "dense")
    np.testing.assert_array_equal(f(x).todense(), (A_ + 1) * A_ + 2 * A_)
    w = stored(A_ * 5, "csr")
    weights["first"] = stored(A_ * 7, "coo")
    np.testing.assert_array_equal(f(x).todense(), (A_ + 1) * A_ * 5 + 8 * A_)
    assert len(traces) == 1


def test_fuse_does_not_freeze_what_it_cannot_see():
    class Model:
        weight = stored(A_, "csr")

    @pf.fuse
    def f(x):
        return x + Model.weight

    @pf.fuse
    def g(x, model):
        return x + model.weight

    model = Model()
    x = stored(A_, "csr")
    for factor in (1, 3):
        Model.weight = stored(A_ * factor, "csr")
        np.testing.assert_array_equal(f(x).todense(), A_ * (1 + factor))
        np.testing.assert_array_equal(g(x, model).todense(), A_ * (1 + factor))


def test_fuse_follows_captured_numbers_and_shapes():
    scale = 2.0

    @pf.fuse
    def f(x):
        return x * scale, x.sum() / x.shape[0], pf.mean(x, axis=0)

    for rows in (A_, A_[:1], np.vstack([A_, A_])):
        double, per_row, mean = f(stored(rows, "csr"))
        np.testing.assert_array_equal(double.todense(), rows * 2)
        np.testing.assert_allclose(float(per_row), rows.sum() / rows.shape[0])
        np.testing.assert_allclose(mean.todense(), rows.mean(0))
    scale = 3.0
    np.testing.assert_array_equal(f(stored(A_, "csr"))[0].todense(), A_ * 3)


def test_fuse_integers_may_be_axes():
    @pf.fuse
    def f(x, axis):
        return pf.sum(x, axis=axis)

    x = stored(A_, "csr")
    np.testing.assert_array_equal(f(x, 0).todense(), A_.sum(0))
    np.testing.assert_array_equal(f(x, 1).todense(), A_.sum(1))
    np.testing.assert_array_equal(f(x, axis=None).todense(), A_.sum())


def test_fuse_numbers_are_weak_and_structures_are_looked_into():
    @pf.fuse
    def f(pair, alpha):
        return {"sum": pair[0] + pair[1] * alpha}

    x = stored(A_.astype(np.float32), "csr")
    result = f((x, x), 2.0)["sum"]
    assert result.dtype == np.float32
    np.testing.assert_array_equal(result.todense(), A_ * 3)
    lazy = f((pf.lazy(x), x), 2.0)["sum"]
    assert isinstance(lazy, pf.LazyTensor)


def test_fuse_reports_wrong_shapes_on_a_warm_call():
    @pf.fuse
    def f(x, y):
        return x + y

    f(pf.eye(3), pf.eye(3))
    with pytest.raises(pf.ShapeError, match=r"\(3, 3\).*\(4, 4\)"):
        f(pf.eye(3), pf.eye(4))


def test_eager_calls_check_shapes_when_warm():
    x, y = pf.eye(3), pf.eye(3)
    x + y
    with pytest.raises(pf.ShapeError, match=r"add: shapes \(3, 3\) and \(4, 4\).*axis -2"):
        x + pf.eye(4)
    assert (x + x).nnz == (x + y).nnz == 3
    np.testing.assert_array_equal((x * pf.ones((3, 3))).todense(), np.eye(3))


def test_size_one_modes_do_not_reuse_a_full_modes_program():
    x = stored(A_, "csr")
    np.testing.assert_array_equal((x + stored(A_ * 2, "csr")).todense(), A_ * 3)
    np.testing.assert_array_equal((x + stored(A_[:1], "csr")).todense(), A_ + A_[:1])
    np.testing.assert_array_equal((stored(A_[:1], "csr") + stored(A_[1:], "csr")).todense(), A_[:1] + A_[1:])
    np.testing.assert_array_equal((x * x).todense(), A_ * A_)
    np.testing.assert_array_equal((x * stored(A_ + 1, "csr")).todense(), A_ * (A_ + 1))


def test_integers_that_do_not_fit_are_refused_in_fused_functions_too() -> None:
    a = pf.asarray(np.eye(3, dtype=np.int8), format="csr")
    fused = pf.fuse(lambda x, s: x * s)
    assert fused(a, 5).dtype == fused(a, 127).dtype == np.int8
    for number in (300, 128, 10**20):
        with pytest.raises(pf.DTypeError, match="fit"):
            fused(a, number)
    np.testing.assert_array_equal(fused(a, -128).todense(), np.diag(np.full(3, -128, np.int8)))
