"""What an expert writes by hand: how it is compiled, and the kernels that several workloads use."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np

u = np.uintp

# For sums of floating-point numbers only: they may be reordered and contracted, as in pyfinch's own kernels.
summing = numba.njit(nogil=True, error_model="numpy", fastmath={"reassoc", "contract"})
exact = numba.njit(nogil=True, error_model="numpy")


@summing
def spmv(ptr: Any, idx: Any, val: Any, x: Any, y: Any, first: int, last: int) -> None:
    """Rows ``first … last`` of y = A x; A is csr."""
    for i in range(first, last):
        total = val.dtype.type(0)
        for p in range(ptr[u(i)], ptr[u(i) + u(1)]):
            total += val[u(p)] * x[u(idx[u(p)])]
        y[u(i)] = total


@summing
def spmm(ptr: Any, idx: Any, val: Any, x: Any, y: Any, first: int, last: int) -> None:
    """Rows ``first … last`` of Y = A X; A is csr, X and Y row-major."""
    width = x.shape[1]
    for i in range(first, last):
        row = y[u(i)]
        for j in range(width):
            row[u(j)] = 0.0
        for p in range(ptr[u(i)], ptr[u(i) + u(1)]):
            a, other = val[u(p)], x[u(idx[u(p)])]
            for j in range(width):
                row[u(j)] += a * other[u(j)]


@summing
def sddmm(ptr: Any, idx: Any, val: Any, x: Any, y: Any, out: Any, first: int, last: int) -> None:
    """Rows ``first … last`` of S * (X Yᵀ); only the values, as the pattern is that of S."""
    width = x.shape[1]
    for i in range(first, last):
        left = x[u(i)]
        for p in range(ptr[u(i)], ptr[u(i) + u(1)]):
            right = y[u(idx[u(p)])]
            dot = 0.0
            for k in range(width):
                dot += left[u(k)] * right[u(k)]
            out[u(p)] = val[u(p)] * dot


@summing
def mttkrp(ptr: Any, idx: Any, ptr2: Any, idx2: Any, val: Any, y: Any, z: Any, out: Any, first: int, last: int) -> None:
    """Rows ``first … last`` of A[i,r] = Σ T[i,j,k] Y[j,r] Z[k,r]; T is dense(sparse_list(sparse_list)).

    The loop nest that TACO makes of it (Kjolstad et al., OOPSLA 2017): the sum over k is kept in a row.
    """
    width = y.shape[1]
    inner = np.empty(width)
    for i in range(first, last):
        row = out[u(i)]
        for r in range(width):
            row[u(r)] = 0.0
        for p in range(ptr[u(i)], ptr[u(i) + u(1)]):
            for r in range(width):
                inner[u(r)] = 0.0
            for q in range(ptr2[u(p)], ptr2[u(p) + u(1)]):
                t, other = val[u(q)], z[u(idx2[u(q)])]
                for r in range(width):
                    inner[u(r)] += t * other[u(r)]
            other = y[u(idx[u(p)])]
            for r in range(width):
                row[u(r)] += inner[u(r)] * other[u(r)]


@exact
def spgemm_count(ptr: Any, idx: Any, ptr2: Any, idx2: Any, columns: int, counts: Any, first: int, last: int) -> None:
    """How many entries rows ``first … last`` of A B have (Gustavson, 1978, the symbolic pass)."""
    seen = np.full(columns, -1, np.int64)
    for i in range(first, last):
        count = 0
        for p in range(ptr[u(i)], ptr[u(i) + u(1)]):
            k = idx[u(p)]
            for q in range(ptr2[u(k)], ptr2[u(k) + u(1)]):
                j = u(idx2[u(q)])
                if seen[j] != i:
                    seen[j] = i
                    count += 1
        counts[u(i)] = count


@exact
def _sort(keys: Any) -> None:
    """By insertion where there are few."""
    if len(keys) > 48:
        keys.sort()
        return
    for k in range(1, len(keys)):
        key, place = keys[u(k)], k
        while place > 0 and keys[u(place - 1)] > key:
            keys[u(place)] = keys[u(place - 1)]
            place -= 1
        keys[u(place)] = key


@exact
def spgemm_fill(
    ptr: Any, idx: Any, val: Any, ptr2: Any, idx2: Any, val2: Any, out: Any, out_idx: Any, out_val: Any, columns: int,
    first: int, last: int,
) -> None:  # fmt: skip
    """Rows ``first … last`` of A B, sorted: accumulated in a dense row, the touched columns sorted or swept."""
    total = np.zeros(columns)
    seen = np.full(columns, -1, np.int64)
    for i in range(first, last):
        start = out[u(i)]
        end = start
        for p in range(ptr[u(i)], ptr[u(i) + u(1)]):
            k, a = idx[u(p)], val[u(p)]
            for q in range(ptr2[u(k)], ptr2[u(k) + u(1)]):
                j = u(idx2[u(q)])
                if seen[j] != i:
                    seen[j] = i
                    total[j] = a * val2[u(q)]
                    out_idx[u(end)] = idx2[u(q)]
                    end += 1
                else:
                    total[j] += a * val2[u(q)]
        if 32 * (end - start) > columns:
            end = start
            for j in range(columns):
                if seen[u(j)] == i:
                    out_idx[u(end)] = j
                    end += 1
        else:
            _sort(out_idx[start:end])
        for p in range(start, end):
            out_val[u(p)] = total[u(out_idx[u(p)])]


@exact
def spmv_transposed(ptr: Any, idx: Any, val: Any, x: Any, y: Any) -> None:
    """y += Aᵀ x; A is csr."""
    for i in range(len(x)):
        factor = x[u(i)]
        for p in range(ptr[u(i)], ptr[u(i) + u(1)]):
            y[u(idx[u(p)])] += val[u(p)] * factor


@exact
def spmv_coo(row: Any, column: Any, val: Any, x: Any, y: Any) -> None:
    """y += A x; A is coo."""
    for p in range(len(val)):
        y[u(row[u(p)])] += val[u(p)] * x[u(column[u(p)])]
