"""Lifting reductions in cells gives what sweeping over terms, as Finch.jl does, gives."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from pyfinch.algebra.operators import get
from pyfinch.algebra.term import Term
from pyfinch.logic.nodes import (
    Aggregate,
    Deferred,
    Field,
    Immediate,
    LogicNode,
    MapJoin,
    Reorder,
    Table,
    fields,
    union,
)
from pyfinch.logic.rewrite import Chain, Fixpoint, Prewalk, Rewrite
from pyfinch.schedule import laws
from pyfinch.schedule.pull_aggregates import pull_aggregates


def pull(node: Term) -> Term | None:
    if not isinstance(node, MapJoin):
        return None
    for place in reversed(range(len(node.args))):
        arg = node.args[place]
        others = node.args[:place] + node.args[place + 1 :]
        if not isinstance(arg, Aggregate):
            continue
        around = union(fields(other) for other in others)
        lawful = laws.distributes(node.op.value, arg.op.value) and laws.annihilates(node.op.value, arg.init.value)
        if lawful and len(around) == len(fields(arg)) and not set(around) & set(arg.idxs):
            args = (*node.args[:place], arg.arg, *node.args[place + 1 :])
            return Aggregate(arg.op, arg.init, MapJoin(node.op, args), arg.idxs)
    return None


def merge(node: Term) -> Term | None:
    match node:
        case Aggregate(op, init, Aggregate(inner_op, start, arg, inner), outer) if op is inner_op:
            if laws.is_identity(op.value, start.value):
                return Aggregate(op, init, arg, inner + outer)
    return None


def move(node: Term) -> Term | None:
    match node:
        case Reorder(Aggregate(op, init, arg, bound), idxs):
            return Aggregate(op, init, Reorder(arg, idxs + bound), bound)
    return None


def sweep(node: LogicNode) -> LogicNode:
    return Rewrite(Fixpoint(Prewalk(Chain([pull, merge, move]))))(node)


@st.composite
def expressions(draw: st.DrawFn) -> LogicNode:
    """Trees and DAGs of reductions, maps and reorders over a few fields; each reduction binds its own."""
    names = [Field(name) for name in "ij"]
    pool: list[LogicNode] = [
        Table(Deferred("A", None), tuple(names)),
        Table(Deferred("v", None), (names[0],)),
    ]
    for number in range(draw(st.integers(1, 12))):
        arg = draw(st.sampled_from(pool))
        match draw(st.integers(0, 3)):
            case 0:
                bound = Field(f"k{number}")
                inner = MapJoin(Immediate(get("*")), (arg, Table(Deferred("B", None), (bound, *fields(arg)[:1]))))
                op, init = draw(st.sampled_from([("+", 0.0), ("+", 1.0), ("max", 0.0)]))
                pool.append(Aggregate(Immediate(get(op)), Immediate(init), inner, (bound,)))
            case 1:
                pool.append(Reorder(arg, tuple(reversed(fields(arg)))))
            case _:
                others = draw(st.lists(st.sampled_from(pool), max_size=2))
                op = draw(st.sampled_from(["*", "*", "+"]))
                pool.append(MapJoin(Immediate(get(op)), (*others, arg)))
    return pool[-1]


@settings(max_examples=300, deadline=None)
@given(expressions())
def test_cells_and_sweeps_agree(expr: LogicNode) -> None:
    assert pull_aggregates(expr, fields) is sweep(expr)
