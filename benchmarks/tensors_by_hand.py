"""The products of `benchmarks.tensors` as an expert writes them: the loop nests that TACO publishes for them."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.hand import summing, u


@summing
def mttkrp4(
    ptr: Any, idx: Any, ptr2: Any, idx2: Any, ptr3: Any, idx3: Any, val: Any, x: Any, y: Any, z: Any, out: Any,
    first: int, last: int,
) -> None:  # fmt: skip
    """A[i,r] = Σ T[i,j,k,l] X[j,r] Y[k,r] Z[l,r]; partial sums are kept in a row for each level."""
    width = x.shape[1]
    middle, inner = np.empty(width), np.empty(width)
    for i in range(first, last):
        row = out[u(i)]
        for r in range(width):
            row[u(r)] = 0.0
        for p in range(ptr[u(i)], ptr[u(i) + u(1)]):
            for r in range(width):
                middle[u(r)] = 0.0
            for q in range(ptr2[u(p)], ptr2[u(p) + u(1)]):
                for r in range(width):
                    inner[u(r)] = 0.0
                for s in range(ptr3[u(q)], ptr3[u(q) + u(1)]):
                    t, other = val[u(s)], z[u(idx3[u(s)])]
                    for r in range(width):
                        inner[u(r)] += t * other[u(r)]
                other = y[u(idx2[u(q)])]
                for r in range(width):
                    middle[u(r)] += inner[u(r)] * other[u(r)]
            other = x[u(idx[u(p)])]
            for r in range(width):
                row[u(r)] += middle[u(r)] * other[u(r)]


@summing
def ttv(ptr: Any, idx: Any, val: Any, x: Any) -> Any:
    """A[i,j] = Σ T[i,j,k] x[k]; only the values, as the pattern is that of the fibers."""
    out = np.empty(len(ptr) - 1)
    for p in range(len(out)):
        total = 0.0
        for q in range(ptr[u(p)], ptr[u(p) + u(1)]):
            total += val[u(q)] * x[u(idx[u(q)])]
        out[u(p)] = total
    return out


@summing
def ttm(ptr: Any, idx: Any, val: Any, x: Any) -> Any:
    """A[i,j,r] = Σ T[i,j,k] X[k,r]; a row for each fiber."""
    width = x.shape[1]
    out = np.empty((len(ptr) - 1, width))
    for p in range(len(out)):
        row = out[u(p)]
        for r in range(width):
            row[u(r)] = 0.0
        for q in range(ptr[u(p)], ptr[u(p) + u(1)]):
            t, other = val[u(q)], x[u(idx[u(q)])]
            for r in range(width):
                row[u(r)] += t * other[u(r)]
    return out


@summing
def ttmc(ptr: Any, idx: Any, ptr2: Any, idx2: Any, val: Any, x: Any, y: Any, rows: int) -> Any:
    """A[i,r,s] = Σ T[i,j,k] X[j,r] Y[k,s]; the sum over k is kept in a row."""
    wide, narrow = x.shape[1], y.shape[1]
    out, inner = np.zeros((rows, wide, narrow)), np.empty(narrow)
    for i in range(rows):
        block = out[u(i)]
        for p in range(ptr[u(i)], ptr[u(i) + u(1)]):
            for s in range(narrow):
                inner[u(s)] = 0.0
            for q in range(ptr2[u(p)], ptr2[u(p) + u(1)]):
                t, other = val[u(q)], y[u(idx2[u(q)])]
                for s in range(narrow):
                    inner[u(s)] += t * other[u(s)]
            other = x[u(idx[u(p)])]
            for r in range(wide):
                factor = other[u(r)]
                for s in range(narrow):
                    block[u(r), u(s)] += factor * inner[u(s)]
    return out
