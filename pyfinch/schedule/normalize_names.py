"""Pass: give a program the names that any equal program gets."""

from __future__ import annotations

from pyfinch.algebra.term import preorder
from pyfinch.logic.nodes import Plan
from pyfinch.schedule.rename import number_names

__all__ = ["normalize_names"]


def normalize_names(plan: Plan) -> Plan:
    """Number aliases and fields by first appearance in the text, so that equal programs become one object.

    In: any plan. Out: the same up to names.

    Examples
    --------
    >>> from pyfinch.logic.text import parse
    >>> print(normalize_names(parse("plan(query(alias(x), relabel(alias(y), field(k))))")))
    plan(query(alias(A0), relabel(alias(A1), field(i0))))
    """
    return number_names(plan, preorder(plan))
