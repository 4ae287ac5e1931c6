"""The reference meaning of Logic: evaluates any legal program, at any stage, with dense NumPy arrays.

Slow and obvious. A value is an array with one axis for each field, in the order of `fields`. A field that an
argument lacks broadcasts; a `reorder` may drop an axis of size 1 or add one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from pyfinch.algebra.errors import ScheduleError, ShapeError
from pyfinch.algebra.term import postorder
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
    Reformat,
    Relabel,
    Reorder,
    Subquery,
    Table,
    union,
)

__all__ = ["evaluate"]

Array = np.ndarray[Any, Any]


class _Value:
    """An array and the names of its axes."""

    __slots__ = ("array", "fields")

    def __init__(self, array: Any, fields: tuple[Field, ...]) -> None:
        self.array: Array = np.asarray(array)
        self.fields = fields
        if self.array.ndim != len(fields):
            names = ", ".join(field.name for field in fields)
            raise ShapeError(f"an array of shape {self.array.shape} cannot have the fields ({names})")


def evaluate(program: LogicNode, bindings: Mapping[str, Any] | None = None) -> tuple[Array, ...]:
    """What a program produces.

    Parameters
    ----------
    program
        A plan, legal at any stage of scheduling.
    bindings
        For each ``deferred`` name, a tensor, an array or a scalar. Axis p of an array is the p-th field of
        its table. A storage tensor is read in reverse storage order, since the last field is the outermost.

    Returns
    -------
    tuple of arrays
        One a production, its axes in the order of the production's fields.

    Raises
    ------
    ShapeError
        If arrays do not fit the fields.
    ScheduleError
        If the program is not legal.

    Examples
    --------
    >>> from pyfinch.logic.text import parse
    >>> total = "aggregate(immediate(+), immediate(0.0), table(deferred(T, nothing), field(i)), field(i))"
    >>> evaluate(parse(f"plan(query(alias(A), {total}), produces(alias(A)))"), {"T": np.arange(4.0)})
    (array(6.),)
    """
    given = bindings or {}
    bound: dict[Alias, _Value] = {}
    stack: list[LogicNode] = [program]
    while stack:
        statement = stack.pop()
        match statement:
            case Plan(bodies):
                stack.extend(reversed(bodies))
            case Query(lhs, rhs):
                bound[lhs] = _evaluate(rhs, bound, given)
            case Produces(args):
                return tuple([_evaluate(arg, bound, given).array for arg in args])
            case _:
                raise ScheduleError(f"{type(statement).__name__} is not a statement")
    return ()


def _evaluate(expr: LogicNode, bound: Mapping[Alias, _Value], given: Mapping[str, Any]) -> _Value:
    """The value of an expression; each distinct part is computed once."""
    values: dict[Any, Any] = {}
    for term in postorder(expr):
        match term:
            case Alias():
                # The left side of a subquery is an alias too; it has no value yet, and none is needed.
                values[term] = bound.get(term)
            case Field():
                pass
            case Immediate(value):
                values[term] = value
            case Deferred(name, _):
                values[term] = given.get(name)
            case LogicNode():
                values[term] = _combine(term, values)
    found = values[expr]
    if found is None:
        raise ScheduleError(f"{expr} is not bound")
    return found if isinstance(found, _Value) else _Value(found, ())


def _combine(node: LogicNode, values: Mapping[Any, Any]) -> _Value:
    """The value of a node over the values of its children."""

    def of(child: LogicNode) -> _Value:
        found = values[child]
        if found is None:
            raise ScheduleError(f"{child} is not bound")
        return found if isinstance(found, _Value) else _Value(found, ())

    match node:
        case Table(tensor, idxs):
            if values[tensor] is None:
                raise ScheduleError(f"{tensor} is not bound")
            return _Value(_dense(values[tensor]), idxs)
        case MapJoin(op, args):
            return _map(values[op], [of(arg) for arg in args])
        case Aggregate(op, init, arg, idxs):
            return _reduce(values[op], of(init).array[()], of(arg), idxs)
        case Reorder(arg, idxs):
            return _Value(_aligned(of(arg), idxs), idxs)
        case Relabel(arg, idxs):
            value = of(arg)
            # A number has no axes, whatever fields a relabel gives it.
            return value if isinstance(arg, Immediate) else _Value(value.array, idxs)
        case Reformat(_, arg) | Subquery(_, arg):
            return of(arg)
        case _:
            raise ScheduleError(f"{type(node).__name__} is not an expression")


def _dense(tensor: Any) -> Any:
    """The array of a tensor, axes in reverse storage order."""
    order = getattr(getattr(tensor, "ftype", None), "mode_order", None)
    if order is None:
        return tensor
    return np.asarray(tensor.todense()).transpose(tuple(reversed(order)))


def _aligned(value: _Value, idxs: tuple[Field, ...]) -> Array:
    """The array with an axis for each of ``idxs``; axes that it lacks have size 1."""
    array, own = value.array, list(value.fields)
    for axis in reversed(range(len(own))):
        if own[axis] in idxs:
            continue
        if array.shape[axis] != 1:
            raise ShapeError(f"field {own[axis].name} of size {array.shape[axis]} cannot be dropped")
        array = array.reshape(array.shape[:axis] + array.shape[axis + 1 :])
        del own[axis]
    if len(set(own)) != len(own):
        raise ScheduleError(f"two axes have one field: {', '.join(field.name for field in own)}")
    array = array.transpose([own.index(field) for field in idxs if field in own])
    sizes = iter(array.shape)
    return array.reshape([next(sizes) if field in own else 1 for field in idxs])


def _map(op: Any, args: list[_Value]) -> _Value:
    fields = union([arg.fields for arg in args])
    result = op(*[_aligned(arg, fields) for arg in args])
    return _Value(result, fields)


def _reduce(op: Any, init: Any, arg: _Value, idxs: tuple[Field, ...]) -> _Value:
    """Fold over some axes, one slice after another."""
    kept = tuple([field for field in arg.fields if field not in idxs])
    count = len(arg.fields) - len(kept)
    array = arg.array.transpose([arg.fields.index(field) for field in (*kept, *_present(idxs, arg))])
    shape = array.shape[: array.ndim - count]
    slices = array.reshape((*shape, -1)) if array.size else array.reshape((*shape, 0))
    if not count:
        return _Value(op(init, array), kept)
    result: Any = np.broadcast_to(np.asarray(init), shape)
    for place in range(slices.shape[-1]):
        result = op(result, slices[..., place])
    return _Value(result, kept)


def _present(idxs: tuple[Field, ...], arg: _Value) -> list[Field]:
    return [field for field in idxs if field in arg.fields]
