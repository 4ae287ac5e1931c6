"""A scheduled plan as a sequence of steps, each one loop program.

Here, and nowhere else, field order is reversed: Logic's last field is the first storage slot and the outermost loop.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from pyfinch.algebra.errors import ScheduleError
from pyfinch.algebra.operators import Operator
from pyfinch.algebra.operators import get as operator
from pyfinch.formats.format import FType
from pyfinch.logic.nodes import (
    Aggregate,
    Alias,
    Deferred,
    Field,
    Immediate,
    LogicNode,
    Plan,
    Produces,
    Query,
    Reformat,
    Relabel,
    Reorder,
    Table,
)
from pyfinch.loops.nodes import (
    Access,
    Assign,
    Block,
    Declare,
    Freeze,
    Index,
    Literal,
    Loop,
    LoopNode,
    Value,
    Variable,
    Yield,
    accesses,
)
from pyfinch.loops.simplify import Context, Formula, as_dtype, dtype_of, fill_of, substitute, support
from pyfinch.lowering.expressions import Expressions
from pyfinch.lowering.mapped import Mapped, mapped_reductions
from pyfinch.lowering.storage import result_type, workspace_type

__all__ = ["LoopPlan", "Step", "lower_plan"]

_DEEPER = 1 << 20  # a place where no tables are entered


@dataclass(frozen=True, slots=True)
class Step:
    """One query: bind ``result`` to the value of a loop program over earlier results.

    ``kind`` is ``"kernel"``; ``"share"`` where the result is an operand as it stands; ``"permute"`` where an operand's
    storage order changes (``order[d]`` is the operand's slot that becomes slot ``d``); ``"accumulate"`` where the
    program appends coordinates out of order, to be sorted and combined by ``combine`` into ``ftype``.
    ``shape`` gives each storage slot's extent: a number, or an operand's number and its slot; ``given`` the same for
    loops whose extent the program does not tell. ``variables`` names the operands as the program does.
    """

    kind: str
    result: str
    operands: tuple[str, ...]
    ftype: FType
    program: Block | None = None
    shape: tuple[int | tuple[int, int], ...] = ()
    order: tuple[int, ...] = ()
    combine: Operator | None = None
    variables: tuple[str, ...] = ()
    given: tuple[tuple[str, tuple[int, int]], ...] = ()


@dataclass(frozen=True, slots=True)
class LoopPlan:
    """All steps of a plan.

    ``inputs`` maps aliases to the names of the tensors that they stand for. A result is an alias and a mode order:
    slot ``d`` of its storage is mode ``order[d]`` of what the program produces, outermost mode first.
    """

    inputs: Mapping[str, str]
    steps: tuple[Step, ...]
    results: tuple[tuple[str, tuple[int, ...]], ...]


def lower_plan(plan: Plan, *, wide: bool = False, sort: bool = False) -> LoopPlan:
    """Turn a scheduled plan into loop programs.

    Parameters
    ----------
    plan
        Queries of the form ``query(A, table(deferred, …))`` and ``query(A, reformat(format, e))``, where ``e`` is
        ``reorder(pointwise, loops)`` or ``aggregate(op, init, reorder(pointwise, loops), …)``, and one ``produces``.
    wide
        Whether all results get int64 indices and pointers; by default they get the operands'.
    sort
        Whether what a loop order scatters is sorted, and not gathered in a workspace of the mode's size.

    Raises
    ------
    ScheduleError
        If a query is of another form.
    """
    return _Plan(wide, sort).lower(plan)


class _Plan:
    def __init__(self, wide: bool, sort: bool) -> None:
        self.wide, self.sort = wide, sort
        self.types: dict[Alias, FType] = {}
        self.inputs: dict[str, str] = {}
        self.same: dict[Alias, Alias] = {}  # tables of one tensor are one operand
        self.gathered: set[Alias] = set()
        self.steps: list[Step] = []
        self.results: tuple[tuple[str, tuple[int, ...]], ...] = ()

    def lower(self, plan: Plan) -> LoopPlan:
        mapped = {} if self.sort else mapped_reductions(plan)
        inside = {one.alias for one in mapped.values()}
        stack: list[LogicNode] = [plan]
        while stack:
            node = stack.pop()
            match node:
                case Plan(bodies):
                    stack.extend(reversed(bodies))
                case Query(lhs, Table(Deferred(name, ftype), _)):
                    self.types[lhs] = ftype.in_storage_order()
                    self.same[lhs] = next((a for a in self.same if self.inputs[a.name] == name), lhs)
                    self.inputs[lhs.name] = name
                case Query(lhs, Reformat(Immediate(fmt), rhs)):
                    if lhs not in inside or not self.gathers(lhs, fmt, rhs):
                        one = mapped.get(lhs)
                        self.query(lhs, fmt, rhs, one if one is not None and one.alias in self.gathered else None)
                case Produces(args):
                    self.results = tuple(self.production(arg) for arg in args)
                case _:
                    raise ScheduleError(f"lowering does not know the statement {node}")
        return LoopPlan(self.inputs, tuple(self.steps), self.results)

    def production(self, arg: LogicNode) -> tuple[str, tuple[int, ...]]:
        """A result and its mode order: productions may permute, which moves nothing."""
        match arg:
            case Alias(name):
                return name, tuple(range(self.types[arg].ndim))
            case Relabel(Alias(name) as alias, _):
                return name, tuple(range(self.types[alias].ndim))
            case Reorder(Relabel(Alias(name), old), new) if sorted(f.name for f in old) == sorted(f.name for f in new):
                place = {field: mode for mode, field in enumerate(reversed(new))}
                return name, tuple(place[field] for field in reversed(old))
        raise ScheduleError(f"a production must be an alias, permuted or not; got {arg}")

    def query(self, lhs: Alias, fmt: Any, rhs: LogicNode, mapped: Mapped | None) -> None:
        query = _Query(self.types, self.same, fmt, self.wide, self.sort)
        step = query.lower(lhs, rhs) if mapped is None else query.lower_mapped(lhs, rhs, mapped)
        self.types[lhs] = step.ftype
        self.steps.append(step)

    def gathers(self, lhs: Alias, fmt: Any, rhs: LogicNode) -> bool:
        """Whether a reduction would be gathered in a workspace, so that its only user can map it there."""
        step = _Query(self.types, self.same, fmt, self.wide, self.sort).lower(lhs, rhs)
        if step.kind != "kernel" or step.ftype.fill is None or not step.ftype.levels[-2].appends:
            return False
        self.types[lhs] = step.ftype
        self.gathered.add(lhs)
        return True


class _Query:
    """One query under lowering."""

    def __init__(
        self, types: Mapping[Alias, FType], same: Mapping[Alias, Alias], fmt: Any, wide: bool, sort: bool
    ) -> None:
        self.fmt = fmt
        self.sort = sort
        self.given: dict[str, tuple[int, int]] = {}
        self.tables: dict[int, dict[Access, Variable]] = {}
        self.bound: set[LoopNode] = set()
        self.expressions = Expressions(types, same, wide)

    def lower(self, lhs: Alias, rhs: LogicNode) -> Step:
        op, init = operator("overwrite"), None
        loops: tuple[Field, ...] = ()
        reduced: tuple[Field, ...] = ()
        match rhs:
            case Aggregate(Immediate(op_), Immediate(init_), Reorder(arg, idxs), over):
                op, init, loops, reduced = op_, Literal(np.asarray(init_)[()]), idxs, over
            case Aggregate(Immediate(op_), Immediate(init_), arg, over):
                op, init, loops, reduced = op_, Literal(np.asarray(init_)[()]), (), over
            case Reorder(arg, idxs):
                loops = idxs
            case _:
                arg, loops = rhs, ()
        order = tuple(reversed(loops))
        out = tuple(field for field in order if field not in reduced)
        share = self.share(lhs, rhs, order, op)
        if share is not None:
            return share
        value = self.expressions.lower(arg, order)
        dtype = self.fmt.dtype or (dtype_of(value) if init is None else dtype_of(init))
        start = as_dtype(self.expressions.fill(value) if init is None else init, dtype)
        value = self.with_tables(value, op, start, order)
        return self.kernel(lhs, value, start, op, order, out)

    def lower_mapped(self, lhs: Alias, rhs: LogicNode, mapped: Mapped) -> Step:
        """A query that maps the elements of a reduction, and the reduction in it."""
        assert isinstance(rhs, Reorder)
        reduction = mapped.reduction
        inner = reduction.arg
        assert isinstance(inner, Reorder)
        order, out = tuple(reversed(inner.idxs)), tuple(reversed(rhs.idxs))
        value = self.expressions.lower(inner.arg, order)
        start = Literal(np.asarray(reduction.init.value)[()])  # type: ignore[attr-defined]
        op = reduction.op.value  # type: ignore[attr-defined]
        value = self.with_tables(value, op, start, order)
        whole = self.expressions.lower(rhs.arg, out)
        dtype = self.fmt.dtype or dtype_of(whole)
        fill = as_dtype(self.expressions.fill(whole), dtype)
        read = self.expressions.without(mapped.alias)
        self.bound = {idx for access in (*accesses(value), *accesses(whole)) for idx in access.idxs}
        self.bound.update(idx for fills in self.tables.values() for access in fills for idx in access.idxs)
        ftype = result_type(
            self.fmt, dtype, fill.value if isinstance(fill, Literal) else None, self.expressions.index_types_of(out)
        )
        workspace = Variable("W", workspace_type(start.value.dtype, start))
        kept = substitute(whole, {read: Access(workspace, read.idxs[-1:])}, Context({}))
        body = self.with_workspace(value, op, start, order, out, workspace, ftype, kept)
        shape = tuple(self.extent(field) for field in out)
        return self.step("kernel", lhs, ftype, _program(Variable("R", ftype), fill, body), shape)

    def share(self, lhs: Alias, rhs: LogicNode, order: tuple[Field, ...], op: Operator) -> Step | None:
        """A query that copies an operand: shared as it stands, or with its storage order changed."""
        match rhs:
            case Reorder(Relabel(Alias() as alias, idxs), _) | Reorder(Reorder(Relabel(Alias() as alias, idxs), _), _):
                pass
            case Reorder(Alias() as alias, ()) | (Alias() as alias):
                idxs = ()
            case _:
                return None
        ftype = self.expressions.types[alias]
        slots = tuple(reversed(idxs))
        if len(slots) != len(order) or set(slots) != set(order):
            return None
        result = result_type(self.fmt, ftype.dtype, ftype.fill, self.expressions.index_types([(ftype, slots)], order))
        if slots == order:
            if ftype.levels == result.levels:
                return Step("share", lhs.name, (alias.name,), ftype)
            return None
        permutation = tuple(slots.index(field) for field in order)
        shape = tuple((0, slot) for slot in permutation)
        return Step("permute", lhs.name, (alias.name,), result, shape=shape, order=permutation)

    def kernel(
        self,
        lhs: Alias,
        value: LoopNode,
        start: LoopNode,
        op: Operator,
        order: tuple[Field, ...],
        out: tuple[Field, ...],
    ) -> Step:
        expressions = self.expressions
        self.bound = {idx for access in accesses(value) for idx in access.idxs}
        self.bound.update(idx for fills in self.tables.values() for access in fills for idx in access.idxs)
        ftype = result_type(
            self.fmt,
            dtype_of(start),
            start.value if isinstance(start, Literal) else None,
            expressions.index_types_of(out),
        )
        scattered = _scattered(order, out)
        shape = tuple(self.extent(field) for field in out)
        if len(scattered) == 1 and ftype.levels[-2].appends and not self.sort:
            workspace = Variable("W", workspace_type(ftype.dtype, start))
            kept = Access(workspace, self.indices(out[-1:]))
            body = self.with_workspace(value, op, start, order, out, workspace, ftype, kept)
        elif scattered and any(level.appends for level in ftype.levels[-1 - len(scattered) : -1]):
            return self.accumulate(lhs, value, op, start, order, out, ftype, shape)
        else:
            body = self.loops(Assign(Access(Variable("R", ftype), self.indices(out)), op, value), order)
        return self.step("kernel", lhs, ftype, _program(Variable("R", ftype), start, body), shape)

    def step(
        self,
        kind: str,
        lhs: Alias,
        ftype: FType,
        program: Block,
        shape: tuple[int | tuple[int, int], ...],
        combine: Operator | None = None,
    ) -> Step:
        names = tuple(variable.name for variable in self.expressions.variables.values())
        given = tuple(self.given.items())
        operands = self.expressions.operands
        return Step(kind, lhs.name, operands, ftype, program, shape, (), combine, names, given)

    def indices(self, fields: tuple[Field, ...]) -> tuple[Index, ...]:
        return tuple(self.expressions.index(field) for field in fields)

    def extent(self, field: Field) -> int | tuple[int, int]:
        return self.expressions.extent(field)

    def with_tables(self, value: LoopNode, op: Operator, start: LoopNode, order: tuple[Field, ...]) -> LoopNode:
        """Read fibers that an inner loop would go over again and again, beside others, from tables.

        Such a fiber is entered into a workspace once, inside of the loops that it depends on, and then looked up at
        the coordinates of the others: a mask's row, in a product of sparse matrices. ``tables`` holds the accesses
        that are entered, by how many loops are outside of that.
        """
        indices = self.indices(order)
        sparse = [a for a in accesses(value) if a.idxs and _lists_last(a) and set(a.idxs) <= set(indices)]
        if len(sparse) < 2:
            return value
        keys: dict[LoopNode, object] = {access: access for access in sparse}
        result = Variable("R", dtype_of(start))
        needed = _needed(support(Assign(Access(result, ()), op, value), keys, Context({result: start})))
        found: dict[LoopNode, LoopNode] = {}
        for access in sparse:
            last = indices.index(access.idxs[-1])
            depth = max([indices.index(idx) + 1 for idx in access.idxs[:-1]], default=0)
            between = set(indices[depth:last])
            others = [other for other in sparse if other is not access and other.idxs[-1] is access.idxs[-1]]
            varies = any(other in needed and other not in found and between & set(other.idxs) for other in others)
            if depth and varies and access in needed:
                name = "M" if not found else f"M{len(found)}"
                table = Variable(name, workspace_type(dtype_of(access), fill_of(access.tensor)))
                found[access] = Access(table, access.idxs[-1:])
                self.tables.setdefault(depth, {})[access] = table
        return substitute(value, found, Context({})) if found else value

    def entered(self, depth: int, body: LoopNode) -> LoopNode:
        """A body inside of so many loops, after the tables that are entered there."""
        parts: list[LoopNode] = []
        for access, table in self.tables.get(depth, {}).items():
            lhs = Access(table, access.idxs[-1:])
            index = access.idxs[-1]
            assert isinstance(index, Index)
            parts += [
                Declare(table, fill_of(access.tensor)),
                Loop(index, None, Assign(lhs, operator("overwrite"), access)),
                Freeze(table),
            ]
        return Block((*parts, *(body.bodies if isinstance(body, Block) else (body,)))) if parts else body

    def loops(self, body: LoopNode, order: tuple[Field, ...], outside: int = 0) -> LoopNode:
        for depth, field in reversed(list(enumerate(order, outside))):
            body = self.entered(depth + 1, body)
            place, index = self.extent(field), self.expressions.index(field)
            size: LoopNode | None = None
            if isinstance(place, int):
                size = Literal(np.int64(place))
            elif index not in self.bound:  # the operands that have this mode dropped out of the expression
                size = Value(f"n_{index.name}", np.dtype(np.int64))
                self.given[index.name] = place
            body = Loop(index, size, body)
        return body

    def with_workspace(
        self,
        value: LoopNode,
        op: Operator,
        start: LoopNode,
        order: tuple[Field, ...],
        out: tuple[Field, ...],
        workspace: Variable,
        ftype: FType,
        kept: LoopNode,
    ) -> LoopNode:
        """Accumulate the innermost mode in a workspace inside the loops that come before the first reduction.

        ``kept`` is what is stored, an expression over the workspace's elements.
        """
        prefix = order[: len(out) - 1]
        (last,) = self.indices(out[-1:])
        scatter = self.loops(Assign(Access(workspace, (last,)), op, value), order[len(prefix) :], len(prefix))
        flush = Assign(
            Access(Variable("R", ftype), self.indices(out)), operator("overwrite"), as_dtype(kept, ftype.dtype)
        )
        body: LoopNode = Block(
            (Declare(workspace, start), scatter, Freeze(workspace), self.loops(flush, out[-1:], _DEEPER))
        )
        return self.loops(body, prefix)

    def accumulate(
        self,
        lhs: Alias,
        value: LoopNode,
        op: Operator,
        start: LoopNode,
        order: tuple[Field, ...],
        out: tuple[Field, ...],
        ftype: FType,
        shape: tuple[int | tuple[int, int], ...],
    ) -> Step:
        """Append every contribution with its coordinates; the runtime sorts and combines them."""
        loose = ftype.as_coo()
        lhs_access = Access(Variable("R", loose), self.indices(out))
        body = self.loops(Assign(lhs_access, operator("overwrite"), as_dtype(value, ftype.dtype)), order)
        program = _program(Variable("R", loose), start, body)
        return self.step("accumulate", lhs, ftype, program, shape, op)


def _lists_last(access: Access) -> bool:
    """Whether the last slot of a tensor is listed: of each fiber only some coordinates are stored."""
    ftype = access.tensor.type
    return isinstance(ftype, FType) and ftype.levels[-2].appends


def _needed(formula: Formula) -> tuple[object, ...]:
    """The operands without which nothing happens."""
    match formula:
        case ("and", parts):
            return tuple(parts)
        case ("or", _) | bool():
            return ()
        case key:
            return (key,)


def _scattered(order: tuple[Field, ...], out: tuple[Field, ...]) -> tuple[Field, ...]:
    """The result's fields whose loops stand inside of a reduction."""
    first = next((k for k, field in enumerate(order) if field not in out), len(order))
    return tuple(field for field in order[first:] if field in out)


def _program(result: Variable, start: LoopNode, body: LoopNode) -> Block:
    return Block((Declare(result, start), body, Freeze(result), Yield((result,))))
