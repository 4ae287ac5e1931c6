"""Threads for kernels: how many there may be, and a pool that runs the pieces of one computation."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from queue import SimpleQueue

from pyfinch.algebra.errors import DTypeError

__all__ = ["get_num_threads", "run_pieces", "set_num_threads"]


def _default() -> int:
    wanted = os.environ.get("PYFINCH_NUM_THREADS", "").strip()
    if wanted:
        if not wanted.isdecimal() or int(wanted) < 1:
            raise DTypeError(f"PYFINCH_NUM_THREADS must be a positive integer, got {wanted!r}")
        return int(wanted)
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


_count: list[int] = []


def set_num_threads(count: int) -> int:
    """Set how many threads one computation may use, and return the number before.

    Small computations stay in the calling thread. Results are the same for any number of threads, but for the last
    bits of sums of floats; a given number always gives the same bits. At first it is the number of cores that the
    process may use, or that of the environment variable ``PYFINCH_NUM_THREADS``.

    Raises
    ------
    DTypeError
        If ``count`` is no positive integer.

    Examples
    --------
    >>> import pyfinch as pf
    >>> before = pf.set_num_threads(2)
    >>> pf.set_num_threads(before)
    2
    """
    if isinstance(count, bool) or not isinstance(count, int) or count < 1:
        raise DTypeError(f"set_num_threads takes a positive integer, got {count!r}")
    before = get_num_threads()
    _count[:] = [count]
    return before


def get_num_threads() -> int:
    """How many threads one computation may use.

    Examples
    --------
    >>> import pyfinch as pf
    >>> pf.get_num_threads() >= 1
    True
    """
    if not _count:
        _count.append(_default())
    return _count[0]


class _Job:
    """Pieces that threads take one by one. A thread that comes late finds none left, and nobody waits for it."""

    def __init__(self, count: int, work: Callable[[int, int], None]) -> None:
        self.count, self.work = count, work
        self.taken = 0
        self.running: set[int] = set()  # other threads than the caller's; only the caller's is ever interrupted
        self.errors: list[BaseException] = []  # once there is one, no further piece is begun
        self.changed = threading.Condition(threading.Lock())

    def take(self, thread: int) -> None:
        """Do pieces until none is left or one has failed."""
        try:
            while True:
                with self.changed:
                    if self.taken >= self.count or self.errors:
                        return
                    piece = self.taken
                    self.taken += 1
                    if thread:
                        self.running.add(thread)
                self.work(piece, thread)
        except BaseException as error:
            self.errors.append(error)
        finally:
            if thread:
                with self.changed:
                    self.running.discard(thread)
                    self.changed.notify_all()

    def finish(self) -> None:
        """Wait for the other threads, through interrupts; raises what went wrong first."""
        waiting = True
        while waiting:
            try:
                with self.changed:
                    while self.running:
                        self.changed.wait()
                waiting = False
            except BaseException as error:
                self.errors.append(error)
        if self.errors:
            raise self.errors[0]


_queue: SimpleQueue[tuple[_Job, int]] = SimpleQueue()
_workers: list[threading.Thread] = []
_lock = threading.Lock()


def _serve() -> None:
    queue = _queue
    while True:
        job, thread = queue.get()
        job.take(thread)
        del job


def _forget_workers() -> None:
    """In a forked child, which has none of its parent's threads."""
    global _queue, _lock
    _queue, _lock = SimpleQueue(), threading.Lock()
    _workers.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_workers)


def run_pieces(count: int, threads: int, work: Callable[[int, int], None]) -> None:
    """Call ``work(piece, thread)`` for each piece below ``count``, in up to ``threads`` threads, this one among them.

    ``thread`` is below ``threads``, and no two calls of one thread number run at once. Raises what the first call
    that failed raised, when the others have ended.
    """
    threads = min(threads, count)
    job = _Job(count, work)
    for thread in range(1, _started(threads - 1) + 1):
        _queue.put((job, thread))
    try:
        job.take(0)
    except BaseException as error:  # an interrupt before the first piece or behind the last
        job.errors.append(error)
    job.finish()


def _started(count: int) -> int:
    """How many workers there are to help, up to ``count``; they are started if they can be."""
    with _lock:
        while len(_workers) < count:
            worker = threading.Thread(target=_serve, name=f"pyfinch-{len(_workers) + 1}", daemon=True)
            try:
                worker.start()
            except RuntimeError:  # the system has no more threads to give, or Python is about to end
                break
            _workers.append(worker)
        return min(count, len(_workers))
