"""The grammar of the Loop language in ASDL (Wang, Appel, Korn, Serra: "The Zephyr ASDL", 1997), and its check.

A rule lists constructors, or other rules that it includes; a constructor lists its fields, each with its type,
``*`` for any number of them and ``?`` for one that may be None. `checks` says what the grammar cannot.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import cache
from types import MappingProxyType
from typing import Any, Final

import numpy as np

from pyfinch.algebra.dtypes import is_supported
from pyfinch.algebra.errors import ScheduleError
from pyfinch.algebra.operators import Operator
from pyfinch.algebra.term import Term, postorder
from pyfinch.formats.format import FType
from pyfinch.loops.nodes import LoopNode

__all__ = ["GRAMMAR", "validate"]

_STATEMENTS: Final = """
statement = Block(statement* bodies)
          | Loop(index index, scalar? extent, statement body)
          | Sieve(scalar cond, statement body)
          | Define(variable lhs, scalar rhs, statement body)
          | Declare(tensor tensor, scalar init)
          | Freeze(tensor tensor)
          | Thaw(tensor tensor)
          | Assign(access lhs, operator op, scalar rhs)
          | Yield(tensor* args)
"""
_SCALARS: Final = """
scalar    = access | index | variable
          | Literal(number value)
          | Value(string name, dtype dtype)
          | Call(operator op, scalar* args, dtype dtype)
index     = Index(string name)
variable  = Variable(string name, dtype type)
tensor    = Variable(string name, ftype type)
"""

GRAMMAR: Mapping[str, str] = MappingProxyType(
    {
        # Any program.
        "raw": f"""
program   = statement
{_STATEMENTS}{_SCALARS}
access    = Access(tensor tensor, scalar* idxs)
""",
        # What a kernel is made of: one result, and indices that are loops' or fixed.
        "kernel": f"""
program   = Block(part* bodies)
part      = statement
{_STATEMENTS}{_SCALARS}
access    = Access(tensor tensor, place* idxs)
place     = index | Literal(number value)
""",
    }
)

_LEAVES: Final[Mapping[str, Callable[[Any], bool]]] = MappingProxyType(
    {
        "string": lambda part: isinstance(part, str),
        "number": lambda part: isinstance(part, np.generic) and is_supported(part.dtype),
        "dtype": lambda part: isinstance(part, np.dtype) and is_supported(part),
        "ftype": lambda part: isinstance(part, FType),
        "operator": lambda part: isinstance(part, Operator),
    }
)
# A constructor's fields: type, and "", "*" or "?".
_Fields = tuple[tuple[str, str], ...]


@cache
def _rules(stage: str) -> tuple[dict[str, list[tuple[str, _Fields]]], dict[str, list[str]]]:
    """By constructor, the rules that have it and its fields there; by rule, the rules that include it."""
    constructors: dict[str, list[tuple[str, _Fields]]] = {}
    included: dict[str, list[str]] = {}
    for rule in re.split(r"\n(?=\w+ *=)", GRAMMAR[stage].strip()):
        name, alternatives = (part.strip() for part in rule.split("=", 1))
        for alternative in re.findall(r"\w+(?:\([^)]*\))?", alternatives):
            kind, _, fields = alternative.rstrip(")").partition("(")
            if not fields:
                included.setdefault(kind, []).append(name)
                continue
            parts = tuple(re.findall(r"(\w+)([*?]?) \w+", fields))
            constructors.setdefault(kind, []).append((name, parts))
    return constructors, included


def validate(program: LoopNode, stage: str = "raw") -> None:
    """Check a program against the grammar.

    Parameters
    ----------
    program
        The program.
    stage
        ``raw``, or ``kernel`` for what a backend takes.

    Raises
    ------
    ScheduleError
        Naming the first node that no rule allows.

    Examples
    --------
    >>> from pyfinch.loops.nodes import Block, Index
    >>> validate(Block((Index("i"),)))
    Traceback (most recent call last):
    pyfinch.algebra.errors.ScheduleError: at stage 'raw' no rule allows Block((Index('i'),))
    """
    constructors, included = _rules(stage)
    found: dict[Term, frozenset[str]] = {}
    for term in postorder(program):
        rules = [name for name, fields in constructors.get(type(term).__name__, ()) if _fits(term, fields, found)]
        for name in rules:
            rules += [outer for outer in included.get(name, ()) if outer not in rules]
        if not rules:
            raise ScheduleError(f"at stage {stage!r} no rule allows {term!r}")
        found[term] = frozenset(rules)
    if "program" not in found[program]:
        raise ScheduleError(f"at stage {stage!r} {program!r} is no program")


def _fits(term: Term, fields: _Fields, found: Mapping[Term, frozenset[str]]) -> bool:
    for name, (kind, many) in zip(term.__match_args__, fields, strict=True):
        part = getattr(term, name)
        if many == "?" and part is None:
            continue
        for item in part if many == "*" else (part,):
            if kind in _LEAVES:
                if not _LEAVES[kind](item):
                    return False
            elif kind not in found.get(item, ()):
                return False
    return True
