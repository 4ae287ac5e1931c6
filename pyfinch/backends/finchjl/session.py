"""Julia in this process: started on first use, on one thread, to which all calls are handed.

Julia's code may run on the thread that initialised it only. That is a thread of our own, unless juliacall was imported
before: then it is the thread that imported it, and calls from others are refused.
"""

from __future__ import annotations

import contextlib
import os
import queue
import sys
import threading
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, cast

import numpy as np

from pyfinch.algebra.errors import BackendUnavailableError, PyFinchError
from pyfinch.backends.base import Availability

__all__ = ["JuliaError", "availability", "bridge", "call", "dropped", "folder", "function", "on_julia", "progress"]

T = TypeVar("T")
#: Where a job's result, or its exception, is put.
Reply = queue.SimpleQueue[tuple[Any, BaseException | None]]

#: Numbers of results that nothing views any more; they are let go of before the next call.
dropped: deque[int] = deque()
FINCH = (1, 2, 12)
JULIA = (1, 10)
_STACK = 64 << 20
_INSTALL = 'pip install "pyfinch[julia]"'


class JuliaError(PyFinchError, RuntimeError):
    """Julia threw an exception; the message has its text and the program that was sent."""


class _Session:
    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.pid: int | None = None
        self.thread: int | None = None
        self.own = False
        self.jobs: queue.SimpleQueue[tuple[Callable[[], Any], Reply]] = queue.SimpleQueue()
        self.bridge: Any = None
        self.functions: dict[str, Any] = {}
        self.failure: BackendUnavailableError | None = None


_session = _Session()


def folder() -> Path:
    """Where the Julia side of the bridge is: inside an installed package, or beside it in a checkout."""
    package = Path(__file__).resolve().parents[2]
    for place in (package / "julia", package.parent / "julia"):
        if (place / "src" / "PyFinchBridge.jl").is_file():
            return place
    raise BackendUnavailableError(f"the Julia files of pyfinch are missing beside {package}; install pyfinch again")


def availability() -> Availability:
    """Whether Julia, juliacall and Finch.jl can be used here; starts Julia to find out, once."""
    try:
        call(lambda: None)
    except BackendUnavailableError as error:
        reason, _, command = str(error).partition("; run: ")
        return Availability(False, reason, f"Run: {command}" if command else "")
    return Availability(True)


def call(job: Callable[[], T]) -> T:
    """Run a job on Julia's thread and wait for its result; there `bridge` and `function` give the Julia side.

    Raises
    ------
    BackendUnavailableError
        If Julia cannot be used here, or not from this thread or process.
    """
    session = _session
    if session.failure is not None:
        raise session.failure
    if session.pid is None:
        _start(session)
    if session.pid != os.getpid():
        raise BackendUnavailableError(
            "Julia was started before this process was forked, and does not survive that; start worker processes "
            'with the "spawn" method, or use Julia in the workers only'
        )
    return _run(session, lambda: _released(job))


def on_julia(job: Callable[[Any], T]) -> T:
    """Run a function on the thread that Julia lives on, giving it ``juliacall.Main``.

    What it returns should be plain Python or NumPy data: Julia's own objects may be used on that thread only.

    Examples
    --------
    >>> from pyfinch.backends.finchjl import on_julia
    >>> on_julia(lambda Main: int(Main.seval("1 + 1")))  # doctest: +SKIP
    2
    """

    def with_main() -> T:
        import juliacall

        return job(juliacall.Main)

    return call(with_main)


def _released(job: Callable[[], T]) -> T:
    """Let go of what nothing views any more, then do the job."""
    numbers = [dropped.popleft() for _ in range(len(dropped))]
    if numbers:
        row = np.array(numbers, np.int64)
        function("release")(row.ctypes.data, len(row))
    return job()


def bridge() -> Any:
    """The Julia module of the bridge; its functions hold the GIL, as those must that touch Python objects."""
    return _session.bridge


def function(name: str) -> Any:
    """A function of the bridge, found once; calling it lets other Python threads run meanwhile."""
    found = _session.functions.get(name)
    if found is None:
        found = _session.functions[name] = getattr(_session.bridge, name)._jl_call_nogil
    return found


def _run(session: _Session, job: Callable[[], T]) -> T:
    if threading.get_ident() == session.thread:
        return job()
    if not session.own:
        raise BackendUnavailableError(
            "juliacall was imported on another thread, where Julia lives now; call from that thread, or import pyfinch "
            "and use it before juliacall is imported: then Julia gets a thread of its own"
        )
    return _hand_over(session, job)


def _hand_over(session: _Session, job: Callable[[], T], seconds: float | None = None) -> T:
    """Give a job to Julia's own thread and wait for what comes of it."""
    reply: Reply = queue.SimpleQueue()
    session.jobs.put((job, reply))
    # An interrupt ends the wait, not the job: Julia finishes it, and later calls wait their turn.
    result, error = reply.get(timeout=seconds)
    if error is not None:
        raise error
    return cast(T, result)


def _serve(session: _Session) -> None:
    """The life of Julia's own thread."""
    session.thread = threading.get_ident()
    while True:
        job, reply = session.jobs.get()
        try:
            reply.put((job(), None))
        except BaseException as error:
            reply.put((None, error))
        del job, reply


# ----------------------------------------------------------------------------------------------------------- starting


