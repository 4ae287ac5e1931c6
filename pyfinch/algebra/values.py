"""Scalars compared by dtype and bits.

Python equality will not do as a key: ``1 == True == 1.0``, ``0.0 == -0.0`` and ``nan != nan``.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pyfinch.algebra.dtypes import check_dtype, constructor
from pyfinch.algebra.errors import DTypeError

__all__ = ["as_scalar", "is_special", "literal", "same_value", "value_key"]


def as_scalar(value: Any, dtype: Any = None) -> Any:
    """The NumPy scalar of a value, of `dtype` if one is given.

    Raises
    ------
    DTypeError
        If the value is no scalar of a supported dtype, or `dtype` cannot hold it at all
        (2.5 for an integer, 300 for an int8, 1j for a float).

    Examples
    --------
    >>> as_scalar(1, "float32")
    np.float32(1.0)
    """
    if isinstance(value, int) and dtype is not None and np.dtype(dtype).kind in "iu":
        info = np.iinfo(np.dtype(dtype))
        if not info.min <= value <= info.max:
            raise DTypeError(f"{value} does not fit {np.dtype(dtype)}")
    try:
        given = np.asarray(value)
    except (ValueError, TypeError, OverflowError) as error:
        raise DTypeError(f"{value!r} is not a scalar: {error}") from None
    if given.ndim:
        raise DTypeError(f"expected a scalar, got an array of shape {given.shape}")
    own = check_dtype(given.dtype, f"the dtype of {value!r}")
    wanted = own if dtype is None else check_dtype(dtype)
    if own == wanted:
        return given.astype(wanted)[()]
    with np.errstate(all="ignore"):
        if own.kind == "c" and wanted.kind != "c":
            if given.imag != 0:
                raise DTypeError(f"{value!r} does not fit {wanted}")
            given = given.real
        cast = given.astype(wanted)[()]
        # Rounding to a narrower float is fine; losing a fraction or wrapping is not.
        if wanted.kind in "iub" and not (np.isfinite(given) and bool(cast == given)):
            raise DTypeError(f"{value!r} does not fit {wanted}")
    return cast


def value_key(value: Any) -> tuple[str, bytes]:
    """A hashable key of a scalar's dtype and bits; every nan of one dtype has one key.

    Examples
    --------
    >>> value_key(np.float64(0.0)) == value_key(np.float64(-0.0))
    False
    >>> value_key(np.float64("nan")) == value_key(-np.float64("nan"))
    True
    """
    scalar = np.asarray(value)
    if scalar.dtype.kind in "fc":
        scalar = scalar.copy()
        if scalar.dtype.kind == "c":
            # Each part on its own: (nan, 1) and (nan, 2) are different values.
            for part in (scalar.real, scalar.imag):
                part[np.isnan(part)] = np.nan
        elif np.isnan(scalar):
            scalar[()] = np.nan
    return scalar.dtype.str, scalar.tobytes()


def same_value(a: Any, b: Any) -> bool:
    """Whether two scalars have one dtype and one bit pattern (any nan is any nan)."""
    return value_key(a) == value_key(b)


def is_special(value: Any) -> bool:
    """Whether a value has algebra attached: 0, 1, True, False, the infinities, nan.

    Negative zero counts as 0 by value; it keeps its own bits, so it is its own static fill.
    """
    scalar = np.asarray(value)
    if scalar.dtype.kind == "c":
        return bool(scalar.imag == 0 and is_special(scalar.real)) or bool(np.isnan(scalar))
    return bool(scalar == 0 or scalar == 1 or (scalar.dtype.kind == "f" and not np.isfinite(scalar)))


def literal(value: Any) -> str:
    """Python source that makes this very NumPy scalar, for plain Python and Numba.

    Examples
    --------
    >>> literal(np.float32(-np.inf)), literal(np.bool_(True)), literal(np.int8(3))
    ('np.float32(-np.inf)', 'np.bool_(True)', 'np.int8(3)')
    """
    scalar = np.asarray(value)
    make = constructor(scalar.dtype)
    if scalar.dtype.kind == "c":
        return f"{make}(complex({_float_text(float(scalar.real))}, {_float_text(float(scalar.imag))}))"
    if scalar.dtype.kind == "f":
        return f"{make}({_float_text(float(scalar))})"
    return f"{make}({scalar.item()!r})"


def _float_text(value: float) -> str:
    if value != value:
        return "np.nan"
    if value in (float("inf"), float("-inf")):
        return "np.inf" if value > 0 else "-np.inf"
    return repr(value)
