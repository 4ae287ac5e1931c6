"""Writing: how a loop opens, fills and closes places of the tensors that a kernel writes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pyfinch.algebra.operators import Operator
from pyfinch.algebra.term import postorder
from pyfinch.backends.numba.scope import Scope, Target, Written
from pyfinch.formats.format import FType
from pyfinch.formats.levels import SparseByteMap
from pyfinch.looplets import Fiber, Lookup, Spike, Stepper
from pyfinch.loops.nodes import Assign, Index, LoopNode
from pyfinch.loops.simplify import dtype_of

if TYPE_CHECKING:
    from pyfinch.backends.numba.lower import Lowerer

__all__ = [
    "cell_dtype",
    "clean",
    "close_slot",
    "consume",
    "declare",
    "drop",
    "finish_root",
    "freeze",
    "mark",
    "open_slot",
    "reserve",
    "unfurl",
    "write_leaf",
    "written_by",
]


def cell_dtype(op: Operator, dtype: np.dtype[np.generic]) -> np.dtype[np.generic]:
    """The dtype of the register that accumulates: sums of float32 are kept in float64."""
    if op.name == "add" and dtype == np.float32:
        return np.dtype(np.float64)
    return dtype


def assigns(body: LoopNode) -> list[Assign]:
    """The assignments in a statement."""
    return [term for term in postorder(body) if isinstance(term, Assign)]


def written_by(index: Index, body: LoopNode, scope: Scope) -> list[Target]:
    """The targets in a body whose next slot the index binds."""
    written = {term.lhs for term in assigns(body)}
    return [
        target
        for access, target in scope.writes.items()
        if access in written and not target.at_leaf and access.idxs[target.slot] is index
    ]


def _appends(target: Target) -> bool:
    """Whether the next slot to be opened appends an entry."""
    written = target.written
    if written.mirror is not None or written.workspace:
        return False
    level = written.ftype.levels[target.level]
    return level.appends and target.inner_slot == level.modes - 1


# ------------------------------------------------------------------------------------------------ workspaces


def declare(lowerer: Lowerer, written: Written, scope: Scope) -> None:
    """Empty a workspace. Its last reader has cleaned it (`consume`), so only the count is reset."""
    counter = written.counters.get(0) or lowerer.out.fresh(f"{written.var.name}_n")
    written.counters[0] = counter
    lowerer.out.line(f"{counter} = 0")
    for access in written.accesses:
        scope.writes[access] = Target(written, access)


def freeze(lowerer: Lowerer, written: Written, scope: Scope) -> None:
    """Bring a workspace's touched coordinates in order, if that matters; from here on it is read."""
    name = written.var.name
    if not written.table:
        lowerer.out.line(f"sort_touched({name}_idx0, {written.counters[0]}, {name}_words, {name}_summary, {name}_tbl0)")
    for access in written.accesses:
        scope.writes.pop(access, None)
        scope.reads[access] = lowerer.root(access)


def unfurl(lowerer: Lowerer, fiber: Fiber) -> Lookup | Stepper:
    """How a fiber reads along its next index."""
    for written in lowerer.written.values():
        if written.workspace and written.var.name == fiber.tensor:
            tail = Spike(lambda p, end, i: fiber.down(i))
            table = f"{fiber.tensor}_tbl0" if written.table else None
            return Stepper("0", written.counters[0], f"{fiber.tensor}_idx0", tail, table=table)
    return lowerer.level(fiber).unfurl(fiber, lowerer.out)


def _is_workspace(lowerer: Lowerer, fiber: Fiber) -> bool:
    return any(written.workspace and written.var.name == fiber.tensor for written in lowerer.written.values())


def consume(lowerer: Lowerer, fiber: Fiber, coord: str) -> None:
    """Clean an entry of a workspace behind its last read."""
    if _is_workspace(lowerer, fiber):
        lowerer.out.line(f"{fiber.tensor}_tbl0[uintp({coord})] = False")


def clean(lowerer: Lowerer, fiber: Fiber, stop: str) -> None:
    """Clean a workspace behind a loop that does not visit each of its entries."""
    if _is_workspace(lowerer, fiber):
        _clean(lowerer, fiber.tensor, stop)


