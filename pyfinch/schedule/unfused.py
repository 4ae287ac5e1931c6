"""A scheduler that fuses nothing: each map and each reduction is a query of its own.

It is the plain baseline that fusion is compared with, in differential tests and by people who wonder what it gains.
"""

from __future__ import annotations

from collections.abc import Callable

from pyfinch.logic.nodes import MapJoin, Plan
from pyfinch.schedule.isolate import isolate
from pyfinch.schedule.pipeline import DEFAULT, schedule_default
from pyfinch.schedule.propagate_map_queries import propagate_map_queries
from pyfinch.schedule.propagate_map_queries_backward import propagate_map_queries_backward

__all__ = ["UNFUSED", "isolate_maps", "schedule_unfused"]


def isolate_maps(plan: Plan) -> Plan:
    """Make each map-join a subquery of a new alias.

    In: any plan. Out: the same, every ``mapjoin`` inside a ``subquery(ALIAS, mapjoin(…))``.
    """
    return isolate(plan, MapJoin)


_FUSING = (propagate_map_queries, propagate_map_queries_backward)
UNFUSED: tuple[Callable[[Plan], Plan], ...] = (isolate_maps, *(run for run in DEFAULT if run not in _FUSING))


def schedule_unfused(program: Plan) -> Plan:
    """The plan of a program with a query for each of its operations; takes and gives what `schedule_default` does.

    Examples
    --------
    >>> import pyfinch as pf
    >>> with pf.use_scheduler("unfused"):
    ...     A = pf.compute((pf.lazy(pf.eye(3)) + 1) * 2)
    >>> A.todense()[0]
    array([4., 2., 2.])
    """
    return schedule_default(program, UNFUSED)
