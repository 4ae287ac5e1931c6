"""What is paid besides the kernel: warm calls, first calls, compilation, the disk cache, import, memory.

Cold figures are of fresh processes with a cache folder of their own.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import textwrap
import time
from collections.abc import Callable, Iterator
from typing import Any

import scipy.sparse as sp

import pyfinch as pf

__all__ = ["lines"]


def _microseconds(work: Callable[[], Any], number: int = 2000) -> float:
    work()
    work()
    times = []
    for _ in range(7):
        start = time.perf_counter()
        for _ in range(number):
            work()
        times.append((time.perf_counter() - start) / number * 1e6)
    return statistics.median(times)


def _fresh(code: str, cache: str, repeat: int = 3, **env: str) -> float:
    """The median of what a fresh process prints."""
    values = []
    for _ in range(repeat):
        done = subprocess.run(
            [sys.executable, "-c", textwrap.dedent(code)],
            env={**os.environ, "PYFINCH_CACHE_DIR": cache, **env},
            capture_output=True,
            text=True,
            check=True,
        )
        values.append(float(done.stdout.split()[-1]))
    return statistics.median(values)


@pf.fuse
def _ten(a: Any, b: Any, s: float) -> Any:
    x = a * b + a
    x = x * s - b
    x = pf.maximum(x, a) * b
    x = x + a * s
    return x - b * s


_IMPORT = """
import time
import numpy, scipy.sparse
start = time.perf_counter()
import pyfinch
print((time.perf_counter() - start) * 1e3)
"""
_FIRST = """
import time, numpy as np, scipy.sparse as sp
import pyfinch as pf
m = sp.random_array((100, 100), density=0.08, format="csr", rng=np.random.default_rng(0))
a, b = pf.asarray(m), pf.asarray(m.T.tocsr())
start = time.perf_counter()
{work}
print((time.perf_counter() - start) * 1e3)
"""
_COLD = """
import time, numpy as np, scipy.sparse as sp, numba
import pyfinch as pf
numba.njit("int64(int64)")(lambda x: x + 1)
m = sp.random_array((100, 100), density=0.08, format="csr", rng=np.random.default_rng(0))
a, b = pf.asarray(m), pf.asarray(m.T.tocsr())
start = time.perf_counter()
{work}
print((time.perf_counter() - start) * 1e3)
"""
_MEMORY = """
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
_WORKS = {
    "A * B": "a * b",
    "A + B": "a + b",
    "A @ B": "a @ b",
    "sum((A @ B) * A)": "pf.compute(pf.sum((pf.lazy(a) @ b) * a))",
}


def lines(quick: bool) -> Iterator[str]:
    """Lines of a Markdown list."""
    small = sp.random_array((10, 10), density=0.3, format="csr")
    other, x = small.T.tocsr(), small.toarray()[0]
    a, b, fx = pf.asarray(small), pf.asarray(other), pf.asarray(x)
    calls = {
        "A @ x": (lambda: a @ fx, lambda: small @ x),
        "A * B": (lambda: a * b, lambda: small.multiply(other)),
        "A @ B": (lambda: a @ b, lambda: small @ other),
    }
    for name, (ours, peer) in calls.items():
        times = f"{_microseconds(ours):.0f} µs in all, SciPy {_microseconds(peer):.0f} µs"
        yield f"- warm eager {name}, 10×10: {times} (wanted: ≤ 60 µs over the kernel)"
    fused = _microseconds(lambda: _ten(a, b, 0.5), 500)
    yield f"- warm fused ten-operation program: {fused:.0f} µs in all (wanted: ≤ 500 µs)"
    with tempfile.TemporaryDirectory() as cache:
        yield f"- import over NumPy and SciPy: {_fresh(_IMPORT, cache, 7):.0f} ms (wanted: ≤ 150 ms)"
        for name, work in _WORKS.items():
            first = _fresh(_FIRST.format(work=work), cache, PYFINCH_COMPILE="auto")
            yield f"- first call of {name} in a new process, uncompiled: {first:.0f} ms (wanted: ≤ 150 ms)"
        for name, work in _WORKS.items():
            with tempfile.TemporaryDirectory() as own:
                cold = _fresh(_COLD.format(work=work), own, 1, PYFINCH_COMPILE="always")
                warm = _fresh(_COLD.format(work=work), own, 3, PYFINCH_COMPILE="always")
            yield (
                f"- {name}, scheduling included: compiled cold {cold:.0f} ms (wanted: ≤ 2500 ms a kernel), "
                f"from disk {warm:.0f} ms (wanted: ≤ 60 ms a kernel)"
            )
        if not quick:
            ratio = _fresh(_MEMORY, cache, 1)
            yield f"- peak memory of A @ A beyond the inputs: {ratio:.2f} × the result (wanted: ≤ 2 × and a workspace)"
