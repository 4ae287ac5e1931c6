"""What a warm call of the finchjl backend costs over Finch.jl's own time for its kernel."""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp

import pyfinch as pf
from benchmarks import peers
from benchmarks.harness import Bench, Figure
from benchmarks.inputs import canonical
from pyfinch.api.compute import program_of
from pyfinch.backends.base import get_backend, get_scheduler
from pyfinch.backends.steps import extent

_OWN = """
function (number, numbers, shape, repeats)
    kernel = PyFinchBridge.COMPILED[number]
    row = PyFinchBridge.Row(Int64[n for n in numbers], 0)
    arguments = Any[PyFinchBridge.wrap(s, row) for s in kernel.operands]
    push!(arguments, PyFinchBridge.fresh(kernel.result, row))
    append!(arguments, Any[PyFinchBridge.fresh(s, row) for s in kernel.workspaces])
    append!(arguments, Any[PyFinchBridge.next!(row) for _ in 1:(kernel.numbers)])
    times = map(1:repeats) do _
        began = time_ns()
        extents = PyFinchBridge.Row(Int64[n for n in shape], 0)
        arguments[length(kernel.operands) + 1] = PyFinchBridge.fresh(kernel.result, extents)
        Base.invokelatest(kernel.run, arguments...)
        (time_ns() - began) / 1e3
    end
    return sort(times)[cld(repeats, 2)]
end
"""


def measure(lazy: Any, repeats: int = 200) -> tuple[float, float]:
    """Medians in microseconds: of a warm call from Python, and of Finch.jl's kernel with a fresh result."""
    from pyfinch.backends.finchjl import on_julia
    from pyfinch.backends.finchjl.tensors import row

    program, names = program_of([lazy])
    tensors = {f"T{k}": lazy.operands[name] for k, name in enumerate(names)}
    executable: Any = get_backend("finchjl").compile(get_scheduler("default")[1](program))
    times = []
    for _ in range(repeats):
        began = time.perf_counter()
        executable(tensors)
        times.append(1e6 * (time.perf_counter() - began))
    (stage,) = executable.stages
    (kernel,) = stage.kernels.values()
    operands = [tensors[executable.plan.inputs[alias]] for alias in stage.step.operands]
    shape = [extent(operands, place) for place in stage.step.shape]
    numbers, kept = row(operands)
    numbers += shape + (shape if kernel.scatter else [extent(operands, place) for place in kernel.places])
    own = on_julia(lambda main: float(main.seval(_OWN)(kernel.number, numbers, shape, repeats)))
    del kept
    return statistics.median(times), own


def run(bench: Bench) -> Iterator[Figure]:
    """Measure, where there is Julia."""
    if not peers.finchjl():
        return
    rng = np.random.default_rng(0)
    for n in (10,) if bench.quick else (10, 1000):
        A = pf.asarray(canonical(sp.random_array((n, n), density=min(0.3, 10 / n), format="csr", rng=rng)))
        x = pf.asarray(rng.random(n))
        for name, lazy in {
            "A + A * 2": pf.lazy(A) + pf.lazy(A) * 2.0,
            "A @ x": pf.lazy(A) @ x,
            "A @ A": pf.lazy(A) @ A,
        }.items():
            call, own = measure(lazy)
            note = f"kernel {own:.0f} µs"
            yield Figure("finchjl", f"{name}, {n} rows, over its kernel", call - own, "µs", note=note)
