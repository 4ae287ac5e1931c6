"""The element types that tensors may have."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from pyfinch.algebra.errors import DTypeError

__all__ = [
    "DT",
    "INTEGER_DTYPES",
    "SUPPORTED_DTYPES",
    "check_dtype",
    "constructor",
    "from_julia_name",
    "index_dtype",
    "is_supported",
    "julia_name",
    "result_type",
]

DT = np.dtype[Any]

_JULIA_NAMES: Final[dict[str, str]] = {
    "bool": "Bool",
    "int8": "Int8",
    "int16": "Int16",
    "int32": "Int32",
    "int64": "Int64",
    "uint8": "UInt8",
    "uint16": "UInt16",
    "uint32": "UInt32",
    "uint64": "UInt64",
    "float32": "Float32",
    "float64": "Float64",
    "complex64": "ComplexF32",
    "complex128": "ComplexF64",
}
SUPPORTED_DTYPES: Final[tuple[DT, ...]] = tuple(np.dtype(name) for name in _JULIA_NAMES)
INTEGER_DTYPES: Final[tuple[DT, ...]] = tuple(d for d in SUPPORTED_DTYPES if d.kind in "iu")
_BY_NAME: Final[dict[str, DT]] = {d.name: d for d in SUPPORTED_DTYPES}
_SAME: Final[dict[DT, DT]] = {d: d for d in SUPPORTED_DTYPES}
# Their instances are equal to the supported ones but for the byte order.
_DTYPE_CLASSES: Final = frozenset(type(d) for d in SUPPORTED_DTYPES)
_FROM_JULIA: Final[dict[str, DT]] = {
    **{julia: _BY_NAME[name] for name, julia in _JULIA_NAMES.items()},
    "Complex{Float32}": _BY_NAME["complex64"],
    "Complex{Float64}": _BY_NAME["complex128"],
}


def check_dtype(dtype: Any, what: str = "dtype") -> DT:
    """Return the supported dtype (native byte order) that `dtype` stands for.

    Parameters
    ----------
    dtype : dtype, scalar type or str
        Anything that ``np.dtype`` takes; the byte order is ignored.
    what : str
        How an error names the offender.

    Raises
    ------
    DTypeError
        If the dtype is not one that pyfinch computes with.

    Examples
    --------
    >>> check_dtype(">f4")
    dtype('float32')
    """
    if type(dtype) in _DTYPE_CLASSES and dtype in _SAME:
        return _SAME[dtype]
    if dtype is None:
        raise DTypeError(f"{what} is None; supported are {', '.join(_JULIA_NAMES)}")
    try:
        given = np.dtype(dtype)
    except (TypeError, ValueError) as error:
        raise DTypeError(f"{what} {dtype!r} is not a dtype: {error}") from None
    # np.longlong and np.int64 are different dtypes of one name on some platforms.
    found = _BY_NAME.get(given.name)
    if found is None or found.itemsize != given.itemsize:
        raise DTypeError(f"{what} {given} is not supported; supported are {', '.join(_JULIA_NAMES)}")
    return found


def is_supported(dtype: Any) -> bool:
    """Whether `check_dtype` would take it."""
    try:
        check_dtype(dtype)
    except DTypeError:
        return False
    return True


def result_type(*dtypes: Any) -> DT:
    """NumPy 2's promotion of whole dtypes, checked against the supported set."""
    return check_dtype(np.result_type(*dtypes))


def julia_name(dtype: Any) -> str:
    """The name that Julia has for a supported dtype.

    Examples
    --------
    >>> julia_name(np.float64), julia_name("complex64")
    ('Float64', 'ComplexF32')
    """
    return _JULIA_NAMES[check_dtype(dtype).name]


def from_julia_name(name: str) -> DT:
    """The dtype of a Julia type's name; the inverse of `julia_name`."""
    try:
        return _FROM_JULIA[name]
    except KeyError:
        raise DTypeError(f"Julia type {name!r} has no dtype here; known are {', '.join(_FROM_JULIA)}") from None


def constructor(dtype: Any) -> str:
    """Source text of the NumPy scalar constructor of a dtype, as templates use it.

    Examples
    --------
    >>> constructor("float32"), constructor(bool)
    ('np.float32', 'np.bool_')
    """
    name = check_dtype(dtype).name
    return "np.bool_" if name == "bool" else f"np.{name}"


def index_dtype(*extents: int) -> DT:
    """int32 if every extent (dimension or entry count) fits, else int64."""
    fits = max(extents, default=0) <= np.iinfo(np.int32).max
    return _BY_NAME["int32" if fits else "int64"]
