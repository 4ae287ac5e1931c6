"""What Finch.jl 1.2's default algebra knows of its operators, by symbol.

The default scheduler mirrors Finch.jl pass by pass, so it may use no law beyond these, and must use
those that are looser than ours (every infinity annihilates +).
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from pyfinch.algebra.operator import FinchLaws, Operator

__all__ = ["FINCH", "chooser_laws", "initwrite_laws", "is_value"]


def _is_bool(wanted: bool) -> Any:
    def test(value: Any) -> bool:
        scalar = np.asarray(value)
        return bool(scalar.dtype.kind == "b" and scalar == wanted)

    return test


def _is_zero(value: Any) -> bool:
    return bool(value == 0)


def _is_one(value: Any) -> bool:
    return bool(value == 1)


def _is_all_ones(value: Any) -> bool:
    scalar = np.asarray(value)
    return bool(scalar.dtype.kind in "biu" and scalar == ~np.zeros_like(scalar))


def _is_inf(value: Any) -> bool:
    return bool(np.isinf(value))


def _is_plus_inf(value: Any) -> bool:
    return bool(np.asarray(value).dtype.kind == "f" and value == np.inf)


def _is_minus_inf(value: Any) -> bool:
    return bool(np.asarray(value).dtype.kind == "f" and value == -np.inf)


def is_value(wanted: Any) -> Any:
    """A test for one value, by == or as nan."""

    def test(value: Any) -> bool:
        return bool(value == wanted) or bool(value != value and wanted != wanted)

    return test


def _over(*symbols: str) -> Any:
    def test(other: Operator) -> bool:
        return other.symbol in symbols

    return test


def _or_over(other: Operator) -> bool:
    value = getattr(other, "value", None)
    return other.name == "choose" and np.asarray(value).dtype.kind == "b" and not value


def _and_over(other: Operator) -> bool:
    value = getattr(other, "value", None)
    return other.symbol == "|" or (other.name == "choose" and np.asarray(value).dtype.kind == "b")


def chooser_laws(value: Any) -> FinchLaws:
    """Laws of ``choose(value)``: it keeps the first argument that is not `value`."""
    equal = is_value(value)
    symbols: tuple[str, ...] = ()
    if np.asarray(value).dtype.kind == "b":
        symbols = ("&", "|") if value else ("|",)
    return FinchLaws(
        associative=True,
        idempotent=True,
        is_identity=equal,
        is_annihilator=lambda x: not equal(x),
        distributes=_over(*symbols),
    )


def initwrite_laws(value: Any) -> FinchLaws:
    """Laws of ``initwrite(value)``: only its identity is known."""
    return FinchLaws(is_identity=is_value(value))


_FOLD: Final[dict[str, Any]] = {"associative": True, "commutative": True}
_LATTICE: Final[dict[str, Any]] = {**_FOLD, "idempotent": True}

FINCH: Final[dict[str, FinchLaws]] = {
    "+": FinchLaws(**_FOLD, is_identity=_is_zero, is_annihilator=_is_inf),
    "*": FinchLaws(**_FOLD, is_identity=_is_one, is_annihilator=_is_zero, distributes=_over("+")),
    "min": FinchLaws(**_LATTICE, is_identity=_is_plus_inf, is_annihilator=_is_minus_inf),
    "max": FinchLaws(**_LATTICE, is_identity=_is_minus_inf, is_annihilator=_is_plus_inf),
    "|": FinchLaws(**_LATTICE, is_identity=_is_zero, is_annihilator=_is_all_ones, distributes=_or_over),
    "&": FinchLaws(**_LATTICE, is_identity=_is_all_ones, is_annihilator=_is_zero, distributes=_and_over),
    "or": FinchLaws(**_FOLD, is_identity=_is_bool(False), is_annihilator=_is_bool(True)),
    "and": FinchLaws(**_FOLD, is_identity=_is_bool(True), is_annihilator=_is_bool(False)),
    "overwrite": FinchLaws(idempotent=True),
}
