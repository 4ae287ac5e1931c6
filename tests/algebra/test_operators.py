"""Every row of the operator table against NumPy, and every declared law by brute force."""

from __future__ import annotations

import itertools
import math
import warnings

import numpy as np
import pytest

from pyfinch.algebra import operators as ops
from pyfinch.algebra import scalar_functions
from pyfinch.algebra.dtypes import SUPPORTED_DTYPES, constructor
from pyfinch.algebra.errors import DTypeError

INEXACT = 4e-6
PAIRS = (
    "int64 uint64",
    "uint64 int64",
    "int8 uint8",
    "int32 float32",
    "bool int8",
    "float32 float64",
    "int64 complex64",
    "uint8 int64",
)


def samples(dtype: np.dtype) -> np.ndarray:
    if dtype.kind == "b":
        return np.array([False, True])
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        raw = [0, 1, 2, 3, 7, info.max, info.max - 1, info.min] + ([-1, -2, -5] if dtype.kind == "i" else [8, 65])
        return np.array(raw, dtype=dtype)
    real = [0.0, -0.0, 1.0, -1.0, 0.5, 2.5, -2.5, 3.0, 1e5, np.inf, -np.inf, np.nan]
    if dtype.kind == "f":
        return np.array(real, dtype=dtype)
    pairs = [0, 1, -1, 1j, -1j, 2 + 3j, -0.5 + 0.25j, 1.5 - 2j, 3 + 0j]
    return np.array(pairs, dtype=dtype)


def emitted(op, dtypes, compiled=False):
    """The function that an emitter makes: cast arguments, apply the template, cast the result."""
    names = [f"a{i}" for i in range(len(dtypes))]
    casts = [
        n if (d == w) else f"{constructor(w)}({n})"
        for n, d, w in zip(names, dtypes, op.operand_dtypes(*dtypes), strict=True)
    ]
    lines = [f"    b{i} = {c}" for i, c in enumerate(casts)]
    body = op.template(*dtypes).format(*(f"b{i}" for i in range(len(dtypes))))
    result = constructor(op.result_dtype(*dtypes))
    source = f"def f({', '.join(names)}):\n" + "\n".join(lines) + f"\n    return {result}({body})\n"
    scope = {"np": np, "math": math}
    scope.update({n: getattr(scalar_functions, n) for n in scalar_functions.__all__})
    if compiled:
        import numba

        for n in scalar_functions.__all__:
            scope[n] = numba.njit(error_model="numpy")(scope[n])
        exec(source, scope)
        return numba.njit(error_model="numpy")(scope["f"])
    exec(source, scope)
    return scope["f"]


def arity_of(op):
    return 2 if op.arity == -1 else op.arity


def signatures(op):
    n = arity_of(op)
    for dtype in SUPPORTED_DTYPES:
        yield (dtype,) * n
    if n == 2:
        for pair in PAIRS:
            yield tuple(np.dtype(d) for d in pair.split())
    if op.name == "where":
        yield tuple(np.dtype(d) for d in ("float64", "int8", "float32"))
        yield tuple(np.dtype(d) for d in ("bool", "int32", "int64"))


def accepts(op, dtypes):
    try:
        op.result_dtype(*dtypes)
    except DTypeError:
        return False
    return True


def agree(op, got, want, dtype):
    if dtype.kind in "biu":
        return got == want
    if dtype.kind == "f":
        if np.isnan(got) or np.isnan(want):
            return np.isnan(got) and np.isnan(want)
        return np.isclose(got, want, rtol=INEXACT if dtype.itemsize == 4 else 1e-12, atol=0 if want == 0 else 1e-300)
    if not (np.isfinite(got) and np.isfinite(want)):
        return not np.isfinite(got) and not np.isfinite(want)
    return np.isclose(
        got, want, rtol=1e-5 if dtype.itemsize == 8 else 1e-12, atol=1e-6 if dtype.itemsize == 8 else 1e-14
    )


def argument_sets(dtypes):
    pools = [samples(d) for d in dtypes]
    if len(pools) == 3:
        pools = [p[:: max(1, len(p) // 6)] for p in pools]
    return itertools.product(*pools)


def check(op, dtypes, compiled):
    f = emitted(op, dtypes, compiled)
    result = op.result_dtype(*dtypes)
    wrong = []
    for args in argument_sets(dtypes):
        if op.name == "pow" and result.kind in "iu" and args[1] < 0:
            with pytest.raises(ValueError, match="integer power"):
                f(*args)
            continue
        if op.name == "pow" and result.kind == "f" and args[0] == -np.inf and args[1] == 0.5:
            continue  # NumPy takes a square root here (nan) where C's pow gives inf
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            want = op(*args)
            got = np.asarray(f(*args))[()]
        if not compiled:
            assert np.asarray(want).dtype == result, (op, dtypes)
            assert np.asarray(got).dtype == result, (op, dtypes, got)
        if not agree(op, got, want, result):
            wrong.append((args, got, want))
    assert not wrong, f"{op.name} {[d.name for d in dtypes]}: {wrong[:5]} ({len(wrong)} wrong)"


@pytest.mark.parametrize("op", ops.all_operators(), ids=lambda op: op.name)
def test_template_in_plain_python_gives_numpys_value_and_dtype(op):
    taken = [s for s in signatures(op) if accepts(op, s)]
    assert taken
    for dtypes in taken:
        check(op, dtypes, compiled=False)


COMPILED = ("bool", "int8", "int64", "uint64", "float32", "float64", "complex128")
NUMBA_PAIRS = ("int64 uint64", "bool int8", "int64 complex64")


def numba_cases():
    for op in ops.all_operators():
        n = arity_of(op)
        unary_float = (
            n == 1
            and "f" in op.kinds
            and op.template("float64").startswith("np.")
            and op.name not in ("ceil", "isnan", "signbit")
        )
        wanted = ("float64", "complex128") if unary_float else COMPILED
        if op.name in ("asinh", "acosh", "atanh", "sinh", "cosh", "tanh", "acos", "asin", "atan", "tan"):
            wanted = ("float32", "complex128")
        for name in wanted:
            yield op, (np.dtype(name),) * n
        if n == 2 and op.name in ("equal", "less", "greater_equal", "add", "maximum", "logical_and", "pow"):
            for pair in NUMBA_PAIRS:
                yield op, tuple(np.dtype(d) for d in pair.split())


@pytest.mark.parametrize(
    ("op", "dtypes"),
    [(op, s) for op, s in numba_cases() if accepts(op, s)],
    ids=lambda v: v.name if hasattr(v, "name") else "-".join(d.name for d in v),
)
def test_template_compiled_by_numba_gives_numpys_value(op, dtypes):
    check(op, dtypes, compiled=True)
