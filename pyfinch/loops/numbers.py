"""Numbers in the text of the Loop language: Julia literals that carry their dtype."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from pyfinch.algebra.dtypes import from_julia_name, julia_name
from pyfinch.algebra.errors import ParseError

__all__ = ["DIGITS", "TYPED", "number_text", "read_number"]

#: Regular expressions: a bare number without sign, and one that names its dtype.
DIGITS: Final = r"(?:\d+\.?\d*(?:[eE][+-]?\d+)?|NaN\b|Inf\b)"
TYPED: Final = rf"(?:U?Int\d+|Float\d+|ComplexF\d+|Bool)\(\s*-?{DIGITS}\s*(?:,\s*-?{DIGITS}\s*)?\)"


def number_text(value: np.generic) -> str:
    """A NumPy scalar as Julia text that has its dtype.

    Examples
    --------
    >>> [number_text(x) for x in (np.float64(1), np.float32(0.1), np.int8(-3), np.bool_(True))]
    ['1.0', 'Float32(0.1)', 'Int8(-3)', 'true']
    """
    match value.dtype.kind:
        case "b":
            return "true" if value else "false"
        case "f":
            text = _float_text(value)
        case "c":
            text = f"{_float_text(np.real(value))}, {_float_text(np.imag(value))}"
        case _:
            text = str(int(value))
    return text if value.dtype in (np.float64, np.int64) else f"{julia_name(value.dtype)}({text})"


def _float_text(value: Any) -> str:
    if value != value:
        return "NaN"
    if np.isinf(value):
        return "Inf" if value > 0 else "-Inf"
    shortest = str(value)
    # Julia reads a float64 and rounds it, which in rare cases is not the number that was meant.
    return shortest if type(value)(float(shortest)) == value else repr(float(value))


def read_number(text: str) -> np.generic:
    """The scalar of a literal, or ParseError."""
    head, bracket, rest = text.partition("(")
    if not bracket:
        if text in ("true", "false"):
            return np.bool_(text == "true")
        if text.lstrip("-").isdigit():
            whole = int(text)
            if not -(2**63) <= whole < 2**63:
                raise ParseError(f"{text} does not fit int64; write UInt64({text})")
            return np.int64(whole)
        return np.float64(text)
    dtype = from_julia_name(head)
    parts = [part.strip() for part in rest.rstrip(")").split(",")]
    made: Any = np.zeros((), dtype)
    try:
        match dtype.kind:
            case "c":
                made.real = float(parts[0])
                made.imag = float(parts[1]) if len(parts) > 1 else 0.0
            case "f":
                (number,) = parts
                made[...] = float(number)
            case _:
                (number,) = parts
                made[...] = int(number)
    except (ValueError, OverflowError) as error:
        raise ParseError(f"{text} is no literal: {error}") from None
    scalar: np.generic = made[()]
    return scalar
