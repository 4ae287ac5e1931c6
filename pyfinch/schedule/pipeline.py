"""The default pipeline: which passes run, in which order."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Protocol

from pyfinch.algebra.errors import ScheduleError
from pyfinch.logic.grammar import validate
from pyfinch.logic.nodes import Plan
from pyfinch.schedule.bound_queries import bound_queries
from pyfinch.schedule.concordize import concordize
from pyfinch.schedule.format_queries import format_queries
from pyfinch.schedule.isolate_aggregates import isolate_aggregates
from pyfinch.schedule.isolate_reformats import isolate_reformats
from pyfinch.schedule.isolate_tables import isolate_tables
from pyfinch.schedule.lift_fields import lift_fields
from pyfinch.schedule.lift_subqueries import lift_subqueries
from pyfinch.schedule.materialize_squeeze_expand_productions import materialize_squeeze_expand_productions
from pyfinch.schedule.normalize_names import normalize_names
from pyfinch.schedule.order_reductions import order_reductions
from pyfinch.schedule.pretty_labels import pretty_labels
from pyfinch.schedule.propagate_copy_queries import propagate_copy_queries
from pyfinch.schedule.propagate_fields import propagate_fields
from pyfinch.schedule.propagate_into_reformats import propagate_into_reformats
from pyfinch.schedule.propagate_map_queries import propagate_map_queries
from pyfinch.schedule.propagate_map_queries_backward import propagate_map_queries_backward
from pyfinch.schedule.propagate_transpose_queries import propagate_transpose_queries
from pyfinch.schedule.push_fields import push_fields
from pyfinch.schedule.set_loop_order import set_loop_order
from pyfinch.schedule.tidy import tidy

__all__ = ["DEFAULT", "FINCH", "STAGES", "Pass", "schedule", "schedule_default", "schedule_trace"]


class Pass(Protocol):
    """A function from a plan to a plan of the same value."""

    __name__: str

    def __call__(self, plan: Plan, /) -> Plan: ...


# What Finch.jl's DefaultLogicOptimizer does, pass for pass.
FINCH: tuple[Pass, ...] = (
    lift_subqueries,
    propagate_map_queries_backward,
    isolate_reformats,
    isolate_aggregates,
    isolate_tables,
    lift_subqueries,
    pretty_labels,
    propagate_fields,
    propagate_copy_queries,
    propagate_transpose_queries,
    propagate_map_queries,
    propagate_fields,
    push_fields,
    lift_fields,
    push_fields,
    propagate_transpose_queries,
    set_loop_order,
    push_fields,
    concordize,
    materialize_squeeze_expand_productions,
    propagate_copy_queries,
    propagate_into_reformats,
    propagate_copy_queries,
    normalize_names,
)

# Ours: the same, products of sparse operands kept from enumerating pairs, and formats chosen.
_ORDERED = FINCH.index(concordize)
DEFAULT: tuple[Pass, ...] = (
    *FINCH[:_ORDERED],
    order_reductions,
    *FINCH[_ORDERED:],
    tidy,
    bound_queries,
    format_queries,
)


# The grammar (`pyfinch.logic.grammar`) that a plan follows after each pass.
STAGES: Mapping[str, str] = MappingProxyType(
    {
        "lift_subqueries": "lifted",
        "propagate_map_queries_backward": "lifted",
        "factor_products": "lifted",
        "isolate_reformats": "raw",
        "isolate_aggregates": "raw",
        "isolate_tables": "raw",
        "pretty_labels": "lifted",
        "propagate_fields": "named",
        "propagate_copy_queries": "named",
        "propagate_transpose_queries": "named",
        "propagate_map_queries": "named",
        "push_fields": "pushed",
        "lift_fields": "pushed",
        "set_loop_order": "named",
        "order_loops": "named",
        "order_reductions": "named",
        "concordize": "concordant",
        "materialize_squeeze_expand_productions": "concordant",
        "propagate_into_reformats": "concordant",
        "normalize_names": "concordant",
        "tidy": "concordant",
        "bound_queries": "concordant",
        "format_queries": "formatted",
    }
)
_DEBUG = os.environ.get("PYFINCH_DEBUG") == "1"


def schedule_default(program: Plan, passes: Sequence[Pass] = DEFAULT) -> Plan:
    """The scheduled plan of a program, by the default pipeline.

    Parameters
    ----------
    program
        A raw program: queries over tables, map-joins, aggregates, reorders, relabels and subqueries, then
        ``produces``. The tables' tensors are ``deferred`` with an ftype, or ``immediate`` tensors.
    passes
        The passes to run.

    Returns
    -------
    Plan
        A flat plan of ``query(ALIAS, table(…))``, ``query(ALIAS, reformat(FORMAT, …))`` and ``produces(…)``.

    Raises
    ------
    ScheduleError
        Naming the pass and the node, if a program is outside the grammar.
    """
    return schedule_trace(program, passes)[-1][1]


def schedule_trace(program: Plan, passes: Sequence[Pass] = DEFAULT) -> list[tuple[str, Plan]]:
    """The name of each pass and the plan after it; the first entry is the program itself."""
    trace = [("program", program)]
    for run in passes:
        try:
            program = run(program)
        except (KeyError, ValueError, TypeError, RecursionError) as error:
            raise ScheduleError(f"{run.__name__}: {type(error).__name__}: {error}") from error
        if _DEBUG and run.__name__ in STAGES:
            try:
                validate(program, STAGES[run.__name__])
            except ScheduleError as error:
                raise ScheduleError(f"after {run.__name__}: {error}") from error
        trace.append((run.__name__, program))
    return trace


schedule = schedule_default
