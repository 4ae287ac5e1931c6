"""The short way to call a kernel gives what the long way gives, and gives way to it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pyfinch as pf
from pyfinch.backends.numba import calls, execute, tiers
from pyfinch.backends.numba.backend import NumbaExecutable

pytestmark = pytest.mark.compiled

DTYPES = ["float64", "float32", "int64", "int8", "bool", "complex128"]


@pytest.fixture(autouse=True)
def _compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYFINCH_COMPILE", "always")


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What short calls answered."""
    answers: list[Any] = []
    quick = tiers.Kernel.quick

    def counted(self: Any, tensors: Any, given: Any) -> Any:
        answers.append(quick(self, tensors, given))
        return answers[-1]

    monkeypatch.setattr(tiers.Kernel, "quick", counted)
    return answers


def _matrix(dtype: str, shape: tuple[int, int] = (7, 9)) -> Any:
    rng = np.random.default_rng(5)
    values = rng.integers(1, 4, shape).astype(dtype)
    return np.where(rng.random(shape) < 0.4, values, np.zeros((), dtype))


WORKS: dict[str, Callable[[Any, Any], Any]] = {
    "added": lambda a, s: a + s,
    "taken away": lambda a, s: s - a,
    "larger": lambda a, s: pf.maximum(a, s),
    "powers": lambda a, s: a**s,
    "quotients": lambda a, s: a / s,
    "compared": lambda a, s: a < s,
    "several": lambda a, s: (a + s) * s,
    "two sparse": lambda a, s: a * s + a,
    "reduced": lambda a, s: pf.max(a + s),
}
PLAIN: dict[str, Callable[[Any, Any], Any]] = {
    **WORKS,
    "larger": np.maximum,
    "reduced": lambda a, s: np.max(a + s),
}


ORDERED = ("larger", "compared", "reduced")  # which complex numbers are not


@pytest.mark.parametrize(
    ("work", "dtype"), [(w, d) for w in WORKS for d in DTYPES if d != "complex128" or w not in ORDERED]
)
def test_numbers_that_decide_the_fill(work: str, dtype: str) -> None:
    dense = _matrix(dtype)
    a = pf.asarray(dense, format="csr")
    for kind in ("int64", dtype):
        for number in (2, 3, 0, 1, 2):
            s = np.asarray(number).astype(kind)[()]
            if work == "taken away" and dense.dtype == bool and s.dtype == bool:
                continue  # NumPy has no difference of bools
            with np.errstate(all="ignore"):
                expected = PLAIN[work](dense, s)
            if expected.dtype == np.float16:
                continue  # pyfinch has no float16
            for _ in range(2):
                found = WORKS[work](a, s)
                found.validate()
                assert found.dtype == expected.dtype
                np.testing.assert_allclose(found.todense(), expected, rtol=1e-6)
                if found.ndim:
                    assert found.fill_value.dtype == expected.dtype


@pytest.mark.parametrize("fmt", ["csr", "csc", "coo", "dcsr", "dense"])
def test_short_calls_agree_with_long_ones(fmt: str) -> None:
    dense = _matrix("float64", (8, 8))
    for make in (
        lambda a: a @ a,
        lambda a: a + 2.5 * a,
        lambda a: a * a,
        abs,
        pf.sum,
        lambda a: pf.sum(a, axis=0),
        lambda a: pf.max(a, axis=1),
    ):
        a = pf.asarray(dense, format=fmt)
        make(a)  # compiles
        found = make(a)
        again = make(pf.asarray(np.where(dense, dense, 0.0), format=fmt))
        for mine, other in zip(found.buffers, again.buffers, strict=True):
            for first, second in zip(mine, other, strict=True):
                np.testing.assert_array_equal(first, second)
        with pf.use_backend("reference"):
            np.testing.assert_allclose(found.todense(), make(a).todense())
        found.validate()


def test_changed_buffers_are_noticed(short: list[Any]) -> None:
    a = pf.asarray(_matrix("float64"), format="csr")
    for work in (lambda: a * a, lambda: abs(a), lambda: pf.sum(a), lambda: a @ a.T):
        work()
        work()
        assert short
        ptr = a.buffers[1][0]
        ptr[-1] += 1
        with pytest.raises(pf.FormatError, match="shared buffers"):
            work()
        ptr[-1] -= 1
        work()


def test_positions_beyond_their_dtype_widen(monkeypatch: pytest.MonkeyPatch) -> None:
    dense = np.ones((6, 6))
    a, b = (
        pf.Tensor.from_buffers(
            "csr", (6, 6), [(), (np.arange(0, 37, 6, dtype=np.int32), np.tile(np.arange(6, dtype=np.int32), 6)), (v,)]
        )
        for v in (np.ones(36), np.full(36, 2.0))
    )
    monkeypatch.setattr(tiers, "_kernels", {})
    limits = {np.dtype(np.int32): 20, np.dtype(np.int64): 2**63 - 1}
    monkeypatch.setattr(execute, "LIMITS", limits)
    monkeypatch.setattr(calls, "LIMITS", limits)
    made: list[bool] = []
    init = NumbaExecutable.__init__

    def counted(self: Any, logic: Any, **options: Any) -> None:
        made.append(bool(options.get("wide")))
        init(self, logic, **options)

    monkeypatch.setattr(NumbaExecutable, "__init__", counted)
    for _ in range(3):
        total = pf.compute(pf.lazy(a) * 3 + pf.lazy(b) * 5)
        total.validate()
        np.testing.assert_array_equal(total.todense(), 13 * dense)
        assert total.buffers[1][0].dtype == np.int64
    assert made.count(True) == 1