def _start(session: _Session) -> None:
    with session.lock:
        if session.failure is not None:
            raise session.failure
        if session.pid is not None:
            return
        try:
            _check_juliacall()
            if session.thread is not None:
                pass  # a start was interrupted: Julia lives, or comes to live, on the thread that was chosen then
            elif "juliacall" in sys.modules:
                session.thread = threading.get_ident()
            else:
                session.own = True
                before = threading.stack_size(_STACK)
                try:
                    threading.Thread(target=_serve, args=(session,), name="julia", daemon=True).start()
                finally:
                    threading.stack_size(before)
                _hand_over(session, lambda: None)  # the thread says who it is before its first job
            session.bridge = _run(session, _load)
            session.pid = os.getpid()
        except BackendUnavailableError as error:
            session.failure = error
            raise


def _check_juliacall() -> None:
    import importlib.util

    if importlib.util.find_spec("juliacall") is None:
        raise BackendUnavailableError(f"juliacall is not installed; run: {_INSTALL}")


def progress(text: str) -> None:
    """A line for a person who waits."""
    if sys.stderr.isatty():
        print(f"pyfinch: {text}", file=sys.stderr, flush=True)


def _load() -> Any:
    """Start Julia, check versions, load the bridge; on Julia's thread."""
    progress("starting Julia (the first time this may download and compile packages)")
    try:
        import juliacall
    except BaseException as error:
        raise BackendUnavailableError(_why_no_julia(error)) from error
    _end_on_own_thread(juliacall)
    main = juliacall.Main
    version = str(main.seval("string(VERSION)"))
    _check_julia(version)
    try:
        found = str(main.seval("import Finch; string(pkgversion(Finch))"))
    except juliacall.JuliaError as error:
        raise BackendUnavailableError(
            f"Julia {version} cannot load Finch.jl: {_first_line(error)}; run: {_add_finch()}"
        ) from error
    _check_finch(found)
    try:
        main.seval(f"push!(LOAD_PATH, {_julia_text(str(folder() / 'src'))})")
        return main.seval("import PyFinchBridge; PyFinchBridge")
    except juliacall.JuliaError as error:
        raise BackendUnavailableError(f"the Julia side of pyfinch does not load: {_first_line(error)}") from error


def _check_julia(version: str) -> None:
    if _numbers(version)[:2] < JULIA:
        wanted = ".".join(map(str, JULIA))
        raise BackendUnavailableError(
            f"Julia {version} is too old, Finch.jl needs {wanted}; run: juliaup update, or unset PYTHON_JULIACALL_EXE"
        )


def _check_finch(version: str) -> None:
    if _numbers(version)[:2] != FINCH[:2] or _numbers(version) < FINCH:
        wanted = ".".join(map(str, FINCH))
        raise BackendUnavailableError(
            f"Finch.jl {version} is not the version that pyfinch works with, ~{wanted}; run: {_add_finch()}"
        )


def _add_finch() -> str:
    """The command that puts the right Finch.jl where juliacall looks for it."""
    project = os.environ.get("PYTHON_JULIACALL_PROJECT")
    if project is None:
        return "python -m pyfinch julia precompile"
    wanted = ".".join(map(str, FINCH))
    return f'julia --project={project} -e \'using Pkg; Pkg.add(name="Finch", version="{wanted}")\''


def _julia_text(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("$", "\\$")
    return f'"{escaped}"'


def _first_line(error: BaseException) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    text = lines[0].rstrip(".") if lines else type(error).__name__
    return text if len(text) <= 200 else text[:200] + "…"


def _numbers(version: str) -> tuple[int, ...]:
    parts = version.split("-")[0].split("+")[0].split(".")
    return tuple(int(part) for part in parts if part.isdigit())


def _why_no_julia(error: BaseException) -> str:
    """What kept juliacall from starting Julia."""
    text = _first_line(error)
    exe = os.environ.get("PYTHON_JULIACALL_EXE")
    if exe and not _is_program(exe):
        return f"PYTHON_JULIACALL_EXE is {exe!r}, which is no program; run: unset PYTHON_JULIACALL_EXE"
    low = str(error).lower()
    if any(word in low for word in ("resolve", "urlopen", "connection", "network", "timed out", "download")):
        return (
            f"Julia or its packages could not be downloaded ({text}); connect to the internet once and run: "
            "python -m pyfinch julia precompile"
        )
    return f"Julia did not start ({text}); run: python -m pyfinch julia status"


def _is_program(exe: str) -> bool:
    import shutil

    return shutil.which(exe) is not None


def _end_on_own_thread(juliacall: Any) -> None:
    """Julia's exit hooks must run where Julia lives; juliacall would run them on the main thread."""
    config = getattr(juliacall, "CONFIG", {})
    library = config.get("lib")
    session = _session
    if not session.own or library is None or not hasattr(library, "jl_atexit_hook"):
        return
    hook = library.jl_atexit_hook
    if getattr(hook, "is_pyfinchs", False):  # a start was interrupted and taken up again
        return
    owner = os.getpid()

    def on_thread(code: int) -> None:
        if os.getpid() != owner:
            return
        with contextlib.suppress(queue.Empty):
            _hand_over(session, lambda: hook(code), seconds=10)

    on_thread.is_pyfinchs = True  # type: ignore[attr-defined]  # a mark on a function, which mypy knows nothing of
    library.jl_atexit_hook = on_thread
