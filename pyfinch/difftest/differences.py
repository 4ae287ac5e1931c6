"""The intended differences: where an executor gives something else on purpose, why, and a case that shows it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from pyfinch.backends.comparison import differing
from pyfinch.difftest.case import Case, case_of, store
from pyfinch.difftest.liberties import explains
from pyfinch.formats.format import format
from pyfinch.formats.tensor import Tensor

if TYPE_CHECKING:
    from pyfinch.difftest.run import Mismatch

__all__ = ["DIFFERENCES", "Difference", "known"]


@dataclass(frozen=True)
class Difference:
    """One intended difference.

    Attributes
    ----------
    name, reason : str
        What it is called, and why it is so.
    applies : callable
        Whether it explains a mismatch of a case.
    example : callable
        A case that shows it: its mismatches with dense NumPy are explained by this difference and none before it.
    julia : str
        A script for Finch.jl alone that shows it there too, or "".
    pair : (str, str)
        A scheduler and an executor that show it.
    """

    name: str
    reason: str
    applies: Callable[[Case, Mismatch], bool]
    example: Callable[[], Case]
    julia: str = ""
    pair: tuple[str, str] = ("default", "numba")


def _refused(words: str) -> Callable[[Case, Mismatch], bool]:
    """Finch.jl's optimizer throws with these words."""

    def applies(case: Case, mismatch: Mismatch) -> bool:
        asked = mismatch.pair[0] == "finchjl" or mismatch.pair[1] == "passes"
        return asked and mismatch.kind == "error" and words in mismatch.text

    return applies


def _nan_of_an_empty_run(case: Case, mismatch: Mismatch) -> bool:
    """Finch.jl's kernels give a nan, and nothing else that differs, where a fill is infinite."""
    from pyfinch.difftest.run import wanted

    if mismatch.kind != "value" or mismatch.pair[1] not in ("finchjl", "compute"):
        return False
    if not any(np.isinf(tensor.fill_value) for tensor in case.tensors.values()):
        return False
    right = wanted(case)[mismatch.result]
    places = differing(np.asarray(mismatch.got), right)
    return bool(np.isnan(mismatch.got[places]).all())


def _by(liberty: str) -> Callable[[Case, Mismatch], bool]:
    def applies(case: Case, mismatch: Mismatch) -> bool:
        return mismatch.kind == "value" and explains(case, mismatch.result, mismatch.got, liberty)

    return applies


def _sparse(values: list[float]) -> Tensor:
    return store(np.array(values), format("sparse_vector"), 0.0, keep_unlike=0.0)


def _case(expression: str, **tensors: np.ndarray | Tensor) -> Case:
    return case_of(f"plan(query(alias(A), {expression}), produces(alias(A)))", tensors)


_PRODUCT: Final = "mapjoin(immediate(*), table(deferred(T, T), field(i)), table(deferred(D, D), field(i)))"


# 1 or 2, whichever way it is added up.
_TOTAL: Final = "aggregate(immediate(+), immediate(0.0), table(deferred(L, L), field(k), field(l)), field(k), field(l))"
_LARGE_AND_SMALL: Final = np.array([[1e16, 1.0], [-1e16, 1.0]])


def _sum_of_large_and_small() -> Case:
    return _case(_TOTAL, L=_LARGE_AND_SMALL)


def _sign_of_what_is_not_stored() -> Case:
    return _case(f"mapjoin(immediate(signbit), {_PRODUCT})", T=_sparse([0.0, 1.0]), D=np.array([-1.0, -1.0]))


def _zero_times_infinity() -> Case:
    return _case(_PRODUCT, T=_sparse([0.0, 1.0]), D=np.array([np.inf, 2.0]))


def _infinity_times_zero_and_a_sum() -> Case:
    product = f"mapjoin(immediate(*), {_PRODUCT}, {_TOTAL})"
    return _case(product, T=_sparse([0.0, 1.0]), D=np.array([np.inf, 2.0]), L=_LARGE_AND_SMALL)


