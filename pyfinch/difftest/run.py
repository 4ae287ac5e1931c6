"""Runs a case on pairs of a scheduler and an executor, and compares what comes out."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from pyfinch.algebra.errors import PyFinchError
from pyfinch.backends.base import get_backend, get_scheduler
from pyfinch.backends.comparison import same
from pyfinch.difftest.case import Case
from pyfinch.difftest.orders import differing_passes
from pyfinch.formats.levels import Dense
from pyfinch.formats.statistics import statistics
from pyfinch.formats.tensor import Tensor
from pyfinch.logic.interpreter import evaluate

__all__ = ["Mismatch", "Outcome", "Pair", "compare_passes", "pair", "pairs", "run", "wanted"]

Pair = tuple[str, str]
Array = np.ndarray[Any, np.dtype[Any]]


@dataclass(frozen=True)
class Mismatch:
    """One pair's disagreement.

    ``kind`` is "error", "count", "dtype", "shape", "value", "fill", "structure" or "pass"; ``got`` is the array of a
    "value".
    """

    pair: Pair
    kind: str
    text: str
    result: int = 0
    got: Any = field(default=None, compare=False, repr=False)


@dataclass
class Outcome:
    """What running a case showed."""

    case: Case
    mismatches: list[Mismatch] = field(default_factory=list)
    known: list[tuple[Mismatch, str]] = field(default_factory=list)

    @property
    def agrees(self) -> bool:
        """Whether nothing disagrees that is not known."""
        return not self.mismatches


def pair(text: str) -> Pair:
    """A scheduler and an executor: ``"unfused:numba"``; ``"numba"`` for the default scheduler, ``"compute"`` for
    Finch.jl's own compute.

    Examples
    --------
    >>> pair("unfused:numba"), pair("reference")
    (('unfused', 'numba'), ('default', 'reference'))
    """
    scheduler, _, executor = text.rpartition(":")
    if executor == "compute":
        scheduler = "finchjl"
    elif executor:
        get_backend(executor)
    else:
        raise PyFinchError(f"{text!r} names no executor; write scheduler:executor, such as unfused:numba")
    if scheduler == "finchjl":
        get_backend("finchjl")
    return get_scheduler(scheduler or "default")[0], executor


def pairs(text: str) -> list[Pair]:
    """Several pairs, with commas between them."""
    return [pair(part.strip()) for part in text.split(",") if part.strip()]


def wanted(case: Case) -> tuple[Array, ...]:
    """What dense NumPy gives for a case; axes in the order of storage, outermost first."""
    with np.errstate(all="ignore"):
        arrays = evaluate(case.program, case.tensors)
    return tuple(np.asarray(array).transpose() for array in arrays)


def execute(case: Case, of: Pair) -> tuple[Tensor, ...]:
    """The results of one pair."""
    scheduler, executor = of
    if executor == "compute":
        from pyfinch.backends.finchjl import compute

        return compute(case.program, case.tensors)
    sizes = {name: statistics(tensor) for name, tensor in case.tensors.items()}
    scheduled = get_scheduler(scheduler)[1](case.program, sizes)
    return get_backend(executor).compile(scheduled)(case.tensors)


def run(case: Case, of: Iterable[Pair]) -> Outcome:
    """Run a case on pairs and compare each with dense NumPy.

    Values must be the same (`pyfinch.backends.comparison.same`), dtypes and shapes equal. Results must be valid;
    pairs of one scheduler must agree on fill values. An exception is an outcome too.
    """
    from pyfinch.difftest.differences import known

    outcome = Outcome(case)
    right = wanted(case)
    fills: dict[str, list[tuple[Pair, tuple[Tensor, ...]]]] = {}
    found: list[Mismatch] = []
    for one in of:
        try:
            with np.errstate(all="ignore"):
                results = execute(case, one)
        except Exception as error:
            found.append(Mismatch(one, "error", f"{type(error).__name__}: {error}"))
            continue
        found += compare(one, results, right)
        if one[1] != "compute":
            fills.setdefault(one[0], []).append((one, results))
    for of_one_scheduler in fills.values():
        found += _compare_fills(of_one_scheduler)
    for mismatch in found:
        reason = known(case, mismatch)
        if reason is None:
            outcome.mismatches.append(mismatch)
        else:
            outcome.known.append((mismatch, reason))
    return outcome


def compare(of: Pair, results: Sequence[Tensor], right: Sequence[Array]) -> list[Mismatch]:
    """How results differ from arrays; empty if they do not."""
    if len(results) != len(right):
        return [Mismatch(of, "count", f"{len(results)} results, {len(right)} were asked for")]
    found = []
    for k, (result, array) in enumerate(zip(results, right, strict=True)):
        try:
            result.validate()
        except PyFinchError as error:
            found.append(Mismatch(of, "structure", str(error), k))
            continue
        # A result's modes are in storage order, whatever its type's mode order.
        if result.dtype != array.dtype:
            found.append(Mismatch(of, "dtype", f"{result.dtype}, not {array.dtype}", k))
        elif result.shape != array.shape:
            found.append(Mismatch(of, "shape", f"{result.shape}, not {array.shape}", k))
        elif not same(np.asarray(result.todense()), array):
            dense = np.asarray(result.todense())
            found.append(Mismatch(of, "value", f"{dense!r}\nnot {array!r}", k, dense))
    return found


def _compare_fills(same_scheduler: list[tuple[Pair, tuple[Tensor, ...]]]) -> list[Mismatch]:
    """The fills of sparse results; that of a result that stores everything says nothing."""
    (first, tensors), *rest = same_scheduler
    found = []
    for other, others in rest:
        for k, (a, b) in enumerate(zip(tensors, others, strict=True)):
            stores_all = all(isinstance(level, Dense) for level in a.ftype.levels[:-1])
            if not stores_all and not same(np.asarray(a.fill_value), np.asarray(b.fill_value)):
                found.append(Mismatch(other, "fill", f"{b.fill_value!r}; {':'.join(first)} has {a.fill_value!r}", k))
    return found


def compare_passes(case: Case) -> list[Mismatch]:
    """Where one of our passes, run on what Finch.jl gave to its own, gives another program.

    Where the order of loops is free, Finch.jl's choice is followed; see `pyfinch.difftest.orders`.
    """
    from pyfinch.backends.finchjl import passes
    from pyfinch.backends.finchjl.logic import converted

    of = ("default", "passes")
    program = converted(case.program)  # Finch.jl's operators do not take what NumPy's take
    try:
        theirs = passes(program)
    except PyFinchError as error:
        return [Mismatch(of, "error", f"{type(error).__name__}: {error}")]
    return [Mismatch(of, "pass", text) for text in differing_passes(program, theirs)]
