"""The recordings of Finch.jl, and how values are compared with them."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np

from pyfinch.difftest.recordings import Recorded, read

FOLDER = Path(__file__).parent.parent / "data" / "oracle"


@cache
def cases() -> tuple[Recorded, ...]:
    """The cases of the recordings that everyone shares."""
    return tuple(case for name in ("basic", "random") for case in read(FOLDER / f"{name}.json.gz"))


def assert_same_value(got: tuple[np.ndarray, ...], case: Recorded) -> None:
    """Equal to what Finch.jl computed, up to the order of float additions."""
    assert len(got) == len(case.results)
    for ours, theirs in zip(got, case.results, strict=True):
        assert ours.shape == theirs.shape
        assert ours.dtype == theirs.dtype
        rtol = 1e-5 if ours.dtype == np.float32 else 1e-11
        np.testing.assert_allclose(ours, theirs, rtol=rtol, atol=1e-13)
