"""Raw Logic programs as Finch.jl's own compute means them: conversions written out, as `translate` does for loops."""

from __future__ import annotations

from typing import Any

import numpy as np

from pyfinch.algebra.carriers import cast
from pyfinch.algebra.errors import ScheduleError
from pyfinch.algebra.term import postorder
from pyfinch.backends.finchjl.translate import converted_assignment, converted_call
from pyfinch.formats.format import Format, FType
from pyfinch.formats.levels import Element
from pyfinch.logic.nodes import (
    Aggregate,
    Deferred,
    Immediate,
    LogicNode,
    MapJoin,
    Plan,
    Query,
    Reformat,
    Relabel,
    Reorder,
    Subquery,
    Table,
)
from pyfinch.loops.nodes import Access, Call, Literal, LoopNode, Value, Variable

__all__ = ["converted"]

DType = np.dtype[Any]


def converted(program: Plan) -> Plan:
    """The program with every argument converted to the dtype that NumPy's loop takes.

    Examples
    --------
    >>> from pyfinch.logic.text import parse
    >>> text = "plan(query(alias(A), mapjoin(immediate(/), immediate(1.0), immediate(2))), produces(alias(A)))"
    >>> print(converted(parse(text)).bodies[0].rhs)
    mapjoin(immediate(/), immediate(1.0), mapjoin(immediate(cast(float64)), immediate(2)))
    """
    done: dict[Any, Any] = {}
    dtypes: dict[Any, DType] = {}
    for term in postorder(program):
        children = [done[child] for child in term.children]
        made: Any = term.with_children(children)
        match term:
            case Table(Deferred(_, kind), _):
                dtypes[term] = kind.dtype if isinstance(kind, FType) else np.dtype(kind)
            case Immediate(bool() | int() | float() | complex() | np.generic() as value):
                dtypes[term] = np.asarray(value).dtype
            case MapJoin(Immediate(op), args):
                own = [dtypes[arg] for arg in args]
                dtypes[term] = op.result_dtype(*own)
                names = [Value(f"x{k}", dtype) for k, dtype in enumerate(own)]
                call = converted_call(op, tuple(names), dtypes[term])
                made = _mapjoins(call, {name: done[arg] for name, arg in zip(names, args, strict=True)})
            case Aggregate(Immediate(op), init, arg, idxs):
                dtype = dtypes[init]
                while (wider := op.result_dtype(dtype, dtypes[arg])) != dtype:
                    dtype = wider
                dtypes[term] = dtype
                one = Value("x", dtypes[arg])
                assign = converted_assignment(Access(Variable("R", _number_type(dtype)), ()), op, one)
                start = Immediate(cast(dtype)(init.value)) if isinstance(init, Immediate) else done[init]
                made = Aggregate(Immediate(assign.op), start, _mapjoins(assign.rhs, {one: done[arg]}), idxs)
            case Reorder(arg, _) | Relabel(arg, _) | Subquery(_, arg) | Reformat(_, arg) | Query(_, arg):
                if arg in dtypes:
                    dtypes[term] = dtypes[arg]
        done[term] = made
    result = done[program]
    if not isinstance(result, Plan):
        raise ScheduleError(f"a program is a plan, got {program}")
    return result


def _number_type(dtype: DType) -> FType:
    return Format((Element(None, dtype),), ()).specify(dtype, np.zeros((), dtype)[()])


def _mapjoins(expression: LoopNode, leaves: dict[Value, Any]) -> LogicNode:
    """A scalar expression over values as map-joins over what the values stand for."""
    done: dict[Any, Any] = {}
    for term in postorder(expression):
        match term:
            case Value():
                done[term] = leaves[term]
            case Literal(value):
                done[term] = Immediate(value)
            case Call(op, args, _):
                done[term] = MapJoin(Immediate(op), tuple(done[arg] for arg in args))
    result: LogicNode = done[expression]
    return result
