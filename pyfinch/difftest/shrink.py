"""The smallest case that still fails: parts of the program and of the tensors are taken away while it does."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from pyfinch.algebra.term import postorder, preorder
from pyfinch.difftest.case import Case
from pyfinch.formats.convert import build
from pyfinch.formats.format import Format
from pyfinch.formats.levels import Dense, Element
from pyfinch.formats.tensor import Tensor
from pyfinch.logic.interpreter import evaluate
from pyfinch.logic.nodes import Deferred, LogicNode, MapJoin, Plan, Produces, Query, Relabel, Reorder, Subquery, Table

__all__ = ["shrink"]

Failing = Callable[[Case], bool]


def shrink(case: Case, fails: Failing, *, attempts: int = 2000) -> Case:
    """The smallest case found that fails.

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
    >>> small = shrink(case, lambda case: len(case.tensors) > 0)
    >>> len(str(small.program)) <= len(str(case.program))
    True
    """
    tried: set[str] = set()
    left = attempts
    while True:
        for smaller in _smaller(case):
            key = _key(smaller)
            if key in tried:
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


def _key(case: Case) -> str:
    tensors = [f"{name} {tensor.ftype} {tensor.todense().tolist()}" for name, tensor in sorted(case.tensors.items())]
    return "\n".join([str(case.program), *tensors])


def _is_legal(case: Case) -> bool:
    try:
        with np.errstate(all="ignore"):
            evaluate(case.program, case.tensors)
    except Exception:
        return False
    return True


def _smaller(case: Case) -> Iterator[Case]:
    """Simpler cases, the greatest steps first."""
    yield from _fewer_results(case)
    yield from _smaller_programs(case)
    yield from _smaller_tensors(case)


def _used(program: Plan, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    names = {term.expr for term in postorder(program) if isinstance(term, Deferred)}
    return {name: tensor for name, tensor in tensors.items() if name in names}


def _fewer_results(case: Case) -> Iterator[Case]:
    *queries, last = case.program.bodies
    assert isinstance(last, Produces)
    if len(last.args) < 2:
        return
    for query, result in zip(queries, last.args, strict=True):
        program = Plan((query, Produces((result,))))
        yield Case(program, _used(program, case.tensors), case.name)


def _smaller_programs(case: Case) -> Iterator[Case]:
    """The program with a node replaced by a part of it."""
    whole = [query.rhs for query in case.program.bodies if isinstance(query, Query)]
    parts = {term for rhs in whole for term in postorder(rhs) if isinstance(term, Subquery)}
    for place, rhs in enumerate(whole):
        for part in sorted(parts, key=lambda node: len(str(node))):
            if part is not rhs:
                yield _with_query(case, place, part)
    nodes: list[Any] = list(dict.fromkeys(preorder(case.program)))
    for node in nodes:
        for simpler in _simpler(node):
            program = _replaced(case.program, node, simpler)
            if program is not case.program:
                yield Case(program, _used(program, case.tensors), case.name)


def _with_query(case: Case, place: int, rhs: LogicNode) -> Case:
    *queries, last = case.program.bodies
    query = queries[place]
    assert isinstance(query, Query)
    queries[place] = Query(query.lhs, rhs)
    program = Plan((*queries, last))
    return Case(program, _used(program, case.tensors), case.name)


def _simpler(node: Any) -> Iterator[LogicNode]:
    match node:
        case Subquery(_, Reorder(MapJoin(_, args), _)):
            # An argument under the fields of the result is an array of the same shape, up to broadcasting.
            for arg in args:
                match arg:
                    case Reorder(Relabel(inner, _), _) | Relabel(inner, _):
                        yield inner
        case Subquery(_, Reorder(Relabel(Subquery() as inner, _), _)):
            yield inner


def _replaced(program: Plan, old: LogicNode, new: LogicNode) -> Plan:
    done: dict[Any, Any] = {}
    for term in postorder(program):
        done[term] = new if term is old else term.with_children([done[child] for child in term.children])
    made: Plan = done[program]
    return made


def _smaller_tensors(case: Case) -> Iterator[Case]:
    for name, tensor in case.tensors.items():
        array = tensor.todense()
        if not tensor.ndim:
            continue
        fill = tensor.fill_value
        plain = Format((*[Dense()] * tensor.ndim, Element(None, tensor.dtype)), tensor.ftype.mode_order)
        if tensor.format.levels[:-1] != plain.levels[:-1]:
            yield _with_tensor(case, name, array, plain, fill)
        for value in (fill, tensor.dtype.type(1)):
            for place in np.argwhere(array != value) if array.size <= 64 else ():
                simpler = array.copy()
                simpler[tuple(place)] = value
                if _weight(simpler, fill) < _weight(array, fill):
                    yield _with_tensor(case, name, simpler, tensor.format, fill)


def _weight(array: Any, fill: Any) -> tuple[int, int]:
    stored = array[array != fill]
    return len(stored), int(np.count_nonzero(stored != 1))


def _with_tensor(case: Case, name: str, array: Any, fmt: Format, fill: Any) -> Case:
    kept = np.ones(array.shape, np.bool_)
    if not all(isinstance(level, Dense) for level in fmt.levels[:-1]):
        kept = np.asarray(array != fill if fill == fill else array == array)
    coords = np.argwhere(kept).T.reshape(array.ndim, int(kept.sum())).astype(np.int64)
    tensor = build(array.shape, coords, array[kept], fmt, fill, in_order_of=tuple(range(array.ndim)))
    old = case.tensors[name]
    program = case.program
    if tensor.ftype is not old.ftype:
        for term in list(postorder(program)):
            if isinstance(term, Table) and term.tensor == Deferred(name, old.ftype):
                program = _replaced(program, term, Table(Deferred(name, tensor.ftype), term.idxs))
    return Case(program, {**case.tensors, name: tensor}, case.name)
