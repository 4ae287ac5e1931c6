"""Layers that are fused stay sparse where their run-time numbers make it so, and are right where not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import pyfinch as pf

DENSE = sp.random_array((12, 12), density=0.2, rng=np.random.default_rng(0), format="csr").toarray()


def network(y: Any, w: Any, bias: Any) -> Any:
    for _ in range(3):
        y = pf.minimum(pf.maximum(y @ w + bias, 0), 32)
    return y


def expected(bias: float) -> Any:
    y = DENSE
    for _ in range(3):
        y = np.minimum(np.maximum(y @ DENSE + bias, 0), 32)
    return y


@pytest.mark.parametrize("backend", ["numba", "reference"])
@pytest.mark.parametrize("bias", [-0.05, 0.05])
def test_lazy_layers(backend: str, bias: float) -> None:
    a = pf.asarray(sp.csr_array(DENSE))
    result = pf.compute(network(pf.lazy(a), a, bias), backend=backend)
    np.testing.assert_allclose(result.todense(), expected(bias))


def test_no_layer_computes_what_is_not_stored() -> None:
    a = pf.asarray(sp.csr_array(DENSE))
    for program in pf.explain(network(pf.lazy(a), a, -0.05)).loops.split("return R")[:-1]:
        assert program.strip().startswith("R .= 0.0")


def test_one_fused_function_takes_numbers_that_break_what_it_was_traced_for() -> None:
    a = pf.asarray(sp.csr_array(DENSE))
    fused = pf.fuse(network)
    for bias in (-0.05, -0.02, 0.05, -0.05):
        np.testing.assert_allclose(fused(a, a, bias).todense(), expected(bias))


@pytest.mark.parametrize("backend", ["numba", "reference"])
@pytest.mark.parametrize("keepdims", [False, True])
@pytest.mark.parametrize("shape", [(3,), (1, 3)])
def test_a_reduction_to_one_element_is_no_fill(backend: str, keepdims: bool, shape: tuple[int, ...]) -> None:
    m, a, b = np.array([0, 3, 2]).reshape(shape), np.array([0.0, 3.0, -2.0]), np.array([2.0, 4.0, 0.0])
    x, y, z = (pf.lazy(pf.asarray(array, format="coo")) for array in (m, a, b))
    result = pf.where(pf.max(x, axis=-1, keepdims=keepdims) > 0, y, z)
    expected = np.where(m.max(-1, keepdims=keepdims) > 0, a, b)
    np.testing.assert_array_equal(pf.compute(result, backend=backend).todense(), expected)
    result = pf.where(pf.einsum("...i->...", x) > 2, y, z)
    expected = np.where(m.sum(-1) > 2, a, b)
    np.testing.assert_array_equal(pf.compute(result, backend=backend).todense(), expected)
