"""Three programs on data that ships with pyfinch: a sparse neural network, a graph, and a structural matrix."""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable
from importlib.resources import as_file, files
from typing import Any

import numpy as np
import scipy.io
import scipy.sparse as sp

import pyfinch as pf

__all__ = ["main"]

_ROUNDS = 7


def load(name: str) -> Any:
    """One of the shipped matrices as a scipy.sparse csr array of float64."""
    with as_file(files("pyfinch.demo") / "data" / f"{name}.mtx.gz") as path:
        matrix = sp.csr_array(scipy.io.mmread(path))
    matrix.sort_indices()
    return matrix.astype(np.float64)


def clock(work: Callable[[], Any]) -> float:
    """Median milliseconds of a warm call."""
    times = []
    for _ in range(_ROUNDS):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return statistics.median(times) * 1e3


def say(text: str = "") -> None:
    """Print at once."""
    print(text, flush=True)


def compile_now(what: str, work: Callable[[], Any]) -> Any:
    """Run twice, so that kernels are compiled (or loaded from disk), saying so."""
    print(f"  compiling {what} …", end="", flush=True)
    start = time.perf_counter()
    work()
    result = work()
    say(f" {time.perf_counter() - start:.2f} s")
    return result


def report(what: str, ours: float, peer: float) -> None:
    """A line of timings."""
    say(f"  {what}: pyfinch {ours:.2f} ms, SciPy {peer:.2f} ms, {peer / ours:.1f} × as fast")


def check(what: str, ours: Any, expected: Any) -> None:
    """Stop unless two results agree."""
    if not np.allclose(ours, expected, rtol=1e-9, atol=1e-12):
        say(f"  WRONG: {what} differs from SciPy's")
        sys.exit(1)
    say(f"  {what} agrees with SciPy")


def show(x: Any) -> None:
    """The fused loop programs that ran."""
    say("  the loop program that ran:")
    for line in pf.explain(x).loops.splitlines():
        say(f"    {line}")


@pf.fuse
def layer(y: Any, w: Any, bias: float) -> Any:
    """One layer of the network: a product, a bias, and the activation, fused."""
    return pf.minimum(pf.maximum(y @ w + bias, 0.0), 32.0)


def network() -> None:
    """Inference with ten layers."""
    say("1. Sparse neural network: min(max(Y @ W - 0.3, 0), 32), 1200 images, ten layers of 1024 neurons")
    images = load("images-1024_subset")
    weights = [load(f"n1024-l{k}") for k in range(1, 11)]
    y0, ws = pf.asarray(images), [pf.asarray(w) for w in weights]
    compile_now("the layer", lambda: layer(y0, ws[0], -0.3))

    def infer() -> Any:
        y = y0
        for w in ws:
            y = layer(y, w, -0.3)
        return y

    def infer_scipy() -> Any:
        y = images
        for w in weights:
            y = y @ w
            y.data = np.minimum(np.maximum(y.data - 0.3, 0), 32)
            y.eliminate_zeros()
        return y

    y = y0
    counts = [y.nnz]
    for w in ws:
        y = layer(y, w, -0.3)
        counts.append(y.nnz)
    say(f"  stored entries, layer after layer: {', '.join(map(str, counts))}")
    expected = infer_scipy()
    check("the result", y.todense(), expected.toarray())
    say(f"  {y.nnz} stored entries, SciPy has {expected.nnz}")
    report("ten layers", clock(infer), clock(infer_scipy))
    show(pf.minimum(pf.maximum(pf.lazy(y0) @ ws[0] + -0.3, 0.0), 32.0))


@pf.fuse
def closed_triples(a: Any) -> Any:
    """Six times the number of triangles."""
    return pf.sum((a @ a) * a)


@pf.fuse
def rank_step(links: Any, rank: Any, damping: float, rest: float) -> Any:
    """One step of the power iteration (Brin and Page, 1998)."""
    return damping * (links @ rank) + rest


def graph() -> None:
    """Triangles and PageRank."""
    say()
    say("2. Graph pushpull: 4000 vertices")
    adjacency = load("pushpull")
    edges = adjacency.tocoo()
    proper = edges.row != edges.col
    ends = (edges.row[proper], edges.col[proper])
    adjacency = sp.csr_array((np.ones(len(ends[0])), ends), shape=adjacency.shape)
    a = pf.asarray(adjacency)
    triangles = compile_now("the triangle count", lambda: closed_triples(a))
    say(f"  {int(float(triangles)) // 6} triangles")
    check("the triangle count", float(triangles), (adjacency @ adjacency).multiply(adjacency).sum())
    report(
        "triangles",
        clock(lambda: closed_triples(a)),
        clock(lambda: (adjacency @ adjacency).multiply(adjacency).sum()),
    )
    show(pf.sum((pf.lazy(a) @ a) * a))

    n = adjacency.shape[0]
    degree = np.maximum(adjacency.sum(axis=0), 1.0)
    links_scipy = sp.csr_array(adjacency.multiply(1.0 / degree))
    links = pf.asarray(links_scipy)
    start = np.full(n, 1.0 / n)
    compile_now("the PageRank step", lambda: rank_step(links, pf.asarray(start), 0.85, 0.15 / n))

    def pagerank() -> Any:
        rank = pf.asarray(start)
        for _ in range(30):
            rank = rank_step(links, rank, 0.85, 0.15 / n)
        return rank

    def pagerank_scipy() -> Any:
        rank = start
        for _ in range(30):
            rank = 0.85 * (links_scipy @ rank) + 0.15 / n
        return rank

    rank = pagerank().todense()
    best = np.argsort(rank)[::-1][:3]
    say(f"  highest PageRank: {', '.join(f'vertex {v} {rank[v]:.2e}' for v in best)}")
    check("PageRank", rank, pagerank_scipy())
    report("30 steps", clock(pagerank), clock(pagerank_scipy))
    show(0.85 * (pf.lazy(links) @ pf.asarray(start)) + 0.15 / n)


@pf.fuse
def sddmm(s: Any, x: Any, y: Any) -> Any:
    """A dense product sampled where ``s`` has entries."""
    return s * (x @ y.T)


def sampled_product() -> None:
    """SDDMM on a stiffness matrix."""
    say()
    say("3. SDDMM on bcsstk13: S * (X @ Y.T), X and Y 64 wide")
    stiffness = load("bcsstk13")
    rng = np.random.default_rng(0)
    x, y = rng.random((stiffness.shape[0], 64)), rng.random((stiffness.shape[1], 64))
    s, fx, fy = pf.asarray(stiffness), pf.asarray(x), pf.asarray(y)
    result = compile_now("SDDMM", lambda: sddmm(s, fx, fy))
    check("the result", result.todense(), stiffness.toarray() * (x @ y.T))
    report("SDDMM", clock(lambda: sddmm(s, fx, fy)), clock(lambda: stiffness.multiply(x @ y.T)))
    show(pf.lazy(s) * (pf.lazy(fx) @ pf.lazy(fy).T))


def main() -> int:
    """Run the demo; 0 if every result agrees with SciPy's."""
    start = time.perf_counter()
    network()
    graph()
    sampled_product()
    say()
    say(f"all results agree; {time.perf_counter() - start:.1f} s")
    return 0
