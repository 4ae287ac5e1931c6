"""What becomes of a lazy tensor: the program after each pass, the loop programs, the kernels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pyfinch.algebra.errors import PyFinchError
from pyfinch.api.compute import prepare, program_of
from pyfinch.api.lazy import LazyTensor
from pyfinch.backends.base import get_scheduler
from pyfinch.formats.statistics import statistics

__all__ = ["Explanation", "explain"]


@dataclass(frozen=True)
class Explanation:
    """The stages of a program; ``str()`` gives all of them as text.

    Attributes
    ----------
    passes : list of (str, Plan)
        Each pass of the scheduler and the Logic program after it; the first entry is the program. For a
        scheduler outside of pyfinch, the program and its plan.
    decisions : str
        What the auto scheduler chose by estimated cost, in words: nested sums, and orders of loops.
    loops : str
        The loop programs that run, one after another.
    source : str
        What the current backend runs: the Python of the kernels, for the Numba backend.
    """

    passes: list[tuple[str, Any]]
    decisions: str
    loops: str
    source: str

    def __str__(self) -> str:
        parts = [f"== {name}\n{plan}" for name, plan in self.passes]
        heads = [f"== {name}\n{getattr(self, name)}" for name in ("decisions", "loops", "source")]
        return "\n\n".join([*heads, *parts])


def explain(x: LazyTensor) -> Explanation:
    """Show how a lazy tensor is computed, without computing it.

    Parameters
    ----------
    x
        A lazy tensor.

    Returns
    -------
    Explanation
        Print it, or look at its parts.

    Raises
    ------
    PyFinchError
        If ``x`` is not lazy: there is nothing left to explain.

    Examples
    --------
    >>> import pyfinch as pf
    >>> A = pf.asarray([[0.0, 2.0], [3.0, 0.0]], format="csr")
    >>> print(explain(pf.sum(pf.lazy(A) * A)).loops)
    R .= 0.0
    for i = _
        for j = _
            R[] += A[i, j] * A[i, j]
        end
    end
    @freeze(R)
    return R
    """
    # here, as most programs never ask and these take a while to import
    from pyfinch.lowering import lower_plan
    from pyfinch.schedule.auto import trace_auto
    from pyfinch.schedule.pipeline import schedule_trace

    if not isinstance(x, LazyTensor):
        raise PyFinchError(f"explain needs a lazy tensor, got {type(x).__name__}; pyfinch.lazy(x) makes one")
    ready, names = prepare([x])
    tensors = {name: x.operands[old] for name, old in zip(ready.names, names, strict=True)}
    program = program_of([x])[0]
    scheduler, schedule = get_scheduler()
    decisions = ""
    match scheduler:
        case "auto":
            traced = trace_auto(program, {name: statistics(tensor) for name, tensor in tensors.items()})
            passes, decisions = traced.passes, "\n".join(traced.notes)
        case "default":
            passes = schedule_trace(program)
        case _:
            passes = [("program", program), (scheduler, schedule(program).plan)]
    plan: Any = passes[-1][1]
    loops = []
    for step in lower_plan(plan).steps:
        match step.kind:
            case "permute":
                loops.append(f"# {step.result}: a copy of {step.operands[0]}, stored in slot order {step.order}")
            case "share":
                loops.append(f"# {step.result} is {step.operands[0]}")
            case _:
                loops.append(str(step.program))
    executable: Any = ready.executable
    return Explanation(passes, decisions, "\n\n".join(loops), executable.chosen(tensors).source)
