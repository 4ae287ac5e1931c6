"""What becomes of a lazy tensor: the program after each pass, the loop programs, the kernels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pyfinch.algebra.errors import PyFinchError
from pyfinch.api.compute import prepare, program_of
from pyfinch.api.lazy import LazyTensor
from pyfinch.lowering import lower_plan
from pyfinch.schedule.pipeline import schedule_trace

__all__ = ["Explanation", "explain"]


@dataclass(frozen=True)
class Explanation:
    """The stages of a program; ``str()`` gives all of them as text.

    Attributes
    ----------
    passes : list of (str, Plan)
        Each pass of the default scheduler and the Logic program after it; the first entry is the program.
    loops : str
        The loop programs that run, one after another.
    source : str
        What the current backend runs: the Python of the kernels, for the Numba backend.
    """

    passes: list[tuple[str, Any]]
    loops: str
    source: str

    def __str__(self) -> str:
        parts = [f"== {name}\n{plan}" for name, plan in self.passes]
        return "\n\n".join([f"== loops\n{self.loops}", f"== source\n{self.source}", *parts])


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
    if not isinstance(x, LazyTensor):
        raise PyFinchError(f"explain needs a lazy tensor, got {type(x).__name__}; pyfinch.lazy(x) makes one")
    passes = schedule_trace(program_of([x])[0])
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
    return Explanation(passes, "\n\n".join(loops), prepare([x])[0].executable.source)
