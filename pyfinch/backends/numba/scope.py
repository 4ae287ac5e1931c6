"""What is bound at a place in the program while it is lowered."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from pyfinch.algebra.errors import ScheduleError
from pyfinch.formats.format import FType
from pyfinch.looplets import Fiber
from pyfinch.loops.nodes import Access, Index, Literal, LoopNode, Variable

__all__ = ["Scope", "Target", "Written"]


@dataclass(slots=True, eq=False)
class Written:
    """A tensor that the kernel writes: the result, or a workspace.

    ``counters`` maps each appending level to the variable that counts its entries; ``counted`` are the levels whose
    pointers hold counts until the runtime sums them, ``direct`` those whose pointers are written as they are;
    ``table`` says that a workspace is read at coordinates that others decide, again and again, and so is not sorted;
    ``prefilled`` says that values must hold the initial value before the kernel runs; ``mirror`` is the operand whose
    structure the result shares.
    """

    var: Variable
    init: LoopNode
    accesses: tuple[Access, ...]
    workspace: bool = False
    table: bool = False
    counters: dict[int, str] = field(default_factory=dict)
    counted: set[int] = field(default_factory=set)
    direct: set[int] = field(default_factory=set)
    prefilled: bool = False
    mirror: Variable | None = None
    drop_fill: bool = False

    @property
    def ftype(self) -> FType:
        """The tensor's type."""
        assert isinstance(self.var.type, FType)
        return self.var.type


@dataclass(frozen=True, slots=True)
class Target:
    """Where a write has got to: a place in the written tensor's tree.

    ``fresh`` says that nothing wrote the element before; ``full`` that every position of the dense levels above is
    visited; ``marks`` are the statements that enter its places into byte maps above; ``cell`` is the register that
    accumulates the element, if any.
    """

    written: Written
    access: Access
    level: int = 0
    slot: int = 0
    inner_slot: int = 0
    pos: str = "0"
    coords: tuple[str, ...] = ()
    fresh: bool = True
    full: bool = True
    appended: bool = False
    marks: tuple[str, ...] = ()
    cell: str | None = None

    @property
    def at_leaf(self) -> bool:
        """Whether all coordinates are bound."""
        return self.slot == len(self.access.idxs)

    def buffer(self, name: str) -> str:
        """The name of a buffer of the level at hand."""
        return f"{self.written.var.name}_{name}{self.level}"

    @property
    def values(self) -> str:
        """The name of the array of values."""
        return f"{self.written.var.name}_val"

    def moved(self, **changes: object) -> Target:
        """The target with some parts changed."""
        return replace(self, **changes)  # type: ignore[arg-type]


@dataclass(slots=True)
class Scope:
    """Names bound so far: coordinates, scalars, the fibers that accesses have got to, the targets of writes."""

    known: dict[LoopNode, str]
    reads: dict[Access, Fiber]
    writes: dict[Access, Target]

    def inner(self) -> Scope:
        """A scope nested in this one: what is bound there is not seen here."""
        return Scope(dict(self.known), dict(self.reads), dict(self.writes))

    def next_index(self, access: Access) -> LoopNode | None:
        """The index expression that an access waits for, or None when all are bound or it is not readable."""
        fiber = self.reads.get(access)
        if fiber is None or fiber.slot == len(access.idxs):
            return None
        index = access.idxs[fiber.slot]
        if not isinstance(index, (Index, Literal)):
            raise ScheduleError(f"the numba backend cannot lower the index expression {index!r} of {access!r}")
        return index
