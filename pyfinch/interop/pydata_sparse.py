"""pydata/sparse arrays: COO, GCXS and DOK."""

from __future__ import annotations

from typing import Any

import numpy as np

from pyfinch.algebra.dtypes import check_dtype
from pyfinch.algebra.errors import DTypeError, FormatError
from pyfinch.algebra.values import as_scalar
from pyfinch.formats.convert import from_coords
from pyfinch.formats.format import Format, format
from pyfinch.formats.levels import Dense, Element
from pyfinch.formats.tensor import Tensor, as_indices, check_shape
from pyfinch.interop.scipy_sparse import check_coords, compressed

__all__ = ["from_pydata"]


def from_pydata(obj: Any) -> Tensor:
    """A tensor of a pydata/sparse array, with its fill value; every index is checked.

    COO and DOK give coo; GCXS with one compressed and one other mode gives csr or csc, and coo otherwise.
    """
    check_dtype(obj.dtype, f"the dtype of {type(obj).__name__}")
    match type(obj).__name__:
        case "COO":
            return _from_coo(obj)
        case "DOK":
            return _from_coo(obj.to_coo())
        case "GCXS" if obj.ndim == 2 and tuple(obj.compressed_axes) in ((0,), (1,)):
            return _from_gcxs(obj)
        case "GCXS":
            _check_gcxs(obj)
            return _from_coo(obj.tocoo())
    raise DTypeError(f"cannot read a {type(obj).__name__} of pydata/sparse; use asformat('coo')")


def _from_coo(obj: Any) -> Tensor:
    values = np.asarray(obj.data)
    values = np.ascontiguousarray(values, dtype=check_dtype(values.dtype, "data: dtype"))
    shape = check_shape(obj.shape)
    fill = as_scalar(obj.fill_value, values.dtype)
    if not shape:
        # With no modes there is at most one entry.
        value = values[0] if len(values) else fill
        scalar = Format((Element(),), ())
        return Tensor.from_buffers(scalar, (), [(np.array([value], dtype=values.dtype),)], fill_value=fill)
    coords = check_coords(list(obj.coords), shape, len(values))
    fmt = format("coo", len(shape))
    if not len(values):
        return from_coords(shape, np.array(coords), values, fmt, fill)
    columns = [np.ascontiguousarray(row) for row in coords]
    ptr = np.array([0, len(values)], dtype=columns[0].dtype)
    try:
        return Tensor.from_buffers(fmt, shape, [(ptr, *columns), (values,)], fill_value=fill)
    except FormatError:
        return from_coords(shape, np.array(coords), values, fmt, fill)


def _from_gcxs(obj: Any) -> Tensor:
    name = "csr" if tuple(obj.compressed_axes) == (0,) else "csc"
    tensor = compressed(obj.shape, obj.indptr, obj.indices, obj.data, name)
    fill = as_scalar(obj.fill_value, tensor.dtype)
    levels = (Dense(), *tensor.ftype.levels[1:-1], Element())
    ftype = Format(levels, tensor.ftype.mode_order).specify(tensor.dtype, fill)
    return Tensor._trusted(ftype, tensor.shape, fill, tensor.buffers)


def _check_gcxs(obj: Any) -> None:
    """Check the two-dimensional array that a GCXS array of other rank is stored as."""
    idx = as_indices(obj.indices, "indices")
    if obj.ndim < 2:
        check_coords([idx], obj.shape, len(obj.data))
        return
    compressed(obj._compressed_shape, obj.indptr, idx, np.arange(len(obj.data)), "csr")
