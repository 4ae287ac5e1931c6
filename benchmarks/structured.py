"""Structure: run-length images, triangles, bands, blocks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.linalg
import scipy.sparse as sp
from scipy.sparse.linalg import spsolve_triangular

import pyfinch as pf
from benchmarks import hand
from benchmarks.hand import exact, summing, u
from benchmarks.harness import Bench, Row, at_most
from benchmarks.inputs import banded, canonical, uniform

HAND = (at_most(1.05, "hand"),)


def image(rows: int, seed: int) -> Any:
    """A grey image of long runs: rectangles on a background."""
    rng = np.random.default_rng(seed)
    picture = np.zeros((rows, rows))
    for _ in range(40):
        top, left, height, width = rng.integers(rows // 2, size=4)
        picture[top : top + height, left : left + width] = rng.integers(1, 255)
    return picture


def runs(picture: Any) -> tuple[Any, Any, Any]:
    """Pointers, ends of runs and values, row by row."""
    change = np.ones(picture.shape, bool)
    change[:, :-1] = picture[:, 1:] != picture[:, :-1]
    row, column = np.nonzero(change)
    ptr = np.concatenate(([0], np.cumsum(np.bincount(row, minlength=picture.shape[0]))))
    return ptr, (column + 1).astype(np.int32), picture[row, column]


@summing
def blend_sum(ptr: Any, end: Any, val: Any, ptr2: Any, end2: Any, val2: Any, alpha: float) -> float:
    """The sum of a blend of two run-length images: a merge of their runs."""
    total = 0.0
    for i in range(len(ptr) - 1):
        p, q, at = ptr[u(i)], ptr2[u(i)], 0
        while p < ptr[u(i) + u(1)]:
            stop = min(end[u(p)], end2[u(q)])
            total += (stop - at) * (alpha * val[u(p)] + (1 - alpha) * val2[u(q)])
            p += end[u(p)] == stop
            q += end2[u(q)] == stop
            at = stop
    return total


def images(bench: Bench, rows: int) -> Row:
    """The sum of a blend of two images, over runs."""
    x, y = image(rows, 0), image(rows, 1)
    a, b = runs(x), runs(y)
    made: list[Any] = []

    def ours() -> Any:
        if not made:
            made.extend(pf.asarray(z, format="dense(run_list(element(0.0, float64)))") for z in (x, y))
        return pf.compute(pf.sum(pf.lazy(made[0]) * 0.3 + pf.lazy(made[1]) * 0.7))

    calls = {"pyfinch": ours, "hand": lambda: blend_sum(*a, *b, 0.3), "scipy": lambda: np.sum(x * 0.3 + y * 0.7)}
    return bench.measure("run-length blend", f"{rows}×{rows}", calls, wanted=HAND)


@summing
def upper_product(ptr: Any, idx: Any, val: Any, x: Any) -> Any:
    """y = triu(A) x."""
    out = np.empty(len(ptr) - 1)
    for i in range(len(out)):
        total = 0.0
        for p in range(ptr[u(i)], ptr[u(i) + u(1)]):
            j = idx[u(p)]
            if j >= i:
                total += val[u(p)] * x[u(j)]
        out[u(i)] = total
    return out


@exact
def lower_solve(ptr: Any, idx: Any, val: Any, b: Any) -> Any:
    """x with L x = b; rows of L end with their diagonal."""
    x = np.empty(len(b))
    for i in range(len(b)):
        rest, last = b[u(i)], ptr[u(i) + u(1)] - 1
        for p in range(ptr[u(i)], last):
            rest -= val[u(p)] * x[u(idx[u(p)])]
        x[u(i)] = rest / val[u(last)]
    return x


def triangles(bench: Bench, name: str, a: Any) -> Iterator[Row]:
    """The upper triangle of a matrix, a product with it, and a solve with the lower one."""
    x = np.random.default_rng(1).random(a.shape[0])
    f, v = pf.asarray(a), pf.asarray(x)
    lower = canonical(sp.tril(a, k=-1) + sp.diags_array(np.full(a.shape[0], 4.0 * abs(a).sum(axis=1).max())))
    fl = pf.asarray(lower)
    yield bench.measure("triu(A)", name, {"pyfinch": lambda: pf.triu(f), "scipy": lambda: sp.triu(a, format="csr")})
    calls = {
        "pyfinch": lambda: pf.compute(pf.triu(pf.lazy(f)) @ v),
        "hand": lambda: upper_product(a.indptr, a.indices, a.data, x),
        "scipy": lambda: sp.triu(a, format="csr") @ x,
    }
    yield bench.measure("triu(A) @ x", name, calls, wanted=HAND)
    calls = {
        "pyfinch": lambda: pf.linalg.solve(fl, v),
        "hand": lambda: lower_solve(lower.indptr, lower.indices, lower.data, x),
        "scipy": lambda: spsolve_triangular(lower, x, lower=True),
    }
    yield bench.measure("triangular solve", name, calls, wanted=HAND)


@summing
def band_product(bands: Any, half_width: int, x: Any) -> Any:
    """y = A x; ``bands[i, k]`` is A[i, i + k - half_width]."""
    n, out = len(x), np.empty(len(x))
    for i in range(n):
        total = 0.0
        for k in range(max(0, half_width - i), min(2 * half_width + 1, n + half_width - i)):
            total += bands[u(i), u(k)] * x[u(i + k - half_width)]
        out[u(i)] = total
    return out


def bands(bench: Bench, rows: int, half_width: int) -> Iterator[Row]:
    """A banded matrix times a vector, stored as csr; the peers know of the band. A banded solve."""
    a = banded(rows, half_width)
    x, dia = np.random.default_rng(1).random(rows), a.todia()
    by_row = np.zeros((rows, 2 * half_width + 1))
    row, column = a.tocoo().coords
    by_row[row, column - row + half_width] = a.data
    f, v, name = pf.asarray(a), pf.asarray(x), f"{rows} rows, {2 * half_width + 1} bands"
    calls = {
        "pyfinch": lambda: f @ v,
        "hand": lambda: band_product(by_row, half_width, x),
        "scipy": lambda: dia @ x,
    }
    yield bench.measure("banded A @ x", name, calls, wanted=HAND)
    dominant = canonical(a + sp.diags_array(np.full(rows, 4.0 * half_width + 4)))
    ab = np.zeros((2 * half_width + 1, rows))
    row, column = dominant.tocoo().coords
    ab[half_width + row - column, column] = dominant.data
    fd = pf.asarray(dominant)
    calls = {
        "pyfinch": lambda: pf.linalg.solve(fd, v),
        "scipy": lambda: scipy.linalg.solve_banded((half_width, half_width), ab, x),
    }
    yield bench.measure("banded solve", name, calls, wanted=(at_most(1.05, "scipy"),))


@summing
def block_product(ptr: Any, idx: Any, val: Any, x: Any) -> Any:
    """Y[I,a] = Σ A[I,J,a,b] X[J,b]."""
    size = x.shape[1]
    out = np.empty((len(ptr) - 1, size))
    for i in range(len(out)):
        for a in range(size):
            out[u(i), u(a)] = 0.0
        for p in range(ptr[u(i)], ptr[u(i) + u(1)]):
            j = u(idx[u(p)])
            for a in range(size):
                total = 0.0
                for b in range(size):
                    total += val[u(p), u(a), u(b)] * x[j, u(b)]
                out[u(i), u(a)] += total
    return out


def blocks(bench: Bench, rows: int, size: int) -> Row:
    """A block-sparse matrix times a vector: a tensor of four modes, the last two dense."""
    pattern, rng = uniform(rows, 8), np.random.default_rng(1)
    data, x = rng.random((pattern.nnz, size, size)), rng.random((rows, size))
    bsr = sp.bsr_array((data, pattern.indices, pattern.indptr), shape=(rows * size, rows * size))
    fmt = pf.format("dense(sparse_list(dense(dense(element(0.0, float64)))))")
    buffers = [(), (pattern.indptr, pattern.indices), (), (), (data.reshape(-1),)]
    f = pf.Tensor.from_buffers(fmt, (rows, rows, size, size), buffers)
    v, flat = pf.asarray(x), x.reshape(-1)
    calls = {
        "pyfinch": lambda: pf.einsum("IJab,Jb->Ia", f, v),
        "hand": lambda: block_product(pattern.indptr, pattern.indices, data, x),
        "scipy": lambda: bsr @ flat,
    }
    views = {"scipy": lambda y: y.reshape(rows, size)}
    return bench.measure("block sparse A @ x", f"{rows} × {size}", calls, wanted=HAND, views=views)


def masked(bench: Bench, rows: int) -> Row:
    """A symmetric matrix of which the upper triangle is stored, times a vector."""
    full = uniform(rows, 8)
    upper = canonical(sp.triu(full))
    strict = canonical(sp.triu(full, k=1))
    x = np.random.default_rng(1).random(rows)
    f, s, v = pf.asarray(upper), pf.asarray(strict), pf.asarray(x)

    def by_hand() -> Any:
        y = np.empty(rows)
        hand.spmv(upper.indptr, upper.indices, upper.data, x, y, 0, rows)
        hand.spmv_transposed(strict.indptr, strict.indices, strict.data, x, y)
        return y

    calls = {
        "pyfinch": lambda: pf.compute(pf.lazy(f) @ v + pf.lazy(s).T @ v),
        "hand": by_hand,
        "scipy": lambda: upper @ x + strict.T @ x,
    }
    return bench.measure("symmetric A @ x", f"{rows} rows", calls, wanted=HAND)


def run(bench: Bench) -> Iterator[Row]:
    """Measure."""
    rows = 10_000 if bench.quick else 100_000
    yield images(bench, 500 if bench.quick else 2_000)
    yield from triangles(bench, f"uniform {rows} rows", uniform(rows, 10))
    yield from bands(bench, rows, 4)
    yield from bands(bench, rows // 5, 32)
    for size in (4, 16):
        yield blocks(bench, rows // 10, size)
    yield masked(bench, rows)
