"""Coiteration: which coordinates a loop visits when some of its operands are steppers.

One of five loops comes out, by the support of the body (the formula that says which operands must be present):

- no stepper: a counted loop;
- one operand required: a counted loop over its entries, the others following behind;
- several required: the pointers leapfrog, without a branch on which one is behind;
- two operands, none required, a scalar body: a merge with two tails, the one behind chosen without a branch;
- any other union: one loop by the least index with a presence bit an operand, so that code size is linear in
  the number of operands.

Where unstored entries matter (the body does something on fill) the gaps between visited coordinates are lowered too,
as loops, or by the operator's repeat law as one statement.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from pyfinch.algebra.errors import ScheduleError
from pyfinch.algebra.term import postorder
from pyfinch.backends.numba import assemble
from pyfinch.backends.numba.formulas import alone, given, text_of, without
from pyfinch.backends.numba.scope import Scope
from pyfinch.looplets import Fiber, Lookup, Stepper
from pyfinch.loops.nodes import Access, Index, Loop, LoopNode
from pyfinch.loops.simplify import Formula, is_nothing

if TYPE_CHECKING:
    from pyfinch.backends.numba.lower import Lowerer

__all__ = ["Frame", "Merge"]

#: An operand of this many times more entries than another is searched, not walked.
_FAR = 32


@dataclass(slots=True)
class _Pointer:
    """A stepper's state in the emitted code: the entry it stands at, and where its entries end."""

    fiber: Fiber
    stepper: Stepper
    at: str
    end: str

    @property
    def more(self) -> str:
        """True while there are entries left."""
        return f"{self.at} < {self.end}"

    @property
    def here(self) -> str:
        """The coordinate at hand."""
        return self.stepper.coordinate(self.at)


@dataclass(slots=True)
class Frame:
    """One loop being lowered."""

    index: Index
    start: str
    stop: str
    body: LoopNode
    scope: Scope
    looplets: dict[Fiber, Lookup | Stepper]
    groups: dict[Fiber, list[Access]]
    outermost: bool
    reserved: bool
    formula: Formula = True
    gap: LoopNode | None = None  # what happens at coordinates that are not visited, if anything
    seen: str = ""  # counts visited coordinates, where the gap is one statement
    last: str = ""  # one past the last visited coordinate, where gaps are loops
    pointers: dict[Fiber, _Pointer] = field(default_factory=dict)


