"""Matrices to measure on: uniform, power law, and real ones."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp

from pyfinch.demo.demo import load


def uniform(rows: int, per_row: int, seed: int = 0) -> Any:
    """Uniformly random coordinates."""
    rng = np.random.default_rng(seed)
    matrix = sp.random_array((rows, rows), density=per_row / rows, format="csr", rng=rng)
    return with_small_indices(matrix)


def power_law(scale: int, entries: int, seed: int = 0) -> Any:
    """R-MAT (Chakrabarti, Zhan, Faloutsos, SDM 2004) with Graph500's parameters, ``2**scale`` rows."""
    rng = np.random.default_rng(seed)
    row, column = np.zeros(entries, np.int64), np.zeros(entries, np.int64)
    for _ in range(scale):
        draw = rng.random(entries)
        row = 2 * row + (draw >= 0.76)
        column = 2 * column + (((draw >= 0.57) & (draw < 0.76)) | (draw >= 0.95))
    size = 1 << scale
    matrix = sp.coo_array((rng.random(entries) + 0.5, (row, column)), shape=(size, size)).tocsr()
    matrix.sum_duplicates()
    return with_small_indices(matrix)


def with_small_indices(matrix: Any) -> Any:
    """Int32 indices, as SciPy's own operations give them."""
    matrix.indices = matrix.indices.astype(np.int32)
    matrix.indptr = matrix.indptr.astype(np.int32)
    matrix.sort_indices()
    return matrix


def matrices(quick: bool) -> Iterator[tuple[str, Any]]:
    """Name and matrix."""
    if quick:
        yield "uniform 1e4 x 10", uniform(10_000, 10)
        yield "power law 2^13", power_law(13, 1 << 17)
    else:
        yield "uniform 1e5 x 10", uniform(100_000, 10)
        yield "uniform 1e6 x 5", uniform(1_000_000, 5)
        yield "power law 2^17", power_law(17, 1 << 20)
    yield "bcsstk13", with_small_indices(load("bcsstk13"))
    yield "pushpull", with_small_indices(load("pushpull"))
