"""The command line: ``python -m pyfinch demo | cache info | cache clear | cache path``."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from pyfinch.backends.numba import cache

__all__ = ["main"]


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command; the exit code."""
    parser = argparse.ArgumentParser(prog="python -m pyfinch", description="Sparse tensors, compiled.")
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("demo", help="real work on real data, checked against SciPy and timed beside it")
    stored = commands.add_parser("cache", help="the kernels that are kept on disk")
    stored.add_argument("action", choices=["info", "clear", "path"])
    chosen = parser.parse_args(argv)
    if chosen.command == "demo":
        from pyfinch import demo

        return demo.main()
    match chosen.action:
        case "info":
            path, count, size = cache.info()
            print(f"{count} kernels, {size / 2**20:.1f} MiB, in {path}")
        case "clear":
            print(f"deleted {cache.clear()} kernels")
        case _:
            print(cache.folder())
    return 0
