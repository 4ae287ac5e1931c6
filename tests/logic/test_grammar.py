"""Programs outside the grammar of a stage are refused, naming the node."""

from __future__ import annotations

import pytest

from pyfinch.algebra.errors import ScheduleError
from pyfinch.logic.grammar import GRAMMAR, validate
from pyfinch.logic.text import parse

TWICE = "relabel(relabel(alias(T), field(i), field(j)), field(k), field(l))"
T = "query(alias(T), table(deferred(T, nothing), field(i), field(j)))"
ACCESS = "reorder(relabel(alias(T), field(i), field(j)), field(i), field(j))"
SUM = f"aggregate(immediate(+), immediate(0.0), {ACCESS}, field(i))"

LATEST_STAGE = {
    f"plan({T}, query(alias(B), subquery(alias(S), alias(T))))": "raw",
    f"plan({T}, query(alias(B), mapjoin(immediate(abs), {SUM})))": "lifted",
    f"plan({T}, query(alias(B), {TWICE}))": "named",
    f"plan({T}, query(alias(B), mapjoin(immediate(abs), {ACCESS})))": "pushed",
    f"plan({T}, query(alias(B), {SUM}), produces(alias(B)))": "concordant",
    f"plan({T}, produces(alias(T)))": "formatted",
}


@pytest.mark.parametrize("text, latest", LATEST_STAGE.items())
def test_a_program_is_legal_up_to_a_stage(text: str, latest: str) -> None:
    stages = list(GRAMMAR)
    program = parse(text)
    for stage in stages[: stages.index(latest) + 1]:
        if not (stage in ("raw", "lifted") and latest == "formatted"):
            validate(program, stage)
    for stage in stages[stages.index(latest) + 1 :]:
        with pytest.raises(ScheduleError, match=stage):
            validate(program, stage)


@pytest.mark.parametrize(
    "text, message",
    [
        ("alias(A)", "a program is a plan"),
        ("plan(alias(A))", "no rule allows"),
        ("plan(query(alias(A), alias(B)))", "before it is bound"),
        (f"plan({T}, produces(alias(B)))", "before it is bound"),
        ("plan(query(alias(T), table(deferred(T, nothing), field(i), field(i))))", "stands twice"),
        (f"plan({T}, query(alias(B), relabel(alias(T), field(i))))", "cannot become"),
        (
            f"plan({T}, query(alias(B), aggregate(immediate(+), immediate(0), alias(T), field(k))))",
            "reduces a field",
        ),
        ("plan(query(alias(A), mapjoin(alias(B), alias(B))))", "no rule allows"),
    ],
)
def test_what_no_stage_allows(text: str, message: str) -> None:
    with pytest.raises(ScheduleError, match=message):
        validate(parse(text), "raw")
