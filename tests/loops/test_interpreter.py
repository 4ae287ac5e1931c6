"""The interpreter against NumPy."""

from __future__ import annotations

import numpy as np
import pytest

from pyfinch.algebra.errors import ShapeError
from pyfinch.interop.convert import to_tensor
from pyfinch.loops.interpreter import interpret
from pyfinch.loops.text import parse
from tests.loops.types import SPGEMM, TYPES, ftype

VALUES = np.random.default_rng(3)
a, b = VALUES.random((3, 4)), VALUES.random((4, 5))


def test_product_through_a_workspace() -> None:
    (found,) = interpret(parse(SPGEMM, TYPES), {"A": a, "B": b})
    np.testing.assert_allclose(found, a @ b)


def test_every_statement() -> None:
    text = """s .= 1.0
    for i = 0:n - 1
        if i != 1
            let t = x[i] + 1.0
                s[] *= t
            end
        end
    end
    @freeze(s)
    @thaw(s)
    s[] += 0.5
    @freeze(s)
    return (s, x)"""
    types = {**TYPES, "s": ftype("scalar", fill=1)}
    found, same = interpret(parse(text, types), {"x": [1.0, 2.0, 3.0], "n": 3})
    assert found == 2.0 * 4.0 + 0.5
    np.testing.assert_array_equal(same, [1.0, 2.0, 3.0])


def test_each_call_has_numpys_dtype() -> None:
    types = {"A": ftype("csr", dtype="int8"), "R": ftype("csr", dtype="int8")}
    text = "R .= Int8(0); for i = _; for j = _; R[i, j] = A[i, j] * A[i, j] + A[i, j] end end; @freeze(R); return R"
    values = np.array([[100, 7]], np.int8)
    (found,) = interpret(parse(text, types), {"A": values})
    assert found.dtype == np.int8
    np.testing.assert_array_equal(found, values * values + values)


def test_tensors_bring_their_fill_and_mode_order() -> None:
    dense = np.array([[7.5, 1.0, 2.0], [7.5, 7.5, 3.0]])
    tensor = to_tensor(dense, format="csc", fill_value=7.5)
    types = {"A": tensor.ftype, "s": ftype("scalar"), "A_fill": np.dtype("float64")}
    text = "s .= 0.0; for j = _; for i = _; s[] += (A[j, i] - A_fill) * Float64(i + 1) end end; @freeze(s); return s"
    (found,) = interpret(parse(text, types), {"A": tensor})
    assert found == ((dense - 7.5) * [[1], [2]]).sum()


def test_annihilators_on_request() -> None:
    text = "s .= 0.0; for i = _; s[] += x[i] * y[i] end; @freeze(s); return s"
    data = {"x": [0.0, 1.0], "y": [np.inf, 2.0]}
    assert np.isnan(interpret(parse(text, TYPES), data)[0])
    assert interpret(parse(text, TYPES), data, annihilate=True)[0] == 2.0


def test_extents_must_be_known_and_agree() -> None:
    with pytest.raises(ShapeError, match="nothing gives the extent"):
        interpret(parse("s .= 0.0; for i = _; s[] += 1.0 end", TYPES), {})
    with pytest.raises(ShapeError, match="has 3 there"):
        interpret(parse("s .= 0.0; for i = _; s[] += x[i] * y[i] end", TYPES), {"x": [1.0, 2.0], "y": [1.0] * 3})