class Merge:
    """Emits the loops."""

    def __init__(self, lowerer: Lowerer) -> None:
        self.lowerer = lowerer

    def run(self, frame: Frame) -> None:
        """Lower one loop."""
        steppers = [fiber for fiber, looplet in frame.looplets.items() if isinstance(looplet, Stepper)]
        fibers = [fiber for fiber in steppers if not self.table(frame, fiber)]
        tables = [fiber for fiber in steppers if self.table(frame, fiber)]
        if not steppers:
            self.counted(frame)
            return
        frame.formula = self.lowerer.support(frame.body, steppers, frame.groups)
        gap = self.lowerer.gap(frame.body, steppers, frame.groups)
        for fiber in fibers:
            frame.pointers[fiber] = self.pointer(frame, fiber)
        if not is_nothing(gap):
            frame.gap = gap
        required = [fiber for fiber in fibers if without(frame.formula, fiber) is False]
        optional = [f for f in fibers if f not in required]
        if tables and not required:
            raise ScheduleError(f"nothing decides which entries of {tables[0].tensor} are visited")
        optional += tables
        self.reserve(frame, self.bound(frame, required))
        self.before(frame, fibers)
        driver = None
        if len(required) == 1 or len(fibers) == 1:
            driver = fibers[0] if len(fibers) == 1 else required[0]
            self.single(frame, driver, optional if required else [])
        elif required:
            self.intersection(frame, required, optional)
        elif len(fibers) == 2 and frame.gap is None and self.scalar(frame, fibers):
            self.pair(frame, fibers[0], fibers[1])
        else:
            self.union(frame, fibers)
        self.after(frame, fibers)
        for fiber in fibers:
            if fiber is not driver:
                assemble.clean(self.lowerer, fiber, self.stepper(frame, fiber).stop)

    # ------------------------------------------------------------------------------------------ the pieces

    def table(self, frame: Frame, fiber: Fiber) -> str | None:
        """The table by which a fiber is followed at any coordinate, if it has one."""
        looplet = frame.looplets[fiber]
        return looplet.table if isinstance(looplet, Stepper) else None

    def pointer(self, frame: Frame, fiber: Fiber) -> _Pointer:
        """Start a stepper, within the range of coordinates of a piece of the outermost loop."""
        out = self.lowerer.out
        stepper = frame.looplets[fiber]
        assert isinstance(stepper, Stepper)
        start, end = stepper.start, stepper.stop
        if frame.outermost:
            end_of_all = out.let("p_end", end)
            start = f"lower_bound({stepper.indices}, {start}, {end_of_all}, {frame.start})"
            at = out.let("p", start)
            end = out.let("p_end", f"lower_bound({stepper.indices}, {at}, {end_of_all}, {frame.stop})")
            start = at
        name = out.fresh("p")
        out.line(f"{name} = {start}")
        return _Pointer(fiber, stepper, name, out.let("p_end", end))

    def reserve(self, frame: Frame, bound: str) -> None:
        """Make sure that there is room for what the loop appends, at most ``bound`` entries."""
        if not frame.reserved:
            assemble.reserve(self.lowerer, frame.index, frame.body, frame.scope, bound)

    def scalar(self, frame: Frame, fibers: list[Fiber]) -> bool:
        """Whether the body is a scalar step on values: small enough to be written a few times."""
        if any(isinstance(term, Loop) for term in postorder(frame.body)):
            return False
        return all(
            not self.stepper(frame, fiber).grouped and fiber.slot + 1 == len(frame.groups[fiber][0].idxs)
            for fiber in fibers
        )

    def stepper(self, frame: Frame, fiber: Fiber) -> Stepper:
        """The stepper of a fiber."""
        return frame.pointers[fiber].stepper

    def bound(self, frame: Frame, required: list[Fiber]) -> str:
        """An upper bound on the number of coordinates that are visited."""
        if frame.gap is not None:
            return f"max({frame.stop} - {frame.start}, 0)"
        sizes = {fiber: f"({p.end} - {p.at})" for fiber, p in frame.pointers.items()}
        if not required:
            return " + ".join(sizes.values())
        first, *rest = [sizes[fiber] for fiber in required]
        for size in rest:
            first = f"min({first}, {size})"
        return first

    def before(self, frame: Frame, fibers: list[Fiber]) -> None:
        """Decide how gaps are lowered, and start the counters that they need."""
        if frame.gap is None:
            return
        out = self.lowerer.out
        gap, index = frame.gap, frame.index
        if not assemble.written_by(index, gap, frame.scope) and self.lowerer.repeatable(gap, index):
            frame.seen = out.fresh("seen")
            out.line(f"{frame.seen} = 0")
            return
        frame.last = out.fresh(f"{index.name}_next")
        out.line(f"{frame.last} = {frame.start}")

    def after(self, frame: Frame, fibers: list[Fiber]) -> None:
        """Lower the gap behind the last visited coordinate, or all gaps at once."""
        if frame.gap is None:
            return
        if frame.seen:
            span = f"{frame.stop} - {frame.start} - {frame.seen}"
            self.lowerer.repeat(frame.gap, frame.index, span, frame.scope)
        else:
            self.gap_loop(frame, frame.stop)

    def gap_loop(self, frame: Frame, stop: str) -> None:
        """The unstored coordinates from the last visited one up to ``stop``.

        In the outermost loop a kernel that runs out of room goes on from any of them, as from a visited one.
        """
        assert frame.gap is not None
        self.lowerer.loop(
            frame.index, frame.last, stop, frame.gap, frame.scope, outermost=frame.outermost, reserved=True
        )

    def counted(self, frame: Frame) -> None:
        """No stepper: every coordinate of the extent."""
        out = self.lowerer.out
        self.reserve(frame, f"max({frame.stop} - {frame.start}, 0)")
        coord = out.fresh(frame.index.name)
        with out.block(f"for {coord} in range({frame.start}, {frame.stop}):"):
            self.step(frame, coord, {}, True, True)

    def step(self, frame: Frame, coord: str, children: dict[Fiber, Fiber], formula: Formula, covered: bool) -> None:
        """The body at one visited coordinate, and the gap before it."""
        lowerer, out = self.lowerer, self.lowerer.out
        if frame.last:
            self.gap_loop(frame, coord)
            out.line(f"{frame.last} = {coord} + 1")
        if frame.outermost:
            assemble.mark(lowerer, coord)
        if frame.seen:
            out.line(f"{frame.seen} += 1")
        covered = covered or frame.gap is not None
        body = frame.body
        absent = [fiber for fiber in frame.pointers if fiber not in children]
        if absent:
            body = lowerer.gap(body, absent, frame.groups)
        if formula is True:
            lowerer.visit(frame.index, coord, body, frame.scope, children, frame.groups, frame.looplets, covered)
            return
        test = text_of(formula, {fiber: child.present or "True" for fiber, child in children.items()})
        with out.block(f"if {test}:"):
            lowerer.visit(frame.index, coord, body, frame.scope, children, frame.groups, frame.looplets, False)

    def group_end(self, pointer: _Pointer, coord: str, present: str | None = None, *, jumps: str = "False") -> str:
        """One past the entries that share a coordinate with the one at hand."""
        if not pointer.stepper.grouped:
            return f"{pointer.at} + 1"
        out = self.lowerer.out
        end = out.fresh("q")
        out.line(f"{end} = {pointer.at}" if present else f"{end} = {pointer.at} + 1")
        leap = f"{end} = lower_bound({pointer.stepper.indices}, {end}, {pointer.end}, {coord} + 1)"
        if jumps == "True":
            out.line(leap)
            return end
        if jumps != "False":
            with out.block(f"if {jumps}:"):
                out.line(leap)
        test = f"{end} < {pointer.end} and {pointer.stepper.coordinate(end)} == {coord}"
        with out.block(f"while {present + ' and ' if present else ''}{test}:"):
            out.line(f"{end} += 1")
        return end

    # ------------------------------------------------------------------------------------------- the loops

    def single(self, frame: Frame, driver: Fiber, followers: list[Fiber]) -> None:
        """Every entry of one operand; the others, which may be absent, are advanced to it."""
        out = self.lowerer.out
        pointer = frame.pointers[driver]
        formula = given(frame.formula, [driver])
        if pointer.stepper.grouped:
            with out.block(f"while {pointer.more}:"):
                coord = out.let(frame.index.name, pointer.here)
                end = self.group_end(pointer, coord)
                child = pointer.stepper.body.tail(pointer.at, end, coord)
                self.follow(frame, coord, {driver: child}, followers, formula)
                out.line(f"{pointer.at} = {end}")
            return
        at = out.fresh("p")
        with out.block(f"for {at} in range({pointer.at}, {pointer.end}):"):
            coord = out.let(frame.index.name, pointer.stepper.coordinate(at))
            child = pointer.stepper.body.tail(at, f"{at} + 1", coord)
            self.follow(frame, coord, {driver: child}, followers, formula)
            assemble.consume(self.lowerer, driver, coord)

    def follow(
        self,
        frame: Frame,
        coord: str,
        children: dict[Fiber, Fiber],
        followers: list[Fiber],
        formula: Formula,
    ) -> None:
        """Advance the optional operands to a coordinate and lower the body there."""
        out = self.lowerer.out
        children = dict(children)
        for fiber in followers:
            table = self.table(frame, fiber)
            if table is not None:
                looplet = frame.looplets[fiber]
                assert isinstance(looplet, Stepper)
                present = out.let("present", f"{table}[uintp({coord})]")
                children[fiber] = _optional(looplet.body.tail("", "", coord), present, readable=True)
                continue
            pointer = frame.pointers[fiber]
            with out.block(f"while {pointer.more} and {pointer.here} < {coord}:"):
                out.line(f"{pointer.at} += 1")
            present = out.let("present", f"{pointer.more} and {pointer.here} == {coord}")
            end = self.group_end(pointer, coord, present)
            children[fiber] = _optional(pointer.stepper.body.tail(pointer.at, end, coord), present)
        self.step(frame, coord, children, formula, False)

    def intersection(self, frame: Frame, required: list[Fiber], optional: list[Fiber]) -> None:
        """Coordinates where all required operands have an entry."""
        out = self.lowerer.out
        pointers = [frame.pointers[fiber] for fiber in required]
        formula = given(frame.formula, required)
        jumps = self.jumps(frame, pointers)
        if len(pointers) == 2 and not any(p.stepper.grouped for p in pointers) and "True" not in jumps:

            def meet(coord: str) -> None:
                children = {p.fiber: p.stepper.body.tail(p.at, f"{p.at} + 1", coord) for p in pointers}
                self.follow(frame, coord, children, optional, formula)

            if not frame.outermost:
                self.two(frame, pointers[0], pointers[1], meet, None)
                return
            with out.block(f"if {' or '.join(jumps)}:"):
                self.leapfrog(frame, pointers, jumps, optional, formula)
            with out.block("else:"):
                self.two(frame, pointers[0], pointers[1], meet, None)
            return
        self.leapfrog(frame, pointers, jumps, optional, formula)

    def jumps(self, frame: Frame, pointers: list[_Pointer]) -> list[str]:
        """For each pointer whether it jumps to the coordinate that is next for the others, or goes there step by step.

        In the outermost loop that is decided when it is entered: an operand of far more entries than another jumps.
        """
        out = self.lowerer.out
        if not frame.outermost:
            return [str(self.rescanned(frame, p)) for p in pointers]
        sizes = [out.let("size", f"{p.end} - {p.at}") for p in pointers]
        least = out.let("least", _nested("min", sizes))
        return [out.let("jumps", f"{size} > {_FAR} * {least}") for size in sizes]

    def leapfrog(
        self, frame: Frame, pointers: list[_Pointer], jumps: list[str], optional: list[Fiber], formula: Formula
    ) -> None:
        """Advance the pointers that are behind until all stand at one coordinate."""
        out = self.lowerer.out
        with out.block(f"while {' and '.join(p.more for p in pointers)}:"):
            heads = [out.let(f"{frame.index.name}_{k}", p.here) for k, p in enumerate(pointers)]
            coord = out.let(frame.index.name, _nested("max", heads))
            with out.block(f"if {' and '.join(f'{head} == {coord}' for head in heads)}:"):
                ends = [self.group_end(p, coord, jumps=j) for p, j in zip(pointers, jumps, strict=True)]
                children = {
                    p.fiber: p.stepper.body.tail(p.at, end, coord) for p, end in zip(pointers, ends, strict=True)
                }
                self.follow(frame, coord, children, optional, formula)
                for p, end in zip(pointers, ends, strict=True):
                    out.line(f"{p.at} = {end}")
            with out.block("else:"):
                for head, p, jump in zip(heads, pointers, jumps, strict=True):
                    leap = f"{p.at} = lower_bound({p.stepper.indices}, {p.at}, {p.end}, {coord})"
                    step = f"{p.at} += {head} < {coord}"
                    if jump == "False":
                        out.line(step)
                        continue
                    with out.block(f"if {head} < {coord}:" if jump == "True" else f"if {jump}:"):
                        out.line(leap)
                    if jump != "True":
                        with out.block("else:"):
                            out.line(step)

    def rescanned(self, frame: Frame, pointer: _Pointer) -> bool:
        """Whether an inner loop goes over the coordinates of a whole operand, each time for a few of them."""
        if frame.outermost or pointer.fiber.slot > 0:
            return False
        return all(var.name != pointer.fiber.tensor for var in self.lowerer.written)

    def pair(self, frame: Frame, first: Fiber, second: Fiber) -> None:
        """Two operands, either may be absent: merge while both last, then two tails."""
        out = self.lowerer.out
        a, b = frame.pointers[first], frame.pointers[second]

        def meet(coord: str) -> None:
            children = {p.fiber: p.stepper.body.tail(p.at, f"{p.at} + 1", coord) for p in (a, b)}
            self.step(frame, coord, children, given(frame.formula, [first, second]), False)

        def pass_by(coord: str, is_first: str, is_second: str) -> None:
            children = {
                first: _optional(a.stepper.body.tail(a.at, "", coord), is_first, readable=True),
                second: _optional(b.stepper.body.tail(b.at, "", coord), is_second, readable=True),
            }
            self.step(frame, coord, children, alone(frame.formula, [first, second]), False)

        self.two(frame, a, b, meet, pass_by)
        for pointer, other in ((a, second), (b, first)):
            rest = without(frame.formula, other)
            if rest is False:
                continue
            at = out.fresh("p")
            with out.block(f"for {at} in range({pointer.at}, {pointer.end}):"):
                coord = out.let(frame.index.name, pointer.stepper.coordinate(at))
                children = {pointer.fiber: pointer.stepper.body.tail(at, f"{at} + 1", coord)}
                self.step(frame, coord, children, given(rest, [pointer.fiber]), False)

    def two(
        self,
        frame: Frame,
        a: _Pointer,
        b: _Pointer,
        meet: Callable[[str], None],
        pass_by: Callable[[str, str, str], None] | None,
    ) -> None:
        """Two pointers while both last, without a branch on which one is behind.

        A scalar body is written twice: while neither pointer is at its last entry both next coordinates are loaded
        ahead of the comparison, so that a step waits for a comparison and not for a load too.
        """
        out = self.lowerer.out
        if self.scalar(frame, [a.fiber, b.fiber]):
            with out.block(f"if {a.more} and {b.more}:"):
                heads = [out.fresh(f"{frame.index.name}_{k}") for k in range(2)]
                for head, p in zip(heads, (a, b), strict=True):
                    out.line(f"{head} = {p.here}")
                with out.block(f"while {a.at} + 1 < {a.end} and {b.at} + 1 < {b.end}:"):
                    nexts = [out.let("ahead", p.stepper.coordinate(f"{p.at} + 1")) for p in (a, b)]
                    self.compare(frame, a, b, heads, nexts, meet, pass_by)
        with out.block(f"while {a.more} and {b.more}:"):
            heads = [out.let(f"{frame.index.name}_{k}", p.here) for k, p in enumerate((a, b))]
            self.compare(frame, a, b, heads, [], meet, pass_by)

    def compare(
        self,
        frame: Frame,
        a: _Pointer,
        b: _Pointer,
        heads: list[str],
        nexts: list[str],
        meet: Callable[[str], None],
        pass_by: Callable[[str, str, str], None] | None,
    ) -> None:
        """One step of two pointers; ``nexts`` are the coordinates behind ``heads`` if they are loaded already."""
        out = self.lowerer.out
        i, j = heads
        with out.block(f"if {i} == {j}:"):
            meet(i)
            for p in (a, b):
                out.line(f"{p.at} += 1")
            for head, ahead in zip(heads, nexts, strict=bool(nexts)):
                out.line(f"{head} = {ahead}")
        with out.block("else:"):
            behind = [out.let("is_first", f"{i} < {j}"), out.let("is_second", f"{j} < {i}")]
            if pass_by is not None:
                pass_by(out.let(frame.index.name, f"min({i}, {j})"), *behind)
            for p, is_behind in zip((a, b), behind, strict=True):
                out.line(f"{p.at} += {is_behind}")
            for head, ahead, is_behind in zip(heads, nexts, behind, strict=bool(nexts)):
                out.line(f"{head} = {ahead} if {is_behind} else {head}")

    def union(self, frame: Frame, fibers: list[Fiber]) -> None:
        """Any number of operands, none required: always go to the least coordinate at hand."""
        out = self.lowerer.out
        pointers = [frame.pointers[fiber] for fiber in fibers]
        beyond = frame.stop
        heads = [out.fresh(f"{frame.index.name}_{k}") for k in range(len(pointers))]

        def read(head: str, pointer: _Pointer) -> None:
            out.line(f"{head} = {pointer.here} if {pointer.more} else {beyond}")

        for head, pointer in zip(heads, pointers, strict=True):
            read(head, pointer)
        coord = out.fresh(frame.index.name)
        least = _nested("min", heads)
        out.line(f"{coord} = {least}")
        with out.block(f"while {coord} < {beyond}:"):
            children, ends = {}, []
            for head, p in zip(heads, pointers, strict=True):
                present = out.let("present", f"{head} == {coord}")
                end = self.group_end(p, coord, present)
                ends.append((present, end))
                children[p.fiber] = _optional(p.stepper.body.tail(p.at, end, coord), present)
            self.step(frame, coord, children, alone(frame.formula, fibers), False)
            for head, p, (present, end) in zip(heads, pointers, ends, strict=True):
                with out.block(f"if {present}:"):
                    out.line(f"{p.at} = {end}")
                    read(head, p)
            out.line(f"{coord} = {least}")


def _optional(child: Fiber, present: str, *, readable: bool = False) -> Fiber:
    return replace(child, present=present, readable=readable)


def _nested(function: str, names: list[str]) -> str:
    """A balanced tree of two-argument calls."""
    while len(names) > 1:
        pairs = [names[k : k + 2] for k in range(0, len(names), 2)]
        names = [f"{function}({pair[0]}, {pair[1]})" if len(pair) == 2 else pair[0] for pair in pairs]
    return names[0]
