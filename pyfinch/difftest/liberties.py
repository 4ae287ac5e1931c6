"""What an executor may do otherwise than dense NumPy does, and which elements of a result that can change.

Three liberties are taken on purpose: a float operation that is not exact may be rounded a little otherwise (a sum may
be ordered in any way), a zero may have either sign, and an annihilator decides whatever it meets (``0 * x`` is 0 for an
x that is an infinity or a nan, as it must be if what is stored nowhere is not to be computed).

A program is evaluated several times while each of its operations takes a liberty at random, which is stochastic
arithmetic (Vignes, "A stochastic arithmetic for reliable scientific computation", 1993) with two more kinds of noise.
Elements that never change have one right answer; those that do may be anything in between.
"""

from __future__ import annotations

from functools import reduce
from typing import Any, Final

import numpy as np

from pyfinch.algebra.carriers import CastOperator
from pyfinch.algebra.errors import PyFinchError
from pyfinch.algebra.fixed import fixed_result
from pyfinch.algebra.operator import Operator
from pyfinch.algebra.term import postorder
from pyfinch.difftest.case import Case
from pyfinch.logic.interpreter import evaluate
from pyfinch.logic.nodes import Aggregate, Immediate, Plan

__all__ = ["LIBERTIES", "explains"]

Array = np.ndarray[Any, np.dtype[Any]]

#: The names of the liberties, the smallest first; "all" of them together come last.
LIBERTIES: Final = ("rounding", "zero signs", "annihilators", "all")
# How often each operation takes its liberty: never and always first, then now and then.
_CHANCES: Final = (0.0, 1.0, 0.5, 0.5, 0.2, 0.8, 0.5, 0.5, 0.05, 0.95, 0.5, 0.5)
_ULPS: Final = 4
_SPREAD: Final = 4


def explains(case: Case, result: int, got: Array, liberty: str) -> bool:
    """Whether a liberty explains all that is not equal in a result.

    Parameters
    ----------
    case : Case
        The program and its tensors.
    result : int
        The number of the result.
    got : array
        What an executor gave, the outermost axis first.
    liberty : str
        One of `LIBERTIES`.

    Examples
    --------
    >>> from pyfinch.difftest import case_of
    >>> product = "mapjoin(immediate(*), table(deferred(T0, T0), field(i)), immediate(Inf))"
    >>> case = case_of(f"plan(query(alias(A), {product}), produces(alias(A)))", {"T0": np.array([0.0, 1.0])})
    >>> [explains(case, 0, np.array([0.0, np.inf]), liberty) for liberty in LIBERTIES]
    [False, False, True, True]
    >>> explains(case, 0, np.array([0.0, 1.0]), "all")
    False
    """
    samples = [_sample(case, liberty, chance, seed)[result].transpose() for seed, chance in enumerate(_CHANCES)]
    return bool(np.all(_within(got, np.stack(samples))))


def _within(got: Array, samples: Array) -> Array:
    """Where a result lies among samples, the first of which is exact."""
    exact = samples[0]
    if got.dtype.kind == "c":
        doubtful = ~np.isfinite(samples).all(axis=0) & _vary(samples)
        return doubtful | (_within(got.real, samples.real) & _within(got.imag, samples.imag))
    if got.dtype.kind != "f":
        return np.asarray((got == exact) | _vary(samples))
    with np.errstate(all="ignore"):
        spread = np.max(samples, axis=0, initial=-np.inf) - np.min(samples, axis=0, initial=np.inf)
        near = np.abs(got - exact) <= _SPREAD * spread
    same = (got == exact) | (np.isnan(got) & np.isnan(exact))
    return np.asarray(same | near | (_vary(samples) & ~np.isfinite(samples).all(axis=0)))


def _vary(samples: Array) -> Array:
    same = (samples == samples[0]) | ((samples != samples) & (samples[0] != samples[0]))
    return np.asarray(~same.all(axis=0))


