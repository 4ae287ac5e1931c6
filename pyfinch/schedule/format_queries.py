"""Pass: give each query a storage format."""

from __future__ import annotations

from dataclasses import replace

from pyfinch.algebra.values import as_scalar, is_special
from pyfinch.formats.format import Format
from pyfinch.formats.levels import Dense, Element, Level, SparseList
from pyfinch.logic.nodes import Alias, Deferred, Immediate, LogicNode, Plan, Query, Reformat, Table
from pyfinch.schedule.traits import Rep, Trait, infer, spread

__all__ = ["format_of", "format_queries"]


def format_queries(plan: Plan) -> Plan:
    """Give each query without a ``reformat`` the format that its structure asks for.

    In: a flat, concordant plan whose tables' types are ftypes. Out: ``query(ALIAS, table(…))`` or
    ``query(ALIAS, reformat(FORMAT, …))``, every leaf with its dtype; the fill is given where it is static,
    and left open where it is an expression over fills that are known at run time. Levels are outermost
    first, so in reverse order of the fields. A result's format is a function of its operands' types:

    - csr * csr, csr * dense, csr + csr, csr + 1, -csr: csr; csr + dense: dense;
    - csr @ csr: csr; csr @ dense: dense; csr * vector (broadcast): csr;
    - csr.sum(axis): a dense vector, over either axis; of operands that are sparse in every mode a sparse one;
    - sparse vector outer sparse vector, coo with coo: sparse_list(sparse_list).

    Finch.jl takes hash tables for sparse levels and makes ``csr + 1`` dense and the column sums of a csr
    sparse.

    Examples
    --------
    >>> import numpy as np
    >>> from pyfinch.formats.format import format
    >>> from pyfinch.logic.text import parse
    >>> csr = format("csr").specify(np.float64, 0.0)
    >>> table = "query(alias(A), table(deferred(T, `csr`), field(j), field(i)))"
    >>> loops = "reorder(mapjoin(immediate(abs), relabel(alias(A), field(j), field(i))), field(j), field(i))"
    >>> plan = parse(f"plan({table}, query(alias(B), {loops}), produces(alias(B)))", {"csr": csr})
    >>> print(format_queries(plan).bodies[1].rhs.tensor.value)
    dense(sparse_list(element(0.0, float64)))
    """
    known: dict[Alias, Rep] = {}
    bodies: list[LogicNode] = []
    for statement in plan.bodies:
        match statement:
            case Query(lhs, Table() as rhs):
                known[lhs] = infer(rhs, known)
            case Query(lhs, Reformat(Immediate(Format() as target), arg) as rhs):
                known[lhs] = rep = infer(rhs, known)
                statement = Query(lhs, Reformat(Immediate(_with_leaf(target, rep)), arg))
            case Query(lhs, rhs):
                known[lhs] = rep = spread(infer(rhs, known), rhs)
                statement = Query(lhs, Reformat(Immediate(format_of(rep)), rhs))
        if isinstance(statement, Query) and not known[statement.lhs].idxs:
            known[statement.lhs] = _number(statement.lhs, known[statement.lhs])
        bodies.append(statement)
    return Plan(tuple(bodies))


def _number(lhs: Alias, rep: Rep) -> Rep:
    """A result without fields: a number that is known at run time, and so no obstacle to sparsity."""
    return replace(rep, fill=Deferred(f"value of {lhs.name}", rep.dtype), constant=True)


def format_of(rep: Rep) -> Format:
    """The format for a result of some structure."""
    levels: list[Level] = []
    for trait in reversed(rep.traits):
        match trait:
            case Trait.DENSE | Trait.EXTRUDE:
                levels.append(Dense())
            case Trait.SPARSE | Trait.REPEAT:
                levels.append(SparseList())
    return Format((*levels, _leaf(rep)), tuple(range(len(levels))))


def _leaf(rep: Rep) -> Element:
    match rep.fill:
        case Immediate(value) if is_special(value):
            return Element(as_scalar(value, rep.dtype), rep.dtype)
        case _:
            return Element(None, rep.dtype)


def _with_leaf(target: Format, rep: Rep) -> Format:
    """The format with the leaf's dtype and fill, where it left them open."""
    leaf = target.leaf
    if isinstance(leaf, Element) and (leaf.dtype is None or leaf.fill is None):
        return replace(target, levels=(*target.levels[:-1], _leaf(rep)))
    return target
