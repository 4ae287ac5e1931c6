"""The storage tensor against dense NumPy, and what `from_buffers` refuses."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from pyfinch.algebra.dtypes import SUPPORTED_DTYPES
from pyfinch.algebra.errors import DTypeError, FormatError, IndexBoundsError, PyFinchError, ShapeError
from pyfinch.formats.convert import from_coords
from pyfinch.formats.format import Format, format
from pyfinch.formats.levels import Dense, Element, SparseByteMap, SparseCOO, SparseList
from pyfinch.formats.tensor import Tensor
from pyfinch.interop.convert import to_tensor

CSR = ([(), (np.array([0, 1, 3]), np.array([2, 0, 1])), (np.array([1.0, 2.0, 3.0]),)], (2, 3))


@st.composite
def formats(draw, ndim):
    levels, left = [], ndim
    while left:
        level = draw(st.sampled_from([Dense(), SparseList(), SparseByteMap(), SparseCOO(1), SparseCOO(2)]))
        if level.modes <= left:
            levels.append(level)
            left -= level.modes
    return Format((*levels, Element()), tuple(draw(st.permutations(range(ndim)))))


@st.composite
def arrays(draw, max_ndim=3):
    shape = tuple(draw(st.lists(st.sampled_from([0, 1, 1, 2, 3, 5]), min_size=0, max_size=max_ndim)))
    dtype = draw(st.sampled_from(SUPPORTED_DTYPES))
    fill = draw(st.sampled_from([0, 1, np.nan, np.inf] if dtype.kind in "fc" else [0, 1]))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    dense = rng.integers(0, 4, shape).astype(dtype)
    if dtype.kind in "fc":
        dense = np.where(rng.random(shape) < 0.1, dtype.type(np.nan), dense)
    stored = rng.random(shape) < draw(st.sampled_from([0.0, 0.3, 1.0]))
    return np.where(stored, dense, dtype.type(fill)).astype(dtype), dtype.type(fill)


def same(a, b):
    return a.shape == b.shape and a.dtype == b.dtype and np.array_equal(a, b, equal_nan=a.dtype.kind in "fc")


@settings(max_examples=400, deadline=None)
@given(st.data(), arrays(), st.booleans())
def test_every_format_holds_every_array(data, array_and_fill, prune):
    array, fill = array_and_fill
    first, second = data.draw(formats(array.ndim)), data.draw(formats(array.ndim))
    source = to_tensor(array, fill_value=fill)
    one = source.to_format(first, prune=prune)
    two = one.to_format(second, prune=prune)
    for tensor, fmt in ((one, first), (two, second)):
        tensor.validate()
        assert same(tensor.todense(), array)
        assert tensor.ftype.mode_order == fmt.mode_order
        assert [type(level) for level in tensor.ftype.levels] == [type(level) for level in fmt.levels]
        coords, values = tensor.to_coords()
        assert coords.shape == (array.ndim, tensor.nnz) and same(array[tuple(coords)].reshape(-1), values)
        assert np.array_equal(tensor.fill_value, fill, equal_nan=True) or tensor.ndim == 0
        again = Tensor.from_buffers(tensor.format, tensor.shape, tensor.buffers, fill_value=tensor.fill_value)
        assert again.ftype is tensor.ftype and same(again.todense(), array)
    if prune and array.ndim and not any(isinstance(level, Dense) for level in second.levels):
        differs = ~np.isnan(array) if fill != fill else array != fill
        assert two.nnz == np.count_nonzero(differs)


@settings(max_examples=150, deadline=None)
@given(st.data(), arrays())
def test_permuted_shares_buffers_and_transposes(data, array_and_fill):
    array, fill = array_and_fill
    axes = tuple(data.draw(st.permutations(range(array.ndim))))
    tensor = to_tensor(array, format=data.draw(formats(array.ndim)), fill_value=fill)
    turned = tensor.permuted(axes)
    turned.validate()
    assert same(turned.todense(), np.array(array.transpose(axes), order="C"))
    assert turned.buffers is tensor.buffers
    back = turned.permuted(tuple(np.argsort(axes))) if axes else turned
    assert back.ftype is tensor.ftype and back.shape == tensor.shape


@settings(max_examples=150, deadline=None)
@given(st.data(), arrays(), st.sampled_from(SUPPORTED_DTYPES))
def test_astype_and_refill(data, array_and_fill, dtype):
    array, fill = array_and_fill
    tensor = to_tensor(array, format=data.draw(formats(array.ndim)), fill_value=fill)
    if array.dtype.kind == "c" and dtype.kind != "c":
        with pytest.raises(DTypeError, match="imaginary"):
            tensor.astype(dtype)
        return
    if array.dtype.kind in "fc" and dtype.kind in "iu":
        # what a nan or a number out of range becomes depends on how NumPy vectorises
        assume(bool(np.all(np.abs(np.append(array.real, fill)) <= 100)))
        assume(dtype.kind == "i" or bool(np.all(np.append(array.real, fill) >= 0)))
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        want = array.astype(dtype)
    got = tensor.astype(dtype)
    assert same(got.todense(), want) and got.fill_value.dtype == dtype
    refilled = got.to_format(Format((*got.format.levels[:-1], Element(1, dtype)), got.ftype.mode_order))
    refilled.validate()
    assert same(refilled.todense(), want)


def test_patterns():
    array = np.array([[True, False, True], [False, False, False]])
    for text in (
        "dense(sparse_list(pattern()))",
        "sparse_coo[2](pattern())",
        "dense(sparse_bytemap(pattern()))",
    ):
        tensor = to_tensor(array, format=text)
        tensor.validate()
        assert np.array_equal(tensor.todense(), array) and tensor.nnz == 2 and tensor.dtype == np.bool_
        assert np.array_equal(tensor.astype("float32").todense(), array.astype("float32"))
        assert np.array_equal(tensor.to_format("csc").todense(), array)
        assert tensor.to_scipy().toarray().tolist() == array.tolist()
        again = Tensor.from_buffers(text, (2, 3), tensor.buffers)
        assert np.array_equal(again.todense(), array)
    with pytest.raises(FormatError, match="bools"):
        to_tensor([[1.0]], format="dense(sparse_list(pattern()))")
    with pytest.raises(FormatError, match="True everywhere"):
        to_tensor(array, format="dense(dense(pattern()))")
    assert to_tensor([[True]], format="dense(dense(pattern()))").todense().all()


def test_from_buffers_shares_and_copies():
    buffers, shape = CSR
    x = Tensor.from_buffers("csr", shape, buffers)
    assert x.buffers[1][0] is buffers[1][0] and x.buffers[2][0] is buffers[2][0]
    assert Tensor.from_buffers("csr", shape, buffers, copy=True).buffers[2][0] is not buffers[2][0]
    assert (x.nnz, x.density, x.size, x.nbytes) == (3, 0.5, 6, 24 * 3) and "nnz=3" in repr(x)


def test_readonly_big_endian_and_strided_buffers_are_taken():
    buffers = [
        (),
        (np.array([0, 1, 3], ">i4"), np.array([2, 0, 1], "u1")),
        (np.arange(1.0, 7.0)[::2].astype(">f4"),),
    ]
    for array in (*buffers[1], *buffers[2]):
        array.flags.writeable = False
    x = Tensor.from_buffers("csr", (2, 3), buffers)
    assert np.array_equal(x.todense(), [[0, 0, 1], [3, 5, 0]]) and x.dtype == np.float32
    assert x.ftype.levels[1] == SparseList(np.dtype("int32"), np.dtype("int32"))


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"ptr": [0, 1]}, FormatError, "ptr must have length 3, got 2"),
        ({"ptr": [1, 1, 3]}, FormatError, r"ptr\[0\] must be 0"),
        ({"ptr": [0, 4, 3]}, FormatError, r"ptr decreases: ptr\[2\] = 3 < ptr\[1\] = 4"),
        ({"ptr": [0, 1, 2]}, FormatError, "idx .* must have length 2, got 3"),
        ({"ptr": [0, 1, 5]}, FormatError, "must have length 5"),
        ({"ptr": [0.0, 1.0, 3.0]}, DTypeError, "integers, got float64"),
        ({"ptr": [0, 1, np.nan]}, DTypeError, "integers"),
        ({"idx": [2, 1, 0]}, FormatError, r"unsorted coordinate \(0\) after \(1\) at entry 2, in fiber 1"),
        ({"idx": [2, 1, 1]}, FormatError, "duplicate"),
        ({"idx": [2, -1, 1]}, IndexBoundsError, r"idx\[1\] = -1"),
        ({"idx": [2, 0, 3]}, IndexBoundsError, r"idx\[2\] = 3 is outside a dimension of size 3"),
        ({"idx": np.array([2, 0, 2**64 - 1], "u8")}, IndexBoundsError, "beyond int64"),
        ({"idx": [[2, 0, 1]]}, FormatError, "1 dimension, got 2"),
        ({"idx": ["a", "b", "c"]}, DTypeError, "integers"),
        ({"val": [1.0, 2.0]}, FormatError, "val must have length 3, got 2"),
        ({"val": np.zeros(3, "f2")}, DTypeError, "float16 is not supported"),
        ({"val": np.zeros(3, "O")}, DTypeError, "object"),
        ({"val": np.zeros(3, "M8[s]")}, DTypeError, "datetime"),
    ],
)
def test_bad_csr_buffers_are_refused(change, error, message):
    parts = {"ptr": [0, 1, 3], "idx": [2, 0, 1], "val": [1.0, 2.0, 3.0], **change}
    with pytest.raises(error, match=message):
        Tensor.from_buffers("csr", (2, 3), [(), (parts["ptr"], parts["idx"]), (parts["val"],)])


def test_bad_arguments_are_refused():
    buffers, shape = CSR
    for bad in ((2, -3), (2, 2.5), "ab", (2, 2**63)):
        with pytest.raises(ShapeError):
            Tensor.from_buffers("csr", bad, buffers)
    with pytest.raises(FormatError, match="2 modes"):
        Tensor.from_buffers("csr", (2, 3, 4), buffers)
    with pytest.raises(FormatError, match="3 levels"):
        Tensor.from_buffers("csr", shape, buffers[1:])
    with pytest.raises(FormatError, match="takes ptr, idx"):
        Tensor.from_buffers("csr", shape, [(), (), buffers[2]])
    with pytest.raises(FormatError, match="sequence of sequences"):
        Tensor.from_buffers("csr", shape, [1, 2, 3])
    with pytest.raises(DTypeError, match="float32 in this format"):
        Tensor.from_buffers("dense(sparse_list(element(0.0, float32)))", shape, buffers)
    with pytest.raises(DTypeError, match="does not fit"):
        Tensor.from_buffers("vector", (1,), [(), (np.array([1], "i1"),)], fill_value=300)
    with pytest.raises(FormatError, match="contradicts"):
        Tensor.from_buffers("dense(element(0.0, float64))", (1,), [(), ([1.0],)], fill_value=1)
    with pytest.raises(ShapeError, match="permute"):
        Tensor.from_buffers("csr", shape, buffers).permuted((0, 0))


def test_bytemap_table_must_match_its_list():
    good = {"ptr": [0, 1, 3], "idx": [2, 0, 1], "tbl": [False, False, True, True, True, False]}
    text, val = "dense(sparse_bytemap(element()))", np.arange(6.0)

    def make(**change):
        parts = {**good, **change}
        return Tensor.from_buffers(text, (2, 3), [(), (parts["ptr"], parts["idx"], parts["tbl"]), (val,)])

    assert np.array_equal(make().todense(), [[0, 0, 2], [3, 4, 0]]) and make().nnz == 3
    with pytest.raises(FormatError, match=r"listed but tbl\[2\] is False"):
        make(tbl=[False] * 6)
    with pytest.raises(FormatError, match=r"tbl\[5\] is True but"):
        make(tbl=[False, False, True, True, True, True])
    with pytest.raises(FormatError, match="tbl must have length 6"):
        make(tbl=[True] * 5)
    with pytest.raises(DTypeError, match="tbl must be bool"):
        make(tbl=[0, 0, 1, 1, 1, 0])
    with pytest.raises(FormatError, match="bytes other"):
        make(tbl=np.array([0, 0, 2, 1, 1, 0], "u1").view(bool))


def test_coo_is_checked_lexicographically():
    def make(rows, columns, shape=(3, 3)):
        return Tensor.from_buffers("coo", shape, [([0, len(rows)], rows, columns), (np.ones(len(rows)),)])

    assert make([0, 0, 1], [0, 2, 1]).todense().sum() == 3
    with pytest.raises(FormatError, match=r"unsorted coordinate \(0, 0\)"):
        make([0, 0], [1, 0])
    with pytest.raises(FormatError, match="duplicate"):
        make([0, 0], [1, 1])
    with pytest.raises(IndexBoundsError, match=r"idx1\[1\]"):
        make([0, 1], [1, 3])


def test_explicit_fills_stay_until_pruned():
    x = Tensor.from_buffers("csr", (1, 3), [(), ([0, 2], [0, 2]), ([0.0, 5.0],)])
    assert x.nnz == 2 and x.to_format("csc").nnz == 2 and x.to_format("csr") is x
    assert x.to_format("csc", prune=True).nnz == 1 and x.to_format("csr", prune=True).nnz == 1
    # Stored by a dense level only: dropped.
    assert to_tensor([[0.0, 5.0]], format="csr").nnz == 1


def test_duplicates_are_summed_in_their_dtype():
    coords = np.array([[1, 0, 1], [2, 0, 2]])
    for dtype in ("int8", "bool", "float32"):
        x = from_coords((2, 3), coords, np.array([1, 1, 1], dtype), format("csr"), np.dtype(dtype).type(0))
        x.validate()
        assert x.dtype == dtype and x.todense()[1, 2] == np.dtype(dtype).type(1) + np.dtype(dtype).type(1)


def test_scalars_and_huge_shapes():
    x = to_tensor(3.5)
    assert x.shape == () and x.todense() == 3.5 and x.nnz == 1 and x.size == 1
    wide = Tensor.from_buffers("coo", (2**40, 2**40), [([0, 1], [2**39], [7]), ([1.0],)])
    assert wide.nnz == 1 and wide.to_format("dcsc").nnz == 1 and wide.size == 2**80
    assert wide.to_format("dcsc").ftype.levels[0].idx == np.int64
    with pytest.raises(MemoryError):
        wide.todense()
    with pytest.raises(MemoryError):
        wide.to_format("csr")
    empty = to_tensor(np.zeros((0, 5)), format="csr")
    assert empty.density == 1.0 and empty.todense().shape == (0, 5)


def test_new_indices_are_int32_where_they_fit():
    x = to_tensor(np.eye(3), format="csr")
    assert x.ftype.levels[1] == SparseList(np.dtype("int32"), np.dtype("int32"))
    y = x.to_format("dense(sparse_list(element(), idx=int64))")
    assert y.ftype.levels[1].idx == np.int64 and np.array_equal(y.todense(), np.eye(3))


def test_errors_share_a_root():
    for error in (FormatError, ShapeError, DTypeError, IndexBoundsError):
        assert issubclass(error, PyFinchError)


def test_a_built_tensors_fill_is_a_scalar_of_its_dtype() -> None:
    from pyfinch.formats.convert import build

    tensor = build((3,), np.array([[1]]), np.ones(1, np.float32), format("sparse_vector"), 0)
    assert isinstance(tensor.fill_value, np.float32)
