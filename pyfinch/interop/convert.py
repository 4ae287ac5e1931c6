"""`to_tensor`: anything that looks like an array, as a tensor."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from pyfinch.algebra.dtypes import DT, check_dtype
from pyfinch.algebra.errors import DTypeError, FormatError, PyFinchError
from pyfinch.algebra.values import as_scalar
from pyfinch.formats.convert import convert
from pyfinch.formats.format import Format, FType, format
from pyfinch.formats.levels import Dense, Element
from pyfinch.formats.tensor import Tensor

__all__ = ["to_tensor"]


def to_tensor(
    obj: Any,
    *,
    dtype: Any = None,
    format: str | Format | FType | None = None,
    fill_value: Any = None,
    copy: bool | None = None,
) -> Tensor:
    """Convert to a storage tensor.

    Parameters
    ----------
    obj : Tensor, array, scipy.sparse array or matrix, pydata/sparse array, scalar, nested list
        A NumPy array that is C- or Fortran-contiguous, and a canonical scipy.sparse csr or csc, are shared,
        not copied; do not change them meanwhile. Unsorted or duplicate entries are sorted and summed in a
        copy.
    dtype : dtype, optional
        Of the elements.
    format : str, Format or FType, optional
        To convert to; by default the storage nearest to the object's own.
    fill_value : scalar, optional
        The fill value of the result; the object's own by default, 0 if it has none. Of a scipy.sparse object it is the
        value of what is not stored; any other object's elements keep their values.
    copy : bool, optional
        True: share nothing. False: raise ValueError rather than copy. None: copy if needed.

    Raises
    ------
    DTypeError, FormatError, IndexBoundsError, ShapeError
        If the object's data is not valid, or not of a supported dtype.

    Examples
    --------
    >>> to_tensor([[1, 0], [0, 2]], format="csr").nnz
    2
    """
    wanted = None if dtype is None else check_dtype(dtype)
    tensor = _imported(obj, wanted)
    result = tensor
    if wanted is not None and result.dtype != wanted:
        result = result.astype(wanted)
    if fill_value is not None and _has_no_fill(obj):
        result = _filled(result, fill_value)
    if format is not None or fill_value is not None:
        result = convert(result, _target(result, format, fill_value))
    shared = _shares(result, obj)
    if copy is False and not shared and not _is_scalar(obj):
        raise ValueError(f"copy=False, but a {type(obj).__name__} cannot be shared as {result.format}")
    if copy and shared:
        buffers = tuple(tuple(buffer.copy() for buffer in level) for level in result.buffers)
        result = Tensor._trusted(result.ftype, result.shape, result.fill_value, buffers)
    return result


def _has_no_fill(obj: Any) -> bool:
    """Whether an object says where it has entries, and nothing of what is elsewhere."""
    if "scipy.sparse" not in sys.modules:
        return False
    from pyfinch.interop.scipy_sparse import is_scipy

    return is_scipy(obj)


def _filled(tensor: Tensor, fill_value: Any) -> Tensor:
    """The same entries with another value of what is not stored."""
    fill = as_scalar(fill_value, tensor.dtype)
    levels = (*tensor.ftype.levels[:-1], Element(None, tensor.dtype))
    ftype = Format(levels, tensor.ftype.mode_order).specify(tensor.dtype, fill)
    return Tensor._trusted(ftype, tensor.shape, fill, tensor.buffers)


def _target(tensor: Tensor, spec: str | Format | FType | None, fill_value: Any) -> Format:
    fmt = format(spec, tensor.ndim) if spec is not None else tensor.format
    if fill_value is None:
        return fmt
    leaf = fmt.leaf
    if not isinstance(leaf, Element):
        raise FormatError("a pattern has fill False; leave fill_value out")
    fill = as_scalar(fill_value, leaf.dtype or tensor.dtype)
    return Format((*fmt.levels[:-1], Element(fill, leaf.dtype)), fmt.mode_order)


def _is_scalar(obj: Any) -> bool:
    return isinstance(obj, int | float | complex | np.generic)


def _shares(tensor: Tensor, obj: Any) -> bool:
    """Whether the tensor's values are memory of the object's."""
    if not tensor.buffers[-1]:
        return isinstance(obj, Tensor)
    values = tensor.buffers[-1][0]
    if isinstance(obj, Tensor):
        return any(values is other for other in obj.buffers[-1])
    owner = obj if isinstance(obj, np.ndarray) else getattr(obj, "data", None)
    return isinstance(owner, np.ndarray) and (np.may_share_memory(values, owner) or owner.size == 0)


def _imported(obj: Any, dtype: DT | None) -> Tensor:
    if isinstance(obj, Tensor):
        return obj
    # A sparse object's library is loaded already; neither is imported for others.
    if "scipy.sparse" in sys.modules:
        from pyfinch.interop.scipy_sparse import from_scipy, is_scipy

        if is_scipy(obj):
            return from_scipy(obj)
    module = type(obj).__module__.partition(".")[0]
    if module == "sparse":
        from pyfinch.interop.pydata_sparse import from_pydata

        return from_pydata(obj)
    return from_numpy(_as_array(obj, dtype))


def _as_array(obj: Any, dtype: DT | None) -> np.ndarray[Any, DT]:
    if isinstance(obj, np.ma.MaskedArray):
        raise DTypeError("masked arrays are not supported; use filled() first")
    try:
        array = np.asarray(obj)
    except PyFinchError:
        raise
    except (ValueError, OverflowError) as error:
        # NumPy's word for a ragged list.
        raise DTypeError(f"{type(obj).__name__} is not a rectangular array of numbers: {error}") from None
    except (TypeError, RuntimeError) as error:
        raise DTypeError(f"cannot read a {type(obj).__name__} as an array: {error}") from None
    if array.size == 0 and not isinstance(obj, np.ndarray) and dtype is not None:
        array = array.astype(dtype)
    own = check_dtype(array.dtype, f"the dtype of {type(obj).__name__}")
    return array.astype(own, copy=False)


def from_numpy(array: np.ndarray[Any, DT]) -> Tensor:
    """A dense tensor over a NumPy array of a supported dtype; shared if contiguous in any mode order."""
    if type(array) is not np.ndarray:
        array = np.asarray(array)
    order = tuple(range(array.ndim))
    if not array.flags.c_contiguous:
        # Modes by falling stride: a permuted contiguous array is contiguous in that order.
        by_stride = tuple(sorted(order, key=lambda mode: (-abs(array.strides[mode]), mode)))
        if array.transpose(by_stride).flags.c_contiguous:
            order = by_stride
        else:
            array = np.ascontiguousarray(array)
    values = array.transpose(order).reshape(-1)
    fill = array.dtype.type(0)
    ftype = Format((*[Dense()] * array.ndim, Element()), order).specify(array.dtype, fill)
    return Tensor._trusted(ftype, array.shape, fill, (*[()] * array.ndim, (values,)))
