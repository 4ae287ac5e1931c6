"""`fuse`: a function of tensors, traced into one program."""

from __future__ import annotations

import dis
import functools
import types
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

import numpy as np

from pyfinch.algebra.errors import DTypeError, PyFinchError
from pyfinch.api.compute import Ready, prepare
from pyfinch.api.creation import leaves, rebuilt
from pyfinch.api.eager import TRACING, Tracing, as_number, as_operand
from pyfinch.api.lazy import LazyTensor, NeedsValueError, table
from pyfinch.api.tensor import Tensor, number, wrapped
from pyfinch.backends.base import BrokenPromise, current
from pyfinch.formats.tensor import Tensor as StorageTensor

__all__ = ["fuse"]

_F = TypeVar("_F", bound=Callable[..., Any])
_NUMBERS = {bool: np.bool_, int: np.int64, float: np.float64, complex: np.complex128}
_MOST_TRACES = 1024


def fuse(func: _F | None = None, /, *, backend: str | None = None, scheduler: str | None = None) -> Any:
    """Make one fused program of a function of tensors, traced once for each kind of arguments.

    Tensors and arrays among the arguments, and those that the function finds in its closure or among its
    globals, are operands of the program. Numbers among the arguments are run-time values: another number runs
    the same program. Everything else (strings, axes, flags, shapes) is static: another value is another trace.
    Lists, tuples and dicts of tensors are looked into.

    Parameters
    ----------
    func : callable
        It is called with lazy tensors, must not ask for their values, and returns lazy tensors, or a tuple,
        list or dict of them.
    backend, scheduler : str, optional
        As for `pyfinch.compute`.

    Returns
    -------
    callable
        Takes what ``func`` takes and returns computed tensors. Called with a lazy argument, it just calls
        ``func``.

    Raises
    ------
    PyFinchError
        If a static argument is not hashable.

    Examples
    --------
    >>> import pyfinch as pf
    >>> @pf.fuse
    ... def scaled(S, x, alpha):
    ...     return alpha * (S @ x)
    >>> scaled(pf.eye(2), pf.asarray([1.0, 2.0]), 3.0).todense()
    array([3., 6.])
    """
    if func is None:
        return lambda f: fuse(f, backend=backend, scheduler=scheduler)
    fused = _Fused(func, backend, scheduler)

    @functools.wraps(func)
    def call(*args: Any, **keywords: Any) -> Any:
        return fused(args, keywords)

    return call


class _Trace:
    """A traced call: its program, where each operand comes from, and the shape of what it returns."""

    __slots__ = ("constants", "general", "ready", "returned", "sources")

    def __init__(
        self,
        ready: Ready | None,
        sources: tuple[int, ...],
        constants: tuple[Tensor, ...],
        returned: Any,
        general: Callable[[], Ready] | None,
    ) -> None:
        self.ready, self.sources, self.constants, self.returned = ready, sources, constants, returned
        self.general = general  # makes the program that takes any numbers

    def __call__(self, operands: Sequence[Tensor]) -> Any:
        if self.ready is None:
            return rebuilt(self.returned, iter(()))
        given = (*operands, *self.constants)
        chosen = [given[source] for source in self.sources]
        try:
            results = self.ready(chosen)
        except BrokenPromise:
            assert self.general is not None
            self.ready = self.general()
            results = self.ready(chosen)
        return rebuilt(self.returned, iter(results))


