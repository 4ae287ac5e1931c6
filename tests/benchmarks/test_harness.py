"""The harness of the benchmarks: what it reports of wrong, failing and absent peers. Nothing here is about time."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import pyfinch as pf
from benchmarks import __main__ as suite
from benchmarks import compare, report
from benchmarks.agreement import agree
from benchmarks.harness import Bench, Failure, Figure, Row, Timing, at_most
from benchmarks.inputs import banded, power_law, tensor_entries, uniform
from benchmarks.tensors import fibers

FAST = Bench(quick=True, budget=0.0)


def row(ours: float, peer: float, spread: float = 0.05) -> Row:
    """A row of two timings."""
    timings = {name: Timing(t, 1 - spread, 1 + spread, 7) for name, t in (("pyfinch", ours), ("scipy", peer))}
    return Row("SpMV", "small", timings, wanted=(at_most(1.0, "scipy"),))


def fail() -> Any:
    raise ValueError("no such thing")


def test_peers_that_differ_or_raise_are_reported_and_the_rest_is_timed() -> None:
    calls = {"pyfinch": lambda: np.ones(3), "good": lambda: np.ones(3), "bad": lambda: np.zeros(3), "broken": fail}
    found = FAST.measure("w", "c", {**calls, "absent": None})
    assert set(found.timings) == {"pyfinch", "good"}
    assert found.failures["bad"].startswith("WRONG")
    assert found.failures["broken"] == "failed: ValueError: no such thing"
    assert suite.is_wrong(found)
    assert "broken failed" in report.line(found)


def test_peers_are_timed_where_pyfinch_fails() -> None:
    found = FAST.measure("w", "c", {"pyfinch": fail, "scipy": lambda: 1.0})
    assert set(found.timings) == {"scipy"}
    assert found.ratios() == {}
    assert suite.is_wrong(found)
    assert "failed: ValueError" in report.line(found)


def test_views_are_compared_in_place_of_results() -> None:
    calls = {"pyfinch": lambda: np.ones(3), "peer": lambda: (3, 1.0)}
    assert not FAST.measure("w", "c", calls, views={"peer": lambda parts: np.full(*parts)}).failures


def test_sparse_results_agree_across_kinds() -> None:
    matrix = uniform(50, 3)
    ours = pf.asarray(matrix)
    assert agree(ours, matrix, 1e-12)
    assert agree(ours, matrix.toarray(), 1e-12)
    assert agree(ours, matrix.tocoo(), 1e-12)
    assert not agree(ours, matrix * 1.001, 1e-6)
    assert not agree(ours, sp.csr_array(matrix.shape), 1e-6)
    assert not agree(ours, matrix[:, :-1], 1e-6)
    assert agree(pf.asarray(matrix.tocoo(), fill_value=np.inf), np.where(matrix.toarray(), matrix.toarray(), np.inf), 0)


def test_bounds_count_the_fastest_peer() -> None:
    timings = {name: Timing(t, 1.0, 1.0, 7) for name, t in (("pyfinch", 2.0), ("scipy", 1.0), ("hand", 4.0))}
    assert Row("w", "c", timings).against(at_most(1.05, "scipy", "hand")) == 2.0
    assert at_most(1.05, "scipy", "hand").text() == "≤ 1.05 × min(scipy, hand)"


def test_the_report_has_every_kind_of_record(tmp_path: Path) -> None:
    figures = [Figure("overhead", "import", 90.0, "ms", 100.0), Figure("threads", "x", 1.1, "×", 1.8, at_least=True)]
    records = [row(1.0, 2.0), *figures, Failure("w", "c", "failed: it")]
    suite.write(tmp_path / "out", FAST, records)
    text = (tmp_path / "out.md").read_text()
    assert "scipy 0.50" in text
    assert "≤ 100 ✓" in text
    assert "≥ 1.8 ✗" in text
    assert "failed: it" in text
    data = json.loads((tmp_path / "out.json").read_text())
    assert [len(data[kind]) for kind in ("rows", "figures", "failures")] == [1, 2, 1]


@pytest.mark.parametrize(
    ("ours", "peer", "spread", "code"),
    [(1.3, 1.0, 0.05, 1), (1.3, 1.3, 0.05, 0), (1.3, 1.0, 0.4, 0), (1.05, 1.0, 0.0, 0), (0.5, 1.0, 0.05, 0)],
)
def test_a_regression_is_slower_than_the_peers_and_the_spread(
    tmp_path: Path, monkeypatch: Any, ours: float, peer: float, spread: float, code: int
) -> None:
    for name, record in (("a", row(1.0, 1.0)), ("b", row(ours, peer, spread))):
        (tmp_path / f"{name}.json").write_text(report.as_json({}, [record]))
    monkeypatch.setattr("sys.argv", ["compare", str(tmp_path / "a.json"), str(tmp_path / "b.json")])
    assert compare.main() == code


def test_inputs_are_as_they_say() -> None:
    for matrix in (uniform(100, 5), power_law(6, 300), banded(50, 2)):
        assert matrix.has_canonical_format
        assert matrix.indices.dtype == np.int32
    assert banded(50, 2).nnz == 50 * 5 - 6
    coords, values = tensor_entries((5, 6, 7), 60, skewed=True)
    t = fibers((5, 6, 7), coords, values, (1, 0, 2))
    dense = np.zeros((5, 6, 7))
    dense[tuple(coords)] = values
    assert np.array_equal(t.tensor().todense(), dense.transpose(1, 0, 2))
