"""Eager calls: operands become tensors, and a program that ran before runs again without building its Logic.

A call is known by its function and static arguments, its operands' ftypes, shapes and identities, the backend
and the scheduler. Shapes are part of that key, so whatever a function checks of them, or takes from them, holds
for a call that is found; programs do not depend on extents, so a new shape builds Logic again but compiles
nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from contextvars import ContextVar
from typing import Any

import numpy as np

from pyfinch.api.compute import in_order, prepare
from pyfinch.api.lazy import LazyTensor, table
from pyfinch.api.tensor import Tensor, as_array, dense_tensor, is_dense, number, wrapped
from pyfinch.backends.base import Bound, Executable, current
from pyfinch.formats.tensor import Tensor as StorageTensor
from pyfinch.interop.convert import to_tensor

__all__ = ["TRACING", "Builder", "Tracing", "as_lazy", "as_number", "as_operand", "run"]

Array = np.ndarray[Any, np.dtype[Any]]
Builder = Callable[..., LazyTensor]
Dense = Callable[..., Any]


class Tracing:
    """A function is being traced: what its operands are, and whether it used any other tensor."""

    __slots__ = ("foreign", "known")

    def __init__(self, known: dict[int, tuple[Any, Tensor]]) -> None:
        self.known = known  # by id, so that each object is one operand
        self.foreign = False

    def operand(self, x: Any) -> Tensor:
        """The operand that an object is."""
        found = self.known.get(id(x))
        if found is not None:
            return found[1]
        self.foreign = True
        tensor = wrapped(x if isinstance(x, StorageTensor) else to_tensor(x))
        self.known[id(x)] = x, tensor
        return tensor


TRACING: ContextVar[Tracing | None] = ContextVar("tracing", default=None)


def as_operand(x: Any) -> Tensor:
    """Anything array-like as a tensor; NumPy scalars and 0-d arrays too.

    Raises
    ------
    DTypeError, FormatError
        If it is no array of numbers.
    """
    tracing = TRACING.get()
    if tracing is not None:
        return tracing.operand(x)
    if type(x) is Tensor:
        return x
    if type(x) is np.ndarray:
        return dense_tensor(x)
    return wrapped(x if isinstance(x, StorageTensor) else to_tensor(x))


def as_lazy(x: Any) -> LazyTensor:
    """Anything array-like as a lazy tensor."""
    return x if isinstance(x, LazyTensor) else table(as_operand(x))


def as_number(x: StorageTensor) -> Tensor:
    """A 0-d tensor as one whose fill is its value, so that operations with it stay as sparse as with a number."""
    value: Any = as_array(x)[()] if x.buffers[-1] else np.bool_(True)
    return number(value)


class _Entry:
    """A call that ran before: what to run, on which operands, and what to make of the result."""

    __slots__ = ("constants", "executable", "names", "order", "short", "sources")

    def __init__(
        self,
        executable: Executable,
        names: tuple[str, ...],
        sources: tuple[int, ...],
        constants: tuple[Tensor, ...],
        order: tuple[int, ...],
    ) -> None:
        self.executable, self.names, self.order = executable, names, order
        self.sources, self.constants = sources, constants
        self.short: Bound | None = None

    def __call__(self, operands: Sequence[Tensor]) -> Tensor:
        given = (*operands, *self.constants) if self.constants else operands
        tensors = [given[source] for source in self.sources]
        result = None if self.short is None else self.short(tensors)
        return in_order(self.run(tensors) if result is None else result, self.order)

    def run(self, tensors: Sequence[StorageTensor]) -> StorageTensor:
        """Run the executable, which after that may have a short way."""
        (result,) = self.executable(dict(zip(self.names, tensors, strict=True)))
        if self.short is None:
            bound = getattr(self.executable, "bound", None)
            self.short = None if bound is None else bound(self.names)
        return result


_DENSE = object()
_calls: dict[tuple[Any, ...], Any] = {}
_MOST_CALLS = 8192


def run(static: Hashable, operands: Sequence[Tensor], build: Builder, dense: Dense | None = None) -> Tensor:
    """The result of a function on tensors.

    Parameters
    ----------
    static
        All that decides the program besides the operands: the function and its other arguments.
    operands
        The tensors.
    build
        Makes the lazy result of one lazy tensor an operand, checking shapes and dtypes.
    dense
        The same on NumPy arrays, for operands that are all dense.
    """
    key: tuple[Any, ...]
    if len(operands) == 2:
        a, b = operands
        key = (static, a.ftype, a.shape, b.ftype, b.shape, a is b, *current())
    elif len(operands) == 1:
        key = (static, operands[0].ftype, operands[0].shape, *current())
    else:
        seen: dict[int, int] = {}
        same = tuple([seen.setdefault(id(x), k) for k, x in enumerate(operands)])
        key = (static, *[x.ftype for x in operands], *[x.shape for x in operands], same, *current())
    entry = _calls.get(key)
    if entry is None:
        entry = _entry(operands, build, dense)
        if len(_calls) >= _MOST_CALLS:
            _calls.clear()
        _calls[key] = entry
    if entry is _DENSE:
        assert dense is not None
        return dense_tensor(np.asarray(dense(*[as_array(x) for x in operands])))
    result: Tensor = entry(operands)
    return result


def _entry(operands: Sequence[Tensor], build: Builder, dense: Dense | None) -> Any:
    lazies = [table(x) for x in operands]
    lazy = build(*lazies)  # also checks shapes and dtypes for NumPy
    if dense is not None and all(is_dense(x.ftype) or not x.ndim for x in operands):
        return _DENSE
    ready, deferred = prepare([lazy], promises=False)
    places = {f"t{id(x)}": k for k, x in reversed(list(enumerate(operands)))}
    constants: list[Tensor] = []
    for name in deferred:
        if name not in places:
            places[name] = len(operands) + len(constants)
            constants.append(wrapped(lazy.operands[name]))
    sources = tuple(places[name] for name in deferred)
    return _Entry(ready.executable, ready.names, sources, tuple(constants), lazy.order)
