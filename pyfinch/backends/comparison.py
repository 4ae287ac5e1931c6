"""When two executors' answers are the same."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

__all__ = ["ROUNDING", "differing", "first_difference", "same"]

Array = np.ndarray[Any, np.dtype[Any]]

#: Relative to the largest value of a result: elementary functions and reassociated sums may round differently.
ROUNDING: Final = {"float32": 2e-5, "complex64": 2e-5, "float64": 1e-12, "complex128": 1e-12}


def same(a: Array, b: Array) -> bool:
    """Whether two arrays of one shape and dtype are equal, floats up to `ROUNDING`; a nan equals a nan.

    Examples
    --------
    >>> same(np.array([1.0, np.nan]), np.array([1.0 + 1e-15, np.nan]))
    True
    """
    return not differing(a, b).any()


def first_difference(a: Array, b: Array) -> tuple[int, ...] | None:
    """The first place where they are not; None if there is none."""
    places = np.argwhere(differing(a, b))
    return None if not len(places) else tuple(int(i) for i in places[0])


def differing(a: Array, b: Array) -> Array:
    """Where they are not, as an array of bools."""
    if a.dtype.kind not in "fc":
        return np.asarray(a != b)
    undefined = np.isnan(a) & np.isnan(b)
    infinite = np.isinf(a) & np.isinf(b)
    if a.dtype.kind == "f":
        infinite &= a == b
    both = np.isfinite(a) & np.isfinite(b)
    scale = float(np.max(np.abs(b[both]), initial=0))
    with np.errstate(all="ignore"):
        near = both & (np.abs(a - b) <= ROUNDING[a.dtype.name] * scale)
    return np.asarray(~(undefined | infinite | near))
