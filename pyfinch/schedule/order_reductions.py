"""Pass: keep reductions of sparse operands from visiting what is stored nowhere."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

from pyfinch.algebra.term import postorder
from pyfinch.logic.fills import apply_to_fills
from pyfinch.logic.nodes import Aggregate, Alias, Immediate, LogicNode, Plan, Query, Relabel, Reorder, Table
from pyfinch.logic.rewrite import Postwalk, Rewrite
from pyfinch.schedule.common import Fields, intersect, statements
from pyfinch.schedule.push_fields import push_expression
from pyfinch.schedule.traits import Rep, Trait, infer

__all__ = ["order_reductions"]

# What a field costs in the estimate, and what must be gained before Finch.jl's order is left.
_EXTENT = 1000.0
_FIBER = 10.0
_GAIN = 4.0


def order_reductions(plan: Plan) -> Plan:
    """Move the reduced loops of a query of sparse operands where far fewer iterations result.

    A pass of pyfinch's own: Finch.jl's order follows the operands' storage alone, so csr @ csc compares every row
    with every column, and csc @ csr scatters over the whole result. With the reduced loop between the result's
    loops it is Gustavson's algorithm ("Two Fast Algorithms for Sparse Matrices", ACM TOMS 4(3), 1978), for the price
    of a transposing copy of one operand, which `concordize` inserts. A reduction that unstored fills take part in,
    such as the greatest element of each column of a csr, counts them by the operator's repeat law if its loop is the
    inner one, and would visit each of them otherwise. The order of the result's own fields stays.

    In: what `set_loop_order` and `push_fields` leave. Out: the same.
    """
    known: dict[Alias, Rep] = {}
    changed: dict[LogicNode, LogicNode] = {}
    for statement in statements(plan):
        if not isinstance(statement, Query):
            continue
        match statement.rhs:
            case Aggregate(Immediate() as op, init, Reorder(arg, loops), idxs) if len(loops) > 1:
                better = _better_order(arg, loops, idxs, known, _skips_fill(op, init, arg, known))
                if better != loops:
                    new = Aggregate(op, init, push_expression(Reorder(arg, better)), idxs)
                    changed[statement] = Query(statement.lhs, new)
        known[statement.lhs] = _stored(changed.get(statement, statement), known)
    if not changed:
        return plan
    result = Rewrite(Postwalk(lambda node: changed.get(node)))(plan)
    assert isinstance(result, Plan)
    return result


def _stored(statement: LogicNode, known: dict[Alias, Rep]) -> Rep:
    assert isinstance(statement, Query)
    return infer(statement.rhs, known)


def _skips_fill(op: Immediate, init: LogicNode, arg: LogicNode, known: dict[Alias, Rep]) -> bool:
    """Whether reducing the fill leaves the initial value as it is."""
    rep = infer(arg, known)
    dtype = init.value.dtype if isinstance(init, Immediate) else rep.dtype
    return apply_to_fills(op.value, [init, rep.fill], [dtype, rep.dtype]) is init


def _better_order(arg: LogicNode, loops: Fields, reduced: Fields, known: dict[Alias, Rep], skips_fill: bool) -> Fields:
    """The order of least cost among those that keep the order of the result's fields; ``loops`` unless far better."""
    leaves = [term for term in postorder(arg) if isinstance(term, (Relabel, Table))]
    sparse = [leaf for leaf in leaves if Trait.SPARSE in infer(leaf, known).traits]
    if len(sparse) < 2 and (skips_fill or not sparse):
        return loops
    out = tuple(field for field in loops if field not in reduced)
    inner = tuple(field for field in loops if field in reduced)
    now = _cost(arg, leaves, loops, out, known, skips_fill)
    best, cost = loops, now / _GAIN
    for places in combinations(range(len(loops)), len(inner)):
        order = _merged(out, inner, places)
        if order != loops and (its := _cost(arg, leaves, order, out, known, skips_fill)) < cost:
            best, cost = order, its
    return best


def _merged(out: Fields, inner: Fields, places: tuple[int, ...]) -> Fields:
    own, reduced = iter(out), iter(inner)
    return tuple(next(reduced) if k in places else next(own) for k in range(len(out) + len(inner)))


def _cost(
    arg: LogicNode,
    leaves: Sequence[LogicNode],
    order: Fields,
    out: Fields,
    known: dict[Alias, Rep],
    skips_fill: bool,
) -> float:
    """Estimated iterations, transposing copies and random writes of a loop order."""
    copies = 0.0
    for leaf in leaves:
        rep = infer(leaf, known)
        stored = intersect(rep.idxs, order)
        if stored != intersect(order, stored):
            copies += _size(rep)
    expr = push_expression(Reorder(arg, order))
    rep = infer(expr, known)
    scattered = 0
    seen_reduced = False
    for field in reversed(order):
        if field not in out:
            seen_reduced = True
        elif seen_reduced:
            scattered += 1
    visits_all = scattered > 0 and not skips_fill
    cost = 1.0
    for field in order:
        cost *= _FIBER if rep.trait(field) is Trait.SPARSE and not visits_all else _EXTENT
    sparse_result = any(rep.trait(field) is Trait.SPARSE for field in out)
    return cost * (20.0 if scattered > 1 and sparse_result else 1.0) + copies


def _size(rep: Rep) -> float:
    size = 1.0
    for trait in rep.traits:
        size *= _FIBER if trait is Trait.SPARSE else _EXTENT
    return size
