"""The laws of operators that the default scheduler uses: those that Finch.jl 1.2 knows, no others."""

from __future__ import annotations

from typing import Any

from pyfinch.algebra.operator import Operator

__all__ = ["annihilates", "distributes", "is_identity"]


def distributes(outer: Any, inner: Any) -> bool:
    """Whether ``outer(a, inner(b, c)) == inner(outer(a, b), outer(a, c))`` is known."""
    return isinstance(outer, Operator) and isinstance(inner, Operator) and outer.finch.distributes_over(inner)


def annihilates(op: Any, value: Any) -> bool:
    """Whether ``op`` of this value and anything is known to be this value."""
    return isinstance(op, Operator) and op.finch.is_annihilator(value)


def is_identity(op: Any, value: Any) -> bool:
    """Whether ``op`` of this value and anything is known to be the other one."""
    return isinstance(op, Operator) and op.finch.is_identity(value)
