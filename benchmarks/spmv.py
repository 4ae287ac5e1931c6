"""Matrix times vector: A @ x and Aᵀ @ x, in csr, csc and coo, in both precisions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

import pyfinch as pf
from benchmarks import hand, peers
from benchmarks.harness import Bench, Row, at_most
from benchmarks.inputs import matrices

WANTED = (at_most(1.05, "scipy", "hand"),)


def by_graphblas(matrix: Any, x: Any, *, transposed: bool = False) -> Any:
    """GraphBLAS's product, or None where it is absent."""
    gb = peers.graphblas()
    if gb is None:
        return None
    a, v = gb.io.from_scipy_sparse(matrix), gb.Vector.from_dense(x)
    if transposed:
        return lambda: a.T.mxv(v).new()
    return lambda: a.mxv(v).new()


def by_mkl(matrix: Any, x: Any) -> Any:
    """MKL's product, or None where it is absent."""
    dot = peers.mkl()
    return dot and (lambda: dot.dot_product_mkl(matrix, x))


def by_torch(matrix: Any, x: Any) -> Any:
    """Torch's product of a csr matrix and a vector or matrix, or None where it is absent."""
    torch = peers.torch()
    if torch is None:
        return None
    parts = [torch.from_numpy(part) for part in (matrix.indptr, matrix.indices, matrix.data)]
    a, v = torch.sparse_csr_tensor(*parts, size=matrix.shape), torch.from_numpy(x)
    return lambda: a @ v


def by_hand(matrix: Any, x: Any) -> Any:
    """The loops of a csr matrix by hand."""

    def call() -> Any:
        y = np.empty(matrix.shape[0], x.dtype)
        hand.spmv(matrix.indptr, matrix.indices, matrix.data, x, y, 0, matrix.shape[0])
        return y

    return call


def transposed_by_hand(matrix: Any, x: Any) -> Any:
    """The loops of a transposed csr matrix by hand."""

    def call() -> Any:
        y = np.zeros(matrix.shape[1], x.dtype)
        hand.spmv_transposed(matrix.indptr, matrix.indices, matrix.data, x, y)
        return y

    return call


def coo_by_hand(matrix: Any, x: Any) -> Any:
    """The loop of a coo matrix by hand."""
    row, column = matrix.coords

    def call() -> Any:
        y = np.zeros(matrix.shape[0], x.dtype)
        hand.spmv_coo(row, column, matrix.data, x, y)
        return y

    return call


def plain(bench: Bench, name: str, matrix: Any) -> Row:
    """A @ x, csr."""
    x = np.random.default_rng(1).random(matrix.shape[1]).astype(matrix.dtype)
    a, v = pf.asarray(matrix), pf.asarray(x)
    calls = {
        "pyfinch": lambda: a @ v,
        "scipy": lambda: matrix @ x,
        "hand": by_hand(matrix, x),
        "mkl": by_mkl(matrix, x),
        "graphblas": by_graphblas(matrix, x),
        "torch": by_torch(matrix, x),
    }
    single = matrix.dtype == np.float32
    workload = "SpMV float32" if single else "SpMV"
    return bench.measure(workload, name, calls, wanted=WANTED, tolerance=1e-4 if single else 1e-9)


def transposed(bench: Bench, name: str, matrix: Any) -> Row:
    """Aᵀ @ x, csr."""
    x = np.random.default_rng(1).random(matrix.shape[0])
    a, v, other = pf.asarray(matrix), pf.asarray(x), matrix.T
    calls = {
        "pyfinch": lambda: a.T @ v,
        "scipy": lambda: other @ x,
        "hand": transposed_by_hand(matrix, x),
        "mkl": by_mkl(other, x),
        "graphblas": by_graphblas(matrix, x, transposed=True),
    }
    return bench.measure("SpMVᵀ", name, calls, wanted=WANTED)


def other_formats(bench: Bench, name: str, matrix: Any) -> Iterator[Row]:
    """A @ x, csc and coo."""
    x = np.random.default_rng(1).random(matrix.shape[1])
    csc, coo, v = matrix.tocsc(), matrix.tocoo(), pf.asarray(x)
    a, b = pf.asarray(csc), pf.asarray(coo)
    calls = {"pyfinch": lambda: a @ v, "scipy": lambda: csc @ x, "hand": transposed_by_hand(csc.T, x)}
    yield bench.measure("SpMV csc", name, calls, wanted=WANTED)
    calls = {"pyfinch": lambda: b @ v, "scipy": lambda: coo @ x, "hand": coo_by_hand(coo, x)}
    yield bench.measure("SpMV coo", name, calls, wanted=WANTED)


def run(bench: Bench) -> Iterator[Row]:
    """Measure."""
    for name, matrix in matrices(bench.quick):
        yield plain(bench, name, matrix)
        if matrix.nnz < 4_000_000:
            yield transposed(bench, name, matrix)
            yield from other_formats(bench, name, matrix)
            yield plain(bench, name, matrix.astype(np.float32))
