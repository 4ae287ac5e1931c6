"""Shared by ``pretty_labels`` and ``normalize_names``: number the aliases and fields of a program."""

from __future__ import annotations

from collections.abc import Iterable

from pyfinch.algebra.term import Term
from pyfinch.logic.nodes import Alias, Field, Plan
from pyfinch.logic.rewrite import Postwalk, Rewrite

__all__ = ["number_names"]


def number_names(plan: Plan, terms: Iterable[Term]) -> Plan:
    """Call the aliases A0, A1, … and the fields i0, i1, … in the order in which ``terms`` shows them."""
    names: dict[Term, Term] = {}
    aliases = fields = 0
    for term in terms:
        if term in names:
            continue
        if isinstance(term, Alias):
            names[term] = Alias(f"A{aliases}")
            aliases += 1
        elif isinstance(term, Field):
            names[term] = Field(f"i{fields}")
            fields += 1
    return Rewrite(Postwalk(names.get))(plan)
