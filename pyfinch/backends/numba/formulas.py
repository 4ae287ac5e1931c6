"""What is left of a support formula where some operands are known to be present or absent, and its text."""

from __future__ import annotations

from pyfinch.looplets import Fiber
from pyfinch.loops.simplify import Formula

__all__ = ["alone", "given", "text_of", "without"]


def given(formula: Formula, present: list[Fiber]) -> Formula:
    """The formula when some operands are known to be present."""
    return assume(formula, dict.fromkeys(present, True))


def without(formula: Formula, absent: Fiber) -> Formula:
    """The formula when an operand is known to be absent."""
    return assume(formula, {absent: False})


def alone(formula: Formula, fibers: list[Fiber]) -> Formula:
    """The formula when at least one operand is present: True if any one of them is enough."""
    alone = [assume(formula, {other: other is fiber for other in fibers}) for fiber in fibers]
    return True if all(one is True for one in alone) else formula


def assume(formula: Formula, known: dict[Fiber, bool]) -> Formula:
    match formula:
        case bool():
            return formula
        case ("and", parts):
            kept = [part for part in (assume(part, known) for part in parts) if part is not True]
            if any(part is False for part in kept):
                return False
            return True if not kept else kept[0] if len(kept) == 1 else ("and", tuple(kept))
        case ("or", parts):
            kept = [part for part in (assume(part, known) for part in parts) if part is not False]
            if any(part is True for part in kept):
                return True
            return False if not kept else kept[0] if len(kept) == 1 else ("or", tuple(kept))
        case Fiber() as key:
            return known.get(key, key)
    raise AssertionError(formula)


def text_of(formula: Formula, names: dict[Fiber, str]) -> str:
    match formula:
        case ("and" | "or" as word, parts):
            return "(" + f" {word} ".join(text_of(part, names) for part in parts) + ")"
        case Fiber() as key:
            return names[key]
        case _:
            return str(formula)
