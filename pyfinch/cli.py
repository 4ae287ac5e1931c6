"""The command line: ``python -m pyfinch demo | cache info|clear|path | julia … | difftest …``."""

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
    julia = commands.add_parser("julia", help="Julia and Finch.jl: what there is, how long it takes, compile it")
    julia.add_argument("action", choices=["status", "warmup", "precompile"])
    from pyfinch.difftest.main import add_arguments

    difftest = commands.add_parser("difftest", help="random programs on several executors, all compared")
    add_arguments(difftest)
    chosen = parser.parse_args(argv)
    if chosen.command == "demo":
        from pyfinch import demo

        return demo.main()
    if chosen.command == "julia":
        from pyfinch.backends.finchjl import environment

        return environment.main(chosen.action)
    if chosen.command == "difftest":
        from pyfinch.difftest import main as differential

        return differential.main(chosen)
    match chosen.action:
        case "info":
            path, count, size = cache.info()
            print(f"{count} kernels, {size / 2**20:.1f} MiB, in {path}")
        case "clear":
            print(f"deleted {cache.clear()} kernels")
        case _:
            print(cache.folder())
    return 0
