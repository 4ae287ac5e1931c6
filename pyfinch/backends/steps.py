"""What backends that run loop programs step by step have in common."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from pyfinch.algebra.term import postorder
from pyfinch.formats.format import FType
from pyfinch.formats.levels import Element
from pyfinch.formats.tensor import Tensor
from pyfinch.loops.nodes import Access, Call, Literal, LoopNode, Value

__all__ = ["evaluate", "extent", "has_algebra", "last_uses", "permuted", "with_static_fill"]


def evaluate(node: LoopNode, tensors: dict[str, Tensor]) -> np.generic:
    """The value of an expression over fill values and scalar operands."""
    done: dict[LoopNode, Any] = {}
    for term in postorder(node):
        match term:
            case Literal(value):
                done[term] = value
            case Value(name, _):
                done[term] = tensors[name.removesuffix("_fill")].fill_value
            case Access(tensor, ()):
                done[term] = tensors[tensor.name].buffers[0][0][0]
            case Call(op, args, dtype):
                done[term] = np.asarray(op(*[done[arg] for arg in args])).astype(dtype)[()]
    return done[node]  # type: ignore[no-any-return]


def extent(operands: list[Tensor], place: int | tuple[int, int]) -> int:
    """A number, or the extent of an operand's storage slot."""
    if isinstance(place, int):
        return place
    tensor = operands[place[0]]
    return tensor.shape[tensor.ftype.mode_order[place[1]]]


def permuted(tensor: Tensor, order: tuple[int, ...]) -> Tensor:
    """A tensor whose storage slots are the given modes."""
    if order == tensor.ftype.mode_order:
        return tensor
    storage = tensor.storage_shape
    shape = [0] * len(order)
    for slot, mode in enumerate(order):
        shape[mode] = storage[slot]
    return Tensor._trusted(tensor.ftype.reordered(order), tuple(shape), tensor.fill_value, tensor.buffers)


def with_static_fill(tensor: Tensor) -> Tensor:
    """The tensor, its type naming the fill if it turned out to be a special value."""
    ftype = tensor.ftype
    if ftype.fill is not None or not has_algebra(tensor.fill_value):
        return tensor
    levels = (*ftype.levels[:-1], Element(tensor.fill_value, ftype.dtype))
    return Tensor._trusted(FType(levels, ftype.mode_order), tensor.shape, tensor.fill_value, tensor.buffers)


def has_algebra(value: Any) -> bool:
    """`is_special` for a NumPy scalar, decided on the Python number."""
    number = value.item()
    return number in (0, 1, math.inf, -math.inf) or number != number


def last_uses(steps: Any, kept: set[str]) -> list[tuple[str, ...]]:
    """For each step the operands that no later step reads, and that are no results."""
    last: dict[str, int] = {}
    for k, step in enumerate(steps):
        for name in step.operands:
            last[name] = k
    return [tuple(name for name, at in last.items() if at == k and name not in kept) for k in range(len(steps))]
