"""Whether results of different libraries are the same tensor."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp


@dataclass(frozen=True)
class Entries:
    """A sparse tensor as its elements' places in row-major order, sorted, and their values; zero elsewhere."""

    shape: tuple[int, ...]
    places: Any
    values: Any


def plain(result: Any) -> Any:
    """A library's result as a NumPy array or as entries."""
    if isinstance(result, np.ndarray | np.generic | int | float):
        return np.asarray(result)
    if sp.issparse(result):
        coo = result.tocoo()
        return entries(coo.shape, coo.coords, coo.data)
    if isinstance(result, Entries):
        return result
    module = type(result).__module__
    if module.startswith("pyfinch"):
        return _of_pyfinch(result)
    if module.startswith("sparse"):
        coo = result if hasattr(result, "coords") else result.asformat("coo")
        return entries(coo.shape, coo.coords, coo.data) if coo.ndim else np.asarray(coo.todense())
    if module.startswith("graphblas"):
        return _of_graphblas(result)
    if module.startswith("torch"):
        return result.to_dense().numpy()
    if module.startswith("finch"):
        import finch

        return np.asarray(finch.to_numpy(result))
    return np.asarray(result)


def _of_pyfinch(result: Any) -> Any:
    fill = result.fill_value
    stored = np.prod(result.shape, dtype=float)
    if not result.ndim or fill != 0 or result.nnz == stored:
        return np.asarray(result.todense())
    coords, values = result.to_coords()
    return entries(result.shape, coords, values)


def _of_graphblas(result: Any) -> Any:
    kind = type(result).__name__
    if kind == "Scalar":
        return np.asarray(result.value if result.value is not None else 0)
    *coords, values = result.to_coo()
    return entries(result.shape, coords, values)


def entries(shape: Any, coords: Any, values: Any) -> Entries:
    """Entries of coordinates in any order, without duplicates; zeros are dropped."""
    values = np.asarray(values)
    places = np.zeros(len(values), np.int64)
    for size, column in zip(shape, coords, strict=True):
        places = places * size + np.asarray(column, np.int64)
    kept = values != 0
    places, values = places[kept], values[kept]
    if np.any(places[1:] < places[:-1]):
        order = np.argsort(places, kind="stable")
        places, values = places[order], values[order]
    return Entries(tuple(shape), places, values)


def agree(ours: Any, theirs: Any, tolerance: float) -> bool:
    """Whether two results agree up to ``tolerance`` times the largest finite element."""
    ours, theirs = plain(ours), plain(theirs)
    if tuple(ours.shape) != tuple(theirs.shape):
        return False
    if isinstance(ours, np.ndarray) and isinstance(theirs, np.ndarray):
        return _close(ours, theirs, tolerance)
    ours, theirs = _entries_of(ours), _entries_of(theirs)
    if np.array_equal(ours.places, theirs.places):
        return _close(ours.values, theirs.values, tolerance)
    places = np.union1d(ours.places, theirs.places)
    return _close(_spread(ours, places), _spread(theirs, places), tolerance)


def _entries_of(result: Any) -> Entries:
    return entries(result.shape, np.nonzero(result), result[np.nonzero(result)]) if _is_array(result) else result


def _is_array(result: Any) -> bool:
    return isinstance(result, np.ndarray)


def _spread(given: Entries, places: Any) -> Any:
    values = np.zeros(len(places), given.values.dtype)
    values[np.searchsorted(places, given.places)] = given.values
    return values


def _close(ours: Any, theirs: Any, tolerance: float) -> bool:
    if ours.dtype.kind == "b" or theirs.dtype.kind == "b":
        return bool(np.array_equal(ours.astype(bool), theirs.astype(bool)))
    ours, theirs = ours.astype(float), theirs.astype(float)
    finite = np.abs(theirs[np.isfinite(theirs)])
    scale = max(float(finite.max()) if finite.size else 0.0, 1e-300)
    return bool(np.allclose(ours, theirs, rtol=tolerance, atol=tolerance * scale, equal_nan=True))
