"""What fills become under operations."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pyfinch.algebra.fixed import fixed_result
from pyfinch.algebra.operators import get
from pyfinch.logic.fills import apply_to_fills
from pyfinch.logic.nodes import Deferred, Immediate, MapJoin

F8 = np.dtype("float64")
S, R = Deferred("s", F8), Deferred("r", F8)


@pytest.mark.parametrize(
    "op, known, wanted",
    [
        ("*", (0.0, None), 0.0),
        ("*", (1.0, None), None),
        ("+", (0.0, None), None),
        ("/", (0.0, None), 0.0),
        ("/", (None, 0.0), None),
        ("max", (np.inf, None), np.inf),
        ("max", (0.0, None), None),
        ("^", (0.0, None), None),
        ("^", (None, 0.0), 1.0),
        (">", (0.0, None), None),
        ("ifelse", (False, None, 2.0), 2.0),
        ("ifelse", (None, 2.0, 2.0), 2.0),
        ("ifelse", (True, None, 2.0), None),
        ("+", (2.0, 3.0), 5.0),
    ],
)
def test_results_that_do_not_depend_on_the_unknown(op: str, known: tuple[Any, ...], wanted: Any) -> None:
    values = [None if value is None else np.asarray(value)[()] for value in known]
    dtypes = [F8 if value is None else value.dtype for value in values]
    found = fixed_result(get(op), values, dtypes)
    if wanted is None:
        assert found is None
    else:
        np.testing.assert_equal(found, wanted)


def test_fills_known_at_run_time_stay_expressions() -> None:
    plus = get("+")
    assert apply_to_fills(plus, [S, R], [F8, F8]) is MapJoin(Immediate(plus), (S, R))
    assert apply_to_fills(plus, [S, Immediate(0.0)], [F8, F8]) is S
    assert apply_to_fills(get("-"), [S, Immediate(0.0)], [F8, F8]) is S
    assert apply_to_fills(get("-"), [Immediate(0.0), S], [F8, F8]) is not S
    assert apply_to_fills(get("max"), [S, S], [F8, F8]) is S
    assert apply_to_fills(get("*"), [S, Immediate(0.0)], [F8, F8]) is Immediate(0.0)
    assert apply_to_fills(plus, [S, None], [F8, F8]) is None
    where = get("where")
    assert apply_to_fills(where, [Immediate(True), S, None], [np.dtype(bool), F8, F8]) is S
    assert apply_to_fills(where, [None, S, S], [np.dtype(bool), F8, F8]) is S


def test_a_fill_that_stays_as_it_is_gets_the_dtype_of_the_result() -> None:
    flag = Deferred("flag", np.dtype(bool))
    widened = MapJoin(Immediate(get("cast(float64)")), (flag,))
    assert apply_to_fills(get("+"), [flag, Immediate(0.0)], [np.dtype(bool), F8]) is widened
    assert apply_to_fills(get("where"), [Immediate(True), flag, None], [np.dtype(bool), np.dtype(bool), F8]) is widened
    truth = MapJoin(Immediate(get("cast(bool)")), (S,))
    assert apply_to_fills(get("logical_or"), [S, S], [F8, F8]) is truth
