"""The storage tensor: an ftype, a shape, a fill value and buffers."""

from __future__ import annotations

import operator as python_operator
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from pyfinch.algebra import operators as ops
from pyfinch.algebra.dtypes import DT, check_dtype
from pyfinch.algebra.errors import DTypeError, FormatError, IndexBoundsError, ShapeError
from pyfinch.algebra.values import as_scalar, same_value
from pyfinch.formats.format import Format, FType, format
from pyfinch.formats.levels import INDEX_DTYPES, Buffer, Dense, Element, Level, Pattern, SparseByteMap
from pyfinch.formats.statistics import Bins

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["Buffers", "Tensor", "check_shape"]

Buffers = tuple[tuple[Buffer, ...], ...]


def check_shape(shape: Any) -> tuple[int, ...]:
    """A shape as a tuple of ints.

    Raises
    ------
    ShapeError
        If it is not integers >= 0 that int64 holds.
    """
    try:
        dims = tuple(python_operator.index(d) for d in (shape if np.iterable(shape) else (shape,)))
    except TypeError:
        raise ShapeError(f"a shape is a tuple of integers, got {shape!r}") from None
    for mode, dim in enumerate(dims):
        if not 0 <= dim < 2**63:
            raise ShapeError(f"shape {dims}: the size {dim} of mode {mode} is not in 0 … 2**63 - 1")
    return dims


