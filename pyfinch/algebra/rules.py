"""Dtype rules and constants that rows of the operator table share."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from pyfinch.algebra.dtypes import DT, check_dtype, result_type
from pyfinch.algebra.operator import Rule

__all__ = [
    "all_ones",
    "chooser",
    "compare",
    "component",
    "condition",
    "highest",
    "infinity",
    "keep",
    "logical",
    "lowest",
    "minus_infinity",
    "one",
    "truth",
    "ufunc",
    "zero",
]

_BOOL: Final = np.dtype(np.bool_)
_FLOAT32: Final = np.dtype(np.float32)


def ufunc(function: np.ufunc) -> Rule:
    """The loop that NumPy itself would choose."""

    def rule(dtypes: tuple[DT, ...]) -> tuple[tuple[DT, ...], DT]:
        *operands, result = (_widen(d) for d in function.resolve_dtypes((*dtypes, None)))
        return tuple(operands), result

    return rule


def _widen(dtype: DT) -> DT:
    return check_dtype(_FLOAT32 if dtype == np.float16 else dtype)


def keep(dtypes: tuple[DT, ...]) -> tuple[tuple[DT, ...], DT]:
    """Arguments and result of the arguments' common dtype."""
    result = result_type(*dtypes)
    return (result,) * len(dtypes), result


chooser = keep


def compare(dtypes: tuple[DT, ...]) -> tuple[tuple[DT, ...], DT]:
    """Common dtype to bool; mixed 64-bit integers stay as they are, to be compared exactly."""
    common = result_type(*dtypes)
    if common.kind == "f" and all(d.kind in "iu" for d in dtypes):
        return dtypes, _BOOL
    return (common,) * len(dtypes), _BOOL


def logical(dtypes: tuple[DT, ...]) -> tuple[tuple[DT, ...], DT]:
    """Anything to bool."""
    return dtypes, _BOOL


def truth(dtypes: tuple[DT, ...]) -> tuple[tuple[DT, ...], DT]:
    """A test of one number."""
    return dtypes, _BOOL


def condition(dtypes: tuple[DT, ...]) -> tuple[tuple[DT, ...], DT]:
    """A bool, then two of the result's dtype."""
    result = result_type(*dtypes[1:])
    return (_BOOL, result, result), result


def component(dtypes: tuple[DT, ...]) -> tuple[tuple[DT, ...], DT]:
    """A number to the dtype of its real and imaginary parts."""
    (dtype,) = dtypes
    return dtypes, check_dtype(np.empty(0, dtype).real.dtype)


def zero(dtype: DT) -> Any:
    """The number 0."""
    return 0


def one(dtype: DT) -> Any:
    """The number 1."""
    return 1


def infinity(dtype: DT) -> Any:
    """+inf of a real floating dtype."""
    return np.inf if dtype.kind == "f" else None


def minus_infinity(dtype: DT) -> Any:
    """-inf of a real floating dtype."""
    return -np.inf if dtype.kind == "f" else None


def highest(dtype: DT) -> Any:
    """The greatest value of a real dtype."""
    match dtype.kind:
        case "b":
            return True
        case "i" | "u":
            return np.iinfo(dtype).max
        case "f":
            return np.inf
    return None


def lowest(dtype: DT) -> Any:
    """The least value of a real dtype."""
    match dtype.kind:
        case "b":
            return False
        case "i" | "u":
            return np.iinfo(dtype).min
        case "f":
            return -np.inf
    return None


def all_ones(dtype: DT) -> Any:
    """The integer whose bits are all set."""
    match dtype.kind:
        case "b":
            return True
        case "i":
            return -1
        case "u":
            return np.iinfo(dtype).max
    return None
