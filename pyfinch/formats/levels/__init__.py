"""One file a level; this is their registry."""

from __future__ import annotations

from pyfinch.formats.levels.base import INDEX_DTYPES, Buffer, Level
from pyfinch.formats.levels.dense import Dense
from pyfinch.formats.levels.leaves import Element, Pattern
from pyfinch.formats.levels.sparse_bytemap import SparseByteMap
from pyfinch.formats.levels.sparse_coo import SparseCOO
from pyfinch.formats.levels.sparse_list import SparseList

__all__ = [
    "INDEX_DTYPES",
    "LEVELS",
    "Buffer",
    "Dense",
    "Element",
    "Level",
    "Pattern",
    "SparseByteMap",
    "SparseCOO",
    "SparseList",
]

# The names of levels in format text.
LEVELS: dict[str, type] = {
    "element": Element,
    "pattern": Pattern,
    "dense": Dense,
    "sparse_list": SparseList,
    "sparse_coo": SparseCOO,
    "sparse_bytemap": SparseByteMap,
}
