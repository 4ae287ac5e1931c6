"""The auto scheduler: operations counted against the best order known, results against NumPy, formats, adaptation."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import pyfinch as pf
from pyfinch.formats.statistics import binned, density_of_bin, size_of_bin, statistics
from tests.schedule.counting import iterations

N = 150
_RNG = np.random.default_rng(7)


def _matrix(rows: int = N, columns: int = N, per_row: float = 5.0) -> Any:
    return sp.random_array((rows, columns), density=per_row / columns, format="csr", rng=_RNG)


_A, _B, _S = _matrix(), _matrix(), _matrix(per_row=1.0)
_X, _Y, _V = _RNG.random((N, 16)), _RNG.random((16, N)), _RNG.random(N)
_T = _RNG.random((30, 30, 30)) * (_RNG.random((30, 30, 30)) < 0.02)
_F, _G = _RNG.random((30, 4)), _RNG.random((30, 4))


def _flops(a: Any, b: Any) -> int:
    """Products of entries in a @ b."""
    return int(np.diff(a.tocsc().indptr) @ np.diff(b.tocsr().indptr))


def _lazy(*arrays: Any) -> list[Any]:
    return [pf.lazy(pf.asarray(array)) for array in arrays]


a, b, s, x, y, v = _lazy(_A, _B, _S, _X, _Y, _V)
_NNZ, _SNNZ = _A.nnz, _S.nnz
_AB, _AA = _flops(_A, _B), _flops(_A, _A)
_STRIPE = np.where(_RNG.random(N) < 0.05, _RNG.random(N), 0.0)

# name: expression, NumPy's value, the best count of operations that is known
CASES: dict[str, tuple[Any, Any, int]] = {
    "triangles": (pf.sum((a @ a) * a), lambda A, B, S: ((A @ A) * A).sum(), _AA + _NNZ),
    "triangles, mask first": (pf.sum(a * (a @ a)), lambda A, B, S: ((A @ A) * A).sum(), _AA + _NNZ),
    "sampled": (s * (x @ y), lambda A, B, S: S * (_X @ _Y), 16 * _SNNZ + 16 * N),
    "sampled, mask last": ((x @ y) * s, lambda A, B, S: S * (_X @ _Y), 16 * _SNNZ + 16 * N),
    "matrices times vector": (a @ b @ v, lambda A, B, S: A @ B @ _V, 2 * _NNZ + 2 * N),
    "vector times matrices": (v @ a @ b, lambda A, B, S: _V @ A @ B, 2 * _NNZ + 2 * N),
    "sum of a product": (pf.sum(a @ b), lambda A, B, S: (A @ B).sum(), 2 * _NNZ + 2 * N),
    "rows of a product": (pf.sum(a @ b, axis=1), lambda A, B, S: (A @ B).sum(1), 2 * _NNZ + 2 * N),
    "sum times vector": ((a + b) @ v, lambda A, B, S: (A + B) @ _V, 2 * _NNZ + N),
    "gram": (a.T @ a, lambda A, B, S: A.T @ A, _flops(_A.T, _A) + 2 * _NNZ),
    "gram of rows": (a @ a.T, lambda A, B, S: A @ A.T, _flops(_A, _A.T) + 2 * _NNZ),
    "masked": ((a @ b) * s, lambda A, B, S: (A @ B) * S, min(_AB, 10 * _SNNZ) + _NNZ + _SNNZ),
    "masked by where": (pf.where(s != 0, a @ b, 0.0), lambda A, B, S: np.where(S != 0, A @ B, 0), _AB + _NNZ + _SNNZ),
    "outer, summed over the first": (
        pf.sum(a[:, None, :] * b[None, :, :], axis=0),
        lambda A, B, S: (A[:, None, :] * B[None, :, :]).sum(0),
        2 * _NNZ + N,
    ),
    "outer, summed over the second": (
        pf.sum(a[:, None, :] * b[None, :, :], axis=1),
        lambda A, B, S: (A[:, None, :] * B[None, :, :]).sum(1),
        2 * _NNZ + N,
    ),
    "outer, summed over the third": (
        pf.sum(a[:, None, :] * b[None, :, :], axis=2),
        lambda A, B, S: A @ B.T,
        _flops(_A, _B.T) + 2 * _NNZ,
    ),
    "chain": (
        pf.einsum("ab,bc,cd,de,ef,fg,gh,h->a", a, b, a, b, a, b, a, v),
        lambda A, B, S: A @ (B @ (A @ (B @ (A @ (B @ (A @ _V)))))),
        7 * (_NNZ + N),
    ),
    "chain from the left": (
        pf.einsum("a,ab,bc,cd,de->e", v, a, b, a, b),
        lambda A, B, S: _V @ A @ B @ A @ B,
        4 * (_NNZ + N),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_operations_are_near_the_best_known(name: str) -> None:
    expression, dense, best = CASES[name]
    count, (result,) = iterations(expression, scheduler="auto")
    np.testing.assert_allclose(result, dense(_A.toarray(), _B.toarray(), _S.toarray()), rtol=1e-9, atol=1e-12)
    assert count <= 3 * best + 4 * N, (count, best)


def _stored(format_: str, order: tuple[int, ...]) -> Any:
    """The tensor with its modes stored in some order."""
    return pf.permute_dims(pf.asarray(np.transpose(_T, order), format=format_), tuple(np.argsort(order)))


@pytest.mark.parametrize("format_", ["csf", "coo"])
@pytest.mark.parametrize("order", [(0, 1, 2), (0, 2, 1), (1, 0, 2), (1, 2, 0), (2, 0, 1), (2, 1, 0)])
@pytest.mark.parametrize(
    "subscripts", ["ijk,jr,kr->ir", "ijk,ir,kr->jr", "ijk,ir,jr->kr", "ijk,kr->ijr", "ijk,jr->irk", "ijk,k->ij"]
)
def test_tensor_products_cost_their_entries_whatever_the_storage(
    format_: str, order: tuple[int, ...], subscripts: str
) -> None:
    tensor = pf.lazy(_stored(format_, order))
    factors = [_F, _G][: subscripts.count(",")] if "r" in subscripts else [_F[:, 0].copy()]
    count, (result,) = iterations(pf.einsum(subscripts, tensor, *map(pf.asarray, factors)), scheduler="auto")
    np.testing.assert_allclose(result, np.einsum(subscripts, _T, *factors), rtol=1e-9, atol=1e-12)
    nnz = int(np.count_nonzero(_T))
    # each entry meets four columns at most, and is moved or sorted once at most
    assert count <= nnz * (4 * 2 + 16) + 6 * 30 * 30


def test_a_nearly_empty_operand_is_galloped_over() -> None:
    big = np.zeros(20_000)
    big[::2] = 1.0
    small = np.zeros(20_000)
    small[[10, 11_111, 19_000]] = 2.0
    for left, right in ((big, small), (small, big)):
        p, q = (pf.lazy(pf.asarray(side, format="sparse_vector")) for side in (left, right))
        count, (result,) = iterations(p * q, scheduler="auto")
        np.testing.assert_array_equal(result, left * right)
        assert count <= 200
        count, (total,) = iterations(pf.sum(p * q), scheduler="auto")
        assert total == (left * right).sum()
        assert count <= 200


def test_a_nearly_empty_matrix_is_galloped_over() -> None:
    rows, columns = _RNG.integers(0, 500, (2, 5000))
    big = pf.asarray(sp.coo_array((np.ones(5000), (rows, columns)), shape=(500, 500)))
    small = pf.asarray(sp.coo_array(([2.0, 3.0], ([3, 400], [5, 6])), shape=(500, 500)))
    count, (result,) = iterations(pf.lazy(big) * small, scheduler="auto")
    np.testing.assert_array_equal(result, big.todense() * small.todense())
    assert count <= 300


def test_bins_are_coarse_and_ordered() -> None:
    assert [binned(size) for size in (0, 1)] == [0, 1]
    assert all(binned(size) <= binned(size + 1) for size in range(300))
    for size in (5, 100, 12_345, 10**9):
        assert size / 4.1 <= size_of_bin(binned(size)) <= size * 4.1
    assert statistics(pf.asarray(_A))[:2] == (binned(N), binned(N))
    assert (
        density_of_bin(statistics(pf.asarray(_A))[2]) / 2.1
        <= _NNZ / N**2
        <= density_of_bin(statistics(pf.asarray(_A))[2]) * 2.1
    )


@pytest.mark.parametrize(
    "name", ["masked", "gram", "gram of rows", "outer, summed over the third", "matrices times vector"]
)
def test_a_results_format_does_not_depend_on_sizes(name: str) -> None:
    kinds = set()
    for n, density in ((3, 0.5), (40, 0.01), (40, 0.6), (400, 0.002)):
        m = [pf.lazy(pf.asarray(sp.random_array((n, n), density=density, format="csr", rng=_RNG))) for _ in range(3)]
        w = pf.asarray(_RNG.random(n))
        expression = {
            "masked": lambda m=m: (m[0] @ m[1]) * m[2],
            "gram": lambda m=m: m[0].T @ m[0],
            "gram of rows": lambda m=m: m[0] @ m[0].T,
            "outer, summed over the third": lambda m=m: pf.sum(m[0][:, None, :] * m[1][None, :, :], axis=2),
            "matrices times vector": lambda m=m, w=w: m[0] @ m[1] @ w,
        }[name]
        kinds.add(str(pf.compute(expression()).ftype))
    assert len(kinds) == 1


def test_explain_says_what_was_decided() -> None:
    text = str(pf.explain(a @ b @ v))
    assert "sum over" in text
    assert "estimated cost" in text
    assert "factor_products" in text
