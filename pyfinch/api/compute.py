"""Running programs: lazy tensors become a canonical program, which is scheduled, compiled and cached once."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pyfinch.algebra.carriers import ValueOperator
from pyfinch.algebra.term import postorder, preorder
from pyfinch.api.lazy import LazyTensor
from pyfinch.api.tensor import Tensor
from pyfinch.backends.adaptive import Adaptive
from pyfinch.backends.base import BrokenPromise, Executable, Scheduled, get_backend, get_scheduler
from pyfinch.backends.steps import has_algebra
from pyfinch.formats.format import FType
from pyfinch.formats.levels import Element
from pyfinch.formats.statistics import Bins
from pyfinch.formats.tensor import Tensor as StorageTensor
from pyfinch.logic.nodes import (
    Alias,
    Deferred,
    Field,
    Immediate,
    LogicNode,
    MapJoin,
    Plan,
    Produces,
    Query,
    Reorder,
    fields,
)

__all__ = ["Ready", "compute_all", "in_order", "prepare", "program_of"]


@dataclass(frozen=True, slots=True)
class Ready:
    """A program that was compiled: what to call, with which tensors under which names, and how results are ordered."""

    executable: Executable
    names: tuple[str, ...]
    orders: tuple[tuple[int, ...], ...]

    def __call__(self, tensors: Sequence[StorageTensor]) -> tuple[Tensor, ...]:
        """Run on tensors in the order of ``names``."""
        results = self.executable(dict(zip(self.names, tensors, strict=True)))
        return tuple(in_order(result, order) for result, order in zip(results, self.orders, strict=True))


def in_order(result: StorageTensor, order: tuple[int, ...]) -> Tensor:
    """A result whose mode k, as the program has it, is mode ``order[k]`` for the user.

    A fill value that was only known when the program ran becomes part of the type if it is special.
    """
    ftype, shape = result.ftype, result.shape
    mode_order = tuple([order[k] for k in ftype.mode_order])
    if ftype.fill is None and order and has_algebra(result.fill_value):
        leaf = Element(result.fill_value, ftype.dtype)
        ftype = FType((*ftype.levels[:-1], leaf), mode_order)
    elif mode_order != ftype.mode_order:
        ftype = ftype.reordered(mode_order)
    if mode_order != result.ftype.mode_order:
        sizes = [0] * len(order)
        for mode, size in zip(order, shape, strict=True):
            sizes[mode] = size
        shape = tuple(sizes)
    return Tensor._trusted(ftype, shape, result.fill_value, result.buffers)


_ready: dict[tuple[Any, ...], Ready] = {}
# A plan is the same for every backend.
_scheduled: dict[tuple[Plan, str, Any], Scheduled] = {}
_lock = threading.Lock()


def program_of(lazies: Sequence[LazyTensor], *, promises: bool = True) -> tuple[Plan, tuple[str, ...]]:
    """The canonical program of some lazy tensors, and the old names of its deferred tables in their new order.

    Names are numbered by first appearance, so equal computations have one program. Without ``promises`` it says
    nothing of fills that only the numbers at hand give, and so serves all numbers.
    """
    queries, results = [], []
    for k, x in enumerate(lazies):
        names = fields(x.expr)
        order = tuple(names[::-1][mode] for mode in reversed(x.order))
        queries.append(Query(Alias(f"result {k}"), Reorder(x.expr, order)))
        results.append(Alias(f"result {k}"))
    plan = Plan((*queries, Produces(tuple(results))))
    return _canonical(plan, promises)


def _canonical(plan: Plan, promises: bool) -> tuple[Plan, tuple[str, ...]]:
    names: dict[LogicNode, LogicNode] = {}
    deferred: list[str] = []
    counts = [0, 0]
    order = list(preorder(plan))
    for node in order:
        match node:
            case Field():
                names[node] = Field(f"i{counts[0]}")
                counts[0] += 1
            case Alias():
                names[node] = Alias(f"A{counts[1]}")
                counts[1] += 1
            case Deferred(name, kind):
                names[node] = Deferred(f"T{len(deferred)}", kind)
                deferred.append(name)
    return _renamed(plan, names, promises), tuple(deferred)


def _renamed(plan: Plan, names: dict[LogicNode, LogicNode], promises: bool) -> Plan:
    done: dict[Any, Any] = dict(names)
    for node in postorder(plan):
        if node in done:
            continue
        if not promises and _is_promise(node):
            done[node] = done[node.children[1]]
        else:
            done[node] = node.with_children([done[child] for child in node.children])
    result: Plan = done[plan]
    return result


def _is_promise(node: Any) -> bool:
    match node:
        case MapJoin(Immediate(ValueOperator(name="known_fill")), _):
            return True
    return False


def prepare(
    lazies: Sequence[LazyTensor],
    backend: str | None = None,
    scheduler: str | None = None,
    *,
    promises: bool = True,
) -> tuple[Ready, tuple[str, ...]]:
    """The compiled program of some lazy tensors, and which operands it takes.

    With ``promises`` it may raise `BrokenPromise` when it is called with other numbers; without, it takes any.
    """
    program, deferred = program_of(lazies, promises=promises)
    chosen = get_backend(backend)
    name, schedule = get_scheduler(scheduler)
    orders = tuple(x.order for x in lazies)
    key = (program, orders, chosen.name, name)
    ready = _ready.get(key)
    if ready is None:

        def cached(program: Plan, statistics: dict[str, Bins] | None) -> Scheduled:
            known = program, name, None if statistics is None else tuple(statistics.items())
            scheduled = _scheduled.get(known)
            if scheduled is None:
                scheduled = _scheduled[known] = schedule(program, statistics)
            return scheduled

        executable = Adaptive(program, chosen, cached)
        ready = Ready(executable, tuple(f"T{k}" for k in range(len(deferred))), orders)
        with _lock:
            ready = _ready.setdefault(key, ready)
    return ready, deferred


def compute_all(
    lazies: Sequence[LazyTensor], backend: str | None = None, scheduler: str | None = None
) -> tuple[Tensor, ...]:
    """Compute lazy tensors together, sharing what they share."""
    ready, deferred = prepare(lazies, backend, scheduler)
    together: dict[str, StorageTensor] = {}
    for x in lazies:
        together.update(x.operands)
    try:
        return ready([together[name] for name in deferred])
    except BrokenPromise:
        ready, deferred = prepare(lazies, backend, scheduler, promises=False)
        return ready([together[name] for name in deferred])
