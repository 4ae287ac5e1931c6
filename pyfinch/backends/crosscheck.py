"""Every computation on two backends, compared."""

from __future__ import annotations

from contextlib import AbstractContextManager

import numpy as np

from pyfinch.algebra.errors import CrossCheckError
from pyfinch.backends.base import (
    Availability,
    Backend,
    Executable,
    Scheduled,
    current,
    get_backend,
    register_backend,
    use_backend,
)
from pyfinch.backends.comparison import first_difference
from pyfinch.formats.tensor import Tensor

__all__ = ["crosscheck"]


def crosscheck(other: str) -> AbstractContextManager[str]:
    """Run each computation on the current backend and on another, and compare.

    Parameters
    ----------
    other : str
        The backend to compare with, such as ``"finchjl"``.

    Returns
    -------
    context manager
        In its block every computation without a ``backend=`` of its own runs twice; the results are the current
        backend's. Floats may differ by rounding, nothing else may.

    Raises
    ------
    CrossCheckError
        When two answers differ; the message has the place, both values and the plan.
    BackendUnavailableError
        If the other backend cannot run here.

    Examples
    --------
    >>> import pyfinch as pf
    >>> with pf.crosscheck("reference"):
    ...     float(pf.sum(pf.eye(3)))
    3.0
    """
    first, second = get_backend(current()[0]), get_backend(other)
    name = f"{first.name} checked by {second.name}"
    register_backend(name, lambda: CrossCheck(name, first, second))
    return use_backend(name)


class CrossCheck:
    """A backend that runs plans on two others."""

    def __init__(self, name: str, first: Backend, second: Backend) -> None:
        self.name, self.first, self.second = name, first, second

    def available(self) -> Availability:
        """Both were asked when this was made."""
        return Availability(True)

    def compile(self, scheduled: Scheduled) -> Both:
        """Make the plan ready on both."""
        return Both(self, scheduled)


class Both:
    """A program on two backends."""

    def __init__(self, checker: CrossCheck, scheduled: Scheduled) -> None:
        self.checker, self.scheduled = checker, scheduled
        self.first: Executable = checker.first.compile(scheduled)
        self.second: Executable = checker.second.compile(scheduled)

    @property
    def source(self) -> str:
        """What both run."""
        return f"{self.first.source}\n\n{self.second.source}"

    def __call__(self, tensors: dict[str, Tensor]) -> tuple[Tensor, ...]:
        """Run on both and compare; the first one's results."""
        ours, theirs = self.first(tensors), self.second(tensors)
        for number, (a, b) in enumerate(zip(ours, theirs, strict=True)):
            self.compare(number, a, b)
        return ours

    def compare(self, number: int, a: Tensor, b: Tensor) -> None:
        """Raise CrossCheckError unless two results are the same."""
        names = self.checker.first.name, self.checker.second.name
        what = f"result {number}" if number else "the result"
        plan = f"\nThe plan, by scheduler {self.scheduled.scheduler!r}:\n{self.scheduled.plan}"
        if (a.shape, a.dtype) != (b.shape, b.dtype):
            raise CrossCheckError(
                f"{what} is {a.dtype} of shape {a.shape} by {names[0]}, {b.dtype} of {b.shape} by {names[1]}{plan}"
            )
        left, right = np.asarray(a.todense()), np.asarray(b.todense())
        place = first_difference(left, right)
        if place is not None:
            raise CrossCheckError(
                f"{what} at {place} is {left[place]} by {names[0]} and {right[place]} by {names[1]}{plan}"
            )
