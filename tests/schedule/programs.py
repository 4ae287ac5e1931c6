"""Raw programs for the tests, built as a user's array code builds them: each operation is a subquery."""

from __future__ import annotations

from itertools import count
from typing import Any

import numpy as np

from pyfinch.algebra.operators import get
from pyfinch.formats.format import format
from pyfinch.logic.nodes import (
    Aggregate,
    Alias,
    Deferred,
    Field,
    Immediate,
    LogicNode,
    MapJoin,
    Plan,
    Produces,
    Query,
    Relabel,
    Reorder,
    Subquery,
    Table,
)

_numbers = count()


class Array:
    """An expression with axes; axis 0 is the outermost, so fields come in reverse."""

    def __init__(self, node: LogicNode, ndim: int) -> None:
        self.node = node
        self.ndim = ndim


def new_field() -> Field:
    return Field(f"x{next(_numbers)}")


def new_fields(number: int) -> tuple[Field, ...]:
    return tuple(new_field() for _ in range(number))


def subquery(node: LogicNode, ndim: int) -> Array:
    return Array(Subquery(Alias(f"X{next(_numbers)}"), node), ndim)


def tensor(name: str, spec: str, ndim: int | None = None, dtype: Any = np.float64, fill: Any = 0.0) -> Array:
    """An input of some format."""
    ftype = format(spec, ndim=ndim).specify(dtype, fill)
    return subquery(Table(Deferred(name, ftype), new_fields(ftype.ndim)), ftype.ndim)


def number(value: Any) -> Array:
    return Array(Immediate(value), 0)


def apply(op: str, *args: Array) -> Array:
    """A pointwise operation, shapes aligned at the last axis."""
    ndim = max(arg.ndim for arg in args)
    idxs = new_fields(ndim)
    named = [Reorder(Relabel(arg.node, idxs[: arg.ndim]), idxs[: arg.ndim]) for arg in args]
    return subquery(Reorder(MapJoin(Immediate(get(op, len(args))), tuple(named)), idxs), ndim)


def reduce(op: str, arg: Array, init: Any, *axes: int) -> Array:
    idxs = new_fields(arg.ndim)
    over = tuple(idxs[arg.ndim - 1 - axis] for axis in axes)
    return subquery(Aggregate(Immediate(get(op)), Immediate(init), Relabel(arg.node, idxs), over), arg.ndim - len(axes))


def transpose(arg: Array) -> Array:
    j, i = new_fields(2)
    return subquery(Reorder(Relabel(arg.node, (j, i)), (i, j)), 2)


def squeeze_and_expand(arg: Array, drop: int | None, add: int | None) -> Array:
    """Drop an axis of size 1, or add one."""
    idxs = list(new_fields(arg.ndim))
    kept = [idx for place, idx in enumerate(idxs) if place != drop]
    if add is not None:
        kept.insert(add, new_field())
    return subquery(Reorder(Relabel(arg.node, tuple(idxs)), tuple(kept)), len(kept))


def matmul(a: Array, b: Array) -> Array:
    """``a @ b`` for matrices and vectors."""
    i, j, k = new_fields(3)
    left = (k, i) if a.ndim == 2 else (k,)
    right = (j, k) if b.ndim == 2 else (k,)
    times = MapJoin(Immediate(get("*")), (Relabel(a.node, left), Relabel(b.node, right)))
    wanted = right[:-1] + left[1:]
    total = Aggregate(Immediate(get("+")), Immediate(0.0), times, (k,))
    return subquery(Reorder(total, wanted), len(wanted))


def outer(x: Array, y: Array) -> Array:
    i, j = new_fields(2)
    times = MapJoin(Immediate(get("*")), (Relabel(x.node, (i,)), Relabel(y.node, (j,))))
    return subquery(Reorder(times, (j, i)), 2)


def program(*arrays: Array) -> Plan:
    results = [Alias(f"R{place}") for place in range(len(arrays))]
    queries = [Query(alias, array.node) for alias, array in zip(results, arrays, strict=True)]
    return Plan((*queries, Produces(tuple(results))))
