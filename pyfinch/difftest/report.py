"""A failing case as code to paste: a Python test that runs as it stands, and a script for Finch.jl alone."""

from __future__ import annotations

from typing import Any

import numpy as np

from pyfinch.algebra.dtypes import julia_name
from pyfinch.difftest.case import Case
from pyfinch.difftest.run import Pair, wanted
from pyfinch.formats.levels import Dense, Element, Pattern, SparseByteMap, SparseCOO, SparseList
from pyfinch.formats.tensor import Tensor
from pyfinch.logic.nodes import Aggregate, Alias, Deferred, Field, Immediate, LogicNode, Plan
from pyfinch.logic.text import number_text, to_text

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
    lines = [
        "import numpy as np",
        "",
        "from pyfinch.api import registry  # noqa: F401",
        "from pyfinch.difftest import Case, run",
        "from pyfinch.formats.tensor import Tensor",
        "from pyfinch.logic.text import parse",
        "",
        "",
        "def test_case() -> None:",
        "    nan, inf = np.nan, np.inf",
        "    tensors = {",
    ]
    for name, tensor in case.tensors.items():
        lines.append(f"        {name!r}: {_python_tensor(tensor)},")
    lines += [
        "    }",
        f"    text = {to_text(_named(case.program))!r}",
        "    program = parse(text, {name: tensor.ftype for name, tensor in tensors.items()})",
        f"    outcome = run(Case(program, tensors), {pairs!r})",
        "    assert outcome.agrees, outcome.mismatches",
        "",
    ]
    return "\n".join(lines)


def _named(program: Plan) -> Plan:
    """The program with each tensor's type named as the tensor is."""
    done: dict[Any, Any] = {}
    from pyfinch.algebra.term import postorder

    for term in postorder(program):
        if isinstance(term, Deferred):
            done[term] = Deferred(term.expr, _Name(term.expr))
        else:
            done[term] = term.with_children([done[child] for child in term.children])
    made: Plan = done[program]
    return made


class _Name:
    """Prints as a name."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __str__(self) -> str:
        return self.name


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


def julia_code(case: Case) -> str:
    """A script that runs the case by Finch.jl's own compute and prints what dense NumPy gives beside.

    Finch.jl's indices are in reverse order, so arrays are printed transposed.
    """
    lines = ["using Finch, Finch.FinchLogic", ""]
    lines += [f"{name} = {_julia_tensor(tensor)}" for name, tensor in case.tensors.items()]
    lines += [
        "",
        f"program = {_julia_node(case.program)}",
        "run = Finch.LogicExecutor(Finch.DefaultLogicOptimizer(Finch.LogicCompiler()))",
        "for result in run(program)",
        "    println(ndims(result) == 0 ? result[] : Array(result))",
        "end",
    ]
    for array in wanted(case):
        lines.append(f"# wanted: {_julia_array(array.transpose())}")
    return "\n".join(lines) + "\n"


def _julia_tensor(tensor: Tensor) -> str:
    fill = number_text(tensor.fill_value)
    dense: Any = tensor.todense().transpose(tuple(reversed(tensor.ftype.mode_order)))
    if not tensor.ndim:
        return f"Scalar({fill}, {number_text(dense[()])})"
    text = ""
    for level in reversed(tensor.ftype.levels):
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
    return f"Tensor({text}, {_julia_array(dense)})"


def _julia_array(array: Any) -> str:
    """An array as Julia has it, first index fastest."""
    kind = julia_name(array.dtype)
    if not array.ndim:
        return number_text(array[()])
    values = ", ".join(number_text(value) for value in array.flatten(order="F"))
    flat = f"{kind}[{values}]"
    return flat if array.ndim == 1 else f"reshape({flat}, {', '.join(map(str, array.shape))})"


def _julia_node(node: Any) -> str:
    match node:
        case Deferred(name, _):
            return f"immediate({name})"
        case Field(name):
            return f"field(:{name})"
        case Alias(name):
            return f"alias(:{name})"
        case Aggregate(op, init, arg, idxs):
            parts: tuple[LogicNode, ...] = (op, init, arg, *idxs)
            return f"aggregate({', '.join(map(_julia_node, parts))})"
        case Immediate():
            return to_text(node)
    word = to_text(node).partition("(")[0]
    return f"{word}({', '.join(map(_julia_node, node.children))})"
