"""Recordings of what Finch.jl answered: written where there is Julia, replayed everywhere.

A file is JSON, compressed if its name ends in ``.gz``: ``{"finch": …, "julia": …, "cases": […]}``. A case has the
program, its tensors, the program after each pass, and the results, all in Finch.jl's index order and counted from 1. A
number that JSON has not is a string (``"NaN"``, ``"-Inf"``); a complex number is ``{"re": …, "im": …}``, but ``[re,
im]`` as a literal of a program (`pyfinch.logic.json_form`). A program is recorded with NumPy's conversions written out.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from pyfinch.algebra.errors import ParseError, PyFinchError
from pyfinch.backends.comparison import same
from pyfinch.difftest.case import Case, store, with_tensors
from pyfinch.difftest.orders import differing_passes
from pyfinch.difftest.run import Pair
from pyfinch.difftest.run import run as run_case
from pyfinch.formats.format import Format, format
from pyfinch.formats.levels import Dense, Element
from pyfinch.formats.tensor import Tensor
from pyfinch.logic.interpreter import evaluate
from pyfinch.logic.json_form import from_json, to_json
from pyfinch.logic.nodes import Plan

__all__ = ["Recorded", "read", "record", "replay"]

Array = np.ndarray[Any, np.dtype[Any]]


@dataclass(frozen=True)
class Recorded:
    """One recorded program; arrays have Finch.jl's axes, the innermost first."""

    name: str
    program: Plan
    passes: tuple[tuple[str, Plan], ...]
    tensors: dict[str, Array]
    formats: dict[str, str]
    fills: dict[str, Any]
    results: tuple[Array, ...]
    error: str | None = None

    def case(self) -> Case:
        """The program with its tensors as they were stored."""
        tensors = {}
        for name, array in self.tensors.items():
            fmt, fill = _open(format(self.formats[name])), self.fills[name]
            is_dense = all(isinstance(level, Dense) for level in fmt.levels[:-1])
            tensors[name] = store(array.transpose(), fmt, fill, keep_unlike=None if is_dense else fill)
        return with_tensors(self.program, tensors, self.name)

    def before(self, number: int) -> Plan:
        """What Finch.jl gave to its pass of this number."""
        return self.passes[number - 1][1] if number else self.program


def read(path: str | Path) -> tuple[Recorded, ...]:
    """The cases of a file.

    Raises
    ------
    ParseError
        If it is no recording.
    """
    file = Path(path)
    try:
        raw = gzip.decompress(file.read_bytes()) if file.suffix == ".gz" else file.read_bytes()
        return tuple(_case(form) for form in json.loads(raw)["cases"])
    except (ValueError, KeyError, TypeError, gzip.BadGzipFile) as error:
        raise ParseError(f"{file} is no recording of Finch.jl: {error!r}") from error


def _case(form: dict[str, Any]) -> Recorded:
    types = {
        name: _open(format(tensor["format"])).specify(tensor["dtype"], _number(tensor["fill"]))
        for name, tensor in form["tensors"].items()
    }
    return Recorded(
        name=form["name"],
        program=_plan(form["program"], types),
        passes=tuple((name, _plan(after, types)) for name, after in form["passes"]),
        tensors={name: _tensor(tensor) for name, tensor in form["tensors"].items()},
        formats={name: tensor["format"] for name, tensor in form["tensors"].items()},
        fills={
            name: np.dtype(tensor["dtype"]).type(_number(tensor["fill"])) for name, tensor in form["tensors"].items()
        },
        results=tuple(
            np.asarray(_numbers(result["data"]), dtype=result["dtype"]).reshape(result["shape"])
            for result in form["results"]
        ),
        error=form.get("error"),
    )


def _plan(form: list[Any], types: dict[str, Any]) -> Plan:
    program = from_json(form, types)
    if not isinstance(program, Plan):
        raise TypeError(f"a program is a plan, got {program}")
    return program


def _open(fmt: Format) -> Format:
    """The format without its leaf's fill, whose text tells no dtype."""
    leaf = Element() if isinstance(fmt.leaf, Element) else fmt.leaf
    return Format((*fmt.levels[:-1], leaf), fmt.mode_order)


def _number(value: Any) -> Any:
    if isinstance(value, str):
        return float(value)
    return complex(_number(value["re"]), _number(value["im"])) if isinstance(value, dict) else value


