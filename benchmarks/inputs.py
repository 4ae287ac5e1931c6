"""Inputs to measure on: uniform, power-law, banded, nearly dense and real matrices; uniform and power-law tensors."""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import scipy.io
import scipy.sparse as sp

from pyfinch.demo.demo import load

Matrix = Any


def data_folder() -> Path | None:
    """The folder of further data, ``PYFINCH_DATA``; None if it is not set or not there."""
    given = os.environ.get("PYFINCH_DATA")
    return Path(given) if given and Path(given).is_dir() else None


@lru_cache(maxsize=8)
def uniform(rows: int, per_row: float, seed: int = 0) -> Matrix:
    """A square csr matrix with entries at uniformly random places."""
    rng = np.random.default_rng(seed)
    count = int(rows * per_row)
    coords = rng.integers(rows, size=(2, count))
    return canonical(sp.coo_array((rng.random(count) + 0.5, (coords[0], coords[1])), shape=(rows, rows)))


@lru_cache(maxsize=8)
def power_law(scale: int, entries: int, seed: int = 0) -> Matrix:
    """R-MAT (Chakrabarti, Zhan, Faloutsos, SDM 2004) with Graph500's parameters, ``2**scale`` rows."""
    rng = np.random.default_rng(seed)
    row, column = np.zeros(entries, np.int64), np.zeros(entries, np.int64)
    for _ in range(scale):
        draw = rng.random(entries)
        row = 2 * row + (draw >= 0.76)
        column = 2 * column + (((draw >= 0.57) & (draw < 0.76)) | (draw >= 0.95))
    size = 1 << scale
    return canonical(sp.coo_array((rng.random(entries) + 0.5, (row, column)), shape=(size, size)))


@lru_cache(maxsize=4)
def banded(rows: int, half_width: int, seed: int = 0) -> Matrix:
    """A csr matrix whose entries are those up to ``half_width`` off the diagonal."""
    rng = np.random.default_rng(seed)
    offsets = range(-half_width, half_width + 1)
    bands = [rng.random(rows) + 0.5 for _ in offsets]
    return canonical(sp.dia_array((np.array(bands), list(offsets)), shape=(rows, rows)))


@lru_cache(maxsize=4)
def nearly_dense(rows: int, density: float = 0.25, seed: int = 0) -> Matrix:
    """A csr matrix of which a quarter is stored."""
    rng = np.random.default_rng(seed)
    return canonical(sp.csr_array(rng.random((rows, rows)) * (rng.random((rows, rows)) < density)))


def canonical(matrix: Matrix) -> Matrix:
    """A csr array, sorted, with int32 indices, as SciPy's own operations give them."""
    matrix = sp.csr_array(matrix.tocsr())
    matrix.sum_duplicates()
    matrix.sort_indices()
    matrix.indices = matrix.indices.astype(np.int32)
    matrix.indptr = matrix.indptr.astype(np.int32)
    return matrix


def undirected(matrix: Matrix) -> Matrix:
    """The graph of a matrix: symmetric, without loops, all weights 1."""
    both = sp.coo_array(matrix + matrix.T)
    row, column = both.coords
    kept = row != column
    ends = (row[kept], column[kept])
    return canonical(sp.coo_array((np.ones(int(kept.sum())), ends), shape=both.shape))


def matrices(quick: bool) -> Iterator[tuple[str, Matrix]]:
    """Square matrices of all kinds, by name."""
    if quick:
        yield "uniform 1e4×10", uniform(10_000, 10)
        yield "power law 2^13", power_law(13, 1 << 17)
    else:
        yield "uniform 1e4×10", uniform(10_000, 10)
        yield "uniform 1e5×10", uniform(100_000, 10)
        yield "uniform 1e6×5", uniform(1_000_000, 5)
        yield "power law 2^13", power_law(13, 1 << 17)
        yield "power law 2^17", power_law(17, 1 << 20)
        yield "banded 1e5×9", banded(100_000, 4)
        yield "nearly dense 1500", nearly_dense(1500)
    yield "bcsstk13", canonical(load("bcsstk13"))
    if not quick:
        yield "pushpull", canonical(load("pushpull"))
        yield from more_matrices()


def more_matrices() -> Iterator[tuple[str, Matrix]]:
    """Those of the data folder that are large enough to measure on."""
    folder = data_folder()
    for name in ("cryg2500", "zenios") if folder else ():
        path = folder / "matrices" / f"{name}.mtx"
        if path.exists():
            matrix = canonical(sp.csr_array(scipy.io.mmread(path)).astype(float))
            if matrix.nnz:
                yield name, matrix


def graphs(quick: bool) -> Iterator[tuple[str, Matrix]]:
    """Undirected graphs."""
    yield "uniform", undirected(uniform(*((3_000, 8) if quick else (30_000, 16))))
    yield "power law", undirected(power_law(*((11, 1 << 14) if quick else (14, 1 << 17))))
    yield "pushpull", undirected(canonical(load("pushpull")))


def tensor_entries(shape: tuple[int, ...], count: int, *, skewed: bool = False, seed: int = 0) -> tuple[Any, Any]:
    """Distinct coordinates, sorted, and values; with ``skewed`` a few slices of each mode hold most entries."""
    rng = np.random.default_rng(seed)
    draws = rng.random((len(shape), count))
    sizes = np.array(shape)[:, None]
    coords = (sizes * (draws**3 if skewed else draws)).astype(np.int64)
    places = np.unique(np.ravel_multi_index(tuple(coords), shape))
    return np.array(np.unravel_index(places, shape)), rng.random(len(places)) + 0.5


def tensors(quick: bool) -> Iterator[tuple[str, tuple[int, ...], Any, Any]]:
    """Name, shape, coordinates and values."""
    size, count = (200, 30_000) if quick else (1_000, 1_000_000)
    yield "3-D uniform", (size,) * 3, *tensor_entries((size,) * 3, count)
    yield "3-D power law", (size,) * 3, *tensor_entries((size,) * 3, count, skewed=True)
    yield from more_tensors()
    size = 40 if quick else 150
    yield "4-D uniform", (size,) * 4, *tensor_entries((size,) * 4, count)
    yield "4-D power law", (size,) * 4, *tensor_entries((size,) * 4, count, skewed=True)


def more_tensors() -> Iterator[tuple[str, tuple[int, ...], Any, Any]]:
    """The FROSTT files of the data folder: a line an entry, coordinates from 1 on, then the value."""
    folder = data_folder()
    for path in sorted((folder / "tensors").glob("*.tns*")) if folder else ():
        table = np.loadtxt(path, comments="#", ndmin=2)
        coords = table[:, :-1].T.astype(np.int64) - 1
        shape = tuple(int(size) for size in coords.max(axis=1) + 1)
        if len(shape) in (3, 4):
            yield path.name, shape, coords, table[:, -1]
