"""matmul, tensordot, vecdot, einsum and einop against NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pyfinch as pf

from .cases import SIZES, agree, stored, tensors

SHAPES = [
    ((3,), (3,)),
    ((2, 3), (3,)),
    ((3,), (3, 2)),
    ((2, 3), (3, 4)),
    ((1, 3), (3, 1)),
    ((0, 3), (3, 2)),
    ((2, 0), (0, 2)),
    ((2, 2, 3), (3, 4)),
    ((2, 1, 3), (2, 3, 2)),
    ((1, 2, 3), (2, 3, 2)),
    ((3,), (2, 3, 2)),
    ((2, 2, 3), (3,)),
]


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_matmul(data):
    one, two = data.draw(st.sampled_from(SHAPES))
    dtypes = st.sampled_from([np.float64, np.int64, np.int8, np.bool_, np.complex64])
    a, A = data.draw(tensors(one, dtype=data.draw(dtypes)))
    b, B = data.draw(tensors(two, dtype=data.draw(dtypes), fill=data.draw(st.sampled_from([0, 0, 1]))))
    agree(pf.matmul, [A, B], np.matmul(a, b))
    agree(lambda x, y: x @ y, [A, B], np.matmul(a, b))


@settings(max_examples=30, deadline=None)
@given(st.data())
def test_tensordot_and_vecdot(data):
    a, A = data.draw(tensors((2, 3, 4)))
    b, B = data.draw(tensors((3, 4)))
    c, C = data.draw(tensors((4, 2)))
    agree(pf.tensordot, [A, B], np.tensordot(a, b))
    agree(lambda x, y: pf.tensordot(x, y, axes=1), [A, C], np.tensordot(a, c, 1))
    agree(lambda x, y: pf.tensordot(x, y, axes=0), [B, C], np.tensordot(b, c, 0))
    agree(lambda x, y: pf.tensordot(x, y, axes=((0, 2), (1, 0))), [A, C], np.tensordot(a, c, ((0, 2), (1, 0))))
    agree(pf.vecdot, [A, B], np.vecdot(a, b))
    d, D = data.draw(tensors((3,), dtype=np.complex128))
    e, E = data.draw(tensors((2, 3), dtype=np.complex128))
    agree(pf.vecdot, [D, E], np.vecdot(d, e))


EINSUMS = [
    "ij->ij",
    "ij->ji",
    "ij->",
    "ij->j",
    "ij,jk->ik",
    "ij,jk",
    "ij,ij->ij",
    "ij,kj->ki",
    "ii->i",
    "ii",
    "ij,ij,ij->i",
    "ik,kj,ij->ij",
    "ij,jk,kl->il",
    "...j,jk->...k",
    "...ij->...ji",
    "i...->...",
    "ii...->i...",
    "i,j->ij",
    "ij,j,i->",
    ",ij->ij",
]


@settings(max_examples=100, deadline=None)
@given(st.data())
def test_einsum(data):
    text = data.draw(st.sampled_from(EINSUMS))
    sizes = {name: data.draw(st.sampled_from([0, 1, 2, 3])) for name in "ijkl"}
    arrays, given_ = [], []
    for part in text.partition("->")[0].split(","):
        extra = data.draw(st.integers(0, 1)) if "..." in part and part != "ii..." else 0
        shape: list[int] = []
        for name in part.replace("...", "."):
            shape += [2] * extra if name == "." else [sizes[name]]
        a, A = data.draw(tensors(tuple(shape), dtype=data.draw(st.sampled_from([np.float64, np.int64]))))
        arrays.append(a)
        given_.append(A)
    agree(lambda *xs: pf.einsum(text, *xs), given_, np.einsum(text, *arrays))


def test_einsum_with_lists():
    a = np.arange(6.0).reshape(2, 3)
    A = stored(a, "csr")
    np.testing.assert_array_equal(pf.einsum(A, [0, 1], A, [2, 1], [0, 2]).todense(), a @ a.T)
    np.testing.assert_array_equal(pf.einsum(A, [0, 1]).todense(), a)


def test_einsum_errors():
    A, B = pf.eye(3), pf.eye(4)
    for text, operands, error, words in [
        ("ij,jk->ik", (A, B), pf.ShapeError, "'j'.*3.*4"),
        ("ij,jk->iz", (A, A), pf.ParseError, "'z'"),
        ("ij,jk->ii", (A, A), pf.ParseError, "'i' is twice"),
        ("ij,j?->i", (A, A), pf.ParseError, r"'\?'"),
        ("ij,jk->ik", (A,), pf.ParseError, "2 operands, got 1"),
        ("ijk->i", (A,), pf.ShapeError, "operand 0 has 2 modes"),
        ("i...j->ij", (pf.zeros((2, 2, 2)),), pf.ParseError, r"\.\.\."),
        ("ii->i", (pf.zeros((2, 3)),), pf.ShapeError, "'i'"),
    ]:
        with pytest.raises(error, match=words):
            pf.einsum(text, *operands)
        with pytest.raises(error, match=words):
            pf.einsum(text, *[pf.lazy(x) for x in operands])


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_einop(data):
    n, m, k = data.draw(SIZES), data.draw(SIZES), data.draw(SIZES)
    a, A = data.draw(tensors((n, k), fill=data.draw(st.sampled_from([0, np.inf]))))
    b, B = data.draw(tensors((k, m)))
    with np.errstate(all="ignore"):
        wide = a[:, :, None] + b[None]
    agree(lambda x, y: pf.einop("C[i,j] min= A[i,k] + B[k,j]", A=x, B=y), [A, B], wide.min(axis=1, initial=np.inf))
    agree(lambda x, y: pf.einop("C[j,i] max= A[i,k] + B[k,j]", A=x, B=y), [A, B], wide.max(axis=1, initial=-np.inf).T)
    agree(lambda x: pf.einop("s += (x[i,k] > 0) * 2", x=x), [A], (2 * (a > 0)).sum())


def test_einop_expressions():
    a, b = np.array([[0.0, 2.0], [3.0, 0.0]]), np.array([[1.0, 2.0], [0.0, 4.0]])
    A, B = stored(a, "csr"), stored(b, "csc")
    for text, expected in [
        ("C[i,j] = A[i,j] * B[j,i] - 2 * A[i,j] ** 2", a * b.T - 2 * a**2),
        ("C[i,j] = -A[i,j] + B[i,j] / 4", -a + b / 4),
        ("C[i] += A[i,j] * B[i,j]", (a * b).sum(1)),
        ("C[i] *= B[i,j] + 1", (b + 1).prod(1)),
        ("C[i] or= A[i,j] > B[i,j]", (a > b).any(1)),
        ("C[i] and= not (A[i,j] > B[i,j])", (~(a > b)).all(1)),
        ("C[j,i] = where(A[i,j] >= 1.5e0, sqrt(A[i,j]), -1)", np.where(a >= 1.5, np.sqrt(a), -1).T),
        ("C[i] += A[i,i]", np.diagonal(a)),
        ("C[] += A[i,i]", np.trace(a)),
        ("C[i,j] = 2 ** A[i,j] ** 0.5", 2 ** (a**0.5)),
        ("C[i,j] = max(A[i,j], B[i,j], 1)", np.maximum(np.maximum(a, b), 1)),
        ("C[i,j] = A[i,j] * t + (B[i,j] - t)", a * 0.5 + (b - 0.5)),
    ]:
        numbers = {"t": 0.5} if " t " in text else {}
        names = [name for name in "AB" if f"{name}[" in text.partition("=")[2] or f" {name}[" in text.split("=", 1)[1]]
        chosen = {"A": A, "B": B}
        agree(
            lambda *xs, text=text, names=names, numbers=numbers: pf.einop(
                text, **dict(zip(names, xs, strict=True)), **numbers
            ),
            [chosen[name] for name in names],
            expected,
        )


def test_einop_errors():
    A = pf.eye(3)
    for text, operands, error, words in [
        ("C[i,j] = A[i,k] + B[k,j]", {"A": A}, pf.ParseError, "'B'"),
        ("C[i] = A[i,j]", {"A": A}, pf.ParseError, "'j'"),
        ("C[i,z] += A[i,j]", {"A": A}, pf.ParseError, "'z'"),
        ("C[i] += A[i]", {"A": A}, pf.ShapeError, "A has shape"),
        ("C[i] += A[i,j] +", {"A": A}, pf.ParseError, "the end"),
        ("C[i] += A[i,j", {"A": A}, pf.ParseError, "expected"),
        ("C[i] += A[i,j] $ 2", {"A": A}, pf.ParseError, r"'\$'"),
        ("C[i] += foo(A[i,j])", {"A": A}, pf.ParseError, "foo"),
        ("C[i] bar= A[i,j]", {"A": A}, pf.ParseError, "bar"),
        ("C[i] -= A[i,j]", {"A": A}, pf.DTypeError, "identity"),
        ("C[i] += A[i,j]", {"A": A, "B": A}, pf.ParseError, "B is not"),
        ("A[i,j]", {"A": A}, pf.ParseError, "expected"),
        ("C[i,i] = A[i,i]", {"A": A}, pf.ParseError, "twice"),
        ("C[i,j] += A[i,k] * B[k,j]", {"A": A, "B": pf.eye(4)}, pf.ShapeError, "'k'.*3.*4"),
    ]:
        with pytest.raises(error, match=words):
            pf.einop(text, **operands)


def test_products_stay_sparse_and_dense_as_they_should():
    A = pf.random((30, 30), density=0.05, rng=1)
    assert str((A @ A).format).startswith("dense(sparse_list(")
    assert str((A @ np.ones(30)).format).startswith("dense(element")
    S = A * (np.ones((30, 4)) @ np.ones((4, 30)))
    assert S.nnz == A.nnz
    E = pf.einsum("ij,ik,jk->ij", A, np.ones((30, 4)), np.ones((30, 4)))
    assert E.nnz <= A.nnz


def test_matmul_errors_name_both_shapes():
    for a, b in [(pf.eye(3), pf.eye(4)), (pf.eye(3), pf.zeros(5)), (pf.zeros((2, 3, 3)), pf.zeros((3, 3, 3)))]:
        with pytest.raises(pf.ShapeError) as info:
            a @ b
        assert str(a.shape) in str(info.value) and str(b.shape) in str(info.value)
    with pytest.raises(pf.ShapeError, match=r"0-d|number"):
        pf.eye(3) @ pf.asarray(2.0)
    with pytest.raises(pf.ShapeError, match="axis"):
        pf.tensordot(pf.eye(3), pf.eye(4), axes=1)


@pytest.mark.parametrize("dtype", [np.int8, np.bool_])
def test_narrow_sums_wrap_before_they_are_widened(dtype):
    a = np.array([[100, 100], [50, -3]]).astype(dtype)
    b, c = np.array([[1, 1], [1, 0]]).astype(dtype), np.array([[1, 2], [1000, 4]], np.int32)
    given = [stored(x, "csr") for x in (a, b, c)]
    agree(lambda x, y, z: (x @ y) * z, given, (a @ b) * c)
    agree(lambda x, y, z: (x @ y) @ z, given, (a @ b) @ c)
    agree(lambda x, y, z: pf.einsum("ij,ij->", x @ y, z), given, np.sum((a @ b) * c, dtype=np.int32))
    agree(lambda x, y, z: pf.sum(x @ y), given, np.sum(a @ b))
    agree(lambda x, y, z: pf.sum(x @ y, axis=0) * z, given, np.sum(a @ b, axis=0) * c)


@pytest.mark.parametrize("fmt", ["coo", "dcsr"])
def test_rows_that_no_dense_level_finds_are_searched_for(fmt):
    x = pf.lazy(pf.eye(5).to_format(fmt))
    source = str(pf.explain(x @ x)).rpartition("== source")[2]
    # two bound the range of the outermost loop, one looks for row j, and one, of a coo, for the row's end
    assert source.count("lower_bound(") == (4 if fmt == "coo" else 3)
