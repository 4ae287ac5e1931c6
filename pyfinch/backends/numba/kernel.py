"""From a loop program to a kernel: its Python source, and what the runtime must know to call it.

A kernel is a function ``kernel(lo, hi, state, …)`` over a range of its outermost loop. It returns ``hi`` when done; if
it runs out of room it writes what it needs into ``state`` and returns the outermost coordinate to go on from.
``state[2 * l]`` is the number of entries appended to level ``l`` so far, ``state[2 * l + 1]`` the number needed.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pyfinch.algebra.carriers import ValueOperator
from pyfinch.algebra.errors import ScheduleError
from pyfinch.algebra.term import postorder
from pyfinch.algebra.values import same_value
from pyfinch.backends.numba import assemble
from pyfinch.backends.numba.lower import Lowerer
from pyfinch.backends.numba.scope import Scope, Target, Written
from pyfinch.formats.format import FType
from pyfinch.formats.levels import SparseByteMap
from pyfinch.loops.checks import check
from pyfinch.loops.nodes import (
    Access,
    Assign,
    Block,
    Call,
    Declare,
    Freeze,
    Index,
    Literal,
    Loop,
    LoopNode,
    Sieve,
    Value,
    Variable,
    Yield,
)
from pyfinch.loops.simplify import Context, dtype_of, fill_of, is_nothing, simplify, substitute

__all__ = ["Argument", "KernelSource", "build"]


@dataclass(frozen=True, slots=True)
class Argument:
    """One argument of a kernel: where the runtime gets it (``kind`` and its parts) and its Numba type in words.

    Kinds: ``lo hi state``; ``buffer tensor level number``; ``fill tensor``; ``extent tensor slot`` or
    ``extent given index``; ``init``; ``result level number``; ``workspace number dtype extent``.
    """

    name: str
    kind: str
    parts: tuple[object, ...]
    type: str


@dataclass(frozen=True, slots=True)
class KernelSource:
    """Everything about a kernel but its machine code."""

    program: Block
    module: ast.Module
    source: str
    arguments: tuple[Argument, ...]
    operands: tuple[Variable, ...]
    reads: tuple[Access, ...]
    outer: object
    places: tuple[object, ...] | None
    result: Variable
    init: LoopNode
    counted: frozenset[int]
    prefilled: bool
    mirror: int | None
    reassociates: bool
    promises: tuple[tuple[LoopNode, Any], ...]


def build(program: Block) -> KernelSource:
    """Lower a loop program to a kernel.

    Parameters
    ----------
    program
        ``Block((Declare(result, init), loop nest, Freeze(result), Yield((result,))))``; workspaces are declared
        where they are used.

    Raises
    ------
    ScheduleError
        If the program breaks a rule of the Loop language (`loops.checks`), or is outside of what the backend can
        lower; the message names the statement.
    """
    check(program)
    match program:
        case Block((Declare(Variable() as result, init), body, Freeze(), Yield((_,)))):
            _check_writes(result, body)
            builder = _Builder(program, result, init, body)
            source = builder.build()
            if source.counted & builder.written[result].direct:
                # a level's pointers hold counts on all ways through the program, or on none
                builder = _Builder(program, result, init, body)
                builder.written[result].counted |= source.counted
                source = builder.build()
            return source
    raise ScheduleError("a kernel needs: declare the result, one statement, freeze, return")


def _check_writes(result: Variable, body: LoopNode) -> None:
    """Refuse what this backend cannot write: byte maps below a level that appends, and other workspaces than these."""
    assert isinstance(result.type, FType)
    appending = False
    for level in result.type.levels:
        appending = appending or level.appends
        if appending and isinstance(level, SparseByteMap):
            raise ScheduleError(
                f"the numba backend cannot write {result.name}: {result.type} has a byte map below a level that appends"
            )
    for term in postorder(body):
        if isinstance(term, Declare):
            ftype = term.tensor.type
            assert isinstance(ftype, FType)
            if ftype.ndim != 1 or not isinstance(ftype.levels[0], SparseByteMap):
                raise ScheduleError(f"a workspace is a byte map over one mode; {term.tensor.name} is {ftype}")


def _tables(body: LoopNode) -> set[Variable]:
    """The workspaces that are read inside of loops over other indices than their own."""
    found = set()
    for block in postorder(body):
        if isinstance(block, Block):
            declared = {term.tensor for term in block.bodies if isinstance(term, Declare)}
            for loop in block.bodies:
                if isinstance(loop, Loop):
                    reads = {
                        term.tensor
                        for assign in postorder(loop)
                        if isinstance(assign, Assign)
                        for term in postorder(assign.rhs)
                        if isinstance(term, Access) and term.tensor in declared and loop.index not in term.idxs
                    }
                    found |= reads
    return found


def buffer_name(tensor: str, buffer: str, level: int) -> str:
    """The argument for a level's buffer: ``A_ptr1``, ``A_idx1``, ``A_idx0_1`` (coordinate 0 of level 1), ``A_val``."""
    if buffer == "val":
        return f"{tensor}_val"
    return f"{tensor}_{buffer}_{level}" if buffer[-1].isdigit() else f"{tensor}_{buffer}{level}"