def _sum_over_an_infinite_fill() -> Case:
    stored = store(np.array([-1.25]), format("sparse_vector"), np.inf, keep_unlike=np.inf)
    return _case("aggregate(immediate(+), immediate(0.0), table(deferred(T, T), field(i)), field(i))", T=stored)


def _numbers_alone() -> Case:
    return _case("mapjoin(immediate(+), immediate(1.0), immediate(2.0))")


def _new_mode_of_a_reduction() -> Case:
    read = "relabel(subquery(alias(X), table(deferred(T, T), field(a), field(b))), {}, {})"
    factors = f"{read.format('field(k)', 'field(i)')}, {read.format('field(j)', 'field(k)')}"
    total = f"aggregate(immediate(+), immediate(0.0), mapjoin(immediate(*), {factors}), field(k))"
    return _case(f"reorder({total}, field(n), field(j), field(i))", T=np.ones((2, 2)))


DIFFERENCES: Final = (
    Difference(
        "rounding",
        "sums are in the order of the loops, and elementary functions are not NumPy's",
        _by("rounding"),
        _sum_of_large_and_small,
    ),
    Difference(
        "zero signs",
        "what is not stored is 0.0, also where NumPy would compute -0.0",
        _by("zero signs"),
        _sign_of_what_is_not_stored,
    ),
    Difference(
        "annihilators",
        "0 * x is 0 even for an x that is an infinity or a nan, as it must be if what is not stored is not computed",
        _by("annihilators"),
        _zero_times_infinity,
        "using Finch\n"
        "A = Tensor(SparseList(Element(0.0)), [0.0, 1.0])\n"
        "B = Tensor(Dense(Element(0.0)), [Inf, 2.0])\n"
        "println(Array(compute(lazy(A) .* lazy(B))))  # [0.0, 2.0]\n"
        "println(Array(A) .* Array(B))  # [NaN, 2.0]\n",
    ),
    Difference("several", "more than one of the above", _by("all"), _infinity_times_zero_and_a_sum),
    Difference(
        "numbers alone",
        "Finch.jl's set_loop_order throws at a query over numbers only; pyfinch's gives it no loops",
        _refused("reducing over an empty collection"),
        _numbers_alone,
        "using Finch, Finch.FinchLogic\n"
        "sum = mapjoin(immediate(+), immediate(1.0), immediate(2.0))\n"
        "Finch.optimize(plan(query(alias(:A), sum), produces(alias(:A))))  # ArgumentError: reducing over an empty …\n",
        ("finchjl", "finchjl"),
    ),
    Difference(
        "sums over infinite fills",
        "Finch.jl adds the fill times the length of each run that is not stored, inf * 0 for an empty one",
        _nan_of_an_empty_run,
        _sum_over_an_infinite_fill,
        "using Finch\nx = Tensor(SparseList(Element(Inf)), [-1.25])\nprintln(compute(sum(lazy(x)))[])  # NaN\n",
        ("default", "finchjl"),
    ),
    Difference(
        "new modes of a reduction",
        "Finch.jl's push_fields throws where a reduction is given a mode of size 1 in one query; pyfinch's keeps it",
        _refused("RuleRewriteError(reorder(aggregate"),
        _new_mode_of_a_reduction,
        "using Finch, Finch.FinchLogic\n"
        "T = Tensor(Dense(Dense(Element(0.0))), ones(2, 2))\n"
        "X = subquery(alias(:X), table(immediate(T), field(:a), field(:b)))\n"
        "left, right = relabel(X, field(:k), field(:i)), relabel(X, field(:j), field(:k))\n"
        "product = aggregate(immediate(+), immediate(0.0), mapjoin(immediate(*), left, right), field(:k))\n"
        "expanded = reorder(product, field(:n), field(:j), field(:i))\n"
        "Finch.optimize(plan(query(alias(:R), expanded), produces(alias(:R))))  # RuleRewriteError\n",
        ("finchjl", "finchjl"),
    ),
)


def known(case: Case, mismatch: Mismatch) -> str | None:
    """The name of the difference that explains a mismatch; None if there is none."""
    return next((one.name for one in DIFFERENCES if one.applies(case, mismatch)), None)
