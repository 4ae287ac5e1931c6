"""Functions that generated kernels call. Plain Python here; compiled by Numba when a compiled kernel needs them."""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["counting_order", "holds_other", "lower_bound", "sort_touched", "trailing_zeros", "transpose_lists"]

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


def trailing_zeros(word: Any) -> Any:
    """The place of the lowest bit that is set."""
    return (int(word) & -int(word)).bit_length() - 1


def sort_touched(touched: Array, count: int, words: Array, summary: Array, table: Array) -> None:
    """Sort the first ``count`` of the distinct coordinates ``touched``, which are those that ``table`` marks.

    A few are sorted by insertion. A large part of all that there are is read off the table. Else they are entered into
    a bit set, one bit a coordinate, with a summary of one bit a word that holds any, and read off in order (the two
    upper levels of P. van Emde Boas, "Preserving order in a forest in less than logarithmic time", 1975). Both arrays
    are all zeros before and after.
    """
    if count <= 12:
        for k in range(1, count):
            moving = touched[k]
            m = k - 1
            while m >= 0 and touched[m] > moving:
                touched[m + 1] = touched[m]
                m -= 1
            touched[m + 1] = moving
        return
    if count * 8 > table.shape[0]:
        found = 0
        coordinate = 0
        while found < count:
            touched[found] = coordinate
            found += table[coordinate]
            coordinate += 1
        return
    one = np.uint64(1)
    low_bits = np.uint64(63)
    first: Any = np.int64(len(summary))
    last: Any = np.int64(0)
    for k in range(count):
        j = np.uint64(touched[k])
        word = j >> np.uint64(6)
        top = np.int64(word >> np.uint64(6))
        words[word] |= one << (j & low_bits)
        summary[top] |= one << (word & low_bits)
        first = min(first, top)
        last = max(last, top)
    n = 0
    for s in range(first, last + 1):
        tops = summary[s]
        summary[s] = 0
        while tops != 0:
            w = s * 64 + np.int64(trailing_zeros(tops))
            tops &= tops - one
            bits = words[w]
            words[w] = 0
            while bits != 0:
                touched[n] = w * 64 + np.int64(trailing_zeros(bits))
                n += 1
                bits &= bits - one


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


def transpose_lists(ptr: Array, idx: Array, val: Array, out_ptr: Array, out_idx: Array, out_val: Array) -> None:
    """The columns of a matrix stored by rows, each in order; ``out_ptr`` is zeros, two more than there are columns.

    F. G. Gustavson, "Two Fast Algorithms for Sparse Matrices: Multiplication and Permuted Transposition", ACM
    Transactions on Mathematical Software 4(3), 1978. ``out_ptr[:-1]`` are the pointers.
    """
    for p in range(idx.shape[0]):
        out_ptr[np.uintp(idx[np.uintp(p)] + 2)] += 1
    for j in range(2, out_ptr.shape[0]):
        out_ptr[j] += out_ptr[j - 1]
    for i in range(ptr.shape[0] - 1):
        for p in range(ptr[i], ptr[i + 1]):
            at = np.uintp(idx[np.uintp(p)] + 1)
            to = out_ptr[at]
            out_ptr[at] = to + 1
            out_idx[np.uintp(to)] = i
            out_val[np.uintp(to)] = val[np.uintp(p)]
