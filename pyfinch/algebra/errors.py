"""The exceptions that pyfinch raises, all under one root."""

from __future__ import annotations

__all__ = [
    "BackendUnavailableError",
    "CrossCheckError",
    "DTypeError",
    "FormatError",
    "IndexBoundsError",
    "ParseError",
    "PyFinchError",
    "ScheduleError",
    "ShapeError",
]


class PyFinchError(Exception):
    """Root of every error that pyfinch raises on purpose."""


class FormatError(PyFinchError, ValueError):
    """A format descriptor, or the buffers given for one, are not valid."""


class ShapeError(PyFinchError, ValueError):
    """Shapes do not fit each other, or a shape is not one."""


class DTypeError(PyFinchError, TypeError):
    """A dtype is outside the supported set, or an operator does not take it."""


class IndexBoundsError(PyFinchError, IndexError):
    """An index or a coordinate lies outside its dimension."""


class ParseError(PyFinchError, ValueError):
    """Text does not follow its grammar."""


class ScheduleError(PyFinchError):
    """A scheduler pass met, or made, a program outside its grammar."""


class BackendUnavailableError(PyFinchError):
    """A backend cannot run here; the message says why and what would help."""


class CrossCheckError(PyFinchError):
    """Two backends gave different answers for one program."""
