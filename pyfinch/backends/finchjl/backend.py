"""The Finch.jl backend: plans scheduled by anyone, lowered here, each query compiled and run by Finch.jl."""

from __future__ import annotations

from typing import Any

from pyfinch.algebra.values import same_value, value_key
from pyfinch.backends.base import Availability, BrokenPromise, Scheduled
from pyfinch.backends.finchjl import session
from pyfinch.backends.finchjl.kernels import Kernel, TooNarrow, compile_kernel
from pyfinch.backends.finchjl.translate import translate
from pyfinch.backends.steps import evaluate, extent, last_uses, permuted, with_static_fill
from pyfinch.formats.tensor import Tensor
from pyfinch.logic.nodes import Plan
from pyfinch.loops.nodes import Declare, Literal, LoopNode
from pyfinch.loops.text import to_text
from pyfinch.lowering import Step, lower_plan

__all__ = ["FinchBackend", "FinchExecutable"]


class FinchBackend:
    """Runs plans by Finch.jl."""

    name = "finchjl"

    def available(self) -> Availability:
        """Whether Julia and Finch.jl can be used; the first time this starts Julia."""
        return session.availability()

    def compile(self, scheduled: Scheduled) -> FinchExecutable:
        """Lower a plan; Finch.jl compiles each query when it first runs."""
        return FinchExecutable(scheduled.plan)


class _Stage:
    """A step, and the kernels that were compiled for it: one for each row of fill values."""

    def __init__(self, step: Step, dropped: tuple[str, ...]) -> None:
        self.step = step
        self.dropped = dropped
        self.kernels: dict[tuple[Any, ...], Kernel] = {}
        self.start: LoopNode | None = None
        if step.kind == "permute":
            self.names: tuple[str, ...] = ("A",)
        else:
            self.names = step.variables
        if step.program is not None:
            first = step.program.bodies[0]
            assert isinstance(first, Declare)
            self.start = first.init

    def fill(self, operands: list[Tensor]) -> Any:
        """What the result is filled with."""
        if self.start is None:
            return operands[0].fill_value
        if isinstance(self.start, Literal):
            return self.start.value
        return evaluate(self.start, dict(zip(self.names, operands, strict=True)))

    def run(self, operands: list[Tensor]) -> Tensor:
        """Run the step on Julia's thread."""
        step = self.step
        fill = self.fill(operands)
        promised = step.ftype.fill
        if promised is not None and not same_value(promised, fill):
            raise BrokenPromise(f"the fill of an intermediate result is {fill}, not {promised}")
        key = tuple([value_key(t.fill_value) for t in operands if t.ndim and t.ftype.fill is None])
        if promised is None:
            key = (*key, value_key(fill))
        kernel = self.kernels.get(key)
        if kernel is None:
            kernel = self.kernels[key] = self.compile(operands, fill)
        shape = tuple(extent(operands, place) for place in step.shape)
        sizes = {f"n_{name}": extent(operands, place) for name, place in step.given}
        return kernel.run(operands, step.ftype, shape, fill, [sizes[name] for name in kernel.names])

    def compile(self, operands: list[Tensor], fill: Any) -> Kernel:
        """The kernel for these fills."""
        fills = {name: tensor.fill_value for name, tensor in zip(self.names, operands, strict=True)}
        types = [tensor.ftype for tensor in operands]
        translated = translate(self.step, types, fills, fill)
        # A number is read when the kernel runs; its type has no room for it.
        given = [
            (name, kind, fills[name] if kind.ndim else kind.dtype.type(0))
            for name, kind in zip(self.names, types, strict=True)
        ]
        return compile_kernel(translated, given, self.step.ftype, fill)


class FinchExecutable:
    """A plan whose queries Finch.jl runs."""

    def __init__(self, logic: Plan, *, wide: bool = False) -> None:
        self.logic, self.wide = logic, wide
        self.plan = lower_plan(logic, wide=wide)
        self.widened: FinchExecutable | None = None
        kept = {name for name, _ in self.plan.results}
        uses = last_uses(self.plan.steps, kept)
        self.stages = [_Stage(step, names) for step, names in zip(self.plan.steps, uses, strict=True)]

    @property
    def source(self) -> str:
        """The loop programs, and the Julia code of those that were compiled."""
        parts = []
        for stage in self.stages:
            step = stage.step
            head = f"# {step.result} = {step.kind}({', '.join(step.operands)})"
            loops = "" if step.program is None else "\n" + to_text(step.program)
            codes = [session.call(kernel.source) for kernel in stage.kernels.values()]
            parts.append("\n".join([head + loops, *codes]))
        return "\n\n".join(parts)

    def __call__(self, tensors: dict[str, Tensor]) -> tuple[Tensor, ...]:
        """Run all steps; if int32 turns out too narrow for a result, again with int64 throughout, from then on."""
        if self.widened is None:
            try:
                return session.call(lambda: self.run(tensors))
            except TooNarrow:
                if self.wide:
                    raise
                self.widened = FinchExecutable(self.logic, wide=True)
        return self.widened(tensors)

    def run(self, tensors: dict[str, Tensor]) -> tuple[Tensor, ...]:
        """Run all steps on Julia's thread; each intermediate is dropped after its last use."""
        env = {alias: tensors[name] for alias, name in self.plan.inputs.items()}
        for stage in self.stages:
            step = stage.step
            operands = [env[name] for name in step.operands]
            if step.kind == "share":
                (tensor,) = operands
                env[step.result] = Tensor._trusted(step.ftype, tensor.storage_shape, tensor.fill_value, tensor.buffers)
            else:
                env[step.result] = stage.run(operands)
            for name in stage.dropped:
                env.pop(name, None)
        return tuple(with_static_fill(permuted(env[name], order)) for name, order in self.plan.results)
