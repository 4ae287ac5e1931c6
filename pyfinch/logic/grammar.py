"""The grammar of Logic at each stage of scheduling, and the check of a program against it.

A rule names its alternatives. ``kind(…)`` is a node; ``x*`` is any number of children; capitals are leaves:
ALIAS, FIELD, OP (an immediate operator), NUMBER (an immediate number or a deferred scalar), TENSOR (an
immediate or deferred tensor), FORMAT (an immediate format). A program is a ``plan``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from types import MappingProxyType

import numpy as np

from pyfinch.algebra.errors import ScheduleError
from pyfinch.algebra.operator import Operator
from pyfinch.algebra.term import Term, postorder
from pyfinch.formats.format import Format
from pyfinch.logic.nodes import (
    Aggregate,
    Alias,
    Deferred,
    Field,
    Immediate,
    LogicNode,
    Plan,
    Produces,
    Query,
    Relabel,
    Reorder,
    Subquery,
    Table,
    fields,
)

__all__ = ["GRAMMAR", "validate"]

_NESTED = """
plan      = plan(step*)
step      = plan | query(ALIAS, rhs) | produces(result*)
"""

GRAMMAR: Mapping[str, str] = MappingProxyType(
    {
        # What a user's program is, and what isolating makes: anything, subqueries anywhere.
        "raw": _NESTED
        + """
rhs       = expr
result    = expr
expr      = ALIAS | NUMBER | table(TENSOR, FIELD*) | mapjoin(OP, expr*) | aggregate(OP, NUMBER, expr, FIELD*)
          | reorder(expr, FIELD*) | relabel(expr, FIELD*) | reformat(TENSOR, expr) | subquery(ALIAS, expr)
""",
        # After lift_subqueries.
        "lifted": _NESTED
        + """
rhs       = expr
result    = expr
expr      = ALIAS | NUMBER | table(TENSOR, FIELD*) | mapjoin(OP, expr*) | aggregate(OP, NUMBER, expr, FIELD*)
          | reorder(expr, FIELD*) | relabel(expr, FIELD*) | reformat(TENSOR, expr)
""",
        # After propagate_fields: tables and aggregates are queries, an alias shows its fields.
        "named": _NESTED
        + """
rhs       = table(TENSOR, FIELD*) | mapreduce | reformat(TENSOR, mapreduce) | reformat(TENSOR, ALIAS)
result    = ALIAS | pointwise
mapreduce = pointwise | aggregate(OP, NUMBER, pointwise, FIELD*)
pointwise = NUMBER | relabel(ALIAS, FIELD*) | relabel(pointwise, FIELD*) | reorder(pointwise, FIELD*)
          | mapjoin(OP, pointwise*)
""",
        # After push_fields: relabels on aliases only.
        "pushed": _NESTED
        + """
rhs       = table(TENSOR, FIELD*) | mapreduce | reformat(TENSOR, mapreduce) | reformat(TENSOR, ALIAS)
result    = ALIAS | pointwise
mapreduce = pointwise | aggregate(OP, NUMBER, pointwise, FIELD*)
pointwise = NUMBER | relabel(ALIAS, FIELD*) | reorder(pointwise, FIELD*) | mapjoin(OP, pointwise*)
""",
        # After concordize: each query has its loops, and reads everything as it is stored.
        "concordant": _NESTED
        + """
rhs       = table(TENSOR, FIELD*) | mapreduce | reformat(TENSOR, mapreduce) | reformat(TENSOR, ALIAS) | ALIAS
result    = ALIAS | access
mapreduce = reorder(pointwise, FIELD*) | aggregate(OP, NUMBER, reorder(pointwise, FIELD*), FIELD*)
pointwise = NUMBER | access | reorder(pointwise, FIELD*) | mapjoin(OP, pointwise*)
access    = relabel(ALIAS, FIELD*) | reorder(relabel(ALIAS, FIELD*), FIELD*)
""",
        # After format_queries: what lowering meets.
        "formatted": """
plan      = plan(step*)
step      = query(ALIAS, table(TENSOR, FIELD*)) | query(ALIAS, reformat(FORMAT, mapreduce))
          | produces(result*)
