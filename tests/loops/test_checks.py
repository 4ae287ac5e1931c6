"""Each rule of the Loop language has its error; good programs pass."""

from __future__ import annotations

import numpy as np
import pytest

from pyfinch.algebra.errors import ScheduleError
from pyfinch.algebra.operators import get
from pyfinch.backends.numba.kernel import build
from pyfinch.loops import checks
from pyfinch.loops.checks import check
from pyfinch.loops.grammar import GRAMMAR, validate
from pyfinch.loops.nodes import (
    Access,
    Assign,
    Block,
    Call,
    Declare,
    Define,
    Freeze,
    Index,
    Literal,
    Loop,
    LoopNode,
    Value,
    Variable,
    Yield,
)
from pyfinch.loops.text import parse
from tests.loops.types import CSR, SPGEMM, TYPES, VECTOR

GOOD = (
    SPGEMM,
    "s .= 0.0; for i = _; s[] += A[i, i] end; @freeze(s); return s",
    "s .= 0.0; for i = 0:n - 1; s[] += 1.0 end; @freeze(s); @thaw(s); s[] = 2.0; @freeze(s); return s",
    "y .= 0.0; for i = _; if x[i] < 2.0; let t = x[i] + 1.0; y[i] = t * t end end end; @freeze(y); return y",
    "y .= 0.0; for j = _; for i = _; y[i] += A[j, i] end end; for i = _; y[i] *= 2.0 end; @freeze(y); return y",
    "R .= 0.0; for i = _; R[i, 0] = A[i, 2] end; @freeze(R); return (R, A)",
)

BAD = (
    ("UnboundError", "s .= 0.0; s[] = x[i]", "no loop binds the index i"),
    ("UnboundError", "s .= 0.0; for i = _; s[] = x[i] end; s[] = A[0, i]", "no loop binds the index i"),
    ("UnboundError", "y .= 0.0; y[i] = 1.0", "no loop binds the index i"),
    ("NameClashError", "y .= 0.0; for i = _; for i = _; y[i] = x[i] end end", "inside of a loop over i"),
    ("NameClashError", "s .= 0.0; for x = _; s[] = x[x] end", "x is the name of two things"),
    ("ConcordanceError", "s .= 0.0; for i = _; for j = _; s[] += A[j, i] end end", "outside of the one over j"),
    ("ConcordanceError", "R .= 0.0; for i = _; for j = _; R[j, i] += A[i, j] end end", "exchange the loops"),
    ("DeclarationError", "for i = _; y[i] = x[i] end", "y is written but not declared"),
    ("DeclarationError", "for i = _; W .= 0.0 end; for i = _; W[i] = x[i] end", "outside of the scope"),
    ("DeclarationError", "for i = _; s .= 0.0; @freeze(s) end; return s", "outside of the scope"),
    ("DeclarationError", "y .= 0.0; for i = _; s .= 0.0; @freeze(s) end; for i = _; y[i] = s[] end", "is read outside"),
    ("DeclarationError", "@freeze(y)", "no declaration of it is in scope"),
    ("DeclarationError", "y .= 1.0", "its type says 0.0"),
    ("ModeError", "y .= 0.0; for i = _; y[i] = y[i] + 1.0 end", "read while it is written"),
    ("ModeError", "y .= 0.0; @freeze(y); for i = _; y[i] = x[i] end", "thaw it first"),
    ("ModeError", "y .= 0.0; @freeze(y); @freeze(y)", "frozen already"),
    ("ModeError", "y .= 0.0; @thaw(y)", "written already"),
    ("ModeError", "y .= 0.0; y .= 0.0", "declared again"),
    ("ModeError", "y .= 0.0; return y", "freeze it first"),
    ("ModeError", "y .= 0.0; for i = _; y[i] = x[i]; @freeze(y) end; return y", "many times or never"),
    ("RankError", "s .= 0.0; for i = _; s[] += A[i] end", "1 indices, but A has 2 modes"),
    ("RankError", "s .= 0.0; for i = _; s[i] += x[i] end", "1 indices, but s has 0 modes"),
    ("RankError", "s .= 0.0; s[] = x", "stands where a number belongs"),
    ("OperatorError", "s .= 0.0; if n + 1; s[] = 1.0 end", "a condition is bool"),
    ("OperatorError", "s .= 0", "cannot start as 0"),
    ("OperatorError", "s .= 0.0; for i = 0:2.5 - 1; s[] = 1.0 end", "a loop's extent is an integer"),
    ("OperatorError", "s .= 0.0; s[] = x[0.5]", "an index is an integer"),
    ("OperatorError", "s .= 0.0; s[] = x[-1]", "an index is an integer from 0"),
    ("OperatorError", "s .= 0.0; for i = _; s[] <<xor>>= x[i] end", "does not take"),
)