class Tensor:
    """A tensor stored level by level.

    The constructor checks nothing and copies nothing; use `from_buffers` for buffers from elsewhere.

    Parameters
    ----------
    ftype : FType
    shape : tuple of int
        Logical, as users see it; storage slot d has size ``shape[ftype.mode_order[d]]``.
    fill_value : NumPy scalar of ``ftype.dtype``
    buffers : tuple of tuples of arrays
        One tuple a level, outermost first, the leaf's last.
    """

    __slots__ = ("__weakref__", "_statistics", "buffers", "fill_value", "ftype", "shape")

    ftype: FType
    shape: tuple[int, ...]
    fill_value: Any
    buffers: Buffers
    _statistics: Bins  # set when they are asked for

    def __init__(self, ftype: FType, shape: tuple[int, ...], fill_value: Any, buffers: Buffers) -> None:
        self.ftype = ftype
        self.shape = shape
        self.fill_value = fill_value
        self.buffers = buffers

    @classmethod
    def _trusted(cls, ftype: FType, shape: tuple[int, ...], fill_value: Any, buffers: Buffers) -> Self:
        """A tensor of buffers that a kernel or a converter made; nothing is checked."""
        self = cls.__new__(cls)
        self.ftype = ftype
        self.shape = shape
        self.fill_value = fill_value
        self.buffers = buffers
        return self

    @classmethod
    def from_buffers(
        cls,
        format: str | Format | FType,
        shape: Sequence[int],
        buffers: Sequence[Sequence[Any]],
        *,
        fill_value: Any = None,
        copy: bool = False,
    ) -> Self:
        """Build a tensor of given buffers after checking all that kernels rely on.

        Parameters
        ----------
        format : str, Format or FType
            Dtypes that it leaves open are those of the buffers.
        shape : sequence of int
            Logical shape.
        buffers : sequence of sequences of arrays
            One sequence a level, outermost first: ``()`` for dense, ``(ptr, idx)`` for sparse_list,
            ``(ptr, idx0, …)`` for sparse_coo, ``(ptr, idx, tbl)`` for sparse_bytemap, ``(val,)`` for element,
            ``()`` for pattern. Read-only arrays are fine; arrays that are not contiguous, not of native
            byte order, or indices other than int32 and int64 are copied.
        fill_value : scalar, optional
            The value of what is not stored; the format's, or 0, by default.
        copy : bool
            Whether to copy buffers that could be shared.

        Raises
        ------
        FormatError, IndexBoundsError, ShapeError, DTypeError
            Naming the level and the first offending place.

        Examples
        --------
        >>> x = Tensor.from_buffers("csr", (2, 3), [(), ([0, 1, 3], [2, 0, 1]), ([1.0, 2.0, 3.0],)])
        >>> x.todense()
        array([[0., 0., 1.],
               [2., 3., 0.]])
        """
        dims = check_shape(shape)
        fmt = _as_format(format, len(dims))
        arrays = _take_buffers(fmt, buffers, copy)
        ftype, fill = _fitted_type(fmt, arrays, fill_value)
        _validate(ftype, dims, arrays)
        return cls._trusted(ftype, dims, fill, arrays)

    @property
    def dtype(self) -> DT:
        """Of the elements."""
        return self.ftype.dtype

    @property
    def ndim(self) -> int:
        """Number of modes."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """Number of elements, stored or not."""
        return _product(self.shape)

    @property
    def format(self) -> Format:
        """The format, with this tensor's dtypes and fill value."""
        levels = self.ftype.levels
        if self.ftype.fill is None:
            levels = (*levels[:-1], Element(self.fill_value, self.ftype.dtype))
        return Format(levels, self.ftype.mode_order)

    @property
    def storage_shape(self) -> tuple[int, ...]:
        """The sizes of the storage slots, outermost first."""
        return tuple(self.shape[mode] for mode in self.ftype.mode_order)

    @property
    def nnz(self) -> int:
        """Number of stored entries, whatever their values."""
        levels = self.ftype.levels
        count, slot = 1, 0
        dims = self.storage_shape
        for number, level in enumerate(levels[:-1]):
            if isinstance(level, SparseByteMap) and number < len(levels) - 2:
                return int(self.to_coords()[0].shape[1])
            if isinstance(level, Dense):
                count *= dims[slot]
            else:
                count = len(self.buffers[number][1])
            slot += level.modes
        return count

    @property
    def density(self) -> float:
        """Stored entries by elements; 1.0 for a tensor without elements."""
        size = self.size
        return self.nnz / size if size else 1.0

    @property
    def nbytes(self) -> int:
        """Bytes in all buffers."""
        return sum(buffer.nbytes for level in self.buffers for buffer in level)

    def __repr__(self) -> str:
        return (
            f"<{type(self).__name__} shape={self.shape} dtype={self.dtype} nnz={self.nnz} "
            f"fill={self.fill_value} {self.format}>"
        )

    def validate(self) -> None:
        """Check everything again; raises as `from_buffers` does."""
        _validate(self.ftype, self.shape, self.buffers)

    def check_ends(self) -> None:
        """Check in constant time what somebody may have changed in buffers that they share: where fibers end.

        Raises
        ------
        FormatError
            If pointers lead beyond the entries.
        """
        for number, buffers in enumerate(self.buffers):
            if len(buffers) > 1 and (buffers[0].item(0) != 0 or buffers[0].item(-1) > len(buffers[1])):
                raise FormatError(
                    f"{level_name(number, self.ftype.levels[number])}: ptr runs from {buffers[0][0]} to "
                    f"{buffers[0][-1]}, but there are {len(buffers[1])} entries; the shared buffers of a tensor were "
                    "changed: make it with copy=True"
                )

    def to_coords(self) -> tuple[NDArray[np.int64], NDArray[Any]]:
        """Coordinates and values of the stored entries, in storage order.

        Returns
        -------
        coords : ndarray of int64, shape (ndim, nnz)
            Row k is the coordinate in logical mode k.
        values : ndarray, shape (nnz,)
        """
        from pyfinch.formats.convert import to_coords

        return to_coords(self)

    def todense(self) -> NDArray[Any]:
        """A new NumPy array of the logical shape, C-contiguous."""
        from pyfinch.formats.convert import todense

        return todense(self)

    def to_format(self, format: str | Format | FType, *, prune: bool = False) -> Tensor:
        """The same tensor stored in another format; see `pyfinch.formats.convert.convert`."""
        from pyfinch.formats.convert import convert

        return convert(self, _as_format(format, self.ndim), prune)

    def to_scipy(self) -> Any:
        """A scipy.sparse array; see `pyfinch.formats.scipy_export.to_scipy`."""
        from pyfinch.formats.scipy_export import to_scipy

        return to_scipy(self)

    def astype(self, dtype: Any, *, copy: bool = True) -> Tensor:
        """The tensor with elements of another dtype and the same structure, whose buffers are shared.

        Raises
        ------
        DTypeError
            From complex to real: say ``real`` or ``abs`` instead.
        """
        wanted = check_dtype(dtype)
        if wanted == self.dtype and not copy:
            return self
        if self.dtype.kind == "c" and wanted.kind != "c":
            raise DTypeError(f"astype from {self.dtype} to {wanted} drops the imaginary part; use real()")
        cast = ops.cast(wanted)
        fill = cast(self.fill_value)
        fmt = Format((*self.ftype.levels[:-1], Element(None, wanted)), self.ftype.mode_order)
        with np.errstate(all="ignore"):
            values = np.array(_values(self), dtype=wanted)
        ftype = fmt.specify(wanted, fill)
        return self._trusted(ftype, self.shape, fill, (*self.buffers[:-1], (values,)))

    def permuted(self, axes: Sequence[int]) -> Self:
        """The tensor with its modes permuted as ``np.transpose`` does; shares all buffers."""
        if sorted(axes) != list(range(self.ndim)):
            raise ShapeError(f"axes {tuple(axes)} must permute the {self.ndim} modes of shape {self.shape}")
        places = [axes.index(mode) for mode in self.ftype.mode_order]
        shape = tuple([self.shape[axis] for axis in axes])
        return self._trusted(self.ftype.reordered(tuple(places)), shape, self.fill_value, self.buffers)


