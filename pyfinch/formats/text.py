"""The parser of format text.

format  = tree [ "mode_order=(" int {"," int} [","] ")" ]
tree    = "dense(" tree ")" | LIST "(" tree ["," "ptr=" dtype] ["," "idx=" dtype] ")"
        | "element(" [fill] [","] [dtype] ")" | "pattern()"
LIST    = "sparse_list" | "sparse_bytemap" | "sparse_coo[" int "]"
"""

from __future__ import annotations

import re
from typing import Any, Final

import numpy as np

from pyfinch.algebra.dtypes import SUPPORTED_DTYPES
from pyfinch.algebra.errors import ParseError
from pyfinch.algebra.values import as_scalar
from pyfinch.formats.levels import (
    LEVELS,
    Dense,
    Element,
    Level,
    Pattern,
    SparseByteMap,
    SparseCOO,
    SparseList,
)

__all__ = ["parse"]

_DTYPES: Final = {d.name: d for d in SUPPORTED_DTYPES}


def parse(text: str) -> tuple[tuple[Level, ...], tuple[int, ...]]:
    """The levels and the mode order that a text describes.

    Raises
    ------
    ParseError
        With the place where the text leaves the grammar.
    """
    heads: list[tuple[str, int]] = []
    at = 0
    while True:
        match = re.compile(r"\s*([a-z_]+)\s*(?:\[\s*(\d+)\s*\])?\s*\(").match(text, at)
        if match is None:
            raise _error(text, at, f"expected one of {', '.join(LEVELS)}, followed by '('")
        name, number = match[1], match[2]
        if name not in LEVELS:
            raise _error(text, match.start(1), f"unknown level {name!r}; levels are {', '.join(LEVELS)}")
        if (number is not None) != (name == "sparse_coo"):
            raise _error(text, match.start(1), "write sparse_coo[n](…), and no [n] on other levels")
        at = match.end()
        if name in ("element", "pattern"):
            break
        heads.append((match[0].strip(), match.start(1)))
    end = text.find(")", at)
    # A complex fill has parentheses of its own.
    if text[at:].lstrip().startswith("(") and end >= 0:
        end = text.find(")", end + 1)
    if end < 0:
        raise _error(text, len(text), "expected ')'")
    leaf = _leaf(name, text[at:end], text, at)
    levels: list[Level] = [leaf]
    at = end + 1
    for head, _ in reversed(heads):
        end = text.find(")", at)
        if end < 0:
            raise _error(text, len(text), "expected ')'")
        levels.append(_level(head, text[at:end], text, at))
        at = end + 1
    levels.reverse()
    return tuple(levels), _mode_order(text, at, sum(level.modes for level in levels))


def _error(text: str, at: int, reason: str) -> ParseError:
    return ParseError(f"format {text!r}, column {at + 1}: {reason}")


def _leaf(name: str, inside: str, text: str, at: int) -> Level:
    inside = inside.strip()
    if name == "pattern":
        if inside:
            raise _error(text, at, "pattern() takes nothing")
        return Pattern()
    if not inside:
        return Element()
    parts = [part.strip() for part in inside.split(",")]
    dtype = _DTYPES.get(parts[-1])
    if dtype is not None and len(parts) == 1:
        return Element(None, dtype)
    if (dtype is None and len(parts) != 1) or len(parts) > 2:
        raise _error(text, at, f"element takes a fill and a dtype of {', '.join(_DTYPES)}, got {inside!r}")
    fill = _number(parts[0])
    if fill is None:
        raise _error(text, at, f"{parts[0]!r} is neither a number nor a dtype")
    return Element(as_scalar(fill, dtype), dtype)


def _number(text: str) -> Any:
    if text in ("True", "False"):
        return text == "True"
    for make in (int, float, complex):
        try:
            value = make(text.replace("_", "?"))
        except ValueError:
            continue
        # An integer beyond int64 is a uint64, as np.asarray has it.
        return value if make is not int or -(2**63) <= int(text) < 2**64 else None
    return None


def _level(head: str, inside: str, text: str, at: int) -> Level:
    name = head.split("[")[0].rstrip("(").strip()
    options: dict[str, Any] = {}
    for part in (p.strip() for p in inside.split(",")[1:]):
        key, _, value = part.partition("=")
        if key.strip() not in ("ptr", "idx") or value.strip() not in ("int32", "int64") or name == "dense":
            raise _error(text, at, f"expected ptr= or idx= with int32 or int64, got {part!r}")
        options[key.strip()] = np.dtype(value.strip())
    if inside.split(",")[0].strip():
        raise _error(text, at, f"expected ',' or ')', got {inside.strip()!r}")
    match name:
        case "dense":
            return Dense()
        case "sparse_list":
            return SparseList(**options)
        case "sparse_bytemap":
            return SparseByteMap(**options)
    number = re.search(r"\[\s*(\d+)", head)
    assert number is not None
    return SparseCOO(int(number[1]), **options)


def _mode_order(text: str, at: int, ndim: int) -> tuple[int, ...]:
    rest = text[at:].strip()
    if not rest:
        return tuple(range(ndim))
    match = re.fullmatch(r"mode_order\s*=\s*\(\s*(\d+(?:\s*,\s*\d+)*)?\s*,?\s*\)", rest)
    if match is None:
        raise _error(text, at, f"expected mode_order=(…) or the end, got {rest!r}")
    return tuple(int(part) for part in match[1].split(",")) if match[1] else ()