def _sample(case: Case, liberty: str, chance: float, seed: int) -> tuple[Array, ...]:
    rng = np.random.default_rng(seed)
    done: dict[Any, Any] = {}
    for term in postorder(case.program):
        match term:
            case Immediate(Operator() as op) if chance:
                done[term] = Immediate(_Free(op, liberty, chance, rng))
            case Aggregate(op, init, arg, idxs) if liberty in ("rounding", "all") and seed % 2:
                # Along one axis all go forwards; which axis goes first is free.
                done[term] = Aggregate(done[op], done[init], done[arg], idxs[::-1])
            case _:
                done[term] = term.with_children([done[child] for child in term.children])
    program: Plan = done[case.program]
    with np.errstate(all="ignore"):
        return tuple(np.asarray(array) for array in evaluate(program, case.tensors))


class _Free:
    """An operator that takes liberties."""

    def __init__(self, op: Operator, liberty: str, chance: float, rng: np.random.Generator) -> None:
        self.op, self.chance, self.rng = op, chance, rng
        self.taken = [one for one in LIBERTIES if liberty in (one, "all")]

    def __call__(self, *args: Any) -> Any:
        if self.op.arity == -1 and len(args) > 2:
            return reduce(self, args)
        strict = np.asarray(self.op(*args))
        result = strict.copy()
        if "annihilators" in self.taken:
            self._annihilate(result, [np.asarray(arg) for arg in args])
        if "rounding" in self.taken:
            self._round(result, [np.asarray(arg) for arg in args])
        if "zero signs" in self.taken:
            for part in _parts(result):
                part[...] = np.where(self._now(part) & (part == 0), -part, part)
        return result[()]

    def _now(self, array: Array) -> Array:
        """Where the liberty is taken this time."""
        return np.asarray(self.rng.random(array.shape) < self.chance)

    def _annihilate(self, result: Array, args: list[Array]) -> None:
        if len(args) < 2:
            return
        dtypes = [arg.dtype for arg in args]
        free = np.ones(result.shape, np.bool_)
        for place in self.rng.permutation(len(args)):
            arg = args[place]
            for value in np.unique(arg):
                known = [value if k == place else None for k in range(len(args))]
                try:
                    fixed = fixed_result(self.op, known, dtypes)
                except PyFinchError:
                    continue
                if fixed is not None:
                    with np.errstate(all="ignore"):
                        here = free & ((arg == value) | ((value != value) & (arg != arg)))
                        here &= (result != fixed) & ((result == result) | (fixed == fixed)) & self._now(result)
                    result[here] = fixed
                    free &= ~here

    def _round(self, result: Array, args: list[Array]) -> None:
        if result.dtype.kind not in "fc" or isinstance(self.op, CastOperator) or result.size == 0:
            return
        wide = [_wide(arg, result.dtype) for arg in args]
        try:
            with np.errstate(all="ignore"):
                whole = np.asarray(self.op.func(*wide))
        except TypeError:
            return
        exact = np.broadcast_to(whole == result, result.shape)
        step = np.spacing(np.abs(result))  # of a complex number: its parts may cancel
        for part in _parts(result):
            noise = self.rng.integers(-_ULPS, _ULPS, part.shape, endpoint=True) * step
            part[...] = np.where(self._now(part) & ~exact & np.isfinite(part), part + noise.astype(part.dtype), part)


def _parts(array: Array) -> tuple[Array, ...]:
    """The parts of numbers that are rounded each on its own; views."""
    match array.dtype.kind:
        case "c":
            return array.real, array.imag
        case "f":
            return (array,)
    return ()


def _wide(array: Array, dtype: np.dtype[Any]) -> Array:
    """Numbers with more digits than a dtype has."""
    if array.dtype.kind == "b":
        return array
    if array.dtype.kind == "c":
        return array.astype(np.clongdouble)
    return array.astype(np.float64 if dtype.itemsize == 4 else np.longdouble)
