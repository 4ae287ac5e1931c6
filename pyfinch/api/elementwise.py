"""Elementwise functions: one for each row of the operator table, and `where`, `clip`, `astype`.

Python's own numbers are weak, as in NumPy 2: they take the dtype of what they meet. A number with algebra of its
own (0, 1, the infinities, nan, an identity or annihilator of the operator) is part of the program; any other is an
operand that kernels take at run time, so ``A + 0.1`` and ``A + 0.2`` share one kernel.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from pyfinch.algebra import operators as ops
from pyfinch.algebra.dtypes import DT, SUPPORTED_DTYPES, check_dtype
from pyfinch.algebra.errors import DTypeError
from pyfinch.algebra.operators import Operator
from pyfinch.api.eager import as_number, as_operand, run
from pyfinch.api.lazy import LazyTensor, map_join, table
from pyfinch.api.methods import FUNCTIONS, provides
from pyfinch.api.tensor import number
from pyfinch.formats.tensor import Tensor as StorageTensor

__all__ = ["Function", "apply", "astype", "clip", "where"]

_WEAK: Final = {bool: np.bool_, int: np.int64, float: np.float64, complex: np.complex128}


@cache
def _constants(op: Operator) -> frozenset[Any]:
    """The numbers that an operator treats as static: those with algebra, for any dtype."""
    found: set[Any] = {0, 1, float("inf"), float("-inf")}
    for dtype in SUPPORTED_DTYPES:
        for law in (op.identity, op.annihilator, op.right_identity):
            value = law(dtype)
            if value is not None:
                found.add(value.item())
    return frozenset(found)


def _is_static(op: Operator, value: Any) -> bool:
    return value in _constants(op) or bool(value != value)


@lru_cache(maxsize=4096)
def weak_dtype(dtypes: tuple[DT, ...], kind: type) -> DT:
    """The dtype that a Python number takes among tensors of some dtypes."""
    if not dtypes:
        return np.dtype(_WEAK[kind])
    # A Python number's kind decides, not its value.
    return check_dtype(np.result_type(*dtypes, kind(0)))


def cast_number(op: Operator, value: Any, kind: type, dtypes: tuple[DT, ...]) -> Any:
    """A Python number as a NumPy scalar, by the rules of weak promotion.

    Raises
    ------
    DTypeError
        If it does not fit the dtype.
    """
    dtype = weak_dtype(dtypes, kind)
    try:
        if dtype.kind in "fc":
            with np.errstate(all="ignore"):
                return dtype.type(value)
        return dtype.type(value)
    except OverflowError:
        pass
    if op.cast == "common":  # any integer may be compared with
        for wide in (np.int64, np.uint64, np.float64):
            try:
                return wide(value)
            except OverflowError:
                continue
    raise DTypeError(f"{op.name}: the Python integer {value} does not fit {dtype}; use a wider dtype") from None


class _Arguments:
    """The arguments of one call, sorted into operands and static numbers."""

    __slots__ = ("lazy", "operands", "parts", "static")

    def __init__(self, op: Operator, args: Sequence[Any]) -> None:
        parts: list[Any] = []  # operands; numbers as (kind, value)
        dtypes: list[DT] = []
        self.lazy = False
        typed_from = 1 if op.name == "where" else 0  # a condition does not decide the result's dtype
        weak = False
        for k, x in enumerate(args):
            kind = type(x)
            if kind in _WEAK:
                weak = True
                parts.append(x)
                continue
            if isinstance(x, LazyTensor):
                self.lazy = True
                weak = weak or x.weak is not None
            elif isinstance(x, np.generic):
                check_dtype(x.dtype)
                x = x if _is_static(op, x.item()) else number(x)
            else:
                x = as_operand(x)
            if isinstance(x, StorageTensor) and not x.shape and x.ftype.fill is not None:
                x = as_number(x)
            parts.append(x)
            if k >= typed_from and getattr(x, "weak", None) is None:
                dtypes.append(x.dtype)
        if weak:
            self._settle(op, parts, tuple(dtypes), typed_from)
        self.parts = parts
        self.operands = [x for x in parts if not isinstance(x, np.generic)]
        self.static: tuple[Any, ...] = (op,)
        if len(self.operands) != len(parts):
            self.static = (
                op,
                *[(type(x), x.tobytes()) if isinstance(x, np.generic) else None for x in parts],
            )

    @staticmethod
    def _settle(op: Operator, parts: list[Any], dtypes: tuple[DT, ...], typed_from: int) -> None:
        """Give weak numbers their dtypes."""
        for k, x in enumerate(parts):
            kind = type(x)
            among = dtypes if k >= typed_from else ()
            if kind in _WEAK:
                value = cast_number(op, x, kind, among)
                parts[k] = value if _is_static(op, value.item()) else number(value)
            elif isinstance(x, LazyTensor) and x.weak is not None and among:
                dtype = weak_dtype(among, x.weak)
                if x.weak is int and x.fill is not None:
                    dtype = cast_number(op, int(x.fill), int, among).dtype  # which checks that it fits
                parts[k] = x if x.dtype == dtype else map_join(ops.cast(dtype), [x])

    def build(self, op: Operator) -> Any:
        """The lazy result, from one lazy tensor an operand."""
        if not self.operands:  # numbers only
            return lambda: map_join(op, self.parts)

        def made(*lazies: LazyTensor) -> LazyTensor:
            rest = iter(lazies)
            return map_join(op, [x if isinstance(x, np.generic) else next(rest) for x in self.parts])

        return made

    def dense(self, op: Operator) -> Any:
        """The same on arrays."""

        def made(*arrays: Any) -> Any:
            rest = iter(arrays)
            return op(*[x if isinstance(x, np.generic) else next(rest) for x in self.parts])

        return made


def apply(op: Operator, args: Sequence[Any]) -> Any:
    """An operator on anything array-like, elementwise with broadcasting: eager, or lazy if any argument is.

    Raises
    ------
    ShapeError
        If shapes do not broadcast; it names both and the axis.
    DTypeError
        If the operator does not take the dtypes.
    """
    given = _Arguments(op, args)
    if given.lazy:
        return _lazily(op, given.parts)
    operands = given.operands
    if not operands:
        operands = [number(x) for x in given.parts]
        given = _Arguments(op, operands)
    return run(given.static, operands, given.build(op), given.dense(op))


# How an operator of the user's own, called with a tensor among its arguments, gets here.
FUNCTIONS["apply"] = apply


def _lazily(op: Operator, parts: Sequence[Any]) -> LazyTensor:
    lazies = [x if isinstance(x, LazyTensor | np.generic) else table(x) for x in parts]
    result = map_join(op, lazies)
    if all(isinstance(x, LazyTensor) and x.weak is not None for x in lazies):
        result.weak = {"b": bool, "i": int, "u": int, "f": float, "c": complex}[result.dtype.kind]
    return result


class Function:
    """An elementwise function: an operator of the table, on anything array-like.

    Attributes
    ----------
    operator : Operator
    """

    def __init__(self, op: Operator) -> None:
        self.operator = op
        self.__name__ = op.name
        arguments = ", ".join(f"x{k + 1}" for k in range(2 if op.arity == -1 else op.arity))
        self.__doc__ = (
            f"{op.name}({arguments}): elementwise with broadcasting, as ``numpy.{_numpy_name(op)}`` "
            "does; lazy if any argument is."
        )

    def __call__(self, *args: Any) -> Any:
        op = self.operator
        if op.arity == -1 and len(args) < 2:
            raise TypeError(f"{op.name} takes two arguments or more, got {len(args)}")
        op.check_arity(len(args))
        return apply(op, args)

    def __repr__(self) -> str:
        return f"<function pyfinch.{self.__name__}>"

    def __reduce__(self) -> tuple[Any, ...]:
        return _function, (self.operator.name,)


def _numpy_name(op: Operator) -> str:
    return op.func.__name__ if isinstance(op.func, np.ufunc) else op.name


def _function(name: str) -> Any:
    return FUNCTIONS[name]


_NOT_OFFERED: Final = {"where", "clip", "overwrite", "first"}


def _offer() -> dict[str, Function]:
    """A function for each operator of the table under each of its names."""
    offered: dict[str, Function] = {}
    for op in ops.all_operators():
        if op.name not in _NOT_OFFERED:
            function = Function(op)
            for name in (op.name, *op.aliases, _numpy_name(op)):
                offered.setdefault(name, function)
                FUNCTIONS.setdefault(name, function)
    return offered


_offered = _offer()
globals().update(_offered)
__all__ += list(_offered)

if TYPE_CHECKING:

    def __getattr__(name: str) -> Function: ...


@provides
def where(condition: Any, x1: Any, x2: Any, /) -> Any:
    """Elements of ``x1`` where ``condition`` is true, else of ``x2``, with broadcasting.

    Parameters
    ----------
    condition, x1, x2 : tensor, array or number

    Returns
    -------
    Tensor, or LazyTensor if an argument is lazy

    Examples
    --------
    >>> import pyfinch as pf
    >>> pf.where(pf.asarray([True, False]), pf.asarray([1, 2]), 0).todense()
    array([1, 0])
    """
    return apply(ops.get("where"), (condition, x1, x2))


@provides
def clip(x: Any, /, min: Any = None, max: Any = None) -> Any:
    """Elements of ``x``, those below ``min`` or above ``max`` replaced by the bound.

    Parameters
    ----------
    x : tensor or array
    min, max : tensor, array or number, optional

    Examples
    --------
    >>> import pyfinch as pf
    >>> pf.clip(pf.asarray([-3, 0, 9]), 0, 4).todense()
    array([0, 0, 4])
    """
    if min is not None:
        x = apply(ops.get("maximum"), (x, min))
    if max is not None:
        x = apply(ops.get("minimum"), (x, max))
    return x if isinstance(x, LazyTensor) else as_operand(x)


@provides
def astype(x: Any, dtype: Any, /, *, copy: bool = True) -> Any:
    """The tensor with elements of another dtype.

    Parameters
    ----------
    x : tensor or array
    dtype : dtype
    copy : bool
        False allows to return ``x`` itself where nothing changes.

    Raises
    ------
    DTypeError
        If the dtype is not supported, or complex values would lose their imaginary part.
    """
    return (x if isinstance(x, LazyTensor) else as_operand(x)).astype(dtype, copy=copy)
