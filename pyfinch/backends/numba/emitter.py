"""Collects the statements of a kernel as Python text, with fresh names and nested blocks."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["Emitter"]


class Emitter:
    """Lines of Python under construction; the current block is where lines go."""

    def __init__(self) -> None:
        self.prologue: list[str] = []
        self._lines: list[str] = []
        self._depth = 1
        self._taken: dict[str, int] = {}
        self._constants: dict[str, str] = {}

    def fresh(self, hint: str) -> str:
        """A name that nothing else has."""
        count = self._taken.get(hint, -1) + 1
        self._taken[hint] = count
        name = hint if count == 0 else f"{hint}_{count}"
        if count and name in self._taken:
            return self.fresh(hint)
        self._taken.setdefault(name, 0)
        return name

    def reserve(self, name: str) -> str:
        """Take a name as it is (an argument of the kernel)."""
        self._taken.setdefault(name, 0)
        return name

    def let(self, hint: str, expr: str) -> str:
        """Bind a fresh name to the expression; an expression that is a bare name is returned as it is."""
        if expr.isidentifier():
            return expr
        name = self.fresh(hint)
        self.line(f"{name} = {expr}")
        return name

    def line(self, text: str) -> None:
        """Append a statement to the current block."""
        self._lines.append("    " * self._depth + text)

    @contextmanager
    def block(self, header: str) -> Iterator[None]:
        """A compound statement: what is emitted inside is its body (``pass`` if nothing is)."""
        self.line(header)
        before = len(self._lines)
        self._depth += 1
        try:
            yield
        finally:
            if len(self._lines) == before:
                self.line("pass")
            self._depth -= 1

    def constant(self, hint: str, expr: str) -> str:
        """A name for a constant expression, bound once at the top of the kernel."""
        name = self._constants.get(expr)
        if name is None:
            name = self._constants[expr] = self.fresh(hint)
            self.prologue.append(f"    {name} = {expr}")
        return name

    def function(self, name: str, args: list[str]) -> ast.Module:
        """The finished function, as a module of Python's own syntax tree."""
        lines = [f"def {name}({', '.join(args)}):", *self.prologue, *self._lines]
        return ast.parse("\n".join(lines) + "\n")