@pytest.mark.parametrize("text", GOOD)
def test_good_programs_pass(text: str) -> None:
    program = parse(text, TYPES)
    check(program)
    validate(program)


@pytest.mark.parametrize(("error", "text", "message"), BAD, ids=[text for _, text, _ in BAD])
def test_bad_programs_do_not(error: str, text: str, message: str) -> None:
    if text.startswith("s .= 0.0; for i = 0:2.5"):
        size = Literal(np.float64(2.5))
        s = Variable("s", TYPES["s"])
        program: LoopNode = Block((Declare(s, Literal(np.float64(0))), Loop(Index("i"), size, Freeze(s))))
    else:
        program = parse(text, TYPES)
    with pytest.raises(getattr(checks, error), match=message):
        check(program)


def test_what_text_cannot_say() -> None:
    s, x = Variable("s", TYPES["s"]), Access(Variable("x", VECTOR), (Literal(np.int64(0)),))
    start = Declare(s, Literal(np.float64(0)))
    f8 = np.dtype("float64")

    def program(value: LoopNode) -> Block:
        return Block((start, Assign(Access(s, ()), get("+"), value)))

    with pytest.raises(checks.OperatorError, match="takes 1 argument"):
        check(program(Call(get("sin"), (x, x), f8)))
    with pytest.raises(checks.OperatorError, match="is float64, not float32"):
        check(program(Call(get("*"), (x, x), np.dtype("float32"))))
    with pytest.raises(checks.OperatorError, match="bitwise_and does not take"):
        check(program(Call(get("&"), (x, x), f8)))
    with pytest.raises(checks.UnboundError, match="no let binds the scalar t"):
        check(program(Variable("t", f8)))
    with pytest.raises(checks.NameClashError, match="x is the name of two things"):
        check(program(Call(get("*"), (x, Access(Variable("x", CSR), (Literal(np.int64(0)),) * 2)), f8)))
    with pytest.raises(checks.NameClashError, match="x is the name of two things"):
        check(program(Call(get("*"), (x, Value("x", f8)), f8)))
    with pytest.raises(checks.OperatorError, match="t is a scalar of int64, but"):
        check(Define(Variable("t", np.dtype("int64")), x, Block(())))
    with pytest.raises(checks.DeclarationError, match="returns tensors"):
        check(Yield((x,)))
    with pytest.raises(checks.LoopError, match="is not a statement"):
        check(Block((x,)))


def test_a_kernel_is_built_of_a_checked_program_only() -> None:
    program = parse("y .= 0.0; for j = _; for i = _; y[i] += A[i, j] end end; @freeze(y); return y", TYPES)
    with pytest.raises(checks.ConcordanceError):
        build(program)  # type: ignore[arg-type]
    assert issubclass(checks.LoopError, ScheduleError)


def test_grammar_names_the_node() -> None:
    assert set(GRAMMAR) == {"raw", "kernel"}
    i = Index("i")
    for bad in (
        Block((i,)),
        Loop(i, None, i),
        Access(Variable("x", np.dtype("float64")), (i,)),  # type: ignore[arg-type]
        Freeze(Variable("x", np.dtype("float64"))),
        Declare(Variable("x", VECTOR), Block(())),
    ):
        with pytest.raises(ScheduleError, match=r"no rule allows|is no program"):
            validate(bad)
    shifted = parse("s .= 0.0; for i = _; s[] += x[i + 1] end", TYPES)
    validate(shifted)
    with pytest.raises(ScheduleError, match="no rule allows"):
        validate(shifted, "kernel")
    with pytest.raises(ScheduleError, match="is no program"):
        validate(i)


def test_checks_are_linear_in_shared_expressions() -> None:
    x: LoopNode = Access(Variable("x", VECTOR), (Literal(np.int64(0)),))
    for _ in range(200):
        x = Call(get("*"), (x, x), np.dtype("float64"))
    s = Variable("s", TYPES["s"])
    program = Block((Declare(s, Literal(np.float64(0))), Assign(Access(s, ()), get("+"), x)))
    check(program)
    validate(program)
