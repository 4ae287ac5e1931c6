"""Sparse matrix times sparse matrix; pyfinch's results are always sorted, SciPy's and MKL's need a sort for that."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp

import pyfinch as pf
from benchmarks import hand, peers
from benchmarks.harness import Bench, Row, at_most
from benchmarks.inputs import matrices

WANTED = (at_most(0.9, "scipy sorted"), at_most(1.0, "scipy"), at_most(1.2, "mkl"))


def by_hand(a: Any, b: Any) -> Any:
    """Gustavson's algorithm by hand: count, then fill."""
    rows, columns = a.shape[0], b.shape[1]

    def call() -> Any:
        counts = np.empty(rows, np.int64)
        hand.spgemm_count(a.indptr, a.indices, b.indptr, b.indices, columns, counts, 0, rows)
        ptr = np.zeros(rows + 1, np.int32)
        np.cumsum(counts, out=ptr[1:])
        idx, val = np.empty(ptr[-1], np.int32), np.empty(ptr[-1])
        arrays = (a.indptr, a.indices, a.data, b.indptr, b.indices, b.data)
        hand.spgemm_fill(*arrays, ptr, idx, val, columns, 0, rows)
        return ptr, idx, val

    return call


def case(bench: Bench, name: str, a: Any, b: Any) -> Row:
    """A @ B, csr."""
    fa, fb = pf.asarray(a), pf.asarray(b)
    dot, gb = peers.mkl(), peers.graphblas()
    ga, gb_ = (gb.io.from_scipy_sparse(a), gb.io.from_scipy_sparse(b)) if gb else (None, None)
    shape = (a.shape[0], b.shape[1])

    def sorted_by_scipy() -> Any:
        product = a @ b
        product.sort_indices()
        return product

    calls = {
        "pyfinch": lambda: fa @ fb,
        "scipy sorted": sorted_by_scipy,
        "scipy": lambda: a @ b,
        "hand": by_hand(a, b),
        "mkl": dot and (lambda: dot.dot_product_mkl(a, b, reorder_output=True)),
        "graphblas": gb and (lambda: ga.mxm(gb_).new()),
    }
    views = {"hand": lambda parts: sp.csr_array((parts[2], parts[1], parts[0]), shape=shape)}
    return bench.measure("SpGEMM", name, calls, wanted=WANTED, views=views)


def run(bench: Bench) -> Iterator[Row]:
    """Measure; of the largest matrices only some rows are multiplied."""
    for name, matrix in matrices(bench.quick):
        if matrix.nnz > 4_000_000:
            continue
        rows = matrix.shape[0]
        if name == "power law 2^17" or (bench.quick and name.startswith("power")):
            rows = 2_000
        elif name.startswith("nearly dense"):
            rows = 300
        yield case(bench, name, matrix[:rows], matrix)