def drop(lowerer: Lowerer, written: Written) -> None:
    """Clean a workspace that was read as a table, behind the statements that read it."""
    if written.table:
        _clean(lowerer, written.var.name, written.counters[0])


def _clean(lowerer: Lowerer, name: str, stop: str) -> None:
    out = lowerer.out
    at = out.fresh("p")
    with out.block(f"for {at} in range(0, {stop}):"):
        out.line(f"{name}_tbl0[uintp({name}_idx0[uintp({at})])] = False")


# ------------------------------------------------------------------------------------------------- the result


def mark(lowerer: Lowerer, coord: str) -> None:
    """Remember, at the start of an outermost iteration, what to go back to if the kernel runs out of room."""
    lowerer.resume = coord
    for written in lowerer.written.values():
        if not written.workspace:
            for counter in written.counters.values():
                lowerer.out.line(f"{counter}_at = {counter}")


def reserve(lowerer: Lowerer, index: Index, body: LoopNode, scope: Scope, bound: str) -> None:
    """Return to the caller for more room unless all that a loop may append fits."""
    out = lowerer.out
    for target in written_by(index, body, scope):
        if not _appends(target):
            continue
        counter = target.written.counters[target.level]
        need = out.let("need", f"{counter} + {bound}")
        with out.block(f"if {need} > {target.written.var.name}_cap{target.level}:"):
            out.line(f"state[{2 * target.level + 1}] = {need}")
            if lowerer.resume is None:
                out.line("return lo")
            else:
                for level, name in target.written.counters.items():
                    out.line(f"state[{2 * level}] = {name}_at")
                out.line(f"return {lowerer.resume}")


def open_slot(lowerer: Lowerer, target: Target, coord: str, covered: bool, scope: Scope) -> None:
    """Go to the place that a coordinate names."""
    out, written = lowerer.out, target.written
    level = written.ftype.levels[target.level]
    coords = (*target.coords, coord) if target.inner_slot else (coord,)
    if target.inner_slot < level.modes - 1:
        scope.writes[target.access] = target.moved(
            slot=target.slot + 1, inner_slot=target.inner_slot + 1, coords=coords
        )
        return
    changes: dict[str, object] = {
        "level": target.level + 1,
        "slot": target.slot + 1,
        "inner_slot": 0,
        "coords": coords if level.appends else (),
        "full": target.full and covered,
    }
    if written.mirror is not None:
        changes["pos"] = next(fiber.pos for access, fiber in scope.reads.items() if access.tensor is written.mirror)
    elif _appends(target):
        changes["pos"] = written.counters[target.level]
        changes.update(appended=True, fresh=True, full=True)
    else:
        dim = lowerer.extents[target.access.idxs[target.slot]]  # type: ignore[index]
        pos = coord if target.pos == "0" else f"{target.pos} * {dim} + {coord}"
        place = out.let(f"{written.var.name}_p", pos)
        changes["pos"] = place
        if isinstance(level, SparseByteMap) and not written.workspace:
            changes["marks"] = (*target.marks, f"{target.buffer('tbl')}[uintp({place})] = True")
            changes["full"] = False
    opened = target.moved(**changes)
    scope.writes[target.access] = opened
    if opened.at_leaf or written.mirror is not None or written.workspace:
        return
    if written.ftype.levels[opened.level].appends:
        out.line(f"{written.counters[opened.level]}_from = {written.counters[opened.level]}")
    elif _appends(target) and not _appends_below(written.ftype, opened.level):
        _fill_block(lowerer, opened)


def _fill_block(lowerer: Lowerer, target: Target) -> None:
    """Give the dense block below a new entry its initial value."""
    out = lowerer.out
    init = lowerer.init(target.written)
    start, stop = _block(lowerer, target)
    at = out.fresh("p")
    with out.block(f"for {at} in range({start}, {stop}):"):
        out.line(f"{target.values}[uintp({at})] = {init}")


def _block(lowerer: Lowerer, target: Target) -> tuple[str, str]:
    """The range of values below a target whose deeper levels are dense."""
    size = " * ".join(lowerer.extents[idx] for idx in target.access.idxs[target.slot :])  # type: ignore[index]
    return f"{target.pos} * {size}", f"({target.pos} + 1) * {size}"


