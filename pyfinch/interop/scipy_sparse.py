"""scipy.sparse in its seven formats, arrays and matrices, both ways."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from pyfinch.algebra.dtypes import DT, check_dtype
from pyfinch.algebra.errors import FormatError, IndexBoundsError, PyFinchError, ShapeError
from pyfinch.formats.convert import from_coords
from pyfinch.formats.format import Format, format
from pyfinch.formats.levels import Dense, Element, SparseList
from pyfinch.formats.scipy_export import to_scipy
from pyfinch.formats.tensor import Tensor, as_indices, check_shape

__all__ = ["check_coords", "compressed", "from_scipy", "is_scipy", "to_scipy"]

Array = np.ndarray[Any, DT]


def is_scipy(obj: Any) -> bool:
    """Whether an object is a scipy.sparse array or matrix."""
    return bool(sp.issparse(obj))


def from_scipy(obj: Any) -> Tensor:
    """A tensor of a scipy.sparse array: canonical csr and csc share buffers, the object never changes.

    csr, bsr, dia, lil and dok give csr; csc gives csc; coo gives coo. Every index is checked.
    """
    check_dtype(obj.dtype, f"the dtype of {type(obj).__name__}")
    match obj.format:
        case "csr" if len(obj.shape) == 1:
            return _sparse_vector(obj)
        case "csr":
            return compressed(obj.shape, obj.indptr, obj.indices, obj.data, "csr")
        case "csc":
            return compressed(obj.shape, obj.indptr, obj.indices, obj.data, "csc")
        case "coo":
            return _coo(obj)
        case "bsr":
            _check_bsr(obj)
        case "dia":
            _check_dia(obj)
        case "lil":
            _check_lil(obj)
    try:
        # Duplicates survive in bsr → coo; here they are summed.
        return _csr(obj.tocoo())
    except PyFinchError:
        raise
    except (ValueError, TypeError, IndexError) as error:
        raise FormatError(f"{type(obj).__name__} is not consistent: {error}") from None


def _sparse_vector(obj: Any) -> Tensor:
    ptr = np.asarray(obj.indptr).reshape(-1)
    (n,) = obj.shape
    matrix = compressed((1, n), ptr, obj.indices, obj.data, "csr")
    vector = format("sparse_vector")
    return Tensor.from_buffers(vector, (n,), matrix.buffers[1:], fill_value=0)


def _csr(coo: Any) -> Tensor:
    coords, values = _coo_parts(coo)
    fmt = format("csr") if len(coo.shape) == 2 else format("coo", len(coo.shape))
    return from_coords(tuple(coo.shape), coords, values, fmt, values.dtype.type(0))


def _coo(obj: Any) -> Tensor:
    coords, values = _coo_parts(obj)
    shape = check_shape(obj.shape)
    fmt = format("coo", len(shape))
    columns = [np.ascontiguousarray(row) for row in coords]
    if values.size == 0 or not columns or len({c.dtype for c in columns}) > 1:
        return from_coords(shape, coords, values, fmt, values.dtype.type(0))
    ptr = np.array([0, len(values)], dtype=columns[0].dtype)
    try:
        return Tensor.from_buffers(fmt, shape, [(ptr, *columns), (values,)], fill_value=0)
    except FormatError:
        # Not canonical; the coordinates have been checked.
        return from_coords(shape, coords, values, fmt, values.dtype.type(0))


def _coo_parts(obj: Any) -> tuple[Any, Array]:
    rows = obj.coords if hasattr(obj, "coords") else (obj.row, obj.col)
    values = np.asarray(obj.data)
    values = np.ascontiguousarray(values, dtype=check_dtype(values.dtype, "data: dtype"))
    return check_coords(rows, obj.shape, len(values)), values


def check_coords(rows: Any, shape: Any, count: int) -> list[Array]:
    """Coordinate rows, one a mode, as int32 or int64, checked against a shape.

    Raises
    ------
    DTypeError, FormatError, IndexBoundsError
        Naming the first offending entry.
    """
    dims = check_shape(shape)
    if len(rows) != len(dims):
        raise FormatError(f"coords must have {len(dims)} rows, got {len(rows)}")
    checked = []
    for mode, (row, dim) in enumerate(zip(rows, dims, strict=True)):
        idx = as_indices(row, f"coords of mode {mode}")
        if idx.shape != (count,):
            raise FormatError(f"coords of mode {mode} must have length {count}, got shape {idx.shape}")
        outside = (idx < 0) | (idx >= dim)
        if outside.any():
            p = int(np.argmax(outside))
            raise IndexBoundsError(f"coords[{mode}, {p}] = {idx[p]} is outside a mode of size {dim}")
        checked.append(idx)
    return checked


def compressed(shape: Any, ptr: Any, idx: Any, data: Any, name: str) -> Tensor:
    """csr or csc of SciPy's three arrays; shared if canonical, else sorted and summed in a copy."""
    dims = check_shape(shape)
    ptr, idx = as_indices(ptr, "indptr"), as_indices(idx, "indices")
    values = np.asarray(data)
    check_dtype(values.dtype, "data: dtype")
    if ptr.ndim != 1 or idx.ndim != 1 or values.ndim != 1:
        raise FormatError("indptr, indices and data must have 1 dimension")
    rows = dims[0] if name == "csr" else dims[1]
    if len(ptr) != rows + 1:
        raise FormatError(f"indptr must have length {rows + 1} for shape {dims}, got {len(ptr)}")
    end = int(ptr[-1])
    if end > len(idx) or end > len(values):
        raise FormatError(f"indptr ends at {end}, beyond {len(idx)} indices and {len(values)} data")
    # SciPy allows room behind the last entry.
    idx, values = idx[: max(end, 0)], values[: max(end, 0)]
    fmt = format(name)
    try:
        return Tensor.from_buffers(fmt, dims, [(), (ptr, idx), (values,)], fill_value=0)
    except FormatError:
        if ptr[0] != 0 or (ptr[1:] < ptr[:-1]).any():
            raise
    # Unsorted or duplicate coordinates, all in range.
    outer = np.repeat(np.arange(rows, dtype=np.int64), np.diff(ptr))
    coords = [outer, idx] if name == "csr" else [idx, outer]
    values = np.ascontiguousarray(values, dtype=check_dtype(values.dtype))
    return from_coords(dims, coords, values, _kept_index(fmt, idx.dtype), values.dtype.type(0))


