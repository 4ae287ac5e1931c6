"""What is known of an operator: how to compute it, and which laws it obeys."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal

import numpy as np

from pyfinch.algebra.dtypes import DT, check_dtype
from pyfinch.algebra.errors import DTypeError

__all__ = ["NO_LAWS", "Cast", "FinchLaws", "Operator", "Rule"]

Cast = Literal["result", "common", "none"]
# From argument dtypes to the dtypes that the template wants and the dtype of the result.
Rule = Callable[[tuple[DT, ...]], tuple[tuple[DT, ...], DT]]
Predicate = Callable[[Any], bool]
Constant = Callable[[DT], Any]


def _never(value: Any) -> bool:
    return False


@dataclass(frozen=True, slots=True, eq=False)
class FinchLaws:
    """The laws of an operator that Finch.jl 1.2 knows; `schedule/default` uses no others.

    `distributes` holds the symbols of the operators that this one distributes over.
    """

    associative: bool = False
    commutative: bool = False
    idempotent: bool = False
    is_identity: Predicate = _never
    is_annihilator: Predicate = _never
    distributes: Callable[[Operator], bool] = _never

    def distributes_over(self, other: Operator) -> bool:
        """Whether f(a, g(b, c)) == g(f(a, b), f(a, c)) is known for g = `other`."""
        return self.distributes(other)


NO_LAWS: Final = FinchLaws()


@dataclass(frozen=True, slots=True, eq=False, repr=False, weakref_slot=True)
class Operator:
    """One operator: an interned singleton, compared by identity and pickled by name.

    Attributes
    ----------
    name : str
        The array API's name; `symbol` is the name in program text, which is Julia's.
    arity : int
        Number of arguments; -1 for an associative operator that folds one or more.
    numba : str
        Expression template over ``{0}``, ``{1}``, … for real arguments. It may use `np`, `math` and the
        functions of `algebra/scalar_functions.py`; arguments may be repeated, so substitute names or
        literals. Use `template` for the one that suits given dtypes.
    cast : {"result", "common", "none"}
        Roughly how arguments are cast before the template; `operand_dtypes` says it exactly.
    collapses : bool
        Whether it commonly maps stored values to the result's fill (comparisons, max, floor …), so that
        results are compared with the fill before they are stored.
    repeat : Operator, "idempotent" or None
        The law for folding one value n times: ``repeat(x, n)``, or x itself.
    """

    name: str
    symbol: str
    arity: int
    func: Callable[..., Any]
    numba: str
    rule: Rule
    cast: Cast = "result"
    kinds: str = "biufc"
    by_kind: Mapping[str, str] = field(default_factory=dict)
    associative: bool = False
    commutative: bool = False
    idempotent: bool = False
    collapses: bool = False
    identity_of: Constant | None = None
    right_identity_of: Constant | None = None
    annihilator_of: Constant | None = None
    annihilates: Predicate | None = None
    distributes: frozenset[str] = frozenset()
    repeat_name: str | None = None
    finch: FinchLaws = NO_LAWS
    aliases: tuple[str, ...] = ()
    _types: dict[tuple[DT, ...], tuple[tuple[DT, ...], DT]] = field(default_factory=dict)

    def __repr__(self) -> str:
        return f"<operator {self.name}>"

    def __str__(self) -> str:
        return self.symbol

    def __reduce__(self) -> tuple[Any, ...]:
        from pyfinch.algebra.operators import get

        return get, (self.name,)

    def __copy__(self) -> Operator:
        return self

    def __deepcopy__(self, memo: object) -> Operator:
        return self

    def __call__(self, *args: Any) -> Any:
        """Apply with NumPy's semantics to scalars and arrays; floating-point warnings are off.

        Raises
        ------
        DTypeError
            If the operator does not take the arguments' dtypes.
        TypeError
            If the number of arguments is wrong.
        """
        self.check_arity(len(args))
        dtypes = tuple(np.asarray(a).dtype for a in args)
        result = self.result_dtype(*dtypes)
        with np.errstate(all="ignore"):
            if len(args) == 1 and self.arity == -1:
                return np.asarray(args[0])[()]
            if len(args) > 2 and self.arity == -1:
                return functools.reduce(self, args)
            value = np.asarray(self.func(*args))
            if value.dtype == np.float16:
                # NumPy answers float16 for 8-bit integers and bools; the narrowest float here is float32.
                value = np.asarray(self.func(*(np.asarray(a, dtype=result) for a in args)))
        return value[()]

    def check_arity(self, count: int) -> None:
        """Raise TypeError unless the operator takes `count` arguments."""
        if count != self.arity and not (self.arity == -1 and count >= 1):
            wants = "one or more arguments" if self.arity == -1 else f"{self.arity} argument(s)"
            raise TypeError(f"{self.name} takes {wants}, got {count}")

    def result_dtype(self, *dtypes: Any) -> DT:
        """NumPy's result dtype for arguments of these dtypes (float32 where NumPy says float16).

        Raises
        ------
        DTypeError
            If the operator does not take them.
        """
        if self.arity == -1 and len(dtypes) != 2:
            self.check_arity(len(dtypes))
            result = check_dtype(dtypes[0])
            for dtype in dtypes[1:]:
                result = self._resolve((result, check_dtype(dtype)))[1]
            return result
        return self._resolve(tuple(check_dtype(d) for d in dtypes))[1]

    def operand_dtypes(self, *dtypes: Any) -> tuple[DT, ...]:
        """The dtypes that arguments are cast to before the template is applied.

        For a comparison of int64 with uint64 these are the given dtypes: both plain Python on NumPy
        scalars and Numba compare the two exactly, and no common dtype would. A variadic operator is
        emitted as a fold, so ask for two arguments at a time.
        """
        return self._resolve(tuple(check_dtype(d) for d in dtypes))[0]

    def template(self, *dtypes: Any) -> str:
        """The expression template for arguments of these dtypes (two of them for a variadic operator).

        Its value must be cast to `result_dtype` afterwards.
        """
        kind = self.operand_dtypes(*dtypes)[0].kind
        return self.by_kind.get(kind, self.numba)

    def identity(self, dtype: Any) -> Any:
        """The scalar e of `dtype` with op(e, x) == op(x, e) == x, or None."""
        return _constant(self.identity_of, dtype)

    def right_identity(self, dtype: Any) -> Any:
        """The scalar e of `dtype` with op(x, e) == x, or None."""
        return _constant(self.right_identity_of or self.identity_of, dtype)

    def annihilator(self, dtype: Any) -> Any:
        """The scalar z of `dtype` with op(z, x) == op(x, z) == z, or None.

        As everywhere in sparse computing the law is taken to hold for an x that is not finite too.
        """
        return _constant(self.annihilator_of, dtype)

    def is_identity(self, value: Any) -> bool:
        """Whether a scalar is the identity of its dtype, by value (-0.0 is 0.0)."""
        e = self.identity(np.asarray(value).dtype)
        return e is not None and (bool(e == value) or bool(e != e and value != value))

    def is_right_identity(self, value: Any) -> bool:
        """Whether op(x, value) == x."""
        e = self.right_identity(np.asarray(value).dtype)
        return e is not None and bool(e == value)

    def is_annihilator(self, value: Any) -> bool:
        """Whether a scalar is an annihilator, by value; an operator may have several (-inf and inf of +)."""
        if self.annihilates is not None:
            return self.annihilates(value)
        z = self.annihilator(np.asarray(value).dtype)
        return z is not None and bool(z == value)

    def distributes_over(self, other: Operator) -> bool:
        """Whether op(a, other(b, c)) == other(op(a, b), op(a, c)), and the same from the right.

        Floats: up to rounding and for finite values. Integers: while nothing overflows.
        """
        return other.name in self.distributes

    @property
    def repeat(self) -> Operator | Literal["idempotent"] | None:
        """The law for folding one value x n times: ``repeat(x, n)``, n having `count_dtype`."""
        if self.repeat_name is None:
            return "idempotent" if self.idempotent else None
        from pyfinch.algebra.operators import get

        return get(self.repeat_name)

    @staticmethod
    def count_dtype(dtype: Any) -> DT:
        """The dtype for the count of a repeat law on values of `dtype`, so that integers stay integers."""
        return np.dtype(np.uint64 if check_dtype(dtype).kind == "u" else np.int64)

    def _resolve(self, dtypes: tuple[DT, ...]) -> tuple[tuple[DT, ...], DT]:
        found = self._types.get(dtypes)
        if found is None:
            if self.arity != -1 or len(dtypes) != 2:
                self.check_arity(len(dtypes))
            names = ", ".join(d.name for d in dtypes)
            if any(d.kind not in self.kinds for d in dtypes):
                raise DTypeError(f"operator {self.name} does not take ({names}){self._hint(dtypes)}")
            try:
                found = self.rule(dtypes)
            except (TypeError, ValueError) as error:
                raise DTypeError(f"operator {self.name} does not take ({names}): {error}") from None
            self._types[dtypes] = found
        return found

    def _hint(self, dtypes: tuple[DT, ...]) -> str:
        if any(d.kind == "c" for d in dtypes) and "c" not in self.kinds:
            return ": it is defined for real dtypes only"
        if any(d.kind in "iu" for d in dtypes) and "i" not in self.kinds:
            return "; cast to a floating-point dtype first"
        if any(d.kind == "b" for d in dtypes) and "b" not in self.kinds:
            return "; cast the bool argument to an integer dtype first"
        return ""


def _constant(make: Constant | None, dtype: Any) -> Any:
    if make is None:
        return None
    wanted = check_dtype(dtype)
    value = make(wanted)
    return None if value is None else wanted.type(value)
