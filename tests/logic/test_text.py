"""Programs as text: exact round trip, and errors that say where."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from pyfinch.algebra import operators as ops
from pyfinch.algebra.carriers import cast, choose, initwrite
from pyfinch.algebra.dtypes import SUPPORTED_DTYPES
from pyfinch.algebra.errors import ParseError
from pyfinch.algebra.operators import all_operators
from pyfinch.formats.format import format
from pyfinch.logic.json_form import from_json, numbered, to_json
from pyfinch.logic.nodes import Alias, Deferred, Field, Immediate, MapJoin, Plan, Query, Reformat, Table
from pyfinch.logic.text import bindings_of, parse

scalars = st.sampled_from(SUPPORTED_DTYPES).flatmap(lambda dtype: hnp.from_dtype(dtype))


@given(scalars)
def test_every_number_reads_back_with_its_type_and_bits(value: np.generic) -> None:
    node = Immediate(value)
    assert parse(str(node)) is node


@given(st.text())
def test_any_name_reads_back(name: str) -> None:
    node = Query(Alias(name), Table(Deferred(name, None), (Field(name),)))
    assert parse(str(node)) is node


@pytest.mark.parametrize("op", all_operators(), ids=lambda op: op.name)
def test_every_operator_reads_back(op: ops.Operator) -> None:
    bare = Immediate(op)
    assert parse(str(bare)) is bare
    args = tuple(Alias(f"A{n}") for n in range(max(op.arity, 2) if op.arity < 0 else op.arity))
    used = MapJoin(bare, args)
    assert str(used).startswith(f"mapjoin(immediate({op.symbol})")
    assert parse(str(used)) is used
    assert from_json(to_json(used)) is used


@pytest.mark.parametrize(
    "op", [cast("int8"), cast("float32"), choose(0.0), initwrite(np.float32("inf")), choose(np.bool_(True))]
)
def test_operators_that_carry_something_read_back(op: ops.Operator) -> None:
    assert parse(str(Immediate(op))) is Immediate(op)


def test_objects_are_named_between_backticks_and_bound_again() -> None:
    csr, array = format("csr"), np.zeros(3)
    node = Plan(
        (
            Query(Alias("A"), Reformat(Immediate(csr), Table(Immediate(array), (Field("i"),)))),
            Query(Alias("B"), Table(Immediate(np.zeros(3)), (Field("i"),))),
        )
    )
    names = bindings_of(node)
    assert sorted(map(type, names.values()), key=str) == sorted([type(csr), np.ndarray, np.ndarray], key=str)
    assert parse(str(node), names) is node
    with pytest.raises(ParseError, match="not in the bindings"):
        parse(str(node))


def test_white_space_and_line_breaks_are_free() -> None:
    assert parse(" plan (\n  query ( alias(A) ,\n alias( B ) ) )\n") is Plan((Query(Alias("A"), Alias("B")),))


@pytest.mark.parametrize(
    "text, message",
    [
        ("", "expected 'more text'"),
        ("plan(", "expected"),
        ("plan(query(alias(A)))", "query with 1 parts"),
        ("plan() plan()", "unexpected 'plan'"),
        ("frob(alias(A))", "'frob' is not a kind"),
        ("query(field(A), alias(B))", "not an alias"),
        ("relabel(alias(A), alias(B))", "not a field"),
        ("immediate(no_such_op)", "no operator"),
        ("alias(1)", "not a name"),
        ("immediate(Int8(1, 2))", "takes one number"),
    ],
)
def test_errors_say_what_and_where(text: str, message: str) -> None:
    with pytest.raises(ParseError, match=message):
        parse(text)


def test_depth_is_no_limit() -> None:
    node = Alias("A")
    for _ in range(20_000):
        node = MapJoin(Immediate(ops.get("abs")), (node,))
    assert parse(str(node)) is node
    assert from_json(to_json(node)) is node


def test_numbering_is_by_first_appearance() -> None:
    a = parse("plan(query(alias(x), relabel(alias(y), field(q))), query(alias(y), alias(x)))")
    b = parse("plan(query(alias(A0), relabel(alias(A1), field(i0))), query(alias(A1), alias(A0)))")
    assert numbered(a) is b


@pytest.mark.parametrize("form", [[], ["frob"], ["alias", 3], "alias", ["plan", 3], ["lit", 1]])
def test_json_that_is_no_program(form: object) -> None:
    with pytest.raises(ParseError):
        from_json(form)  # type: ignore[arg-type]
