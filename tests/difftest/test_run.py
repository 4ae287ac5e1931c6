"""All executors that need no Julia agree on random programs; one that is wrong is found, shrunk and reported."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings

from pyfinch.algebra.errors import BackendUnavailableError
from pyfinch.algebra.term import postorder
from pyfinch.backends import base
from pyfinch.backends.base import Scheduled, register_backend
from pyfinch.backends.comparison import same
from pyfinch.backends.reference import ReferenceBackend, ReferenceExecutable
from pyfinch.cli import main
from pyfinch.difftest import Case, pair, random_case, run
from pyfinch.difftest.differences import DIFFERENCES, Difference
from pyfinch.difftest.liberties import explains
from pyfinch.difftest.report import julia_code, python_test
from pyfinch.difftest.shrink import shrink
from pyfinch.difftest.strategies import cases
from pyfinch.formats.tensor import Tensor
from pyfinch.logic.nodes import MapJoin

SLOW_TO_START = [pair("reference"), pair("unfused:reference")]
ALL = [*SLOW_TO_START, pair("numba"), pair("unfused:numba")]


@settings(max_examples=100, deadline=None)
@given(cases())
def test_fused_or_not_a_program_has_one_value(case: Case) -> None:
    outcome = run(case, SLOW_TO_START)
    assert outcome.agrees, outcome.mismatches


@pytest.mark.parametrize("start", range(0, 40, 10))
def test_kernels_give_what_dense_numpy_gives(start: int) -> None:
    for seed in range(start, start + 10):
        outcome = run(random_case(seed), ALL)
        assert outcome.agrees, (seed, outcome.mismatches)


class WrongExecutable:
    """Runs a plan right, then spoils what has a product in it."""

    def __init__(self, scheduled: Scheduled) -> None:
        self.right = ReferenceExecutable(scheduled.plan)
        self.source = ""
        maps = [term for term in postorder(scheduled.plan) if isinstance(term, MapJoin)]
        self.spoils = any(str(term.op) == "immediate(*)" for term in maps)

    def __call__(self, tensors: dict[str, Tensor]) -> tuple[Tensor, ...]:
        results = self.right(tensors)
        return tuple(map(self.spoiled, results)) if self.spoils else results

    def spoiled(self, result: Tensor) -> Tensor:
        values = result.buffers[-1][0]
        return (
            result
            if not values.size
            else Tensor(result.ftype, result.shape, result.fill_value, (*result.buffers[:-1], (np.zeros_like(values),)))
        )


class WrongBackend(ReferenceBackend):
    """A backend with a defect."""

    name = "wrong"

    def compile(self, scheduled: Scheduled) -> WrongExecutable:
        return WrongExecutable(scheduled)


@pytest.fixture
def wrong() -> object:
    register_backend("wrong", WrongBackend)
    yield ("default", "wrong")
    base._backends.pop("wrong")
    base._made.pop("wrong", None)


def test_a_defect_is_found_and_shrunk_to_its_cause(wrong: tuple[str, str]) -> None:
    def fails(case: Case) -> bool:
        return not run(case, [wrong]).agrees

    failing = [case for case in map(random_case, range(80)) if fails(case)]
    assert failing
    small = shrink(failing[0], fails, attempts=400)
    maps = {term for term in postorder(small.program) if isinstance(term, MapJoin)}
    assert len(maps) == 1
    assert sum(np.count_nonzero(tensor.todense() != tensor.fill_value) for tensor in small.tensors.values()) <= 3
    code = python_test(small, [wrong])
    namespace: dict[str, object] = {}
    exec(code, namespace)
    with pytest.raises(AssertionError, match="value"):
        namespace["test_case"]()
    assert "Finch.LogicExecutor" in julia_code(small)


def test_reports_run_as_they_stand() -> None:
    for seed in range(30):
        namespace: dict[str, object] = {}
        exec(python_test(random_case(seed), [("default", "reference")]), namespace)
        namespace["test_case"]()


class FailingBackend(ReferenceBackend):
    """A backend that cannot compile."""

    name = "failing"

    def compile(self, scheduled: Scheduled) -> ReferenceExecutable:
        """Fail."""
        raise ZeroDivisionError("as ever")


def test_an_exception_is_an_outcome() -> None:
    register_backend("failing", FailingBackend)
    try:
        outcome = run(random_case(0), [pair("failing"), pair("reference")])
    finally:
        base._backends.pop("failing")
        base._made.pop("failing", None)
    assert [(m.pair, m.kind, m.text) for m in outcome.mismatches] == [
        (("default", "failing"), "error", "ZeroDivisionError: as ever")
    ]


def test_unknown_pairs_are_named() -> None:
    with pytest.raises(BackendUnavailableError, match="there is no backend 'nothing'"):
        pair("nothing")
    with pytest.raises(BackendUnavailableError, match="there is no scheduler 'nobody'"):
        pair("nobody:numba")


def test_comparison_is_strict_about_what_is_not_finite() -> None:
    nan, inf = np.nan, np.inf
    assert same(np.array([1.0, nan, inf]), np.array([1.0, nan, inf]))
    assert same(np.array([1.0 + 1e-15]), np.array([1.0]))
    assert not same(np.array([1.0 + 1e-9]), np.array([1.0]))
    assert not same(np.array([nan]), np.array([1.0]))
    assert not same(np.array([inf]), np.array([-inf]))
    assert not same(np.array([1]), np.array([2]))
    assert same(np.array([complex(nan, 1)]), np.array([complex(1, nan)]))


@pytest.mark.parametrize("difference", DIFFERENCES, ids=lambda difference: difference.name)
def test_each_intended_difference_is_still_one(difference: Difference, request: pytest.FixtureRequest) -> None:
    if "finchjl" in difference.pair:
        request.getfixturevalue("julia")
    assert difference.reason
    outcome = run(difference.example(), [difference.pair])
    assert outcome.agrees, outcome.mismatches
    assert [name for _, name in outcome.known] == [difference.name]


def test_liberties_explain_no_other_value() -> None:
    case = next(one for one in DIFFERENCES if one.name == "annihilators").example()
    assert explains(case, 0, np.array([0.0, 2.0]), "annihilators")
    assert not explains(case, 0, np.array([0.0, 2.5]), "annihilators")
    assert not explains(case, 0, np.array([0.0, np.nan]), "all")
    total = next(one for one in DIFFERENCES if one.name == "rounding").example()
    assert not explains(total, 0, np.array(1e4), "all")


def test_the_command(capsys: pytest.CaptureFixture[str], tmp_path: Path, wrong: tuple[str, str]) -> None:
    assert main(["difftest", "--pairs", "reference,unfused:reference", "--programs", "10"]) == 0
    assert "10 programs on default:reference, unfused:reference: 0 disagree" in capsys.readouterr().out
    found = main(["difftest", "--pairs", "wrong", "--programs", "12", "--shrink", "--report", str(tmp_path)])
    assert found == 1
    assert "default:wrong: value" in capsys.readouterr().out
    assert list(tmp_path.glob("test_seed_*.py"))
    assert list(tmp_path.glob("test_seed_*.jl"))
    assert main(["difftest", "--pairs", "reference", "--programs", "3", "--workers", "2"]) == 0
    assert main(["difftest", "--programs", "0"]) == 2
    assert main(["difftest", "--workers", "0"]) == 2
    assert main(["difftest", "--pairs", ","]) == 2
    assert main(["difftest", "--pairs", "numba:"]) == 2
    assert main(["difftest", "--pairs", "nothing"]) == 2
    assert main(["difftest", "--replay", str(tmp_path / "none.json")]) == 2


def test_neither_the_package_nor_the_command_imports_hypothesis() -> None:
    code = "import sys, pyfinch, pyfinch.cli, pyfinch.difftest.main; print('hypothesis' in sys.modules)"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "False"
