"""Every law that the operator table declares, by brute force."""

from __future__ import annotations

import copy
import itertools
import pickle

import numpy as np
import pytest

from pyfinch.algebra import operators as ops
from pyfinch.algebra.dtypes import SUPPORTED_DTYPES, check_dtype, from_julia_name, julia_name
from pyfinch.algebra.errors import DTypeError, PyFinchError
from pyfinch.algebra.values import as_scalar, is_special, literal, same_value, value_key
from tests.algebra.test_operators import emitted

STANDARD = frozenset(
    """abs acos acosh add asin asinh atan atan2 atanh bitwise_and bitwise_left_shift bitwise_invert
    bitwise_or bitwise_right_shift bitwise_xor ceil clip conj copysign cos cosh divide equal
    exp expm1 floor floor_divide greater greater_equal hypot imag isfinite isinf isnan less
    less_equal log log1p log2 log10 logaddexp logical_and logical_not logical_or logical_xor
    maximum minimum multiply negative nextafter not_equal positive pow real reciprocal
    remainder round sign signbit sin sinh square sqrt subtract tan tanh trunc
    """.split()  # noqa: SIM905
)
CARRIERS = (ops.initwrite(0.0), ops.initwrite(np.nan), ops.choose(0.0), ops.choose(False), ops.choose(7))
BINARY = [op for op in (*ops.all_operators(), *CARRIERS) if op.arity in (2, -1)]


def values(dtype, law="any"):
    if dtype.kind == "b":
        return np.array([False, True])
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        ends = [] if law == "distributes" else [info.min, info.max]
        return np.array([0, 1, 2, 3, 5, *ends] + ([-1, -2] if dtype.kind == "i" else []), dtype=dtype)
    if dtype.kind == "c":
        return np.array([0, 1, 1j, -2 + 0.5j, 3 - 1j], dtype=dtype)
    infinite = [] if law in ("associative", "distributes") else [np.inf, -np.inf]
    return np.array([0.0, 1.0, -1.0, 0.5, -2.25, 3.0, *infinite], dtype=dtype)


def taken(op):
    for dtype in SUPPORTED_DTYPES:
        try:
            if op.result_dtype(dtype, dtype) in (dtype, np.dtype(bool)):
                yield dtype
        except DTypeError:
            pass


def close(a, b):
    return np.allclose(a, b, rtol=1e-5, atol=1e-5, equal_nan=True)


def grid(dtype, n, law="any"):
    return np.meshgrid(*[values(dtype, law)] * n, indexing="ij")


@pytest.mark.parametrize("op", BINARY, ids=repr)
def test_declared_laws_hold(op):
    for dtype in taken(op):
        a, b = grid(dtype, 2)
        if op.commutative:
            assert np.array_equal(op(a, b), op(b, a), equal_nan=dtype.kind in "fc")
        if op.idempotent:
            x = values(dtype)
            assert np.array_equal(op(op(b, x[0]), x[0]), op(b, x[0]))
            once = op(a, b)
            assert np.array_equal(op(once.astype(dtype), b), once)
        if op.associative:
            x, y, z = grid(dtype, 3, "associative")
            assert close(op(op(x, y).astype(dtype), z), op(x, op(y, z).astype(dtype))), dtype


@pytest.mark.parametrize("op", BINARY, ids=repr)
def test_identities_and_annihilators_hold(op):
    for dtype in taken(op):
        x = values(dtype)
        e, z, right = op.identity(dtype), op.annihilator(dtype), op.right_identity(dtype)
        if e is not None:
            assert e.dtype == dtype and op.is_identity(e)
            assert np.array_equal(op(e, x), x) and np.array_equal(op(x, e), x)
        if right is not None and op.name not in ("floor_divide",):
            assert close(op(x, right), x)
        if z is not None:
            assert z.dtype == dtype and op.is_annihilator(z)
            # 0 * inf, inf - inf: skipped, as every sparse library does
            x = x[np.isfinite(x)]
            assert np.array_equal(op(z, x), np.full(x.shape, z).astype(op(z, x).dtype)), (dtype, z)
            assert np.array_equal(op(x, z), op(z, x))


def test_distributive_laws_hold():
    pairs = [(f, g) for f, g in itertools.product(BINARY, BINARY) if f.distributes_over(g)]
    assert (ops.get("*"), ops.get("+")) in pairs and (ops.get("+"), ops.get("min")) in pairs
    for f, g in pairs:
        for dtype in set(taken(f)) & set(taken(g)):
            a, b, c = grid(dtype, 3, "distributes")
            assert close(f(a, g(b, c)), g(f(a, b), f(a, c))), (f, g, dtype)
            assert close(f(g(b, c), a), g(f(b, a), f(c, a))), (f, g, dtype)


