"""Results that some arguments fix whatever the others are."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pyfinch.algebra.fixed import fixed_result
from pyfinch.algebra.operators import get

NAN, INF = np.float64("nan"), np.float64("inf")


def fixed(symbol: str, *known: Any, dtype: str = "float64") -> Any:
    op = get(symbol, len(known))
    dtypes = [np.dtype(dtype) if value is None else value.dtype for value in known]
    return fixed_result(op, list(known), dtypes)


def test_annihilators_fix() -> None:
    assert fixed("*", np.float64(0), None) == 0
    assert fixed("+", -INF, None) == -INF
    assert fixed("/", np.float64(0), None) == 0
    assert fixed("^", np.float64(1), None) == 1


@pytest.mark.parametrize("value", [np.float64(0.3), np.float64(5), np.float64(1e300), NAN])
def test_literals_that_no_sample_equals_fix_nothing(value: Any) -> None:
    for symbol in ("==", "!=", "<", "<=", ">"):
        found = fixed(symbol, value, None)
        assert found is None or value != value


def test_a_nan_that_may_come_through_counts() -> None:
    assert fixed("ifelse", None, NAN, np.float64(2), dtype="bool") is None
    assert np.isnan(fixed("ifelse", None, NAN, NAN, dtype="bool"))
    assert np.isnan(fixed("-", NAN, None))


def test_what_another_argument_annihilates_is_not_fixed() -> None:
    for dtype in ("bool", "uint8", "float64"):
        assert fixed("*", -INF, None, dtype=dtype) is None


def test_a_complex_condition_chooses() -> None:
    assert fixed("ifelse", np.complex64(0), None, np.int8(1), dtype="int32") == 1
    assert fixed("ifelse", np.complex64(1j), None, np.int8(1), dtype="int32") is None


@pytest.mark.parametrize("dtype", ["uint16", "bool"])
def test_what_is_undefined_somewhere_is_fixed_only_as_zero(dtype: str) -> None:
    # All but 0 / 0 are infinite.
    assert fixed_result(get("/"), [None, np.dtype(dtype).type(0)], [np.dtype(dtype)] * 2) is None
    assert fixed_result(get("/"), [np.dtype(dtype).type(0), None], [np.dtype(dtype)] * 2) == 0
