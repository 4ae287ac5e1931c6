"""What is paid besides the kernel: warm calls, scheduling, first calls, compilation, the disk cache, import, memory.

Cold figures are of fresh processes with a cache folder of their own.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp

import pyfinch as pf
from benchmarks import peers
from benchmarks.harness import OURS, Bench, Figure, Record, Row
from benchmarks.inputs import canonical

WARM = 12.0  # µs over the kernel, which takes less than one on 10×10


def fresh(code: str, cache: str, repeat: int = 3, **env: str) -> float:
    """The median of what a fresh process prints."""
    values = []
    for _ in range(repeat):
        done = subprocess.run(
            [sys.executable, "-c", textwrap.dedent(code)],
            env={**os.environ, "PYFINCH_CACHE_DIR": cache, **env},
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise RuntimeError(done.stderr.strip().splitlines()[-1])
        values.append(float(done.stdout.split()[-1]))
    return statistics.median(values)


@pf.fuse
def ten(a: Any, b: Any, s: float) -> Any:
    """Ten operations."""
    x = a * b + a
    x = x * s - b
    x = pf.maximum(x, a) * b
    x = x + a * s
    return x - b * s


IMPORT = """
import time
import numpy, scipy.sparse
start = time.perf_counter()
import pyfinch
print((time.perf_counter() - start) * 1e3)
"""
FIRST = """
import time, numpy as np, scipy.sparse as sp, numba
import pyfinch as pf
{warm}
m = sp.random_array((100, 100), density=0.08, format="csr", rng=np.random.default_rng(0))
a, b = pf.asarray(m), pf.asarray(m.T.tocsr())
start = time.perf_counter()
{work}
print((time.perf_counter() - start) * 1e3)
"""
JIT = 'numba.njit("int64(int64)")(lambda x: x + 1)'  # so that the compiler itself is ready
SCHEDULE = """
import time, scipy.sparse as sp
import pyfinch as pf
from pyfinch.api.compute import program_of
from pyfinch.backends.base import get_scheduler
m = sp.random_array((100, 100), density=0.08, format="csr")
a, b = pf.asarray(m), pf.asarray(m.T.tocsr())
def chain(count):
    x, steps = pf.lazy(a), [lambda x: x * 2.0, lambda x: x + b, lambda x: pf.maximum(x, a), lambda x: {step}]
    for k in range(count):
        x = steps[k % 4](x)
    return x
def schedule(count):
    x = chain(count)
    start = time.perf_counter()
    get_scheduler()[1](program_of([x])[0])
    return time.perf_counter() - start
schedule(4)
print(schedule({count}) * 1e3)
"""
MEMORY = """
import numpy as np, scipy.sparse as sp
import pyfinch as pf
rng = np.random.default_rng(0)
w = pf.asarray(sp.random_array((50, 50), density=0.1, format="csr", rng=rng))
w @ w; w @ w
a = pf.asarray(sp.random_array((100_000, 100_000), density=2e-4, format="csr", rng=rng))
def peak():
    return next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmHWM"))
