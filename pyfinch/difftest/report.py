"""A failing case as code to paste: a Python test that runs as it stands, and a script for Finch.jl alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from pyfinch.algebra.carriers import CastOperator
from pyfinch.algebra.dtypes import julia_name
from pyfinch.algebra.operator import Operator
from pyfinch.algebra.term import postorder
from pyfinch.difftest.case import Case
from pyfinch.difftest.run import Pair, wanted
from pyfinch.formats.format import Format
from pyfinch.formats.levels import Dense, Element, Pattern, SparseByteMap, SparseCOO, SparseList
from pyfinch.formats.tensor import Tensor
from pyfinch.logic.nodes import Alias, Deferred, Field, Immediate, Plan, Table
from pyfinch.logic.text import bindings_of, number_text, to_text

__all__ = ["julia_code", "python_test"]


def python_test(case: Case, pairs: list[Pair]) -> str:
    """A test module that runs the case on pairs and asserts that they agree.

    Examples
    --------
    >>> from pyfinch.difftest import random_case
    >>> code = python_test(random_case(1), [("default", "reference")])
    >>> namespace = {}
    >>> exec(code, namespace); namespace["test_case"]()
    """
    program = _named(case.program)
    formats = [(name, fmt) for name, fmt in bindings_of(program).items() if isinstance(fmt, Format)]
    lines = [
        "import numpy as np",
        "",
        "from pyfinch.difftest import case_of, run",
        "from pyfinch.formats.format import format",
        "from pyfinch.formats.tensor import Tensor",
        "",
        "",
        "def test_case() -> None:",
        "    nan, inf = np.nan, np.inf",
        "    tensors = {",
        *[f"        {name!r}: {_python_tensor(tensor)}," for name, tensor in case.tensors.items()],
        "    }",
        f"    formats = {{{', '.join(f'{name!r}: format({str(fmt)!r})' for name, fmt in formats)}}}",
        f"    program = {to_text(program)!r}",
        f"    outcome = run(case_of(program, tensors, formats=formats), {pairs!r})",
        "    assert outcome.agrees, outcome.mismatches",
        "",
    ]
    return "\n".join(lines)


def _named(program: Plan) -> Plan:
    """The program with each tensor's type named as the tensor is."""
    done: dict[Any, Any] = {}
    for term in postorder(program):
        if isinstance(term, Deferred):
            done[term] = Deferred(term.expr, _Name(term.expr))
        else:
            done[term] = term.with_children([done[child] for child in term.children])
    made: Plan = done[program]
    return made


class _Name:
    """A type that is known by a name."""

    def __init__(self, name: str) -> None:
        self.name = name


def _python_tensor(tensor: Tensor) -> str:
    buffers = ", ".join(f"({''.join(_python_array(b) + ', ' for b in level)})" for level in tensor.buffers)
    fill = _python_number(tensor.fill_value)
    return (
        f"Tensor.from_buffers({str(tensor.format)!r}, {tensor.shape!r}, [{buffers}], "
        f"fill_value=np.{tensor.dtype.name if tensor.dtype.kind != 'b' else 'bool_'}({fill}))"
    )


def _python_array(array: Any) -> str:
    return f"np.array([{', '.join(map(_python_number, array))}], {array.dtype.name!r})"


def _python_number(value: Any) -> str:
    number = np.asarray(value).item()
    if isinstance(number, complex):
        return f"complex({_python_number(number.real)}, {_python_number(number.imag)})"
    return repr(number)


# ------------------------------------------------------------------------------------------------------------- Julia


# What Finch.jl calls otherwise, or Julia has not: the name in the script, and its definition there.
_JULIA: Final = {
    "and": ("Finch.and", ""),
    "or": ("Finch.or", ""),
    "overwrite": ("Finch.overwrite", ""),
    "first": ("first_of", "first_of(x, y) = x"),
    "square": ("square", "square(x) = x * x"),
    "atan2": ("atan", ""),
    "logical_xor": ("logical_xor", "logical_xor(x, y) = (x != 0) != (y != 0)"),
    "!": ("logical_not", "logical_not(x) = x == 0"),
    "logaddexp": ("logaddexp", "logaddexp(x, y) = max(x, y) + log1p(exp(-abs(x - y)))"),
    "nextafter": ("nextafter", "nextafter(x, y) = x == y ? y : x < y ? nextfloat(x) : prevfloat(x)"),
}


