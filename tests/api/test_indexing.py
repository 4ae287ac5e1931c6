"""What indexing leaves of a format."""

from __future__ import annotations

import numpy as np

import pyfinch as pf


def test_rows_and_columns_of_sparse_matrices_are_sparse_vectors() -> None:
    array = np.array([[0.0, 2.0, 0.0], [3.0, 0.0, 0.0], [0.0, 4.0, 0.0]])
    for form in ("csr", "csc", "coo", "dcsr"):
        x = pf.asarray(array, format=form)
        for part, wanted in ((x[1], array[1]), (x[:, 1], array[:, 1])):
            part.validate()
            assert part.nnz == np.count_nonzero(wanted)
            np.testing.assert_array_equal(part.todense(), wanted)
