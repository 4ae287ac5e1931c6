"""The default pipeline: which passes run, in which order."""

from __future__ import annotations

from collections.abc import Callable

from pyfinch.logic.nodes import Plan
from pyfinch.schedule.concordize import concordize
from pyfinch.schedule.isolate_aggregates import isolate_aggregates
from pyfinch.schedule.isolate_reformats import isolate_reformats
from pyfinch.schedule.isolate_tables import isolate_tables
from pyfinch.schedule.lift_fields import lift_fields
from pyfinch.schedule.lift_subqueries import lift_subqueries
from pyfinch.schedule.materialize_squeeze_expand_productions import materialize_squeeze_expand_productions
from pyfinch.schedule.normalize_names import normalize_names
from pyfinch.schedule.pretty_labels import pretty_labels
from pyfinch.schedule.propagate_copy_queries import propagate_copy_queries
from pyfinch.schedule.propagate_fields import propagate_fields
from pyfinch.schedule.propagate_into_reformats import propagate_into_reformats
from pyfinch.schedule.propagate_map_queries import propagate_map_queries
from pyfinch.schedule.propagate_map_queries_backward import propagate_map_queries_backward
from pyfinch.schedule.propagate_transpose_queries import propagate_transpose_queries
from pyfinch.schedule.push_fields import push_fields
from pyfinch.schedule.set_loop_order import set_loop_order

__all__ = ["FINCH", "Pass"]

Pass = Callable[[Plan], Plan]

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
