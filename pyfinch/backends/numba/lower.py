"""Lowering of loop programs to Python by looplets: statements, loops and what happens at a visited coordinate.

Each access of a loop's body is asked for the looplet of its fiber along the loop's index. Lookups are read at
whatever coordinate is visited; steppers decide which coordinates are visited (`merge`). No operator and no
combination of formats has a case of its own: what a loop may skip follows from the body's support (`simplify`).
"""

from __future__ import annotations

import numpy as np

from pyfinch.algebra.errors import ScheduleError
from pyfinch.backends.numba import assemble
from pyfinch.backends.numba.emitter import Emitter
from pyfinch.backends.numba.merge import Frame, Merge
from pyfinch.backends.numba.scalars import Scalars
from pyfinch.backends.numba.scope import Scope, Target, Written
from pyfinch.formats.format import FType
from pyfinch.formats.levels import Level
from pyfinch.looplets import Fiber, Lookup, Stepper
from pyfinch.loops.nodes import (
    Access,
    Assign,
    Block,
    Declare,
    Define,
    Freeze,
    Index,
    Literal,
    Loop,
    LoopNode,
    Sieve,
    Value,
    Variable,
    accesses,
)
from pyfinch.loops.simplify import (
    Context,
    dtype_of,
    fill_of,
    is_nothing,
    repeated,
    simplify,
    simplify_call,
    substitute,
    support,
)

__all__ = ["Lowerer"]


