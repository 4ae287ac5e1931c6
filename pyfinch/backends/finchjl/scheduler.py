"""Finch.jl as the scheduler: its optimizer runs on the program, then formats are chosen here."""

from __future__ import annotations

from pyfinch.backends.base import Scheduled
from pyfinch.backends.finchjl.logic import converted
from pyfinch.backends.finchjl.programs import passes
from pyfinch.logic.nodes import Plan
from pyfinch.schedule.bound_queries import bound_queries
from pyfinch.schedule.format_queries import format_queries
from pyfinch.schedule.tidy import tidy

__all__ = ["schedule"]


def schedule(program: Plan) -> Scheduled:
    """Schedule a raw program by Finch.jl's default optimizer."""
    plan = passes(converted(program))[-1][1]
    for run in (tidy, bound_queries, format_queries):
        plan = run(plan)
    return Scheduled(plan, "finchjl")
