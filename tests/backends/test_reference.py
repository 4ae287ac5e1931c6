"""The reference backend: values of the interpreter in the formats of the plan."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pyfinch as pf
from pyfinch.api.compute import compute_all
from pyfinch.backends.base import Scheduled, get_backend, get_scheduler
from pyfinch.backends.reference import ReferenceBackend, fill_value
from pyfinch.formats.format import Format, format
from pyfinch.formats.levels import Element
from pyfinch.logic.nodes import Deferred, Immediate, MapJoin
from pyfinch.logic.text import parse
from tests.api.cases import stored, tensors

PROGRAMS = [
    lambda x, y: x + y,
    lambda x, y: x * y + 0.25,
    lambda x, y: x @ y.T,
    lambda x, y: (x + 0.5).sum(axis=0),
    lambda x, y: x / (y + 1.5),
    lambda x, y: x + y.sum(),
    lambda x, y: pf.maximum(x, 0.5).T,
    lambda x, y: (x - 2).min(axis=1, keepdims=True) * y,
    lambda x, y: pf.expand_dims(x, axis=1) * y,
]


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_it_stores_as_the_numba_backend_does(data):
    _, x = data.draw(tensors((3, 4)))
    _, y = data.draw(tensors((3, 4), fill=data.draw(st.sampled_from([0, 1, 2.5]))))
    program = data.draw(st.sampled_from(PROGRAMS))
    results = [compute_all([program(pf.lazy(x), pf.lazy(y))], backend)[0] for backend in ("reference", "numba")]
    one, two = results
    one.validate()
    np.testing.assert_allclose(one.todense(), two.todense(), atol=1e-12)
    assert one.dtype == two.dtype
    assert [type(level) for level in one.ftype.levels] == [type(level) for level in two.ftype.levels]
    assert one.ftype.mode_order == two.ftype.mode_order
    if one.ndim and "sparse" in str(one.format):
        np.testing.assert_allclose(one.fill_value, two.fill_value)


def test_several_results_and_permuted_ones():
    x = pf.lazy(stored(np.arange(6.0).reshape(2, 3), "csr"))
    a, b, c = pf.compute((x.T, x + x, x.sum()), backend="reference")
    np.testing.assert_array_equal(a.todense(), np.arange(6.0).reshape(2, 3).T)
    np.testing.assert_array_equal(b.todense(), np.arange(6.0).reshape(2, 3) * 2)
    assert float(c) == 15
    assert a.format.mode_order == (1, 0)


def test_fill_values_are_expressions_over_run_time_values():
    half = Deferred("T0", np.dtype(float))
    total = MapJoin(Immediate(pf.add.operator), (half, Deferred("literal np.float64(0.25)", np.dtype(float))))
    assert fill_value(total, np.dtype(np.float32), {"T0": np.float64(0.5)}) == np.float32(0.75)
    nothing = Deferred("something", np.dtype(float))
    with pytest.raises(pf.ScheduleError, match="something"):
        fill_value(nothing, np.dtype(float), {})


def test_it_is_available_and_shows_the_plan():
    assert ReferenceBackend().available().available
    from pyfinch.api.compute import program_of
    from pyfinch.schedule.pipeline import schedule_default

    program, _ = program_of([pf.lazy(pf.eye(2)) * 2])
    executable = get_backend("reference").compile(Scheduled(schedule_default(program), "default"))
    assert executable.source.startswith("plan(")


def test_the_fill_is_the_kernels_where_a_sparse_field_is_dropped() -> None:
    """What is dense in its other fields is not stored everywhere: its fill counts."""
    dcsr = pf.asarray(np.zeros((1, 1))).to_format("dcsr")
    rows = pf.asarray(np.zeros((1, 1))).to_format("sparse_list(dense(element(0.0)))")
    names = "table(deferred(A, A), field(i), field(j)), reorder(table(deferred(B, B), field(i), field(k)), field(i))"
    program = parse(
        f"plan(query(alias(R), mapjoin(immediate(/), {names})), produces(alias(R)))", {"A": dcsr.ftype, "B": rows.ftype}
    )
    scheduled = get_scheduler("default")[1](program)
    for backend in ("reference", "numba"):
        (result,) = get_backend(backend).compile(scheduled)({"A": dcsr, "B": rows})
        assert np.isnan(result.fill_value)


PROGRAMS_OF_NUMBERS = {
    "a number under fields, summed over one": "aggregate(immediate(+), immediate(0.0), reorder(mapjoin(immediate(abs), "
    "table(deferred(S, S))), field(i), field(j)), field(i))",
    "zero times infinity": "mapjoin(immediate(*), immediate(0.0), table(deferred(V, V), field(i)))",
}


@pytest.mark.parametrize("expression", PROGRAMS_OF_NUMBERS.values(), ids=PROGRAMS_OF_NUMBERS)
def test_backends_give_one_shape_and_one_fill(expression: str) -> None:
    infinite = Format((*format("sparse_vector").levels[:-1], Element(np.float64("inf"))), (0,))
    given = {"S": pf.asarray(2.0), "V": pf.asarray(np.full(3, np.inf)).to_format(infinite)}
    types = {name: tensor.ftype for name, tensor in given.items()}
    scheduled = get_scheduler("default")[1](parse(f"plan(query(alias(R), {expression}), produces(alias(R)))", types))
    (ours,), (theirs,) = (get_backend(name).compile(scheduled)(given) for name in ("reference", "numba"))
    assert ours.shape == theirs.shape
    np.testing.assert_equal(ours.fill_value, theirs.fill_value)
