"""Kernels that Finch.jl compiles of loop programs: one for each program and types, kept for the process."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pyfinch.algebra.operators import UserOperator
from pyfinch.algebra.term import postorder
from pyfinch.backends.finchjl.functions import function_text
from pyfinch.backends.finchjl.session import JuliaError, dropped, function
from pyfinch.backends.finchjl.tensors import Kept, Views, numbers_of, row, spec
from pyfinch.backends.finchjl.translate import Translated
from pyfinch.formats.format import FType
from pyfinch.formats.levels import Element, Pattern
from pyfinch.formats.tensor import Tensor
from pyfinch.loops.nodes import Value
from pyfinch.loops.numbers import number_text
from pyfinch.loops.text import bindings_of, to_text

__all__ = ["Kernel", "TooNarrow", "compile_kernel"]


class TooNarrow(Exception):  # noqa: N818 - not an error: the plan is lowered again with int64
    """A result has coordinates or positions that its index dtype does not hold."""


_kernels: dict[tuple[str, ...], int] = {}
_functions: dict[UserOperator, int] = {}


@dataclass(frozen=True, slots=True)
class Kernel:
    """A compiled program; `number` is its place on the Julia side."""

    number: int
    text: str
    scatter: bool
    workspaces: int
    names: tuple[str, ...]

    def source(self, bridge: Any) -> str:
        """The Julia code that Finch.jl made."""
        return str(bridge.kernel_source(self.number))

    def run(
        self,
        bridge: Any,
        operands: Sequence[Tensor],
        ftype: FType,
        shape: tuple[int, ...],
        fill: np.generic,
        numbers: Sequence[int],
    ) -> Tensor:
        """Run on Julia's thread; the result views Julia's memory."""
        described, kept = row(operands)
        described.extend(shape)
        if self.scatter:
            described.extend(shape)
        else:
            described.extend(shape[-1:] * self.workspaces)
        described.extend(numbers)
        given = np.array(described, np.int64)
        out = np.empty(numbers_of(ftype), np.int64)
        try:
            number = function("run_kernel")(self.number, given.ctypes.data, len(given), out.ctypes.data, len(out))
        except Exception as error:
            raise translated_error(error, self.text) from error
        del kept
        return Views(out.tolist(), Kept(number, dropped)).tensor(ftype, shape, fill)


def translated_error(error: Exception, program: str) -> Exception:
    """A Julia exception as ours, with the program that was sent."""
    message = str(error).strip()
    if type(error).__name__ != "JuliaError":
        return error
    if "InexactError" in message and "Int32" in message:
        return TooNarrow()
    if "OutOfMemoryError" in message:
        return MemoryError(f"Julia ran out of memory in\n{program}")
    return JuliaError(f"{message}\nThe program that was sent:\n{program}")


def compile_kernel(
    bridge: Any,
    translated: Translated,
    operands: Sequence[tuple[str, FType, np.generic]],
    ftype: FType,
    fill: np.generic,
) -> Kernel:
    """The kernel of a program; operands are given by name, type and fill."""
    program = translated.program
    text = to_text(program)
    reads = "\n".join(f"{name} {spec(kind, value)}" for name, kind, value in operands)
    write = f"R {spec(ftype, fill)}"
    rooms = "\n".join(
        f"{room.name} {_scatter_spec(ftype, fill) if translated.scatter else spec(room.type, _start_of(room, fill))}"  # type: ignore[arg-type]
        for room in translated.workspaces
    )
    names = tuple(sorted({term.name for term in postorder(program) if isinstance(term, Value)}))
    functions = "\n".join(
        f"{name} {_function(bridge, op)}" for name, op in bindings_of(program).items() if isinstance(op, UserOperator)
    )
    key = (text, reads, write, rooms, " ".join(names), functions)
    number = _kernels.get(key)
    if number is None:
        try:
            number = _kernels[key] = int(function("compile_kernel")(*key))
        except Exception as error:
            raise translated_error(error, text) from error
    return Kernel(number, text, translated.scatter, len(translated.workspaces), names)


def _start_of(room: Any, fill: np.generic) -> Any:
    return np.asarray(fill).astype(room.type.dtype)[()]


def _scatter_spec(ftype: FType, fill: np.generic) -> str:
    """A workspace of the result's modes, each of which may be written in any order."""
    leaf = ftype.levels[-1]
    assert isinstance(leaf, Element | Pattern)
    text = f"element({number_text(fill)})"
    for _ in range(ftype.ndim):
        text = f"sparse_dict({text})"
    return text


def _function(bridge: Any, op: UserOperator) -> int:
    if op not in _functions:
        names, text = function_text(op)
        try:
            _functions[op] = int(bridge.make_function(op.name, " ".join(names), text))
        except Exception as error:
            raise translated_error(error, text) from error
    return _functions[op]
