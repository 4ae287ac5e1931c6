"""What a backend and a scheduler are, the registries, and the switch between them."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar, Token
from dataclasses import dataclass
from types import TracebackType
from typing import Protocol

from pyfinch.algebra.errors import BackendUnavailableError
from pyfinch.formats.statistics import Bins
from pyfinch.formats.tensor import Tensor
from pyfinch.logic.nodes import Plan

__all__ = [
    "Availability",
    "Backend",
    "Bound",
    "BrokenPromise",
    "Executable",
    "Scheduled",
    "Scheduler",
    "current",
    "get_backend",
    "get_scheduler",
    "register_backend",
    "register_scheduler",
    "use_backend",
    "use_scheduler",
]


class BrokenPromise(Exception):  # noqa: N818 - not an error: the program is built again for other numbers
    """A program was built for numbers that give an intermediate result some fill; these numbers do not."""


@dataclass(frozen=True, slots=True)
class Scheduled:
    """A scheduled plan: its tables are types, each query carries a format.

    ``adapts`` says whether other statistics of the operands may give another plan.
    """

    plan: Plan
    scheduler: str
    adapts: bool = False


@dataclass(frozen=True, slots=True)
class Availability:
    """Whether a backend can run here; if not, why, and the command that would help."""

    available: bool
    reason: str = ""
    command: str = ""


class Executable(Protocol):
    """A compiled program: call it with the tensors that its deferred tables stand for, by name."""

    @property
    def source(self) -> str:
        """What it runs, for a person to read."""

    def __call__(self, tensors: dict[str, Tensor]) -> tuple[Tensor, ...]:
        """Run; the results' modes are in storage order."""


#: A program of one result as a function of its tensors in some order; None says to run the executable instead.
Bound = Callable[[Sequence[Tensor]], Tensor | None]


class Backend(Protocol):
    """Runs scheduled plans."""

    name: str

    def available(self) -> Availability:
        """Whether it can run here."""

    def compile(self, scheduled: Scheduled) -> Executable:
        """Make a plan ready to run."""


class Scheduler(Protocol):
    """From a program to a plan that a backend can run."""

    def __call__(self, program: Plan, statistics: Mapping[str, Bins] | None = None, /) -> Scheduled:
        """Schedule, for operands of some statistics (by the names of the deferred tables) or of any."""


_backends: dict[str, Callable[[], Backend]] = {}
_made: dict[str, Backend] = {}
_schedulers: dict[str, Scheduler] = {}


def register_backend(name: str, make: Callable[[], Backend]) -> None:
    """Offer a backend under a name; it is made when it is first used."""
    _backends[name] = make


def register_scheduler(name: str, scheduler: Scheduler) -> None:
    """Offer a scheduler under a name."""
    _schedulers[name] = scheduler


class _Switch:
    """A choice with a process-wide default and an override for the current context."""

    def __init__(self, what: str, variable: str, default: str) -> None:
        self.what = what
        self.default = os.environ.get(variable, default)
        self.local: ContextVar[str | None] = ContextVar(what, default=None)

    def current(self) -> str:
        return self.local.get() or self.default


_backend = _Switch("backend", "PYFINCH_BACKEND", "numba")
_scheduler = _Switch("scheduler", "PYFINCH_SCHEDULER", "auto")


class _Use:
    """Sets a switch at once; as a context manager, for the block only."""

    def __init__(self, switch: _Switch, name: str) -> None:
        self.switch, self.name, self.before = switch, name, switch.default
        self.token: Token[str | None] | None = None
        switch.default = name

    def __enter__(self) -> str:
        self.switch.default = self.before
        self.token = self.switch.local.set(self.name)
        return self.name

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self.token is not None
        self.switch.local.reset(self.token)


def use_backend(name: str) -> _Use:
    """Choose where programs run, for the whole process or, as a context manager, for a block.

    Parameters
    ----------
    name : {"numba", "reference", "finchjl"}
        The backend.

    Raises
    ------
    BackendUnavailableError
        If there is no such backend, or it cannot run here; the message says what would help.

    Examples
    --------
    >>> import pyfinch as pf
    >>> with pf.use_backend("reference"):
    ...     float(pf.sum(pf.asarray([1.0, 2.0])))
    3.0
    """
    get_backend(name)
    return _Use(_backend, name)


def use_scheduler(name: str) -> _Use:
    """Choose who schedules programs, for the whole process or, as a context manager, for a block."""
    get_scheduler(name)
    return _Use(_scheduler, name)


def current() -> tuple[str, str]:
    """The names of the backend and the scheduler that are switched on."""
    return _backend.current(), _scheduler.current()


def get_backend(name: str | None = None) -> Backend:
    """The backend of a name, or the current one.

    Raises
    ------
    BackendUnavailableError
        If there is none, or it cannot run here.
    """
    name = name or _backend.current()
    backend = _made.get(name)
    if backend is None:
        if name not in _backends:
            known = ", ".join(sorted(_backends))
            raise BackendUnavailableError(f"there is no backend {name!r}; there are: {known}")
        backend = _backends[name]()
        about = backend.available()
        if not about.available:
            raise BackendUnavailableError(f"backend {name!r} cannot run: {about.reason}. {about.command}".strip())
        _made[name] = backend
    return backend


def get_scheduler(name: str | None = None) -> tuple[str, Scheduler]:
    """A scheduler and its name, or the current one."""
    name = name or _scheduler.current()
    if name not in _schedulers:
        known = ", ".join(sorted(_schedulers))
        raise BackendUnavailableError(f"there is no scheduler {name!r}; there are: {known}")
    return name, _schedulers[name]
