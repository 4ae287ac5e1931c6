"""Kernels that Finch.jl compiles of loop programs: one for each program and types, kept for the process."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pyfinch.algebra.operators import UserOperator
from pyfinch.algebra.term import postorder
from pyfinch.backends.finchjl.functions import function_text
from pyfinch.backends.finchjl.session import JuliaError, dropped, function
from pyfinch.backends.finchjl.tensors import Kept, Views, numbers_of, row, spec
from pyfinch.backends.finchjl.translate import Translated
from pyfinch.backends.steps import extent
from pyfinch.formats.format import FType
from pyfinch.formats.tensor import Tensor
from pyfinch.loops.nodes import Value, Variable
from pyfinch.loops.numbers import number_text
from pyfinch.loops.text import bindings_of, to_text

__all__ = ["Kernel", "TooNarrow", "compile_kernel"]


class TooNarrow(JuliaError):  # noqa: N818 - it ends as an error only where int64 is too narrow as well
    """An int32 was too narrow: most likely a coordinate's or a position's, for which a plan is lowered with int64."""


_kernels: dict[tuple[str, ...], int] = {}
_functions: dict[UserOperator, int] = {}


@dataclass(frozen=True, slots=True)
class Kernel:
    """A compiled program; `number` is its place on the Julia side."""

    number: int
    text: str
    scatter: bool
    places: tuple[tuple[int, int], ...]
    names: tuple[str, ...]

    def source(self) -> str:
        """The Julia code that Finch.jl made."""
        return str(function("kernel_source")(self.number))

    def run(
        self,
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
            described.extend([extent(list(operands), place) for place in self.places])
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
    if "OutOfMemoryError" in message:
        return MemoryError(f"Julia ran out of memory in\n{program}")
    kind = TooNarrow if "InexactError" in message and "Int32" in message else JuliaError
    return kind(f"{message}\nThe program that was sent:\n{program}")


def compile_kernel(
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
    room_spec = _scatter_spec if translated.scatter else _row_spec
    rooms = "\n".join(f"{room.variable.name} {room_spec(room.variable, room.fill)}" for room in translated.workspaces)
    names = tuple(sorted({term.name for term in postorder(program) if isinstance(term, Value)}))
    functions = "\n".join(
        f"{name} {_function(op)}" for name, op in bindings_of(program).items() if isinstance(op, UserOperator)
    )
    key = (text, reads, write, rooms, " ".join(names), functions)
    number = _kernels.get(key)
    if number is None:
        try:
            number = _kernels[key] = int(function("compile_kernel")(*key))
        except Exception as error:
            raise translated_error(error, text) from error
    places = tuple([room.place for room in translated.workspaces if room.place is not None])
    return Kernel(number, text, translated.scatter, places, names)


def _row_spec(room: Variable, fill: np.generic) -> str:
    """A workspace of one mode."""
    assert isinstance(room.type, FType)
    return spec(room.type, room.type.dtype.type(fill))


def _scatter_spec(room: Variable, fill: np.generic) -> str:
    """A workspace of the result's modes, each of which may be written in any order."""
    assert isinstance(room.type, FType)
    text = f"element({number_text(fill)})"
    for _ in range(room.type.ndim):
        text = f"sparse_dict({text})"
    return text


def _function(op: UserOperator) -> int:
    if op not in _functions:
        names, text = function_text(op)
        try:
            _functions[op] = int(function("make_function")(op.name, " ".join(names), text))
        except Exception as error:
            raise translated_error(error, text) from error
    return _functions[op]
