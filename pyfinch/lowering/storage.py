"""The types of results and workspaces: a query's format with every dtype given."""

from __future__ import annotations

from typing import Any

import numpy as np

from pyfinch.algebra.values import is_special
from pyfinch.formats.format import Format, FType
from pyfinch.formats.levels import Dense, Element, Level, Pattern, SparseByteMap, SparseCOO, SparseList
from pyfinch.loops.nodes import Literal, LoopNode

__all__ = ["result_type", "workspace_type"]

DType = np.dtype[Any]
_WIDE: DType = np.dtype(np.int64)


def result_type(fmt: Format, dtype: DType, fill: Any, types: tuple[tuple[DType | None, ...], DType | None]) -> FType:
    """A format with index and pointer dtypes; they are the operands' where the format leaves them open.

    ``types`` holds an index dtype a slot, None where no sparse operand has the mode, and the pointers' dtype. Where
    int32 turns out too narrow at run time the plan is lowered again with int64 throughout.
    """
    indices, pointer = types
    other = pointer or _WIDE
    levels: list[Level] = []
    slot = 0
    for level in fmt.levels:
        own = [t for t in indices[slot : slot + level.modes] if t is not None]
        idx = max(own, key=lambda d: d.itemsize) if own and len(own) == level.modes else other
        slot += level.modes
        match level:
            case SparseList(ptr, given):
                levels.append(SparseList(ptr or other, given or idx))
            case SparseCOO(n, ptr, given):
                levels.append(SparseCOO(n, ptr or other, given or idx))
            case SparseByteMap(ptr, given):
                levels.append(SparseByteMap(ptr or other, given or idx))
            case Element():
                levels.append(Element(fill if fill is not None and is_special(fill) else None, dtype))
            case Pattern():
                levels.append(level)
            case _:
                levels.append(Dense())
    return FType(tuple(levels), tuple(range(slot)))


def workspace_type(dtype: DType, start: LoopNode) -> FType:
    """A byte map over one mode."""
    fill = start.value if isinstance(start, Literal) and is_special(start.value) else None
    return FType((SparseByteMap(_WIDE, np.dtype(np.int32)), Element(fill, dtype)), (0,))
