"""Statements beyond one assignment in a nest: workspaces with masks, sieves, lets, several writes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pyfinch.algebra.errors import ScheduleError
from pyfinch.backends.numba.kernel import build
from pyfinch.interop.convert import to_tensor
from pyfinch.loops.nodes import Block
from pyfinch.loops.text import parse
from tests.loops.random_programs import Case, compare
from tests.loops.types import SPGEMM, TYPES, ftype


def matrices(fill: float = 0.0) -> dict[str, Any]:
    rng = np.random.default_rng(5)
    values = (np.where(rng.random((6, 6)) < 0.4, rng.integers(1, 9, (6, 6)), fill).astype(float) for _ in "ABC")
    return {name: to_tensor(x, format="csr", fill_value=fill) for name, x in zip("ABC", values, strict=True)}


def nest(result: str, body: str) -> str:
    return f"{result} .= 0.0; for i = _; for j = _; {body} end end; @freeze({result}); return {result}"


PROGRAMS = {
    "workspace under a mask": SPGEMM.replace("= W[j]", "= W[j] * C[i, j]"),
    "workspace joined with an operand": SPGEMM.replace("= W[j]", "= W[j] + C[i, j]"),
    "workspace under an operand's fill": SPGEMM.replace("= W[j]", "= max(W[j] - 20.0, C[i, j])"),
    "workspace filled under a mask": SPGEMM.replace("+= A", "+= C[i, j] * A"),
    "workspace through a function": SPGEMM.replace("= W[j]", "= max(W[j] - 20.0, 0.0)"),
    "mask": nest("R", "if A[i, j] > 3.0; R[i, j] = B[i, j] end;"),
    "mask of a sum": nest("s", "if A[i, j] > 3.0; s[] += B[i, j] end;"),
    "triangle": nest("R", "if i < j; R[i, j] = B[i, j] end;"),
    "let": nest("R", "let t = A[i, j] + B[i, j]; R[i, j] = t * t end;"),
    "let over gaps": nest("X", "let t = A[i, j] + B[i, j]; X[i, j] = t * t + 1.0 end;"),
    "two writes": nest("y", "y[i] += A[i, j]; y[i] += B[i, j];"),
    "index as a number": nest("R", "R[i, j] = A[i, j] * Float64(i + j)"),
    "fixed indices": "y .= 0.0; for j = _; y[j] = A[0, j] * B[4, j] end; @freeze(y); return y",
    "byte map": "W .= 0.0; for i = _; for j = _; W[j] += A[i, j] end end; @freeze(W); return W",
    "diagonals": "y .= 0.0; for j = _; y[j] = A[j, j] - B[j, 3] end; @freeze(y); return y",
}
SHAPES = {"W": (6,), "R": (6, 6), "X": (6, 6), "y": (6,), "s": ()}


@pytest.mark.parametrize("name", PROGRAMS)
def test_program(name: str) -> None:
    program = parse(PROGRAMS[name], TYPES | {key: x.ftype for key, x in matrices().items()})
    assert isinstance(program, Block)
    compare(Case(program, matrices(), SHAPES[program.bodies[0].tensor.name]))


@pytest.mark.parametrize(
    ("text", "types", "message"),
    [
        (SPGEMM, {"W": ftype("vector")}, "a workspace is a byte map over one mode"),
        (nest("W", "W[i, j] = A[i, j]"), {"W": ftype("sparse_list(sparse_bytemap(element()))")}, "byte map below"),
        ("R .= 0.0; for i = _; R[i, i] = x[i] end; @freeze(R); return R", {}, "not at hand"),
        ("y .= 0.0; for i = 0:3; y[i] = x[i + 1] end; @freeze(y); return y", {}, "index expression"),
        ("@freeze(y)", {}, "no declaration"),
        ("for i = _; end", {}, "a kernel needs"),
    ],
)
def test_what_the_backend_cannot_lower_is_refused(text: str, types: dict[str, Any], message: str) -> None:
    with pytest.raises(ScheduleError, match=message):
        build(parse(text, TYPES | types))  # type: ignore[arg-type]