class _Builder:
    def __init__(self, program: Block, result: Variable, init: LoopNode, body: LoopNode) -> None:
        self.program, self.result, self.init, self.body = program, result, init, body
        terms = list(postorder(body))
        self.sieves = any(isinstance(term, Sieve) for term in terms)
        self.assigns = [term for term in terms if isinstance(term, Assign)]
        declared = {term.tensor: term.init for term in terms if isinstance(term, Declare)}
        written = {result: init, **declared}
        tables = _tables(body)
        every = [term for term in terms if isinstance(term, Access)]
        self.reads = [access for access in every if access.tensor not in written]
        self.operands = tuple(dict.fromkeys(access.tensor for access in self.reads))
        self.extents, self.where = self.find_extents(terms)
        self.written = {
            var: Written(
                var,
                start,
                tuple(access for access in every if access.tensor is var),
                workspace=var is not result,
                table=var in tables,
            )
            for var, start in written.items()
        }
        self.lowerer = Lowerer(self.written, self.extents)
        self.arguments: list[Argument] = []

    def find_extents(self, terms: Sequence[object]) -> tuple[dict[Index, str], dict[Index, object]]:
        """The name of each loop's extent, and the tensor and slot (or number) that it comes from."""
        where: dict[Index, object] = {}
        for access in self.reads:
            for slot, idx in enumerate(access.idxs):
                if isinstance(idx, Index):
                    where.setdefault(idx, (self.operands.index(access.tensor), slot))
        for term in terms:
            if isinstance(term, Loop):
                if isinstance(term.extent, Literal):
                    where[term.index] = int(term.extent.value)
                elif isinstance(term.extent, Value):
                    where[term.index] = ("given", term.index.name)
                elif term.index not in where:
                    raise ScheduleError(f"nothing gives the extent of the loop over {term.index.name}")
        names = {idx: str(w) if isinstance(w, int) else f"n_{idx.name}" for idx, w in where.items()}
        return names, where

    def build(self) -> KernelSource:
        lowerer, result = self.lowerer, self.written[self.result]
        for name in ("lo", "hi", "state"):
            lowerer.out.reserve(name)
        self.argument("lo", "lo", (), "int64")
        self.argument("hi", "hi", (), "int64")
        self.argument("state", "state", (), "int64[::1]")
        for k, var in enumerate(self.operands):
            self.operand(k, var)
        for idx, place in self.where.items():
            if not isinstance(place, int):
                self.argument(self.extents[idx], "extent", place, "int64")
        result.mirror = self.find_mirror()
        result.drop_fill = self.collapses()
        self.result_arguments(result)
        for written in self.written.values():
            if written.workspace:
                self.workspace(written)
        self.lower(result)
        module = lowerer.out.function("kernel", [argument.name for argument in self.arguments])
        mirror = None if result.mirror is None else self.operands.index(result.mirror)
        return KernelSource(
            self.program,
            module,
            ast.unparse(module),
            tuple(self.arguments),
            self.operands,
            tuple(self.reads),
            self.where[self.body.index] if isinstance(self.body, Loop) else None,
            self.places(),
            self.result,
            self.init,
            frozenset(result.counted),
            result.prefilled,
            mirror,
            self.reassociates(),
            self.promises(),
        )

    def places(self) -> tuple[object, ...] | None:
        """Where the extents of the result come from; None where its program does not tell."""
        for assign in self.assigns:
            if assign.lhs.tensor is self.result:
                found = [self.where.get(idx) for idx in assign.lhs.idxs if isinstance(idx, Index)]
                return None if None in found or len(found) < len(assign.lhs.idxs) else tuple(found)
        return None

    # ------------------------------------------------------------------------------------------- arguments

    def argument(self, name: str, kind: str, parts: tuple[object, ...] | object, kind_of_type: str) -> None:
        self.lowerer.out.reserve(name)
        self.arguments.append(Argument(name, kind, parts if isinstance(parts, tuple) else (parts,), kind_of_type))

    def operand(self, k: int, var: Variable) -> None:
        ftype = var.type
        assert isinstance(ftype, FType)
        for number, level in enumerate(ftype.levels):
            for b, (name, dtype) in enumerate(zip(level.buffer_names, level.buffer_dtypes, strict=True)):
                self.argument(
                    buffer_name(var.name, name, number), "buffer", (k, number, b), f"{np.dtype(dtype).name}[::1]"
                )
        if ftype.fill is None:
            self.argument(f"{var.name}_fill", "fill", (k,), ftype.dtype.name)
        for access in self.reads:
            if access.tensor is var:
                for slot, idx in enumerate(access.idxs):
                    if not isinstance(idx, Index):
                        name = f"{var.name}_dim{slot}"
                        if all(argument.name != name for argument in self.arguments):
                            self.argument(name, "extent", (k, slot), "int64")

    def result_arguments(self, result: Written) -> None:
        out, name = self.lowerer.out, self.result.name
        if not isinstance(self.init, Literal):
            self.argument(f"{name}_init", "init", (), dtype_of(self.init).name)
            self.lowerer.constants[self.init] = f"{name}_init"
        for number, level in enumerate(result.ftype.levels):
            if result.mirror is not None and number < len(result.ftype.levels) - 1:
                continue
            for b, (buffer, dtype) in enumerate(zip(level.buffer_names, level.buffer_dtypes, strict=True)):
                if isinstance(level, SparseByteMap) and buffer != "tbl":
                    continue  # the runtime lists what the table marks
                self.argument(buffer_name(name, buffer, number), "result", (number, b), f"{np.dtype(dtype).name}[::1]")
            if level.appends:
                counter = out.fresh(f"{name}_n{number}")
                result.counters[number] = counter
                out.prologue.append(f"    {counter} = state[{2 * number}]")
                out.prologue.append(
                    f"    {name}_cap{number} = {buffer_name(name, level.buffer_names[1], number)}.shape[0]"
                )

    def workspace(self, written: Written) -> None:
        name = written.var.name
        (idx,) = {access.idxs[0] for access in written.accesses}
        assert isinstance(idx, Index)
        place = self.where[idx]
        buffers = [(f"{name}_tbl0", "bool"), (f"{name}_idx0", "int32"), (f"{name}_val", written.ftype.dtype.name)]
        if not written.table:
            buffers += [(f"{name}_words", "uint64"), (f"{name}_summary", "uint64")]
        for number, (buffer, dtype) in enumerate(buffers):
            self.argument(buffer, "workspace", (number, dtype, place), f"{dtype}[::1]")

    # -------------------------------------------------------------------------------------------- analysis

    def collapses(self) -> bool:
        """Whether stored values can become the fill, or be left out, so that results are worth a test."""
        return self.sieves or any(
            term.op.collapses
            for assign in self.assigns
            if assign.lhs.tensor is self.result
            for term in postorder(assign.rhs)
            if isinstance(term, Call)
        )

    def find_mirror(self) -> Variable | None:
        """The operand whose structure is exactly the result's, if there is one: then only values are written."""
        assert isinstance(self.result.type, FType)
        levels = self.result.type.levels
        writes = [assign for assign in self.assigns if assign.lhs.tensor is self.result]
        if len(writes) != 1 or self.collapses() or not any(level.appends for level in levels):
            return None
        lhs = writes[0].lhs
        found = None
        for access in self.reads:
            ftype = access.tensor.type
            assert isinstance(ftype, FType)
            if found is None and access.idxs == lhs.idxs and ftype.levels[:-1] == levels[:-1]:
                found = access
            elif any(level.modes and level.buffer_names for level in ftype.levels) and set(access.idxs) & set(lhs.idxs):
                return None  # another sparse operand decides on the structure too
        if found is None or len(self.written) > 1:
            return None
        context = Context({self.result: self.init})
        absent = substitute(self.body, {found: fill_of(found.tensor)}, context)
        return found.tensor if isinstance(absent, Block) and not absent.bodies else None

    def reassociates(self) -> bool:
        """Whether float sums are the only float additions of the kernel, so that it may reorder them."""
        sums = [a for a in self.assigns if a.op.name == "add" and dtype_of(a.lhs).kind in "fc"]
        inside = {
            term.op.name
            for assign in self.assigns
            for term in postorder(assign.rhs)
            if isinstance(term, Call) and term.dtype.kind in "fc"
        }
        return bool(sums) and inside <= {"multiply"}

    def promises(self) -> tuple[tuple[LoopNode, Any], ...]:
        """What `known_fill` was said of: expressions over fills and run-time numbers, and their promised values."""
        fills: dict[LoopNode, LoopNode] = {access: fill_of(access.tensor) for access in self.reads if access.idxs}
        for written in self.written.values():
            if written.workspace:
                fills.update(dict.fromkeys(written.accesses, written.init))
        found = []
        for term in postorder(self.body):
            match term:
                case Call(ValueOperator(name="known_fill") as op, (arg,), _):
                    fill = substitute(arg, fills, Context({}))
                    if not isinstance(fill, Literal) or not same_value(fill.value, op.value):
                        found.append((fill, op.value))
        return tuple(found)

    # ------------------------------------------------------------------------------------------------ code

    def lower(self, result: Written) -> None:
        lowerer, out = self.lowerer, self.lowerer.out
        scope = Scope(
            dict(lowerer.constants),
            {access: lowerer.root(access) for access in self.reads},
            {access: Target(result, access) for access in result.accesses},
        )
        lowerer.settle(self.body, scope)
        if isinstance(self.body, Loop):
            lowerer.outer = self.body
        if is_nothing(simplify(self.body, lowerer.context)):
            # Nothing differs from the initial value: no loop will write pointers or values.
            result.prefilled = True
            result.counted.update(n for n, level in enumerate(result.ftype.levels) if level.appends)
        target = next(iter(scope.writes.values()), None)
        if target is not None and target.at_leaf:
            assemble.write_leaf(lowerer, target, target, self.body, scope)
        elif target is not None:
            lowerer.statement(self.body, scope)
        assemble.finish_root(lowerer, result)
        for level, counter in result.counters.items():
            out.line(f"state[{2 * level}] = {counter}")
        out.line("return hi")
