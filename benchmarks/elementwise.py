"""Elementwise sums, products, comparisons and functions; of equal, alternating and unrelated patterns."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp

import pyfinch as pf
from benchmarks import peers
from benchmarks.harness import Bench, Row, at_most
from benchmarks.inputs import canonical, matrices, tensor_entries

WANTED = (at_most(0.7, "scipy"),)
MANY = 500_000  # more entries than this are not asked of pydata/sparse, which takes seconds for them


def shuffled(matrix: Any) -> Any:
    """Another matrix of the same kind: its columns in random order."""
    columns = np.random.default_rng(2).permutation(matrix.shape[1]).astype(matrix.indices.dtype)
    return _with_columns(matrix, columns[matrix.indices])


def rolled(matrix: Any) -> Any:
    """The same, its columns moved by one: entries of the two patterns alternate."""
    return _with_columns(matrix, ((matrix.indices + 1) % matrix.shape[1]).astype(matrix.indices.dtype))


def _with_columns(matrix: Any, columns: Any) -> Any:
    other = matrix.copy()
    other.indices = columns
    other.has_sorted_indices = False
    other.sort_indices()
    return other


def thinned(matrix: Any) -> Any:
    """Only one row of four has entries."""
    coo = matrix.tocoo()
    kept = coo.coords[0] % 4 == 0
    parts = (coo.data[kept], (coo.coords[0][kept], coo.coords[1][kept]))
    return canonical(sp.coo_array(parts, shape=matrix.shape))


def two(bench: Bench, name: str, a: Any, b: Any) -> Iterator[Row]:
    """A + B and A * B."""
    fa, fb = pf.asarray(a), pf.asarray(b)
    gb, sparse = peers.graphblas(), peers.pydata() if a.nnz <= MANY else None
    ga, gb_ = (gb.io.from_scipy_sparse(a), gb.io.from_scipy_sparse(b)) if gb else (None, None)
    pa, pb = (sparse.COO.from_scipy_sparse(a), sparse.COO.from_scipy_sparse(b)) if sparse else (None, None)
    calls = {
        "pyfinch": lambda: fa + fb,
        "scipy": lambda: a + b,
        "pydata": sparse and (lambda: pa + pb),
        "graphblas": gb and (lambda: ga.ewise_add(gb_, gb.binary.plus).new()),
        "finchjl": peers.on_finchjl(pf.lazy(fa) + fb),
    }
    yield bench.measure("A + B", name, calls, wanted=WANTED)
    calls = {
        "pyfinch": lambda: fa * fb,
        "scipy": lambda: a.multiply(b),
        "pydata": sparse and (lambda: pa * pb),
        "graphblas": gb and (lambda: ga.ewise_mult(gb_, gb.binary.times).new()),
        "finchjl": peers.on_finchjl(pf.lazy(fa) * fb),
    }
    yield bench.measure("A * B", name, calls, wanted=WANTED)


@pf.fuse
def _total(a: Any, b: Any, c: Any) -> Any:
    return a + b + c


def more(bench: Bench, name: str, a: Any) -> Iterator[Row]:
    """A + B + C, comparisons, a function of one tensor, and a scalar."""
    b, c = shuffled(a), rolled(a)
    fa, fb, fc = map(pf.asarray, (a, b, c))
    sparse, gb = peers.pydata() if a.nnz <= MANY else None, peers.graphblas()
    pa, pb, pc = map(sparse.COO.from_scipy_sparse, (a, b, c)) if sparse else (None,) * 3
    ga = gb and gb.io.from_scipy_sparse(a)
    calls = {
        "pyfinch": lambda: _total(fa, fb, fc),
        "scipy": lambda: a + b + c,
        "pydata": sparse and (lambda: pa + pb + pc),
    }
    yield bench.measure("A + B + C", name, calls, wanted=WANTED)
    for workload, work in {
        "A > B": lambda x, y: x > y,
        "A != B": lambda x, y: x != y,
    }.items():
        yield bench.measure(workload, name, _of_two(work, (fa, fb), (a, b), sparse and (pa, pb)), wanted=WANTED)
    half = {
        "pyfinch": lambda: fa > 1.0,
        "scipy": lambda: a > 1.0,
        "pydata": sparse and (lambda: pa > 1.0),
        "graphblas": gb and (lambda: ga.apply(gb.binary.gt, right=1.0).new()),
    }
    yield bench.measure("A > 1", name, half, wanted=WANTED)
    scaled = {
        "pyfinch": lambda: fa * 2.0,
        "scipy": lambda: a * 2.0,
        "pydata": sparse and (lambda: pa * 2.0),
        "graphblas": gb and (lambda: ga.apply(gb.binary.times, right=2.0).new()),
    }
    yield bench.measure("A * 2", name, scaled, wanted=WANTED)
    sine = {
        "pyfinch": lambda: pf.sin(fa),
        "scipy": lambda: a.sin(),
        "pydata": sparse and (lambda: np.sin(pa)),
        "graphblas": gb and (lambda: ga.apply(gb.unary.sin).new()),
    }
    yield bench.measure("sin(A)", name, sine, wanted=(at_most(1.0, "scipy"),))


def _of_two(work: Any, ours: Any, scipys: Any, pydatas: Any) -> dict[str, Any]:
    return {
        "pyfinch": lambda: work(*ours),
        "scipy": lambda: work(*scipys),
        "pydata": pydatas and (lambda: work(*pydatas)),
    }


def of_tensors(bench: Bench, shape: tuple[int, ...], count: int) -> Iterator[Row]:
    """Sum and product of vectors, and of tensors of three and four modes, as coo and, here, csf."""
    sparse = peers.pydata()
    parts = [tensor_entries(shape, count, seed=seed) for seed in (0, 1)]
    p = [sparse.COO(coords, values, shape=shape, sorted=True) for coords, values in parts] if sparse else None
    v = [sp.coo_array((values, coords), shape=shape) for coords, values in parts]
    for fmt in ("coo",) if len(shape) == 1 else ("coo", "csf"):
        a, b = (pf.asarray(x).to_format(fmt) for x in v)
        name = f"{len(shape)}-D {fmt}, {count:.0e} entries"
        calls = {"pyfinch": lambda a=a, b=b: a + b, "pydata": p and (lambda: p[0] + p[1])}
        yield bench.measure("A + B, tensors", name, calls)
        calls = {"pyfinch": lambda a=a, b=b: a * b, "pydata": p and (lambda: p[0] * p[1])}
        yield bench.measure("A * B, tensors", name, calls)


def run(bench: Bench) -> Iterator[Row]:
    """Measure."""
    for name, a in matrices(bench.quick):
        kinds = {"shuffled": shuffled, "equal pattern": lambda x: x.copy(), "moved by one": rolled}
        if a.nnz > 2_000_000 or (bench.quick and not name.startswith("uniform")):
            kinds = {"shuffled": shuffled}
        if name == "uniform 1e4×10":
            kinds["rows empty"] = thinned
        for kind, make in kinds.items():
            yield from two(bench, f"{name}, {kind}", a, make(a))
        if name in ("uniform 1e4×10", "uniform 1e5×10", "power law 2^17", "bcsstk13"):
            yield from more(bench, name, a)
    count = 30_000 if bench.quick else 1_000_000
    shapes = ((1000, 1000, 1000),) if bench.quick else ((50 * count,), (1000, 1000, 1000), (200, 200, 200, 200))
    for shape in shapes:
        yield from of_tensors(bench, shape, count)
