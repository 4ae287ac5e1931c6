"""What is missing is named, with the command that helps, and nothing else is affected."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

from pyfinch.algebra.errors import BackendUnavailableError
from pyfinch.backends.finchjl import session
from pyfinch.cli import main

HAS_JULIACALL = importlib.util.find_spec("juliacall") is not None
TRY = """
import pyfinch as pf
try:
    pf.compute(pf.lazy(pf.eye(3)) + 1, backend="finchjl")
    print("no error")
except pf.BackendUnavailableError as error:
    print(error)
try:
    pf.use_scheduler("finchjl")
    pf.compute(pf.lazy(pf.eye(3)) + 1)
except pf.BackendUnavailableError as error:
    print(error)
with pf.use_scheduler("default"):
    print(float(pf.sum(pf.eye(3))))
"""


def attempt(**variables: str) -> list[str]:
    """What a fresh process says when it asks for Finch.jl, then for Numba."""
    environment = {name: value for name, value in os.environ.items() if name not in variables}
    environment.update({name: value for name, value in variables.items() if value})
    done = subprocess.run(
        [sys.executable, "-c", TRY], env=environment, capture_output=True, text=True, timeout=1200, check=True
    )
    backend, scheduler, other = done.stdout.splitlines()
    assert other == "3.0"
    return [backend, scheduler]


@pytest.mark.skipif(HAS_JULIACALL, reason="juliacall is installed")
def test_without_juliacall() -> None:
    backend, scheduler = attempt()
    assert backend == ("backend 'finchjl' cannot run: juliacall is not installed. Run: pip install \"pyfinch[julia]\"")
    assert scheduler == 'juliacall is not installed; run: pip install "pyfinch[julia]"'


@pytest.mark.skipif(HAS_JULIACALL, reason="juliacall is installed")
def test_the_commands_say_what_is_missing(capsys: pytest.CaptureFixture[str]) -> None:
    for action in ("status", "warmup", "precompile"):
        assert main(["julia", action]) == 1
        assert "juliacall is not installed; run: pip install" in capsys.readouterr().out
    assert main(["difftest", "--pairs", "finchjl", "--programs", "1"]) == 2
    assert "juliacall is not installed" in capsys.readouterr().err


@pytest.mark.skipif(not HAS_JULIACALL, reason="Julia is not installed")
def test_an_executable_that_is_none(tmp_path: Path) -> None:
    exe = str(tmp_path / "julia")
    backend, scheduler = attempt(PYTHON_JULIACALL_EXE=exe)
    assert f"PYTHON_JULIACALL_EXE is {exe!r}, which is no program. Run: unset PYTHON_JULIACALL_EXE" in backend
    assert scheduler.endswith("run: unset PYTHON_JULIACALL_EXE")


def test_versions_that_are_not_supported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PYTHON_JULIACALL_PROJECT", raising=False)
    session._check_julia("1.10.0")
    session._check_julia("1.11.1+0.x64")
    session._check_julia("1.12.0-rc1")
    with pytest.raises(BackendUnavailableError, match=r"Julia 1.9.4 is too old, Finch.jl needs 1.10; run: juliaup"):
        session._check_julia("1.9.4")
    session._check_finch("1.2.12")
    session._check_finch("1.2.14")
    for version in ("1.2.11", "1.3.0", "1.4.2", "0.6.32"):
        with pytest.raises(
            BackendUnavailableError, match=f"Finch.jl {version} is not the version.*~1.2.12; run: python"
        ):
            session._check_finch(version)
    monkeypatch.setenv("PYTHON_JULIACALL_PROJECT", "mine")
    with pytest.raises(BackendUnavailableError, match="run: julia --project=mine"):
        session._check_finch("1.4.2")


def test_offline_is_told_from_other_failures(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PYTHON_JULIACALL_EXE", raising=False)
    resolving = subprocess.CalledProcessError(1, ["julia", "-e", "Pkg.resolve()"])
    assert "could not be downloaded" in session._why_no_julia(resolving)
    assert "connect to the internet once" in session._why_no_julia(OSError("Connection refused"))
    assert "Julia did not start (no such thing)" in session._why_no_julia(RuntimeError("no such thing"))


@pytest.mark.usefixtures("julia")
def test_an_environment_without_finch(tmp_path: Path) -> None:
    from pyfinch.backends.finchjl import on_julia

    manifest = on_julia(lambda main: str(main.seval("Base.project_file_manifest_path(Base.active_project())")))
    (tmp_path / "Manifest.toml").write_text(Path(manifest).read_text())
    (tmp_path / "Project.toml").write_text('[deps]\nPythonCall = "6099a3de-0909-46bc-b1f4-468b9a2dfc0d"\n')
    exe = on_julia(lambda main: str(main.seval("joinpath(Sys.BINDIR, Base.julia_exename())")))
    backend, _ = attempt(PYTHON_JULIACALL_PROJECT=str(tmp_path), PYTHON_JULIACALL_EXE=exe)
    assert "cannot load Finch.jl: ArgumentError: Package Finch not found in current path" in backend
    assert f'Run: julia --project={tmp_path} -e \'using Pkg; Pkg.add(name="Finch", version="1.2.12")\'' in backend


@pytest.mark.usefixtures("julia")
def test_status_tells_versions_and_paths(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["julia", "status"]) == 0
    said = capsys.readouterr().out
    for word in ("bridge", "juliacall", "Julia", "executable", "project", "Finch.jl    1.2.", "PythonCall"):
        assert word in said
    assert main(["julia", "warmup"]) == 0
    assert "the same again" in capsys.readouterr().out