class Lowerer:
    """Lowers the statements of one kernel."""

    def __init__(self, written: dict[Variable, Written], extents: dict[Index, str]) -> None:
        self.out = Emitter()
        self.scalars = Scalars(self.out)
        self.written = written
        self.extents = extents
        self.context = Context({var: w.init for var, w in written.items()})
        self.types: dict[str, FType] = {}
        self.constants: dict[LoopNode, str] = {}
        self.outer: Loop | None = None  # the loop that a kernel's range is of
        self.resume: str | None = None  # the outermost coordinate at hand: where an interrupted kernel goes on
        self.merge = Merge(self)

    # -------------------------------------------------------------------------------------------- reading

    def root(self, access: Access) -> Fiber:
        """The fiber of a whole tensor."""
        var = access.tensor
        assert isinstance(var.type, FType)
        self.types[var.name] = var.type
        dims = tuple(
            self.extents[idx] if isinstance(idx, Index) else f"{var.name}_dim{slot}"
            for slot, idx in enumerate(access.idxs)
        )
        return Fiber(var.name, dims, 0, 0, "0")

    def level(self, fiber: Fiber) -> Level:
        """The descriptor of the level that a fiber is at."""
        return self.types[fiber.tensor].levels[fiber.level]

    def settle(self, body: LoopNode, scope: Scope) -> None:
        """Follow accesses whose next coordinate is bound already, and load those that have got to their value."""
        for access in accesses(body):
            while (index := scope.next_index(access)) is not None and (
                isinstance(index, Literal) or index in scope.known
            ):
                fiber = scope.reads[access]
                at = str(int(index.value)) if isinstance(index, Literal) else scope.known[index]
                scope.reads[access] = self.level(fiber).find(fiber, at, self.out)
            fiber_now = scope.reads.get(access)
            if fiber_now is not None and fiber_now.slot == len(access.idxs) and access not in scope.known:
                scope.known[access] = self.load(access, fiber_now)

    def load(self, access: Access, fiber: Fiber) -> str:
        """The name of the value at a fully bound access."""
        text = self.level(fiber).load(fiber)
        if fiber.present is not None:
            if fiber.readable:
                text = self.out.let(f"{access.tensor.name}_v", text)
            text = f"{text} if {fiber.present} else {self.scalars.text(self.fill(access.tensor), dict(self.constants))}"
        return self.out.let(f"{access.tensor.name}_v", text)

    def fill(self, tensor: Variable) -> LoopNode:
        """What an unstored element reads as: for a workspace, what it was declared with."""
        return self.written[tensor].init if tensor in self.written else fill_of(tensor)

    def init(self, written: Written) -> str:
        """The text of a written tensor's initial value."""
        return self.scalars.text(written.init, dict(self.constants))

    # ----------------------------------------------------------------------------------------- statements

    def statement(self, node: LoopNode, scope: Scope) -> None:
        """Lower any statement."""
        match node:
            case Assign(lhs, op, rhs):
                self.assign(scope.writes[lhs], op, rhs, scope)
            case Loop(index, _, body) if node is self.outer:
                self.loop(index, "lo", "hi", body, scope, outermost=True)
            case Loop(index, _, body):
                self.loop(index, "0", self.extents[index], body, scope)
            case Block(bodies):
                for body in bodies:
                    self.statement(body, scope)
                for body in bodies:
                    if isinstance(body, Declare):
                        assemble.drop(self, self.written[body.tensor])
            case Sieve(cond, body):
                self.settle(cond, scope)
                with self.out.block(f"if {self.scalars.text(cond, scope.known)}:"):
                    inner = scope.inner()
                    inner.writes = {a: target.moved(full=False) for a, target in scope.writes.items()}
                    self.statement(body, inner)
            case Define(lhs, rhs, body):
                self.settle(rhs, scope)
                inner = scope.inner()
                inner.known[lhs] = self.out.let(lhs.name, self.scalars.text(rhs, inner.known))
                self.statement(body, inner)
            case Declare(tensor, _):
                assemble.declare(self, self.written[tensor], scope)
            case Freeze(tensor):
                assemble.freeze(self, self.written[tensor], scope)
            case _:
                raise ScheduleError(f"not a statement: {node!r}")

    def assign(self, target: Target, op, rhs: LoopNode, scope: Scope) -> None:  # type: ignore[no-untyped-def]
        """Accumulate into the register that holds the element."""
        if target.cell is None:
            raise ScheduleError(f"{target.access!r} is written where its element is not at hand")
        dtype = dtype_of(target.access)
        value = self.scalars.text(rhs, scope.known)
        kind = dtype_of(rhs)
        wide = assemble.cell_dtype(op, dtype)
        if op.name in ("overwrite", "initwrite"):
            self.out.line(f"{target.cell} = {self.scalars.cast(value, kind, wide)}")
            return
        if not value.isidentifier():
            value = self.out.let("t", value)
        self.out.line(f"{target.cell} = {self.scalars.apply(op, [(target.cell, wide), (value, kind)], wide)}")

    # ---------------------------------------------------------------------------------------------- loops

    def loop(
        self,
        index: Index,
        start: str,
        stop: str,
        body: LoopNode,
        scope: Scope,
        *,
        outermost: bool = False,
        reserved: bool = False,
    ) -> None:
        """Lower ``for index = start:stop-1`` over a body; ``reserved`` says that room for its entries is there."""
        body = simplify(body, self.context)
        if is_nothing(body):
            return
        scope = scope.inner()
        self.settle(body, scope)
        if not assemble.written_by(index, body, scope) and not outermost:
            # nothing is indexed by this loop: a constant number of equal steps
            free = all(scope.next_index(access) is not index for access in accesses(body))
            if free and self.repeatable(body, index):
                self.repeat(body, index, f"{stop} - {start}", scope)
                return
        self.enter(index, scope)
        looplets: dict[Fiber, Lookup | Stepper] = {}
        groups: dict[Fiber, list[Access]] = {}
        for access in accesses(body):
            if scope.next_index(access) is index:
                fiber = scope.reads[access]
                if fiber not in groups:
                    looplets[fiber] = assemble.unfurl(self, fiber)
                groups.setdefault(fiber, []).append(access)
        self.merge.run(Frame(index, start, stop, body, scope, looplets, groups, outermost, reserved))

    def enter(self, index: Index, scope: Scope) -> None:
        """Entering a loop that does not index a target: its element will be visited more than once."""
        for access, target in scope.writes.items():
            if not target.at_leaf and index not in access.idxs:
                scope.writes[access] = target.moved(fresh=False)

    def repeatable(self, body: LoopNode, index: Index) -> bool:
        """Whether `repeat` finds a statement."""
        return repeated(self.counted(body), index, Value("", np.dtype(np.int64)), self.context) is not None

    def counted(self, body: LoopNode) -> LoopNode:
        """A nest of loops whose extents are named, so that `repeated` may do without the loops."""
        nest: list[Index] = []
        while isinstance(body, Loop):
            nest.append(body.index)
            body = body.body
        for index in reversed(nest):
            body = Loop(index, Value(self.extents[index], np.dtype(np.int64)), body)
        return body

    def repeat(self, body: LoopNode, index: Index, count: str, scope: Scope) -> None:
        """Lower one statement equal to ``count`` times the body, if the count is not 0."""
        name = self.out.fresh("count")
        self.out.line(f"{name} = {count}")
        once = repeated(self.counted(body), index, Value(name, np.dtype(np.int64)), self.context)
        assert once is not None
        counts = [name]
        while isinstance(body, Loop):
            counts.append(self.extents[body.index])
            body = body.body
        with self.out.block(f"if {' and '.join(f'{count} > 0' for count in counts)}:"):
            inner = scope.inner()
            self.settle(once, inner)
            self.statement(once, inner)

    def gap(self, body: LoopNode, fibers: list[Fiber], groups: dict[Fiber, list[Access]]) -> LoopNode:
        """What the body does where none of the fibers has an entry."""
        fills: dict[LoopNode, LoopNode] = {a: self.fill(a.tensor) for fiber in fibers for a in groups[fiber]}
        return substitute(body, fills, self.context)

    def support(self, body: LoopNode, fibers: list[Fiber], groups: dict[Fiber, list[Access]]):  # type: ignore[no-untyped-def]
        """When the body does something, as a formula over fibers."""
        keys: dict[LoopNode, object] = {a: fiber for fiber in fibers for a in groups[fiber]}
        return support(body, keys, self.context)

    # --------------------------------------------------------------------------------- a visited coordinate

    def visit(
        self,
        index: Index,
        coord: str,
        body: LoopNode,
        scope: Scope,
        children: dict[Fiber, Fiber],
        groups: dict[Fiber, list[Access]],
        looplets: dict[Fiber, Lookup | Stepper],
        covered: bool,
    ) -> None:
        """Lower the body at one coordinate; ``children`` are the fibers that steppers stand at."""
        inner = scope.inner()
        inner.known[index] = coord
        for fiber, child in children.items():
            for access in groups[fiber]:
                inner.reads[access] = child
        for fiber, looplet in looplets.items():
            if isinstance(looplet, Lookup):
                live = [access for access in groups[fiber] if access in set(accesses(body))]
                if live:
                    child = looplet.body(coord)
                    for access in live:
                        inner.reads[access] = child
        self.settle(body, inner)
        targets = assemble.written_by(index, body, inner)
        for target in targets:
            assemble.open_slot(self, target, coord, covered, inner)
        opened = {target: inner.writes[target.access] for target in targets}
        leaf = next((target for target in targets if opened[target].at_leaf), None)
        if leaf is None:
            self.statement(body, inner)
        else:
            assemble.write_leaf(self, leaf, opened[leaf], body, inner)
        for target in targets:
            assemble.close_slot(self, target, opened[target])

    def first_value(self, target: Target, op, rhs: LoopNode) -> LoopNode:  # type: ignore[no-untyped-def]
        """What a fresh element becomes by its one assignment."""
        if op.name in ("overwrite", "initwrite"):
            return rhs
        return simplify_call(op, (target.written.init, rhs), dtype_of(target.access))