@pytest.mark.parametrize("op", [op for op in BINARY if op.repeat is not None], ids=repr)
def test_repeat_law_equals_the_fold(op):
    for dtype in taken(op):
        start, x = grid(dtype, 2, "associative")
        folded = start
        for n in range(1, 5):
            folded = np.asarray(op(folded, x)).astype(dtype)
            once = x if op.repeat == "idempotent" else op.repeat(x, op.count_dtype(dtype).type(n)).astype(dtype)
            assert close(folded, np.asarray(op(start, once)).astype(dtype)), (dtype, n)


def test_the_table_has_every_function_of_the_standard():
    names = {op.name for op in ops.all_operators()}
    assert names >= STANDARD
    assert len({(op.symbol, op.arity) for op in ops.all_operators()}) == len(ops.all_operators())


def test_identity_depends_on_the_dtype():
    low = ops.get("minimum")
    assert low.identity("int8") == 127 and low.identity("uint64") == 2**64 - 1 and low.identity("float32") == np.inf
    assert ops.get("multiply").annihilator("float64") == 0.0
    assert ops.get("add").annihilator("int64") is None
    assert ops.get("add").is_annihilator(np.float64(-np.inf))
    assert not ops.get("add").is_annihilator(np.int64(3))


def test_finch_knows_less_and_other_things():
    add, mul, low = ops.get("+"), ops.get("*"), ops.get("min")
    assert mul.finch.distributes_over(add) and not add.finch.distributes_over(low)
    assert ops.get("&").finch.distributes_over(ops.get("|")) and not ops.get("and").finch.distributes_over(
        ops.get("or")
    )
    assert add.finch.is_annihilator(np.inf) and mul.finch.is_annihilator(0) and low.finch.is_identity(np.inf)
    assert not low.finch.is_identity(np.int64(2**63 - 1))
    assert ops.initwrite(2.0).finch.is_identity(2.0) and not ops.get("sqrt").finch.associative
    assert ops.choose(True).finch.distributes_over(ops.get("&"))
    assert not ops.choose(False).finch.distributes_over(ops.get("&"))
    assert ops.get("|").finch.distributes_over(ops.choose(False))


def test_operators_are_found_by_every_name_and_are_singletons():
    for op in ops.all_operators():
        assert ops.get(op.name) is op and ops.get(op.symbol, op.arity) is op
        assert pickle.loads(pickle.dumps(op)) is op and copy.deepcopy(op) is op
    assert ops.get("-").arity == 2 and ops.get("-", 1) is ops.get("negative") and ops.get("arccos") is ops.get("acos")
    for op in (*CARRIERS, ops.cast("int8")):
        assert pickle.loads(pickle.dumps(op)) is op
    assert ops.initwrite(0) is not ops.initwrite(0.0) and ops.initwrite(-0.0) is not ops.initwrite(0.0)
    assert ops.get("cast(float32)") is ops.cast(np.float32)
    with pytest.raises(PyFinchError, match="no operator 'addd'"):
        ops.get("addd")


def test_refused_dtypes_name_the_operator():
    with pytest.raises(DTypeError, match=r"bitwise_and does not take \(float64, float64\)"):
        ops.get("&").result_dtype("float64", "float64")
    with pytest.raises(DTypeError, match=r"less .*real"):
        ops.get("less")(1j, 2j)
    with pytest.raises(DTypeError, match="float16"):
        ops.get("add")(np.float16(1), 1)
    with pytest.raises(DTypeError):
        ops.get("subtract")(True, False)
    with pytest.raises(TypeError, match="takes 2"):
        ops.get("divide")(1)


def test_result_dtypes_follow_numpy():
    assert ops.get("add").result_dtype("int64", "uint64") == np.float64
    assert ops.get("divide").result_dtype("int8", "int8") == np.float64
    assert ops.get("sqrt").result_dtype("int8") == np.float32  # NumPy: float16, which is not supported
    assert ops.get("abs").result_dtype("complex64") == np.float32
    assert ops.get("add").result_dtype("bool", "int8", "float32") == np.float32
    assert ops.get("equal").operand_dtypes("int64", "uint64") == (np.dtype("int64"), np.dtype("uint64"))
    assert ops.get("where").operand_dtypes("int8", "int8", "float32")[0] == np.bool_
    assert ops.get("equal")(np.int64(2**53 + 1), np.uint64(2**53)) == np.False_


@pytest.mark.parametrize("op", CARRIERS, ids=repr)
@pytest.mark.parametrize("compiled", [False, True])
def test_choosers_templates_equal_their_calls(op, compiled):
    for dtype in (np.dtype("float64"), np.dtype("int64"), np.dtype("bool")):
        f = emitted(op, (dtype, dtype), compiled)
        for a, b in itertools.product([*values(dtype), *([dtype.type("nan")] if dtype.kind == "f" else [])], repeat=2):
            assert np.array_equal(f(a, b), op(a, b), equal_nan=True)


