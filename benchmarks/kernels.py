"""Plain kernels on matrices, one thread: SpMV, elementwise product and sum, SpGEMM, SpMM, SDDMM."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numba
import numpy as np

import pyfinch as pf
from benchmarks.harness import Row, measure
from benchmarks.inputs import matrices, uniform

__all__ = ["elementwise", "sddmm", "spgemm", "spmm", "spmv"]

_FAST = {"reassoc", "contract"}
u = np.uintp


@numba.njit(nogil=True, error_model="numpy", fastmath=_FAST)
def _spmv_by_hand(ptr: Any, idx: Any, val: Any, x: Any, y: Any) -> None:
    for i in range(len(ptr) - 1):
        total = 0.0
        for p in range(ptr[u(i)], ptr[u(i + 1)]):
            total += val[u(p)] * x[u(idx[u(p)])]
        y[u(i)] = total


@numba.njit(nogil=True, error_model="numpy", fastmath=_FAST)
def _sddmm_by_hand(ptr: Any, idx: Any, val: Any, x: Any, y: Any, out: Any) -> None:
    for i in range(len(ptr) - 1):
        for p in range(ptr[u(i)], ptr[u(i + 1)]):
            j = idx[u(p)]
            dot = 0.0
            for k in range(x.shape[1]):
                dot += x[u(i), u(k)] * y[u(j), u(k)]
            out[u(p)] = val[u(p)] * dot


def _shuffled(matrix: Any) -> Any:
    """Another matrix of the same kind: its columns in random order."""
    columns = np.random.default_rng(2).permutation(matrix.shape[1]).astype(matrix.indices.dtype)
    other = matrix.copy()
    other.indices = columns[other.indices]
    other.has_sorted_indices = False
    other.sort_indices()
    return other


def _rolled(matrix: Any) -> Any:
    """The same, its columns moved by one: the two patterns alternate, which a branch predictor likes."""
    other = matrix.copy()
    other.indices = ((other.indices + 1) % matrix.shape[1]).astype(matrix.indices.dtype)
    other.has_sorted_indices = False
    other.sort_indices()
    return other


def spmv(quick: bool) -> Iterator[Row]:
    """A @ x."""
    for name, a in matrices(quick):
        x = np.random.default_rng(1).random(a.shape[1])
        fa, fx = pf.asarray(a), pf.asarray(x)

        def by_hand(a: Any = a, x: Any = x) -> Any:
            y = np.empty(a.shape[0])
            _spmv_by_hand(a.indptr, a.indices, a.data, x, y)
            return y

        calls = {"pyfinch": lambda fa=fa, fx=fx: fa @ fx, "scipy": lambda a=a, x=x: a @ x, "hand": by_hand}
        yield measure("SpMV", name, calls, rounds=15, bound="scipy 1.15")


def elementwise(quick: bool) -> Iterator[Row]:
    """A * B and A + B."""
    for name, a in matrices(quick):
        for kind, b in (
            ("columns shuffled", _shuffled(a)),
            ("equal pattern", a.copy()),
            ("columns moved by one", _rolled(a)),
        ):
            fa, fb = pf.asarray(a), pf.asarray(b)
            product = {"pyfinch": lambda fa=fa, fb=fb: fa * fb, "scipy": lambda a=a, b=b: a.multiply(b)}
            yield measure("A * B", f"{name}, {kind}", product, bound="scipy 1.0")
            total = {"pyfinch": lambda fa=fa, fb=fb: fa + fb, "scipy": lambda a=a, b=b: a + b}
            yield measure("A + B", f"{name}, {kind}", total, bound="scipy 1.0")


def spgemm(quick: bool) -> Iterator[Row]:
    """A @ B, sorted."""
    for name, a in matrices(quick):
        if a.nnz > 2_000_000:
            continue
        rows = a[: min(a.shape[0], 20_000)] if name.startswith("power") and not quick else a
        fa, fb = pf.asarray(rows), pf.asarray(a)

        def sorted_product(rows: Any = rows, a: Any = a) -> Any:
            c = rows @ a
            c.sort_indices()
            return c

        calls = {
            "pyfinch": lambda fa=fa, fb=fb: fa @ fb,
            "scipy with sort": sorted_product,
            "scipy unsorted": lambda rows=rows, a=a: rows @ a,
        }
        yield measure("SpGEMM", name, calls, rounds=5, bound="scipy with sort 2.0")


def spmm(quick: bool) -> Iterator[Row]:
    """A @ X with 32 columns."""
    for name, a in matrices(quick):
        x = np.random.default_rng(1).random((a.shape[1], 32))
        fa, fx = pf.asarray(a), pf.asarray(x)
        calls = {"pyfinch": lambda fa=fa, fx=fx: fa @ fx, "scipy": lambda a=a, x=x: a @ x}
        yield measure("SpMM 32", name, calls, bound="scipy 1.2")


@pf.fuse
def _sampled(s: Any, x: Any, y: Any) -> Any:
    return s * (x @ y.T)


def sddmm(quick: bool) -> Iterator[Row]:
    """S * (X @ Y.T), 64 wide, 20,000 rows."""
    s = uniform(2_000 if quick else 20_000, 20)
    rng = np.random.default_rng(1)
    x, y = rng.random((s.shape[0], 64)), rng.random((s.shape[1], 64))
    fs, fx, fy = pf.asarray(s), pf.asarray(x), pf.asarray(y)
    yield measure(
        "SDDMM 64",
        f"{s.shape[0]} rows, 20 a row",
        {"pyfinch": lambda: _sampled(fs, fx, fy), "scipy": lambda: s.multiply(x @ y.T)},
        rounds=3,
        bound="scipy 0.05",
    )
    out = np.empty(s.nnz)

    def by_hand() -> Any:
        _sddmm_by_hand(s.indptr, s.indices, s.data, x, y, out)
        return out

    ours = {"pyfinch": lambda: _sampled(fs, fx, fy), "hand": by_hand}
    yield measure("SDDMM 64", "against a gather-and-dot by hand", ours, bound="hand 1.2", check=False)
