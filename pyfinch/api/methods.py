"""The methods that eager and lazy tensors share: every operator of Python, and the functions offered as methods.

Each forwards to the function of its name, which `provides` has registered; so this file imports none of them.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

if TYPE_CHECKING:
    from types import FrameType, ModuleType

__all__ = ["FUNCTIONS", "ArrayMethods", "boxed", "is_asked_by_scipy", "provides"]

FUNCTIONS: dict[str, Callable[..., Any]] = {}
_NUMPY_NAMES = {"transpose": "permute_dims"}
_NUMPY_PARAMETERS = {"a_min": "min", "a_max": "max"}
# Not subclasses: SciPy's dok_array is a dict.
_FOREIGN = frozenset({str, bytes, dict, set, type(None)})
_F = TypeVar("_F", bound=Callable[..., Any])


def provides(function: _F) -> _F:
    """Register a function under its own name, for the methods that forward to it."""
    FUNCTIONS[function.__name__] = function
    return function


# Functions of SciPy that ask for an array before they let the right operand have its turn. A 0-d array of
# objects tells them that it is none, and they return NotImplemented, so that `csr @ tensor` runs here.
_SCIPY_OPERATORS = frozenset(
    {"_matmul_dispatch", "_comparison", "_divide", "multiply", "_multiply_2d_with_broadcasting"}
)


def is_asked_by_scipy(caller: FrameType) -> bool:
    """Whether the frame that asks for an array is one of SciPy's operators."""
    return caller.f_code.co_name in _SCIPY_OPERATORS and caller.f_globals.get("__name__", "").startswith("scipy.sparse")


def boxed(x: Any) -> Any:
    """A 0-d array of objects that holds ``x``."""
    box = np.empty((), dtype=object)
    box[()] = x
    return box


def _binary(name: str, a: Any, b: Any) -> Any:
    if type(b) in _FOREIGN:
        return NotImplemented
    return FUNCTIONS[name](a, b)


def _reflected(name: str, a: Any, b: Any) -> Any:
    if type(a) in _FOREIGN:
        return NotImplemented
    return FUNCTIONS[name](a, b)


