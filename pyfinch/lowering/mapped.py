"""Which reductions are read once only, by a pointwise query over the same loops: the two become one kernel.

A product of sparse matrices is gathered row by row in a workspace. What is done to its elements next (a threshold, a
scale, a mask) is done where the workspace is emptied, and the product itself is stored nowhere.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pyfinch.algebra.term import postorder
from pyfinch.logic.nodes import (
    Aggregate,
    Alias,
    Field,
    Immediate,
    LogicNode,
    MapJoin,
    Plan,
    Query,
    Reformat,
    Relabel,
    Reorder,
)
from pyfinch.logic.rewrite import Postwalk, Rewrite

__all__ = ["Mapped", "mapped_reductions"]

# Pointwise operations that are put into the kernel of a product, at most.
_MOST = 32


@dataclass(frozen=True, slots=True)
class Mapped:
    """A reduction whose elements are mapped as they are stored: its alias, format, and itself in its user's fields."""

    alias: Alias
    fmt: Any
    reduction: Aggregate


def mapped_reductions(plan: Plan) -> dict[Alias, Mapped]:
    """For each query that maps the elements of a reduction that nothing else reads, that reduction."""
    reductions: dict[Alias, tuple[Any, Aggregate]] = {}
    readers: dict[Alias, int] = {}
    for statement in plan.bodies:
        for term in postorder(statement):
            if isinstance(term, Relabel) and isinstance(term.arg, Alias):
                readers[term.arg] = readers.get(term.arg, 0) + 1
        if not isinstance(statement, Query):
            for term in postorder(statement):
                if isinstance(term, Alias):
                    readers[term] = 2
    found: dict[Alias, Mapped] = {}
    for statement in plan.bodies:
        match statement:
            case Query(lhs, Reformat(Immediate(fmt), Aggregate(_, Immediate(), Reorder(), _) as reduction)):
                if readers.get(lhs) == 1 and _gathers(reduction):
                    reductions[lhs] = fmt, reduction
            case Query(lhs, Reformat(Immediate(), Reorder(MapJoin(), loops) as mapped)):
                made = _mapped(mapped, loops, reductions)
                if made is not None:
                    found[lhs] = made
    return found


def _gathers(reduction: Aggregate) -> bool:
    """Whether just the innermost mode of the result is scattered."""
    order = reduction.arg.idxs[::-1]  # type: ignore[attr-defined]
    first = next((k for k, idx in enumerate(order) if idx in reduction.idxs), len(order))
    return len([idx for idx in order[first:] if idx not in reduction.idxs]) == 1


def _mapped(mapped: Reorder, loops: tuple[Field, ...], reductions: dict[Alias, tuple[Any, Aggregate]]) -> Mapped | None:
    terms = list(postorder(mapped))
    if sum(isinstance(term, MapJoin) for term in terms) > _MOST:
        return None
    for term in terms:
        match term:
            case Relabel(Alias() as alias, stored) if alias in reductions and stored == loops:
                # A second access of the same alias under other fields would be another term.
                fmt, reduction = reductions.pop(alias)
                return Mapped(alias, fmt, _renamed(reduction, loops))
    return None


def _renamed(reduction: Aggregate, loops: tuple[Field, ...]) -> Aggregate:
    """The reduction, its result's fields named as its user names them."""
    order: tuple[Field, ...] = reduction.arg.idxs  # type: ignore[attr-defined]
    names: dict[Field, Field] = {}
    kept = iter(loops)
    for idx in order:
        if idx in reduction.idxs:
            fresh = idx
            while fresh in loops:
                fresh = Field(fresh.name + "'")
            names[idx] = fresh
        else:
            names[idx] = next(kept)

    def rename(node: LogicNode) -> LogicNode | None:
        return names.get(node) if isinstance(node, Field) else None

    made = Rewrite(Postwalk(rename))(reduction)
    assert isinstance(made, Aggregate)
    return made
