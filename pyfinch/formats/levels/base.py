"""What every level has in common, and the checks that several share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, Protocol

import numpy as np

from pyfinch.algebra.dtypes import DT
from pyfinch.algebra.errors import FormatError, IndexBoundsError
from pyfinch.looplets import Emitter, Fiber, Lookup, Stepper

__all__ = [
    "INDEX_DTYPES",
    "Buffer",
    "Level",
    "LevelCode",
    "bounds",
    "check_fibers",
    "check_index_dtype",
    "check_length",
]

Buffer = np.ndarray[Any, DT]
INDEX_DTYPES: Final[tuple[DT, ...]] = (np.dtype(np.int32), np.dtype(np.int64))


class Level(Protocol):
    """A level, described statically: no data, no extents.

    Attributes
    ----------
    modes : int
        How many storage slots (modes) it covers: 1, n for ``sparse_coo[n]``, 0 for a leaf.
    appends : bool
        Whether results are assembled by appending child positions one after another.
    buffer_names, buffer_dtypes : tuple
        Its arrays in order; a dtype is None where the descriptor leaves it open.
    """

    @property
    def modes(self) -> int: ...
    @property
    def appends(self) -> bool: ...
    @property
    def buffer_names(self) -> tuple[str, ...]: ...
    @property
    def buffer_dtypes(self) -> tuple[DT | None, ...]: ...

    def text(self, child: str = "") -> str:
        """The level in format text, around the text of its child."""

    def unfurl(self, fiber: Fiber, out: Emitter) -> Lookup | Stepper:
        """How a fiber of this level reads along its next index."""

    def find(self, fiber: Fiber, coordinate: str, out: Emitter) -> Fiber:
        """The fiber at a coordinate that is bound already."""

    def load(self, fiber: Fiber) -> str:
        """The value at a position of a leaf."""

    def append(self, buffer: Callable[[str], str], at: str, coords: tuple[str, ...]) -> tuple[str, ...]:
        """The statements that store the coordinates of entry ``at`` of a level that appends."""

    def validate(self, buffers: tuple[Buffer, ...], dims: tuple[int, ...], npos: int, where: str) -> int:
        """Check all that a kernel relies on and return the number of child positions.

        Raises
        ------
        FormatError, IndexBoundsError
            Naming the first offending place.
        """


class LevelCode:
    """What a level writes into kernels; each level overrides what it can do."""

    __slots__ = ()

    def unfurl(self, fiber: Fiber, out: Emitter) -> Lookup | Stepper:
        """How a fiber of this level reads along its next index."""
        raise FormatError(f"{self} has no mode to loop over")

    def find(self, fiber: Fiber, coordinate: str, out: Emitter) -> Fiber:
        """The fiber at a coordinate that is bound already."""
        raise FormatError(f"{self} has no mode to look up")

    def load(self, fiber: Fiber) -> str:
        """The value at a position of a leaf."""
        raise FormatError(f"{self} holds no values")

    def append(self, buffer: Callable[[str], str], at: str, coords: tuple[str, ...]) -> tuple[str, ...]:
        """The statements that store the coordinates of entry ``at`` of a level that appends."""
        raise FormatError(f"{self} is not assembled by appending")


def bounds(fiber: Fiber, out: Emitter) -> tuple[str, str]:
    """The names of the first entry of a fiber and of one past its last; equal if the fiber is absent."""
    ptr = fiber.buffer("ptr")
    if fiber.pos == "0":
        start, stop = f"int64({ptr}[0])", f"int64({ptr}[1])"
    else:
        start, stop = f"int64({ptr}[uintp({fiber.pos})])", f"int64({ptr}[uintp({fiber.pos} + 1)])"
    if fiber.present is not None:
        start, stop = (f"{text} if {fiber.present} else 0" for text in (start, stop))
    return out.let("p", start), out.let("p_end", stop)


def check_index_dtype(dtype: DT | None, what: str) -> None:
    """Index and pointer arrays are int32 or int64."""
    if dtype is not None and dtype not in INDEX_DTYPES:
        raise FormatError(f"{what} must be int32 or int64, got {dtype}")


def check_length(buffer: Buffer, length: int, what: str) -> None:
    """Raise FormatError unless a buffer has the length that the levels above give it."""
    if len(buffer) != length:
        raise FormatError(f"{what} must have length {length}, got {len(buffer)}")


def check_fibers(ptr: Buffer, idxs: tuple[Buffer, ...], dims: tuple[int, ...], npos: int, where: str) -> None:
    """Check ptr, and that each fiber's coordinates are in range, sorted and free of duplicates."""
    check_length(ptr, npos + 1, f"{where}: ptr")
    if ptr[0] != 0:
        raise FormatError(f"{where}: ptr[0] must be 0, got {ptr[0]}")
    falls = np.flatnonzero(ptr[1:] < ptr[:-1])
    if len(falls):
        p = int(falls[0])
        raise FormatError(f"{where}: ptr decreases: ptr[{p + 1}] = {ptr[p + 1]} < ptr[{p}] = {ptr[p]}")
    names = ("idx",) if len(idxs) == 1 else tuple(f"idx{k}" for k in range(len(idxs)))
    for name, idx, dim in zip(names, idxs, dims, strict=True):
        check_length(idx, int(ptr[-1]), f"{where}: {name} (ptr ends at {ptr[-1]})")
        outside = (idx < 0) | (idx >= dim)
        if outside.any():
            p = int(np.argmax(outside))
            raise IndexBoundsError(f"{where}: {name}[{p}] = {idx[p]} is outside a dimension of size {dim}")
    if len(idxs[0]) > 1:
        _check_order(ptr, idxs, where)


def _check_order(ptr: Buffer, idxs: tuple[Buffer, ...], where: str) -> None:
    rises = idxs[0][1:] > idxs[0][:-1]
    equal = idxs[0][1:] == idxs[0][:-1]
    for idx in idxs[1:]:
        rises |= equal & (idx[1:] > idx[:-1])
        equal &= idx[1:] == idx[:-1]
    # The first entry of a fiber has nothing to be greater than.
    starts = ptr[1:-1]
    starts = starts[(starts > 0) & (starts < len(idxs[0]))]
    rises[starts - 1] = True
    if not rises.all():
        p = int(np.argmin(rises)) + 1
        found = ", ".join(str(idx[p]) for idx in idxs)
        before = ", ".join(str(idx[p - 1]) for idx in idxs)
        fiber = int(np.searchsorted(ptr, p, side="right")) - 1
        kind = "duplicate" if equal[p - 1] else "unsorted"
        raise FormatError(
            f"{where}: {kind} coordinate ({found}) after ({before}) at entry {p}, in fiber {fiber}; "
            "pyfinch.asarray of a scipy.sparse array sorts and sums"
        )