def julia_code(case: Case) -> str:
    """A script that runs the case by Finch.jl's own compute and prints what dense NumPy gives beside.

    Finch.jl's indices are in reverse order, so arrays are printed transposed. Operators are Julia's: where its
    promotion is another than NumPy's, so are the results.
    """
    operators = {term.value for term in postorder(case.program) if isinstance(term, Immediate)}
    named = dict(sorted(_julia_operator(op) for op in operators if isinstance(op, Operator)))
    lines = ["using Finch, Finch.FinchLogic", "", *[text for text in named.values() if text]]
    lines += [f"{name} = {_julia_tensor(tensor)}" for name, tensor in case.tensors.items() if tensor.ndim]
    lines += [
        "",
        f"program = {_julia_node(case.program, case.tensors)}",
        "execute = Finch.LogicExecutor(Finch.DefaultLogicOptimizer(Finch.LogicCompiler()))",
        "for result in execute(program)",
        "    println(ndims(result) == 0 ? result[] : Array(result))",
        "end",
    ]
    for array in wanted(case):
        lines.append(f"# wanted: {_julia_array(array.transpose())}")
    return "\n".join(lines) + "\n"


def _julia_operator(op: Operator) -> tuple[str, str]:
    """An operator's name in a script and the definition that it needs, if any."""
    if isinstance(op, CastOperator):
        kind = julia_name(op.dtype)
        body = {"b": "x != 0", "i": f"trunc({kind}, x)", "u": f"trunc({kind}, x)"}.get(op.dtype.kind, f"{kind}(x)")
        return f"as_{op.dtype.name}", f"as_{op.dtype.name}(x) = {body}"
    return _JULIA.get(op.symbol, (op.symbol, ""))


def _julia_tensor(tensor: Tensor) -> str:
    dense: Any = tensor.todense().transpose(tuple(reversed(tensor.ftype.mode_order)))
    return f"Tensor({_julia_levels(tensor.ftype.levels, number_text(tensor.fill_value))}, {_julia_array(dense)})"


def _julia_levels(levels: Sequence[Any], fill: str) -> str:
    text = ""
    for level in reversed(levels):
        match level:
            case Element():
                text = f"Element({fill})"
            case Pattern():
                text = "Pattern()"
            case Dense():
                text = f"Dense({text})"
            case SparseList():
                text = f"SparseList({text})"
            case SparseCOO(n=n):
                text = f"SparseCOO{{{n}}}({text})"
            case SparseByteMap():
                text = f"SparseByteMap({text})"
    return text


def _julia_array(array: Any) -> str:
    """An array as Julia has it, first index fastest."""
    kind = julia_name(array.dtype)
    if not array.ndim:
        return number_text(array[()])
    values = ", ".join(number_text(value) for value in array.flatten(order="F"))
    flat = f"{kind}[{values}]"
    return flat if array.ndim == 1 else f"reshape({flat}, {', '.join(map(str, array.shape))})"


def _julia_node(node: Any, tensors: Mapping[str, Tensor]) -> str:
    parts = tuple(node.children)
    match node:
        case Table(Deferred(name, _), ()):
            # Finch.jl takes numbers as constants.
            number: Any = tensors[name].todense()[()]
            return f"immediate({number_text(number)})"
        case Deferred(name, _):
            return f"immediate({name})"
        case Field(name):
            return f"field(:{name})"
        case Alias(name):
            return f"alias(:{name})"
        case Immediate(Operator() as op):
            return f"immediate({_julia_operator(op)[0]})"
        case Immediate(Format() as fmt):
            fill = "0.0" if fmt.fill is None else number_text(fmt.fill)
            return f"immediate(Tensor({_julia_levels(fmt.levels, fill)}))"
        case Immediate(value):
            return f"immediate({number_text(value)})"
    word = type(node).__name__.lower()
    return f"{word}({', '.join(_julia_node(part, tensors) for part in parts)})"
