"""Pass, of the auto scheduler: choose the order of the loops of each query by its estimated cost."""

from __future__ import annotations

from pyfinch.logic.fills import apply_to_fills
from pyfinch.logic.nodes import Aggregate, Immediate, LogicNode, Plan, Query, Reorder, fields
from pyfinch.schedule.common import Fields
from pyfinch.schedule.joins import Join, operands_of
from pyfinch.schedule.push_fields import push_expression
from pyfinch.schedule.set_loop_order import set_loop_order
from pyfinch.schedule.sizes import Sizes
from pyfinch.schedule.traits import Trait

__all__ = ["order_loops"]

# What must be gained before the order that storage suggests is left.
_GAIN = 0.9


def order_loops(plan: Plan, sizes: Sizes) -> Plan:
    """Fix a total order of loops for each query.

    In and out as of `set_loop_order`. Its order, which follows the operands' storage alone, stays where it is good.
    Another one is taken where it costs clearly less by `joins.Join`: csr @ csc compares every row with every column
    unless the reduced loop stands between those of the result, which makes it Gustavson's algorithm ("Two Fast
    Algorithms for Sparse Matrices", ACM TOMS 4(3), 1978) for the price of a transposing copy. The order of the
    result's own fields stays, as the result's format follows from it.
    """

    def choose(query: Query) -> Query:
        made = _ordered(query, sizes)
        sizes.bind(made)
        return made

    return set_loop_order(plan, choose=choose)


def _ordered(query: Query, sizes: Sizes) -> Query:
    match query.rhs:
        case Aggregate(Immediate() as op, init, Reorder(_, loops) as whole, idxs) if len(loops) > 1:
            arg = push_expression(whole)
            query = Query(query.lhs, Aggregate(op, init, arg, idxs))
            better = _order(query, arg, sizes, not _skips_fill(op, init, arg, sizes))
            if better != loops:
                return Query(query.lhs, Aggregate(op, init, push_expression(Reorder(arg, better)), idxs))
    return query


def _order(query: Query, arg: LogicNode, sizes: Sizes, counts_fill: bool) -> Fields:
    """The loops of a reduction, the last one outermost."""
    loops = fields(arg)
    kept = fields(query.rhs)[::-1]
    operands = operands_of(arg, sizes)
    rep = sizes.rep(query.rhs)
    sparse = {idx for idx in rep.idxs if rep.trait(idx) is Trait.SPARSE}
    for idx in kept[1:]:  # one that only sparse operands have will be sparse in whatever order they are read
        own = [operand.size for operand in operands if idx in operand.size.extents]
        if own and all(size.sparse.intersection(size.idxs[: size.idxs.index(idx) + 1]) for size in own):
            sparse.add(idx)
    join = Join(operands, kept, frozenset(sparse), counts_fill)
    start = tuple(reversed(loops))
    if join.is_plain(start):
        return loops
    sizes.used = True
    best = join.best(start, kept, _GAIN)
    sizes.notes.append(
        f"{query.lhs.name}: loops {_names(best)}, estimated cost {join.cost(best):.3g}"
        + ("" if best == start else f"; {join.cost(start):.3g} for {_names(start)}, as stored")
    )
    return tuple(reversed(best))


def _names(order: Fields) -> str:
    return " ".join(idx.name for idx in order)


def _skips_fill(op: Immediate, init: LogicNode, arg: LogicNode, sizes: Sizes) -> bool:
    """Whether reducing the fill leaves the initial value as it is."""
    rep = sizes.rep(arg)
    dtype = init.value.dtype if isinstance(init, Immediate) else rep.dtype
    return apply_to_fills(op.value, [init, rep.fill], [dtype, rep.dtype]) is init
