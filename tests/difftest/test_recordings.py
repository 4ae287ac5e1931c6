"""Recordings read back as they were written, and what is recorded is replayed."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from pyfinch.algebra.errors import BackendUnavailableError, ParseError
from pyfinch.backends.base import get_backend
from pyfinch.cli import main
from pyfinch.difftest import CAMPAIGN, random_case
from pyfinch.difftest.recordings import _case, _result_form, _tensor_form, read, record, replay
from pyfinch.difftest.run import wanted
from pyfinch.formats.convert import build
from pyfinch.formats.format import format
from pyfinch.logic.json_form import to_json

FOLDER = Path(__file__).parent.parent / "data" / "oracle"


@pytest.mark.parametrize("file", sorted(FOLDER.glob("*.json.gz")), ids=lambda file: file.name.split(".")[0])
def test_we_answer_what_was_recorded(file: Path) -> None:
    cases = read(file)
    assert len(cases) > 20
    differing = [name for name, _ in replay(cases)]
    # Ties of loop orders follow the recording, so nothing at all may differ.
    assert differing == []


def test_tensors_and_results_of_any_dtype_are_kept_exactly() -> None:
    for seed in range(60):
        case = random_case(seed)
        arrays = wanted(case)
        dense = [
            build(a.shape, np.indices(a.shape).reshape(a.ndim, a.size), a.reshape(-1), format("dense", ndim=a.ndim), 0)
            for a in arrays
        ]
        form = {
            "name": case.name,
            "tensors": {name: _tensor_form(tensor) for name, tensor in case.tensors.items()},
            "program": to_json(case.program),
            "passes": [],
            "results": [_result_form(result) for result in dense],
            "error": None,
        }
        again = _case(json.loads(json.dumps(form)))
        for name, tensor in case.tensors.items():
            stored = tensor.todense().transpose(tuple(reversed(tensor.ftype.mode_order)))
            np.testing.assert_array_equal(again.tensors[name], stored)
            assert again.tensors[name].dtype == tensor.dtype
        for result, array in zip(again.results, arrays, strict=True):
            np.testing.assert_array_equal(result.transpose(), array)
            assert result.dtype == array.dtype
        assert [text for _, text in replay([again], [("default", "reference")])] == []


def test_what_is_no_recording_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "some.json"
    file.write_text("{}")
    with pytest.raises(ParseError, match="no recording of Finch"):
        read(file)


def test_the_command_replays(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["difftest", "--replay", str(FOLDER / "basic.json.gz"), "--pairs", "reference"]) == 0
    assert "0 differences" in capsys.readouterr().out


def test_a_difference_from_the_recording_is_told() -> None:
    case = next(case for case in read(FOLDER / "basic.json.gz") if case.results[0].size)
    wrong = replace(case, results=(case.results[0] + 1, *case.results[1:]), passes=case.passes[:-1] + case.passes[:1])
    texts = [text for _, text in replay([wrong])]
    assert len(texts) == 2
    assert texts[1].startswith("dense NumPy gave")


def test_what_finch_answers_is_recorded_and_replayed(tmp_path: Path) -> None:
    try:
        get_backend("finchjl")
    except BackendUnavailableError as error:
        pytest.skip(f"Julia is not installed: {error}")
    file = tmp_path / "some.json.gz"
    assert record((random_case(seed, CAMPAIGN) for seed in range(3)), file) == 3
    cases = read(file)
    assert [case.name for case in cases] == ["seed 0", "seed 1", "seed 2"]
    assert list(replay(cases)) == []
