"""Sampled dense-dense product S * (X Yᵀ), fused: X Yᵀ is never made."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp

import pyfinch as pf
from benchmarks import hand
from benchmarks.harness import Bench, Row, at_most
from benchmarks.inputs import matrices


@pf.fuse
def sampled(s: Any, x: Any, y: Any) -> Any:
    """The product."""
    return s * (x @ y.T)


def by_hand(s: Any, x: Any, y: Any) -> Any:
    """Dot products at the entries of S by hand."""

    def call() -> Any:
        out = np.empty(s.nnz)
        hand.sddmm(s.indptr, s.indices, s.data, x, y, out, 0, s.shape[0])
        return sp.csr_array((out, s.indices, s.indptr), shape=s.shape)

    return call


def by_scipy(s: Any, x: Any, y: Any) -> Any:
    """What NumPy and SciPy allow without making X Yᵀ: gathered rows, a block at a time."""
    row, column = s.tocoo().coords

    def call() -> Any:
        out = np.empty(s.nnz)
        for start in range(0, s.nnz, 1 << 16):
            part = slice(start, start + (1 << 16))
            out[part] = np.einsum("ij,ij->i", x[row[part]], y[column[part]])
        return sp.csr_array((out * s.data, s.indices, s.indptr), shape=s.shape)

    return call


def case(bench: Bench, name: str, s: Any, width: int) -> Row:
    """One width."""
    rng = np.random.default_rng(1)
    x, y = rng.random((s.shape[0], width)), rng.random((s.shape[1], width))
    fs, fx, fy = map(pf.asarray, (s, x, y))
    calls = {
        "pyfinch": lambda: sampled(fs, fx, fy),
        "hand": by_hand(s, x, y),
        "scipy": by_scipy(s, x, y),
    }
    return bench.measure(f"SDDMM {width}", name, calls, wanted=(at_most(1.05, "hand"),))


def run(bench: Bench) -> Iterator[Row]:
    """Measure."""
    for width in (64,) if bench.quick else (32, 256):
        for name, s in matrices(bench.quick):
            if s.shape[0] * width <= 13_000_000:
                yield case(bench, name, s, width)
