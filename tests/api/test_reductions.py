"""Reductions against NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pyfinch as pf

from .cases import SIZES, agree, stored, tensors

DTYPES = [np.float64, np.float32, np.int64, np.int8, np.uint8, np.bool_, np.complex128]


@settings(max_examples=120, deadline=None)
@given(st.data())
def test_reductions(data):
    name = data.draw(st.sampled_from(["sum", "prod", "min", "max", "any", "all", "mean"]))
    shape = tuple(data.draw(st.lists(SIZES, max_size=3)))
    fill = data.draw(st.sampled_from([0, 1, 3]))
    dtype = data.draw(st.sampled_from(DTYPES[:-1] if name in ("min", "max") else DTYPES))
    a, A = data.draw(tensors(shape, dtype=dtype, fill=fill))
    axes = st.integers(-len(shape), len(shape) - 1) if shape else st.none()
    axis = data.draw(st.one_of(st.none(), axes, st.just(tuple(range(len(shape)))), st.just(())))
    keepdims = data.draw(st.booleans())
    try:
        with np.errstate(all="ignore"):
            expected = getattr(np, name)(a, axis=axis, keepdims=keepdims)
    except ValueError:
        with pytest.raises(pf.ShapeError, match=name):
            getattr(pf, name)(A, axis=axis, keepdims=keepdims)
        return
    if name in ("min", "max") and a.size == 0 and a.ndim and axis != ():
        return
    agree(lambda x: getattr(pf, name)(x, axis=axis, keepdims=keepdims), [A], expected, exact=False)


@pytest.mark.filterwarnings("ignore")
def test_special_fills_are_counted():
    for fill in (np.inf, np.nan, -np.inf):
        a = np.full((3, 4), fill)
        a[0, 1], a[2] = 2.0, 5.0
        A = stored(a, "csr", fill)
        for name in ("sum", "min", "max", "mean"):
            agree(getattr(pf, name), [A], getattr(np, name)(a))
            agree(lambda x, name=name: getattr(x, name)(axis=1), [A], getattr(np, name)(a, axis=1))


def test_accumulation_dtypes():
    assert pf.sum(pf.asarray([100, 100], dtype="int8")).dtype == np.int64
    assert int(pf.sum(pf.asarray([100, 100], dtype="int8", format="coo"))) == 200
    assert pf.sum(pf.asarray([1], dtype="uint8")).dtype == np.uint64
    assert pf.sum(pf.asarray([True, True], format="coo")).dtype == np.int64
    assert pf.prod(pf.asarray([1], dtype="float32")).dtype == np.float32
    assert pf.mean(pf.asarray([1], dtype="int8")).dtype == np.float64
    assert pf.sum(pf.asarray([1.5], format="coo"), dtype="float32").dtype == np.float32
    assert int(pf.sum(pf.asarray([1.5, 1.5], format="coo"), dtype="int64")) == 2


def test_no_elements():
    x = pf.zeros((0, 3))
    assert float(x.sum()) == 0
    assert float(x.prod()) == 1
    assert np.isnan(float(x.mean()))
    assert np.isnan(x.mean(axis=0).todense()).all()
    for name in ("min", "max"):
        for y in (x, pf.lazy(x), pf.asarray(np.zeros((0, 3)))):
            with pytest.raises(pf.ShapeError, match=rf"{name}.*\(0, 3\)"):
                getattr(pf, name)(y, axis=0)
    assert pf.min(x, axis=1).shape == (0,)


def test_huge_modes_are_not_walked():
    n = 10**12  # visiting each row would take an hour
    x = pf.Tensor.from_buffers("dcsr", (n, n), [([0, 2], [5, n - 1]), ([0, 1, 2], [7, 0]), ([3.0, -2.0],)])
    for y in (x, x.to_format("coo"), x.to_format("dcsc")):
        assert (float(y.max()), float(y.min())) == (3.0, -2.0)
        assert float((y + 1.0).sum()) == float(n) * n
        assert not bool(pf.all(y)) and bool(pf.any(y)) and bool(pf.all(y != 1.0))


def test_axis_errors_name_the_axis():
    x = pf.eye(3)
    with pytest.raises(pf.ShapeError, match="axis 2"):
        x.sum(axis=2)
    with pytest.raises(pf.ShapeError, match="twice"):
        x.sum(axis=(0, -2))
    with pytest.raises(pf.ShapeError, match=r"1\.5"):
        x.sum(axis=1.5)
    with pytest.raises(pf.DTypeError, match="min"):
        pf.min(x.astype(complex))
