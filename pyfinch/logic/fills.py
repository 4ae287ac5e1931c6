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

from pyfinch.algebra.carriers import ValueOperator, cast
from pyfinch.algebra.dtypes import DT
from pyfinch.algebra.fixed import fixed_result
from pyfinch.algebra.operator import Operator
from pyfinch.logic.nodes import Immediate, LogicNode, MapJoin

__all__ = ["apply_to_fills"]


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
    >>> import numpy as np
    >>> from pyfinch.algebra.operators import get
    >>> float64 = np.dtype("float64")
    >>> print(apply_to_fills(get("*"), [Immediate(0.0), None], [float64, float64]))
    immediate(0.0)
    >>> print(apply_to_fills(get("+"), [Immediate(0.0), None], [float64, float64]))
    None
    """
    return _applied(op, tuple(args), tuple(dtypes))


@lru_cache(maxsize=4096)
def _applied(op: Operator, args: tuple[LogicNode | None, ...], dtypes: tuple[DT, ...]) -> LogicNode | None:
    if isinstance(op, ValueOperator) and op.name == "known_fill":
        return Immediate(op.value)
    known = [arg.value if isinstance(arg, Immediate) else None for arg in args]
    found = fixed_result(op, known, dtypes)
    if found is not None:
        return Immediate(found)
    place = _choice(op, args, known, dtypes)
    if place is not None:
        return _converted(args[place], dtypes[place], op.result_dtype(*dtypes))
    whole = [arg for arg in args if arg is not None]
    return MapJoin(Immediate(op), tuple(whole)) if len(whole) == len(args) else None


def _choice(op: Operator, args: Sequence[LogicNode | None], known: Sequence[Any], dtypes: Sequence[DT]) -> int | None:
    """The place of the one argument that the result is, if the known ones decide that."""
    if op.name == "where" and len(args) == 3:
        if known[0] is not None:
            return 1 if known[0] else 2
        return 1 if args[1] is args[2] and args[1] is not None else None
    if op.arity == -1 or len(args) == 2:
        result = op.result_dtype(*dtypes)
        rest = [
            place
            for place, value in enumerate(known)
            if value is None or not op.is_identity(np.asarray(value, result)[()])
        ]
        if len(rest) == 1:
            return rest[0]
    if len(args) == 2 and known[1] is not None and op.is_right_identity(known[1]):
        return 0
    if op.idempotent and all(arg is args[0] for arg in args):
        return 0
    return None


def _converted(arg: LogicNode | None, dtype: DT, result: DT) -> LogicNode | None:
    return arg if arg is None or dtype == result else MapJoin(Immediate(cast(result)), (arg,))
