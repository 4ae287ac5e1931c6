"""Estimates: how many entries a tensor or an expression has, from the statistics of the tensors it is made of.

Entries are taken to be spread evenly and independently (Deeds, Ahrens, Balazinska, Suciu, "Galley: Modern Query
Optimization for Sparse Tensor Programs", 2024, compares such estimates). Without statistics each mode has a
thousand slices, of which a sparse fiber holds ten.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from pyfinch.algebra.term import Term, postorder
from pyfinch.formats.statistics import Bins, density_of_bin, size_of_bin
from pyfinch.logic.fills import apply_to_fills
from pyfinch.logic.nodes import (
    Aggregate,
    Alias,
    Deferred,
    Field,
    LogicNode,
    MapJoin,
    Query,
    Reformat,
    Relabel,
    Reorder,
    Table,
)
from pyfinch.schedule.traits import Rep, Trait, infer_parts, spread

__all__ = ["EXTENT", "FIBER", "Size", "Sizes"]

EXTENT = 1000.0
FIBER = 10.0


@dataclass(frozen=True, slots=True)
class Size:
    """What is estimated of a tensor or an expression.

    Attributes
    ----------
    idxs
        Its fields, the last one outermost.
    extents
        The size of each field.
    entries
        How many of its elements are not the fill.
    sparse
        The fields along which loops may skip what is not stored.
    """

    idxs: tuple[Field, ...]
    extents: Mapping[Field, float]
    entries: float
    sparse: frozenset[Field]
    _parts: dict[frozenset[Field], float] = field(default_factory=dict, compare=False)

    @property
    def space(self) -> float:
        """How many elements there are."""
        return math.prod(self.extents[idx] for idx in self.idxs)

    def part(self, some: frozenset[Field]) -> float:
        """How many different coordinates the entries have in some of the fields."""
        found = self._parts.get(some)
        if found is None:
            own = math.prod(self.extents[idx] for idx in self.idxs if idx in some)
            found = self._parts[some] = own * _any(self.entries, self.space, self.space / max(own, 1e-300))
        return found

    def renamed(self, names: Mapping[Field, Field]) -> Size:
        """The same with other names of fields."""
        return Size(
            tuple([names[idx] for idx in self.idxs]),
            {names[idx]: extent for idx, extent in self.extents.items() if idx in names},
            self.entries,
            frozenset([names[idx] for idx in self.sparse]),
        )


def _any(entries: float, space: float, draws: float) -> float:
    """The chance that any of some elements is an entry."""
    if entries >= space or draws <= 1.0:
        return min(entries / space, 1.0) if space else 0.0
    return -math.expm1(draws * math.log1p(-entries / space))


class Sizes:
    """The sizes of all that a program reads and binds.

    ``used`` says whether any statistics were asked for; ``notes`` says in words what was decided by them.
    """

    def __init__(self, statistics: Mapping[str, Bins] | None = None) -> None:
        self.statistics = statistics
        self.used = False
        self.notes: list[str] = []
        self.reps: dict[Alias, Rep] = {}
        self.bound: dict[Alias, Size] = {}
        self._waiting: list[Query] = []
        self._parts: dict[Term, Rep] = {}
        self._sizes: dict[Term, Size] = {}
        self._inferred: set[Term] = set()
        self._seen: set[Term] = set()

    def bind(self, query: Query) -> None:
        """Note what a query binds; it is looked at when it is asked for."""
        self._waiting.append(query)

    def _settle(self) -> None:
        waiting, self._waiting = self._waiting, []
        for query in waiting:
            rep = spread(self.rep(query.rhs), query.rhs)
            self.reps[query.lhs] = rep
            if not rep.constant:
                self.bound[query.lhs] = self.of(query.rhs)

    def rep(self, expr: LogicNode) -> Rep:
        """The structure of an expression."""
        if self._waiting:
            self._settle()
        if expr not in self._parts:
            infer_parts(expr, self.reps, self._parts, self._inferred)
        return self._parts[expr]

    def of(self, expr: LogicNode) -> Size:
        """The size of an expression."""
        found = self._sizes.get(expr)
        if found is None:
            self.rep(expr)
            for term in postorder(expr, seen=self._seen):
                made = self._size(term)
                if made is not None:
                    self._sizes[term] = made
            found = self._sizes[expr]
        return found

    def _size(self, term: Term) -> Size | None:
        match term:
            case Table(tensor, idxs):
                return self._table(tensor, idxs)
            case Alias() if term in self.bound:
                return self.bound[term]
            case Relabel(arg, idxs) if arg in self._sizes:
                inner = self._sizes[arg]
                return inner.renamed(dict(zip(inner.idxs, idxs, strict=True))) if inner.idxs else inner
            case Reorder(arg, idxs) if arg in self._sizes:
                return self._reorder(self._sizes[arg], idxs, self._parts[term])
            case Reformat(_, arg) if arg in self._sizes:
                inner = self._sizes[arg]
                return Size(inner.idxs, inner.extents, inner.entries, _sparse(self._parts[term]))
            case MapJoin():
                return self._map(term)
            case Aggregate(_, _, arg, dropped):
                return self._aggregate(term, self._sizes.get(arg), dropped)
            case LogicNode() if term in self._parts:
                return Size((), {}, 1.0, frozenset())
        return None

    def _table(self, tensor: LogicNode, idxs: tuple[Field, ...]) -> Size:
        rep = self._parts[Table(tensor, idxs)]
        bins = None
        if isinstance(tensor, Deferred) and self.statistics is not None:
            bins = self.statistics.get(tensor.expr)
        if bins is not None:
            extents = {idx: size_of_bin(b) for idx, b in zip(reversed(idxs), bins, strict=False)}
            space = math.prod(extents.values())
            lists = bins[len(idxs) :]
            entries = space * density_of_bin(lists[-1]) if lists else space
            return Size(idxs, extents, entries, _sparse(rep))
        extents = dict.fromkeys(idxs, EXTENT)
        entries = math.prod(FIBER if trait is Trait.SPARSE else EXTENT for trait in rep.traits)
        if rep.traits and all(trait is Trait.SPARSE for trait in rep.traits):
            entries *= EXTENT / FIBER  # coordinates of a matrix, not of a handful of its elements
        return Size(idxs, extents, entries, _sparse(rep))

    @staticmethod
    def _reorder(inner: Size, idxs: tuple[Field, ...], rep: Rep) -> Size:
        extents = {idx: inner.extents.get(idx, 1.0) for idx in idxs}
        return Size(idxs, extents, inner.entries, _sparse(rep))

    def _map(self, term: MapJoin) -> Size:
        rep = self._parts[term]
        args = [self._sizes[arg] for arg in term.args]
        reps = [self._parts[arg] for arg in term.args]
        extents: dict[Field, float] = {}
        for arg in args:
            for idx, extent in arg.extents.items():
                extents[idx] = max(extent, extents.get(idx, 1.0))
        space = math.prod(extents[idx] for idx in rep.idxs)
        density = 1.0
        if Trait.SPARSE in rep.traits:
            needed, absent = 1.0, 1.0
            for place, (arg, own) in enumerate(zip(args, reps, strict=True)):
                if own.constant:
                    continue
                filled = arg.entries / arg.space if own.traits and arg.space else 1.0
                if decides(term, place, reps):
                    needed *= filled
                else:
                    absent *= 1.0 - min(filled, 1.0)
            density = needed if needed < 1.0 else 1.0 - absent
        return Size(rep.idxs, extents, density * space, _sparse(rep))

    def _aggregate(self, term: Aggregate, inner: Size | None, dropped: tuple[Field, ...]) -> Size:
        rep = self._parts[term]
        assert inner is not None
        extents = {idx: inner.extents.get(idx, 1.0) for idx in rep.idxs}
        made = Size(rep.idxs, extents, 0.0, _sparse(rep))
        entries = inner.part(frozenset(rep.idxs)) if Trait.SPARSE in rep.traits else made.space
        return Size(rep.idxs, extents, entries, made.sparse)


def decides(term: MapJoin, place: int, reps: Iterable[Rep]) -> bool:
    """Whether a map-join has its own fill wherever its argument at this place has its fill."""
    op = term.op.value  # type: ignore[attr-defined]
    own = list(reps)
    fills = [rep.fill if rep.constant or k == place else None for k, rep in enumerate(own)]
    fill = apply_to_fills(op, [rep.fill for rep in own], [rep.dtype for rep in own])
    found = apply_to_fills(op, fills, [rep.dtype for rep in own])
    return found is not None and found is fill


def _sparse(rep: Rep) -> frozenset[Field]:
    return frozenset([idx for idx, trait in zip(rep.idxs, rep.traits, strict=False) if trait is Trait.SPARSE])
