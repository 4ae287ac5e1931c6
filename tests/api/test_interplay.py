"""Operators with NumPy and SciPy on either side, conversions, and creation."""

from __future__ import annotations

import copy
import operator
import pickle
import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse as sp

import pyfinch as pf

from .cases import stored

A = np.array([[0.0, 2.0, 0.0], [3.0, 0.0, 4.0], [0.0, 0.0, 5.0]])
B = np.array([[1.0, 2.0, 0.0], [0.0, 0.0, 4.0], [6.0, 0.0, 5.0]])
SCIPY = ("csr", "csc", "coo", "dia", "lil", "dok", "bsr")
OPERATORS = [
    operator.add,
    operator.sub,
    operator.mul,
    operator.matmul,
    operator.eq,
    operator.ne,
    operator.lt,
    operator.le,
    operator.gt,
    operator.ge,
]


@pytest.mark.parametrize("op", OPERATORS, ids=lambda op: op.__name__)
@pytest.mark.parametrize(
    "other", [np.asarray, *[getattr(sp, f"{f}_array") for f in ("csr", "csc", "coo", "dia", "lil", "dok", "bsr")]]
)
def test_operators_with_foreign_arrays_on_both_sides(op, other):
    for x in (stored(A, "csr"), pf.lazy(stored(A, "csr"))):
        for result, expected in ((op(x, other(B)), op(A, B)), (op(other(B), x), op(B, A))):
            assert isinstance(result, type(x))
            np.testing.assert_array_equal(pf.compute(result).todense(), expected)


def test_division_of_foreign_arrays():
    x = stored(B + 1, "dense")
    for other in (np.asarray, sp.csr_array, sp.coo_array):
        np.testing.assert_array_equal((other(A) / x).todense(), A / (B + 1))
        np.testing.assert_array_equal((x / other(A + 1)).todense(), (B + 1) / (A + 1))


def test_numpy_scalars_are_strong():
    x = stored(A.astype(np.float32), "csr")
    assert (np.float64(2) * x).dtype == np.float64
    assert (x * np.float64(2)).dtype == np.float64
    assert (2.0 * x).dtype == np.float32
    np.testing.assert_array_equal((np.float64(2) * x).todense(), A * 2)


def test_numpys_ufuncs_run_here():
    x = stored(A, "csr")
    for result, expected in [
        (np.sin(x), np.sin(A)),
        (np.add(A, x), A + A),
        (np.arctan(x), np.arctan(A)),
        (np.power(x, 2), A**2),
        (np.matmul(x, x), A @ A),
    ]:
        assert isinstance(result, pf.Tensor)
        np.testing.assert_allclose(result.todense(), expected)
    with pytest.raises(TypeError):
        np.add.reduce(x)


def test_numpys_functions_run_here():
    x = stored(A, "csr")
    for result, expected in [
        (np.sum(x), A.sum()),
        (np.sum(x, 0), A.sum(0)),
        (np.max(x, axis=1, keepdims=True), A.max(1, keepdims=True)),
        (np.mean(x, axis=(0, 1)), A.mean()),
        (np.where(x > 0, x, 1.0), np.where(A > 0, A, 1)),
        (np.transpose(x), A.T),
        (np.expand_dims(x, 1), A[:, None]),
        (np.tensordot(A, x, 1), A @ A),
        (np.broadcast_to(x, (2, 3, 3)), np.broadcast_to(A, (2, 3, 3))),
        (np.clip(x, 1, 4), np.clip(A, 1, 4)),
        (np.clip(x, None, 3), np.clip(A, None, 3)),
        (np.round(x), np.round(A)),
    ]:
        assert isinstance(result, pf.Tensor)
        np.testing.assert_array_equal(result.todense(), expected)
    assert isinstance(np.sum(pf.lazy(x)), pf.LazyTensor)
    with pytest.raises(TypeError):
        np.median(x)
    with pytest.raises(TypeError, match="initial"):
        np.sum(x, initial=3)


def test_shared_buffers_whose_ends_were_changed_reach_no_kernel():
    for make in (sp.csr_array, sp.csc_array):
        matrix = make(A)
        x = pf.asarray(matrix)
        matrix.indptr[-1] = 10**8
        for call in (lambda x: x + 1.0, lambda x: x @ x, pf.sum, lambda x: x.T + x, pf.Tensor.todense):
            with pytest.raises(pf.FormatError, match="copy=True"):
                call(x)


def test_sparse_tensors_do_not_become_dense_by_themselves():
    x = stored(A, "csr")
    with pytest.raises(pf.PyFinchError, match="todense"):
        np.asarray(x)
    np.testing.assert_array_equal(np.asarray(stored(A, "fortran")), A)


def test_scalars():
    assert float(stored(A, "csr")[0, 1]) == 2
    assert int(pf.asarray(3)) == 3
    assert bool(pf.asarray(0)) is False
    assert complex(pf.asarray(1j)) == 1j
    assert [10, 20, 30][pf.asarray(1)] == 20
    assert pf.asarray([[7]]).item() == 7
    with pytest.raises(pf.ShapeError, match="one element"):
        bool(stored(A, "csr"))
    with pytest.raises(TypeError):
        operator.index(pf.asarray(1.0))
    with pytest.raises(TypeError):
        len(pf.asarray(1.0))
    assert [float(row.sum()) for row in stored(A, "csr")] == [2, 7, 5]