def _appends_below(ftype: FType, level: int) -> bool:
    """Whether a level or one below it appends."""
    return any(deeper.appends for deeper in ftype.levels[level:])


def close_slot(lowerer: Lowerer, before: Target, after: Target) -> None:
    """Leave a place: record pointers of the levels below, keep the entry if it holds anything."""
    written, out = before.written, lowerer.out
    if after.at_leaf or written.mirror is not None or written.workspace or after.level == before.level:
        return
    child_level = written.ftype.levels[after.level]
    appending = _appends(before)
    if not child_level.appends:
        if appending and not _appends_below(written.ftype, after.level):
            start, stop = _block(lowerer, after)
            with out.block(f"if holds_other({after.values}, {start}, {stop}, {lowerer.init(written)}):"):
                _commit(lowerer, before, after)
        elif appending:
            _commit(lowerer, before, after)
        return
    counter = written.counters[after.level]
    if appending:
        with out.block(f"if {counter} > {counter}_from:"):
            _commit(lowerer, before, after)
            out.line(f"{after.buffer('ptr')}[uintp({written.counters[before.level]})] = {counter}")
    elif after.full and after.level not in written.counted:
        written.direct.add(after.level)
        out.line(f"{after.buffer('ptr')}[uintp({after.pos} + 1)] = {counter}")
    else:
        written.counted.add(after.level)
        out.line(f"{after.buffer('ptr')}[uintp({after.pos} + 1)] = {counter} - {counter}_from")


def _commit(lowerer: Lowerer, slot: Target, opened: Target) -> None:
    """Append the coordinates of an entry."""
    counter = slot.written.counters[slot.level]
    level = slot.written.ftype.levels[slot.level]
    for line in level.append(slot.buffer, counter, opened.coords or ()):
        lowerer.out.line(line)
    lowerer.out.line(f"{counter} += 1")


# -------------------------------------------------------------------------------------------------- elements


def write_leaf(lowerer: Lowerer, slot: Target, target: Target, body: LoopNode, scope: Scope) -> None:
    """Lower a body at whose start all coordinates of a target are bound, ``slot`` being what was opened last."""
    written = target.written
    is_map = written.workspace and isinstance(written.ftype.levels[0], SparseByteMap)
    match body:
        case Assign(lhs, op, rhs) if lhs is target.access:
            if is_map:
                _write_map(lowerer, target, op, rhs, scope)
            elif target.fresh:
                _store_fresh(lowerer, slot, target, lowerer.first_value(target, op, rhs), scope)
            else:
                _update(lowerer, target, op, rhs, scope)
            return
    op = next(term.op for term in assigns(body) if term.lhs is target.access)
    dtype = dtype_of(target.access)
    wide = cell_dtype(op, dtype)
    if target.fresh:
        start = lowerer.scalars.cast(lowerer.init(written), dtype_of(written.init), wide)
    else:
        start = lowerer.scalars.cast(f"{target.values}[uintp({target.pos})]", dtype, wide)
        if is_map:
            start = f"{start} if {written.var.name}_tbl0[uintp({target.pos})] else {lowerer.init(written)}"
        else:
            written.prefilled = True
    cell = lowerer.out.fresh(f"{written.var.name}_acc")
    lowerer.out.line(f"{cell} = {start}")
    scope.writes[target.access] = target.moved(cell=cell)
    lowerer.statement(body, scope)
    value = lowerer.scalars.cast(cell, wide, dtype)
    if is_map:
        _touch(lowerer, target)
        lowerer.out.line(f"{target.values}[uintp({target.pos})] = {value}")
    else:
        _store(lowerer, slot, target, value, check=True)


def _store_fresh(lowerer: Lowerer, slot: Target, target: Target, value: LoopNode, scope: Scope) -> None:
    text = lowerer.scalars.text(value, scope.known)
    text = lowerer.scalars.cast(text, dtype_of(value), dtype_of(target.access))
    _store(lowerer, slot, target, text, check=target.written.drop_fill)


