"""Machine code gives what the same source gives as plain Python."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pyfinch.backends.numba.tiers import Kernel
from pyfinch.formats.tensor import Tensor
from pyfinch.interop.convert import to_tensor
from pyfinch.loops.nodes import Block
from pyfinch.loops.text import parse
from tests.loops.types import SPGEMM, TYPES, ftype

SHAPES = {"A": (9, 9), "B": (9, 9), "C": (9, 9), "X": (9, 9), "Y": (9, 9), "x": (9,), "Z": (9, 9), "N": (9, 9)}


def body(expression: str, result: str = "R[i, j]", op: str = "=", init: str = "0.0") -> str:
    name = result.partition("[")[0]
    return f"{name} .= {init}\nfor i = _; for j = _; {result} {op} {expression} end end\n@freeze({name})\nreturn {name}"


PROGRAMS: dict[str, tuple[str, dict[str, Any]]] = {
    "intersection": (body("A[i, j] * B[i, j]"), {}),
    "union of three": (body("max(A[i, j] + B[i, j], C[i, j])"), {}),
    "choice": (body("ifelse(A[i, j] > 1.0, B[i, j], C[i, j])"), {}),
    "to coo": (body("A[i, j] - B[i, j]"), {"R": ftype("coo"), "B": ftype("coo")}),
    "to dcsr": (body("A[i, j] - B[i, j]"), {"R": ftype("dcsr"), "B": ftype("dcsr")}),
    "spmv": (body("A[i, j] * x[j]", "y[i]", "+="), {}),
    "diagonal": ("s .= 0.0\nfor i = _; s[] += A[i, i] * A[i, 0] end\n@freeze(s)\nreturn s", {}),
    "spgemm": (SPGEMM, {}),
    "sddmm": (
        "R .= 0.0\nfor i = _; for j = _; for k = _; R[i, j] += A[i, j] * (X[i, k] * Y[j, k]) end end end\n"
        "@freeze(R)\nreturn R",
        {},
    ),
    "gaps": (body("A[i, j] + B[i, j]", "y[i]", "<<min>>=", "Inf"), {"y": ftype("vector", fill=np.inf)}),
    "wrapping integers": (
        body("N[i, j] * N[i, j] - N[i, j]", init="Int8(0)"),
        {"R": ftype("csr", dtype="int8")},
    ),
    "sums of bools": (
        body("((A[i, j] == 0.0) + (B[i, j] == 0.0)) + A[i, j]", init="1.0"),
        {"R": ftype("csr", fill=1)},
    ),
    "complex numbers": (
        body("Z[i, j] / (Z[i, j] + ComplexF32(1.0, 2.0))", init="ComplexF32(0.0, 0.0)"),
        {"R": ftype("csr", dtype="complex64")},
    ),
    "sums of narrow floats": (
        body("F[i, j]", "s[]", "+=", "Float32(0.0)"),
        {"F": ftype("csr", dtype="float32"), "s": ftype("scalar", dtype="float32")},
    ),
}


def tensors_of(kernel: Kernel) -> list[Tensor]:
    """Operands of the right types."""
    made = []
    for var in kernel.source.operands:
        rng = np.random.default_rng(len(var.name) + ord(var.name[0]))
        shape = SHAPES.get(var.name, (9, 9))
        kind = var.type
        values = np.where(rng.random(shape) < 0.4, rng.integers(-9, 99, shape), 0).astype(kind.dtype)
        tensor = to_tensor(values, format=kind.format, fill_value=kind.dtype.type(0))
        made.append(Tensor.from_buffers(kind, shape, tensor.buffers, fill_value=tensor.fill_value))
    return made


@pytest.mark.parametrize("name", PROGRAMS)
def test_machine_code_equals_plain_python(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    text, types = PROGRAMS[name]
    program = parse(text, {**TYPES, **types})
    assert isinstance(program, Block)
    kernel = Kernel(program)
    tensors = tensors_of(kernel)
    shape = (9,) * kernel.source.result.type.ndim
    monkeypatch.setenv("PYFINCH_COMPILE", "never")
    plain = kernel(tensors, shape)
    monkeypatch.setenv("PYFINCH_COMPILE", "always")
    fast = kernel(tensors, shape)
    assert kernel._compiled is not None
    fast.validate()
    assert fast.ftype is plain.ftype
    for one, other in zip(fast.buffers[:-1], plain.buffers[:-1], strict=True):
        for a, b in zip(one, other, strict=True):
            np.testing.assert_array_equal(a, b)
    np.testing.assert_allclose(fast.todense(), plain.todense(), rtol=1e-6)


def test_numbas_own_switch_means_never(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYFINCH_COMPILE", "always")
    monkeypatch.setenv("NUMBA_DISABLE_JIT", "1")
    kernel = Kernel(parse(PROGRAMS["diagonal"][0], TYPES))  # type: ignore[arg-type]
    kernel(tensors_of(kernel), ())
    assert kernel._compiled is None


def test_a_first_small_call_is_not_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYFINCH_COMPILE", "auto")
    monkeypatch.delenv("NUMBA_DISABLE_JIT", raising=False)
    kernel = Kernel(parse(PROGRAMS["diagonal"][0], TYPES))  # type: ignore[arg-type]
    tensors = tensors_of(kernel)
    first = kernel(tensors, ())
    assert kernel._compiled is None
    second = kernel(tensors, ())
    assert kernel._compiled is not None
    assert first.todense() == second.todense()
