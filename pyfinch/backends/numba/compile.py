"""Machine code for kernels: through Numba, or from the disk cache. The only module that imports numba."""

from __future__ import annotations

import functools
import hashlib
import inspect
import math
import pickle
import types
from collections.abc import Callable
from typing import Any

import llvmlite
import llvmlite.binding
import numba
import numpy as np
from numba.core import types as numba_types
from numba.core.compiler import CompileResult
from numba.core.compiler_lock import global_compiler_lock
from numba.core.runtime import rtsys
from numba.core.serialize import dumps
from numba.cpython.unsafe.numbers import trailing_zeros
from numba.np.numpy_support import from_dtype

from pyfinch.algebra import scalar_functions
from pyfinch.backends.numba import cache, runtime
from pyfinch.backends.numba.kernel import KernelSource

__all__ = ["helper", "machine_code"]

_VERSION = 2  # of the code that the compiler here generates for one and the same source


@functools.cache
def _helpers() -> dict[str, Any]:
    """The names that a kernel may use, functions compiled on first use."""
    names: dict[str, Any] = {"np": np, "math": math, "uintp": np.uintp, "int64": np.int64}
    for module in (scalar_functions, runtime):
        for name in module.__all__:
            # with `names` for globals, so that helpers call each other compiled
            function = types.FunctionType(getattr(module, name).__code__, names, name)
            names[name] = numba.njit(nogil=True, error_model="numpy")(function)
    names["trailing_zeros"] = numba.njit(_trailing_zeros)
    return names


def _trailing_zeros(word: Any) -> Any:
    return trailing_zeros(np.uint64(word))


def helper(name: str) -> Callable[..., Any]:
    """A compiled function of `runtime`."""
    function: Callable[..., Any] = _helpers()[name]
    return function


@functools.cache
def _environment() -> str:
    """What machine code depends on besides the source."""
    helpers = "".join(inspect.getsource(module) for module in (scalar_functions, runtime))
    parts = (
        _VERSION,
        numba.__version__,
        llvmlite.__version__,
        np.__version__,
        llvmlite.binding.get_host_cpu_name(),
        llvmlite.binding.get_host_cpu_features().flatten(),
        hashlib.sha256(helpers.encode()).hexdigest(),
    )
    return repr(parts)


@functools.cache
def _type(text: str) -> Any:
    """The Numba type of an argument's description."""
    if text.endswith("[::1]"):
        return numba_types.Array(from_dtype(np.dtype(text[:-5])), 1, "C")
    return from_dtype(np.dtype(text))


def machine_code(
    source: KernelSource, functions: dict[str, Callable[..., Any]], *, portable: bool = True
) -> Callable[..., int]:
    """The compiled kernel: from disk if it is there, else compiled now and kept.

    Parameters
    ----------
    source
        The kernel.
    functions
        Functions of users' operators, by the name that the source calls them.
    portable
        Whether the source determines the kernel; otherwise it stays in memory.
    """
    options: dict[str, Any] = {"nogil": True, "error_model": "numpy"}
    if source.reassociates:
        options["fastmath"] = {"reassoc", "contract"}
    signature = numba_types.int64(*[_type(argument.type) for argument in source.arguments])
    # a set would be written in another order by another process
    shown = sorted((name, sorted(value) if isinstance(value, set) else value) for name, value in options.items())
    text = f"{source.source}\n# {signature} {shown}\n"
    key = hashlib.sha256(f"{text}{_environment()}".encode()).hexdigest()[:32]
    namespace = {**_helpers(), "__name__": "pyfinch.backends.numba.runtime"}
    for name, function in functions.items():
        namespace[name] = numba.njit(error_model="numpy")(function)
    exec(compile(source.module, f"<pyfinch kernel {key}>", "exec"), namespace)
    function = namespace["kernel"]
    with global_compiler_lock:
        stored = cache.load(key, text) if portable else None
        if stored is not None:
            dispatcher = numba.njit(**options)(function)
            rtsys.initialize(dispatcher.targetctx)
            result = CompileResult._rebuild(dispatcher.targetctx, *pickle.loads(stored))
            dispatcher.add_overload(result)
            dispatcher.disable_compile()
            return dispatcher  # type: ignore[no-any-return]
        dispatcher = numba.njit(signature, **options)(function)
        if portable:
            (result,) = dispatcher.overloads.values()
            cache.store(key, text, dumps(result._reduce()))
    return dispatcher  # type: ignore[no-any-return]
