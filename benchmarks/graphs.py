"""Steps of graph algorithms: triangles, k-truss, breadth-first search, shortest paths, PageRank, label propagation."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp

import pyfinch as pf
from benchmarks import graphs_by_hand as by_hand
from benchmarks import peers
from benchmarks.harness import Bench, Row, at_most
from benchmarks.inputs import canonical, graphs

HAND = (at_most(1.05, "hand"),)


@pf.fuse
def closed_triples(a: Any) -> Any:
    """Six times the number of triangles."""
    return pf.sum((a @ a) * a)


@pf.fuse
def supported(a: Any, least: float) -> Any:
    """The edges in at least so many triangles: a step of the k-truss."""
    return a * ((a @ a) * a >= least)


@pf.fuse
def shorter(a: Any, d: Any) -> Any:
    """Distances after relaxing every edge once: a step of Bellman and Ford."""
    return pf.minimum(d, pf.einop("D[j] min= A[i,j] + d[i]", A=a, d=d))


@pf.fuse
def ranked(links: Any, rank: Any, damping: float, rest: float) -> Any:
    """A step of PageRank."""
    return damping * (links @ rank) + rest


def triangles(bench: Bench, name: str, a: Any) -> Iterator[Row]:
    """Masked products of the adjacency matrix with itself."""
    fa, gb = pf.asarray(a), peers.graphblas()
    ga = gb and gb.io.from_scipy_sparse(a)
    rows, csr = a.shape[0], (a.indptr, a.indices)

    def masked_by_graphblas() -> Any:
        c = gb.Matrix(float, rows, rows)
        c(ga.S) << ga.mxm(ga, gb.semiring.plus_pair)
        return c

    calls = {
        "pyfinch": lambda: closed_triples(fa),
        "hand": lambda: by_hand.closed_triples(*csr, rows),
        "scipy": lambda: (a @ a).multiply(a).sum(),
        "graphblas": gb and (lambda: masked_by_graphblas().reduce_scalar().new()),
    }
    yield bench.measure("triangles", name, calls, wanted=HAND)

    def truss_by_scipy() -> Any:
        kept = (a @ a).multiply(a) >= 2.0
        return a.multiply(kept)

    calls = {
        "pyfinch": lambda: supported(fa, 2.0),
        "hand": lambda: by_hand.supported(*csr, rows, 2),
        "scipy": truss_by_scipy,
        "graphblas": gb and (lambda: masked_by_graphblas().select(">=", 2.0).new().apply(gb.unary.one).new()),
    }
    views = {"hand": lambda parts: sp.csr_array((np.ones(len(parts[1])), parts[1], parts[0]), shape=a.shape)}
    yield bench.measure("k-truss step", name, calls, wanted=HAND, views=views)


def search(bench: Bench, name: str, a: Any) -> Row:
    """What a sparse frontier reaches that was not visited."""
    n, rng = a.shape[0], np.random.default_rng(1)
    frontier = np.sort(rng.choice(n, n // 50, replace=False))
    f, visited = np.zeros(n, bool), rng.random(n) < 0.3
    f[frontier] = True
    edges = a.astype(bool)
    fa, ff, fv = pf.asarray(edges), pf.asarray(f, format="sparse_vector"), pf.asarray(visited)
    gb, transposed = peers.graphblas(), a.T.tocsr()
    if gb:
        ga = gb.io.from_scipy_sparse(edges)
        gf, gv = (gb.Vector.from_coo(np.flatnonzero(x), True, size=n) for x in (f, visited))

    def by_graphblas() -> Any:
        reached = gb.Vector(bool, n)
        reached(~gv.S) << gf.vxm(ga, gb.semiring.any_pair)
        return reached

    calls = {
        "pyfinch": lambda: pf.einop("R[j] or= A[i,j] and f[i] and not v[j]", A=fa, f=ff, v=fv),
        "hand": lambda: by_hand.reached(a.indptr, a.indices, frontier, visited),
        "scipy": lambda: (transposed @ f > 0) & ~visited,
        "graphblas": gb and by_graphblas,
    }
    return bench.measure("BFS step", name, calls, wanted=HAND)


def paths(bench: Bench, name: str, a: Any) -> Row:
    """Relaxing every edge once; what is not stored is infinitely far."""
    n, rng = a.shape[0], np.random.default_rng(1)
    weighted = canonical(a.copy())
    weighted.data = rng.random(a.nnz)
    d = np.where(rng.random(n) < 0.5, rng.random(n), np.inf)
    fa, fd = pf.asarray(weighted.tocoo(), fill_value=np.inf).to_format("csr"), pf.asarray(d)
    gb = peers.graphblas()
    if gb:
        ga, gd = gb.io.from_scipy_sparse(weighted), gb.Vector.from_dense(d, missing_value=np.inf)

    def by_graphblas() -> Any:
        result = gd.dup()
        result(gb.binary.min) << gd.vxm(ga, gb.semiring.min_plus)
        return result

    transposed = weighted.T.tocsr()

    def by_numpy() -> Any:
        return np.minimum(d, _least(transposed, transposed.data + d[transposed.indices]))

    calls = {
        "pyfinch": lambda: shorter(fa, fd),
        "hand": lambda: by_hand.shorter(weighted.indptr, weighted.indices, weighted.data, d),
        "scipy": by_numpy,
        "graphblas": gb and by_graphblas,
    }
    views = {"graphblas": lambda v: v.to_dense(fill_value=np.inf)}
    return bench.measure("SSSP step", name, calls, wanted=HAND, views=views)


def _least(csr: Any, values: Any) -> Any:
    """The least value of each row; infinity in empty rows."""
    result = np.full(csr.shape[0], np.inf)
    filled = np.flatnonzero(np.diff(csr.indptr))
    if filled.size:
        result[filled] = np.minimum.reduceat(values, csr.indptr[filled])
    return result


def ranks(bench: Bench, name: str, a: Any) -> Row:
    """A step of PageRank."""
    n = a.shape[0]
    links = canonical(a / np.maximum(a.sum(axis=0), 1.0))
    rank = np.full(n, 1.0 / n)
    fl, fr, gb = pf.asarray(links), pf.asarray(rank), peers.graphblas()
    if gb:
        gl, gr = gb.io.from_scipy_sparse(links), gb.Vector.from_dense(rank)
    calls = {
        "pyfinch": lambda: ranked(fl, fr, 0.85, 0.15 / n),
        "hand": lambda: by_hand.ranked(links.indptr, links.indices, links.data, rank, 0.85, 0.15 / n),
        "scipy": lambda: 0.85 * (links @ rank) + 0.15 / n,
        "graphblas": gb and (lambda: _affine(gb, gl.mxv(gr).new(), 0.85, 0.15 / n)),
    }
    return bench.measure("PageRank step", name, calls, wanted=HAND)


def _affine(gb: Any, v: Any, scale: float, shift: float) -> Any:
    """``scale * v + shift``, also where v has no entry."""
    scaled = v.apply(gb.binary.times, right=scale).new()
    result = gb.Vector(float, v.size)
    result << shift
    result(gb.binary.plus) << scaled
    return result


def labels(bench: Bench, name: str, a: Any) -> Row:
    """The least label among a vertex's neighbours."""
    n = a.shape[0]
    label = np.random.default_rng(1).permutation(n).astype(float)
    fa, fl, gb = pf.asarray(a.astype(bool)), pf.asarray(label), peers.graphblas()
    if gb:
        ga, gl = gb.io.from_scipy_sparse(a), gb.Vector.from_dense(label)
    calls = {
        "pyfinch": lambda: pf.einop("L[i] min= where(A[i,j], l[j], inf)", A=fa, l=fl),
        "hand": lambda: by_hand.least_label(a.indptr, a.indices, label),
        "scipy": lambda: _least(a, label[a.indices]),
        "graphblas": gb and (lambda: ga.mxv(gl, gb.semiring.min_second).new()),
    }
    views = {"graphblas": lambda v: v.to_dense(fill_value=np.inf)}
    return bench.measure("label propagation", name, calls, wanted=HAND, views=views)


def run(bench: Bench) -> Iterator[Row]:
    """Measure."""
    for name, a in graphs(bench.quick):
        yield from triangles(bench, name, a)
        for part in (search, paths, ranks, labels):
            yield part(bench, name, a)
