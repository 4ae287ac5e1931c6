"""Indexing and functions that move modes, against NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pyfinch as pf

from .cases import FORMATS, SIZES, agree, stored, tensors

SHAPES = st.lists(SIZES, max_size=3).map(tuple)
FILLS = st.sampled_from([0, 1, np.inf, np.nan])


@st.composite
def basic_index(draw, shape):
    """A basic index of a shape."""
    items = []
    for size in shape[: draw(st.integers(0, len(shape)))]:
        ints = [st.integers(-size, size - 1)] if size else []
        items.append(draw(st.one_of(*ints, st.slices(size))))
    if draw(st.booleans()):
        items.insert(draw(st.integers(0, len(items))), None)
    if len(items) - items.count(None) < len(shape) or draw(st.booleans()):
        at = len(items) if draw(st.booleans()) else 0
        if at == 0:
            # What stands after an ellipsis indexes the last modes: keep it to None and nothing else.
            items = [item for item in items if item is None]
        items.insert(at, Ellipsis)
    return tuple(items) if len(items) != 1 or draw(st.booleans()) else items[0]


@settings(max_examples=100)
@given(st.data())
def test_basic_indexing(data):
    shape = data.draw(SHAPES)
    a, A = data.draw(tensors(shape, fill=data.draw(FILLS)))
    key = data.draw(basic_index(shape))
    result = A[key]
    result.validate()
    np.testing.assert_array_equal(result.todense(), a[key])


@settings(max_examples=25)
@given(st.data())
def test_lazy_indexing(data):
    shape = data.draw(st.sampled_from([(3, 4), (5,), (2, 3, 2)]))
    dtype = data.draw(st.sampled_from([np.float64, np.int8, np.bool_]))
    a, A = data.draw(tensors(shape, dtype=dtype, fill=data.draw(st.sampled_from([0, 1]))))
    key = data.draw(basic_index(shape))
    agree(lambda x: x[key], [A], a[key])


def test_indexing_keeps_the_kind_of_format():
    a = np.array([[0.0, 1.0, 2.0], [0.0, 0.0, 0.0], [3.0, 0.0, 4.0]])
    assert str(stored(a, "csr")[0].format).startswith("sparse_list(")
    assert str(stored(a, "csr")[1:].format).startswith("dense(sparse_list(")
    assert str(stored(a, "csr")[::-2, 1:].format).startswith("dense(sparse_list(")
    assert stored(a, "csc")[:, 1:].format.mode_order == (1, 0)
    assert str(stored(a, "coo")[:, 0].format).startswith("sparse_coo[1](")
    assert stored(a, "csr")[1].nnz == 0
    assert stored(a, "csr").ftype.levels[1].idx == stored(a, "csr")[0].ftype.levels[0].idx


def test_index_errors():
    x = stored(np.eye(3), "csr")
    for y in (x, pf.lazy(x)):
        with pytest.raises(pf.IndexBoundsError, match="index 3 is out of bounds for mode 1 of size 3"):
            y[0, 3]
        with pytest.raises(IndexError, match="-4"):
            y[-4]
        with pytest.raises(pf.IndexBoundsError, match="3 indices"):
            y[0, 0, 0]
        with pytest.raises(pf.IndexBoundsError, match="ellipsis"):
            y[..., ...]
        with pytest.raises(pf.PyFinchError, match="mask"):
            y[[0, 1]]
        with pytest.raises(pf.PyFinchError, match="mask"):
            y[x > 0]
        with pytest.raises(pf.IndexBoundsError, match="float"):
            y[1.0]
    with pytest.raises(pf.PyFinchError, match="in place"):
        x[0, 0] = 1


@settings(max_examples=60)
@given(st.data())
def test_moving_modes(data):
    shape = data.draw(SHAPES)
    a, A = data.draw(tensors(shape, fill=data.draw(FILLS)))
    axes = data.draw(st.permutations(range(a.ndim)))
    agree(lambda x: pf.permute_dims(x, axes), [A], a.transpose(axes))
    agree(lambda x: x.T, [A], a.T)
    axis = data.draw(st.integers(-a.ndim - 1, a.ndim))
    agree(lambda x: pf.expand_dims(x, axis=axis), [A], np.expand_dims(a, axis))
    agree(pf.squeeze, [A], np.squeeze(a))
    if a.ndim > 1:
        agree(lambda x: x.mT, [A], a.mT)


@settings(max_examples=60)
@given(st.data())
def test_broadcast_to(data):
    full = data.draw(SHAPES)
    shape = tuple(1 if data.draw(st.booleans()) else n for n in full[data.draw(st.integers(0, len(full))) :])
    a, A = data.draw(tensors(shape, fill=data.draw(st.sampled_from([0, 1]))))
    agree(lambda x: pf.broadcast_to(x, full), [A], np.broadcast_to(a, full))


def test_broadcasting_does_not_densify():
    for fmt in FORMATS[1][1:]:
        x = stored(np.array([0.0, 2.0, 0.0, 0.0]), fmt)
        y = pf.broadcast_to(x, (1000, 4))
        assert y.nnz == 1000
    z = pf.broadcast_to(stored(np.eye(4)[:1], "csr"), (5, 4))
    assert z.nnz == 5 and str(z.format).startswith("dense(sparse_list(")


def test_transposes_share_buffers():
    x = stored(np.eye(3), "csr")
    assert x.T.buffers[-1][0] is x.buffers[-1][0]
    assert x.T.format.mode_order == (1, 0)
    assert pf.expand_dims(x, axis=1).buffers[-1][0] is x.buffers[-1][0]


def test_shape_errors_name_what_is_wrong():
    x = pf.eye(3)
    with pytest.raises(pf.ShapeError, match="axis 0"):
        pf.squeeze(x, 0)
    with pytest.raises(pf.ShapeError, match=r"\(3, 3\).*\(3, 4\)"):
        pf.broadcast_to(x, (3, 4))
    with pytest.raises(pf.ShapeError, match="permute"):
        pf.permute_dims(x, (0,))
    with pytest.raises(pf.ShapeError, match="two modes"):
        pf.matrix_transpose(pf.zeros(3))
