"""The text form: exact round trips, and errors where text is wrong."""

from __future__ import annotations

import numpy as np
import pytest

from pyfinch.algebra.errors import DTypeError, ParseError
from pyfinch.algebra.operators import all_operators, cast, choose, get, initwrite, operator
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
    Sieve,
    Thaw,
    Value,
    Variable,
    Yield,
)
from pyfinch.loops.simplify import dtype_of
from pyfinch.loops.text import bindings_of, parse
from tests.loops.types import CSR, SPGEMM, TYPES, VECTOR

i, j = Index("i"), Index("j")
F8 = np.dtype("float64")
A = Variable("A", CSR)
S = Variable("s", TYPES["s"])


def again(node: LoopNode) -> bool:
    """Whether a node's text gives the very node."""
    return parse(str(node), bindings_of(node)) is node


def in_assignment(text: str) -> Assign:
    made = parse(f"s[] = {text}", TYPES)
    assert isinstance(made, Assign)
    return made


def call(name: str, *args: LoopNode) -> Call:
    op = get(name, len(args))
    return Call(op, args, op.result_dtype(*map(dtype_of, args)))


def test_text_is_what_was_read() -> None:
    program = parse(SPGEMM, TYPES)
    assert str(program) == SPGEMM
    assert again(program)


@pytest.mark.parametrize(
    "value",
    [
        np.float64(0.5),
        np.float64(-0.0),
        np.float64("nan"),
        np.float64("-inf"),
        np.float64(1e-310),
        np.float32(0.1),
        np.float32("inf"),
        np.float32(1.1754944e-38),
        np.int64(-(2**63)),
        np.int64(7),
        np.int8(-128),
        np.uint64(2**64 - 1),
        np.uint8(3),
        np.bool_(True),
        np.bool_(False),
        np.complex64(complex(1.5, -0.0)),
        np.complex128(complex("nan+infj")),
    ],
)
def test_literals_keep_dtype_and_bits(value: np.generic) -> None:
    node = Assign(Access(S, ()), get("overwrite"), Literal(value))
    assert again(node)
    assert again(Assign(Access(S, ()), get("overwrite"), Call(get("+"), (Literal(value), Literal(value)), value.dtype)))


def test_random_floats_come_back() -> None:
    values = np.random.default_rng(0).integers(0, 2**32, 2000, dtype=np.uint64).astype(np.uint32).view(np.float32)
    for value in values:
        assert again(Declare(Variable("r", TYPES["s"]), Literal(value)))


@pytest.mark.parametrize(
    "text",
    [
        "n + n + n",
        "(n + n) + n",
        "n + (n + n)",
        "n - (n - n)",
        "(n - n) - n",
        "n - n * n",
        "(n - n) * n",
        "(n < n) == (n > n)",
        "(n & n) & n",
        "&(n, n, n)",
        "(-2) ^ n",
        "n ^ (n ^ n)",
        "(n ^ n) ^ n",
        "-(n)",
        "-(2)",
        "n - (-2)",
        "+(n)",
        "*(n)",
        "max(n, n, h)",
        "ifelse(n == 0, A[0, 1], NaN)",
        "Float32(n)",
        "cast(float32)(0.5)",
        "initwrite(0.0)(A[0, 0], 2.0)",
        "choose(Int8(3))(h, h)",
        "known_fill(-Inf)(A[0, 0])",
        "!(n == 1)",
        "~(n)",
        "xor(n, h)",
        "n << 2",
        "and(n, h)",
    ],
)
def test_expressions_print_as_read(text: str) -> None:
    node = in_assignment(text)
    assert str(node) == f"s[] = {text}"
    assert again(node)


def test_precedence_and_grouping_are_julias() -> None:
    n = Value("n", np.dtype("int64"))
    assert in_assignment("n + n * n").rhs is call("+", n, call("*", n, n))
    assert in_assignment("n - n - n").rhs is call("-", call("-", n, n), n)
    assert in_assignment("n ^ n ^ n").rhs is call("^", n, call("^", n, n))
    assert in_assignment("n + n - n + n").rhs is call("+", call("-", call("+", n, n), n), n)
    assert in_assignment("n + n < n * 2").rhs is call("<", call("+", n, n), call("*", n, Literal(np.int64(2))))
    assert in_assignment("-n * n").rhs is call("*", call("-", n), n)


def test_dtypes_of_calls_are_recomputed() -> None:
    assert in_assignment("h + h").rhs.dtype == np.int8
    assert in_assignment("h / h").rhs.dtype == np.float64
    assert in_assignment("n < 3").rhs.dtype == np.bool_


@pytest.mark.parametrize("op", all_operators(), ids=lambda op: op.name)
def test_every_operator_comes_back(op) -> None:  # type: ignore[no-untyped-def]
    arity = 2 if op.arity == -1 else op.arity
    for dtype in ("float64", "int64", "bool"):
        try:
            result = op.result_dtype(*[dtype] * arity)
        except DTypeError:
            continue
        args = tuple(Value(f"v{k}", np.dtype(dtype)) for k in range(arity))
        node = Call(op, args, result)
        assert again(Assign(Access(S, ()), get("min"), node))
        if arity == 2:
            assert again(Assign(Access(S, ()), op, args[0]))
            assert again(Assign(Access(S, ()), get("+"), Call(op, (node, args[1]), op.result_dtype(result, dtype))))


