"""What an operator gives where only some of its arguments are known."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from pyfinch.algebra.dtypes import DT
from pyfinch.algebra.operator import Operator
from pyfinch.algebra.user_operator import UserOperator
from pyfinch.algebra.values import value_key

__all__ = ["fixed_result"]


def fixed_result(op: Operator, known: Sequence[Any], dtypes: Sequence[DT]) -> Any:
    """The value that an operator gives whatever its unknown arguments are; None if they matter.

    ``known`` has a NumPy scalar for each argument that is fixed and None for the others. As everywhere in
    sparse computing, ``0 * x`` is 0 and ``0 / x`` is 0 even where x is an infinity, a nan, or a zero. Of a user's
    operator only the annihilator that it declares counts.

    Examples
    --------
    >>> from pyfinch.algebra.operators import get
    >>> float64 = np.dtype("float64")
    >>> fixed_result(get("/"), [np.float64(0), None], [float64, float64])
    np.float64(0.0)
    >>> fixed_result(get("max"), [np.float64(0), None], [float64, float64]) is None
    True
    """
    if all(value is not None for value in known):
        try:
            return op(*known)
        except Exception:
            if isinstance(op, UserOperator):  # it may not take fills: whoever computes will see its error
                return None
            raise
    if all(value is None for value in known):
        return None
    result = op.result_dtype(*dtypes)
    for value in known:
        if value is None or (value.dtype.kind == "c" and result.kind != "c"):
            continue
        if op.is_annihilator(value.astype(result)):
            return value.astype(result)
    if isinstance(op, UserOperator):
        return None
    keys = tuple([None if value is None else (value_key(value), value.dtype) for value in known])
    return _probed(op, keys, tuple(dtypes))


@lru_cache(maxsize=4096)
def _probed(op: Operator, keys: tuple[Any, ...], dtypes: tuple[DT, ...]) -> Any:
    """Whether samples of the unknown arguments all give one value: that value.

    The samples are ordinary numbers of each size and sign and the known arguments themselves, on which no operator
    of interest is constant by accident. A nan stands for an operation that is not defined there (0 / 0), and does
    not count where all else is 0, unless it may be a known argument that comes through (``where(x, nan, 2)``).
    """
    if sum(key is None for key in keys) > 3:
        return None
    known = [None if key is None else np.frombuffer(key[0][1], dtype=key[1])[0] for key in keys]
    given = [value for value in known if value is not None]
    unknown = [_samples(dtype, given) for value, dtype in zip(known, dtypes, strict=True) if value is None]
    grids = np.meshgrid(*unknown, indexing="ij", copy=False)
    axes = iter(grids)
    args = [next(axes) if value is None else value for value in known]
    try:
        values = np.asarray(op(*args))
    except (ArithmeticError, ValueError, TypeError):  # it does not take every sample
        return None
    zero = op.annihilator(values.dtype)
    if zero is not None:  # -inf * x is not fixed by -inf if x may be 0
        for grid in grids:
            values = np.where(grid == zero, zero, values)
    values = values.ravel()
    if values.dtype.kind in "fc" and any(value != value for value in given):
        return values[0] if bool(np.all(np.isnan(values))) else None
    if values.dtype.kind in "fc":
        defined = ~np.isnan(values)
        if not defined.any():
            return values[0]
        if not defined.all() and values[defined][0] != 0:
            return None
        values = values[defined]
    first = values[0]
    return first if bool(np.all(values == first)) else None


def _samples(dtype: DT, given: Sequence[Any]) -> np.ndarray[Any, Any]:
    """Numbers of a dtype, with those given that it holds."""
    with np.errstate(all="ignore"):
        own = [np.asarray(value).astype(dtype) for value in given if dtype.kind == "c" or np.isrealobj(value)]
    return np.concatenate([_ordinary(dtype), np.array(own, dtype)])


def _ordinary(dtype: DT) -> np.ndarray[Any, Any]:
    match dtype.kind:
        case "b":
            return np.array([False, True])
        case "u":
            return np.array([0, 1, 2, 7, np.iinfo(dtype).max], dtype)
        case "i":
            return np.array([0, 1, 2, -1, -3, 7, np.iinfo(dtype).max, np.iinfo(dtype).min], dtype)
        case "c":
            return np.array([0, 1, -1.5, 2.5j, 3 - 4j, 1e9, np.inf], dtype)
        case _:
            return np.array([0, 1, -1, 0.37, -2.6, 1e9, -1e9, 1e-9, np.inf, -np.inf], dtype)
