"""`Format`, which a user writes and may leave open, and `FType`, which kernels are made for."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field, replace
from typing import Any, Final

import numpy as np

from pyfinch.algebra.dtypes import DT, check_dtype
from pyfinch.algebra.errors import DTypeError, FormatError
from pyfinch.algebra.values import as_scalar, is_special
from pyfinch.formats.levels import (
    Dense,
    Element,
    Level,
    Pattern,
    SparseByteMap,
    SparseCOO,
    SparseList,
)

__all__ = ["FType", "Format", "format"]

_INT64: Final = np.dtype(np.int64)


def _text(levels: tuple[Level, ...], mode_order: tuple[int, ...]) -> str:
    text = ""
    for level in reversed(levels):
        text = level.text(text)
    if mode_order != tuple(range(len(mode_order))):
        text += f" mode_order={mode_order}"
    return text


def _check(levels: tuple[Level, ...], mode_order: tuple[int, ...]) -> None:
    if not levels or levels[-1].modes or not all(level.modes for level in levels[:-1]):
        raise FormatError("a format is levels around one leaf, element() or pattern()")
    ndim = sum(level.modes for level in levels)
    if sorted(mode_order) != list(range(ndim)):
        raise FormatError(f"mode_order {mode_order} must permute the {ndim} modes of {_text(levels, ())}")


@dataclass(frozen=True, slots=True)
class Format:
    """How a tensor is to be stored; dtypes and the fill may be left open.

    Attributes
    ----------
    levels : tuple of Level
        Outermost first, the leaf last.
    mode_order : tuple of int
        ``mode_order[d]`` is the logical mode in storage slot d, outermost first.

    Examples
    --------
    >>> str(format("csc"))
    'dense(sparse_list(element())) mode_order=(1, 0)'
    >>> format("dense(sparse_list(element(0.0, float32)))").leaf.fill
    np.float32(0.0)
    """

    levels: tuple[Level, ...]
    mode_order: tuple[int, ...]

    def __post_init__(self) -> None:
        _check(self.levels, self.mode_order)

    def __str__(self) -> str:
        return _text(self.levels, self.mode_order)

    def __repr__(self) -> str:
        return f"format({str(self)!r})"

    @property
    def ndim(self) -> int:
        """Number of modes."""
        return len(self.mode_order)

    @property
    def leaf(self) -> Element | Pattern:
        """The leaf level."""
        leaf = self.levels[-1]
        assert isinstance(leaf, Element | Pattern)
        return leaf

    @property
    def dtype(self) -> DT | None:
        """The element dtype, or None where it is open."""
        return self.leaf.dtype

    @property
    def fill(self) -> Any:
        """The fill value, or None where it is open."""
        return self.leaf.fill

    def specify(self, dtype: Any, fill: Any, ptr: Any = _INT64, idx: Any = _INT64) -> FType:
        """The ftype of a tensor stored so; what the format says wins over the arguments.

        Parameters
        ----------
        dtype, fill : dtype and scalar
            For an element leaf that leaves them open.
        ptr, idx : dtype
            int32 or int64, for levels that leave them open.
        """
        levels = tuple(_with_indices(level, np.dtype(ptr), np.dtype(idx)) for level in self.levels[:-1])
        leaf: Level = self.leaf
        if isinstance(leaf, Element):
            wanted = leaf.dtype if leaf.dtype is not None else check_dtype(dtype)
            value = as_scalar(leaf.fill if leaf.fill is not None else fill, wanted)
            leaf = Element(value if is_special(value) else None, wanted)
        return FType((*levels, leaf), self.mode_order)


def _with_indices(level: Level, ptr: DT, idx: DT) -> Level:
    match level:
        case SparseList() | SparseCOO() | SparseByteMap():
            return replace(level, ptr=level.ptr or ptr, idx=level.idx or idx)
    return level


@dataclass(frozen=True, slots=True, eq=False, init=False, repr=False, weakref_slot=True)
class FType:
    """A tensor's type, fully specified: what kernels are made for and cached on.

    Interned: the same levels and mode order are the same object, so equality is identity.

    Attributes
    ----------
    levels, mode_order
        As in `Format`, with every dtype given.
    dtype : np.dtype
        Of the elements.
    ndim : int
    fill : NumPy scalar or None
        The fill value if it is special (0, 1, True, False, ±inf, nan: static in kernels); None if it is
        some other value, passed at run time.
    text : str
    """

    levels: tuple[Level, ...]
    mode_order: tuple[int, ...]
    dtype: DT = field(init=False)
    ndim: int = field(init=False)
    fill: Any = field(init=False)
    text: str = field(init=False)

    def __new__(cls, levels: tuple[Level, ...], mode_order: tuple[int, ...]) -> FType:
        key = (levels, mode_order)
        found = _ftypes.get(key)
        if found is None:
            made = _make_ftype(levels, mode_order)
            with _lock:
                found = _ftypes.setdefault(key, made)
        return found

    def __repr__(self) -> str:
        return f"<ftype {self.text}>"

    def __str__(self) -> str:
        return self.text

    def __reduce__(self) -> tuple[Any, ...]:
        return FType, (self.levels, self.mode_order)

    def __copy__(self) -> FType:
        return self

    def __deepcopy__(self, memo: object) -> FType:
        return self

    @property
    def format(self) -> Format:
        """The same as a descriptor."""
        return Format(self.levels, self.mode_order)

    @property
    def leaf(self) -> Element | Pattern:
        """The leaf level."""
        leaf = self.levels[-1]
        assert isinstance(leaf, Element | Pattern)
        return leaf

    def in_storage_order(self) -> FType:
        """The ftype of the same buffers with mode d in storage slot d."""
        return self.reordered(tuple(range(self.ndim)))

    def reordered(self, mode_order: tuple[int, ...]) -> FType:
        """The ftype of the same buffers with other modes in the storage slots."""
        key = self, mode_order
        found = _reordered.get(key)
        if found is None:
            found = _reordered[key] = FType(self.levels, mode_order)
        return found

    def as_coo(self) -> FType:
        """The ftype of the same elements as one ``sparse_coo[ndim]`` level in the same mode order."""
        if not self.ndim:
            return self
        sparse = [level for level in self.levels[:-1] if not isinstance(level, Dense)]
        ptr = max((level.buffer_dtypes[0] or _INT64 for level in sparse), key=_width, default=_INT64)
        idx = max((level.buffer_dtypes[1] or _INT64 for level in sparse), key=_width, default=_INT64)
        if any(isinstance(level, Dense) for level in self.levels):
            idx = _INT64
        return FType((SparseCOO(self.ndim, ptr, idx), self.levels[-1]), self.mode_order)


# Strong: programs meet a bounded number of ftypes, and kernels refer to them anyway.
_ftypes: dict[tuple[tuple[Level, ...], tuple[int, ...]], FType] = {}
_reordered: dict[tuple[FType, tuple[int, ...]], FType] = {}
_lock = threading.Lock()


def _width(dtype: DT) -> int:
    return dtype.itemsize


def _make_ftype(levels: tuple[Level, ...], mode_order: tuple[int, ...]) -> FType:
    _check(levels, mode_order)
    leaf = levels[-1]
    assert isinstance(leaf, Element | Pattern)
    open_dtypes = [level.text("…") for level in levels if any(dtype is None for dtype in level.buffer_dtypes)]
    if leaf.dtype is None or open_dtypes:
        raise FormatError(f"an ftype needs every dtype; open in {', '.join(open_dtypes)}")
    if leaf.fill is not None and not is_special(leaf.fill):
        raise FormatError(f"an ftype's fill is special or None, got {leaf.fill!r}; use Format.specify")
    ftype = object.__new__(FType)
    values = (levels, mode_order, leaf.dtype, len(mode_order), leaf.fill, _text(levels, mode_order))
    for name, value in zip(("levels", "mode_order", "dtype", "ndim", "fill", "text"), values, strict=True):
        object.__setattr__(ftype, name, value)
    return ftype


_NAMED: Final[dict[str, tuple[tuple[Level, ...], tuple[int, ...]]]] = {
    "scalar": ((), ()),
    "vector": ((Dense(),), (0,)),
    "sparse_vector": ((SparseList(),), (0,)),
    "matrix": ((Dense(), Dense()), (0, 1)),
    "csr": ((Dense(), SparseList()), (0, 1)),
    "csc": ((Dense(), SparseList()), (1, 0)),
    "dcsr": ((SparseList(), SparseList()), (0, 1)),
    "dcsc": ((SparseList(), SparseList()), (1, 0)),
}
_ANY_NDIM: Final = ("dense", "fortran", "coo", "csf")


def format(spec: str | Format | FType, ndim: int | None = None) -> Format:
    """The format that a text, a shortcut or a descriptor stands for.

    Parameters
    ----------
    spec : str, Format or FType
        Format text, or one of ``csr csc dcsr dcsc vector sparse_vector matrix scalar``, or of
        ``dense fortran coo csf`` for any number of modes.
    ndim : int, optional
        Number of modes; needed by ``dense``, ``fortran`` and ``csf``, checked otherwise.

    Raises
    ------
    ParseError
        If the text does not follow the grammar (it says where).
    FormatError
        If the format has another number of modes, or is none.

    Examples
    --------
    >>> format("coo", ndim=3)
    format('sparse_coo[3](element())')
    >>> format("sparse_list(dense(element(inf))) mode_order=(1, 0)").fill
    np.float64(inf)
    """
    match spec:
        case Format():
            found = spec
        case FType():
            found = spec.format
        case str():
            found = _from_text(spec.strip(), ndim)
        case _:
            raise FormatError(f"a format is a text such as 'csr', or a Format; got {type(spec).__name__}")
    if ndim is not None and found.ndim != ndim:
        raise FormatError(f"format {spec} has {found.ndim} modes, but {ndim} are needed")
    return found


def _from_text(text: str, ndim: int | None) -> Format:
    if text in _NAMED:
        levels, order = _NAMED[text]
        return Format((*levels, Element()), order)
    if text in _ANY_NDIM:
        return _named_any(text, 2 if ndim is None and text == "coo" else ndim)
    from pyfinch.formats.text import parse

    try:
        return Format(*parse(text))
    except DTypeError as error:
        raise FormatError(f"format {text!r}: {error}") from None


def _named_any(name: str, ndim: int | None) -> Format:
    if ndim is None:
        raise FormatError(f"format {name!r} needs ndim=")
    order = tuple(range(ndim))
    match name:
        case "fortran":
            return Format((*[Dense()] * ndim, Element()), order[::-1])
        case "coo" if ndim:
            return Format((SparseCOO(ndim), Element()), order)
        case "csf":
            return Format((*[SparseList()] * ndim, Element()), order)
    return Format((*[Dense()] * ndim, Element()), order)