def _product(dims: Sequence[int]) -> int:
    size = 1
    for dim in dims:
        size *= dim
    return size


def _values(tensor: Tensor) -> NDArray[Any]:
    """The leaf's values by position; a pattern's are True."""
    if tensor.buffers[-1]:
        return tensor.buffers[-1][0]
    return np.ones(leaf_positions(tensor), dtype=np.bool_)


def leaf_positions(tensor: Tensor) -> int:
    """Number of positions that the leaf has."""
    npos, slot = 1, 0
    dims = tensor.storage_shape
    for level, buffers in zip(tensor.ftype.levels, tensor.buffers, strict=True):
        if level.appends:
            npos = len(buffers[1])
        elif level.modes:
            npos *= dims[slot]
        slot += level.modes
    return npos


def _as_format(spec: str | Format | FType, ndim: int) -> Format:
    return format(spec, ndim)


def _take_buffers(fmt: Format, buffers: Sequence[Sequence[Any]], copy: bool) -> Buffers:
    """The buffers as contiguous native arrays of dtypes that kernels take; values are not checked yet."""
    try:
        given = [list(level) for level in buffers]
    except TypeError:
        raise FormatError(f"buffers must be a sequence of sequences, one a level of {fmt}") from None
    if len(given) != len(fmt.levels):
        raise FormatError(f"{fmt} has {len(fmt.levels)} levels (dense: ()), got {len(given)} buffer tuples")
    taken = []
    for number, (level, arrays) in enumerate(zip(fmt.levels, given, strict=True)):
        where = level_name(number, level)
        if len(arrays) != len(level.buffer_names):
            names = ", ".join(level.buffer_names) or "nothing"
            raise FormatError(f"{where} takes {names}, got {len(arrays)} buffers")
        taken.append(
            tuple(
                _take(array, name, dtype, f"{where}: {name}", copy)
                for array, name, dtype in zip(arrays, level.buffer_names, level.buffer_dtypes, strict=True)
            )
        )
    return tuple(taken)


def level_name(number: int, level: Level) -> str:
    """How messages name a level."""
    return f"level {number} ({level.text().split('(')[0]})"


