"""Making tensors, and going between eager and lazy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from pyfinch.algebra.dtypes import check_dtype
from pyfinch.algebra.errors import PyFinchError, ShapeError
from pyfinch.algebra.values import as_scalar
from pyfinch.api.compute import compute_all
from pyfinch.api.eager import TRACING, as_lazy
from pyfinch.api.lazy import LazyTensor
from pyfinch.api.tensor import Tensor, wrapped
from pyfinch.formats.convert import build
from pyfinch.formats.format import Format, FType
from pyfinch.formats.format import format as format_
from pyfinch.formats.levels import Element
from pyfinch.formats.tensor import check_shape
from pyfinch.interop.convert import to_tensor

__all__ = [
    "asarray",
    "compute",
    "eye",
    "full",
    "lazy",
    "ones",
    "random",
    "zeros",
]

AnyFormat = str | Format | FType


def asarray(
    obj: Any,
    /,
    *,
    dtype: Any = None,
    format: AnyFormat | None = None,
    fill_value: Any = None,
    copy: bool | None = None,
) -> Any:
    """Convert to a tensor.

    Parameters
    ----------
    obj : tensor, NumPy array, scipy.sparse array or matrix, pydata/sparse array, number, nested list
        Contiguous NumPy arrays and canonical csr and csc share their buffers with the tensor: do not change
        them meanwhile. Unsorted or duplicate entries are sorted and summed in a copy.
    dtype : dtype, optional
    format : str, Format or FType, optional
        How to store it, such as ``"csr"``; by default as nearly as it was stored.
    fill_value : scalar, optional
        The value of elements that are not stored; 0 by default.
    copy : bool, optional
        True: share nothing. False: raise ValueError rather than copy.

    Returns
    -------
    Tensor, or ``obj`` itself if it is lazy

    Raises
    ------
    DTypeError, FormatError, IndexBoundsError, ParseError, ShapeError
        If the data is not valid, not of a supported dtype, or the format is none.

    Examples
    --------
    >>> import pyfinch as pf
    >>> pf.asarray([[1, 0], [0, 2]], format="csr").nnz
    2
    """
    if isinstance(obj, LazyTensor):
        if format is not None or fill_value is not None or copy:
            raise PyFinchError("a lazy tensor has no format yet: call pyfinch.compute(x) first")
        return obj if dtype is None else obj.astype(dtype)
    return wrapped(to_tensor(obj, dtype=dtype, format=format, fill_value=fill_value, copy=copy))


def _default_format(ndim: int) -> Format:
    return format_({0: "scalar", 1: "sparse_vector", 2: "csr"}.get(ndim, "coo"), ndim)


def _of_coords(shape: tuple[int, ...], coords: Any, values: Any, fill: Any, spec: AnyFormat | None) -> Tensor:
    if spec is None and len(shape) == 2 and shape[0] > 2**20 and shape[0] > 16 * len(values):
        spec = "dcsr"  # pointers of all rows would dwarf the entries
    fmt = _default_format(len(shape)) if spec is None else format_(spec, len(shape))
    leaf = fmt.leaf
    if isinstance(leaf, Element) and (leaf.dtype is not None or leaf.fill is not None):
        plain = Format((*fmt.levels[:-1], Element()), fmt.mode_order)
        return wrapped(build(shape, coords, values, plain, fill)).to_format(fmt)
    return wrapped(build(shape, coords, values, fmt, fill))


def _noted(made: Tensor) -> Tensor:
    """A tensor that follows from static arguments, so that a trace that makes it holds for other calls."""
    tracing = TRACING.get()
    if tracing is not None:
        tracing.known[id(made)] = made, made
    return made


def full(shape: int | Sequence[int], fill_value: Any, *, dtype: Any = None, format: AnyFormat | None = None) -> Tensor:
    """A tensor of one value everywhere, which is its fill: nothing is stored unless the format is dense.

    Parameters
    ----------
    shape : int or sequence of int
    fill_value : scalar
    dtype : dtype, optional
        The value's own by default.
    format : str, Format or FType, optional
        ``sparse_vector``, ``csr`` or ``coo`` by default, as the number of modes asks for; ``dcsr`` for a matrix
        of far more rows than entries.

    Examples
    --------
    >>> import pyfinch as pf
    >>> pf.full((2, 2), 7).todense()
    array([[7, 7],
           [7, 7]])
    """
    dims = check_shape(shape)
    value = as_scalar(fill_value, dtype)
    coords = np.empty((len(dims), 0), dtype=np.int64)
    return _noted(_of_coords(dims, coords, np.empty(0, dtype=value.dtype), value, format))


def zeros(shape: int | Sequence[int], *, dtype: Any = float, format: AnyFormat | None = None) -> Tensor:
    """A tensor of zeros; see `pyfinch.full`."""
    return full(shape, check_dtype(dtype).type(0), format=format)


def ones(shape: int | Sequence[int], *, dtype: Any = float, format: AnyFormat | None = None) -> Tensor:
    """A tensor of ones, with fill value 1; see `pyfinch.full`."""
    return full(shape, check_dtype(dtype).type(1), format=format)


def eye(
    n_rows: int, n_cols: int | None = None, /, *, k: int = 0, dtype: Any = float, format: AnyFormat | None = None
) -> Tensor:
    """A matrix with ones on its k-th diagonal and zeros elsewhere.

    Examples
    --------
    >>> import pyfinch as pf
    >>> pf.eye(2, 3, k=1).todense()
    array([[0., 1., 0.],
           [0., 0., 1.]])
    """
    shape = check_shape((n_rows, n_rows if n_cols is None else n_cols))
    rows = np.arange(max(-k, 0), max(min(shape[0], shape[1] - k), max(-k, 0)), dtype=np.int64)
    own = check_dtype(dtype)
    made = _of_coords(shape, np.stack([rows, rows + k]), np.ones(len(rows), own), own.type(0), format)
    return _noted(made)


def random(
    shape: int | Sequence[int],
    *,
    density: float = 0.01,
    rng: Any = None,
    dtype: Any = float,
    fill_value: Any = 0,
    format: AnyFormat | None = None,
) -> Tensor:
    """A tensor with elements at random places, uniform in 0 … 1 (integers: of any value).

    Parameters
    ----------
    shape : int or sequence of int
    density : float
        Stored elements by all elements, 0 … 1; their number is rounded.
    rng : numpy.random.Generator or seed, optional
    dtype : dtype
    fill_value : scalar
    format : str, Format or FType, optional

    Examples
    --------
    >>> import pyfinch as pf
    >>> pf.random((100, 50), density=0.1, rng=0).nnz
    500
    """
    dims = check_shape(shape)
    if not 0 <= density <= 1:
        raise ShapeError(f"random: density must be between 0 and 1, got {density}")
    generator = np.random.default_rng(rng)
    own = check_dtype(dtype)
    size = 1
    for dim in dims:
        size *= dim
    if size >= 2**63:
        raise ShapeError(f"random: shape {dims} has more than 2**63 elements")
    places = _sample(generator, size, round(density * size))
    coords = np.array(np.unravel_index(places, dims), dtype=np.int64).reshape(len(dims), -1)
    return _of_coords(dims, coords, _values(generator, len(places), own), as_scalar(fill_value, own), format)


def _sample(rng: np.random.Generator, size: int, count: int) -> Any:
    """Distinct places, sorted."""
    if count > size // 8:
        return np.sort(rng.permutation(size)[:count])
    places = np.unique(rng.integers(size, size=count))
    while len(places) < count:
        places = np.union1d(places, rng.integers(size, size=count - len(places)))
    return places


def _values(rng: np.random.Generator, count: int, dtype: np.dtype[Any]) -> Any:
    match dtype.kind:
        case "b":
            return np.ones(count, dtype=dtype)
        case "i" | "u":
            info = np.iinfo(dtype)
            return rng.integers(info.min, info.max, count, dtype=dtype, endpoint=True)
        case "c":
            return (rng.random(count) + 1j * rng.random(count)).astype(dtype)
    return rng.random(count).astype(dtype)


def lazy(x: Any, /) -> LazyTensor:
    """A lazy tensor of a tensor or array: operations on it build a program that `pyfinch.compute` runs fused.

    Examples
    --------
    >>> import pyfinch as pf
    >>> x = pf.lazy(pf.eye(3))
    >>> pf.compute((x + x) @ x).nnz
    3
    """
    return as_lazy(x)


def compute(x: Any, /, *more: Any, backend: str | None = None, scheduler: str | None = None) -> Any:
    """Compute lazy tensors, together if there are several: what they share is computed once.

    Parameters
    ----------
    x, *more : LazyTensor, or tuple, list or dict of them
        Eager values in them stay as they are. Of several arguments the results come as a tuple.
    backend, scheduler : str, optional
        Where to run, and who schedules, if not as `pyfinch.use_backend` says.

    Returns
    -------
    Tensor, or a tuple, list or dict of them

    Raises
    ------
    BackendUnavailableError
        If there is no such backend or scheduler.

    Examples
    --------
    >>> import pyfinch as pf
    >>> x = pf.lazy([1, 2, 3])
    >>> total, most = pf.compute((x.sum(), x.max()))
    >>> int(total), int(most)
    (6, 3)
    """
    if more:
        x = (x, *more)
    lazies = leaves(x)
    results = iter(compute_all(lazies, backend, scheduler)) if lazies else iter(())
    return rebuilt(x, results)


def leaves(x: Any) -> list[LazyTensor]:
    """The lazy tensors in a structure, in order."""
    if isinstance(x, LazyTensor):
        return [x]
    if isinstance(x, dict):
        x = list(x.values())
    return [leaf for part in x for leaf in leaves(part)] if isinstance(x, tuple | list) else []


def rebuilt(x: Any, results: Any) -> Any:
    """A structure with its lazy tensors replaced, in order."""
    if isinstance(x, LazyTensor):
        return next(results)
    if isinstance(x, dict):
        return {key: rebuilt(part, results) for key, part in x.items()}
    if isinstance(x, tuple) and hasattr(x, "_fields"):
        return type(x)(*[rebuilt(part, results) for part in x])
    if isinstance(x, tuple | list):
        return type(x)([rebuilt(part, results) for part in x])
    return x
