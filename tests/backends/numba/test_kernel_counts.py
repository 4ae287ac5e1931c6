"""Which programs share a kernel: shapes, scalars and fill values do not make new ones."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pyfinch.backends.numba import tiers
from pyfinch.interop.convert import to_tensor
from pyfinch.loops.text import parse
from tests.loops.types import TYPES

api = pytest.importorskip("pyfinch.api.lazy")
compute = pytest.importorskip("pyfinch.api.compute")


def matrix(n: int, m: int, seed: int = 0, fill: float = 0.0, dtype: str = "float64") -> Any:
    rng = np.random.default_rng(seed)
    values = np.where(rng.random((n, m)) < 0.4, rng.integers(1, 9, (n, m)), fill).astype(dtype)
    return to_tensor(values, format="csr", fill_value=np.dtype(dtype).type(fill)), values


def run(kernels: set[Any], op: str, *args: Any) -> Any:
    from pyfinch.algebra.operators import get

    lazies = {id(arg): api.table(arg if hasattr(arg, "ftype") else to_tensor(arg)) for arg in args}
    lazy = api.map_join(get(op), tuple(lazies[id(arg)] for arg in args))
    ready, names = compute.prepare([lazy])
    executable = ready.executable.chosen({n: lazy.operands[old] for n, old in zip(ready.names, names, strict=True)})
    kernels.update(step.kernel for step in executable.steps if step.kernel is not None)
    (result,) = compute.compute_all([lazy])
    result.validate()
    return result.todense()


def test_extents_are_no_part_of_a_kernel() -> None:
    kernels: set[Any] = set()
    for n, m in ((6, 5), (3, 7), (40, 2)):
        (a, x), (b, y) = matrix(n, m, 1), matrix(n, m, 2)
        np.testing.assert_array_equal(run(kernels, "+", a, b), x + y)
    assert len(kernels) == 1


def test_size_one_broadcasts() -> None:
    kernels: set[Any] = set()
    for n, m in ((5, 6), (1, 6), (5, 1), (1, 1), (5, 6)):
        (a, x), (b, y) = matrix(5, 6, 1), matrix(n, m, 2)
        np.testing.assert_array_equal(run(kernels, "*", a, b), x * y)
        np.testing.assert_array_equal(run(kernels, "+", b, a), x + y)


def test_one_operand_twice_is_another_program() -> None:
    kernels: set[Any] = set()
    (a, x), (b, y) = matrix(5, 6, 1), matrix(5, 6, 2)
    np.testing.assert_array_equal(run(kernels, "*", a, a), x * x)
    np.testing.assert_array_equal(run(kernels, "*", a, b), x * y)
    np.testing.assert_array_equal(run(kernels, "*", b, b), y * y)
    assert len(kernels) == 2


def test_a_new_scalar_compiles_nothing() -> None:
    kernels: set[Any] = set()
    a, x = matrix(5, 6, 1)
    for value in (0.25, 0.5, -3.25, 1e300):
        np.testing.assert_array_equal(run(kernels, "*", a, np.float64(value)), x * value)
    assert len(kernels) == 1


def test_a_new_fill_value_compiles_nothing() -> None:
    kernels: set[Any] = set()
    for fill in (7.5, 2.5, -3.0):
        (a, x), (b, y) = matrix(5, 6, 1, fill), matrix(5, 6, 2, fill)
        np.testing.assert_array_equal(run(kernels, "+", a, b), x + y)
    assert len(kernels) == 1


def test_two_threads_make_one_kernel() -> None:
    from concurrent.futures import ThreadPoolExecutor

    program = parse("s .= 0.0\nfor i = _; s[] += x[i] end\n@freeze(s)\nreturn s", TYPES)
    with ThreadPoolExecutor(8) as pool:
        found = set(pool.map(lambda _: tiers.kernel_for(program), range(64)))  # type: ignore[arg-type]
    assert len(found) == 1