result    = ALIAS | reorder(relabel(ALIAS, FIELD*), FIELD*)
mapreduce = reorder(pointwise, FIELD*) | aggregate(OP, NUMBER, reorder(pointwise, FIELD*), FIELD*)
pointwise = NUMBER | access | reorder(pointwise, FIELD*) | mapjoin(OP, pointwise*)
access    = relabel(ALIAS, FIELD*) | reorder(relabel(ALIAS, FIELD*), FIELD*)
""",
    }
)

_LEAVES = ("ALIAS", "FIELD", "OP", "NUMBER", "TENSOR", "FORMAT")
# An alternative: the kind of node, the symbols of its children, and whether the last is repeated.
_Shape = tuple[str, tuple[str, ...], bool]


@cache
def _rules(stage: str) -> tuple[dict[str, list[tuple[str, _Shape]]], list[tuple[str, str]]]:
    """Node alternatives by kind, with the rule that each makes, and pairs (rule, rule it includes)."""
    shapes: dict[str, list[tuple[str, _Shape]]] = {}
    chains: list[tuple[str, str]] = []
    inner = 0
    text = GRAMMAR[stage]
    # A node written inside a node is a rule of its own.
    while found := re.search(r"(?<=[(,] )(\w+)\(([^()]*)\)|(?<=\()(\w+)\(([^()]*)\)", text):
        inner += 1
        text = f"{text[: found.start()]}node{inner}{text[found.end() :]}\nnode{inner} = {found.group()}\n"
    for rule in re.split(r"\n(?=\w+ *=)", text.strip()):
        name, alternatives = rule.split("=", 1)
        for alternative in alternatives.split("|"):
            node = re.fullmatch(r"\s*(\w+)\((.*)\)\s*", alternative, re.DOTALL)
            if node is None:
                chains.append((name.strip(), alternative.strip()))
                continue
            symbols = [symbol.strip() for symbol in node.group(2).split(",")]
            shape = (node.group(1), tuple(s.rstrip("*") for s in symbols), symbols[-1].endswith("*"))
            shapes.setdefault(shape[0], []).append((name.strip(), shape))
    return shapes, chains


def validate(program: LogicNode, stage: str) -> None:
    """Check a program against the grammar of a stage.

    Also: an alias is bound before it is used, no field stands twice in one node, relabels and tables of known
    rank have as many fields, and an aggregate reduces fields that its argument has.

    Parameters
    ----------
    program
        A plan.
    stage
        One of ``raw``, ``lifted``, ``named``, ``pushed``, ``concordant``, ``formatted``.

    Raises
    ------
    ScheduleError
        Naming the first node that does not fit.

    Examples
    --------
    >>> from pyfinch.logic.text import parse
    >>> validate(parse("plan(query(alias(A), alias(B)))"), "raw")
    Traceback (most recent call last):
    pyfinch.algebra.errors.ScheduleError: alias(B) is used before it is bound
    """
    shapes, chains = _rules(stage)
    symbols: dict[Term, frozenset[str]] = {}
    for term in postorder(program):
        found = _leaf_symbols(term)
        kind = type(term).__name__.lower()
        for name, shape in shapes.get(kind, ()):
            if _fits(term, shape, symbols):
                found.add(name)
        grown = True
        while grown:
            new = {name for name, part in chains if part in found and name not in found}
            found |= new
            grown = bool(new)
        if not found:
            raise ScheduleError(f"at stage {stage!r} no rule allows {_short(term)}")
        symbols[term] = frozenset(found)
    if "plan" not in symbols[program]:
        raise ScheduleError(f"at stage {stage!r} a program is a plan, got {_short(program)}")
    _check_names(program)


def _leaf_symbols(term: Term) -> set[str]:
    match term:
        case Alias():
            return {"ALIAS"}
        case Field():
            return {"FIELD"}
        case Immediate(Operator()):
            return {"OP"}
        case Immediate(np.generic()) | Deferred(_, np.dtype()):
            return {"NUMBER", "TENSOR"}
        case Immediate(Format()):
            return {"FORMAT", "TENSOR"}
        case Immediate() | Deferred():
            return {"TENSOR"}
        case _:
            return set()


def _fits(term: Term, shape: _Shape, symbols: Mapping[Term, frozenset[str]]) -> bool:
    _, wanted, repeated = shape
    lead = wanted[:-1] if repeated else wanted
    children = term.children
    if len(children) < len(lead) or (not repeated and len(children) > len(lead)):
        return False
    return all(s in symbols[c] for s, c in zip(lead, children, strict=False)) and all(
        wanted[-1] in symbols[c] for c in children[len(lead) :]
    )


def _check_names(program: LogicNode) -> None:
    """Aliases are bound before they are used, and fields are used as they may be."""
    bound: dict[Alias, tuple[Field, ...]] = {}
    memo: dict[LogicNode, tuple[Field, ...]] = {}
    stack = [program]
    while stack:
        statement = stack.pop()
        match statement:
            case Plan(bodies):
                stack.extend(reversed(bodies))
            case Query(lhs, rhs):
                _check_expression(rhs, bound, memo)
                bound[lhs] = fields(rhs, bound, memo)
            case Produces(args):
                for arg in args:
                    _check_expression(arg, bound, memo)


def _check_expression(
    expr: LogicNode, bound: Mapping[Alias, tuple[Field, ...]], memo: dict[LogicNode, tuple[Field, ...]]
) -> None:
    own = {term.lhs for term in postorder(expr) if isinstance(term, Subquery)}
    for term in postorder(expr):
        match term:
            case Alias() if term not in bound and term not in own:
                raise ScheduleError(f"{term} is used before it is bound")
            case Table(_, idxs) | Reorder(_, idxs) | Relabel(_, idxs) if len(set(idxs)) < len(idxs):
                raise ScheduleError(f"a field stands twice in {_short(term)}")
            case Relabel(Immediate(), _):
                pass
            case Relabel(arg, idxs) if len(fields(arg, bound, memo)) != len(idxs):
                raise ScheduleError(f"{len(fields(arg, bound, memo))} fields cannot become {_short(term)}")
            case Aggregate(_, _, arg, idxs) if not set(idxs) <= set(fields(arg, bound, memo)):
                raise ScheduleError(f"{_short(term)} reduces a field that its argument has not got")


def _short(term: Term) -> str:
    text = repr(term)
    return text if len(text) < 300 else text[:300] + "…"
