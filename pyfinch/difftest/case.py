"""A program with tensors for it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from pyfinch.algebra.errors import ParseError
from pyfinch.algebra.term import postorder
from pyfinch.formats.convert import build
from pyfinch.formats.format import Format
from pyfinch.formats.tensor import Tensor
from pyfinch.interop.convert import to_tensor
from pyfinch.logic.nodes import Deferred, Plan
from pyfinch.logic.text import parse

__all__ = ["Case", "case_of", "store", "with_tensors"]


@dataclass(frozen=True, eq=False)
class Case:
    """A program, and the tensors that its deferred tables stand for."""

    program: Plan
    tensors: dict[str, Tensor]
    name: str = ""


def case_of(
    text: str, tensors: Mapping[str, Any], name: str = "", *, formats: Mapping[str, Format] | None = None
) -> Case:
    """A case by the text of its program.

    Parameters
    ----------
    text : str
        A plan; a tensor is written ``deferred(T0, T0)``, its type being that of the tensor of that name.
    tensors : mapping of str to tensors or arrays
        An array is stored dense. The last field of a table is the outermost storage level.
    name : str
        What the case is called.
    formats : mapping of str to Format
        The formats that the text names between backticks.

    Examples
    --------
    >>> import numpy as np
    >>> case = case_of("plan(query(alias(A), table(deferred(T, T), field(i))), produces(alias(A)))", {"T": np.ones(3)})
    >>> case.program.bodies[0].rhs.tensor.type
    <ftype dense(element(0.0, float64))>
    """
    stored = {key: value if isinstance(value, Tensor) else to_tensor(value) for key, value in tensors.items()}
    program = parse(text, {**(formats or {}), **{key: tensor.ftype for key, tensor in stored.items()}})
    if not isinstance(program, Plan):
        raise ParseError(f"a program is a plan, got {type(program).__name__}")
    return Case(program, stored, name)


def with_tensors(program: Plan, tensors: Mapping[str, Tensor], name: str = "") -> Case:
    """A program on tensors of other types than it was written for."""
    done: dict[Any, Any] = {}
    for term in postorder(program):
        match term:
            case Deferred(expr, _) if expr in tensors:
                done[term] = Deferred(expr, tensors[expr].ftype)
            case _:
                done[term] = term.with_children([done[child] for child in term.children])
    names = {term.expr for term in done.values() if isinstance(term, Deferred)}
    return Case(done[program], {key: tensor for key, tensor in tensors.items() if key in names}, name)


def store(array: Any, fmt: Format, fill: Any, *, keep_unlike: Any = None) -> Tensor:
    """An array in a format: all of it, or what is not equal to some value.

    Examples
    --------
    >>> import numpy as np
    >>> from pyfinch.formats.format import format
    >>> store(np.array([0.0, 2.0, 0.0]), format("sparse_vector"), 0.0, keep_unlike=0.0).nnz
    1
    """
    kept = np.ones(array.shape, np.bool_)
    if keep_unlike is not None:
        kept = np.asarray(array != keep_unlike if keep_unlike == keep_unlike else array == array)
    coords = np.argwhere(kept).T.reshape(array.ndim, int(kept.sum())).astype(np.int64)
    return build(array.shape, coords, array[kept], fmt, fill, in_order_of=tuple(range(array.ndim)))
