"""The operator table: one row an operator. No other file lists operators.

``get("add")`` or ``get("+")`` finds one; `initwrite`, `choose`, `cast` and `operator` make those that carry
a value, a dtype or a function of the user's.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from pyfinch.algebra import rules as r
from pyfinch.algebra.errors import PyFinchError
from pyfinch.algebra.finch_laws import FINCH
from pyfinch.algebra.operator import NO_LAWS, FinchLaws, Operator

__all__ = [
    "FinchLaws",
    "Operator",
    "UserOperator",
    "all_operators",
    "cast",
    "choose",
    "get",
    "initwrite",
    "known_fill",
    "operator",
]


def _row(name: str, symbol: str, arity: int, func: Any, numba: str, **more: Any) -> Operator:
    more.setdefault("rule", r.ufunc(func) if isinstance(func, np.ufunc) else r.keep)
    more.setdefault("finch", FINCH.get(symbol, NO_LAWS))
    more["distributes"] = frozenset(more.get("distributes", ()))
    return Operator(name, symbol, arity, func, numba, **more)


def _float(name: str, symbol: str, func: np.ufunc, **more: Any) -> Operator:
    """A unary function to floats that Numba has under the same NumPy name."""
    return _row(name, symbol, 1, func, f"np.{func.__name__}({{0}})", **more)


def _compare(name: str, symbol: str, func: np.ufunc, sign: str, **more: Any) -> Operator:
    return _row(name, symbol, 2, func, f"({{0}} {sign} {{1}})", rule=r.compare, cast="common", collapses=True, **more)


def _whole(name: str, func: Any, numpy_name: str) -> Operator:
    """A rounding function: integers are whole already."""
    ints = {"b": "({0})", "i": "({0})", "u": "({0})"}
    return _row(
        name,
        name,
        1,
        func,
        f"np.{numpy_name}({{0}})",
        rule=r.keep,
        by_kind=ints,
        kinds="biuf",
        collapses=True,
    )


def _round(x: Any) -> Any:
    return np.rint(x) if np.asarray(x).dtype.kind in "fc" else np.positive(x)


def _rounding(func: np.ufunc) -> Any:
    def apply(x: Any) -> Any:
        return func(x) if np.asarray(x).dtype.kind == "f" else np.asarray(x).copy()

    return apply


def _imag(x: Any) -> Any:
    return np.imag(np.asarray(x)).copy()


def _real(x: Any) -> Any:
    return np.real(np.asarray(x)).copy()


def _is_infinite(value: Any) -> bool:
    value = np.asarray(value)
    return bool(value.dtype.kind == "f" and np.isinf(value))


def _nonzero(value: Any) -> bool:
    return bool(value)


_FOLD: Final = {"associative": True, "commutative": True}
_LATTICE: Final = {**_FOLD, "idempotent": True}
_COLLAPSES: Final = {"collapses": True}
_FALSE: Final = {"b": "False", "i": "False", "u": "False"}
_TRUE: Final = {"b": "True", "i": "True", "u": "True"}
_NOT_C: Final = "biuf"
_MAX: Final = "({0} if {0} >= {1} or {0} != {0} else {1})"
_MIN: Final = "({0} if {0} <= {1} or {0} != {0} else {1})"

# fmt: off
_TABLE: Final[tuple[Operator, ...]] = (
    # arithmetic
    _row("add", "+", -1, np.add, "({0} + {1})", **_FOLD, identity_of=r.zero, annihilator_of=r.infinity,
         annihilates=_is_infinite, distributes=("maximum", "minimum", "logaddexp"), repeat_name="multiply",
         by_kind={"b": "({0} | {1})"}),
    _row("multiply", "*", -1, np.multiply, "({0} * {1})", **_FOLD, identity_of=r.one, annihilator_of=r.zero,
         distributes=("add", "subtract"), repeat_name="pow", by_kind={"b": "({0} & {1})"}),
    _row("subtract", "-", 2, np.subtract, "({0} - {1})", right_identity_of=r.zero),
    _row("negative", "-", 1, np.negative, "(-{0})"),
    _row("positive", "identity", 1, np.positive, "({0})"),
    _row("divide", "/", 2, np.divide, "({0} / {1})", by_kind={"c": "complex_divide({0}, {1})"},
         right_identity_of=r.one, aliases=("true_divide",)),
    _row("floor_divide", "fld", 2, np.floor_divide, "floor_divide_float({0}, {1})", **_COLLAPSES,
         by_kind={"i": "divide_signed({0}, {1})", "u": "divide_unsigned({0}, {1})"}),
    _row("remainder", "mod", 2, np.remainder, "remainder_float({0}, {1})", **_COLLAPSES,
         by_kind={"i": "remainder_signed({0}, {1})", "u": "remainder_unsigned({0}, {1})"}),
    _row("pow", "^", 2, np.power, "({0} ** {1})", right_identity_of=r.one, aliases=("power",),
         by_kind={"i": "power_integer({0}, {1})", "u": "power_integer({0}, {1})",
                  "c": "complex_power({0}, {1})"}),
    _row("square", "square", 1, np.square, "({0} * {0})"),
    _row("reciprocal", "inv", 1, np.reciprocal, "(1 / {0})", kinds="fc",
         by_kind={"c": "complex_reciprocal({0})"}),
    _row("abs", "abs", 1, np.absolute, "abs({0})", aliases=("absolute",),
         by_kind={"b": "({0})", "u": "({0})"}),
    _row("sign", "sign", 1, np.sign, "sign_real({0})", by_kind={"c": "complex_sign({0})"}),
    _row("hypot", "hypot", 2, np.hypot, "np.hypot({0}, {1})", **_FOLD, annihilator_of=r.infinity,
         annihilates=_is_infinite),
    _row("copysign", "copysign", 2, np.copysign, "np.copysign({0}, {1})"),
    _row("nextafter", "nextafter", 2, np.nextafter, "np.nextafter({0}, {1})"),
    _row("logaddexp", "logaddexp", -1, np.logaddexp, "log_add_exp({0}, {1})", **_FOLD,
         identity_of=r.minus_infinity, annihilator_of=r.infinity),
    # order
    _row("maximum", "max", -1, np.maximum, _MAX, **_COLLAPSES, **_LATTICE, kinds=_NOT_C, identity_of=r.lowest,
         annihilator_of=r.highest, distributes=("minimum",)),
    _row("minimum", "min", -1, np.minimum, _MIN, **_COLLAPSES, **_LATTICE, kinds=_NOT_C,
         identity_of=r.highest,
         annihilator_of=r.lowest, distributes=("maximum",)),
    _row("clip", "clamp", 3, np.clip, "clip_real({0}, {1}, {2})", **_COLLAPSES, kinds="iuf"),
    # comparison
    _compare("equal", "==", np.equal, "==", commutative=True),
    _compare("not_equal", "!=", np.not_equal, "!=", commutative=True),
    _compare("less", "<", np.less, "<", kinds=_NOT_C),
    _compare("less_equal", "<=", np.less_equal, "<=", kinds=_NOT_C),
    _compare("greater", ">", np.greater, ">", kinds=_NOT_C),
    _compare("greater_equal", ">=", np.greater_equal, ">=", kinds=_NOT_C),
    # logic; the identities are those of bools, an annihilator decides whatever the dtype
    _row("logical_and", "and", -1, np.logical_and, "(({0} != 0) & ({1} != 0))", **_COLLAPSES,
         rule=r.logical, cast="none",
         **_LATTICE, identity_of=lambda d: True if d.kind == "b" else None, annihilator_of=r.zero,
         distributes=("logical_or", "logical_xor")),
    _row("logical_or", "or", -1, np.logical_or, "(({0} != 0) | ({1} != 0))", **_COLLAPSES, rule=r.logical,
         cast="none",
         **_LATTICE, identity_of=lambda d: False if d.kind == "b" else None, annihilator_of=r.one,
         annihilates=_nonzero, distributes=("logical_and",)),
    _row("logical_xor", "logical_xor", -1, np.logical_xor, "(({0} != 0) != ({1} != 0))", **_COLLAPSES,
         rule=r.logical,
         cast="none", **_FOLD, identity_of=lambda d: False if d.kind == "b" else None),
    _row("logical_not", "!", 1, np.logical_not, "({0} == 0)", **_COLLAPSES, rule=r.truth, cast="none"),
    # bits
    _row("bitwise_and", "&", -1, np.bitwise_and, "({0} & {1})", **_COLLAPSES, **_LATTICE, kinds="biu",
         identity_of=r.all_ones, annihilator_of=r.zero, distributes=("bitwise_or", "bitwise_xor")),
    _row("bitwise_or", "|", -1, np.bitwise_or, "({0} | {1})", **_LATTICE, kinds="biu",
         identity_of=r.zero, annihilator_of=r.all_ones, distributes=("bitwise_and",)),
    _row("bitwise_xor", "xor", -1, np.bitwise_xor, "({0} ^ {1})", **_COLLAPSES, **_FOLD, kinds="biu",
         identity_of=r.zero),
    _row("bitwise_invert", "~", 1, np.invert, "(~{0})", **_COLLAPSES, kinds="biu",
         by_kind={"b": "({0} == 0)"},
         aliases=("invert", "bitwise_not")),
    _row("bitwise_left_shift", "<<", 2, np.left_shift, "left_shift({0}, {1})", **_COLLAPSES, kinds="biu",
         right_identity_of=r.zero, aliases=("left_shift",)),
    _row("bitwise_right_shift", ">>", 2, np.right_shift, "right_shift({0}, {1})", **_COLLAPSES, kinds="biu",
         right_identity_of=r.zero, aliases=("right_shift",)),
    # elementary functions
    _float("exp", "exp", np.exp), _float("sqrt", "sqrt", np.sqrt), _float("log", "log", np.log),
    _float("expm1", "expm1", np.expm1, by_kind={"c": "complex_expm1({0})"}),
    _float("log1p", "log1p", np.log1p, by_kind={"c": "complex_log1p({0})"}),
    _float("log2", "log2", np.log2), _float("log10", "log10", np.log10),
    _float("sin", "sin", np.sin), _float("cos", "cos", np.cos), _float("tan", "tan", np.tan),
    _float("asin", "asin", np.arcsin, aliases=("arcsin",)),
    _float("acos", "acos", np.arccos, aliases=("arccos",)),
    _float("atan", "atan", np.arctan, aliases=("arctan",)),
    _float("sinh", "sinh", np.sinh), _float("cosh", "cosh", np.cosh), _float("tanh", "tanh", np.tanh),
    _float("asinh", "asinh", np.arcsinh, aliases=("arcsinh",)),
    _float("acosh", "acosh", np.arccosh, aliases=("arccosh",)),
    _float("atanh", "atanh", np.arctanh, aliases=("arctanh",)),
    _row("atan2", "atan2", 2, np.arctan2, "np.arctan2({0}, {1})",
         aliases=("arctan2",)),
    # rounding
    _whole("ceil", _rounding(np.ceil), "ceil"), _whole("floor", _rounding(np.floor), "floor"),
    _whole("trunc", _rounding(np.trunc), "trunc"),
    _row("round", "round", 1, _round, "np.rint({0})", **_COLLAPSES, rule=r.keep, kinds="iufc",
         by_kind={"i": "({0})", "u": "({0})"}),
    # parts of a number, and tests of one
    _row("real", "real", 1, _real, "({0})", **_COLLAPSES, rule=r.component, cast="none",
         by_kind={"c": "({0}.real)"}),
    _row("imag", "imag", 1, _imag, "0", **_COLLAPSES, rule=r.component, cast="none",
         by_kind={"c": "({0}.imag)"}),
    _row("conj", "conj", 1, np.conjugate, "({0})", kinds="iufc", by_kind={"c": "np.conj({0})"},
         aliases=("conjugate",)),
    _row("isfinite", "isfinite", 1, np.isfinite, "np.isfinite({0})", **_COLLAPSES, rule=r.truth, cast="none",
         by_kind=_TRUE),
    _row("isinf", "isinf", 1, np.isinf, "np.isinf({0})", **_COLLAPSES, rule=r.truth, cast="none",
         by_kind=_FALSE),
    _row("isnan", "isnan", 1, np.isnan, "np.isnan({0})", **_COLLAPSES, rule=r.truth, cast="none",
         by_kind=_FALSE),
    _row("signbit", "signbit", 1, np.signbit, "np.signbit({0})", **_COLLAPSES, cast="none"),
    # choice
    _row("where", "ifelse", 3, np.where, "({1} if {0} else {2})", **_COLLAPSES, rule=r.condition),
    _row("overwrite", "overwrite", 2, lambda a, b: np.broadcast_arrays(a, b)[1].astype(np.result_type(a, b)),
         "({1})", associative=True, idempotent=True, rule=r.chooser),
    _row("first", "first", 2, lambda a, b: np.broadcast_arrays(a, b)[0].astype(np.result_type(a, b)),
         "({0})", associative=True, idempotent=True, rule=r.chooser),
)
# fmt: on

_BY_NAME: Final[dict[str, Operator]] = {key: op for op in _TABLE for key in (op.name, *op.aliases)}
_BY_SYMBOL: Final[dict[tuple[str, int], Operator]] = {(op.symbol, op.arity): op for op in _TABLE}
_SYMBOLS: Final[dict[str, Operator]] = {op.symbol: op for op in reversed(_TABLE)}


def all_operators() -> tuple[Operator, ...]:
    """Every row of the table, in its order (not casts, choosers with a value, or user operators)."""
    return _TABLE


def get(name: str, arity: int | None = None) -> Operator:
    """Find an operator by its array API name, its NumPy name or its symbol.

    Parameters
    ----------
    name : str
        ``"add"``, ``"+"``, ``"arccos"``, ``"cast(float32)"`` …
    arity : int, optional
        Number of arguments, where one symbol has two meanings: ``get("-", 1)`` is `negative`.

    Raises
    ------
    PyFinchError
        If there is no such operator.

    Examples
    --------
    >>> get("+") is get("add"), get("-"), get("-", 1)
    (True, <operator subtract>, <operator negative>)
    """
    found = _BY_NAME.get(name)
    if found is None and arity is not None:
        found = _BY_SYMBOL.get((name, arity))
    found = found or _SYMBOLS.get(name)
    if found is None and name.startswith("cast(") and name.endswith(")"):
        return cast(name[5:-1])
    if found is None:
        raise PyFinchError(
            f"there is no operator {name!r}; pyfinch.algebra.operators.all_operators() lists them, "
            "and pyfinch.operator makes one of a scalar function"
        )
    return found


from pyfinch.algebra.carriers import cast, choose, initwrite, known_fill  # noqa: E402
from pyfinch.algebra.user_operator import UserOperator, operator  # noqa: E402
