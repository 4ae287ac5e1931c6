"""`einsum`, in NumPy's notation."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from pyfinch.algebra.errors import ParseError, ShapeError
from pyfinch.api.eager import as_operand, run
from pyfinch.api.lazy import LazyTensor, table
from pyfinch.api.products import index_sizes, lazy_diagonal, sum_of_products
from pyfinch.api.structure import diagonal
from pyfinch.api.tensor import as_array, dense_tensor, is_dense

__all__ = ["einsum"]

Names = tuple[str, ...]
_LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"


def einsum(subscripts: Any, /, *operands: Any) -> Any:
    """A sum of products, written with named indices as in ``numpy.einsum``; computed in one fused program.

    Parameters
    ----------
    subscripts : str
        Such as ``"ik,kj->ij"``: the indices of each operand, then those of the result. An index may repeat in
        one operand (its diagonal), ``...`` stands for modes that broadcast, and without ``->`` the result has
        the indices that appear once, in alphabetical order.
    *operands : tensor or array
        As many as the subscripts name. Lists of ints after each operand, as NumPy takes them, work too.

    Returns
    -------
    Tensor, or LazyTensor if an operand is lazy

    Raises
    ------
    ParseError
        If the subscripts do not follow the notation, or the result has an index that no operand has.
    ShapeError
        If an operand has another number of modes, or an index has two sizes; it names the index.

    Examples
    --------
    >>> import pyfinch as pf
    >>> A = pf.asarray([[1, 0], [0, 2]], format="csr")
    >>> int(pf.einsum("ij,ij->", A, A))
    5
    """
    if not isinstance(subscripts, str):
        subscripts, operands = _from_lists((subscripts, *operands))
    inputs, output = _parsed(subscripts)
    if len(inputs) != len(operands):
        raise ParseError(f"einsum {subscripts!r} names {len(inputs)} operands, got {len(operands)}")
    taken: list[Any] = [x if isinstance(x, LazyTensor) else as_operand(x) for x in operands]
    modes, out = _placed(subscripts, inputs, output, tuple(x.ndim for x in taken))
    what = f"einsum {subscripts!r}"
    sizes = index_sizes(what, [x.shape for x in taken], modes)
    if not any(isinstance(x, LazyTensor) for x in taken) and all(is_dense(x.ftype) for x in taken):
        # Contracts pairwise; a single operand may give a view.
        arrays = [as_array(x) for x in taken]
        return dense_tensor(np.asarray(np.einsum(subscripts, *arrays, optimize=len(arrays) > 2)))
    for k, (x, names) in enumerate(zip(taken, modes, strict=True)):
        taken[k], modes[k] = _without_repeats(what, x, names)

    def build(*lazies: LazyTensor) -> LazyTensor:
        return sum_of_products(list(zip(lazies, modes, strict=True)), out, sizes)

    if any(isinstance(x, LazyTensor) for x in taken):
        return build(*[x if isinstance(x, LazyTensor) else table(x) for x in taken])
    return run(("einsum", subscripts), taken, build)


def _without_repeats(what: str, x: Any, names: Names) -> tuple[Any, Names]:
    """An operand whose modes have different names: diagonals are taken of those that do not."""
    while len(set(names)) != len(names):
        second = next(k for k, name in enumerate(names) if name in names[:k])
        first = names.index(names[second])
        if x.shape[first] != x.shape[second]:
            raise ShapeError(
                f"{what}: index {names[second]!r} has sizes {x.shape[first]} and {x.shape[second]} "
                f"in one operand of shape {x.shape}"
            )
        x = lazy_diagonal(x, first, second) if isinstance(x, LazyTensor) else diagonal(x, first, second)
        names = (*names[:second], *names[second + 1 :])
    return x, names


def _from_lists(args: tuple[Any, ...]) -> tuple[str, tuple[Any, ...]]:
    """NumPy's other notation: operands and lists of ints in turn, then the result's list."""
    operands, lists = args[0 : len(args) // 2 * 2 : 2], args[1::2]
    result = args[-1] if len(args) % 2 else None

    def text(places: Any) -> str:
        try:
            return "".join("..." if p is Ellipsis else _LETTERS[p] for p in places)
        except (TypeError, IndexError):
            raise ParseError(f"einsum: {places!r} is no list of ints below {len(_LETTERS)}") from None

    subscripts = ",".join(text(places) for places in lists)
    return subscripts if result is None else f"{subscripts}->{text(result)}", operands


@lru_cache(maxsize=1024)
def _parsed(subscripts: str) -> tuple[tuple[Names, ...], Names | None]:
    """The names of each operand's indices and of the result's; "..." is a name here."""
    text = subscripts.replace(" ", "")
    left, arrow, right = text.partition("->")
    inputs = tuple(_names(subscripts, part) for part in left.split(","))
    output = _names(subscripts, right) if arrow else None
    if output is not None:
        known = {name for names in inputs for name in names}
        for name in output:
            if name not in known and name != "...":
                raise ParseError(f"einsum {subscripts!r}: index {name!r} of the result is in no operand")
            if output.count(name) > 1:
                raise ParseError(f"einsum {subscripts!r}: index {name!r} is twice in the result")
    return inputs, output


def _names(subscripts: str, part: str) -> Names:
    before, dots, after = part.partition("...")
    names = (*before, *(["..."] if dots else []), *after)
    for name in names:
        if name != "..." and name not in _LETTERS:
            raise ParseError(
                f"einsum {subscripts!r}: {name!r} is no index; indices are letters, operands are separated by "
                "commas, the result comes after ->, and ... is there once an operand"
            )
    return names


def _placed(
    subscripts: str, inputs: Sequence[Names], output: Names | None, ndims: tuple[int, ...]
) -> tuple[list[Names], Names]:
    """Names of all modes: those that an ellipsis stands for are numbered from the last one."""
    modes: list[Names] = []
    most = 0
    for k, (names, ndim) in enumerate(zip(inputs, ndims, strict=True)):
        extra = ndim - len(names) + ("..." in names)
        if extra < 0 or (extra and "..." not in names):
            raise ShapeError(
                f"einsum {subscripts!r}: operand {k} has {ndim} modes, but {''.join(names)!r} names {len(names)}"
            )
        if "..." in names:
            most = max(most, extra)
        modes.append(_spread(names, extra))
    if output is not None:
        if most and "..." not in output:
            raise ParseError(f"einsum {subscripts!r}: the result must have ..., as an operand has")
        return modes, _spread(output, most)
    flat = [name for names in inputs for name in names]
    once = sorted(name for name in set(flat) if name != "..." and flat.count(name) == 1)
    return modes, _spread(("...", *once), most)


def _spread(names: Names, extra: int) -> Names:
    dots = [f"...{k}" for k in range(-extra, 0)]
    return tuple(full for name in names for full in (dots if name == "..." else [name]))