def _numbers(data: Any) -> Any:
    return [_numbers(item) for item in data] if isinstance(data, list) else _number(data)


def _tensor(form: dict[str, Any]) -> Array:
    array = np.full(form["shape"], _number(form["fill"]), dtype=form["dtype"])
    for place, value in zip(form["coords"], form["values"], strict=True):
        array[tuple(index - 1 for index in place)] = _number(value)
    return array


# ---------------------------------------------------------------------------------------------------------- recording


def record(cases: Iterable[Case], path: str | Path) -> int:
    """Write what Finch.jl answers to cases: the program after each pass, and the results of its own compute.

    Returns how many cases were written. A case that Finch.jl refuses is written with its error.

    Raises
    ------
    BackendUnavailableError
        If Julia cannot be used here.
    """
    from pyfinch.backends.finchjl import compute, on_julia, passes
    from pyfinch.backends.finchjl.logic import converted

    versions = on_julia(
        lambda main: [str(main.seval(code)) for code in ("string(pkgversion(Finch))", "string(VERSION)")]
    )
    forms = []
    for case in cases:
        form: dict[str, Any] = {"name": case.name, "tensors": {n: _tensor_form(t) for n, t in case.tensors.items()}}
        program = converted(case.program)  # Finch.jl's operators do not take what NumPy's take
        form["program"] = to_json(program)
        form["passes"] = []
        try:
            form["passes"] = [[name, to_json(after)] for name, after in passes(program)]
            form["results"] = [_result_form(result) for result in compute(case.program, case.tensors)]
            form["error"] = None
        except PyFinchError as error:
            form["results"], form["error"] = [], str(error).splitlines()[0]
        forms.append(form)
    text = json.dumps({"finch": versions[0], "julia": versions[1], "cases": forms}, separators=(",", ":"))
    file = Path(path)
    file.write_bytes(gzip.compress(text.encode(), mtime=0) if file.suffix == ".gz" else text.encode())
    return len(forms)


def _tensor_form(tensor: Tensor) -> dict[str, Any]:
    coords, values = tensor.to_coords()
    inner_first = [coords[mode] + 1 for mode in reversed(tensor.ftype.mode_order)]
    return {
        "format": str(Format(tensor.format.levels, tuple(range(tensor.ndim)))),
        "shape": list(tensor.storage_shape[::-1]),
        "fill": _json(tensor.fill_value),
        "dtype": tensor.dtype.name,
        "coords": np.array(inner_first, np.int64).reshape(tensor.ndim, len(values)).T.tolist(),
        "values": [_json(value) for value in values],
    }


def _result_form(result: Tensor) -> dict[str, Any]:
    array = result.todense().transpose()
    return {
        "shape": list(array.shape),
        "dtype": array.dtype.name,
        "fill": _json(result.fill_value),
        "data": _nested(array),
    }


def _nested(array: Array) -> Any:
    return _json(array[()]) if array.ndim == 0 else [_nested(part) for part in array]


def _json(value: Any) -> Any:
    number = np.asarray(value).item()
    if isinstance(number, complex):
        return {"re": _json(number.real), "im": _json(number.imag)}
    if isinstance(number, float) and not np.isfinite(number):
        return "NaN" if number != number else "Inf" if number > 0 else "-Inf"
    return number


# ------------------------------------------------------------------------------------------------------------ replay


def replay(cases: Iterable[Recorded], on: Iterable[Pair] = ()) -> Iterator[tuple[str, str]]:
    """The name of each case that we answer otherwise than Finch.jl did, and how.

    Each pass runs on what Finch.jl gave to its own; where the order of loops is free its choice is followed. The
    results are those of dense NumPy, and of each pair that is asked for.
    """
    pairs = list(on)
    for case in cases:
        for text in differing_passes(case.program, case.passes):
            yield case.name, text
        if case.error is not None:
            continue
        with np.errstate(all="ignore"):
            ours = evaluate(case.program, case.tensors)
        for mine, theirs in zip(ours, case.results, strict=True):
            if mine.shape != theirs.shape or mine.dtype != theirs.dtype or not same(np.asarray(mine), theirs):
                yield case.name, f"dense NumPy gave {mine!r}\nnot\n{theirs!r}"
        for mismatch in run_case(case.case(), pairs).mismatches:
            yield case.name, f"{':'.join(mismatch.pair)}: {mismatch.kind}: {mismatch.text}"
