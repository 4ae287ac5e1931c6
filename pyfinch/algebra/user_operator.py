"""Operators that users make of scalar Python functions."""

from __future__ import annotations

import builtins
import hashlib
import importlib
import inspect
import threading
import types
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final
from weakref import WeakValueDictionary

import numpy as np

from pyfinch.algebra.dtypes import DT, check_dtype
from pyfinch.algebra.errors import DTypeError, PyFinchError
from pyfinch.algebra.operator import NO_LAWS, Operator, Rule
from pyfinch.algebra.values import as_scalar, value_key

__all__ = ["UserOperator", "operator"]

_interned: WeakValueDictionary[tuple[Any, ...], UserOperator] = WeakValueDictionary()
_lock = threading.Lock()
_MODULES: Final = ("math", "numpy", "cmath")


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class UserOperator(Operator):
    """An operator made by `operator`; two of equal code and laws are one object.

    `scalar` is the function, which the backend compiles under the name `helper`; `portable` says
    whether its code alone determines it, so that a kernel may be cached on disk.
    """

    scalar: Any = None
    helper: str = ""
    portable: bool = False
    options: tuple[tuple[str, Any], ...] = ()

    def __call__(self, *args: Any) -> Any:
        """Apply to scalars and arrays; a tensor among the arguments makes it a function of tensors, elementwise."""
        for x in args:
            applied = getattr(type(x), "__pyfinch_apply__", None)
            if applied is not None:
                self.check_arity(len(args))
                return applied(self, args)
        return Operator.__call__(self, *args)

    def __repr__(self) -> str:
        return f"<user operator {self.name}>"

    def __reduce__(self) -> tuple[Any, ...]:
        module, name = self.scalar.__module__, self.scalar.__qualname__
        # A decorated function's name holds the operator itself, so that the function has none to be pickled by.
        if _named(module, name) is self:
            return _named, (module, name)
        return _rebuild, (self.scalar, dict(self.options))


def _named(module: str, name: str) -> Any:
    """What a module has under a dotted name; None if there is nothing."""
    found: Any = importlib.import_module(module)
    for part in name.split("."):
        found = getattr(found, part, None)
    return found


def _rebuild(func: Callable[..., Any], options: dict[str, Any]) -> Operator:
    """The operator of a function and the options that it was made with."""
    made: Operator = operator(func, **options)
    return made


def operator(
    func: Callable[..., Any] | None = None,
    *,
    name: str | None = None,
    identity: Any = None,
    annihilator: Any = None,
    commutative: bool = False,
    associative: bool = False,
    idempotent: bool = False,
    result_dtype: Any = None,
) -> Any:
    """Make an operator of a scalar function, with the laws that it obeys.

    Parameters
    ----------
    func : callable
        Takes one or more NumPy scalars and returns one; must be compilable by Numba.
    name : str, optional
        Its name in program text; the function's own by default.
    identity, annihilator : scalar, optional
        e with ``f(e, x) == f(x, e) == x``, and z with ``f(z, x) == f(x, z) == z``.
    commutative, associative, idempotent : bool
        Laws; they are believed, not proved.
    result_dtype : dtype or callable, optional
        The result's dtype, or a function of the arguments' dtypes; found by a trial on ones by default.

    Examples
    --------
    >>> @operator(commutative=True, annihilator=0)
    ... def damped(a, b):
    ...     return a * b / (1.0 + abs(a))
    >>> damped(2.0, 3.0), damped.annihilator("float64")
    (np.float64(2.0), np.float64(0.0))
    """
    options = {
        "name": name,
        "identity": identity,
        "annihilator": annihilator,
        "commutative": commutative,
        "associative": associative,
        "idempotent": idempotent,
        "result_dtype": result_dtype,
    }
    if func is None:
        return lambda f: operator(f, **options)
    if not isinstance(func, types.FunctionType):
        raise PyFinchError(f"an operator is made of a Python function, got {func!r}; wrap it in a def")
    portable = _is_portable(func)
    laws = tuple((key, _law_key(value)) for key, value in options.items())
    code = (_code_key(func.__code__), _defaults_key(func), _modules_key(func))
    key = (*code, func.__name__, laws, None if portable else func)
    with _lock:
        found = _interned.get(key)
        if found is None:
            found = _interned[key] = _make(func, options, portable, key)
    return found


def _law_key(value: Any) -> Any:
    if value is None or callable(value) or isinstance(value, str | bool):
        return value
    return str(value) if isinstance(value, np.dtype) else value_key(as_scalar(value))


