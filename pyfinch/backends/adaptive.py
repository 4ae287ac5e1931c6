"""Programs whose schedule depends on how large their operands are."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pyfinch.backends.base import Backend, Bound, Executable, Scheduled
from pyfinch.formats.statistics import Bins, statistics
from pyfinch.formats.tensor import Tensor
from pyfinch.logic.nodes import Plan

__all__ = ["Adaptive"]

Schedule = Callable[[Plan, dict[str, Bins] | None], Scheduled]
_MOST = 64


class Adaptive:
    """An executable for each combination of sizes that the schedule makes a difference between.

    A program is scheduled when it first runs. Where nothing in its schedule depends on sizes that is the one
    executable of all sizes.
    """

    def __init__(self, program: Plan, backend: Backend, schedule: Schedule) -> None:
        self.program, self.backend, self.schedule = program, backend, schedule
        self.only: Executable | None = None
        self.variants: dict[tuple[Bins, ...], Executable] = {}

    @property
    def source(self) -> str:
        """What runs on operands of sizes that are not known."""
        return self.made(None).source

    def __call__(self, tensors: dict[str, Tensor]) -> tuple[Tensor, ...]:
        """Run on operands, by the schedule for their sizes."""
        if self.only is not None:
            return self.only(tensors)
        return self.chosen(tensors)(tensors)

    def bound(self, names: Sequence[str]) -> Bound | None:
        """The short way to run, where there is one executable and it has a short way."""
        short = getattr(self.only, "bound", None)
        made: Bound | None = None if short is None else short(names)
        return made

    def chosen(self, tensors: dict[str, Tensor]) -> Executable:
        """The executable for operands of some sizes."""
        if self.only is not None:
            return self.only
        sizes = {name: statistics(tensor) for name, tensor in tensors.items()}
        key = tuple(sizes.values())
        found = self.variants.get(key)
        if found is None:
            found = self.made(sizes)
            if len(self.variants) >= _MOST:
                self.variants.clear()
            found = self.variants.setdefault(key, found)
        return found

    def made(self, sizes: dict[str, Bins] | None) -> Executable:
        """Schedule and compile."""
        scheduled = self.schedule(self.program, sizes)
        executable = self.backend.compile(scheduled)
        if not scheduled.adapts:
            self.only = executable
        return executable