def _store(lowerer: Lowerer, slot: Target, target: Target, value: str, *, check: bool) -> None:
    """Store an element that nothing wrote before; an appended one only if it differs from the fill, where asked."""
    out, written = lowerer.out, target.written
    if slot.at_leaf or not _appends(slot):
        if not target.full and not target.appended and written.mirror is None:
            written.prefilled = True
        if not target.marks or not check:
            _put(lowerer, target, value)
            return
    elif not check:
        _put(lowerer, target, value)
        _commit(lowerer, slot, target)
        return
    value = out.let("value", value)
    init = lowerer.init(written)
    fill = written.init
    is_nan = bool(getattr(fill, "value", 0) != getattr(fill, "value", 0))
    run_time = not hasattr(fill, "value") and dtype_of(fill).kind in "fc"
    test = f"{value} == {value}" if is_nan else f"{value} != {init}"
    if run_time:
        test = f"{test} and ({value} == {value} or {init} == {init})"
    with out.block(f"if {test}:"):
        _put(lowerer, target, value)
        if not slot.at_leaf and _appends(slot):
            _commit(lowerer, slot, target)


def _put(lowerer: Lowerer, target: Target, value: str) -> None:
    """Store a value, unless the leaf is a pattern, which has none, and enter it into the byte maps above."""
    if target.written.ftype.levels[-1].buffer_names:
        lowerer.out.line(f"{target.values}[uintp({target.pos})] = {value}")
    for mark in target.marks:
        lowerer.out.line(mark)


def _combined(lowerer: Lowerer, op: Operator, old: str, value: str, rhs: LoopNode, dtype: np.dtype[np.generic]) -> str:
    if op.name in ("overwrite", "initwrite"):
        return lowerer.scalars.cast(value, dtype_of(rhs), dtype)
    return lowerer.scalars.apply(op, [(old, dtype), (value, dtype_of(rhs))], dtype)


def _update(lowerer: Lowerer, target: Target, op: Operator, rhs: LoopNode, scope: Scope) -> None:
    """Accumulate into memory."""
    out = lowerer.out
    if not target.appended:
        target.written.prefilled = True
    value = lowerer.scalars.text(rhs, scope.known)
    place = f"{target.values}[uintp({target.pos})]"
    old = out.let("old", place) if op.numba.count("{0}") > 1 else place
    value = out.let("t", value) if op.numba.count("{1}") > 1 else value
    out.line(f"{place} = {_combined(lowerer, op, old, value, rhs, dtype_of(target.access))}")
    for mark in target.marks:
        out.line(mark)


def _touch(lowerer: Lowerer, target: Target) -> None:
    """Enter a coordinate into a workspace's list unless it is there."""
    with lowerer.out.block(f"if not {target.written.var.name}_tbl0[uintp({target.pos})]:"):
        _enter(lowerer, target)


def _enter(lowerer: Lowerer, target: Target) -> None:
    name, counter = target.written.var.name, target.written.counters[0]
    lowerer.out.line(f"{name}_tbl0[uintp({target.pos})] = True")
    lowerer.out.line(f"{name}_idx0[uintp({counter})] = {target.pos}")
    lowerer.out.line(f"{counter} += 1")


def _write_map(lowerer: Lowerer, target: Target, op: Operator, rhs: LoopNode, scope: Scope) -> None:
    """Accumulate into a workspace, entering the coordinate at its first touch."""
    out = lowerer.out
    dtype = dtype_of(target.access)
    value = out.let("t", lowerer.scalars.text(rhs, scope.known))
    place = f"{target.values}[uintp({target.pos})]"
    with out.block(f"if {target.written.var.name}_tbl0[uintp({target.pos})]:"):
        old = out.let("old", place)
        out.line(f"{place} = {_combined(lowerer, op, old, value, rhs, dtype)}")
    with out.block("else:"):
        _enter(lowerer, target)
        first = lowerer.first_value(target, op, rhs)
        known = dict(scope.known)
        known[rhs] = value
        text = lowerer.scalars.text(first, known)
        out.line(f"{place} = {lowerer.scalars.cast(text, dtype_of(first), dtype)}")


def finish_root(lowerer: Lowerer, written: Written) -> None:
    """Record the pointer of an outermost level that appends."""
    if written.mirror is None and written.ftype.levels[0].appends and not written.workspace:
        lowerer.out.line(f"{written.var.name}_ptr0[1] = {written.counters[0]}")
