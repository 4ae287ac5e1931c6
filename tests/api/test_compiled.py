"""A short fixed list of calls with machine code."""

from __future__ import annotations

import numpy as np
import pytest

import pyfinch as pf

from .cases import stored

A = np.array([[0.0, 2.0, 0.0], [3.0, 0.0, 4.0], [0.0, 0.0, 5.0]])
CASES = {
    "sparse + sparse * number": (lambda x, y: x + y * 0.5, A * 1.5),
    "matmul": (lambda x, y: x @ y, A @ A),
    "matrix * vector": (lambda x, y: x @ np.ones(3), A.sum(1)),
    "min-plus": (lambda x, y: pf.einop("C[i,j] min= A[i,k] + B[k,j]", A=x, B=y), (A[:, :, None] + A).min(1)),
    "mean": (lambda x, y: pf.mean(x, axis=0), A.mean(0)),
}


@pytest.mark.compiled
@pytest.mark.parametrize("name", CASES)
def test_machine_code(name, monkeypatch):
    monkeypatch.setenv("PYFINCH_COMPILE", "always")
    call, expected = CASES[name]
    x, y = stored(A, "csr"), stored(A, "csc" if name == "min-plus" else "csr")
    with pf.use_backend("numba"):
        for _ in range(2):
            np.testing.assert_allclose(call(x, y).todense(), expected)
