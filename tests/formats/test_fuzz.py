"""Random buffers thrown at `from_buffers`: what is accepted reads right, the rest raises, nothing crashes."""

from __future__ import annotations

import numpy as np
import pytest

from pyfinch.algebra.errors import PyFinchError
from pyfinch.formats.format import format
from pyfinch.formats.levels import Dense, Pattern, SparseByteMap
from pyfinch.formats.tensor import Tensor

FORMATS = [
    format(text)
    for text in (
        "csr",
        "csc",
        "dcsr",
        "coo",
        "sparse_vector",
        "vector",
        "sparse_list(dense(element()))",
        "dense(sparse_coo[2](element()))",
        "dense(sparse_bytemap(element()))",
        "sparse_bytemap(sparse_list(pattern()))",
        "sparse_list(sparse_bytemap(element())) mode_order=(1, 0)",
        "dense(sparse_list(pattern()))",
        "element()",
    )
]
DTYPES = ["i4", "i8", "i4", "i8", "u1", "u8", ">i4", "f8", "?"]


def fibers(rng, npos, dims, valid):
    """ptr and coordinate arrays, right or nearly so."""
    size = int(np.prod(dims))
    counts = rng.integers(0, min(size, 3) + 1, npos)
    ptr = np.concatenate([[0], np.cumsum(counts)])
    flat = [np.sort(rng.choice(size, c, replace=False)) for c in counts]
    places = np.concatenate([*flat, np.zeros(0, int)]).astype(int)
    idxs = list(np.unravel_index(places, dims)) if size else [places] * len(dims)
    return ptr, idxs, np.repeat(np.arange(npos), counts)


def candidate(rng, fmt, dims):
    """Buffers that are valid before they are spoilt."""
    npos, slot, buffers = 1, 0, []
    for level in fmt.levels[:-1]:
        own = dims[slot : slot + level.modes]
        slot += level.modes
        if isinstance(level, Dense):
            buffers.append([])
            npos *= own[0]
            continue
        ptr, idxs, parent = fibers(rng, npos, own, True)
        made = [ptr, *idxs]
        if isinstance(level, SparseByteMap):
            table = np.zeros(npos * own[0], bool)
            table[parent * own[0] + idxs[0]] = True
            made.append(table)
            npos *= own[0]
        else:
            npos = len(idxs[0])
        dtype = rng.choice(["i4", "i8"])
        buffers.append([b if b.dtype == bool else b.astype(dtype) for b in made])
    buffers.append([] if isinstance(fmt.leaf, Pattern) else [rng.integers(1, 9, npos).astype("f8")])
    return buffers


def spoil(rng, buffers, shape):
    """Change something at random; it may stay valid."""
    places = [(i, j) for i, level in enumerate(buffers) for j in range(len(level))]
    if not places:
        return shape
    i, j = places[rng.integers(len(places))]
    array = buffers[i][j].copy()
    match rng.integers(8):
        case 0 if len(array):
            array[rng.integers(len(array))] = rng.integers(-2, 7) if array.dtype != bool else rng.random() < 0.5
        case 1:
            array = array[: rng.integers(len(array) + 1)]
        case 2:
            array = np.append(array, array[-1:] if len(array) else [0])
        case 3:
            array = array[::-1]
        case 4:
            array = array.astype(rng.choice(DTYPES))
        case 5:
            array = rng.integers(-(2**31), 2**31, len(array)).astype("i8")
        case 6:
            array = rng.permutation(array)
        case 7 if shape:
            mode = rng.integers(len(shape))
            shape = (*shape[:mode], int(rng.integers(0, 6)), *shape[mode + 1 :])
    buffers[i][j] = array
    return shape


def naive(fmt, shape, buffers):
    """The dense value by walking the tree entry by entry."""
    dims = [shape[mode] for mode in fmt.mode_order]
    pattern = isinstance(fmt.leaf, Pattern)
    dense = np.zeros(shape, bool if pattern else np.asarray(buffers[-1][0]).dtype)

    def walk(number, pos, coords):
        level = fmt.levels[number]
        if not level.modes:
            index = [0] * len(shape)
            for slot, mode in enumerate(fmt.mode_order):
                index[mode] = coords[slot]
            dense[tuple(index)] = True if pattern else buffers[-1][0][pos]
        elif isinstance(level, Dense):
            dim = dims[len(coords)]
            for k in range(dim):
                walk(number + 1, pos * dim + k, [*coords, k])
        else:
            ptr, *idxs = buffers[number]
            for p in range(int(ptr[pos]), int(ptr[pos + 1])):
                here = [int(idx[p]) for idx in idxs[: level.modes]]
                child = pos * dims[len(coords)] + here[0] if isinstance(level, SparseByteMap) else p
                walk(number + 1, child, [*coords, *here])

    walk(0, 0, [])
    return dense


@pytest.mark.parametrize("seed", range(4))
def test_random_buffers_are_read_right_or_refused(seed):
    rng = np.random.default_rng(seed)
    accepted = refused = 0
    for case in range(3000):
        fmt = FORMATS[case % len(FORMATS)]
        shape = tuple(int(n) for n in rng.integers(0, 5, fmt.ndim))
        buffers = candidate(rng, fmt, tuple(shape[mode] for mode in fmt.mode_order))
        for _ in range(rng.integers(0, 3)):
            shape = spoil(rng, buffers, shape)
        try:
            tensor = Tensor.from_buffers(fmt, shape, buffers)
        except PyFinchError:
            refused += 1
            continue
        accepted += 1
        want = naive(fmt, shape, buffers)
        assert np.array_equal(tensor.todense(), want)
        if case % 7 == 0 and tensor.ndim == 2:
            assert np.array_equal(tensor.to_format("dcsc").todense(), want)
    assert accepted > 500 and refused > 500


def test_bytes_of_rubbish_are_refused_or_harmless():
    rng = np.random.default_rng(0)
    for _ in range(2000):
        fmt = FORMATS[rng.integers(len(FORMATS))]
        buffers = [
            [np.frombuffer(rng.bytes(8 * rng.integers(0, 5)), rng.choice(DTYPES)) for _ in level.buffer_names]
            for level in fmt.levels
        ]
        try:
            tensor = Tensor.from_buffers(fmt, tuple(rng.integers(0, 4, fmt.ndim)), buffers)
        except PyFinchError:
            continue
        tensor.todense()
