"""The bridge on real Julia and real Finch.jl. Everything here needs Julia, and is skipped where there is none."""

from __future__ import annotations

import gc
import os
import re
import subprocess
import sys
import threading
import weakref
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pyfinch as pf
from pyfinch.api.compute import program_of
from pyfinch.backends.finchjl import compute, from_julia, on_julia, passes, to_julia
from pyfinch.backends.finchjl.session import JuliaError
from pyfinch.difftest.orders import same_up_to_names
from pyfinch.formats.tensor import Tensor
from tests.schedule.oracle import cases

pytestmark = pytest.mark.usefixtures("julia")


def csr(dtype: Any = np.float64) -> pf.Tensor:
    array = np.array([[1, 0, 2], [0, 0, 0], [0, 3, 4]]).astype(dtype)
    return pf.asarray(array, format="csr")


# --------------------------------------------------------------------------------------------------------- programs


def test_every_recorded_pass_is_what_finch_answers_now() -> None:
    for case in cases()[::12]:
        found = passes(case.program)
        assert len(found) == len(case.passes)
        for (_, now), (name, recorded) in zip(found, case.passes, strict=True):
            assert same_up_to_names(now, recorded), (case.name, name)


def test_compute_is_finchs_own() -> None:
    A = csr()
    program, names = program_of([pf.lazy(A) @ A, pf.sum(pf.lazy(A), axis=0)])
    assert len(names) == 1
    product, total = compute(program, {"T0": A})
    np.testing.assert_array_equal(product.todense(), A.todense() @ A.todense())
    np.testing.assert_array_equal(total.todense(), A.todense().sum(0))


@pytest.mark.parametrize("scheduler", ["auto", "default", "unfused", "finchjl"])
@pytest.mark.parametrize("backend", ["numba", "finchjl"])
def test_any_schedulers_plan_runs_anywhere(scheduler: str, backend: str) -> None:
    A = csr()
    expected = A.todense() @ A.todense() * A.todense() + 1
    result = pf.compute((pf.lazy(A) @ A) * A + 1, backend=backend, scheduler=scheduler)
    np.testing.assert_array_equal(result.todense(), expected)
    assert isinstance(result, pf.Tensor)


def test_the_switch_and_mixing_in_one_session() -> None:
    A = csr()
    with pf.use_backend("finchjl"):
        B = A + A
        assert isinstance(B, pf.Tensor)
        with pf.use_backend("numba"):
            C = B * A  # on memory that Julia owns
        D = C + 1  # and back
    np.testing.assert_array_equal(D.todense(), 2 * A.todense() ** 2 + 1)
    assert D.fill_value == 1
    assert float(pf.sum(D)) == (2 * A.todense() ** 2 + 1).sum()


def test_the_environment_variable_chooses() -> None:
    code = (
        "import pyfinch as pf; from pyfinch.backends.base import current; print(current());"
        "print(float(pf.sum(pf.eye(3)))); from pyfinch.backends.finchjl import session; print(session._session.pid > 0)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYFINCH_BACKEND": "finchjl"},
        capture_output=True,
        text=True,
        timeout=300,
        check=True,
    )
    assert done.stdout.splitlines() == ["('finchjl', 'auto')", "3.0", "True"]


def test_the_source_shows_loops_and_julia() -> None:
    A = csr()
    from pyfinch.backends.base import get_backend, get_scheduler

    program, _ = program_of([pf.lazy(A) * A])
    executable = get_backend("finchjl").compile(get_scheduler("default")[1](program))
    executable({"T0": A})
    assert "R[i, j] = A[i, j] * A[i, j]" in executable.source
    assert "function kernel(A" in executable.source


# ------------------------------------------------------------------------------------------------------------ values


@pytest.mark.parametrize("dtype", ["bool", "int8", "int32", "uint16", "uint64", "float32", "complex64", "complex128"])
def test_dtypes(dtype: str) -> None:
    A = csr(dtype)
    with pf.use_backend("finchjl"):
        B = A + A
        C = A * A
    dense = A.todense()
    np.testing.assert_array_equal(B.todense(), dense + dense)
    np.testing.assert_array_equal(C.todense(), dense * dense)
    assert (B.dtype, C.dtype) == (dense.dtype, dense.dtype)


