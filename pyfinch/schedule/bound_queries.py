"""Pass, pyfinch's own: no query may become a kernel of unbounded size."""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

from pyfinch.algebra.operator import Operator
from pyfinch.algebra.term import Term, postorder
from pyfinch.formats.format import FType
from pyfinch.logic.nodes import (
    Aggregate,
    Alias,
    Deferred,
    Immediate,
    LogicNode,
    MapJoin,
    Plan,
    Query,
    Reformat,
    Relabel,
    Reorder,
    Table,
    fields,
)
from pyfinch.logic.rewrite import Postwalk, Rewrite
from pyfinch.schedule.common import Fields, Names, intersect
from pyfinch.schedule.normalize_names import normalize_names

__all__ = ["LIMIT", "bound_queries"]

LIMIT = 128
_ARGUMENTS = 32
_SPARSE = 8


def bound_queries(plan: Plan, limit: int = LIMIT) -> Plan:
    """Split each query of more than ``limit`` map-joins, or that reads more than eight sparse tensors.

    In: a concordant plan. Out: the same; a part that is cut off is a query of its own before its user,
    stored in the loop order of its user, who reads it as ``reorder(relabel(ALIAS, FIELD…), FIELD…)``. Each
    query becomes one kernel, and compile time grows with its size; a long chain is cut into equal pieces,
    so that they can share a kernel. A merge of many sparse tensors looks at each of them at every step, so
    merging them eight at a time is faster to run, too. Finch.jl has no such pass.

    Examples
    --------
    >>> from pyfinch.logic.text import parse
    >>> leaf = "reorder(relabel(alias(A), field(i)), field(i))"
    >>> deep = f"mapjoin(immediate(abs), mapjoin(immediate(sqrt), mapjoin(immediate(exp), {leaf})))"
    >>> plan = parse(f"plan(query(alias(B), reorder({deep}, field(i))), produces(alias(B)))")
    >>> print(bound_queries(plan, limit=2).bodies[1].rhs.arg)
    mapjoin(immediate(abs), reorder(relabel(alias(A0), field(i0)), field(i0)))
    """
    names = Names(plan)
    bodies: list[LogicNode] = []
    sparse = {query.lhs for query in plan.bodies if isinstance(query, Query) and _is_sparse(query.rhs)}
    for statement in plan.bodies:
        if isinstance(statement, Query) and _is_large(statement.rhs, sparse, limit):
            bodies.extend(_split(statement, names, limit, sparse))
        else:
            bodies.append(statement)
    made = Plan(tuple(bodies))
    return plan if made is plan else normalize_names(made)


def _is_sparse(rhs: LogicNode) -> bool:
    match rhs:
        case Table(Deferred(_, FType() as ftype), _):
            return any(level.appends for level in ftype.levels)
    return False


def _is_large(rhs: LogicNode, sparse: set[Alias], limit: int) -> bool:
    return _size(rhs) > limit or len(sparse.intersection(postorder(rhs))) > _SPARSE


def _own_size(node: Term) -> int:
    """1 for a map-join of one or two arguments, more for one of more; 0 for other nodes."""
    return max(1, len(node.args) - 1) if isinstance(node, MapJoin) else 0


def _size(expr: LogicNode) -> int:
    return sum(_own_size(term) for term in postorder(expr))


def _split(query: Query, names: Names, limit: int, sparse: set[Alias]) -> Iterator[Query]:
    """The query, after those that were cut off it."""
    rhs = Rewrite(Postwalk(_narrow))(query.rhs)
    loops = _loops(rhs)
    done: dict[Term, Term] = {}
    sizes: dict[Term, int] = {}
    reads: dict[Term, frozenset[Term]] = {}  # the sparse tensors below a term
    cuts: dict[Term, LogicNode] = {}
    for term in postorder(rhs):
        now = term.with_children([done[child] for child in term.children])
        parts = list(dict.fromkeys(now.children))
        size = _own_size(now) + sum(sizes.get(child, 0) for child in parts)
        read = frozenset({term} & sparse).union(*[reads.get(child, frozenset()) for child in parts])
        replaced: dict[Term, Term] = {}
        for child in sorted(parts, key=lambda c: (-len(reads.get(c, ())), -sizes.get(c, 0))):
            fits = size <= limit and len(read) <= _SPARSE
            if fits or not isinstance(now, MapJoin) or not sizes.get(child, 0):
                break
            if child not in cuts:
                idxs = intersect(loops, fields(cast(LogicNode, child)))
                alias = names.alias()
                yield Query(alias, Reorder(_without_reorder(cast(LogicNode, child)), idxs))
                cuts[child] = Reorder(Relabel(alias, idxs), idxs)
            replaced[child] = cuts[child]
            size -= sizes.get(child, 0)
            rest = [frozenset({cuts[part]}) if part in replaced else reads.get(part, frozenset()) for part in parts]
            read = frozenset[Term]().union(*rest)
        now = now.with_children([replaced.get(child, child) for child in now.children])
        sizes[now] = size
        reads[now] = read
        done[term] = now
    yield Query(query.lhs, cast(LogicNode, done[rhs]))


def _loops(rhs: LogicNode) -> Fields:
    match rhs:
        case Reformat(_, arg) | Aggregate(_, _, arg, _):
            return _loops(arg)
        case _:
            return fields(rhs)


def _without_reorder(expr: LogicNode) -> LogicNode:
    match expr:
        case Reorder(MapJoin() as arg, _):
            return arg
        case _:
            return expr


def _narrow(node: LogicNode) -> LogicNode | None:
    """A fold of very many arguments as a fold of folds."""
    match node:
        case MapJoin(Immediate(Operator(arity=-1, associative=True)) as op, args) if len(args) > _ARGUMENTS:
            groups = [args[start : start + _ARGUMENTS] for start in range(0, len(args), _ARGUMENTS)]
            made = MapJoin(op, tuple([MapJoin(op, group) for group in groups]))
            return _narrow(made) or made
        case _:
            return None
