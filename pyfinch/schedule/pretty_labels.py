"""Pass: number the aliases and fields."""

from __future__ import annotations

from pyfinch.algebra.term import postorder
from pyfinch.logic.nodes import Plan
from pyfinch.schedule.rename import number_names

__all__ = ["pretty_labels"]


def pretty_labels(plan: Plan) -> Plan:
    """Call the aliases A0, A1, … and the fields i0, i1, …, in post-order.

    In: any plan. Out: the same up to names.

    Examples
    --------
    >>> from pyfinch.logic.text import parse
    >>> print(pretty_labels(parse("plan(query(alias(x), relabel(alias(y), field(k))))")))
    plan(query(alias(A0), relabel(alias(A1), field(i0))))
    """
    return number_names(plan, postorder(plan))
