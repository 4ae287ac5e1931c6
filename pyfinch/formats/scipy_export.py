"""Tensors as scipy.sparse arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from pyfinch.algebra.dtypes import DT
from pyfinch.algebra.errors import FormatError, ShapeError
from pyfinch.formats.convert import convert
from pyfinch.formats.format import format
from pyfinch.formats.levels import Dense, SparseCOO, SparseList
from pyfinch.formats.tensor import Tensor

__all__ = ["to_scipy"]

Array = np.ndarray[Any, DT]


def to_scipy(tensor: Tensor) -> Any:
    """A scipy.sparse array of a tensor with fill 0: csr and csc share buffers.

    Parameters
    ----------
    tensor : Tensor
        Two modes, or any number for a coo where SciPy supports it.

    Returns
    -------
    csr_array for csr storage, csc_array for csc, coo_array for sparse_coo, for ndim != 2, and for far more rows than
    entries; else csr_array.

    Raises
    ------
    FormatError
        If the fill value is not 0, which is all that SciPy knows.
    """
    if not bool(tensor.fill_value == 0):
        raise FormatError(
            f"scipy.sparse has fill 0 only, this tensor has {tensor.fill_value}; "
            "use to_format with element(0), or todense()"
        )
    levels, order = tensor.ftype.levels, tensor.ftype.mode_order
    hypersparse = isinstance(levels[0], SparseList) and tensor.storage_shape[0] > max(2**20, 16 * tensor.nnz)
    if tensor.ndim == 2 and not isinstance(levels[0], SparseCOO) and not hypersparse:
        if [type(level) for level in levels[:-1]] != [Dense, SparseList]:
            tensor = convert(tensor, format("csr" if order == (0, 1) else "csc"))
        ptr, idx = tensor.buffers[1]
        make: Any = sp.csr_array if order == (0, 1) else sp.csc_array
        return make((_data(tensor, len(idx)), idx, ptr), shape=tensor.shape, copy=False)
    if tensor.ndim == 0:
        raise ShapeError("scipy.sparse has no 0-d arrays; use todense()")
    coords, values = tensor.to_coords()
    if _is_dense(tensor):
        kept = values != 0
        coords, values = coords[:, kept], values[kept]
    try:
        return sp.coo_array((values, tuple(coords)), shape=tensor.shape)
    except (ValueError, TypeError) as error:
        raise ShapeError(f"this SciPy has no sparse arrays of {tensor.ndim} dimensions: {error}") from None


def _is_dense(tensor: Tensor) -> bool:
    return all(isinstance(level, Dense) for level in tensor.ftype.levels[:-1])


def _data(tensor: Tensor, count: int) -> Array:
    if tensor.buffers[-1]:
        return tensor.buffers[-1][0]
    return np.ones(count, dtype=np.bool_)
