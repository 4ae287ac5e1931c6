"""Shared by the ``isolate_`` passes: make every node of one kind a subquery of a new name."""

from __future__ import annotations

from typing import TypeVar

from pyfinch.algebra.term import Term, postorder
from pyfinch.logic.nodes import LogicNode, Plan, Subquery
from pyfinch.logic.rewrite import Postwalk, Rewrite
from pyfinch.schedule.common import Names, occurrences

__all__ = ["isolate"]

_SHARING = 8
_SMALL = 1000
N = TypeVar("N", bound=LogicNode)


def isolate(plan: Plan, kind: type[N]) -> Plan:
    """Every node of a kind becomes a subquery of its own; two equal nodes in two places get two names.

    That is what Finch.jl does. Where a program repeats its parts so often that its tree is much larger than
    its DAG (which Finch.jl could not traverse at all), equal nodes get one name instead.
    """
    holders: set[Term] = set()
    distinct = 0
    for term in postorder(plan):
        distinct += 1
        if isinstance(term, kind) or any(child in holders for child in term.children):
            holders.add(term)
    if not holders:
        return plan
    names = Names(plan)
    limit = _SHARING * distinct + _SMALL
    if sum(occurrences([plan], limit).values()) > limit:
        return Rewrite(Postwalk(lambda t: Subquery(names.alias(), t) if isinstance(t, kind) else None))(plan)
    made = _walk_tree(plan, kind, holders, names)
    assert isinstance(made, Plan)
    return made


def _walk_tree(root: Term, kind: type[N], holders: set[Term], names: Names) -> Term:
    """Rebuild the tree occurrence by occurrence; what holds no node of the kind is taken as it is."""
    stack: list[tuple[Term, list[Term]]] = [(root, [])]
    while True:
        term, made = stack[-1]
        while len(made) < len(term.children):
            child = term.children[len(made)]
            if child in holders:
                stack.append((child, []))
                break
            made.append(child)
        else:
            stack.pop()
            result = term.with_children(made)
            if isinstance(result, kind):
                result = Subquery(names.alias(), result)
            if not stack:
                return result
            stack[-1][1].append(result)
