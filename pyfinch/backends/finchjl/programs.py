"""Logic programs for Finch.jl: its optimizer pass by pass, and its own compute from end to end."""

from __future__ import annotations

from typing import Any

import numpy as np

from pyfinch.algebra.dtypes import from_julia_name
from pyfinch.algebra.errors import ScheduleError
from pyfinch.algebra.operators import UserOperator
from pyfinch.algebra.term import postorder
from pyfinch.backends.finchjl import session
from pyfinch.backends.finchjl.kernels import translated_error
from pyfinch.backends.finchjl.logic import converted
from pyfinch.backends.finchjl.tensors import row, spec
from pyfinch.formats.convert import build
from pyfinch.formats.format import Format
from pyfinch.formats.levels import Dense, Element, SparseCOO
from pyfinch.formats.tensor import Tensor
from pyfinch.logic.nodes import Deferred, LogicNode, Plan
from pyfinch.logic.text import bindings_of, parse, to_text

__all__ = ["compute", "passes"]


def passes(program: Plan) -> list[tuple[str, Plan]]:
    """The program after each pass of Finch.jl's default optimizer, up to where it chooses formats.

    Parameters
    ----------
    program : Plan
        A raw Logic program; fields and aliases may have any names.

    Returns
    -------
    list of (str, Plan)
        The name of each pass and the program after it, in Finch.jl's order. Names repeat where a pass runs again.

    Raises
    ------
    BackendUnavailableError
        If Julia cannot be used here.
    JuliaError
        If Finch.jl fails on the program; the message has the program.

    Examples
    --------
    >>> import pyfinch as pf
    >>> from pyfinch.api.compute import program_of
    >>> from pyfinch.backends.finchjl import passes
    >>> program, _ = program_of([pf.sum(pf.lazy(pf.eye(3)))])
    >>> [name for name, _ in passes(program)][:2]  # doctest: +SKIP
    ['lift_subqueries', 'propagate_map_queries_backward']
    """
    text = to_text(program)
    bindings = bindings_of(program)

    def run() -> list[tuple[str, str]]:
        try:
            return [(str(name), str(after)) for name, after in session.function("passes")(text)]
        except Exception as error:
            raise translated_error(error, text) from error

    return [(name, _plan(parse(after, bindings))) for name, after in session.call(run)]


def _plan(node: LogicNode) -> Plan:
    if not isinstance(node, Plan):
        raise ScheduleError(f"Finch.jl gave back no plan but {node}")
    return node


def compute(program: Plan, tensors: dict[str, Tensor]) -> tuple[Tensor, ...]:
    """Run a raw Logic program by Finch.jl's own optimizer, format chooser and compiler.

    Parameters
    ----------
    program : Plan
        A raw program whose tables are deferred tensors.
    tensors : dict
        The tensors by the names of the deferred tables.

    Returns
    -------
    tuple of Tensor
        The results, modes in storage order (the program's last field outermost); dense where Finch.jl made them so,
        else as sorted coordinates.

    Raises
    ------
    BackendUnavailableError
        If Julia cannot be used here.
    JuliaError
        If Finch.jl fails on the program.
    ScheduleError
        If the program has an operator of a user's, which Finch.jl's optimizer does not take, or reads a tensor that was
        not given.
    """
    ready = converted(program)
    for value in bindings_of(ready).values():
        if isinstance(value, UserOperator):
            raise ScheduleError(
                f"Finch.jl's own compute does not take operator {value.name}; use use_backend('finchjl'), which does"
            )
    missing = {term.expr for term in postorder(ready) if isinstance(term, Deferred)} - set(tensors)
    if missing:
        raise ScheduleError(f"the program reads {', '.join(sorted(missing))}, for which no tensor was given")
    text = to_text(ready)
    names = "\n".join(f"{name} {spec(tensor.ftype, tensor.fill_value)}" for name, tensor in tensors.items())

    def run() -> list[tuple[Any, ...]]:
        numbers, kept = row(list(tensors.values()))
        given = np.array(numbers, np.int64)
        try:
            made = session.function("compute_program")(text, names, given.ctypes.data, len(given))
            results = [_arrays(result) for result in made]
        except Exception as error:
            raise translated_error(error, text) from error
        del kept
        return results

    return tuple(_tensor(*result) for result in session.call(run))


def _arrays(result: Any) -> tuple[Any, ...]:
    """A result's extents, coordinates, values and fill as NumPy arrays of our own."""
    extents, coords, values, fill, kind = result
    dtype = from_julia_name(str(kind))
    shape = tuple(int(n) for n in extents)
    places = np.array(coords, dtype=np.int64).reshape(len(shape), len(values))
    return shape, places, np.array(values, dtype=dtype), np.array(fill).astype(dtype)[0]


def _tensor(shape: tuple[int, ...], coords: Any, values: Any, fill: np.generic) -> Tensor:
    """Finch.jl's last mode is the outermost."""
    storage = shape[::-1]
    places = np.ascontiguousarray(coords[::-1] - 1)
    size = int(np.prod(storage, dtype=np.int64))
    if len(values) == size:
        fmt = Format((*[Dense()] * len(storage), Element(None, values.dtype)), tuple(range(len(storage))))
    else:
        fmt = Format((SparseCOO(len(storage)), Element(None, values.dtype)), tuple(range(len(storage))))
    return build(storage, places, values, fmt, fill)