def test_comparison_with_other_things():
    x = stored(A, "csr")
    assert (x == "text") is False
    assert (x == None) is False  # noqa: E711
    with pytest.raises(TypeError):
        x + "text"
    with pytest.raises(TypeError):
        hash(x)


def test_round_trips():
    x = stored(A, "csr")
    np.testing.assert_array_equal(x.to_scipy().toarray(), A)
    for y in (copy.copy(x), copy.deepcopy(x), pickle.loads(pickle.dumps(x))):
        assert type(y) is pf.Tensor and y.ftype is x.ftype
        np.testing.assert_array_equal(y.todense(), A)
    for result in (x.to_format("coo"), x.astype("float32"), x.T, x + 1, pf.compute(pf.lazy(x))):
        assert type(result) is pf.Tensor
    assert type(pf.Tensor.from_buffers("dense", (2,), [(), ([1.0, 2.0],)])) is pf.Tensor


def test_dense_calls_give_dense_tensors():
    for result in (pf.add(A, B), pf.sin(A), pf.sum(A, axis=0), A @ pf.asarray(B), pf.einsum("ij,jk", A, B)):
        assert type(result) is pf.Tensor
        assert "sparse" not in str(result.format)
    np.testing.assert_allclose((A @ pf.asarray(B)).todense(), A @ B)
    assert pf.add(1, 2).shape == ()
    assert pf.add(1, 2.5).dtype == np.float64


def test_creation():
    np.testing.assert_array_equal(pf.zeros((2, 3)).todense(), np.zeros((2, 3)))
    np.testing.assert_array_equal(pf.ones(3, dtype="int8").todense(), np.ones(3, dtype="int8"))
    assert pf.ones((5, 5)).nnz == 0
    assert pf.full((), 3).todense() == 3
    assert pf.full((2, 2, 2), np.nan, format="csf").nnz == 0
    np.testing.assert_array_equal(pf.full((2, 2), 5, format="dense").todense(), np.full((2, 2), 5))
    for n, m, k in [(3, 3, 0), (2, 4, 1), (4, 2, -1), (2, 2, 5), (2, 2, -5), (0, 3, 0)]:
        np.testing.assert_array_equal(pf.eye(n, m, k=k).todense(), np.eye(n, m, k=k))
    x = pf.random((20, 30), density=0.1, rng=0, format="csc")
    assert x.nnz == 60 and x.format.mode_order == (1, 0)
    np.testing.assert_array_equal(x.todense(), pf.random((20, 30), density=0.1, rng=0).todense())
    assert pf.random((4, 4), density=1, rng=0).nnz == 16
    assert pf.random((10**6, 10**6), density=1e-10, rng=0).nnz == 100
    assert pf.random((3, 3), density=1, dtype="int16", rng=0).dtype == np.int16
    with pytest.raises(pf.ShapeError, match="density"):
        pf.random((2, 2), density=2)


def test_asarray():
    m = sp.random_array((5, 6), density=0.3, format="csr", rng=0)
    x = pf.asarray(m)
    assert x.buffers[-1][0] is m.data or np.shares_memory(x.buffers[-1][0], m.data)
    assert pf.asarray(x) is x
    assert pf.asarray(x, format="csc").format.mode_order == (1, 0)
    assert pf.asarray([1, 2], dtype="float32").dtype == np.float32
    lazy = pf.lazy(x)
    assert pf.asarray(lazy) is lazy
    with pytest.raises(pf.PyFinchError, match="compute"):
        pf.asarray(lazy, format="csr")


def test_bad_input_is_refused_with_a_reason():
    for bad, error, words in [
        ([[1, 2], [3]], pf.DTypeError, "rectangular"),
        (np.array([object()]), pf.DTypeError, "object"),
        (np.array(["a"]), pf.DTypeError, "<U1|str"),
        (np.array([1], dtype="M8[s]"), pf.DTypeError, "datetime"),
        (np.zeros(2, dtype=np.longdouble), pf.DTypeError, "longdouble|float128"),
    ]:
        with pytest.raises(error, match=words):
            pf.asarray(bad)
        with pytest.raises(error, match=words):
            pf.eye(2) + bad
    with pytest.raises(pf.ParseError, match=r"format|level|kitchen"):
        pf.eye(2).to_format("kitchen(sink)")
    with pytest.raises(pf.FormatError, match="1 modes, but 2"):
        pf.eye(2).to_format("sparse_vector")
    with pytest.raises(pf.DTypeError, match=r"300.*int8"):
        pf.asarray([1], dtype="int8", format="coo") + 300
    with pytest.raises(pf.DTypeError, match="bitwise_and"):
        pf.eye(2) & 1
    with pytest.raises(pf.ShapeError, match=r"\(2, 2\).*\(3, 3\)"):
        pf.eye(2) * pf.eye(3)
    with pytest.raises(pf.DTypeError, match="positive"):
        pf.set_num_threads(0)
    with pytest.raises(TypeError, match="add"):
        pf.add(pf.eye(2))


def test_set_num_threads_returns_the_number_before():
    before = pf.set_num_threads(4)
    assert pf.set_num_threads(before) == 4


def test_importing_pyfinch_does_not_import_numba():
    code = "import pyfinch, sys; sys.exit('numba' in sys.modules or 'juliacall' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_every_operator_of_the_table_is_offered():
    from pyfinch.algebra.operators import all_operators

    for op in all_operators():
        if op.name not in ("overwrite", "first"):
            assert callable(getattr(pf, op.name))
            assert op.name in pf.__all__
