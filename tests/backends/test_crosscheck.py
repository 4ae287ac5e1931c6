"""Every computation in the block runs on two backends; a wrong answer is an error that says where."""

from __future__ import annotations

import numpy as np
import pytest

import pyfinch as pf
from pyfinch.backends import base
from pyfinch.backends.base import Scheduled
from pyfinch.backends.comparison import first_difference, same
from pyfinch.backends.reference import ReferenceBackend, ReferenceExecutable
from pyfinch.formats.tensor import Tensor


class OffByOneExecutable(ReferenceExecutable):
    """Adds 1 to what is stored first."""

    def __call__(self, tensors: dict[str, Tensor]) -> tuple[Tensor, ...]:
        results = super().__call__(tensors)
        for result in results:
            if result.buffers[-1][0].size:
                result.buffers[-1][0][0] += 1
        return results


class OffByOne(ReferenceBackend):
    """A backend with a defect."""

    name = "off_by_one"

    def compile(self, scheduled: Scheduled) -> OffByOneExecutable:
        return OffByOneExecutable(scheduled.plan)


@pytest.fixture
def defect() -> object:
    base.register_backend("off_by_one", OffByOne)
    yield "off_by_one"
    base._backends.pop("off_by_one")
    base._made.pop("off_by_one", None)


def test_equal_answers_pass_and_are_the_first_backends() -> None:
    A = pf.random((20, 20), density=0.2, rng=0)
    with pf.crosscheck("reference"):
        result = pf.compute(pf.lazy(A) @ A + 1)
        assert float(pf.sum(A)) == pytest.approx(A.todense().sum())
    np.testing.assert_allclose(result.todense(), A.todense() @ A.todense() + 1)
    assert base.current()[0] == "numba"


def test_a_wrong_answer_names_place_values_and_plan(defect: str) -> None:
    A = pf.asarray(np.arange(1.0, 7).reshape(2, 3))
    with pf.crosscheck(defect):
        with pytest.raises(pf.CrossCheckError, match=r"at \(0, 0\) is 2.0 by numba and 3.0 by off_by_one") as caught:
            pf.compute(pf.lazy(A) * 2)
        assert "query(" in str(caught.value)
        # Whoever says where to run is not checked.
        pf.compute(pf.lazy(A) * 2, backend="numba")
    pf.compute(pf.lazy(A) * 2)


def test_an_unknown_backend_is_refused() -> None:
    with pytest.raises(pf.BackendUnavailableError, match="there is no backend 'nothing'"):
        pf.crosscheck("nothing")
    assert base.current()[0] == "numba"


def test_places_of_differences() -> None:
    a = np.array([[1.0, np.nan], [np.inf, 4.0]])
    assert same(a, a.copy())
    b = a.copy()
    b[1, 1] = 5
    assert first_difference(a, b) == (1, 1)
    b = a.copy()
    b[1, 0] = -np.inf
    assert first_difference(a, b) == (1, 0)
    assert first_difference(np.array(1.0), np.array(2.0)) == ()
    assert same(np.zeros((0, 3)), np.zeros((0, 3)))
    assert not same(np.array([True]), np.array([False]))
