"""The reference backend: any scheduled plan, by the dense interpreter of Logic. Slow, and easy to believe."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from pyfinch.algebra.errors import ScheduleError
from pyfinch.algebra.term import postorder
from pyfinch.backends.base import Availability, Scheduled
from pyfinch.formats.convert import build
from pyfinch.formats.format import Format, FType
from pyfinch.formats.levels import Dense
from pyfinch.formats.tensor import Tensor
from pyfinch.logic.interpreter import evaluate
from pyfinch.logic.nodes import (
    Alias,
    Deferred,
    Immediate,
    LogicNode,
    MapJoin,
    Plan,
    Produces,
    Query,
    Reformat,
    Relabel,
    Reorder,
    Table,
)
from pyfinch.schedule.traits import Rep, infer

__all__ = ["ReferenceBackend", "ReferenceExecutable"]


class ReferenceBackend:
    """Runs plans with dense NumPy arrays and stores the results in the plan's formats."""

    name = "reference"

    def available(self) -> Availability:
        """NumPy is all that it needs: always."""
        return Availability(True)

    def compile(self, scheduled: Scheduled) -> ReferenceExecutable:
        """Read the formats and fills of the plan's results."""
        return ReferenceExecutable(scheduled.plan)


class ReferenceExecutable:
    """A plan with what is known of its results."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.types: dict[Alias, FType] = {}
        self.formats: dict[Alias, Format] = {}
        self.fills: dict[Alias, LogicNode] = {}
        # As in `pyfinch.lowering.plan.LoopPlan`: storage slot d is mode order[d] of what is produced.
        self.results: tuple[tuple[Alias, tuple[int, ...]], ...] = ()
        self.numbers: list[Alias] = []
        self._read(plan)
        *statements, last = plan.bodies
        assert isinstance(last, Produces)
        self.whole = Plan((*statements, Produces((*last.args, *self.numbers))))

    @property
    def source(self) -> str:
        """The plan itself."""
        return str(self.plan)

    def _read(self, plan: Plan) -> None:
        known: dict[Alias, Rep] = {}
        stack: list[LogicNode] = [plan]
        while stack:
            match stack.pop():
                case Plan(bodies):
                    stack.extend(reversed(bodies))
                case Query(lhs, Table(Deferred(_, FType() as ftype), _) as rhs):
                    known[lhs] = infer(rhs, known)
                    self.types[lhs] = ftype.in_storage_order()
                    self.fills[lhs] = known[lhs].fill
                case Query(lhs, Reformat(Immediate(Format() as fmt), _) as rhs):
                    known[lhs] = infer(rhs, known)
                    self.formats[lhs] = fmt
                    self.fills[lhs] = known[lhs].fill
                    if not known[lhs].idxs:
                        # A computed number is the fill of what is made of it.
                        number = Deferred(lhs.name, known[lhs].dtype)
                        known[lhs] = replace(known[lhs], fill=number)
                        self.numbers.append(lhs)
                case Produces(args):
                    self.results = tuple(_production(arg) for arg in args)
                case other:
                    raise ScheduleError(f"the reference backend does not know the statement {other}")

    def __call__(self, tensors: dict[str, Tensor]) -> tuple[Tensor, ...]:
        """Run."""
        with np.errstate(all="ignore"):
            arrays = evaluate(self.whole, tensors)
        # As everywhere a number is the fill of what is made of it.
        fills = {n: t.fill_value if t.ndim else t.todense()[()] for n, t in tensors.items()}
        count = len(self.results)
        # A number may have been given axes of size 1.
        fills.update(
            {alias.name: value.reshape(-1)[0] for alias, value in zip(self.numbers, arrays[count:], strict=True)}
        )
        return tuple(
            self._stored(alias, order, np.asarray(array), fills)
            for (alias, order), array in zip(self.results, arrays[:count], strict=True)
        )

    def _stored(
        self, alias: Alias, order: tuple[int, ...], array: np.ndarray[Any, Any], fills: Mapping[str, Any]
    ) -> Tensor:
        """An array, its axes innermost first, in the format of its query."""
        array = array.transpose(range(array.ndim)[::-1])
        fmt = self.formats.get(alias) or self.types[alias].format
        dtype = fmt.dtype or array.dtype
        array = array.astype(dtype, copy=False)
        fill = fmt.fill if fmt.fill is not None else fill_value(self.fills[alias], dtype, fills)
        if all(isinstance(level, Dense) for level in fmt.levels[:-1]):
            kept = np.ones(array.shape, dtype=np.bool_)
        else:
            kept = np.asarray(array == array if fill != fill else array != fill)
        coords = np.argwhere(kept).T.astype(np.int64).reshape(array.ndim, int(kept.sum()))
        stored = Format(fmt.levels, order or tuple(range(array.ndim)))
        return build(array.shape, coords, array[kept], stored, fill, in_order_of=tuple(range(array.ndim)))


def _production(arg: LogicNode) -> tuple[Alias, tuple[int, ...]]:
    match arg:
        case Alias() as alias:
            return alias, ()
        case Relabel(Alias() as alias, idxs):
            return alias, tuple(range(len(idxs)))
        case Reorder(Relabel(Alias() as alias, old), new) if set(old) == set(new):
            place = {field: mode for mode, field in enumerate(reversed(new))}
            return alias, tuple(place[field] for field in reversed(old))
    raise ScheduleError(f"a production must be an alias, permuted or not; got {arg}")


def fill_value(expr: LogicNode, dtype: Any, fills: Mapping[str, Any]) -> Any:
    """The value of a fill expression (`pyfinch.logic.fills`), given the values that it names."""
    values: dict[Any, Any] = {}
    for term in postorder(expr):
        match term:
            case Immediate(value):
                values[term] = value
            case Deferred(name, kind):
                values[term] = fills[name] if name in fills else _literal(name, kind)
            case MapJoin(op, args):
                values[term] = values[op](*[values[arg] for arg in args])
    with np.errstate(all="ignore"):
        return np.asarray(values[expr]).astype(dtype)[()]


def _literal(name: str, dtype: Any) -> Any:
    """The number that a fill expression has by its text, such as ``literal np.float64(0.3)``."""
    found = re.fullmatch(r"literal (?:np\.\w+\()?(.*?)\)?", name)
    if found is None:
        raise ScheduleError(f"the fill {name!r} is not known")
    text = found[1].strip("()")
    return dtype.type(complex(text) if dtype.kind == "c" else text)
