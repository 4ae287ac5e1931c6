"""The steps of `benchmarks.graphs` as an expert writes them."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.hand import exact, summing, u


@exact
def closed_triples(ptr: Any, idx: Any, n: int) -> float:
    """Paths of two edges whose ends are joined; a row's neighbours are marked, then looked up."""
    marked = np.full(n, -1, np.int64)
    total = 0
    for i in range(n):
        for p in range(ptr[u(i)], ptr[u(i) + u(1)]):
            marked[u(idx[u(p)])] = i
        for p in range(ptr[u(i)], ptr[u(i) + u(1)]):
            k = u(idx[u(p)])
            for q in range(ptr[k], ptr[k + u(1)]):
                total += marked[u(idx[u(q)])] == i
    return float(total)


@exact
def supported(ptr: Any, idx: Any, n: int, least: int) -> Any:
    """The edges in at least ``least`` triangles, as ptr and idx."""
    marked = np.full(n, -1, np.int64)
    counts = np.zeros(n, np.int64)
    out_ptr, out_idx = np.empty(n + 1, np.int32), np.empty(len(idx), np.int32)
    out_ptr[0] = end = 0
    for i in range(n):
        for p in range(ptr[u(i)], ptr[u(i) + u(1)]):
            j = u(idx[u(p)])
            marked[j] = i
            counts[j] = 0
        for p in range(ptr[u(i)], ptr[u(i) + u(1)]):
            k = u(idx[u(p)])
            for q in range(ptr[k], ptr[k + u(1)]):
                j = u(idx[u(q)])
                if marked[j] == i:
                    counts[j] += 1
        for p in range(ptr[u(i)], ptr[u(i) + u(1)]):
            if counts[u(idx[u(p)])] >= least:
                out_idx[u(end)] = idx[u(p)]
                end += 1
        out_ptr[u(i) + u(1)] = end
    return out_ptr, out_idx[:end].copy()


@exact
def reached(ptr: Any, idx: Any, frontier: Any, visited: Any) -> Any:
    """Vertices not visited that an edge joins to the frontier."""
    out = np.zeros(len(visited), np.bool_)
    for f in range(len(frontier)):
        i = u(frontier[u(f)])
        for p in range(ptr[i], ptr[i + u(1)]):
            j = u(idx[u(p)])
            out[j] |= not visited[j]
    return out


@exact
def shorter(ptr: Any, idx: Any, val: Any, d: Any) -> Any:
    """Every edge relaxed once."""
    out = d.copy()
    for i in range(len(d)):
        start = d[u(i)]
        if start == np.inf:
            continue
        for p in range(ptr[u(i)], ptr[u(i) + u(1)]):
            j = u(idx[u(p)])
            out[j] = min(out[j], start + val[u(p)])
    return out


@summing
def ranked(ptr: Any, idx: Any, val: Any, rank: Any, damping: float, rest: float) -> Any:
    """``damping * (links @ rank) + rest``."""
    out = np.empty(len(rank))
    for i in range(len(rank)):
        total = 0.0
        for p in range(ptr[u(i)], ptr[u(i) + u(1)]):
            total += val[u(p)] * rank[u(idx[u(p)])]
        out[u(i)] = damping * total + rest
    return out


@exact
def least_label(ptr: Any, idx: Any, label: Any) -> Any:
    """The least label among neighbours; infinity without."""
    out = np.empty(len(label))
    for i in range(len(label)):
        least = np.inf
        for p in range(ptr[u(i)], ptr[u(i) + u(1)]):
            least = min(least, label[u(idx[u(p)])])
        out[u(i)] = least
    return out
