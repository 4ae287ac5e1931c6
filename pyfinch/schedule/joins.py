"""The cost of a loop nest: how many iterations an order of loops takes, and what it has to copy and to scatter.

A pointwise expression is seen as a join: at each coordinate all of some operands must have an entry, as the others
cannot keep the result from being its fill. Those are the operands that decide which coordinates are visited.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from pyfinch.logic.nodes import Alias, Field, LogicNode, MapJoin, Relabel, Reorder, Table
from pyfinch.schedule.common import Fields, pointwise
from pyfinch.schedule.sizes import Size, Sizes, decides

__all__ = ["Join", "Operand", "operands_of"]

# Costs in steps of a plain loop, from measurements.
MERGE = 2.0  # a step of a merge of several lists
LOOKUP = 1.5  # a step of a list whose entries are looked up in a table
COPY_SPARSE = 15.0  # moving one entry of a sparse operand into another storage order
COPY_DENSE = 2.0  # the same for a dense one
SCATTER = 1.5  # adding to a workspace
SORT = 25.0  # appending a coordinate that is sorted later
STORE = 3.0  # writing one entry of an intermediate result


@dataclass(frozen=True, slots=True)
class Chain:
    """The storage order of a tensor that is read, outermost field first, and what a copy in another order costs."""

    stored: tuple[Field, ...]
    copy: float


@dataclass(frozen=True, slots=True)
class Operand:
    """What takes part in a join.

    ``drives`` are the fields along which its entries alone are visited; ``selects`` says whether an entry of it must
    be there.
    """

    size: Size
    chains: tuple[Chain, ...]
    drives: frozenset[Field]
    selects: bool

    def drives_at(self, bound: frozenset[Field], idx: Field) -> bool:
        """Whether its entries alone are visited along a field, inside of loops over others.

        A copy in another order is dense along its outermost field if the tensor is dense along any; inside of a
        sparse field it is sparse along every other.
        """
        if idx in self.drives:
            return len(self.drives) == len(self.size.idxs) or not bound.isdisjoint(self.size.idxs)
        return idx in self.size.extents and not bound.isdisjoint(self.drives)


def operands_of(expr: LogicNode, sizes: Sizes) -> list[Operand]:
    """The operands of a pointwise expression."""
    sizes.of(expr)
    found: list[Operand] = []
    stack: list[tuple[LogicNode, bool]] = [(expr, True)]
    while stack:
        term, needed = stack.pop()
        while isinstance(term, Reorder) and isinstance(term.arg, MapJoin):
            term = term.arg
        rep = sizes.rep(term)
        if rep.constant or not rep.idxs:
            continue
        if isinstance(term, MapJoin) and needed:
            reps = [sizes.rep(arg) for arg in term.args]
            places = [k for k in range(len(reps)) if not reps[k].constant and decides(term, k, reps)]
            if places:
                stack.extend([(arg, k in places) for k, arg in enumerate(term.args)])
                continue
        size = sizes.of(term)
        selects = needed and bool(size.sparse)
        drives = size.sparse if selects else frozenset[Field]()
        found.append(Operand(size, chains_of(term, sizes), drives, selects))
    return found


def chains_of(expr: LogicNode, sizes: Sizes) -> tuple[Chain, ...]:
    """The storage orders of what an expression reads."""
    chains: dict[tuple[Field, ...], float] = {}
    covered: set[LogicNode] = set()
    for term in pointwise(expr):
        match term:
            case Reorder(Relabel(Alias(), stored) as leaf, wanted):
                covered.add(leaf)
                order = tuple([idx for idx in reversed(stored) if idx in wanted])
            case Relabel(Alias(), stored) | Table(_, stored) if term not in covered:
                order = tuple(reversed(stored))
            case _:
                continue
        size = sizes.of(term)
        cost = size.entries * (COPY_SPARSE if size.sparse else COPY_DENSE)
        chains[order] = max(cost, chains.get(order, 0.0))
    return tuple([Chain(order, cost) for order, cost in chains.items() if len(order) > 1])


class Join:
    """A join whose result keeps some of the fields; gives the cost of orders of its loops.

    ``kept`` are the fields of the result, ``sparse`` those of them along which it is sparse. If ``counts_fill`` a
    reduction has to do with elements that are not stored: it visits them all where it scatters, and counts them
    otherwise.
    """

    def __init__(
        self,
        operands: Sequence[Operand],
        kept: Iterable[Field],
        sparse: frozenset[Field],
        counts_fill: bool = False,
    ) -> None:
        self.counts_fill = counts_fill
        self.operands = operands
        self.kept = frozenset(kept)
        self.sparse = sparse
        self.extents: dict[Field, float] = {}
        for operand in operands:
            for idx, extent in operand.size.extents.items():
                self.extents[idx] = max(extent, self.extents.get(idx, 1.0))

    def step(self, bound: frozenset[Field], idx: Field, last: Field | None) -> tuple[float, float]:
        """Steps that the loop over a field takes inside of loops over others, and how many coordinates it visits.

        ``last`` is the loop right outside. An operand that does not depend on it, while another driver does, is
        looked up in a table (`lowering`) and takes no steps.
        """
        extent = self.extents.get(idx, 1.0)
        lengths: list[float] = []
        looked_up: list[float] = []
        visited = extent
        for operand in self.operands:
            size = operand.size
            if idx not in size.extents:
                continue
            if operand.selects:
                before = size.part(bound.intersection(size.idxs))
                after = size.part(bound.union((idx,)).intersection(size.idxs))
                length = after / before if before else 0.0
                visited *= min(length / size.extents[idx], 1.0) if size.extents[idx] else 0.0
                if operand.drives_at(bound, idx):
                    own = bound.intersection(size.idxs)
                    is_held = bool(own) and last not in own and len(own) == len(size.idxs) - 1
                    (looked_up if is_held else lengths).append(length)
        if looked_up and lengths:
            return (LOOKUP if len(lengths) == 1 else MERGE) * sum(lengths), visited
        lengths += looked_up
        if not lengths:
            return extent, visited
        return (lengths[0] if len(lengths) == 1 else MERGE * sum(lengths)), visited

    def copies(self, bound: frozenset[Field], idx: Field, copied: frozenset[Chain]) -> list[Chain]:
        """The chains that have to be copied if a loop over a field comes next."""
        found = []
        for operand in self.operands:
            for chain in operand.chains:
                if idx in chain.stored and chain not in copied:
                    before = chain.stored[: chain.stored.index(idx)]
                    if not bound.issuperset([other for other in before if other in self.extents]):
                        found.append(chain)
        return found

    def writing(self, order: Sequence[Field], steps: float) -> float:
        """What writing the result costs, ``steps`` being those of the innermost loop; ``order`` is outermost first."""
        first = next((k for k, idx in enumerate(order) if idx not in self.kept), len(order))
        scattered = [idx for idx in order[first:] if idx in self.kept]
        if scattered and self.counts_fill:
            return math.prod(self.extents.get(idx, 1.0) for idx in order)
        if not self.sparse.intersection(scattered):
            return 0.0
        return steps * (SCATTER if len(scattered) == 1 else SORT)

    def is_plain(self, order: Sequence[Field]) -> bool:
        """Whether an order copies nothing, merges nothing and appends no coordinates to be sorted.

        No other order can be much better then, whatever the sizes.
        """
        bound: frozenset[Field] = frozenset()
        for idx in order:
            drivers = sum(operand.drives_at(bound, idx) for operand in self.operands)
            if drivers > 1 or self.copies(bound, idx, frozenset()):
                return False
            bound = bound.union((idx,))
        return self.writing(order, 1.0) <= SCATTER

    def cost(self, order: Sequence[Field], most: float = math.inf) -> float:
        """The cost of an order of loops, outermost first; infinite once it passes ``most``."""
        bound: frozenset[Field] = frozenset()
        copied: frozenset[Chain] = frozenset()
        visits, total, inner = 1.0, 0.0, 1.0
        last: Field | None = None
        for idx in order:
            late = self.copies(bound, idx, copied)
            total += sum(chain.copy for chain in late)
            copied = copied.union(late)
            steps, share = self.step(bound, idx, last)
            last = idx
            inner = visits * steps
            visits *= share
            total += inner
            bound = bound.union((idx,))
            if total > most:
                return math.inf
        return total + self.writing(order, inner)

    def greedy(self, idxs: Iterable[Field], fixed: Sequence[Field] = ()) -> tuple[float, tuple[Field, ...]]:
        """An order in which each loop is the cheapest that could come next, and its cost.

        Those of ``fixed`` keep their order among themselves.
        """
        left = list(idxs)
        bound: frozenset[Field] = frozenset()
        copied: frozenset[Chain] = frozenset()
        visits, total, inner = 1.0, 0.0, 1.0
        order: list[Field] = []
        wait = list(fixed)
        while left:
            best: tuple[float, float, Field, list[Chain]] | None = None
            for idx in left:
                if idx in wait and wait[0] is not idx:
                    continue
                steps, share = self.step(bound, idx, order[-1] if order else None)
                late = self.copies(bound, idx, copied)
                price = visits * steps + sum(chain.copy for chain in late)
                if best is None or price < best[0]:
                    best = price, share, idx, late
                    cheapest = visits * steps
            assert best is not None
            price, share, idx, late = best
            inner = cheapest
            total += price
            visits *= share
            copied = copied.union(late)
            bound = bound.union((idx,))
            order.append(idx)
            left.remove(idx)
            if idx in wait:
                wait.remove(idx)
        return total + self.writing(order, inner), tuple(order)

    def best(self, start: Fields, fixed: Sequence[Field], gain: float) -> Fields:
        """The order of least cost, outermost first; ``start`` unless another one costs less than ``gain`` times that.

        Those of ``fixed`` keep their order among themselves. Up to seven loops all orders are tried, branches that
        cost more than the best so far being cut; above that one is found greedily.
        """
        limit = self.cost(start) * gain
        if len(start) > 7:
            cost, order = self.greedy(start, fixed)
            return order if cost < limit else start
        found = start
        # order so far, loops left, visits, cost so far, steps of its innermost loop, chains copied
        stack: list[tuple[Fields, float, float, float, frozenset[Chain]]] = [((), 1.0, 0.0, 1.0, frozenset())]
        while stack:
            order, visits, total, inner, copied = stack.pop()
            if len(order) == len(start):
                total += self.writing(order, inner)
                if total < limit:
                    found, limit = order, total
                continue
            bound = frozenset(order)
            waiting = next((idx for idx in fixed if idx not in bound), None)
            branches = []
            for idx in start:
                if idx in bound or (idx in fixed and idx is not waiting):
                    continue
                late = self.copies(bound, idx, copied)
                steps, share = self.step(bound, idx, order[-1] if order else None)
                sofar = total + visits * steps + sum(chain.copy for chain in late)
                if sofar < limit:
                    branches.append(((*order, idx), visits * share, sofar, visits * steps, copied.union(late)))
            branches.sort(key=lambda branch: -branch[2])
            stack.extend(branches)
        return found
