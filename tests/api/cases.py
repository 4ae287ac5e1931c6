"""Tensors of every kind for property tests, and the comparison with NumPy that they all make."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from hypothesis import strategies as st

import pyfinch as pf
from pyfinch.formats.format import Format
from pyfinch.formats.levels import Element

FORMATS = {
    0: ["scalar"],
    1: ["vector", "sparse_vector", "coo"],
    2: ["csr", "csc", "coo", "dcsr", "dense", "fortran"],
    3: ["coo", "csf", "dense", "dense(sparse_list(sparse_list(element()))) mode_order=(2, 0, 1)"],
}
BACKENDS = ("reference", "numba")
SIZES = st.sampled_from([0, 1, 2, 3, 5])


@st.composite
def arrays(draw: Any, shape: tuple[int, ...], dtype: Any = np.float64, fill: Any = 0) -> Any:
    """An array of small whole numbers in which about half of the elements are `fill`."""
    dtype = np.dtype(dtype)
    low, high = -3, 4
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    if dtype.kind in "ub":
        low = max(low, 0)
    values = rng.integers(low, 2 if dtype.kind == "b" else high, shape).astype(dtype)
    if dtype.kind == "c":
        values = values + 1j * rng.integers(low, high, shape)
    return np.where(rng.random(shape) < draw(st.sampled_from([0.0, 0.5, 0.5, 1.0])), dtype.type(fill), values).astype(
        dtype
    )


def stored(array: Any, fmt: str, fill: Any = 0) -> pf.Tensor:
    """An array in a format with a fill value."""
    plain = pf.format(fmt, array.ndim)
    leaf = Element(array.dtype.type(fill), array.dtype)
    return pf.asarray(array).to_format(Format((*plain.levels[:-1], leaf), plain.mode_order))


@st.composite
def tensors(draw: Any, shape: tuple[int, ...], **options: Any) -> tuple[Any, pf.Tensor]:
    """An array, and a tensor of it."""
    array = draw(arrays(shape, **options))
    fmt = draw(st.sampled_from(FORMATS[array.ndim]))
    return array, stored(array, fmt, options.get("fill", 0))


def agree(
    func: Callable[..., Any],
    given: Sequence[pf.Tensor],
    expected: Any,
    *,
    exact: bool = True,
    dtype: bool = True,
) -> None:
    """Eager and lazy results, on both backends, are what NumPy says."""
    expected = np.asarray(expected)
    for backend in BACKENDS:
        with pf.use_backend(backend):
            eager = func(*given)
            lazy = func(*[pf.lazy(x) for x in given])
            assert isinstance(eager, pf.Tensor)
            assert isinstance(lazy, pf.LazyTensor)
            assert lazy.shape == eager.shape == expected.shape
            if dtype:
                assert lazy.dtype == eager.dtype == expected.dtype, (lazy.dtype, eager.dtype, expected.dtype)
            for result in (eager, pf.compute(lazy)):
                result.validate()
                assert result.dtype == eager.dtype
                assert result.shape == expected.shape
                if exact:
                    np.testing.assert_array_equal(result.todense(), expected)
                else:
                    np.testing.assert_allclose(result.todense(), expected, rtol=1e-5, atol=1e-6)
