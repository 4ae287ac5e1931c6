"""Kernels in several threads: the same results, whatever is cut, grown, joined, forked or called from many threads."""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

import pyfinch as pf
from pyfinch.algebra.errors import PyFinchError
from pyfinch.backends import threads
from pyfinch.backends.numba import execute, parallel, tiers

pytestmark = pytest.mark.compiled


@pytest.fixture(autouse=True)
def _everything_is_large(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(parallel, "LARGE", 0)
    monkeypatch.setenv("PYFINCH_COMPILE", "always")
    before = pf.get_num_threads()
    yield
    pf.set_num_threads(before)


def _sparse(rng: Any, shape: tuple[int, ...], density: float, dtype: str) -> Any:
    values = rng.integers(1, 9, shape).astype(dtype)
    if dtype == "complex128":
        values = values + 1j * rng.integers(0, 5, shape)
    return np.where(rng.random(shape) < density, values, np.zeros((), dtype))


WORKS: dict[str, Any] = {
    "matrix times vector": lambda a, b, x: a @ np.ones(a.shape[1], a.dtype),
    "vector times matrix": lambda a, b, x: pf.asarray(np.ones(a.shape[0], a.dtype)) @ a,
    "matrix times matrix": lambda a, b, x: a @ b,
    "sparse times dense": lambda a, b, x: a @ x,
    "sum": lambda a, b, x: a + b,
    "product": lambda a, b, x: a * b,
    "scaled": lambda a, b, x: a * 3,
    "total": lambda a, b, x: pf.sum(a),
    "sum of columns": lambda a, b, x: pf.sum(a, axis=0),
    "sum of rows": lambda a, b, x: pf.sum(a, axis=1),
    "greatest": lambda a, b, x: pf.sum(a != 0) if a.dtype.kind in "cb" else pf.max(a, axis=1),
    "least": lambda a, b, x: pf.sum(b != 0) if a.dtype.kind in "cb" else pf.min(a),
    "sampled": lambda a, b, x: pf.compute(pf.lazy(a) * (pf.lazy(x) @ pf.asarray(x).T)),
    "masked": lambda a, b, x: pf.compute((pf.lazy(a) @ b) * a),
    "triangles": lambda a, b, x: pf.compute(pf.sum((pf.lazy(a) @ a) * a)),
    "mapped": lambda a, b, x: pf.compute(pf.abs(pf.lazy(a) @ b)),
}


@pytest.mark.parametrize("work", WORKS)
@pytest.mark.parametrize("fmt", ["csr", "coo"])
@settings(max_examples=5, deadline=None)
@given(
    seed=st.integers(0, 99),
    n=st.sampled_from([0, 1, 3, 40]),
    density=st.sampled_from([0.0, 0.05, 0.5]),
    dtype=st.sampled_from(["float64", "int64", "bool"]),
)
def test_results_do_not_depend_on_threads(work: str, fmt: str, seed: int, n: int, density: float, dtype: str) -> None:
    rng = np.random.default_rng(seed)
    a, b = (_sparse(rng, (n, n), density, dtype) for _ in range(2))
    x = _sparse(rng, (n, n), 0.7, dtype)
    if not n and work in ("greatest", "least"):
        return
    left, right = (pf.asarray(m, format=fmt) for m in (a, b))
    results = []
    for count in (1, 2, 3):
        pf.set_num_threads(count)
        result = WORKS[work](left, right, pf.asarray(x))
        result.validate()
        results.append(result)
    one, *others = results
    for other in others:
        assert other.ftype is one.ftype
        np.testing.assert_allclose(other.todense(), one.todense(), rtol=1e-6)
        if dtype in ("int64", "bool"):
            for mine, theirs in zip(one.buffers, other.buffers, strict=True):
                for first, second in zip(mine, theirs, strict=True):
                    np.testing.assert_array_equal(first, second)


def _power_law(n: int) -> Any:
    rng = np.random.default_rng(3)
    rows = (n * rng.random(6 * n) ** 4).astype(int)
    return pf.asarray(sp.coo_array((np.ones(6 * n), (rows, rng.integers(0, n, 6 * n))), shape=(n, n)).tocsr())


def test_pieces_that_run_out_of_room_grow_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    a = _power_law(300)
    pf.set_num_threads(1)
    one = a @ a
    monkeypatch.setattr(execute.Execution, "guess", lambda self: 16)
    for count in (2, 3):
        pf.set_num_threads(count)
        other = a @ a
        other.validate()
        for mine, theirs in zip(one.buffers, other.buffers, strict=True):
            for first, second in zip(mine, theirs, strict=True):
                np.testing.assert_array_equal(first, second)


def test_tensors_of_three_modes_are_joined_level_by_level() -> None:
    rng = np.random.default_rng(0)
    dense = [_sparse(rng, (9, 8, 7), 0.2, "float64") for _ in range(2)]
    for fmt in ("csf", "coo", "dense(sparse_list(sparse_list(element(0.0))))"):
        a, b = (pf.asarray(d, format=fmt) for d in dense)
        for count in (1, 2, 4):
            pf.set_num_threads(count)
            total = a + b
            total.validate()
            np.testing.assert_array_equal(total.todense(), dense[0] + dense[1])


def test_one_number_of_threads_gives_the_same_bits() -> None:
    a = pf.asarray(np.random.default_rng(0).random((200, 50)), format="csr")
    pf.set_num_threads(2)
    assert len({pf.sum(a).todense().tobytes() for _ in range(5)}) == 1


def test_small_work_stays_in_the_calling_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    pf.set_num_threads(2)
    seen = []
    monkeypatch.setattr(parallel, "run_pieces", lambda *args: seen.append(args))
    a = pf.asarray(np.eye(10), format="csr")
    np.testing.assert_array_equal((a + a).todense(), 2 * np.eye(10))
    assert not seen


def test_many_threads_share_one_compile() -> None:
    rng = np.random.default_rng(1)
    kernels = len(tiers._kernels)
    a = pf.asarray(sp.random_array((60, 70), density=0.1, format="csr", rng=rng))
    expected = a.todense() * 5 - a.todense() ** 2
    compiled: list[int] = []
    original = tiers.Kernel.compiled

    def counted(self: Any) -> Any:
        if self._compiled is None:
            with self._lock:
                pass
        compiled.append(id(self))
        return original(self)

    tiers.Kernel.compiled = counted  # type: ignore[method-assign]
    results: list[Any] = []
    try:
        program = pf.lazy(a) * 5 - pf.lazy(a) ** 2.0
        workers = [threading.Thread(target=lambda: results.append(pf.compute(program))) for _ in range(8)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
    finally:
        tiers.Kernel.compiled = original  # type: ignore[method-assign]
    assert len(results) == 8
    assert len(set(compiled)) <= 1
    assert len(tiers._kernels) <= kernels + 1
    for result in results:
        np.testing.assert_allclose(result.todense(), expected)


def test_what_int32_does_not_hold_is_found_when_pieces_are_joined(monkeypatch: pytest.MonkeyPatch) -> None:
    a = _power_law(200)
    pf.set_num_threads(1)
    expected = (a @ a).todense()
    # each piece alone stays below, all together do not
    monkeypatch.setitem(execute.LIMITS, np.dtype(np.int32), (a @ a).nnz - 1)
    pf.set_num_threads(3)
    result = a @ a
    assert result.buffers[1][0].dtype == np.int64
    result.validate()
    np.testing.assert_array_equal(result.todense(), expected)


def test_an_error_in_one_piece_reaches_the_caller() -> None:
    done = []

    def work(piece: int, thread: int) -> None:
        if piece == 3:
            raise MemoryError("piece 3")
        done.append(piece)

    with pytest.raises(MemoryError, match="piece 3"):
        threads.run_pieces(50, 2, work)
    threads.run_pieces(5, 2, lambda piece, thread: done.append(piece))
    assert len(done) >= 5


@pytest.mark.skipif(not hasattr(signal, "pthread_kill"), reason="no signals to threads on this system")
def test_an_interrupt_waits_for_the_pieces_under_way() -> None:
    begun, ended = threading.Event(), threading.Event()
    caller = threading.get_ident()

    def work(piece: int, thread: int) -> None:
        if thread:
            begun.set()
            time.sleep(0.05)  # the caller has none left to do, and waits
            signal.pthread_kill(caller, signal.SIGINT)
            time.sleep(0.2)
            ended.set()
        else:
            begun.wait()

    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            threads.run_pieces(2, 2, work)
    finally:
        signal.signal(signal.SIGINT, before)
    assert ended.is_set()


def test_no_piece_is_begun_after_a_failure() -> None:
    failed, late = threading.Event(), []

    def work(piece: int, thread: int) -> None:
        if not thread:
            failed.set()
            raise IndexError("first")
        if failed.is_set():
            late.append(piece)
        failed.wait()
        time.sleep(0.01)

    with pytest.raises(IndexError, match="first"):
        threads.run_pieces(100, 3, work)
    assert len(late) <= 2


def test_without_threads_to_start_the_caller_does_all(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(self: Any) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threads, "_workers", [])
    monkeypatch.setattr(threading.Thread, "start", refuse)
    done: list[tuple[int, int]] = []
    threads.run_pieces(5, 3, lambda piece, thread: done.append((piece, thread)))
    assert done == [(piece, 0) for piece in range(5)]


def test_an_operator_that_cannot_be_compiled_is_named() -> None:
    pf.set_num_threads(2)

    @pf.operator(commutative=True, annihilator=0)
    def unheard_of(x: float, y: float) -> Any:
        return x * y * len(open(os.devnull).read())

    a = pf.lazy(_power_law(30))
    with pytest.raises(PyFinchError, match="operator unheard_of") as caught:
        pf.compute(unheard_of(a, a))
    assert "\n" not in str(caught.value)
    assert "nopython" not in str(caught.value)


def test_a_kernel_that_cannot_be_compiled_names_its_operators(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*args: Any, **options: Any) -> Any:
        raise ValueError("Failed in nopython mode pipeline (step: x)\nno such type\nmore")

    monkeypatch.setattr("pyfinch.backends.numba.compile.machine_code", refuse)
    a = pf.lazy(pf.asarray(np.eye(3), format="dcsr"))
    with pytest.raises(PyFinchError, match=r"operators .*hypot.*: no such type\. The same"):
        pf.compute(pf.hypot(a * 3.5, a - 0.25 * a))


def _child(queue: Any) -> None:
    pf.set_num_threads(2)
    a = _power_law(200)
    queue.put(float(pf.sum(a @ a)))


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_processes_that_are_forked_or_spawned_compute(method: str) -> None:
    if method not in multiprocessing.get_all_start_methods():
        pytest.skip(f"no {method} on this system")
    pf.set_num_threads(2)
    a = _power_law(200)
    expected = float(pf.sum(a @ a))
    context = multiprocessing.get_context(method)
    queue = context.Queue()
    child = context.Process(target=_child, args=(queue,))
    child.start()
    assert queue.get(timeout=120) == pytest.approx(expected)
    child.join()
    assert child.exitcode == 0


def test_the_environment_sets_the_number() -> None:
    code = "import pyfinch as pf; print(pf.get_num_threads())"
    for value in ("3", "1"):
        done = subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYFINCH_NUM_THREADS": value},
            capture_output=True,
            text=True,
            check=True,
        )
        assert done.stdout.strip() == value
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYFINCH_NUM_THREADS": "many"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert "PYFINCH_NUM_THREADS must be a positive integer" in done.stderr