def _kept_index(fmt: Format, dtype: DT) -> Format:
    return Format((Dense(), SparseList(dtype, dtype), Element()), fmt.mode_order)


def _check_bsr(obj: Any) -> None:
    rows, columns = obj.blocksize
    if obj.shape[0] % rows or obj.shape[1] % columns:
        raise ShapeError(f"blocks {obj.blocksize} do not divide shape {obj.shape}")
    blocks = np.arange(len(obj.indices), dtype=np.int8 if len(obj.indices) < 100 else np.int64)
    if len(obj.data) < len(obj.indices):
        raise FormatError(f"bsr has {len(obj.indices)} indices but {len(obj.data)} blocks")
    outer = (obj.shape[0] // rows, obj.shape[1] // columns)
    compressed(outer, obj.indptr, obj.indices, blocks, "csr")


def _check_lil(obj: Any) -> None:
    for row, (idx, values) in enumerate(zip(obj.rows, obj.data, strict=True)):
        if len(idx) != len(values):
            raise FormatError(f"lil row {row} has {len(idx)} columns but {len(values)} values")


def _check_dia(obj: Any) -> None:
    offsets = as_indices(obj.offsets, "offsets")
    if obj.data.ndim != 2 or len(offsets) != len(obj.data):
        raise FormatError(f"dia has {len(offsets)} offsets but data of shape {obj.data.shape}")
    if len(np.unique(offsets)) != len(offsets):
        raise FormatError("dia has an offset twice")