def test_casts_compiled_by_numba_equal_astype():
    for to, given in itertools.product(
        ("int8", "uint64", "float32", "bool", "complex64"), ("float64", "int64", "complex128")
    ):
        f = emitted(ops.cast(to), (np.dtype(given),), compiled=True)
        for x in np.array([0, 1, 2.5, 100], dtype=given):
            assert f(x) == ops.cast(to)(x)


@pytest.mark.parametrize("to", SUPPORTED_DTYPES, ids=str)
def test_casts_equal_astype(to):
    op = ops.cast(to)
    for dtype in SUPPORTED_DTYPES:
        f = emitted(op, (dtype,))
        for x in np.array([0, 1, 2, 100], dtype=dtype):
            assert same_value(f(x), op(x)) and op(x).dtype == to
        if dtype.kind == "f":
            assert np.asarray(f(dtype.type("nan"))).dtype == to  # no exception


def test_choosers():
    assert ops.get("overwrite")(1, 2) == 2 and ops.get("first")(1, 2) == 1
    keep = ops.choose(np.nan)
    assert keep(np.nan, 3.0) == 3.0 and keep(2.0, 3.0) == 2.0 and keep.identity("float32").dtype == np.float32
    assert np.array_equal(ops.initwrite(0)(np.array([0, 5]), np.array([3, 0])), [3, 5])


def test_user_operators_are_equal_by_code():
    def make(k=2):
        def scaled(a, b=3.0):
            return a * 2 + b

        return scaled

    first, second = ops.operator(make()), ops.operator(make())
    assert first is second and first.portable and first.arity == 1
    assert ops.operator(make(), commutative=True) is not first
    one, true = ops.operator(lambda a: a + 1), ops.operator(lambda a: a + True)
    assert one is not true
    assert first(np.array([1.0, 2.0])).tolist() == [5.0, 7.0]
    assert ops.operator(lambda a, b: a * b).result_dtype("int8", "float32") == np.float32


def test_user_operator_with_a_closure_is_not_portable():
    k = 3
    op = ops.operator(lambda a: a + k)
    assert not op.portable and op(1) == 4
    assert ops.operator(lambda a: np.sin(a)).portable
    with pytest.raises(PyFinchError, match="fixed number"):
        ops.operator(lambda *a: a)
    with pytest.raises(DTypeError, match="result_dtype"):
        ops.operator(lambda a: a.nothing).result_dtype("int8")


def double(a):
    return 2 * a


def test_user_operator_pickles_and_has_laws():
    op = ops.operator(double, identity=0, annihilator=1.5)
    assert pickle.loads(pickle.dumps(op)) is op
    assert op.identity("int8") == 0 and op.annihilator("int8") is None and op.annihilator("float32") == 1.5


def test_values():
    assert same_value(np.nan, -np.nan) and not same_value(0.0, -0.0) and not same_value(1, True)
    assert same_value(complex(np.nan, 1), complex(np.nan, 1)) and not same_value(complex(np.nan, 1), complex(np.nan, 2))
    assert len({value_key(v) for v in (np.int64(1), np.float64(1), np.bool_(True), np.int8(1))}) == 4
    for v in (0, 1, True, -0.0, np.inf, -np.inf, np.nan, 1 + 0j):
        assert is_special(v)
    assert not is_special(2) and not is_special(0.5) and not is_special(1j)
    for v in (
        np.float32(0.1),
        np.complex64(1 - 2j),
        np.float64(-np.inf),
        np.bool_(False),
        np.uint64(2**64 - 1),
    ):
        assert same_value(eval(literal(v), {"np": np}), v)
    assert as_scalar(3, "float32") == np.float32(3)
    for bad in (
        (2.5, "int8"),
        (300, "int8"),
        (-1, "uint8"),
        (1j, "float64"),
        (np.nan, "int64"),
        (2**70, None),
    ):
        with pytest.raises(DTypeError):
            as_scalar(*bad)
    with pytest.raises(DTypeError, match="shape"):
        as_scalar([1, 2])


def test_dtypes():
    for dtype in SUPPORTED_DTYPES:
        assert from_julia_name(julia_name(dtype)) == dtype and check_dtype(dtype.newbyteorder()).isnative
    for bad in ("float16", "longdouble", object, "U3", "M8[s]", "nonsense", None):
        with pytest.raises(DTypeError):
            check_dtype(bad)


@ops.operator(commutative=True)
def at_module_level(a, b):
    return a * b + 1


def test_decorated_operators_pickle_by_their_name():
    assert pickle.loads(pickle.dumps(at_module_level)) is at_module_level


def test_operators_return_one_scalar():
    with pytest.raises(DTypeError, match="pair must return one scalar, got tuple"):
        ops.operator(lambda a: (a, a), name="pair").result_dtype("float64")
