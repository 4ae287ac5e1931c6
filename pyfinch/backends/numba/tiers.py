"""One kernel through its life: plain Python for a first small call, machine code from then on."""

from __future__ import annotations

import ast
import math
import os
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from pyfinch.algebra import scalar_functions
from pyfinch.algebra.errors import PyFinchError
from pyfinch.algebra.operators import Operator, UserOperator
from pyfinch.algebra.term import postorder
from pyfinch.backends.numba import runtime
from pyfinch.backends.numba.calls import ShortCall, short_call
from pyfinch.backends.numba.execute import run
from pyfinch.backends.numba.kernel import KernelSource, build
from pyfinch.formats.tensor import Tensor
from pyfinch.loops.nodes import Assign, Block, Call, Index, Loop

__all__ = ["Kernel", "kernel_for"]

#: Estimated innermost steps up to which a first call runs uncompiled (about a microsecond or two a step).
SMALL = 30_000

_kernels: dict[Block, Kernel] = {}
_lock = threading.Lock()


def kernel_for(program: Block) -> Kernel:
    """The kernel of a loop program; one for the whole process."""
    with _lock:
        kernel = _kernels.get(program)
        if kernel is None:
            kernel = _kernels[program] = Kernel(program)
    return kernel


def _mode() -> str:
    """``PYFINCH_COMPILE`` is ``auto``, ``always`` or ``never``; Numba's own switch counts as never."""
    if os.environ.get("NUMBA_DISABLE_JIT", "0") not in ("", "0"):
        return "never"
    return os.environ.get("PYFINCH_COMPILE", "auto")


class Kernel:
    """A loop program and the functions made of it."""

    def __init__(self, program: Block) -> None:
        self.source: KernelSource = build(program)
        self._plain: Callable[..., int] | None = None
        self._compiled: Callable[..., int] | None = None
        self._call: ShortCall | None = None
        self._seen = False
        self._lock = threading.Lock()

    def __call__(
        self, tensors: Sequence[Tensor], shape: tuple[int, ...], given: Mapping[str, Any] | None = None
    ) -> Tensor:
        """Run on operands in the order of ``source.operands``; ``shape`` is the result's, in storage order.

        ``given`` is as for `pyfinch.backends.numba.execute.run`.
        """
        function = self._compiled
        if function is None:
            mode = _mode()
            first, self._seen = not self._seen, True
            if mode == "never" or (mode == "auto" and first and self.work(tensors) <= SMALL):
                with np.errstate(all="ignore"):
                    return run(self.plain(), self.source, tensors, shape, given)
            function = self.compiled()
        return run(function, self.source, tensors, shape, given, threads=True)

    def quick(self, tensors: Sequence[Tensor], given: Mapping[str, Any]) -> Tensor | None:
        """Run on operands as above if the kernel is compiled and nothing is out of the ordinary; else None."""
        return None if self._call is None else self._call(self._compiled, tensors, given)

    def operators(self) -> list[Operator]:
        """The operators that the program applies."""
        return list(dict.fromkeys(t.op for t in postorder(self.source.program) if isinstance(t, (Call, Assign))))

    def user_operators(self) -> list[UserOperator]:
        """Those that are users'."""
        return [op for op in self.operators() if isinstance(op, UserOperator)]

    def plain(self) -> Callable[..., int]:
        """The emitted source as ordinary Python, without the casts that only machine code needs."""
        if self._plain is None:
            namespace: dict[str, Any] = {"np": np, "math": math, "int64": int}
            for module in (scalar_functions, runtime):
                namespace.update({name: getattr(module, name) for name in module.__all__})
            namespace.update({op.helper: op.scalar for op in self.user_operators()})
            module = ast.fix_missing_locations(_Uncast().visit(ast.parse(self.source.source)))
            exec(compile(module, "<pyfinch kernel, uncompiled>", "exec"), namespace)
            self._plain = namespace["kernel"]
        return self._plain

    def compiled(self) -> Callable[..., int]:
        """The machine code; compiled once however many threads ask."""
        with self._lock:
            if self._compiled is None:
                from pyfinch.backends.numba.compile import machine_code

                operators = self.user_operators()
                functions = {op.helper: op.scalar for op in operators}
                portable = all(op.portable for op in operators)
                try:
                    self._compiled = machine_code(self.source, functions, portable=portable)
                    self._call = short_call(self.source)
                except (MemoryError, PyFinchError):
                    raise
                except Exception as error:
                    raise PyFinchError(self.refusal(error)) from None
        return self._compiled

    def refusal(self, error: Exception) -> str:
        """What to say when the kernel cannot be compiled: which operators are in it, and what would help."""
        told = [line.strip() for line in str(error).splitlines()]
        said = [line for line in told if line and not line.startswith("Failed in nopython mode")]
        reason = said[0].rstrip(".") if said else type(error).__name__
        users = self.user_operators()
        if users:
            return (
                f"Numba cannot compile the operator {', '.join(op.name for op in users)}: {reason}. "
                "Use only scalar arithmetic, comparisons, conditionals and math functions in it."
            )
        names = ", ".join(op.name for op in self.operators())
        return (
            f"Numba cannot compile a kernel of the operators {names}: {reason}. "
            'The same program runs without it: with pyfinch.use_backend("reference").'
        )

    def work(self, tensors: Sequence[Tensor]) -> float:
        """An estimate of innermost steps: at each loop the shortest average fiber of the operands there."""
        sizes: dict[Index, float] = {}
        for access in self.source.reads:
            tensor = tensors[self.source.operands.index(access.tensor)]
            for idx, size in zip(access.idxs, _fiber_sizes(tensor), strict=True):
                if isinstance(idx, Index):
                    sizes[idx] = min(size, sizes.get(idx, math.inf))
        nests: dict[Any, float] = {}
        for term in postorder(self.source.program):
            inner = sum(nests.get(child, 0.0) for child in term.children)
            if isinstance(term, Loop):
                inner = sizes.get(term.index, 1.0) * max(inner, 1.0)
            nests[term] = inner
        entries = sum(len(buffer) for tensor in tensors for level in tensor.buffers for buffer in level)
        return nests[self.source.program] + 0.1 * entries


def _fiber_sizes(tensor: Tensor) -> list[float]:
    """For each storage slot, how many coordinates a fiber has there on average."""
    sizes: list[float] = []
    npos, slot = 1.0, 0
    shape = [tensor.shape[mode] for mode in tensor.ftype.mode_order]
    for level, buffers in zip(tensor.ftype.levels, tensor.buffers, strict=True):
        if level.appends:
            entries = float(len(buffers[1]))
            sizes += [entries / max(npos, 1.0)] + [1.0] * (level.modes - 1)
            npos = entries
        elif level.modes:
            sizes.append(float(shape[slot]))
            npos *= shape[slot]
        slot += level.modes
    return sizes


class _Uncast(ast.NodeTransformer):
    """Drops ``uintp(…)`` around subscripts: Python does not need it."""

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        if isinstance(node.func, ast.Name) and node.func.id == "uintp":
            return node.args[0]
        return node
