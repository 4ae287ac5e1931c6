"""Pass, of the auto scheduler: what a program returns is stored in the same format whatever the sizes."""

from __future__ import annotations

from dataclasses import replace

from pyfinch.formats.format import Format
from pyfinch.logic.nodes import Alias, Immediate, LogicNode, Plan, Produces, Query, Reformat, Relabel, Reorder, Table

__all__ = ["pin_formats"]


def pin_formats(plan: Plan, plain: Plan) -> Plan | None:
    """Give the results of a plan the formats that they have in another plan of the same program.

    In: formatted plans. Out: the same grammar; None if a result's storage order is another one in ``plain``.
    """
    wanted = _results(plain)
    found = _results(plan)
    changed: dict[LogicNode, Format] = {}
    for (alias, order, fmt), (_, other_order, other) in zip(found, wanted, strict=True):
        if order != other_order or (fmt is None) != (other is None):
            return None
        if fmt is not None and other is not None and fmt.levels[:-1] != other.levels[:-1]:
            if len(fmt.levels) != len(other.levels):
                return None
            changed[alias] = replace(fmt, levels=(*other.levels[:-1], fmt.levels[-1]))
    if not changed:
        return plan
    bodies: list[LogicNode] = []
    for body in plan.bodies:
        match body:
            case Query(lhs, Reformat(_, rhs)) if lhs in changed:
                bodies.append(Query(lhs, Reformat(Immediate(changed[lhs]), rhs)))
            case _:
                bodies.append(body)
    return Plan(tuple(bodies))


def _results(plan: Plan) -> list[tuple[Alias, tuple[int, ...], Format | None]]:
    """Each result's alias, how its modes are permuted, and its format; None for an operand as it stands."""
    formats: dict[Alias, Format | None] = {}
    for body in plan.bodies:
        match body:
            case Query(lhs, Table()):
                formats[lhs] = None
            case Query(lhs, Reformat(Immediate(fmt), _)):
                formats[lhs] = fmt
    results: list[tuple[Alias, tuple[int, ...], Format | None]] = []
    last = plan.bodies[-1]
    assert isinstance(last, Produces)
    for arg in last.args:
        match arg:
            case Alias():
                results.append((arg, (), formats[arg]))
            case Reorder(Relabel(Alias() as alias, stored), order):
                results.append((alias, tuple([stored.index(idx) for idx in order]), formats[alias]))
            case _:
                raise AssertionError(arg)
    return results
