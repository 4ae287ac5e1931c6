"""The libraries that pyfinch is measured beside. Each is optional: what is absent is left out, and said once."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from importlib import import_module, metadata
from types import ModuleType
from typing import Any

import numpy as np

import pyfinch as pf

_loaded: dict[str, ModuleType | None] = {}


def pydata() -> ModuleType | None:
    """pydata/sparse."""
    return _load("pydata", lambda: import_module("sparse"))


def graphblas() -> ModuleType | None:
    """SuiteSparse:GraphBLAS, blocking, so that a call's work is done when it returns."""
    return _load("graphblas", _graphblas)


def mkl() -> ModuleType | None:
    """Intel MKL."""
    return _load("mkl", _mkl)


def torch() -> ModuleType | None:
    """torch.sparse on the CPU."""
    return _load("torch", _torch)


def finch() -> ModuleType | None:
    """finch-tensor with the scheduler that compiles with Numba."""
    return _load("finch-tensor", _finch)


def finchjl() -> ModuleType | None:
    """Pyfinch's own programs, run by Finch.jl."""
    return _load("finchjl", _finchjl)


def set_threads(count: int) -> None:
    """How many threads the peers may use from now on."""
    if "graphblas" in _loaded and (gb := graphblas()):
        gb.ss.config["nthreads"] = count
    if "mkl" in _loaded and (dot := mkl()):
        dot.mkl_set_num_threads(count)
    if "torch" in _loaded and (t := torch()):
        t.set_num_threads(count)


def announce() -> Iterable[str]:
    """Load all but what is slow to load, and tell what there is."""
    for load in (pydata, graphblas, mkl, torch, finchjl):
        load()
    set_threads(1)
    return [name for name, module in _loaded.items() if module]


def _load(name: str, make: Callable[[], ModuleType]) -> ModuleType | None:
    if name not in _loaded:
        try:
            _loaded[name] = make()
        except Exception as error:
            _loaded[name] = None
            print(f"{name} is skipped: {' '.join(str(error).split())[:100]}", flush=True)
    return _loaded[name]


def _graphblas() -> ModuleType:
    gb = import_module("graphblas")
    gb.init("suitesparse", blocking=True)
    gb.ss.config["nthreads"] = 1
    return gb


def _mkl() -> ModuleType:
    if "MKL_RT" not in os.environ:
        for file in metadata.files("mkl") or ():
            if "mkl_rt" in file.name and file.name.endswith((".so", ".dll", ".dylib", ".so.2", ".so.3")):
                os.environ["MKL_RT"] = str(file.locate().resolve())
    dot = import_module("sparse_dot_mkl")
    dot.mkl_set_num_threads(1)
    return dot


def _torch() -> ModuleType:
    module = import_module("torch")
    module.set_num_threads(1)
    return module


def _finch() -> ModuleType:
    module = import_module("finch")
    module.set_default_scheduler(ctx=module.COMPILE_NUMBA)
    return module


def _finchjl() -> ModuleType:
    with pf.use_backend("finchjl"):
        pf.compute(pf.lazy(np.ones(2)) + 1.0)
    return pf


def on_finchjl(lazy: Any) -> Callable[[], Any] | None:
    """A call that computes a lazy tensor by Finch.jl, or None where there is no Julia."""
    return (lambda: pf.compute(lazy, backend="finchjl")) if finchjl() else None
