"""Types that loop programs in tests are written with."""

from __future__ import annotations

from typing import Any

import numpy as np

from pyfinch.formats.format import FType, format


def ftype(text: str, ndim: int | None = None, dtype: Any = "float64", fill: Any = 0) -> FType:
    """A fully specified type with int32 indices."""
    return format(text, ndim).specify(dtype, np.dtype(dtype).type(fill), np.int32, np.int32)


CSR = ftype("csr")
VECTOR = ftype("vector")
TYPES: dict[str, Any] = {
    **dict.fromkeys("ABCR", CSR),
    "W": ftype("sparse_bytemap(element())", 1),
    "X": ftype("dense", 2),
    "Y": ftype("dense", 2),
    "x": VECTOR,
    "y": VECTOR,
    "s": ftype("scalar"),
    "Z": ftype("csr", dtype="complex64"),
    "N": ftype("csr", dtype="int8"),
    "n": np.dtype("int64"),
    "h": np.dtype("int8"),
}

SPGEMM = """R .= 0.0
for i = _
    W .= 0.0
    for k = _
        for j = _
            W[j] += A[i, k] * B[k, j]
        end
    end
    @freeze(W)
    for j = _
        R[i, j] = W[j]
    end
end
@freeze(R)
return R"""
