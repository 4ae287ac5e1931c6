"""Kernels on disk: a readable source file and a file of machine code for each, in the user's cache folder.

Files appear by atomic rename, so that processes may race; a file is used only if the hash over its contents holds
and it was built from the very source at hand. Whatever goes wrong with the disk degrades to memory, with one warning.
"""

from __future__ import annotations

import hashlib
import os
import stat
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import platformdirs

__all__ = ["clear", "folder", "info", "load", "store"]

_MAGIC = b"pyfinch-kernel-1"
_HASH = 32
_LIMIT = 512 * 2**20  # bytes, all kernels together

_state: dict[str, bool] = {"warned": False}


def folder() -> Path:
    """The folder that kernels are kept in; ``PYFINCH_CACHE_DIR`` overrides the user's cache folder."""
    base = os.environ.get("PYFINCH_CACHE_DIR")
    return Path(base) if base else Path(platformdirs.user_cache_dir("pyfinch")) / "kernels"


def _warn(reason: str) -> None:
    if not _state["warned"]:
        _state["warned"] = True
        warnings.warn(
            f"pyfinch keeps compiled kernels in memory only: {reason}. Set PYFINCH_CACHE_DIR to a folder of yours.",
            RuntimeWarning,
            stacklevel=3,
        )


def _own_folder() -> Path | None:
    """The folder, made if need be; None unless it belongs to the user and nobody else can write there."""
    path = folder()
    try:
        path.mkdir(parents=True, exist_ok=True, mode=0o700)
        about = path.stat()
    except OSError as error:
        _warn(f"{path} cannot be used ({error.strerror})")
        return None
    if hasattr(os, "getuid") and (about.st_uid != os.getuid() or about.st_mode & (stat.S_IWGRP | stat.S_IWOTH)):
        _warn(f"{path} belongs to somebody else or is writable by others")
        return None
    return path


def load(key: str, source: str) -> bytes | None:
    """The machine code stored under a key for exactly this source, or None."""
    path = folder() / f"{key}.bin"
    try:
        about = path.lstat()
        if hasattr(os, "getuid") and about.st_uid != os.getuid():
            return None
        data = path.read_bytes()
    except OSError:
        return None
    head = len(_MAGIC) + _HASH
    payload = data[head:]
    if data[: len(_MAGIC)] != _MAGIC or hashlib.sha256(payload).digest() != data[len(_MAGIC) : head]:
        return None
    if payload[:_HASH] != hashlib.sha256(source.encode()).digest():
        return None
    with suppress(OSError):
        os.utime(path)  # so that the least recently used goes first
    return payload[_HASH:]


def store(key: str, source: str, code: bytes) -> None:
    """Keep a kernel; quietly do without if the disk is full or read-only, after one warning."""
    path = _own_folder()
    if path is None:
        return
    payload = hashlib.sha256(source.encode()).digest() + code
    try:
        _write(path / f"{key}.py", source.encode())
        _write(path / f"{key}.bin", _MAGIC + hashlib.sha256(payload).digest() + payload)
        _bound(path)
    except OSError as error:
        _warn(f"{path} cannot be written ({error.strerror})")


def _write(path: Path, data: bytes) -> None:
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=".new-")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        os.replace(name, path)
    except BaseException:
        with suppress(OSError):
            os.unlink(name)
        raise


def _files(path: Path) -> Iterator[tuple[float, int, Path]]:
    """Time of last use, size and path of each file of machine code."""
    with suppress(OSError):
        for file in path.iterdir():
            with suppress(OSError):
                if file.suffix == ".bin":
                    about = file.stat()
                    yield about.st_mtime, about.st_size, file


def _bound(path: Path) -> None:
    """Delete what was not used for longest until all fits the limit."""
    files = sorted(_files(path))
    total = sum(size for _, size, _ in files)
    for _, size, file in files:
        if total <= _LIMIT:
            return
        total -= size
        for suffix in (".bin", ".py"):
            with suppress(OSError):
                file.with_suffix(suffix).unlink()


def info() -> tuple[Path, int, int]:
    """The folder, the number of kernels in it, and their size in bytes."""
    files = list(_files(folder()))
    return folder(), len(files), sum(size for _, size, _ in files)


def clear() -> int:
    """Delete all stored kernels; how many there were."""
    count = 0
    for _, _, file in list(_files(folder())):
        count += 1
        for suffix in (".bin", ".py"):
            with suppress(OSError):
                file.with_suffix(suffix).unlink()
    return count
