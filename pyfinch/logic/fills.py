"""Fill values as expressions, and what is known of an operation where some arguments are fixed.

A tensor's fill is often known only when a program runs, and the fill of a result is by definition the
program's expression over its inputs' fills. So a fill is a Logic expression over no fields: ``immediate``
of a number that is known, or ``deferred`` symbols and ``mapjoin`` over them. Equal expressions are one
object.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from pyfinch.algebra.dtypes import DT
from pyfinch.algebra.operator import Operator
from pyfinch.algebra.values import value_key
from pyfinch.logic.nodes import Immediate, LogicNode, MapJoin

__all__ = ["apply_to_fills", "fixed_result"]


def apply_to_fills(op: Operator, args: Sequence[LogicNode | None], dtypes: Sequence[DT]) -> LogicNode | None:
    """What an operator gives for fill expressions, and for arguments that may be anything (None).

    Parameters
    ----------
    op
        The operator.
    args
        Fill expressions; None for an unknown argument.
    dtypes
        The arguments' dtypes.

    Returns
    -------
    LogicNode or None
        An expression of the result, which is the same for every value of the unknown arguments; None if it
        is not.

    Examples
    --------
    >>> from pyfinch.algebra.operators import get
    >>> float64 = np.dtype("float64")
    >>> print(apply_to_fills(get("*"), [Immediate(0.0), None], [float64, float64]))
    immediate(0.0)
    >>> print(apply_to_fills(get("+"), [Immediate(0.0), None], [float64, float64]))
    None
    """
    known = [arg.value if isinstance(arg, Immediate) else None for arg in args]
    found = fixed_result(op, known, dtypes)
    if found is not None:
        return Immediate(found)
    if any(arg is None for arg in args):
        return _choice(op, args, known)
    whole = [arg for arg in args if arg is not None]
    return _choice(op, args, known) or MapJoin(Immediate(op), tuple(whole))


def _choice(op: Operator, args: Sequence[LogicNode | None], known: Sequence[Any]) -> LogicNode | None:
    """The one argument that the result is, if the known ones decide that."""
    if op.name == "where" and len(args) == 3:
        if known[0] is not None:
            return args[1] if known[0] else args[2]
        return args[1] if args[1] is args[2] else None
    if op.arity == -1 or len(args) == 2:
        rest = [
            arg for arg, value in zip(args, known, strict=True) if value is None or not op.is_identity(value)
        ]
        if len(rest) == 1:
            return rest[0]
    if len(args) == 2 and known[1] is not None and op.is_right_identity(known[1]):
        return args[0]
    if op.idempotent and all(arg is args[0] for arg in args):
        return args[0]
    return None


def fixed_result(op: Operator, known: Sequence[Any], dtypes: Sequence[DT]) -> Any:
    """The value that an operator gives whatever its unknown arguments are; None if they matter.

    ``known`` has a NumPy scalar for each argument that is fixed and None for the others. As everywhere in
    sparse computing, ``0 * x`` is 0 and ``0 / x`` is 0 even where x is an infinity, a nan, or a zero.

    Examples
    --------
    >>> from pyfinch.algebra.operators import get
    >>> float64 = np.dtype("float64")
    >>> fixed_result(get("/"), [np.float64(0), None], [float64, float64])
    np.float64(0.0)
    >>> fixed_result(get("max"), [np.float64(0), None], [float64, float64]) is None
    True
    """
    if all(value is not None for value in known):
        return op(*known)
    if all(value is None for value in known):
        return None
    result = op.result_dtype(*dtypes)
    for value in known:
        if value is not None and op.is_annihilator(value):
            return result.type(value)
    keys = tuple([None if value is None else (value_key(value), value.dtype) for value in known])
    return _probed(op, keys, tuple(dtypes))


@lru_cache(maxsize=4096)
def _probed(op: Operator, keys: tuple[Any, ...], dtypes: tuple[DT, ...]) -> Any:
    """Whether samples of the unknown arguments all give one value: that value.

    The samples are ordinary numbers of each size and sign, on which no operator of interest is constant by
    accident. A nan stands for an operation that is not defined there (0 / 0), and does not count.
    """
    if sum(key is None for key in keys) > 3:
        return None
    unknown = [_samples(dtype) for key, dtype in zip(keys, dtypes, strict=True) if key is None]
    axes = iter(np.meshgrid(*unknown, indexing="ij", copy=False))
    args = [next(axes) if key is None else np.frombuffer(key[0][1], dtype=key[1])[0] for key in keys]
    try:
        values = np.asarray(op(*args)).ravel()
    except (ArithmeticError, ValueError, TypeError):  # a user's function that does not take every sample
        return None
    if values.dtype.kind in "fc":
        defined = ~np.isnan(values)
        values = values[defined] if defined.any() else values[:1]
        if not defined.any():
            return values[0]
    first = values[0]
    return first if bool(np.all(values == first)) else None


def _samples(dtype: DT) -> np.ndarray[Any, Any]:
    match dtype.kind:
        case "b":
            return np.array([False, True])
        case "u":
            return np.array([0, 1, 2, 7, np.iinfo(dtype).max], dtype)
        case "i":
            return np.array([0, 1, 2, -1, -3, 7, np.iinfo(dtype).max, np.iinfo(dtype).min], dtype)
        case "c":
            return np.array([0, 1, -1.5, 2.5j, 3 - 4j, 1e9], dtype)
        case _:
            return np.array([0, 1, -1, 0.37, -2.6, 1e9, -1e9, 1e-9], dtype)
