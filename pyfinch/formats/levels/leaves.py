"""The leaves: values, and presence alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from pyfinch.algebra.dtypes import DT
from pyfinch.algebra.errors import FormatError
from pyfinch.algebra.values import as_scalar, value_key
from pyfinch.formats.levels.base import Buffer, LevelCode, check_length
from pyfinch.looplets import Fiber

__all__ = ["Element", "Pattern", "fill_text"]


def fill_text(value: Any) -> str:
    """A fill value as format text has it; exact."""
    scalar = np.asarray(value)
    match scalar.dtype.kind:
        case "f":
            return repr(float(scalar))
        case "c":
            return repr(complex(scalar))
    return repr(scalar.item())


@dataclass(frozen=True, slots=True, eq=False)
class Element(LevelCode):
    """Values. `fill` is None where it is left open, or known at run time only; two nans are one fill."""

    fill: Any = None
    dtype: DT | None = None

    def __post_init__(self) -> None:
        if self.fill is not None:
            fill = as_scalar(self.fill, self.dtype)
            object.__setattr__(self, "fill", fill)
            object.__setattr__(self, "dtype", np.asarray(fill).dtype)

    def _key(self) -> tuple[Any, ...]:
        return self.dtype, None if self.fill is None else value_key(self.fill)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Element) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(("element", self._key()))

    @property
    def modes(self) -> int:
        return 0

    @property
    def appends(self) -> bool:
        return False

    @property
    def buffer_names(self) -> tuple[str, ...]:
        return ("val",)

    @property
    def buffer_dtypes(self) -> tuple[DT | None, ...]:
        return (self.dtype,)

    def text(self, child: str = "") -> str:
        """Format text."""
        parts = [] if self.fill is None else [fill_text(self.fill)]
        parts += [] if self.dtype is None else [self.dtype.name]
        return f"element({', '.join(parts)})"

    def validate(self, buffers: tuple[Buffer, ...], dims: tuple[int, ...], npos: int, where: str) -> int:
        """Check the number of values; see `Level.validate`."""
        check_length(buffers[0], npos, f"{where}: val")
        if buffers[0].dtype.kind == "b" and npos and buffers[0].view(np.uint8).max() > 1:
            raise FormatError(f"{where}: val holds bytes other than 0 and 1")
        return npos

    def load(self, fiber: Fiber) -> str:
        """The value at a position."""
        return f"{fiber.tensor}_val[uintp({fiber.pos})]"


@dataclass(frozen=True, slots=True)
class Pattern(LevelCode):
    """No values: what is present is True, the fill is False."""

    @property
    def fill(self) -> Any:
        return np.False_

    @property
    def dtype(self) -> DT:
        return np.dtype(np.bool_)

    @property
    def modes(self) -> int:
        return 0

    @property
    def appends(self) -> bool:
        return False

    @property
    def buffer_names(self) -> tuple[str, ...]:
        return ()

    @property
    def buffer_dtypes(self) -> tuple[DT | None, ...]:
        return ()

    def text(self, child: str = "") -> str:
        """Format text."""
        return "pattern()"

    def validate(self, buffers: tuple[Buffer, ...], dims: tuple[int, ...], npos: int, where: str) -> int:
        """Nothing can be wrong here; see `Level.validate`."""
        return npos

    def load(self, fiber: Fiber) -> str:
        """Presence is the value."""
        return "True"
