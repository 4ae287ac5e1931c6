"""The nodes of the Loop language, a model of Finch.jl's FinchNotation.

A loop program says which loops run, in which order, and what each innermost step assigns; it says nothing of how
a format is iterated. Index order is storage order, outermost first: ``A[i, k]`` binds the outermost level to ``i``.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from pyfinch.algebra.operators import Operator
from pyfinch.algebra.term import Term, postorder
from pyfinch.formats.format import FType

__all__ = [
    "Access",
    "Assign",
    "Block",
    "Call",
    "Declare",
    "Define",
    "Freeze",
    "Index",
    "Literal",
    "Loop",
    "LoopNode",
    "Sieve",
    "Thaw",
    "Value",
    "Variable",
    "Yield",
    "accesses",
    "indices",
]


class LoopNode(Term):
    """The base of the nodes of the Loop language."""

    __slots__ = ()

    def __str__(self) -> str:
        from pyfinch.loops.text import to_text

        return to_text(self)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Literal(LoopNode):
    """A number that is part of the program's structure."""

    value: Any


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Value(LoopNode):
    """A scalar known when the program runs: an extent, or a fill value that is not a special one."""

    name: str
    dtype: np.dtype[np.generic]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Index(LoopNode):
    """A loop's index variable."""

    name: str


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Variable(LoopNode):
    """A tensor (with its type), or a scalar that a ``Define`` binds (its type is then a dtype)."""

    name: str
    type: FType | np.dtype[np.generic]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Call(LoopNode):
    """An operator applied to scalars; ``dtype`` is NumPy's result dtype."""

    op: Operator
    args: tuple[LoopNode, ...]
    dtype: np.dtype[np.generic]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Access(LoopNode):
    """An element of a tensor, one index expression a storage slot, outermost first."""

    tensor: Variable
    idxs: tuple[LoopNode, ...]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Loop(LoopNode):
    """``for index = _`` when the extent is None (it follows from the accesses), else ``for index = 0:extent-1``."""

    index: Index
    extent: LoopNode | None
    body: LoopNode


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Sieve(LoopNode):
    """``if cond … end``"""

    cond: LoopNode
    body: LoopNode


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Assign(LoopNode):
    """``lhs <<op>>= rhs``; ``overwrite`` is plain assignment."""

    lhs: Access
    op: Operator
    rhs: LoopNode


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Declare(LoopNode):
    """``tensor .= init``: the tensor becomes writable, everything in it reads ``init``."""

    tensor: Variable
    init: LoopNode


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Freeze(LoopNode):
    """``@freeze(tensor)``: from here on the tensor is read."""

    tensor: Variable


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Thaw(LoopNode):
    """``@thaw(tensor)``: from here on the tensor is written again, keeping what it holds."""

    tensor: Variable


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Define(LoopNode):
    """``let lhs = rhs … end``"""

    lhs: Variable
    rhs: LoopNode
    body: LoopNode


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Block(LoopNode):
    """Statements in sequence."""

    bodies: tuple[LoopNode, ...]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Yield(LoopNode):
    """``return …``: the program's results."""

    args: tuple[LoopNode, ...]


def accesses(node: LoopNode) -> Iterator[Access]:
    """Every distinct access below ``node``, in post-order."""
    for term in postorder(node):
        if isinstance(term, Access):
            yield term


def indices(node: LoopNode) -> frozenset[Index]:
    """The indices that occur below ``node``, bound there or not."""
    return frozenset(term for term in postorder(node) if isinstance(term, Index))
