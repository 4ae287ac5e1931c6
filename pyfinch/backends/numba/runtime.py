"""Functions that generated kernels call. Plain Python here; compiled by Numba when a compiled kernel needs them."""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["counting_order", "holds_other", "lower_bound", "sort_touched"]

# Numba specialises each function to the dtypes that it meets.
Array = Any


def lower_bound(indices: Array, start: int, stop: int, coordinate: int) -> Any:
    """The first entry in ``start:stop`` whose index is at least ``coordinate`` (bisection)."""
    low: Any = np.int64(start)
    high: Any = np.int64(stop)
    while low < high:
        middle = (low + high) >> 1
        if indices[middle] < coordinate:
            low = middle + 1
        else:
            high = middle
    return low


def holds_other(values: Array, start: int, stop: int, fill: Any) -> bool:
    """Whether any of ``values[start:stop]`` differs from the fill (a nan does not differ from a nan)."""
    for p in range(start, stop):
        if values[p] != fill and (values[p] == values[p] or fill == fill):
            return True
    return False


def sort_touched(touched: Array, count: int, table: Array) -> None:
    """Sort the first ``count`` of the touched coordinates, each of which is marked in the table.

    Insertion sort for a few, a scan of the table when it is dense enough, quicksort otherwise (C. A. R. Hoare,
    "Quicksort", 1962, median of three, with an explicit stack).
    """
    if count * 10 > table.shape[0] and count > 8:
        n = 0
        for mark in range(table.shape[0]):
            touched[n] = mark
            n += table[mark]
            if n == count:
                break
        return
    stack = np.empty(128, np.int64)
    depth = 0
    low: Any = np.int64(0)
    high: Any = np.int64(count - 1)
    while True:
        while high - low > 16:
            middle = (low + high) >> 1
            if touched[middle] < touched[low]:
                swap = touched[middle]
                touched[middle] = touched[low]
                touched[low] = swap
            if touched[high] < touched[low]:
                swap = touched[high]
                touched[high] = touched[low]
                touched[low] = swap
            if touched[high] < touched[middle]:
                swap = touched[high]
                touched[high] = touched[middle]
                touched[middle] = swap
            pivot = touched[middle]
            i: Any = low
            j: Any = high
            while i <= j:
                while touched[i] < pivot:
                    i += 1
                while pivot < touched[j]:
                    j -= 1
                if i <= j:
                    swap = touched[i]
                    touched[i] = touched[j]
                    touched[j] = swap
                    i += 1
                    j -= 1
            # the larger part waits, so that the stack stays logarithmic
            if j - low < high - i:
                stack[depth] = i
                stack[depth + 1] = high
                high = j
            else:
                stack[depth] = low
                stack[depth + 1] = j
                low = i
            depth += 2
        for k in range(low + 1, high + 1):
            moving = touched[k]
            m = k - 1
            while m >= low and touched[m] > moving:
                touched[m + 1] = touched[m]
                m -= 1
            touched[m + 1] = moving
        if depth == 0:
            return
        depth -= 2
        low = stack[depth]
        high = stack[depth + 1]


def counting_order(keys: Array, starts: Array, order: Array) -> None:
    """The stable order of the keys, all below ``len(starts) - 1`` (H. H. Seward's counting sort, 1954)."""
    for k in range(keys.shape[0]):
        starts[keys[k] + 1] += 1
    for j in range(1, starts.shape[0]):
        starts[j] += starts[j - 1]
    for k in range(keys.shape[0]):
        key = keys[k]
        order[starts[key]] = k
        starts[key] += 1
