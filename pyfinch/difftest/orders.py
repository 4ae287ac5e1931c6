"""Comparing plans with Finch.jl's: names do not count, and where the order of loops is free, Finch.jl's is followed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from pyfinch.algebra.errors import PyFinchError
from pyfinch.logic.json_form import numbered
from pyfinch.logic.nodes import Aggregate, Alias, Field, LogicNode, Plan, Query, Reorder
from pyfinch.schedule.common import statements
from pyfinch.schedule.pipeline import FINCH
from pyfinch.schedule.set_loop_order import set_loop_order

__all__ = ["differing_passes", "same_up_to_names", "set_loop_order_as"]


def differing_passes(program: Plan, theirs: Sequence[tuple[str, Plan]]) -> Iterator[str]:
    """What differs where each of our passes runs on what Finch.jl gave to its own; ``theirs`` may be empty."""
    before = program
    for run, (name, after) in zip(FINCH, theirs, strict=bool(theirs)):
        try:
            made = set_loop_order_as(before, after) if run is set_loop_order else run(before)
        except PyFinchError as error:
            yield f"{name} of\n{before}\nfailed: {error}"
        else:
            if not same_up_to_names(made, after):
                yield f"{name} of\n{before}\ngave\n{made}\nnot\n{after}"
        before = after


def set_loop_order_as(plan: Plan, recorded: Plan) -> Plan:
    """`set_loop_order` of a plan, taking the recorded order wherever it is a legal one.

    Finch.jl breaks ties by the order of a hash set. Both results name the queries in one order, so the
    recorded loops of a query are found by comparing its body, and given back as what to prefer; one query
    after another, since later ones are written in terms of the storage orders of earlier ones.
    """
    preferred: dict[Alias, tuple[Field, ...]] = {}
    theirs = [s for s in statements(recorded) if isinstance(s, Query)]
    while True:
        made = set_loop_order(plan, preferred)
        ours = [s for s in statements(made) if isinstance(s, Query)]
        for mine, other in zip(ours, theirs, strict=True):
            (my_body, my_loops), (body, loops) = _loops(mine), _loops(other)
            if my_loops is None or loops is None or mine.lhs in preferred:
                continue
            names = _matching(body, my_body)
            wanted = tuple(names.get(idx, idx) for idx in loops)
            if wanted != my_loops:
                preferred[mine.lhs] = wanted
                break
        else:
            return made


def _loops(query: Query) -> tuple[LogicNode, tuple[Field, ...] | None]:
    match query.rhs:
        case Aggregate(_, _, Reorder(arg, idxs), _) | Reorder(arg, idxs):
            return arg, idxs
        case rhs:
            return rhs, None


def _matching(theirs: LogicNode, ours: LogicNode) -> dict[Field, Field]:
    """Their fields to ours, by place in two expressions of one shape."""
    names: dict[Field, Field] = {}
    stack: list[tuple[Any, Any]] = [(theirs, ours)]
    while stack:
        a, b = stack.pop()
        if isinstance(a, Field) and isinstance(b, Field):
            names[a] = b
        stack.extend(zip(a.children, b.children, strict=False))
    return names


def same_up_to_names(ours: LogicNode, theirs: LogicNode) -> bool:
    """Whether two programs differ in the names of aliases and fields only."""
    return numbered(ours) is numbered(theirs)
