"""`to_tensor` over NumPy, scalars, lists, scipy.sparse and pydata/sparse."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
import sparse
from hypothesis import given, settings
from hypothesis import strategies as st

from pyfinch.algebra.dtypes import SUPPORTED_DTYPES
from pyfinch.algebra.errors import DTypeError, FormatError, IndexBoundsError, PyFinchError, ShapeError
from pyfinch.formats.format import format
from pyfinch.formats.levels import SparseList
from pyfinch.interop.convert import to_tensor

SHAPES = [(0, 3), (3, 0), (0, 0), (1, 1), (1, 4), (4, 1), (4, 6)]
SCIPY = ("csr", "csc", "coo", "bsr", "dia", "lil", "dok")


def example(shape, dtype="float64", seed=0):
    rng = np.random.default_rng(seed)
    return (rng.integers(1, 5, shape) * (rng.random(shape) < 0.4)).astype(dtype)


def shares(a, b):
    return np.may_share_memory(a, b)


def test_numpy_arrays_are_shared_in_any_contiguous_order():
    base = np.arange(24.0).reshape(2, 3, 4)
    for axes in ((0, 1, 2), (2, 1, 0), (1, 0, 2), (2, 0, 1)):
        array = base.transpose(axes)
        x = to_tensor(array)
        assert shares(x.buffers[-1][0], base) and np.array_equal(x.todense(), array)
        x.validate()
    assert to_tensor(np.asfortranarray(np.ones((2, 3)))).ftype.mode_order == (1, 0)


@pytest.mark.parametrize("index", [np.s_[::2], np.s_[:, ::-1], np.s_[::-1], np.s_[:, 1:], np.s_[..., None], np.s_[1:1]])
def test_numpy_arrays_of_any_stride(index):
    array = np.arange(24.0).reshape(2, 3, 4)[index]
    x = to_tensor(array)
    x.validate()
    assert np.array_equal(x.todense(), array) and x.shape == array.shape
    y = to_tensor(np.broadcast_to(np.arange(3), (4, 3)))
    y.validate()
    assert np.array_equal(y.todense(), np.broadcast_to(np.arange(3), (4, 3)))


@settings(max_examples=100, deadline=None)
@given(st.data())
def test_random_views(data):
    shape = tuple(data.draw(st.lists(st.integers(0, 4), max_size=4)))
    array = np.arange(int(np.prod(shape))).reshape(shape)
    array = array.transpose(data.draw(st.permutations(range(array.ndim))))
    index = tuple(data.draw(st.sampled_from([slice(None), slice(None, None, 2), slice(None, None, -1)])) for _ in shape)
    x = to_tensor(array[index])
    x.validate()
    assert np.array_equal(x.todense(), array[index])


def test_copy_argument():
    array = np.ones((2, 3))
    assert shares(to_tensor(array).buffers[-1][0], array) and shares(to_tensor(array, copy=False).buffers[-1][0], array)
    assert not shares(to_tensor(array, copy=True).buffers[-1][0], array)
    for bad in (array[:, ::2], [[1.0]], sp.lil_array(array)):
        with pytest.raises(ValueError, match="copy=False"):
            to_tensor(bad, copy=False)
    csr = sp.csr_array(array)
    assert shares(to_tensor(csr, copy=False).buffers[-1][0], csr.data)
    assert not shares(to_tensor(csr, copy=True).buffers[1][1], csr.indices)
    x = to_tensor(array)
    assert to_tensor(x) is x and to_tensor(x, copy=True).buffers[-1][0] is not x.buffers[-1][0]


def test_byte_order_readonly_and_subclasses():
    array = np.arange(3, dtype=">f4")
    array.flags.writeable = False
    x = to_tensor(array)
    assert x.dtype == np.float32 and np.array_equal(x.todense(), array)
    assert to_tensor(np.matrix([[1, 2]])).shape == (1, 2)
    with pytest.raises(DTypeError, match="masked"):
        to_tensor(np.ma.masked_array([1, 2], [True, False]))


@pytest.mark.parametrize("value", [True, 3, -2.5, 1j, np.float32(2), np.int8(3), np.array(4.0)])
def test_scalars(value):
    x = to_tensor(value)
    assert x.shape == () and x.todense() == value and x.dtype == np.asarray(value).dtype


def test_lists():
    assert np.array_equal(to_tensor([[1, 2], [3, 4]]).todense(), [[1, 2], [3, 4]])
    assert to_tensor([]).shape == (0,) and to_tensor([], dtype="int8").dtype == np.int8
    assert to_tensor([[1, 0]], dtype="float32", format="csr").dtype == np.float32
    assert to_tensor([[1.0, np.inf]], format="csr", fill_value=np.inf).nnz == 1


@pytest.mark.parametrize(
    "bad",
    [
        [[1, 2], [3]],
        np.array([1, None]),
        ["a"],
        "text",
        None,
        {1, 2},
        [2**70],
        np.zeros(2, "f2"),
        np.zeros(2, "g"),
        np.zeros(2, "M8[s]"),
        np.zeros(2, "m8[s]"),
        np.zeros(2, [("a", "f8")]),
        np.zeros(2, "S3"),
        object(),
    ],
)
def test_what_is_no_array_of_numbers_is_refused(bad):
    with pytest.raises(DTypeError):
        to_tensor(bad)


def test_unsupported_dtypes_name_the_supported():
    with pytest.raises(DTypeError, match="float16 is not supported; supported are bool, int8"):
        to_tensor(np.zeros(2, "f2"))
    with pytest.raises(DTypeError, match="ndarray object"):
        to_tensor(np.array([None]))


@pytest.mark.parametrize("fmt", SCIPY)
@pytest.mark.parametrize("kind", ["array", "matrix"])
def test_scipy_formats(fmt, kind):
    for shape in SHAPES:
        for dtype in ("float64", "float32", "int8", "bool", "complex64"):
            array = example(shape, dtype)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                obj = getattr(sp, f"{fmt}_{kind}")(array)
            x = to_tensor(obj)
            x.validate()
            assert x.dtype == dtype and x.shape == shape and np.array_equal(x.todense(), array)
            if dtype != "bool":
                assert np.array_equal(x.to_scipy().toarray(), array)


@pytest.mark.parametrize("make", [sp.csr_array, sp.csc_array, sp.csr_matrix])
@pytest.mark.parametrize("index", ["int32", "int64"])
def test_compressed_arrays_are_shared_both_ways(make, index):
    obj = make(example((5, 7)))
    obj.indices, obj.indptr = obj.indices.astype(index), obj.indptr.astype(index)
    x = to_tensor(obj)
    for ours, theirs in zip((*x.buffers[1], x.buffers[2][0]), (obj.indptr, obj.indices, obj.data), strict=True):
        assert shares(ours, theirs) and ours.dtype == theirs.dtype
    assert x.ftype.levels[1] == SparseList(np.dtype(index), np.dtype(index))
    back = x.to_scipy()
    assert shares(back.data, obj.data) and shares(back.indices, obj.indices) and back.format == obj.format


def test_coo_is_shared_if_canonical():
    obj = sp.coo_array(sp.csr_array(example((5, 7))))
    x = to_tensor(obj)
    assert shares(x.buffers[0][1], obj.coords[0]) and shares(x.buffers[1][0], obj.data)


@pytest.mark.parametrize("make", [sp.csr_array, sp.csc_array])
def test_unsorted_and_duplicate_entries_are_summed_in_a_copy(make):
    parts = (np.array([1.0, 2.0, 4.0, 8.0]), np.array([2, 0, 2, 1]), np.array([0, 3, 3, 4]))
    obj = make(parts, shape=(3, 3))
    x = to_tensor(obj)
    x.validate()
    assert np.array_equal(x.todense(), obj.toarray()) and x.nnz == 3
    assert obj.indices.tolist() == [2, 0, 2, 1] and obj.data.tolist() == [1, 2, 4, 8] and obj.nnz == 4
    coo = sp.coo_array(([1, 2, 3], ([1, 0, 1], [0, 0, 0])), shape=(2, 1))
    assert to_tensor(coo).todense().tolist() == [[2], [4]] and coo.row.tolist() == [1, 0, 1]


def corrupt(name, field, value):
    obj = getattr(sp, f"{name}_array")(np.eye(3))
    setattr(obj, field, np.asarray(value))
    return obj


@pytest.mark.parametrize(
    ("name", "field", "value", "error"),
    [
        ("csr", "indices", [0, 1, 3], IndexBoundsError),
        ("csr", "indices", [0, -1, 2], IndexBoundsError),
        ("csr", "indices", [0.0, 1.0, np.nan], DTypeError),
        ("csr", "indices", [0, 1], FormatError),
        ("csr", "indptr", [0, 2, 1, 3], FormatError),
        ("csr", "indptr", [1, 1, 2, 3], FormatError),
        ("csr", "indptr", [0, 1, 2, 9], FormatError),
        ("csr", "indptr", [0, 1, 2, -1], FormatError),
        ("csr", "indptr", [0, 3], FormatError),
        ("csr", "data", [1.0], FormatError),
        ("csr", "data", [[1.0, 2.0, 3.0]], FormatError),
        ("csc", "indices", [0, 1, 3], IndexBoundsError),
        ("csc", "indptr", [0, 2, 1, 3], FormatError),
        ("bsr", "indices", [0, 1, 7], IndexBoundsError),
        ("bsr", "indptr", [0, 2, 1, 3], FormatError),
        ("coo", "data", [1.0], FormatError),
        ("dia", "offsets", [0, 1], FormatError),
    ],
)
def test_corrupt_scipy_arrays_are_refused(name, field, value, error):
    with pytest.raises(error):
        to_tensor(corrupt(name, field, value))


def test_corrupt_lil_and_dok_are_refused():
    for rows in ([7], [0, 1], [-1]):
        lil = sp.lil_array(np.eye(3))
        lil.rows[0] = rows
        with pytest.raises(PyFinchError):
            to_tensor(lil)
    dok = sp.dok_array(np.eye(3))
    dok._dict[(9, 9)] = 1.0
    with pytest.raises(PyFinchError):
        to_tensor(dok)


def test_corrupt_coo_is_refused():
    obj = sp.coo_array(np.eye(3))
    obj.coords = (np.array([0, 1, 5]), obj.coords[1])
    with pytest.raises(IndexBoundsError, match=r"coords\[0, 2\] = 5"):
        to_tensor(obj)
    obj.coords = (np.array([0.0, 1.0, np.nan]), obj.coords[1])
    with pytest.raises(DTypeError, match="integers"):
        to_tensor(obj)


def test_scipy_with_room_behind_the_last_entry():
    obj = sp.csr_array(np.eye(3))
    obj.indices, obj.data = np.append(obj.indices, [99]), np.append(obj.data, [5.0])
    assert np.array_equal(to_tensor(obj).todense(), np.eye(3))


def test_scipy_one_dimensional():
    array = np.array([0.0, 2.0, 0.0, 3.0])
    for obj in (sp.coo_array(array), sp.csr_array(sp.coo_array(array))):
        x = to_tensor(obj)
        x.validate()
        assert np.array_equal(x.todense(), array)
        assert np.array_equal(x.to_scipy().toarray(), array)


def test_to_scipy_of_every_format():
    array = example((4, 6))
    for spec in (
        "csr",
        "csc",
        "coo",
        "dcsr",
        "dcsc",
        "dense",
        "fortran",
        "sparse_bytemap(sparse_list(element()))",
    ):
        out = to_tensor(array, format=format(spec, 2)).to_scipy()
        assert np.array_equal(out.toarray(), array) and out.nnz == np.count_nonzero(array)
        assert out.format == {"csc": "csc", "dcsc": "csc", "fortran": "csc", "coo": "coo"}.get(spec, "csr")
    with pytest.raises(FormatError, match="fill 0 only"):
        to_tensor(array, format="csr", fill_value=1).to_scipy()
    with pytest.raises(ShapeError, match="0-d"):
        to_tensor(1.0).to_scipy()


@pytest.mark.parametrize("kind", ["COO", "GCXS", "DOK"])
def test_pydata_sparse(kind):
    for shape in (*SHAPES, (3,), (0,), (2, 3, 4), (1, 0, 2)):
        for fill in (0, 1, np.nan):
            array = example(shape)
            array[array == 0] = fill
            coo = sparse.COO.from_numpy(array, fill_value=fill)
            if kind == "DOK" and fill != fill:
                continue
            obj = (
                coo.asformat({"COO": "coo", "GCXS": "gcxs", "DOK": "dok"}[kind]) if array.size or kind == "COO" else coo
            )
            x = to_tensor(obj)
            x.validate()
            assert np.array_equal(x.todense(), array, equal_nan=True), (shape, fill)
            assert np.array_equal(x.fill_value, fill, equal_nan=True)


def test_pydata_sparse_gcxs_by_columns_and_scalars():
    array = example((4, 6))
    obj = sparse.GCXS.from_numpy(array, compressed_axes=(1,))
    x = to_tensor(obj)
    assert x.ftype.mode_order == (1, 0) and np.array_equal(x.todense(), array) and shares(x.buffers[2][0], obj.data)
    assert to_tensor(sparse.COO.from_numpy(np.array(3.0))).todense() == 3.0


def test_corrupt_pydata_arrays_are_refused():
    coo = sparse.COO.from_numpy(np.eye(3))
    coo.coords = np.array([[0, 1, 9], [0, 1, 2]])
    with pytest.raises(IndexBoundsError):
        to_tensor(coo)
    gcxs = sparse.GCXS.from_numpy(np.eye(3))
    gcxs.indices = np.array([0, 1, 9])
    with pytest.raises(IndexBoundsError):
        to_tensor(gcxs)
    cube = sparse.GCXS.from_numpy(np.ones((2, 2, 2)))
    cube.indices = cube.indices + 5
    with pytest.raises(IndexBoundsError):
        to_tensor(cube)


@settings(max_examples=100, deadline=None)
@given(
    st.sampled_from(SHAPES),
    st.sampled_from(SUPPORTED_DTYPES),
    st.integers(0, 99),
    st.sampled_from(["csr", "csc", "coo", "dcsr", "dense"]),
    st.sampled_from([None, 0, 1]),
)
def test_any_input_to_any_format(shape, dtype, seed, spec, fill):
    array = example(shape, dtype, seed)
    for obj in (array, sp.csr_array(array), sparse.COO.from_numpy(array)):
        x = to_tensor(obj, format=format(spec, 2), fill_value=fill)
        x.validate()
        wanted = array
        if isinstance(obj, sp.csr_array) and fill:
            wanted = np.where(array == 0, np.asarray(fill, dtype), array)  # scipy.sparse leaves open what is elsewhere
        assert x.dtype == dtype and np.array_equal(x.todense(), wanted)
        assert x.fill_value == (0 if fill is None else fill)


def test_errors_are_one_family():
    for bad in ([[1], [2, 3]], corrupt("csr", "indices", [0, 1, 3])):
        with pytest.raises(PyFinchError):
            to_tensor(bad)


def test_a_fill_value_is_what_a_graphs_missing_edges_cost():
    edges = sp.csr_array(np.array([[0.0, 2.0], [5.0, 0.0]]))
    x = to_tensor(edges, fill_value=np.inf)
    assert np.shares_memory(x.buffers[1][1], edges.indices)
    np.testing.assert_array_equal(x.todense(), [[np.inf, 2.0], [5.0, np.inf]])