def _make(func: types.FunctionType, options: dict[str, Any], portable: bool, key: tuple[Any, ...]) -> UserOperator:
    arity = _arity(func)
    name = options["name"] or func.__name__
    digest = hashlib.sha256(repr(key).encode()).hexdigest()[:12]
    helper = f"user_{digest}"
    arguments = ", ".join(f"{{{i}}}" for i in range(arity))
    rule = _rule(func, name, options["result_dtype"])

    def apply(*args: Any) -> Any:
        dtypes = tuple(check_dtype(np.asarray(a).dtype) for a in args)
        result = rule(dtypes)[1]
        return np.vectorize(func, otypes=[result])(*args)

    return UserOperator(
        name,
        name,
        arity,
        apply,
        f"{helper}({arguments})",
        rule,
        "none",
        commutative=options["commutative"],
        associative=options["associative"],
        idempotent=options["idempotent"],
        identity_of=_fixed(options["identity"]),
        annihilator_of=_fixed(options["annihilator"]),
        finch=NO_LAWS,
        scalar=func,
        helper=helper,
        portable=portable,
        options=tuple(options.items()),
    )


def _fixed(value: Any) -> Callable[[DT], Any] | None:
    if value is None:
        return None

    def constant(dtype: DT) -> Any:
        try:
            return as_scalar(value, dtype)
        except DTypeError:
            return None

    return constant


def _rule(func: Callable[..., Any], name: str, wanted: Any) -> Rule:
    def rule(dtypes: tuple[DT, ...]) -> tuple[tuple[DT, ...], DT]:
        if wanted is not None and not (callable(wanted) and not isinstance(wanted, type)):
            return dtypes, check_dtype(wanted)
        if callable(wanted) and not isinstance(wanted, type):
            return dtypes, check_dtype(wanted(*dtypes))
        try:
            with np.errstate(all="ignore"):
                value = func(*(d.type(1) for d in dtypes))
        except Exception as error:
            raise DTypeError(
                f"operator {name} failed on ones of {', '.join(d.name for d in dtypes)} ({error}); "
                "pass result_dtype= if that is expected"
            ) from None
        # A literal in one branch is a Python scalar; it takes the arguments' dtype where it can.
        if isinstance(value, int | float | complex) and not isinstance(value, bool | np.generic):
            return dtypes, check_dtype(np.result_type(value, *dtypes))
        if np.ndim(value):
            raise DTypeError(f"operator {name} must return one scalar, got {type(value).__name__}")
        return dtypes, check_dtype(np.asarray(value).dtype)

    return rule


def _arity(func: types.FunctionType) -> int:
    parameters = inspect.signature(func).parameters.values()
    kinds = {p.kind for p in parameters}
    if inspect.Parameter.VAR_POSITIONAL in kinds or inspect.Parameter.VAR_KEYWORD in kinds:
        raise PyFinchError(f"operator {func.__name__} must take a fixed number of arguments")
    required = sum(p.default is p.empty and p.kind is not p.KEYWORD_ONLY for p in parameters)
    if required == 0:
        raise PyFinchError(f"operator {func.__name__} must take at least one argument")
    return required


def _code_key(code: types.CodeType) -> tuple[Any, ...]:
    """What a code object computes, without where it was written."""
    consts = tuple(
        _code_key(c) if isinstance(c, types.CodeType) else (type(c).__name__, repr(c)) for c in code.co_consts
    )
    return code.co_code, consts, code.co_names, code.co_argcount, code.co_kwonlyargcount, code.co_freevars


def _defaults_key(func: types.FunctionType) -> tuple[Any, ...]:
    keywords = tuple(sorted((func.__kwdefaults__ or {}).items()))
    return tuple((type(d).__name__, repr(d)) for d in (*(func.__defaults__ or ()), *keywords))


def _modules_key(func: types.FunctionType) -> tuple[Any, ...]:
    """Which modules the function's globals are: ``m.exp`` may be math's or NumPy's."""
    found = ((name, func.__globals__.get(name)) for name in sorted(_global_names(func.__code__)))
    return tuple((name, value.__name__) for name, value in found if isinstance(value, types.ModuleType))


def _is_portable(func: types.FunctionType) -> bool:
    if func.__closure__:
        return False
    return all(_is_builtin(func, name) for name in _global_names(func.__code__))


def _global_names(code: types.CodeType) -> set[str]:
    names = set(code.co_names)
    for const in code.co_consts:
        if isinstance(const, types.CodeType):
            names |= _global_names(const)
    return names


def _is_builtin(func: types.FunctionType, name: str) -> bool:
    value = func.__globals__.get(name)
    if value is None:
        # Either a builtin, or an attribute's name (``np.sin``), which its module decides.
        return name not in func.__globals__ or hasattr(builtins, name)
    return isinstance(value, types.ModuleType) and value.__name__ in _MODULES
