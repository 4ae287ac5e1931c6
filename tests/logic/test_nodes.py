"""Fields of expressions."""

from __future__ import annotations

import numpy as np
import pytest

from pyfinch.logic.nodes import Alias, Field, Immediate, LogicNode, MapJoin, Relabel, fields
from pyfinch.logic.text import parse


@pytest.mark.parametrize(
    "text, names",
    [
        ("immediate(1.0)", ""),
        ("table(deferred(T, nothing), field(i), field(j))", "ij"),
        ("relabel(alias(A), field(j), field(i))", "ji"),
        ("reorder(relabel(alias(A), field(j), field(i)), field(k), field(i))", "ki"),
        ("mapjoin(immediate(+), relabel(alias(A), field(j)), relabel(alias(B), field(i), field(j)))", "ji"),
        ("aggregate(immediate(+), immediate(0), relabel(alias(A), field(j), field(i)), field(j))", "i"),
        ("subquery(alias(B), relabel(alias(A), field(j)))", "j"),
        ("reformat(deferred(F, nothing), relabel(alias(A), field(j)))", "j"),
    ],
)
def test_fields(text: str, names: str) -> None:
    assert "".join(field.name for field in fields(parse(text))) == names


def test_a_bare_alias_has_the_fields_it_is_bound_to() -> None:
    i = Field("i")
    assert fields(MapJoin(Immediate(1), (Alias("A"),)), {Alias("A"): (i,)}) == (i,)
    with pytest.raises(KeyError):
        fields(Alias("A"))


def test_statements_have_no_fields() -> None:
    with pytest.raises(TypeError, match="Produces"):
        fields(parse("produces(alias(A))"))


def test_numbers_become_numpy_scalars() -> None:
    assert Immediate(1) is Immediate(np.int64(1))
    assert Immediate(True) is Immediate(np.bool_(True))
    assert Immediate(1.0).value.dtype == np.float64


def test_fields_of_a_deep_shared_expression() -> None:
    node: LogicNode = Relabel(Alias("A"), (Field("i"),))
    for _ in range(20_000):
        node = MapJoin(Immediate(1), (node, node))
    assert fields(node) == (Field("i"),)
