"""The Numba backend: lowers a scheduled plan and runs it step by step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pyfinch.backends.base import Availability, Bound, Scheduled
from pyfinch.backends.numba.execute import IndexOverflow, WorkspaceTooLarge
from pyfinch.backends.numba.flat import Flat, flattened
from pyfinch.backends.numba.permute import combine, permute
from pyfinch.backends.numba.tiers import Kernel, kernel_for
from pyfinch.backends.steps import extent, last_uses, permuted, with_static_fill
from pyfinch.formats.tensor import Tensor
from pyfinch.logic.nodes import Plan
from pyfinch.lowering import Step, lower_plan

__all__ = ["NumbaBackend", "NumbaExecutable"]


class NumbaBackend:
    """Runs plans by kernels that are generated, compiled and cached."""

    name = "numba"

    def available(self) -> Availability:
        """Numba is a dependency of pyfinch: always."""
        return Availability(True)

    def compile(self, scheduled: Scheduled) -> NumbaExecutable:
        """Lower a plan; kernels are compiled when they first run on enough data."""
        return NumbaExecutable(scheduled.plan)


@dataclass(frozen=True, slots=True)
class _Ready:
    """A step and its kernel.

    ``picks`` are the step's operands that the kernel reads, in its order, where these are not just all of them.
    """

    step: Step
    kernel: Kernel | None
    last_use: tuple[str, ...]
    picks: tuple[int, ...] | None
    flat: Flat | None = None
    place: int = 0  # of the operand whose values a flat kernel goes over


def _ready(step: Step, last_use: tuple[str, ...]) -> _Ready:
    if step.program is None:
        return _Ready(step, None, last_use, None)
    flat = flattened(step)
    kernel = kernel_for(step.program if flat is None else flat.program)
    picks = tuple(step.variables.index(variable.name) for variable in kernel.source.operands)
    plain = picks == tuple(range(len(step.operands))) and not step.given
    place = 0 if flat is None else step.variables.index(flat.operand.name)
    return _Ready(step, kernel, last_use, None if plain else picks, flat, place)


class NumbaExecutable:
    """A plan of kernels."""

    def __init__(self, logic: Plan, *, wide: bool = False, sort: bool = False) -> None:
        self.logic = logic
        self.wide = wide
        self.sort = sort
        self.widened: NumbaExecutable | None = None
        self.sorting: NumbaExecutable | None = None
        plan = self.plan = lower_plan(logic, wide=wide, sort=sort)
        kept = {name for name, _ in plan.results}
        uses = last_uses(plan.steps, kept)
        self.steps = [_ready(step, names) for step, names in zip(plan.steps, uses, strict=True)]
        self.single = self._single()

    def _single(self) -> Any:
        """How to call the kernel, its operands' names and the result's order, for a plan of one kernel."""
        match self.steps, self.plan.results:
            case [_Ready(step, Kernel() as kernel, _, None, flat, place)], ((name, order),) if name == step.result:
                names = tuple([self.plan.inputs[operand] for operand in step.operands])
                if step.combine is not None:
                    return None
                if flat is None:
                    return kernel.quick, names, order
                chosen, ftype = flat, step.ftype

                def over_values(operands: list[Tensor], given: dict[str, Any]) -> Tensor | None:
                    whole = operands[place]
                    whole.check_ends()
                    number = chosen.reduced(whole, ftype)
                    if number is not None:
                        return number
                    vector = chosen.vector(whole)
                    values = kernel.quick([vector if operand is whole else operand for operand in operands], given)
                    return None if values is None else chosen.result(values, whole, ftype)

                return over_values, names, order
        return None

    def bound(self, names: Sequence[str]) -> Bound | None:
        """The short way to run on tensors in the order of some names, for a plan of one kernel.

        It returns None wherever something is out of the ordinary; `__call__` then knows what to do.
        """
        if self.single is None:
            return None
        quick, own, order = self.single
        places = [names.index(name) for name in own]

        def run(tensors: Sequence[Tensor]) -> Tensor | None:
            if self.widened is not None:
                return None
            try:
                result = quick([tensors[place] for place in places], {})
            except (WorkspaceTooLarge, IndexOverflow):
                return None
            return None if result is None else with_static_fill(permuted(result, order))

        return run

    @property
    def source(self) -> str:
        """The loop programs and the kernels' Python, step by step."""
        parts = []
        for ready in self.steps:
            head = f"# {ready.step.result} = {ready.step.kind}({', '.join(ready.step.operands)})"
            parts.append(head if ready.kernel is None else f"{head}\n{ready.kernel.source.source}")
        return "\n\n".join(parts)

    def __call__(self, tensors: dict[str, Tensor]) -> tuple[Tensor, ...]:
        """Run all steps.

        If int32 turns out too narrow for a result it runs again with int64 throughout, from then on; if a workspace
        would be far larger than these tensors, by sorting coordinates instead.
        """
        if self.widened is not None:
            return self.widened(tensors)
        try:
            if self.single is not None:
                quick, names, order = self.single
                result = quick([tensors[name] for name in names], {})
                if result is not None:
                    return (with_static_fill(permuted(result, order)),)
            return self.run(tensors)
        except WorkspaceTooLarge:
            if self.sorting is None:
                self.sorting = NumbaExecutable(self.logic, wide=self.wide, sort=True)
            return self.sorting(tensors)
        except IndexOverflow:
            if self.wide:
                raise MemoryError("a result has more than 2**63 - 1 entries") from None
            self.widened = NumbaExecutable(self.logic, wide=True, sort=self.sort)
        return self.widened(tensors)

    def run(self, tensors: dict[str, Tensor]) -> tuple[Tensor, ...]:
        """Run all steps; each intermediate is dropped after its last use."""
        env = {alias: tensors[name] for alias, name in self.plan.inputs.items()}
        for ready in self.steps:
            step = ready.step
            operands = [env[name] for name in step.operands]
            env[step.result] = self.step(ready, step, operands)
            for name in ready.last_use:
                env.pop(name, None)
        return tuple(with_static_fill(permuted(env[name], order)) for name, order in self.plan.results)

    def step(self, ready: _Ready, step: Step, operands: list[Tensor]) -> Tensor:
        """Run one step."""
        if step.kind == "share":
            (tensor,) = operands
            return Tensor._trusted(step.ftype, tensor.storage_shape, tensor.fill_value, tensor.buffers)
        if step.kind == "permute":
            return permute(operands[0], step.order, step.ftype)
        assert ready.kernel is not None
        given: dict[str, Any] = {}
        flat, whole = ready.flat, operands[ready.place]
        if flat is not None:
            whole.check_ends()
            number = flat.reduced(whole, step.ftype)
            if number is not None:
                return number
            operands = [flat.vector(whole) if operand is whole else operand for operand in operands]
        picked = operands
        if ready.picks is not None:
            given = {name: extent(operands, place) for name, place in step.given}
            given.update(zip(step.variables, operands, strict=True))
            picked = [operands[k] for k in ready.picks]
        result = ready.kernel.quick(picked, given)
        if result is None:
            shape = (len(whole.buffers[-1][0]),) if flat is not None and flat.maps else step.shape
            result = ready.kernel(picked, tuple([extent(operands, place) for place in shape]), given)
        if flat is not None:
            return flat.result(result, whole, step.ftype)
        if step.combine is not None:
            return combine(result, step.combine, step.ftype)
        return result
