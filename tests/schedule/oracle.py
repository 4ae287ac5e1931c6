"""The recordings of Finch.jl, and how our programs are compared with them."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from pyfinch.formats.format import Format, format
from pyfinch.formats.levels import Element
from pyfinch.logic.json_form import from_json, numbered
from pyfinch.logic.nodes import Aggregate, Alias, Field, LogicNode, Plan, Query, Reorder
from pyfinch.schedule.common import statements
from pyfinch.schedule.set_loop_order import set_loop_order

FOLDER = Path(__file__).parent.parent / "data" / "oracle"


@dataclass(frozen=True)
class Case:
    """One recorded program."""

    name: str
    program: Plan
    passes: tuple[tuple[str, Plan], ...]
    tensors: dict[str, np.ndarray]
    formats: dict[str, str]
    results: tuple[np.ndarray, ...]

    def before(self, number: int) -> Plan:
        """What Finch.jl gave to its pass of this number."""
        return self.passes[number - 1][1] if number else self.program


def _number(value: Any) -> Any:
    return float(value) if isinstance(value, str) else value


def _open(fmt: Format) -> Format:
    """The format without its leaf's fill, whose text tells no dtype."""
    return Format((*fmt.levels[:-1], Element()), fmt.mode_order)


def _array(data: Any) -> Any:
    return [_array(item) for item in data] if isinstance(data, list) else _number(data)


def _tensor(form: dict[str, Any]) -> np.ndarray:
    array = np.full(form["shape"], _number(form["fill"]), dtype=form["dtype"])
    for place, value in zip(form["coords"], form["values"], strict=True):
        array[tuple(index - 1 for index in place)] = _number(value)
    return array


@cache
def cases() -> tuple[Case, ...]:
    """All recorded cases."""
    return tuple(_cases())


def _cases() -> Iterator[Case]:
    for file in sorted(FOLDER.glob("*.json.gz")):
        with gzip.open(file) as stream:
            recording = json.load(stream)
        for case in recording["cases"]:
            types = {
                name: _open(format(tensor["format"])).specify(tensor["dtype"], _number(tensor["fill"]))
                for name, tensor in case["tensors"].items()
            }
            yield Case(
                name=case["name"],
                program=from_json(case["program"], types),
                passes=tuple((name, from_json(form, types)) for name, form in case["passes"]),
                tensors={name: _tensor(tensor) for name, tensor in case["tensors"].items()},
                formats={name: tensor["format"] for name, tensor in case["tensors"].items()},
                results=tuple(
                    np.asarray(_array(result["data"]), dtype=result["dtype"]).reshape(result["shape"])
                    for result in case["results"]
                ),
            )


def assert_same_value(got: tuple[np.ndarray, ...], case: Case) -> None:
    """Equal to what Finch.jl computed, up to the order of float additions."""
    assert len(got) == len(case.results)
    for ours, theirs in zip(got, case.results, strict=True):
        assert ours.shape == theirs.shape
        assert ours.dtype == theirs.dtype
        rtol = 1e-5 if ours.dtype == np.float32 else 1e-11
        np.testing.assert_allclose(ours, theirs, rtol=rtol, atol=1e-13)


def set_loop_order_as(plan: Plan, recorded: Plan) -> Plan:
    """`set_loop_order` of a plan, taking the recorded order wherever it is a legal one.

    Finch.jl breaks ties by the order of a hash set. Both results name the queries in one order, so the
    recorded loops of a query are found by comparing its body, and given back as what to prefer; one query
    after another, since later ones are written in terms of the storage orders of earlier ones.
    """
    preferred: dict[Alias, tuple[Field, ...]] = {}
    theirs = [s for s in statements(recorded) if isinstance(s, Query)]
    while True:
        made = set_loop_order(plan, preferred)
        ours = [s for s in statements(made) if isinstance(s, Query)]
        for mine, other in zip(ours, theirs, strict=True):
            (my_body, my_loops), (body, loops) = _loops(mine), _loops(other)
            if my_loops is None or loops is None or mine.lhs in preferred:
                continue
            names = _matching(body, my_body)
            wanted = tuple(names.get(idx, idx) for idx in loops)
            if wanted != my_loops:
                preferred[mine.lhs] = wanted
                break
        else:
            return made


def _loops(query: Query) -> tuple[LogicNode, tuple[Field, ...] | None]:
    match query.rhs:
        case Aggregate(_, _, Reorder(arg, idxs), _) | Reorder(arg, idxs):
            return arg, idxs
        case rhs:
            return rhs, None


def _matching(theirs: LogicNode, ours: LogicNode) -> dict[Field, Field]:
    """Their fields to ours, by place in two expressions of one shape."""
    names: dict[Field, Field] = {}
    stack = [(theirs, ours)]
    while stack:
        a, b = stack.pop()
        if isinstance(a, Field) and isinstance(b, Field):
            names[a] = b
        stack.extend(zip(a.children, b.children, strict=False))
    return names


def same_up_to_names(ours: LogicNode, theirs: LogicNode) -> bool:
    """Whether two programs differ in the names of aliases and fields only."""
    return numbered(ours) is numbered(theirs)
