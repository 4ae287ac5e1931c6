"""Random programs: kernels, run as plain Python, against the interpreter."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pyfinch.algebra.operators import all_operators, get
from tests.loops import random_programs as rp


@dataclass
class Drawn:
    """Choices that Hypothesis makes and shrinks; numbers come from a seed that it draws."""

    data: st.DataObject
    values: np.random.Generator = field(init=False)

    def __post_init__(self) -> None:
        self.values = np.random.default_rng(self.data.draw(st.integers(0, 2**32 - 1)))

    def pick(self, options: Sequence[Any]) -> Any:
        return options[self.data.draw(st.integers(0, len(options) - 1))]

    def integer(self, low: int, high: int) -> int:
        return self.data.draw(st.integers(low, high))


def run(make: Callable[..., rp.Case], choices: rp.Choices) -> None:
    with np.errstate(all="ignore"):
        try:
            rp.compare(make(choices))
        except ValueError as error:  # NumPy's own, and ours: integers have no negative powers
            if "integer power" not in str(error) and "negative integer powers" not in str(error):
                raise


@pytest.mark.parametrize("make", [rp.pointwise, rp.reduction, rp.product, rp.named_product])
@given(data=st.data())
@settings(max_examples=300, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
def test_kernels_are_what_the_interpreter_says(make: Callable[..., rp.Case], data: st.DataObject) -> None:
    run(make, Drawn(data))


@pytest.mark.parametrize("name", [op.name for op in all_operators() if op in rp.OPERATORS])
def test_each_operator(name: str) -> None:
    for seed in range(8):
        choices = rp.Seeded(np.random.default_rng(seed))
        run(lambda choices: rp.pointwise(choices, [get(name)]), choices)


@pytest.mark.parametrize("make", [rp.pointwise, rp.reduction, rp.product, rp.named_product])
def test_seeds_that_failed_once(make: Callable[..., rp.Case]) -> None:
    for seed in (4, 25, 26, 28, 78, 90, 124, 134, 138, 243, 245, 383, 386, 554, 636, 755, 866, 1618, 7169):
        run(make, rp.Seeded(np.random.default_rng(seed)))
