"""The smallest case that still fails: parts of the program and of the tensors are taken away while it does."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import count
from typing import Any

import numpy as np

from pyfinch.algebra.errors import PyFinchError
from pyfinch.algebra.term import postorder, preorder
from pyfinch.algebra.values import same_value
from pyfinch.difftest.case import Case, store, with_tensors
from pyfinch.formats.format import Format
from pyfinch.formats.levels import Dense, Element
from pyfinch.formats.tensor import Tensor
from pyfinch.logic.grammar import validate
from pyfinch.logic.interpreter import evaluate
from pyfinch.logic.nodes import (
    Aggregate,
    Alias,
    Deferred,
    Field,
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
)

__all__ = ["shrink"]

Failing = Callable[[Case], bool]


def shrink(case: Case, fails: Failing, *, attempts: int = 2000) -> Case:
    """The smallest case found that fails.

    Every step makes a case simpler by one measure: fewer operations, then a shorter text, then smaller, simpler
    tensors. Where nothing upstream of a failure matters, it is replaced by a tensor of what it gives.

    Parameters
    ----------
    case : Case
        One that fails.
    fails : callable
        Whether a case still fails in the way that matters; a case that is no legal program any more is not asked about.
    attempts : int
        How many cases are tried at most.

    Examples
    --------
    >>> from pyfinch.difftest import random_case
    >>> case = random_case(3)
    >>> small = shrink(case, lambda case: "mapjoin" in str(case.program))
    >>> str(small.program).count("mapjoin")
    1
    """
    tried: set[Any] = set()
    left = attempts
    while True:
        size = _measure(case)
        for smaller in _smaller(case):
            key = _key(smaller)
            if key in tried or _measure(smaller) >= size:
                continue
            tried.add(key)
            left -= 1
            if left < 0:
                return case
            if _is_legal(smaller) and fails(smaller):
                case = smaller
                break
        else:
            return case


def _key(case: Case) -> Any:
    tensors = [f"{name} {tensor.ftype} {tensor.todense().tolist()}" for name, tensor in sorted(case.tensors.items())]
    return case.program, "\n".join(tensors)


def _is_legal(case: Case) -> bool:
    try:
        validate(case.program, "raw")
        with np.errstate(all="ignore"):
            evaluate(case.program, case.tensors)
    except (PyFinchError, ValueError, KeyError, TypeError):
        return False
    return True


def _measure(case: Case) -> tuple[int, ...]:
    """How large a case is; what counts most comes first."""
    terms = [term for term in preorder(case.program) if not isinstance(term, Field)]
    operations = sum(isinstance(term, MapJoin | Aggregate | Reformat) for term in terms)
    tensors = list(case.tensors.values())
    sparse = sum(not isinstance(level, Dense) for tensor in tensors for level in tensor.ftype.levels[:-1])
    permuted = sum(tensor.ftype.mode_order != tuple(range(tensor.ndim)) for tensor in tensors)
    odd = sum(tensor.dtype != np.float64 for tensor in tensors) + sum(not _is_zero(t.fill_value) for t in tensors)
    dense = [np.asarray(tensor.todense()) for tensor in tensors]
    filled = sum(int(np.count_nonzero(array)) for array in dense)
    plain = sum(int(np.count_nonzero((array != 0) & (array != 1))) for array in dense)
    return operations, len(terms), len(tensors), sum(a.size for a in dense), sparse, permuted, odd, filled, plain


def _is_zero(value: Any) -> bool:
    return same_value(value, np.zeros((), np.asarray(value).dtype)[()])


def _smaller(case: Case) -> Iterator[Case]:
    """Simpler cases, the greatest steps first."""
    yield from _fewer_results(case)
    yield from _simpler_programs(case)
    yield from _smaller_shapes(case)
    yield from _simpler_tensors(case)


# ------------------------------------------------------------------------------------------------------------ program


def _fewer_results(case: Case) -> Iterator[Case]:
    *queries, last = case.program.bodies
    assert isinstance(last, Produces)
    if len(last.args) < 2:
        return
    for query, result in zip(queries, last.args, strict=True):
        yield with_tensors(Plan((query, Produces((result,)))), case.tensors, case.name)


def _simpler_programs(case: Case) -> Iterator[Case]:
    """The program with a node replaced by a part of it, or by a tensor of its value."""
    nodes: list[Any] = list(dict.fromkeys(preorder(case.program)))
    for node in nodes:
        for simpler in _simpler(node):
            yield with_tensors(_replaced(case.program, node, simpler), case.tensors, case.name)
    for node in nodes:
        if isinstance(node, Subquery) and not isinstance(node.arg, Table):
            yield from _computed(case, node)


def _simpler(node: Any) -> Iterator[LogicNode]:
    match node:
        case Query(lhs, rhs):
            parts = {term for term in postorder(rhs) if isinstance(term, Subquery) and term is not rhs}
            yield from (Query(lhs, part) for part in sorted(parts, key=lambda part: len(str(part))))
        case Subquery(_, Reorder(MapJoin(_, args), _)):
            # An argument under the fields of the result is an array of the same shape, up to broadcasting.
            yield from (inner for arg in args if (inner := _read(arg)) is not None)
        case Subquery(_, Reorder(Relabel(inner, _), _) | Aggregate(_, _, Relabel(inner, _), _) | Reformat(_, inner)):
            yield inner
        case Subquery(_, Reorder(Aggregate(_, _, MapJoin(_, args), _), _)):
            yield from (inner for arg in args if (inner := _read(arg)) is not None)


def _read(node: LogicNode) -> LogicNode | None:
    """What an argument of an operation reads, under whatever fields."""
    match node:
        case Reorder(Relabel(inner, _), _) | Relabel(inner, _):
            return inner
    return None


def _computed(case: Case, node: Subquery) -> Iterator[Case]:
    """The case with a tensor of what a part of the program gives."""
    alias = Alias("part")
    with np.errstate(all="ignore"):
        (value,) = evaluate(Plan((Query(alias, node), Produces((alias,)))), case.tensors)
    array = np.asarray(value).transpose()
    tensor = _stored(array, None)
    name = next(name for name in (f"T{k}" for k in count()) if name not in case.tensors)
    idxs = tuple(Field(f"{name}_{k}") for k in range(array.ndim))
    table = Subquery(node.lhs, Table(Deferred(name, tensor.ftype), idxs))
    yield with_tensors(_replaced(case.program, node, table), {**case.tensors, name: tensor}, case.name)


def _replaced(program: Plan, old: LogicNode, new: LogicNode) -> Plan:
    done: dict[Any, Any] = {}
    for term in postorder(program):
        done[term] = new if term is old else term.with_children([done[child] for child in term.children])
    made: Plan = done[program]
    return made


# ------------------------------------------------------------------------------------------------------------ tensors


def _smaller_shapes(case: Case) -> Iterator[Case]:
    """All modes of one size made smaller, or a single one."""
    modes = [(name, mode) for name, tensor in case.tensors.items() for mode in range(tensor.ndim)]
    sizes = sorted({case.tensors[name].shape[mode] for name, mode in modes})
    groups = [[one for one in modes if case.tensors[one[0]].shape[one[1]] == size] for size in sizes]
    for group in [*groups, *([one] for one in modes)]:
        size = case.tensors[group[0][0]].shape[group[0][1]]
        for smaller in sorted({1, size - 1} & set(range(1, size))):
            changed = dict(case.tensors)
            for name, mode in group:
                tensor = changed[name]
                array = np.asarray(tensor.todense()).take(range(smaller), axis=mode)
                changed[name] = _stored(array, tensor)
            yield with_tensors(case.program, changed, case.name)


def _simpler_tensors(case: Case) -> Iterator[Case]:
    for name, tensor in case.tensors.items():
        for simpler in _simpler_tensor(tensor):
            yield with_tensors(case.program, {**case.tensors, name: simpler}, case.name)


def _simpler_tensor(tensor: Tensor) -> Iterator[Tensor]:
    array = np.asarray(tensor.todense())
    # What the program reads is the storage, so another mode order is another shape.
    yield _stored(array.transpose(tensor.ftype.mode_order), tensor, order=tuple(range(tensor.ndim)))
    yield _stored(array, None, order=tensor.ftype.mode_order, fill=tensor.fill_value)
    if not _is_zero(tensor.fill_value):
        yield _stored(array, tensor, fill=tensor.dtype.type(0))
        yield _stored(
            np.where(array == tensor.fill_value, 0, array).astype(array.dtype), tensor, fill=array.dtype.type(0)
        )
    if array.dtype.kind != "c" and np.all(array.astype(np.float64).astype(array.dtype) == array):
        yield _stored(array.astype(np.float64), tensor, fill=np.float64(tensor.fill_value))
    if array.size:
        yield _stored(np.zeros_like(array), tensor)
        for value in (array.dtype.type(0), array.dtype.type(1)):
            for place in np.argwhere(array != value) if array.size <= 64 else ():
                simpler = array.copy()
                simpler[tuple(place)] = value
                yield _stored(simpler, tensor)


def _stored(array: Any, like: Tensor | None, *, order: tuple[int, ...] | None = None, fill: Any = None) -> Tensor:
    """An array stored as a tensor is, or dense."""
    levels = like.format.levels[:-1] if like is not None else (Dense(),) * array.ndim
    modes = order if order is not None else like.ftype.mode_order if like is not None else tuple(range(array.ndim))
    if fill is None:
        fill = like.fill_value if like is not None else array.dtype.type(0)
    keep = None if all(isinstance(level, Dense) for level in levels) else fill
    return store(array, Format((*levels, Element(None, array.dtype)), modes), fill, keep_unlike=keep)