open("/proc/self/clear_refs", "w").write("5")
before = peak()
c = a @ a
print((peak() - before) * 1024 / c.nbytes)
"""
WORKS = {
    "A @ B": "a @ b",
    "A + B": "a + b",
    "A * B": "a * b",
    "A @ x": "a @ np.ones(100)",
    "sum over rows": "pf.sum(a, axis=0)",
    "sum((A @ B) * A)": "pf.compute(pf.sum((pf.lazy(a) @ b) * a))",
}


def warm(bench: Bench) -> Iterator[Record]:
    """Eager calls on 10×10 and a fused program."""
    small = canonical(sp.random_array((10, 10), density=0.3, format="csr", rng=np.random.default_rng(0)))
    other, x = canonical(small.T), small.toarray()[0]
    a, b, v = pf.asarray(small), pf.asarray(other), pf.asarray(x)
    sparse, finch = peers.pydata(), peers.finch()
    p, q = (sparse.GCXS.from_scipy_sparse(m) for m in (small, other)) if sparse else (None, None)
    f, g = (finch.asarray(m) for m in (small, other)) if finch else (None, None)
    cases: dict[str, dict[str, Callable[[], Any] | None]] = {
        "A @ x": {"pyfinch": lambda: a @ v, "scipy": lambda: small @ x, "pydata": sparse and (lambda: p @ x)},
        "A * B": {
            "pyfinch": lambda: a * b,
            "scipy": lambda: small.multiply(other),
            "pydata": sparse and (lambda: p * q),
            "finch-tensor": finch and (lambda: finch.multiply(f, g)),
        },
        "A + B": {
            "pyfinch": lambda: a + b,
            "scipy": lambda: small + other,
            "pydata": sparse and (lambda: p + q),
            "finch-tensor": finch and (lambda: finch.add(f, g)),
        },
        "A @ B": {
            "pyfinch": lambda: a @ b,
            "scipy": lambda: small @ other,
            "pydata": sparse and (lambda: p @ q),
            "finch-tensor": finch and (lambda: finch.matmul(f, g)),
        },
        "sum(A)": {
            "pyfinch": lambda: pf.sum(a),
            "scipy": small.sum,
            "pydata": sparse and (lambda: p.sum()),
        },
    }
    rows = [bench.measure("10×10", name, calls) for name, calls in cases.items()]
    yield from rows
    for row in rows:
        yield from _call(row, f"warm eager {row.case}, 10×10", WARM)
    row = bench.measure("10×10", "ten operations, fused", {"pyfinch": lambda: ten(a, b, 0.5)})
    yield from _call(row, "warm fused ten-operation program, 10×10", 100.0)


def _call(row: Row, what: str, limit: float) -> Iterator[Figure]:
    if OURS in row.timings:
        yield Figure("overhead", what, 1e6 * row.timings[OURS].median, "µs", limit)


def scheduling(bench: Bench, cache: str) -> Iterator[Figure]:
    """The default scheduler on a program that it has not seen."""
    limits = {10: 5.0, 100: 60.0, 1000: 1000.0}
    kinds = {"elementwise": "x - b"} if bench.quick else {"elementwise": "x - b", "every fourth a product": "x @ b"}
    for what, step in kinds.items():
        for count, limit in limits.items():
            taken = fresh(SCHEDULE.format(step=step, count=count), cache, 1 if bench.quick else 3)
            yield Figure("overhead", f"scheduling {count} operations, {what}", taken, "ms", limit)


def cold(bench: Bench) -> Iterator[Figure]:
    """Import, first calls, compilation, kernels from disk."""
    works = dict(list(WORKS.items())[:2]) if bench.quick else WORKS
    with tempfile.TemporaryDirectory() as cache:
        yield Figure("overhead", "import, over NumPy and SciPy", fresh(IMPORT, cache, 5), "ms", 100.0)
        for name, work in works.items():
            first = fresh(FIRST.format(work=work, warm=""), cache, 1 if bench.quick else 3, PYFINCH_COMPILE="auto")
            yield Figure("overhead", f"first call of {name} in a process, uncompiled", first, "ms")
        yield from scheduling(bench, cache)
    compiled, loaded = [], []
    for name, work in works.items():
        with tempfile.TemporaryDirectory() as own:
            code = FIRST.format(work=work, warm=JIT)
            compiled.append(fresh(code, own, 1, PYFINCH_COMPILE="always"))
            loaded.append(fresh(code, own, 1 if bench.quick else 3, PYFINCH_COMPILE="always"))
        yield Figure("overhead", f"first call of {name}, scheduled and compiled", compiled[-1], "ms")
        yield Figure("overhead", f"first call of {name}, scheduled, kernel from disk", loaded[-1], "ms", 20.0)
    yield Figure("overhead", "cold compilation, median", statistics.median(compiled), "ms", 1200.0)


def run(bench: Bench) -> Iterator[Record]:
    """Measure."""
    yield from warm(bench)
    yield from cold(bench)
    if not bench.quick and sys.platform == "linux":
        with tempfile.TemporaryDirectory() as cache:
            ratio = fresh(MEMORY, cache, 1)
        yield Figure("overhead", "peak memory of A @ A beyond the inputs", ratio, "× the result", 2.0)