def _take(given: Any, name: str, wanted: DT | None, what: str, copy: bool) -> Buffer:
    try:
        array = np.asarray(given)
    except Exception as error:
        raise FormatError(f"{what} is not an array: {error}") from None
    if array.ndim != 1:
        raise FormatError(f"{what} must have 1 dimension, got {array.ndim}")
    if name not in ("val", "tbl"):
        array = as_indices(array, what)
    elif name == "tbl" and array.dtype != np.bool_:
        raise DTypeError(f"{what} must be bool, got {array.dtype}")
    dtype = check_dtype(array.dtype, f"{what}: dtype")
    if wanted is not None and dtype != wanted:
        if name in ("val", "tbl") or not _fits(array, wanted):
            raise DTypeError(f"{what} must be {wanted} in this format, got {array.dtype}")
        dtype = wanted
    return np.array(array, dtype=dtype, order="C") if copy else np.ascontiguousarray(array, dtype=dtype)


def _fits(array: Buffer, wanted: DT) -> bool:
    info = np.iinfo(wanted)
    return not array.size or bool(info.min <= array.min() and array.max() <= info.max)


def as_indices(array: Any, what: str) -> Buffer:
    """An array of indices as int32 (kept) or int64.

    Raises
    ------
    DTypeError
        If it is not of integers; float indices are refused even where they are whole.
    IndexBoundsError
        If it does not fit int64.
    """
    array = np.asarray(array)
    if array.dtype.kind not in "iu":
        if array.size == 0 and array.dtype == np.float64:
            # np.asarray([]) is float64.
            return np.empty(array.shape, dtype=np.int64)
        raise DTypeError(f"{what} must be of integers, got {array.dtype}")
    if array.dtype.newbyteorder("=") in INDEX_DTYPES:
        native: Buffer = array.astype(array.dtype.newbyteorder("="), copy=False)
        return native
    if array.dtype == np.uint64 and array.size and array.max() >= 2**63:
        raise IndexBoundsError(f"{what} holds {array.max()}, which is beyond int64")
    small = array.dtype.itemsize < 4 or array.dtype == np.int32
    widened: Buffer = array.astype(np.int32 if small else np.int64)
    return widened


def _fitted_type(fmt: Format, arrays: Buffers, fill_value: Any) -> tuple[FType, Any]:
    """The ftype of buffers, and the fill value of its dtype."""
    from dataclasses import replace

    levels: list[Any] = []
    for number, (level, buffers) in enumerate(zip(fmt.levels[:-1], arrays[:-1], strict=True)):
        where = level_name(number, level)
        if buffers:
            dtypes = {b.dtype for b in buffers[1:] if b.dtype != np.bool_}
            if len(dtypes) != 1:
                raise DTypeError(f"{where}: indices must have one dtype, got {sorted(map(str, dtypes))}")
            level = replace(level, ptr=buffers[0].dtype, idx=buffers[1].dtype)  # type: ignore[type-var]
        levels.append(level)
    leaf = fmt.leaf
    dtype = arrays[-1][0].dtype if arrays[-1] else leaf.dtype
    assert dtype is not None
    fill = fill_value if fill_value is not None else leaf.fill
    fill = as_scalar(0 if fill is None else fill, dtype)
    if isinstance(leaf, Pattern) and fill:
        raise FormatError("pattern() has fill False")
    if leaf.fill is not None and not same_value(as_scalar(leaf.fill, dtype), fill):
        raise FormatError(f"fill_value {fill} contradicts the format's {leaf.fill}; leave one of them out")
    leaf = Element(None, dtype) if isinstance(leaf, Element) else leaf
    return Format((*levels, leaf), fmt.mode_order).specify(dtype, fill), fill


def _validate(ftype: FType, shape: tuple[int, ...], arrays: Buffers) -> None:
    npos, slot = 1, 0
    dims = tuple(shape[mode] for mode in ftype.mode_order)
    for number, (level, buffers) in enumerate(zip(ftype.levels, arrays, strict=True)):
        for name, dtype, buffer in zip(level.buffer_names, level.buffer_dtypes, buffers, strict=True):
            if buffer.dtype != dtype or buffer.ndim != 1 or not buffer.flags.c_contiguous:
                raise FormatError(f"{level_name(number, level)}: {name} must be a contiguous vector of {dtype}")
        own = dims[slot : slot + level.modes]
        npos = level.validate(buffers, own, npos, level_name(number, level))
        slot += level.modes
