"""Which backends and schedulers there are. Importing this registers them; each is imported when first used."""

from __future__ import annotations

from collections.abc import Mapping

from pyfinch.backends.base import Backend, Scheduled, register_backend, register_scheduler
from pyfinch.formats.statistics import Bins
from pyfinch.logic.nodes import Plan

__all__: list[str] = []

Statistics = Mapping[str, Bins] | None


def _numba() -> Backend:
    from pyfinch.backends.numba.backend import NumbaBackend

    return NumbaBackend()


def _reference() -> Backend:
    from pyfinch.backends.reference import ReferenceBackend

    return ReferenceBackend()


def _finchjl() -> Backend:
    from pyfinch.backends.finchjl.backend import FinchBackend

    return FinchBackend()


def _default(program: Plan, statistics: Statistics = None, /) -> Scheduled:
    from pyfinch.schedule.pipeline import schedule_default

    return Scheduled(schedule_default(program), "default")


def _by_finchjl(program: Plan, statistics: Statistics = None, /) -> Scheduled:
    from pyfinch.backends.finchjl.scheduler import schedule

    return schedule(program)


def _unfused(program: Plan, statistics: Statistics = None, /) -> Scheduled:
    from pyfinch.schedule.unfused import schedule_unfused

    return Scheduled(schedule_unfused(program), "unfused")


def _auto(program: Plan, statistics: Statistics = None, /) -> Scheduled:
    from pyfinch.schedule.auto import schedule_auto

    plan, adapts = schedule_auto(program, statistics)
    return Scheduled(plan, "auto", adapts)


register_backend("finchjl", _finchjl)
register_backend("numba", _numba)
register_backend("reference", _reference)
register_scheduler("auto", _auto)
register_scheduler("default", _default)
register_scheduler("finchjl", _by_finchjl)
register_scheduler("unfused", _unfused)