def test_operators_with_values() -> None:
    x = Access(A, (i, j))
    for op in (initwrite(np.float64("nan")), choose(0.0)):
        assert again(Assign(Access(S, ()), op, Call(op, (x, x), F8)))
    assert again(Assign(Access(S, ()), get("+"), Call(cast("int8"), (x,), np.dtype("int8"))))


def test_user_operators_are_bound_by_name() -> None:
    @operator
    def damped(a, b):  # type: ignore[no-untyped-def]
        return a / (1.0 + b)

    x = Access(A, (i, j))
    node = Assign(Access(S, ()), damped, Call(damped, (x, x), F8))
    assert str(node) == "s[] <<damped>>= damped(A[i, j], A[i, j])"
    assert bindings_of(node)["damped"] is damped
    assert again(node)
    twin = operator(lambda a, b: a + 2.0 * b, name="max")
    both = Assign(Access(S, ()), get("max"), Call(twin, (x, call("max", x, x)), F8))
    assert "max_2(A[i, j], max(A[i, j], A[i, j]))" in str(both)
    assert again(both)


def test_statements() -> None:
    t = Variable("t", F8)
    step = Assign(Access(S, ()), get("+"), call("*", t, t))
    program = Block(
        (
            Declare(S, Literal(np.float64(0))),
            Loop(
                i,
                Value("n", np.dtype("int64")),
                Sieve(call("<", i, Literal(np.int64(3))), Define(t, Access(Variable("y", VECTOR), (i,)), step)),
            ),
            Freeze(S),
            Thaw(S),
            Loop(i, Literal(np.int64(4)), Assign(Access(S, ()), get("overwrite"), Literal(np.float64(1)))),
            Yield((S, A)),
        )
    )
    assert str(program) == (
        "s .= 0.0\n"
        "for i = 0:n - 1\n"
        "    if i < 3\n"
        "        let t = y[i]\n"
        "            s[] += t * t\n"
        "        end\n"
        "    end\n"
        "end\n"
        "@freeze(s)\n"
        "@thaw(s)\n"
        "for i = 0:3\n"
        "    s[] = 1.0\n"
        "end\n"
        "return (s, A)"
    )
    assert again(program)


@pytest.mark.parametrize("size", [0, 1, 2])
def test_blocks_in_bodies_keep_their_shape(size: int) -> None:
    part = Freeze(S)
    inner = Block((part,) * size)
    for body in (inner, Block((inner,)), Block((inner, part)), Block((part, inner, Block((inner,))))):
        assert again(Loop(i, None, body))
        assert again(body)


def test_names_that_julia_would_not_take_are_quoted() -> None:
    for name in ("end", "a b", 'q"\\', "_1", "cast", "NaN", "x!", "größe"):
        tensor, index = Variable(name, VECTOR), Index(f"{name}_")
        node = Loop(index, None, Assign(Access(S, ()), get("+"), Access(tensor, (index,))))
        assert again(node)
    assert 'var"end"[i]' in str(Assign(Access(S, ()), get("+"), Access(Variable("end", VECTOR), (i,))))


def test_shared_parts_are_abbreviated() -> None:
    x: LoopNode = Access(A, (i, j))
    for _ in range(60):
        x = call("*", x, x)
    node = Loop(i, None, Assign(Access(S, ()), get("+"), x))
    assert len(str(node)) < 4000
    assert "let _1 = A[i, j] * A[i, j]" in str(node)
    assert again(node)
    assert again(Sieve(call("<", x, x), Block((node, Assign(Access(S, ()), get("+"), Index("_1"))))))


def test_long_chains_need_no_recursion() -> None:
    x: LoopNode = Access(A, (i, j))
    for k in range(5000):
        x = call("-", Literal(np.float64(k)), x) if k % 2 else call("sin", x)
    assert again(Assign(Access(S, ()), get("+"), x))


def test_names_mean_the_innermost_binding() -> None:
    program = parse("for h = _; let t = y[h]; let t = t + 1.0; s[] += t; end; end; end", TYPES)
    assert isinstance(program, Loop)
    inner = program.body.body
    assert program.index is Index("h")
    assert inner.rhs is call("+", Variable("t", F8), Literal(np.float64(1)))
    assert str(program).count("t") > 3


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("s[] = ", "expected an expression"),
        ("s[] = (1", "expected '\\)'"),
        ("s[] = 1 2", "unexpected '2'"),
        ("for i = _; s[] = 1.0", "1 'end' missing"),
        ("s[] = 1.0; end", "an 'end' too many"),
        ("q[] = 1.0", "q is not a tensor"),
        ("s[] = frob(1)", "no operator is called 'frob'"),
        ("s[] <<frob>>= 1", "no operator is called 'frob'"),
        ("s[] = sin(1.0, 2.0)", "sin takes 1 argument"),
        ("for i = 1:n; s[] = 1.0 end", "starts at 0"),
        ("for i = 0:n; s[] = 1.0 end", "an extent minus 1"),
        ("s 1.0", "expected '\\['"),
        ("s[] ? 1.0", "cannot read"),
        ("s[] = 99999999999999999999", "does not fit int64"),
        ("s[] = Int8(300)", "no literal"),
        ("s[] = (1, 2)", "one expression"),
        ("s[] = 1.0\nreturn s s", "line 2"),
    ],
)
def test_wrong_text(text: str, message: str) -> None:
    with pytest.raises(ParseError, match=message):
        parse(text, TYPES)


def test_dtype_errors_come_through() -> None:
    with pytest.raises(DTypeError, match="bitwise_and"):
        parse("s[] = A[0, 0] & A[0, 0]", TYPES)
