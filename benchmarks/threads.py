"""How much faster two threads are than one, beside kernels by hand on a pool of threads, MKL and GraphBLAS."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any

import numpy as np
import scipy.sparse as sp

import pyfinch as pf
from benchmarks import hand, peers
from benchmarks.agreement import agree
from benchmarks.hand import exact
from benchmarks.harness import Bench, Failure, Figure, Record, reason
from benchmarks.inputs import power_law, tensor_entries, uniform
from benchmarks.sddmm import sampled
from benchmarks.tensors import fibers

Call = Callable[[], Any]
Part = Callable[[int, int], Any]
THREADS = 2
POOL = ThreadPoolExecutor(THREADS)


def pieces(ptr: Any, threads: int) -> list[tuple[int, int]]:
    """Ranges of rows of equal work, ``ptr`` being its running total; several for each thread."""
    if threads == 1:
        return [(0, len(ptr) - 1)]
    count = 4 * threads
    cuts = np.searchsorted(ptr, np.linspace(0, ptr[-1], count + 1)[1:-1])
    bounds = [0, *map(int, cuts), len(ptr) - 1]
    return [(first, last) for first, last in pairwise(bounds) if first < last]


def spread(part: Part, ranges: list[tuple[int, int]]) -> None:
    """Run a kernel on ranges of rows, on the pool if there are several."""
    if len(ranges) == 1:
        part(*ranges[0])
    else:
        list(POOL.map(lambda bounds: part(*bounds), ranges))


def spmv_by_hand(a: Any, x: Any, threads: int) -> Call:
    """y = A x."""
    ranges = pieces(a.indptr, threads)

    def call() -> Any:
        y = np.empty(a.shape[0])
        spread(lambda first, last: hand.spmv(a.indptr, a.indices, a.data, x, y, first, last), ranges)
        return y

    return call


def spmm_by_hand(a: Any, x: Any, threads: int) -> Call:
    """Y = A X."""
    ranges = pieces(a.indptr, threads)

    def call() -> Any:
        y = np.empty((a.shape[0], x.shape[1]))
        spread(lambda first, last: hand.spmm(a.indptr, a.indices, a.data, x, y, first, last), ranges)
        return y

    return call


def sddmm_by_hand(s: Any, x: Any, y: Any, threads: int) -> Call:
    """S * (X Yᵀ)."""
    ranges = pieces(s.indptr, threads)

    def call() -> Any:
        out = np.empty(s.nnz)
        spread(lambda first, last: hand.sddmm(s.indptr, s.indices, s.data, x, y, out, first, last), ranges)
        return sp.csr_array((out, s.indices, s.indptr), shape=s.shape)

    return call


def spgemm_by_hand(a: Any, b: Any, threads: int) -> Call:
    """A B: rows are counted, then filled."""
    products = np.concatenate(([0], np.cumsum(np.diff(b.indptr)[a.indices], dtype=np.int64)))
    ranges = pieces(products[a.indptr], threads)
    rows, columns = a.shape[0], b.shape[1]
    pattern = (a.indptr, a.indices, b.indptr, b.indices, columns)
    arrays = (a.indptr, a.indices, a.data, b.indptr, b.indices, b.data)

    def call() -> Any:
        counts = np.empty(rows, np.int64)
        spread(lambda first, last: hand.spgemm_count(*pattern, counts, first, last), ranges)
        ptr = np.zeros(rows + 1, np.int32)
        np.cumsum(counts, out=ptr[1:])
        idx, val = np.empty(ptr[-1], np.int32), np.empty(ptr[-1])
        spread(lambda first, last: hand.spgemm_fill(*arrays, ptr, idx, val, columns, first, last), ranges)
        return ptr, idx, val

    return call


def mttkrp_by_hand(t: Any, y: Any, z: Any, threads: int) -> Call:
    """A[i,r] = Σ T[i,j,k] Y[j,r] Z[k,r]."""
    ranges = pieces(t.ptrs[1][t.ptrs[0]], threads)

    def call() -> Any:
        out = np.empty((t.shape[0], y.shape[1]))
        spread(lambda first, last: hand.mttkrp(*t.parts(), y, z, out, first, last), ranges)
        return out

    return call


def with_threads(count: int, call: Call) -> Call:
    """A call that first says how many threads pyfinch may use."""

    def counted() -> Any:
        pf.set_num_threads(count)
        return call()

    return counted


def by_peer(count: int, call: Call) -> Call:
    """The same for the peers."""

    def counted() -> Any:
        peers.set_threads(count)
        return call()

    return counted


def speed_up(bench: Bench, name: str, ours: Call, by_hand: Callable[[int], Call], others: dict[str, Any]) -> Record:
    """Speed-up of two threads over one; wanted is 1.8, or nearly that of the kernel by hand."""
    try:
        one, two = with_threads(1, ours)(), with_threads(2, ours)()
        if not agree(one, two, 1e-9):
            return Failure("threads", name, "WRONG: two threads give another result than one")
        del one, two
        calls = {f"pyfinch {n}": with_threads(n, ours) for n in (1, THREADS)}
        calls |= {f"hand {n}": by_hand(n) for n in (1, THREADS)}
        calls |= {f"{peer} {n}": by_peer(n, call) for peer, call in others.items() if call for n in (1, THREADS)}
        for call in calls.values():
            call()
        found = bench.rounds(calls)
    except Exception as error:
        return Failure("threads", name, f"failed: {reason(error)}")
    gains = {
        peer: found[f"{peer} 1"].median / found[f"{peer} {THREADS}"].median
        for peer in ("pyfinch", "hand", *[peer for peer, call in others.items() if call])
    }
    ours_gain = gains.pop("pyfinch")
    note = ", ".join(f"{peer} {gain:.2f}" for peer, gain in gains.items())
    times = ", ".join(f"{n}: {1e3 * found[f'pyfinch {n}'].median:.2f} ms" for n in (1, THREADS))
    limit = round(min(1.8, 0.95 * gains["hand"]), 2)
    return Figure("threads", name, ours_gain, "× as fast", limit, at_least=True, note=f"{note}; {times}")


def of_matrix(bench: Bench, kind: str, a: Any) -> Iterator[Record]:
    """SpMV, SpMM, SDDMM, addition."""
    rng = np.random.default_rng(1)
    x, wide = rng.random(a.shape[1]), rng.random((a.shape[1], 64))
    fa, fx, fw = map(pf.asarray, (a, x, wide))
    dot, gb = peers.mkl(), peers.graphblas()
    ga, gx = (gb.io.from_scipy_sparse(a), gb.Vector.from_dense(x)) if gb else (None, None)
    others = {"mkl": dot and (lambda: dot.dot_product_mkl(a, x)), "graphblas": gb and (lambda: ga.mxv(gx).new())}
    yield speed_up(bench, f"SpMV, {kind}", lambda: fa @ fx, lambda n: spmv_by_hand(a, x, n), others)
    others = {"mkl": dot and (lambda: dot.dot_product_mkl(a, wide))}
    yield speed_up(bench, f"SpMM 64, {kind}", lambda: fa @ fw, lambda n: spmm_by_hand(a, wide, n), others)
    yield speed_up(
        bench, f"SDDMM 64, {kind}", lambda: sampled(fa, fw, fw), lambda n: sddmm_by_hand(a, wide, wide, n), {}
    )


def of_product(bench: Bench, kind: str, a: Any) -> Record:
    """SpGEMM."""
    fa, dot, gb = pf.asarray(a), peers.mkl(), peers.graphblas()
    ga = gb and gb.io.from_scipy_sparse(a)
    others = {
        "mkl": dot and (lambda: dot.dot_product_mkl(a, a, reorder_output=True)),
        "graphblas": gb and (lambda: ga.mxm(ga).new()),
    }
    return speed_up(bench, f"SpGEMM, {kind}", lambda: fa @ fa, lambda n: spgemm_by_hand(a, a, n), others)


def of_tensor(bench: Bench, kind: str, skewed: bool) -> Record:
    """MTTKRP."""
    size, count = (500, 500_000) if bench.quick else (1_000, 1_000_000)
    t = fibers((size,) * 3, *tensor_entries((size,) * 3, count, skewed=skewed))
    rng = np.random.default_rng(1)
    y, z = rng.random((size, 32)), rng.random((size, 32))
    f, fy, fz = t.tensor(), pf.asarray(y), pf.asarray(z)
    return speed_up(
        bench,
        f"MTTKRP 32, {kind}",
        lambda: pf.einsum("ijk,jr,kr->ir", f, fy, fz),
        lambda n: mttkrp_by_hand(t, y, z, n),
        {},
    )


@exact
def arithmetic(first: int, last: int) -> float:
    """Work that touches no memory."""
    total = 0.0
    for k in range(first, last):
        total = total * 0.999 + np.sqrt(k + 1.0)
    return total


def machine(bench: Bench) -> Figure:
    """What two threads gain at best while nothing else runs; less tells that the figures below mean little."""
    steps = 2_000_000
    halves = [(0, steps // 2), (steps // 2, steps)]
    found = bench.rounds({"one": lambda: arithmetic(0, steps), "two": lambda: spread(arithmetic, halves)})
    gain = found["one"].median / found["two"].median
    return Figure("threads", "arithmetic by hand: what the machine gives now", gain, "× as fast")


def run(bench: Bench) -> Iterator[Record]:
    """Measure, and go back to one thread."""
    if (os.cpu_count() or 1) < THREADS:
        print("threads is skipped: there is one core", flush=True)
        return
    before = pf.set_num_threads(1)
    yield machine(bench)
    try:
        yield from of_matrix(bench, "uniform", uniform(100_000 if bench.quick else 200_000, 10))
        yield from of_matrix(bench, "power law", power_law(*((16, 1 << 20) if bench.quick else (17, 1 << 21))))
        yield of_product(bench, "uniform", uniform(10_000 if bench.quick else 100_000, 10))
        yield of_product(bench, "power law", power_law(*((12, 1 << 15) if bench.quick else (13, 1 << 16))))
        yield of_tensor(bench, "uniform", False)
        yield of_tensor(bench, "power law", True)
    finally:
        pf.set_num_threads(before)
        peers.set_threads(1)