class ArrayMethods:
    """Arithmetic, comparisons, reductions and views, the same for eager and lazy tensors."""

    __slots__ = ()
    __array_priority__ = 1000.0
    __hash__ = None  # type: ignore[assignment]

    def __array_namespace__(self, *, api_version: str | None = None) -> ModuleType:
        """The module `pyfinch`."""
        import pyfinch

        return pyfinch

    @staticmethod
    def __pyfinch_apply__(op: Any, args: Any) -> Any:
        """An operator made by `pyfinch.operator` was called with a tensor among its arguments."""
        return FUNCTIONS["apply"](op, args)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        """NumPy's ufuncs, and its arrays' and scalars' operators, run here."""
        function = FUNCTIONS.get(ufunc.__name__)
        if method != "__call__" or function is None or any(value is not None for value in options.values()):
            return NotImplemented
        return function(*inputs)

    def __array_function__(self, func: Any, types: Any, args: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
        """NumPy's functions run here where pyfinch has one of the name: ``np.sum(x, axis=0)``."""
        function = FUNCTIONS.get(_NUMPY_NAMES.get(func.__name__, func.__name__))
        if function is None or func.__module__ != "numpy":
            return NotImplemented
        try:
            bound = inspect.signature(func).bind(*args, **keywords).arguments
        except ValueError:  # NumPy's compiled functions tell no signature before NumPy 2.1
            return function(*args, **keywords)
        given = {
            _NUMPY_PARAMETERS.get(name, name): value
            for name, value in bound.items()
            if value is not None and value is not np._NoValue
        }
        parameters = inspect.signature(function).parameters
        kinds = [p.kind for p in parameters.values()]
        values = list(given.values())
        if inspect.Parameter.VAR_POSITIONAL in kinds:
            return function(*values)
        count = kinds.count(inspect.Parameter.POSITIONAL_ONLY)
        unknown = set(list(given)[count:]) - parameters.keys()
        if unknown:
            raise TypeError(f"numpy.{func.__name__} of a pyfinch tensor takes no {', '.join(sorted(unknown))}")
        return function(*values[:count], **dict(list(given.items())[count:]))

    # ---------------------------------------------------------------------------------------- arithmetic

    def __add__(self, other: Any) -> Any:
        return _binary("add", self, other)

    def __radd__(self, other: Any) -> Any:
        return _reflected("add", other, self)

    def __sub__(self, other: Any) -> Any:
        return _binary("subtract", self, other)

    def __rsub__(self, other: Any) -> Any:
        return _reflected("subtract", other, self)

    def __mul__(self, other: Any) -> Any:
        return _binary("multiply", self, other)

    def __rmul__(self, other: Any) -> Any:
        return _reflected("multiply", other, self)

    def __truediv__(self, other: Any) -> Any:
        return _binary("divide", self, other)

    def __rtruediv__(self, other: Any) -> Any:
        return _reflected("divide", other, self)

    def __floordiv__(self, other: Any) -> Any:
        return _binary("floor_divide", self, other)

    def __rfloordiv__(self, other: Any) -> Any:
        return _reflected("floor_divide", other, self)

    def __mod__(self, other: Any) -> Any:
        return _binary("remainder", self, other)

    def __rmod__(self, other: Any) -> Any:
        return _reflected("remainder", other, self)

    def __divmod__(self, other: Any) -> Any:
        return self // other, self % other

    def __rdivmod__(self, other: Any) -> Any:
        return other // self, other % self

    def __pow__(self, other: Any) -> Any:
        return _binary("pow", self, other)

    def __rpow__(self, other: Any) -> Any:
        return _reflected("pow", other, self)

    def __matmul__(self, other: Any) -> Any:
        return _binary("matmul", self, other)

    def __rmatmul__(self, other: Any) -> Any:
        return _reflected("matmul", other, self)

    def __neg__(self) -> Any:
        return FUNCTIONS["negative"](self)

    def __pos__(self) -> Any:
        return FUNCTIONS["positive"](self)

    def __abs__(self) -> Any:
        return FUNCTIONS["abs"](self)

    # ---------------------------------------------------------------------------------------------- bits

    def __and__(self, other: Any) -> Any:
        return _binary("bitwise_and", self, other)

    def __rand__(self, other: Any) -> Any:
        return _reflected("bitwise_and", other, self)

    def __or__(self, other: Any) -> Any:
        return _binary("bitwise_or", self, other)

    def __ror__(self, other: Any) -> Any:
        return _reflected("bitwise_or", other, self)

    def __xor__(self, other: Any) -> Any:
        return _binary("bitwise_xor", self, other)

    def __rxor__(self, other: Any) -> Any:
        return _reflected("bitwise_xor", other, self)

    def __lshift__(self, other: Any) -> Any:
        return _binary("bitwise_left_shift", self, other)

    def __rlshift__(self, other: Any) -> Any:
        return _reflected("bitwise_left_shift", other, self)

    def __rshift__(self, other: Any) -> Any:
        return _binary("bitwise_right_shift", self, other)

    def __rrshift__(self, other: Any) -> Any:
        return _reflected("bitwise_right_shift", other, self)

    def __invert__(self) -> Any:
        return FUNCTIONS["bitwise_invert"](self)

    # ---------------------------------------------------------------------------------------- comparison

    def __eq__(self, other: Any) -> Any:
        return _binary("equal", self, other)

    def __ne__(self, other: Any) -> Any:
        return _binary("not_equal", self, other)

    def __lt__(self, other: Any) -> Any:
        return _binary("less", self, other)

    def __le__(self, other: Any) -> Any:
        return _binary("less_equal", self, other)

    def __gt__(self, other: Any) -> Any:
        return _binary("greater", self, other)

    def __ge__(self, other: Any) -> Any:
        return _binary("greater_equal", self, other)

    # ------------------------------------------------------------------------------ functions as methods

    @property
    def T(self) -> Any:
        """The tensor with its modes in reverse order."""
        return FUNCTIONS["permute_dims"](self, None)

    @property
    def mT(self) -> Any:
        """The tensor with its last two modes swapped."""
        return FUNCTIONS["matrix_transpose"](self)

    @property
    def real(self) -> Any:
        """The real part."""
        return FUNCTIONS["real"](self)

    @property
    def imag(self) -> Any:
        """The imaginary part."""
        return FUNCTIONS["imag"](self)

    def __getitem__(self, key: Any) -> Any:
        return FUNCTIONS["getitem"](self, key)

    def sum(self, axis: Any = None, *, dtype: Any = None, keepdims: bool = False) -> Any:
        """See `pyfinch.sum`."""
        return FUNCTIONS["sum"](self, axis=axis, dtype=dtype, keepdims=keepdims)

    def prod(self, axis: Any = None, *, dtype: Any = None, keepdims: bool = False) -> Any:
        """See `pyfinch.prod`."""
        return FUNCTIONS["prod"](self, axis=axis, dtype=dtype, keepdims=keepdims)

    def mean(self, axis: Any = None, *, dtype: Any = None, keepdims: bool = False) -> Any:
        """See `pyfinch.mean`."""
        return FUNCTIONS["mean"](self, axis=axis, dtype=dtype, keepdims=keepdims)

    def min(self, axis: Any = None, *, keepdims: bool = False) -> Any:
        """See `pyfinch.min`."""
        return FUNCTIONS["min"](self, axis=axis, keepdims=keepdims)

    def max(self, axis: Any = None, *, keepdims: bool = False) -> Any:
        """See `pyfinch.max`."""
        return FUNCTIONS["max"](self, axis=axis, keepdims=keepdims)

    def any(self, axis: Any = None, *, keepdims: bool = False) -> Any:
        """See `pyfinch.any`."""
        return FUNCTIONS["any"](self, axis=axis, keepdims=keepdims)

    def all(self, axis: Any = None, *, keepdims: bool = False) -> Any:
        """See `pyfinch.all`."""
        return FUNCTIONS["all"](self, axis=axis, keepdims=keepdims)

    def conj(self) -> Any:
        """The complex conjugate."""
        return FUNCTIONS["conj"](self)
