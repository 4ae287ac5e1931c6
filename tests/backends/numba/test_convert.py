"""Conversion between formats by generated kernels agrees with the plain one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from pyfinch.backends.numba import permute
from pyfinch.backends.numba.convert import convert
from pyfinch.formats import convert as plain
from pyfinch.formats.format import format
from pyfinch.interop.convert import to_tensor

FORMATS = {
    1: ["dense", "sparse_vector", "coo", "sparse_bytemap(element())"],
    2: [
        "csr",
        "csc",
        "coo",
        "dcsr",
        "dcsc",
        "dense",
        "fortran",
        "sparse_list(dense(element()))",
        "dense(sparse_bytemap(element()))",
        "sparse_bytemap(sparse_bytemap(element()))",
        "sparse_bytemap(dense(element()))",
        "sparse_bytemap(sparse_list(element()))",
        "sparse_list(sparse_bytemap(element()))",
        "sparse_coo[2](element()) mode_order=(1, 0)",
    ],
    3: [
        "coo",
        "csf",
        "dense",
        "dense(sparse_list(sparse_list(element())))",
        "sparse_list(sparse_coo[2](element()))",
        "dense(dense(sparse_list(element()))) mode_order=(2, 0, 1)",
        "sparse_coo[2](dense(element()))",
        "dense(sparse_list(dense(element())))",
    ],
}
SHAPES = [(0,), (1,), (5,), (0, 3), (3, 0), (1, 1), (4, 1), (3, 4), (1, 1, 1), (2, 0, 2), (3, 1, 4), (2, 3, 4)]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("fill", [0.0, np.inf, np.nan, 7.5])
def test_every_format_becomes_every_other(shape: tuple[int, ...], fill: float) -> None:
    rng = np.random.default_rng(len(shape))
    array = np.where(rng.random(shape) < 0.5, fill, rng.integers(0, 3, shape))
    for source in FORMATS[len(shape)]:
        tensor = plain.convert(to_tensor(array, fill_value=fill), format(source, len(shape)))
        for target in FORMATS[len(shape)]:
            for prune in (False, True):
                made = convert(tensor, format(target, len(shape)), prune)
                wanted = plain.convert(tensor, format(target, len(shape)), prune)
                made.validate()
                np.testing.assert_array_equal(made.todense(), array)
                assert made.nnz == wanted.nnz
                assert str(made.format).split("ptr")[0] == str(wanted.format).split("ptr")[0]


@pytest.mark.parametrize("target", ["csc", "dcsc", "sparse_coo[2](element()) mode_order=(1, 0)", "fortran", "csr"])
@pytest.mark.parametrize("source", ["csr", "coo", "dcsr", "csc"])
def test_transposing_lists(source: str, target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The way that large matrices take."""
    monkeypatch.setattr(permute, "_LARGE", 0)
    matrix: Any = sp.random_array((30, 40), density=0.3, rng=np.random.default_rng(0), format="csr")
    made = convert(plain.convert(to_tensor(matrix), format(source, 2)), format(target, 2))
    made.validate()
    np.testing.assert_array_equal(made.todense(), matrix.toarray())
