"""Operators that carry a value or a dtype: `initwrite(z)`, `choose(z)`, `cast(dtype)`."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from weakref import WeakValueDictionary

import numpy as np

from pyfinch.algebra import rules as r
from pyfinch.algebra.dtypes import DT, check_dtype, constructor
from pyfinch.algebra.finch_laws import chooser_laws, initwrite_laws
from pyfinch.algebra.operator import Operator
from pyfinch.algebra.values import as_scalar, literal, value_key

__all__ = ["CastOperator", "ValueOperator", "cast", "choose", "initwrite", "known_fill"]

_interned: WeakValueDictionary[tuple[Any, ...], Operator] = WeakValueDictionary()
_lock = threading.Lock()


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ValueOperator(Operator):
    """An operator that carries a scalar, its identity."""

    value: Any = None

    def __repr__(self) -> str:
        return f"<operator {self.name}({self.value!r})>"

    def __str__(self) -> str:
        return f"{self.symbol}({self.value})"

    def __reduce__(self) -> tuple[Any, ...]:
        return {"initwrite": initwrite, "choose": choose, "known_fill": known_fill}[self.name], (self.value,)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class CastOperator(Operator):
    """Conversion to one dtype."""

    dtype: Any = None

    def __reduce__(self) -> tuple[Any, ...]:
        return cast, (self.dtype,)


def _intern(key: tuple[Any, ...], make: Callable[[], Operator]) -> Operator:
    with _lock:
        found = _interned.get(key)
        if found is None:
            found = _interned[key] = make()
        return found


def _equals(argument: str, value: Any) -> str:
    return f"{argument} != {argument}" if value != value else f"{argument} == {literal(value)}"


def _same(array: Any, value: Any) -> Any:
    return np.not_equal(array, array) if value != value else np.equal(array, value)


def _value_operator(name: str, value: Any, keep: int) -> Operator:
    """An operator of (a, b) that gives argument `keep` unless it equals `value`, else the other."""
    scalar = as_scalar(value)

    def func(a: Any, b: Any) -> Any:
        kept, other = (a, b) if keep == 0 else (b, a)
        return np.where(_same(kept, scalar), other, kept).astype(np.result_type(a, b))

    def constant(dtype: DT) -> Any:
        return scalar if dtype == np.asarray(scalar).dtype else _fitting(scalar, dtype)

    kept, other = f"{{{keep}}}", f"{{{1 - keep}}}"
    laws = initwrite_laws(scalar) if name == "initwrite" else chooser_laws(scalar)
    return ValueOperator(
        name,
        name,
        2,
        func,
        f"({other} if {_equals(kept, scalar)} else {kept})",
        r.chooser,
        associative=True,
        idempotent=True,
        identity_of=constant,
        finch=laws,
        value=scalar,
    )


def _fitting(value: Any, dtype: DT) -> Any:
    try:
        cast_value = as_scalar(value, dtype)
    except TypeError:
        return None
    return cast_value if bool(cast_value == value) or value != value else None


def initwrite(value: Any) -> Operator:
    """``f(a, b)``: write b over an a that is `value`; a b that is `value` writes nothing.

    Examples
    --------
    >>> initwrite(0.0)(0.0, 3.0), initwrite(0.0)(3.0, 0.0)
    (np.float64(3.0), np.float64(3.0))
    """
    return _intern(("initwrite", value_key(as_scalar(value))), lambda: _value_operator("initwrite", value, 1))


def choose(value: Any) -> Operator:
    """``f(a, b)``: the first that is not `value`.

    Examples
    --------
    >>> choose(0)(0, 3), choose(0)(2, 3)
    (np.int64(3), np.int64(2))
    """
    return _intern(("choose", value_key(as_scalar(value))), lambda: _value_operator("choose", value, 0))


def known_fill(value: Any) -> Operator:
    """``f(a)``: a as it is, promising that its fill is `value`.

    A fill that depends on run-time numbers is no static part of a program, even where it comes out special, as that of
    ``max(A - 0.3, 0)``. Who builds a program knows the numbers and says so by this operator.

    Examples
    --------
    >>> known_fill(0.0)(3.0)
    np.float64(3.0)
    """
    scalar = as_scalar(value)
    return _intern(
        ("known_fill", value_key(scalar)),
        lambda: ValueOperator(
            "known_fill", "known_fill", 1, lambda a: np.asarray(a).copy(), "({0})", r.keep, value=scalar
        ),
    )


def cast(dtype: Any) -> Operator:
    """The operator that converts to `dtype` as ``ndarray.astype`` does (complex to real drops the rest).

    Examples
    --------
    >>> cast("int8")(3.7)
    np.int8(3)
    """
    wanted = check_dtype(dtype)
    return _intern(("cast", wanted), lambda: _cast_operator(wanted))


def _cast_operator(dtype: DT) -> Operator:
    def func(x: Any) -> Any:
        given = np.asarray(x)
        if given.dtype.kind == "c" and dtype.kind not in "cb":
            given = given.real
        return given.astype(dtype)

    make = constructor(dtype)
    plain = f"{make}({{0}})"
    by_kind: dict[str, str] = {}
    if dtype.kind in "iu":
        whole = "float_to_uint64" if dtype == np.uint64 else "float_to_int64"
        by_kind = {"f": f"{make}({whole}({{0}}))", "c": f"{make}({whole}({{0}}.real))"}
    elif dtype.kind == "f":
        by_kind = {"c": f"{make}({{0}}.real)"}
    elif dtype.kind == "b":
        plain = "({0} != 0)"

    def rule(dtypes: tuple[DT, ...]) -> tuple[tuple[DT, ...], DT]:
        return dtypes, dtype

    name = f"cast({dtype.name})"
    return CastOperator(
        name,
        name,
        1,
        func,
        plain,
        rule,
        "none",
        by_kind=by_kind,
        collapses=dtype.kind in "biu",
        dtype=dtype,
    )
