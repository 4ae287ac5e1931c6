"""Every recording of Finch.jl through generated kernels: our plan and Finch.jl's own, with the recorded results."""

from __future__ import annotations

import numpy as np
import pytest

from pyfinch.algebra.term import postorder
from pyfinch.backends.numba.backend import NumbaExecutable
from pyfinch.formats.format import FType
from pyfinch.formats.tensor import Tensor
from pyfinch.interop.convert import to_tensor
from pyfinch.logic.nodes import Deferred, Plan
from pyfinch.schedule.format_queries import format_queries
from pyfinch.schedule.pipeline import schedule_default
from pyfinch.schedule.tidy import tidy
from tests.schedule.oracle import Recorded as Case
from tests.schedule.oracle import assert_same_value, cases


def tensors_of(case: Case, plan: Plan) -> dict[str, Tensor]:
    """The recorded tensors as the program's types have them; Finch.jl's last mode is the first storage slot."""
    types: dict[str, FType] = {t.expr: t.type for t in postorder(plan) if isinstance(t, Deferred)}
    return {
        name: to_tensor(np.ascontiguousarray(case.tensors[name].T), format=ftype.format)
        for name, ftype in types.items()
    }


def run(case: Case, plan: Plan) -> None:
    results = NumbaExecutable(plan)(tensors_of(case, plan))
    for result in results:
        result.validate()
    assert_same_value(tuple(result.todense().T for result in results), case)


@pytest.mark.parametrize("case", cases(), ids=lambda case: case.name)
def test_our_plan_has_the_recorded_values(case: Case) -> None:
    run(case, schedule_default(case.program))


@pytest.mark.parametrize("case", cases(), ids=lambda case: case.name)
def test_finchs_plan_has_the_recorded_values(case: Case) -> None:
    run(case, format_queries(tidy(case.passes[-1][1])))
