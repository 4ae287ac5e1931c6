"""The disk cache of kernels: shared by processes, and never in the way."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import pytest

from pyfinch.backends.numba import cache

# Computes one kernel, and prints its value and whether Numba had to compile.
WORKER = """
import warnings
import numpy as np
from pyfinch.backends.numba import compile as backend
from pyfinch.backends.numba.tiers import Kernel
from pyfinch.formats.format import format
from pyfinch.interop.convert import to_tensor
from pyfinch.loops.text import parse

compiled = []
njit = backend.numba.njit


def counting(*args, **options):
    if args and not callable(args[0]):  # called with a signature: this compiles
        compiled.append(args)
    return njit(*args, **options)


backend.numba.njit = counting
x = to_tensor(np.arange(5.0), format=format("dense", 1))
types = {"x": x.ftype, "s": format("scalar").specify("float64", 0.0)}
kernel = Kernel(parse("s .= 0.0\\nfor i = _; s[] += x[i] * x[i] end\\n@freeze(s)\\nreturn s", types))
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    value = float(kernel([x], ()).todense())
    again = float(Kernel(kernel.source.program)([x], ()).todense())
assert value == again == 30.0
print(len(compiled), len([w for w in caught if "in memory only" in str(w.message)]))
"""


def start(folder: Path) -> subprocess.Popen[str]:
    env = {**os.environ, "PYFINCH_CACHE_DIR": str(folder), "PYFINCH_COMPILE": "always", "NUMBA_DISABLE_JIT": "0"}
    root = str(Path(__file__).parents[3])
    env["PYTHONPATH"] = os.pathsep.join([root, env.get("PYTHONPATH", "")])
    return subprocess.Popen(
        [sys.executable, "-c", WORKER], env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def outcome(process: subprocess.Popen[str]) -> tuple[int, int]:
    """How often the process compiled, and how often it warned."""
    out, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    compiled, warned = out.split()
    return int(compiled), int(warned)


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that two processes filled at the same time."""
    folder = tmp_path_factory.mktemp("cache") / "new" / "kernels"
    racers = [start(folder), start(folder)]
    for racer in racers:
        compiled, warned = outcome(racer)
        assert compiled <= 2
        assert warned == 0
    return folder


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def test_racing_processes_leave_whole_files(filled: Path) -> None:
    names = sorted(contents(filled))
    assert [Path(name).suffix for name in names] == [".bin", ".py"]
    assert len({Path(name).stem for name in names}) == 1
    assert stat.S_IMODE(filled.stat().st_mode) == 0o700
    assert "def kernel(" in next(filled.glob("*.py")).read_text()


def test_another_process_loads_from_disk(filled: Path) -> None:
    before = contents(filled)
    assert outcome(start(filled)) == (0, 0)
    assert contents(filled) == before


DAMAGES: dict[str, Any] = {
    "flipped bit at the end": lambda data: data[:-9] + bytes([data[-9] ^ 1]) + data[-8:],
    "flipped bit at the start": lambda data: bytes([data[0] ^ 128]) + data[1:],
    "truncated": lambda data: data[: len(data) // 2],
    "empty": lambda data: b"",
    "foreign": lambda data: b"not a kernel at all" * 40,
}


def test_damaged_files_are_replaced(filled: Path, tmp_path: Path) -> None:
    (path,) = filled.glob("*.bin")
    source = next(filled.glob("*.py")).read_text()
    good = path.read_bytes()
    target = tmp_path / "kernels"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYFINCH_CACHE_DIR", str(target))
        cache.store("key", source, b"code")
        assert cache.load("key", source) == b"code"
        assert cache.load("key", source + " ") is None, "made of another source"
        whole = (target / "key.bin").read_bytes()
        for damage in DAMAGES.values():
            (target / "key.bin").write_bytes(damage(whole))
            assert cache.load("key", source) is None
            cache.store("key", source, b"code")
            assert cache.load("key", source) == b"code"
    # and end to end, in one process for the worst of them
    path.write_bytes(DAMAGES["flipped bit at the end"](good))
    assert outcome(start(filled))[0] >= 1
    assert path.read_bytes() != DAMAGES["flipped bit at the end"](good)
    assert outcome(start(filled)) == (0, 0)


def test_a_folder_that_others_can_write_is_not_used(tmp_path: Path) -> None:
    folder = tmp_path / "open"
    folder.mkdir()
    folder.chmod(0o777)
    compiled, warned = outcome(start(folder))
    assert compiled >= 1
    assert warned == 1
    assert not list(folder.iterdir())


def test_a_folder_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    compiled, warned = outcome(start(tmp_path / "file" / "kernels"))
    assert compiled >= 1
    assert warned == 1


@pytest.mark.skipif(hasattr(os, "getuid") and os.getuid() == 0, reason="root writes everywhere")
def test_a_read_only_folder(tmp_path: Path) -> None:
    folder = tmp_path / "locked"
    folder.mkdir(mode=0o500)
    compiled, warned = outcome(start(folder))
    assert compiled >= 1
    assert warned == 1


def test_a_full_disk_warns_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(path: Path, data: bytes) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setenv("PYFINCH_CACHE_DIR", str(tmp_path))
    tmp_path.chmod(0o700)
    monkeypatch.setattr(cache, "_write", full)
    monkeypatch.setitem(cache._state, "warned", False)
    with pytest.warns(RuntimeWarning, match="No space left"):
        cache.store("key", "source", b"code")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        cache.store("key", "source", b"code")
    assert cache.load("key", "source") is None


def test_the_least_recently_used_goes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYFINCH_CACHE_DIR", str(tmp_path / "kernels"))
    monkeypatch.setattr(cache, "_LIMIT", 3000)
    for n, key in enumerate("abc"):
        cache.store(key, "source", b"x" * 900)
        os.utime(tmp_path / "kernels" / f"{key}.bin", (n, n))
    assert cache.load("a", "source") is not None  # used now
    cache.store("d", "source", b"x" * 900)
    assert cache.load("b", "source") is None
    assert cache.load("a", "source") is not None
    assert not (tmp_path / "kernels" / "b.py").exists()
    folder, count, size = cache.info()
    assert (folder, count) == (tmp_path / "kernels", 3)
    assert size < 3000
    assert cache.clear() == 3
    assert not list(folder.iterdir())
