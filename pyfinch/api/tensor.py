"""The tensor that users hold: a storage tensor with the methods of an array."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any, Self

import numpy as np

from pyfinch.algebra.errors import PyFinchError, ShapeError
from pyfinch.api.methods import ArrayMethods, boxed, is_asked_by_scipy
from pyfinch.backends.base import get_backend
from pyfinch.formats.convert import convert
from pyfinch.formats.format import Format, FType, format
from pyfinch.formats.levels import Dense
from pyfinch.formats.tensor import Tensor as StorageTensor

__all__ = ["Tensor", "as_array", "dense_tensor", "is_dense", "number", "wrapped"]

Array = np.ndarray[Any, np.dtype[Any]]


class Tensor(ArrayMethods, StorageTensor):
    """A tensor: sparse or dense in each mode, with any fill value.

    Make one with `pyfinch.asarray`, `Tensor.from_buffers`, or by computing. It has the operators and methods
    of an array; operations on tensors give tensors, sparse where the result is.

    Examples
    --------
    >>> import numpy as np, pyfinch as pf
    >>> x = pf.asarray(np.array([[0.0, 2.0], [3.0, 0.0]]), format="csr")
    >>> (x * x).nnz, float(x.sum())
    (2, 5.0)
    """

    __slots__ = ()

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        if is_asked_by_scipy(sys._getframe(1)):
            return boxed(self)
        if not is_dense(self.ftype):
            raise PyFinchError(
                f"a sparse tensor of shape {self.shape} does not become a dense array by itself; "
                "call x.todense(), or x.to_scipy()"
            )
        if copy:
            return self.todense().astype(dtype or self.dtype, copy=False)
        return as_array(self).astype(dtype or self.dtype, copy=False)

    def _scalar(self, what: str) -> Any:
        if self.size != 1:
            raise ShapeError(f"{what} needs a tensor of one element, got shape {self.shape}")
        return self.todense().reshape(())[()]

    def item(self) -> Any:
        """The one element as a Python number."""
        return self._scalar("item()").item()

    def __bool__(self) -> bool:
        return bool(self._scalar("bool()"))

    def __int__(self) -> int:
        return int(self._scalar("int()"))

    def __float__(self) -> float:
        return float(self._scalar("float()"))

    def __complex__(self) -> complex:
        return complex(self._scalar("complex()"))

    def __index__(self) -> int:
        if self.ndim or self.dtype.kind not in "iub":
            raise TypeError(f"only 0-d integer tensors are indices, not {self.dtype} of shape {self.shape}")
        return int(self._scalar("index()"))

    def __len__(self) -> int:
        if not self.ndim:
            raise TypeError("a 0-d tensor has no len()")
        return self.shape[0]

    def __iter__(self) -> Iterator[Any]:
        if not self.ndim:
            raise TypeError("a 0-d tensor cannot be iterated over")
        return iter([self[i] for i in range(self.shape[0])])

    def __setitem__(self, key: Any, value: Any) -> None:
        raise PyFinchError("tensors are not changed in place; use pyfinch.where, or arithmetic with a mask")

    def astype(self, dtype: Any, *, copy: bool = True) -> Tensor:
        """The tensor with elements of another dtype; see `pyfinch.astype`."""
        return wrapped(StorageTensor.astype(self, dtype, copy=copy))

    def to_format(self, format: str | Format | FType, *, prune: bool = False) -> Tensor:
        """The same elements stored in another format.

        Parameters
        ----------
        format : str, Format or FType
            Such as ``"csr"``, ``"coo"`` or ``"dense(sparse_list(element(0.0)))"``. A fill value in it keeps
            every element's value.
        prune : bool
            Whether to drop stored entries that equal the fill value.

        Raises
        ------
        ParseError, FormatError
            If the text is no format, or one of another number of modes.

        Examples
        --------
        >>> import pyfinch as pf
        >>> pf.eye(3).to_format("coo").nnz
        3
        """
        return wrapped(_converted(self, _format(format, self.ndim), prune))

    def __copy__(self) -> Self:
        return self._trusted(self.ftype, self.shape, self.fill_value, self.buffers)

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuilt, (self.ftype, self.shape, self.fill_value, self.buffers)


_format = format  # a method's parameter has the same name
# Fewer stored entries than this are converted faster by NumPy than a kernel would be made.
_SMALL = 50_000


def _converted(tensor: StorageTensor, fmt: Format, prune: bool) -> StorageTensor:
    if tensor.nnz > _SMALL and get_backend().name == "numba":
        from pyfinch.backends.numba.convert import convert as generated

        return generated(tensor, fmt, prune)
    return convert(tensor, fmt, prune)


def _rebuilt(ftype: FType, shape: tuple[int, ...], fill: Any, buffers: Any) -> Tensor:
    return Tensor._trusted(ftype, shape, fill, buffers)


def wrapped(tensor: StorageTensor) -> Tensor:
    """A storage tensor as one for users; shares everything."""
    if type(tensor) is Tensor:
        return tensor
    return Tensor._trusted(tensor.ftype, tensor.shape, tensor.fill_value, tensor.buffers)


_dense: dict[FType, bool] = {}


def is_dense(ftype: FType) -> bool:
    """Whether every element is stored: all levels are dense, and there are values."""
    known = _dense.get(ftype)
    if known is None:
        known = all(isinstance(level, Dense) for level in ftype.levels[:-1]) and bool(ftype.leaf.buffer_names)
        _dense[ftype] = known
    return known


def as_array(tensor: StorageTensor) -> Array:
    """A dense tensor's elements as an array over its buffer."""
    order = tensor.ftype.mode_order
    values = tensor.buffers[-1][0]
    if len(order) < 2:
        return values.reshape(tensor.shape)
    stored = values.reshape([tensor.shape[mode] for mode in order])
    inverse = [0] * len(order)
    for slot, mode in enumerate(order):
        inverse[mode] = slot
    return stored.transpose(inverse)


_row_major: dict[tuple[np.dtype[Any], int], tuple[FType, Any]] = {}


def dense_tensor(array: Array) -> Tensor:
    """A dense tensor over an array; shared if it is contiguous in any mode order."""
    if not array.flags.c_contiguous or type(array) is not np.ndarray or not array.dtype.isnative:
        from pyfinch.interop.convert import to_tensor

        return wrapped(to_tensor(array))
    key = (array.dtype, array.ndim)
    found = _row_major.get(key)
    if found is None:
        from pyfinch.interop.convert import to_tensor

        model = to_tensor(np.zeros((1,) * array.ndim, array.dtype))
        found = _row_major[key] = model.ftype, model.fill_value
    ftype, fill = found
    return Tensor._trusted(ftype, array.shape, fill, (*[()] * array.ndim, (array.reshape(-1),)))


_numbers: dict[np.dtype[Any], FType] = {}


def number(value: np.generic) -> Tensor:
    """A NumPy scalar as a 0-d tensor whose fill is its value: a number that a kernel takes at run time."""
    dtype = value.dtype
    ftype = _numbers.get(dtype)
    if ftype is None:
        from pyfinch.formats.levels import Element

        ftype = _numbers[dtype] = FType((Element(None, dtype),), ())
    return Tensor._trusted(ftype, (), value, ((np.array([value]),),))