class _Fused:
    """A function and its traces."""

    def __init__(self, func: Callable[..., Any], backend: str | None, scheduler: str | None) -> None:
        self.func, self.backend, self.scheduler = func, backend, scheduler
        self.references: list[Callable[[], Any]] | None = None
        self.traces: dict[tuple[Any, ...], _Trace] = {}
        # Ints are run-time values until the function needs one as an int (an axis).
        self.ints_are_static = False

    def __call__(self, args: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
        if any(_has_lazy(value) for value in (*args, *keywords.values())):
            return self.func(*args, **keywords)
        try:
            return self.run(args, keywords)
        except NeedsValueError:
            if self.ints_are_static or not any(type(x) is int for x in (*args, *keywords.values())):
                raise
            self.ints_are_static = True
            return self.run(args, keywords)

    def run(self, args: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
        """Run a trace, which may have to be made first."""
        call = _Call(self.ints_are_static)
        for value in args:
            call.add(value)
        for name, value in keywords.items():
            call.parts.append(name)
            call.add(value)
        call.arguments = len(call.operands)
        if self.references is None:
            self.references = list(_references(self.func, set()))
        for read in self.references:
            call.capture(read())
        key = (*call.parts, call.same(), self.backend, self.scheduler, *current())
        trace = self.traces.get(key)
        if trace is None:
            trace, reusable = self.trace(call, args, keywords)
            if reusable:
                if len(self.traces) >= _MOST_TRACES:
                    self.traces.clear()
                self.traces[key] = trace
        return trace(call.operands)

    def trace(self, call: _Call, args: tuple[Any, ...], keywords: dict[str, Any]) -> tuple[_Trace, bool]:
        """Call the function on lazy tensors; also whether the trace holds for other calls of this key."""
        lazies = call.lazies()
        positional = [call.replaced(value, lazies) for value in args]
        named = {name: call.replaced(value, lazies) for name, value in keywords.items()}
        tracing = Tracing(call.captured)
        token = TRACING.set(tracing)
        try:
            returned = self.func(*positional, **named)
        finally:
            TRACING.reset(token)
        results = leaves(returned)
        if not results:
            return _Trace(None, (), (), returned, None), False
        together: dict[str, StorageTensor] = {}
        for x in results:
            together.update(x.operands)
        ready, deferred = prepare(results, self.backend, self.scheduler)
        places = {f"t{id(x)}": k for k, x in reversed(list(enumerate(call.operands)))}
        constants: list[Tensor] = []
        for name in deferred:
            if name not in places:
                places[name] = len(call.operands) + len(constants)
                constants.append(wrapped(together[name]))
        sources = tuple(places[name] for name in deferred)
        # Constants that pyfinch made follow from the key; a tensor from elsewhere (an object's attribute) may
        # be another one next time.
        # Without operands, which a trace must not keep alive.
        stubs = [LazyTensor(x.expr, x.shape, x.dtype, x.order, x.sparse, {}) for x in results]

        def general() -> Ready:
            return prepare(stubs, self.backend, self.scheduler, promises=False)[0]

        trace = _Trace(ready, sources, tuple(constants), rebuilt(returned, iter(stubs)), general)
        return trace, not tracing.foreign


class _Call:
    """The values of one call, sorted into operands and what is static."""

    __slots__ = ("arguments", "captured", "ints_are_static", "known", "operands", "parts", "weak")

    def __init__(self, ints_are_static: bool) -> None:
        self.ints_are_static = ints_are_static
        self.operands: list[Tensor] = []
        self.weak: list[type | None] = []
        self.parts: list[Any] = []
        self.captured: dict[int, tuple[Any, Tensor]] = {}
        self.known: dict[int, Tensor] = {}  # one object is one operand
        self.arguments = 0

    def is_number(self, x: Any) -> bool:
        """Whether an argument is a run-time number."""
        kind = type(x)
        return kind in (float, complex) or (kind is int and not self.ints_are_static)

    def add(self, x: Any) -> None:
        """Take an argument."""
        if is_array(x):
            self.operand(x)
        elif self.is_number(x):
            self.parts.append(type(x) if type(x) is not int else (int, x < 0, _width(x)))
            self.operands.append(number(_NUMBERS[type(x)](x)))
            self.weak.append(type(x))
        elif isinstance(x, np.generic):
            self.parts.append(x.dtype)
            self.operands.append(number(x))
            self.weak.append(None)
        elif isinstance(x, list | tuple):
            self.parts.append((type(x), len(x)))
            for part in x:
                self.add(part)
        elif isinstance(x, dict):
            self.parts.append((dict, tuple(x)))
            for part in x.values():
                self.add(part)
        else:
            try:
                hash(x)
            except TypeError:
                raise PyFinchError(
                    f"a fused function takes tensors, numbers and hashable values, got {type(x).__name__}"
                ) from None
            self.parts.append((type(x), x))

    def operand(self, x: Any) -> Tensor:
        """Take a tensor or an array."""
        tensor = self.known.get(id(x))
        if tensor is None:
            tensor = as_operand(x)
            if not tensor.ndim:
                tensor = as_number(tensor)
            self.known[id(x)] = tensor
        self.parts.append(tensor.ftype)
        self.parts.append(tensor.shape)
        self.operands.append(tensor)
        self.weak.append(None)
        return tensor

    def capture(self, x: Any) -> None:
        """Take what the function refers to."""
        if is_array(x):
            self.captured[id(x)] = x, self.operand(x)
        elif isinstance(x, bool | int | float | complex | str | np.generic | types.FunctionType):
            self.parts.append((type(x), repr(x) if isinstance(x, float | complex | np.generic) else x))
        elif isinstance(x, tuple):
            for part in x:
                self.capture(part)
        elif isinstance(x, list | dict):
            # Only tensors: a list may as well be where the function leaves notes.
            for part in x.values() if isinstance(x, dict) else x:
                if is_array(part):
                    self.capture(part)

    def same(self) -> tuple[int, ...]:
        """For each operand the first one that is the same object."""
        seen: dict[int, int] = {}
        return tuple([seen.setdefault(id(x), k) for k, x in enumerate(self.operands)])

    def lazies(self) -> Iterator[LazyTensor]:
        """Lazy tensors for the arguments among the operands."""
        made: list[LazyTensor] = []
        for x, weak in zip(self.operands[: self.arguments], self.weak, strict=False):
            made.append(table(x))
            made[-1].weak = weak
        return iter(made)

    def replaced(self, x: Any, lazies: Iterator[LazyTensor]) -> Any:
        """An argument with its operands replaced by lazy tensors, in the order of `add`."""
        if is_array(x) or self.is_number(x) or isinstance(x, np.generic):
            return next(lazies)
        if isinstance(x, tuple) and hasattr(x, "_fields"):
            return type(x)(*[self.replaced(part, lazies) for part in x])
        if isinstance(x, list | tuple):
            return type(x)([self.replaced(part, lazies) for part in x])
        if isinstance(x, dict):
            return {name: self.replaced(part, lazies) for name, part in x.items()}
        return x


def _width(x: int) -> int:
    """The bits of the narrowest integer dtypes that hold a number: what its promotion may depend on.

    Raises
    ------
    DTypeError
        If it does not fit int64.
    """
    bits = (x if x >= 0 else ~x).bit_length()
    for width in (7, 8, 15, 16, 31, 32, 63):
        if bits <= width:
            return width
    raise DTypeError(f"a fused function takes integers that fit int64, got {x}")


def is_array(x: Any) -> bool:
    """Whether a value is a tensor or an array, of NumPy, SciPy or pydata/sparse."""
    return isinstance(x, StorageTensor | np.ndarray) or (hasattr(x, "todense") and hasattr(x, "shape"))


def _has_lazy(x: Any) -> bool:
    if isinstance(x, StorageTensor | np.ndarray | int | float | str):
        return False
    return bool(leaves(x))


def _references(func: Any, seen: set[int]) -> Iterator[Callable[[], Any]]:
    """Readers of what a function finds in its closure and among its globals, and its helpers in turn."""
    func = getattr(func, "__func__", func)
    if not isinstance(func, types.FunctionType) or id(func) in seen:
        return
    seen.add(id(func))
    written = _written(func.__code__)
    cells = zip(func.__code__.co_freevars, func.__closure__ or (), strict=True)
    readers: list[Callable[[], Any]] = [
        functools.partial(_contents, cell) for name, cell in cells if name not in written
    ]
    names = sorted(_names(func.__code__) - written)
    readers += [functools.partial(func.__globals__.get, name) for name in names]
    for read in readers:
        value = read()
        if isinstance(value, types.ModuleType | type) or _is_ours(value):
            continue
        yield read
        yield from _references(value, seen)


def _is_ours(value: Any) -> bool:
    """Whether a value is a function of pyfinch's."""
    module = getattr(value, "__module__", None)
    return callable(value) and isinstance(module, str) and module.startswith("pyfinch.")


def _contents(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # not assigned yet
        return None


def _written(code: types.CodeType) -> set[str]:
    """Names that a function itself assigns outside of it (a counter of calls): they do not decide a program."""
    stores = ("STORE_GLOBAL", "STORE_DEREF")
    found = {str(step.argval) for step in dis.get_instructions(code) if step.opname in stores}
    for const in code.co_consts:
        if isinstance(const, types.CodeType):
            found |= _written(const)
    return found


def _names(code: types.CodeType) -> set[str]:
    names = set(code.co_names)
    for const in code.co_consts:
        if isinstance(const, types.CodeType):
            names |= _names(const)
    return names