def test_promotion_is_numpys() -> None:
    a, b = np.array([100, 0, -3], np.int8), np.array([2.5, 0, 1], np.float32)
    u = np.array([2**63, 0, 1], np.uint64)
    i = np.array([-1, 0, 1], np.int64)
    x, y, v, w = (pf.asarray(array, format="sparse_vector") for array in (a, b, u, i))
    with pf.use_backend("finchjl"):
        found = [x + x, x * y, v + w, v < w, pf.floor_divide(x, x), x / x, pf.pow(y, y)]
    with np.errstate(all="ignore"):
        expected = [a + a, a * b, u + i, u < i, a // a, a / a, b**b]
    for result, array in zip(found, expected, strict=True):
        assert result.dtype == array.dtype
        np.testing.assert_array_equal(result.todense()[[0, 2]], array[[0, 2]])


def test_nan_inf_negative_zero_and_other_fills() -> None:
    values = np.array([np.nan, np.inf, -np.inf, -0.0, 1.0, 0.0])
    x, filled = pf.lazy(pf.asarray(values)), pf.lazy(pf.full((6,), np.inf, format="sparse_vector"))
    asked = [pf.isnan(x), x == x, pf.maximum(x, x), -x, pf.sqrt(x), pf.minimum(filled, x), filled + 1, pf.signbit(x)]
    found = [pf.compute(one, backend="finchjl") for one in asked]
    with np.errstate(all="ignore"):
        expected = [
            np.isnan(values), values == values, np.maximum(values, values), -values, np.sqrt(values),
            np.minimum(np.inf, values), np.full(6, np.inf), np.signbit(values),
        ]  # fmt: skip
    for result, array in zip(found, expected, strict=True):
        np.testing.assert_array_equal(result.todense(), array)
    assert np.signbit(found[3].todense()[5])
    assert found[6].fill_value == np.inf


def test_empty_and_size_one_modes() -> None:
    for shape in [(0, 3), (3, 0), (1, 1), (0, 0)]:
        A = pf.asarray(np.ones(shape), format="csr")
        with pf.use_backend("finchjl"):
            np.testing.assert_array_equal((A + A).todense(), 2 * np.ones(shape))
            np.testing.assert_array_equal(pf.sum(A, axis=0).todense(), np.ones(shape).sum(0))


def test_formats_come_back_as_asked() -> None:
    A = csr()
    for fmt in ("coo", "dcsr", "csc", "dense"):
        B = A.to_format(fmt)
        with pf.use_backend("finchjl"):
            C = B * 2
        np.testing.assert_array_equal(C.todense(), 2 * A.todense())
        C.validate()


def test_int32_that_is_too_narrow_is_widened() -> None:
    x = pf.asarray(np.ones(70_000), format="sparse_vector")
    y = pf.asarray(np.array([1.0, 2.0]), format="sparse_vector")
    n = 2**31 + 5
    idx = np.array([0, n - 1])
    z = pf.Tensor.from_buffers("sparse_vector", (n,), [([0, 2], idx), ([1.0, 2.0],)])
    with pf.use_backend("finchjl"):
        assert float(pf.sum(z * z)) == 5.0
        assert float(pf.sum(x)) == 70_000
        assert float(pf.sum(y)) == 3.0


# ------------------------------------------------------------------------------------------------------------ memory


def addresses(tensor: Tensor) -> list[int]:
    return [buffer.ctypes.data for level in tensor.buffers for buffer in level]


def test_operands_are_not_copied() -> None:
    for fmt in ("csr", "dcsr", "coo", "dense"):
        A = csr().to_format(fmt)
        x = to_julia(A)

        def pointers(main: Any, x: Any = x) -> list[int]:
            found = main.seval(
                """
                function (x)
                    out = Int[]
                    look(v::Vector) = push!(out, Int(pointer(v)))
                    look(v::Tuple) = foreach(look, v)
                    look(::Number) = nothing
                    look(v) = foreach(name -> look(getfield(v, name)), fieldnames(typeof(v)))
                    look(x.lvl)
                    out
                end
                """
            )(x)
            return [int(p) for p in found]

        assert set(on_julia(pointers)) == set(addresses(A))


def test_results_are_not_copied_and_live_as_long_as_their_views() -> None:
    def made(main: Any) -> Any:
        main.seval("import Finch")
        return main.seval(
            """
            x = Finch.Tensor(Finch.Dense(Finch.SparseList{Int32}(Finch.Element{0.0, Float64, Int}([1.0, 2.0]), Int32(3),
                Finch.PlusOneVector(Int64[0, 1, 2]), Finch.PlusOneVector(Int32[2, 0])), 2))
            """
        )

    x = on_julia(made)
    A = from_julia(x)
    pointer = on_julia(lambda main: int(main.seval("x -> Int(pointer(x.lvl.lvl.lvl.val))")(x)))
    assert A.buffers[-1][0].ctypes.data == pointer
    np.testing.assert_array_equal(A.todense(), [[0, 0, 1.0], [2.0, 0, 0]])
    A.buffers[-1][0][0] = 7.0
    assert on_julia(lambda main: float(main.seval("x -> x[3, 1]")(x))) == 7.0
    values = A.buffers[-1][0]
    x = None
    del A
    on_julia(lambda main: main.seval("x = nothing; GC.gc()"))
    gc.collect()
    np.testing.assert_array_equal(values, [7.0, 2.0])


def test_indices_from_one_are_converted() -> None:
    kind = "Finch.Dense(Finch.SparseList(Finch.Element(0.0)))"
    code = f"import Finch; Finch.Tensor({kind}, [0.0 2.0; 1.0 0.0; 0.0 3.0])"
    A = from_julia(on_julia(lambda main: main.seval(code)))
    np.testing.assert_array_equal(A.todense(), [[0, 1.0, 0], [2.0, 0, 3.0]])
    with pytest.raises(JuliaError, match="no counterpart in pyfinch"):
        from_julia(
            on_julia(lambda main: main.seval("import Finch; Finch.Tensor(Finch.SparseDict(Finch.Element(0.0)), [1.0])"))
        )


def test_dtypes_fills_and_levels_come_from_julia() -> None:
    kinds = {
        "Finch.Dense(Finch.SparseList(Finch.Element(1.5f0)))": ("dense(sparse_list(element(1.5, float32)", np.float32),
        "Finch.SparseCOO{2}(Finch.Element(Int8(0)))": ("sparse_coo[2](element(0, int8)", np.int8),
        "Finch.Dense(Finch.SparseByteMap(Finch.Element(0.0 + 1.0im)))": ("dense(sparse_bytemap(", np.complex128),
        "Finch.Dense(Finch.Dense(Finch.Element(false)))": ("dense(dense(element(False, bool)", np.bool_),
    }
    for kind, (text, dtype) in kinds.items():
        code = f"import Finch; Finch.Tensor({kind}, [1 0; 0 1; 1 1])"
        A = from_julia(on_julia(lambda main, code=code: main.seval(code)))
        assert A.dtype == dtype
        assert str(A.format).startswith(text)
        np.testing.assert_array_equal(A.todense(), np.array([[1, 0, 1], [0, 1, 1]], dtype))


def test_julia_keeps_memory_alive_that_python_has_let_go() -> None:
    A = pf.asarray(np.arange(1.0, 50_001.0))
    x = to_julia(A)
    total = float(np.arange(1.0, 50_001.0).sum())
    del A
    gc.collect()
    on_julia(lambda main: main.seval("GC.gc()"))
    np.ones(50_000)  # what would be written over it
    assert on_julia(lambda main: float(main.seval("sum")(x))) == total
    owner = weakref.ref(A := np.arange(3.0))
    x = to_julia(Tensor(pf.asarray(A).ftype, (3,), np.float64(0), ((), (A,))))
    del A
    assert owner() is not None
    x = None
    for _ in range(3):  # the tensor, its arrays, then what they held
        on_julia(lambda main: main.seval("GC.gc()"))
        gc.collect()
    assert owner() is None


def test_results_survive_collection_on_both_sides_and_are_let_go() -> None:
    A = csr()
    with pf.use_backend("finchjl"):
        results = [A + A for _ in range(50)]
        on_julia(lambda main: main.seval("GC.gc()"))
        for result in results:
            np.testing.assert_array_equal(result.todense(), 2 * A.todense())
        values = results[0].buffers[-1][0]
        del results, result
        gc.collect()
        A + A  # lets go of what nobody views
        kept = on_julia(lambda main: int(main.seval("length(PyFinchBridge.KEPT)")))
        assert kept < 50
        np.testing.assert_array_equal(values, [2, 4, 6, 8])


def test_unaligned_and_read_only_buffers() -> None:
    raw = np.zeros(8 * 3 + 1, np.uint8)
    odd = raw[1:].view(np.float64)
    odd[:] = [1, 2, 3]
    x = Tensor(pf.asarray(np.ones(3)).ftype, (3,), np.float64(0), ((), (odd,)))
    fixed = np.array([1.0, 2.0, 3.0])
    fixed.flags.writeable = False
    y = pf.asarray(fixed)
    z = pf.lazy(y) + pf.lazy(pf.Tensor(x.ftype, x.shape, x.fill_value, x.buffers))
    np.testing.assert_array_equal(pf.compute(z, backend="finchjl").todense(), [2, 4, 6])


# -------------------------------------------------------------------------------------------------------- operators


def test_users_operators_cross() -> None:
    scale = 2.0

    @pf.operator(commutative=True)
    def damped(a: Any, b: Any) -> Any:
        """A plain expression."""
        product = a * b * scale
        if product > 4:
            return 4.0
        return product / (1.0 + abs(a)) if a != b else np.sqrt(product)

    x = pf.asarray(np.array([1.0, 2.0, 3.0, 0.5]))
    y = pf.asarray(np.array([1.0, 5.0, 0.25, 0.0]))
    expected = damped(x.todense(), y.todense())
    np.testing.assert_allclose(pf.compute(damped(pf.lazy(x), pf.lazy(y)), backend="finchjl").todense(), expected)


def test_an_operator_that_cannot_cross_is_named() -> None:
    @pf.operator
    def stirling(a: Any) -> Any:
        total = 0.0
        for k in range(3):
            total += a**k
        return total

    x = pf.asarray(np.array([1.0, 2.0]))
    with pytest.raises(pf.PyFinchError, match=r"operator stirling cannot run on backend 'finchjl': line \d+: 'for k"):
        pf.compute(stirling(pf.lazy(x)), backend="finchjl")
    np.testing.assert_array_equal(pf.compute(stirling(pf.lazy(x))).todense(), [3.0, 7.0])


# ---------------------------------------------------------------------------------------------------------- failures


def test_a_julia_exception_carries_the_program_and_harms_nothing() -> None:
    x = pf.asarray(np.array([2, 3]), format="sparse_vector")
    y = pf.asarray(np.array([1, -1]), format="sparse_vector")
    with pf.use_backend("finchjl"):
        with pytest.raises(JuliaError, match="an integer power needs exponents >= 0") as caught:
            pf.pow(x, y)
        assert "R[i] = A[i] ^ B[i]" in str(caught.value)
        np.testing.assert_array_equal((x + y).todense(), [3, 2])


def test_what_is_not_logic_is_refused() -> None:
    def sent(main: Any) -> None:
        main.seval("PyFinchBridge.parse_logic")("immediate(run(`ls`))")

    with pytest.raises(Exception, match="is not a type or an operator"):
        on_julia(sent)


def test_long_expressions_cross_with_their_abbreviations() -> None:
    A = csr()
    x = pf.lazy(A)
    for _ in range(9):
        x = x + x * 0.5
    expected = A.todense() * 1.5**9
    np.testing.assert_allclose(pf.compute(x, backend="finchjl").todense(), expected)


def test_compute_names_the_tensors_that_are_missing() -> None:
    program, _ = program_of([pf.lazy(csr()) * 2])
    with pytest.raises(pf.ScheduleError, match="the program reads T0, T1, for which no tensor was given"):
        compute(program, {})


def test_an_int32_value_that_does_not_fit_is_a_julia_error() -> None:
    with pytest.raises(JuliaError, match="InexactError"):
        on_julia(lambda main: translated(main))


def translated(main: Any) -> None:
    from pyfinch.backends.finchjl.kernels import translated_error

    try:
        main.seval("Int32(2.5)")
    except Exception as error:
        raise translated_error(error, "Int32(2.5)") from error


def test_many_threads_take_turns() -> None:
    A = csr()
    results: list[Any] = [None] * 8
    errors: list[Exception] = []

    def work(k: int) -> None:
        try:
            for _ in range(5):
                results[k] = pf.compute(pf.lazy(A) * float(k), backend="finchjl").todense()
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    for k, result in enumerate(results):
        np.testing.assert_array_equal(result, A.todense() * k)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
def test_a_forked_child_gets_an_error_and_the_parent_goes_on() -> None:
    A = csr()
    pf.compute(pf.lazy(A) + A, backend="finchjl")
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            pf.compute(pf.lazy(A) + A, backend="finchjl")
            text = "no error"
        except pf.BackendUnavailableError as error:
            text = str(error)
        except BaseException as error:
            text = repr(error)
        os.write(write, text.encode())
        os._exit(0)
    os.close(write)
    with os.fdopen(read) as stream:
        said = stream.read()
    os.waitpid(child, 0)
    assert "before this process was forked" in said
    assert 'the "spawn" method' in said
    np.testing.assert_array_equal(pf.compute(pf.lazy(A) + A, backend="finchjl").todense(), 2 * A.todense())


def test_an_interrupt_ends_the_wait_and_later_calls_work() -> None:
    code = """
import os, signal, threading, time, numpy as np, pyfinch as pf
signal.signal(signal.SIGINT, signal.default_int_handler)
from pyfinch.backends.finchjl import on_julia
x = pf.asarray(np.array([1.0, 2.0]))
pf.compute(pf.lazy(x) + x, backend="finchjl")
threading.Timer(1.0, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
began = time.time()
try:
    on_julia(lambda main: main.seval("() -> for _ in 1:40; sleep(0.1); end")._jl_call_nogil())
    print("not interrupted")
except KeyboardInterrupt:
    print("interrupted", time.time() - began < 3)
print(pf.compute(pf.lazy(x) + x, backend="finchjl").todense().tolist())
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300)
    assert done.stdout.splitlines() == ["interrupted True", "[2.0, 4.0]"], done.stderr
    assert done.returncode == 0


def test_an_interrupted_start_is_taken_up_again() -> None:
    code = """
import os, signal, threading, numpy as np, pyfinch as pf
signal.signal(signal.SIGINT, signal.default_int_handler)
x = pf.asarray(np.array([1.0, 2.0]))
threading.Timer(1.5, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
try:
    pf.compute(pf.lazy(x) + x, backend="finchjl")
    print("not interrupted")
except KeyboardInterrupt:
    print("interrupted")
print(pf.compute(pf.lazy(x) + x, backend="finchjl").todense().tolist())
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=600)
    assert done.stdout.splitlines() == ["interrupted", "[2.0, 4.0]"], done.stderr
    assert done.returncode == 0


def test_juliacall_imported_before_is_used_from_its_thread() -> None:
    code = """
import threading, juliacall, numpy as np, pyfinch as pf
x = pf.asarray(np.array([1.0, 2.0]))
print(pf.compute(pf.lazy(x) + x, backend="finchjl").todense().tolist(), juliacall.Main.seval("1 + 1"))
def other():
    try:
        pf.compute(pf.lazy(x) + x, backend="finchjl")
    except pf.BackendUnavailableError as error:
        print(str(error)[:44])
thread = threading.Thread(target=other); thread.start(); thread.join()
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300)
    assert done.stdout.splitlines() == ["[2.0, 4.0] 2", "juliacall was imported on another thread, wh"], done.stderr
    assert done.returncode == 0


def test_crosscheck_with_finch() -> None:
    A = csr()
    with pf.crosscheck("finchjl"):
        B = pf.compute((pf.lazy(A) @ A) * A)
    np.testing.assert_array_equal(B.todense(), A.todense() @ A.todense() * A.todense())


def test_the_second_call_compiles_nothing() -> None:
    A = csr()

    def count() -> int:
        return on_julia(lambda main: int(main.seval("length(PyFinchBridge.COMPILED)")))

    pf.compute(pf.lazy(A) * 3.5, backend="finchjl")
    before = count()
    other = pf.asarray(np.eye(5), format="csr")
    np.testing.assert_array_equal(pf.compute(pf.lazy(other) * 4.5, backend="finchjl").todense(), 4.5 * np.eye(5))
    assert count() == before


def test_the_example_in_the_docs_prints_what_it_says() -> None:
    text = (Path(__file__).parents[3] / "docs" / "finchjl.md").read_text()
    code, said = re.search(r"```python\n(.*?)```\n\n```\n(.*?)```", text, re.DOTALL).groups()
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=600, check=True)
    assert done.stdout == said
