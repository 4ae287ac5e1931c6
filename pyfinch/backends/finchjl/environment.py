"""``python -m pyfinch julia status | warmup | precompile``."""

from __future__ import annotations

import importlib.metadata
import os
import time
from typing import Any

import numpy as np

from pyfinch.algebra.errors import BackendUnavailableError
from pyfinch.backends.base import Scheduled
from pyfinch.backends.finchjl import session
from pyfinch.backends.finchjl.backend import FinchBackend, FinchExecutable
from pyfinch.formats.convert import build
from pyfinch.formats.format import format
from pyfinch.formats.tensor import Tensor
from pyfinch.logic.nodes import Plan
from pyfinch.logic.text import parse
from pyfinch.schedule.pipeline import schedule_default

__all__ = ["main"]

_VARIABLES = ("PYTHON_JULIACALL_EXE", "PYTHON_JULIACALL_PROJECT", "PYTHON_JULIACALL_SYSIMAGE", "JULIA_DEPOT_PATH")


def main(action: str) -> int:
    """Run one of the commands; the exit code is 1 if Julia cannot be used."""
    try:
        {"status": status, "warmup": warmup, "precompile": precompile}[action]()
    except BackendUnavailableError as error:
        print(f"Finch.jl cannot be used: {error}")
        return 1
    return 0


def status() -> None:
    """Print versions and paths."""
    print(f"bridge      {session.folder()}")
    try:
        print(f"juliacall   {importlib.metadata.version('juliacall')}")
    except importlib.metadata.PackageNotFoundError:
        print("juliacall   not installed")
    for name in _VARIABLES:
        if name in os.environ:
            print(f"{name}={os.environ[name]}")
    for name, text in session.on_julia(_facts).items():
        print(f"{name:<11} {text}")


def _facts(main: Any) -> dict[str, str]:
    asked = {
        "Julia": "string(VERSION)",
        "executable": "joinpath(Sys.BINDIR, Base.julia_exename())",
        "project": "Base.active_project()",
        "image": "unsafe_string(Base.JLOptions().image_file)",
        "Finch.jl": 'string(pkgversion(Finch), " ", pkgdir(Finch))',
        "PythonCall": "string(pkgversion(PythonCall))",
    }
    return {name: str(main.seval(code)) for name, code in asked.items()}


def warmup() -> None:
    """Start Julia and run a first program, telling how long each took."""
    began = time.perf_counter()
    session.call(lambda: None)
    print(f"Julia, Finch.jl and the bridge    {time.perf_counter() - began:6.1f} s")
    run, tensors = _example()
    for what in ("first program (compiled)", "the same again"):
        began = time.perf_counter()
        run(tensors)
        print(f"{what:<33} {time.perf_counter() - began:6.3f} s")


def _example() -> tuple[FinchExecutable, dict[str, Tensor]]:
    """A sparse matrix times itself."""
    eye = build((3, 3), np.array([[0, 1, 2]] * 2), np.ones(3), format("csr"), 0.0)
    over = ("field(k), field(i)", "field(j), field(k)")
    left, right = (f"relabel(table(deferred(T, `csr`), field(j), field(i)), {fields})" for fields in over)
    total = f"aggregate(immediate(+), immediate(0.0), mapjoin(immediate(*), {left}, {right}), field(k))"
    text = f"plan(query(alias(A), reorder({total}, field(j), field(i))), produces(alias(A)))"
    program = parse(text, {"csr": eye.ftype})
    assert isinstance(program, Plan)
    return FinchBackend().compile(Scheduled(schedule_default(program), "default")), {"T": eye}


def precompile() -> None:
    """Fetch and compile what is missing, so that later sessions start fast."""
    session.progress("resolving and compiling Julia packages, which may take minutes")
    began = time.perf_counter()
    if "PYTHON_JULIACALL_PROJECT" not in os.environ:
        try:
            import juliapkg
        except ImportError:
            raise BackendUnavailableError('juliacall is not installed; run: pip install "pyfinch[julia]"') from None
        try:
            juliapkg.resolve()
        except Exception as error:
            raise BackendUnavailableError(f"Julia's packages could not be resolved: {error}") from error
    session.call(lambda: None)  # loading compiles whatever is not compiled yet
    print(f"ready after {time.perf_counter() - began:.0f} s")
    warmup()
