"""Sparse matrix times dense matrix, 8 to 128 columns."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

import pyfinch as pf
from benchmarks import hand
from benchmarks.harness import Bench, Row, at_most
from benchmarks.inputs import matrices
from benchmarks.spmv import by_mkl, by_torch


def by_hand(matrix: Any, x: Any) -> Any:
    """The loops by hand."""

    def call() -> Any:
        y = np.empty((matrix.shape[0], x.shape[1]))
        hand.spmm(matrix.indptr, matrix.indices, matrix.data, x, y, 0, matrix.shape[0])
        return y

    return call


def case(bench: Bench, name: str, matrix: Any, width: int) -> Row:
    """A @ X, csr and row-major."""
    x = np.random.default_rng(1).random((matrix.shape[1], width))
    a, v = pf.asarray(matrix), pf.asarray(x)
    calls = {
        "pyfinch": lambda: a @ v,
        "scipy": lambda: matrix @ x,
        "hand": by_hand(matrix, x),
        "mkl": by_mkl(matrix, x),
        "torch": by_torch(matrix, x),
    }
    return bench.measure(f"SpMM {width}", name, calls, wanted=(at_most(1.05, "scipy", "hand"),))


def run(bench: Bench) -> Iterator[Row]:
    """Measure."""
    for width in (32,) if bench.quick else (8, 32, 128):
        for name, matrix in matrices(bench.quick):
            if matrix.shape[0] * width <= 13_000_000:
                yield case(bench, name, matrix, width)
