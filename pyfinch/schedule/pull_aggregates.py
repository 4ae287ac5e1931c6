"""Shared by ``propagate_map_queries_backward``: lift reductions as far up as the operators' laws allow.

The rules are tried top-down over the whole program, and that again until none applies. One such sweep moves
a reduction up by one operation, and which of two goes first matters for the result. Sweeping over terms
would cost the depth of the program for each step; so the parts of the program that hold reductions are
copied into mutable cells, and a sweep visits, in the same order, only those cells that the sweep before may
have enabled.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Mapping
from fractions import Fraction
from itertools import count
from typing import TypeVar, cast

from pyfinch.algebra.term import Term, postorder
from pyfinch.logic.nodes import Aggregate, Field, Immediate, LogicNode, MapJoin, Reorder
from pyfinch.schedule import laws
from pyfinch.schedule.common import FieldsOf

__all__ = ["pull_aggregates"]

N = TypeVar("N", bound=LogicNode)


class _Cell:
    """A part of the program. ``like`` is a node of its kind, whose operator and init it has."""

    __slots__ = ("above", "below", "depth", "fields", "idxs", "like")

    def __init__(
        self,
        like: LogicNode,
        below: list[_Cell],
        idxs: tuple[Field, ...],
        fields: frozenset[Field],
        depth: Fraction,
    ) -> None:
        self.above: dict[int, _Cell] = {}
        self.below: list[_Cell] = []
        self.fields = fields
        self.depth = depth  # less than that of every cell below
        self.become(like, below, idxs)

    def become(self, like: LogicNode, below: list[_Cell], idxs: tuple[Field, ...]) -> None:
        """Change what it is; its fields stay."""
        for cell in self.below:
            cell.above.pop(id(self), None)
        self.like, self.below, self.idxs = like, below, idxs
        for cell in below:
            cell.above[id(self)] = self

    def over(self, like: LogicNode, below: list[_Cell], idxs: tuple[Field, ...]) -> _Cell:
        """A new cell between this one and those below."""
        fields = frozenset(idxs).union(*[cell.fields for cell in below])
        depth = (self.depth + min(cell.depth for cell in below)) / 2
        return _Cell(like, below, idxs, fields, depth)


def pull_aggregates(program: N, fields_of: FieldsOf) -> N:
    """Apply the three rules of `propagate_map_queries_backward` to a fixpoint.

    Parameters
    ----------
    program
        Any node.
    fields_of
        Gives the fields of its expressions.
    """
    root, cells = _cells(program, fields_of)
    order = count()
    now = cells
    while now:
        heap = [(cell.depth, next(order), cell) for cell in now]
        heapq.heapify(heap)
        enabled: dict[int, _Cell] = {}
        while heap:
            cell = heapq.heappop(heap)[2]
            steps = list(_apply(cell))
            for made in steps:
                if made is not None:
                    heapq.heappush(heap, (made.depth, next(order), made))
            if steps:
                enabled[id(cell)] = cell
                enabled.update(cell.above)
        now = list(enabled.values())
    return cast(N, _term(root)) if cells else program


def _cells(program: LogicNode, fields_of: FieldsOf) -> tuple[_Cell, list[_Cell]]:
    """The cell of the program, and the cells right above a reduction."""
    terms = [cast(LogicNode, term) for term in postorder(program)]
    holding: set[Term] = set()
    cells: dict[Term, _Cell] = {}

    def cell_of(term: LogicNode, below: list[_Cell], depth: int) -> _Cell:
        idxs = term.idxs if isinstance(term, (Aggregate, Reorder)) else ()
        return _Cell(term, below, idxs, frozenset(_fields(term, fields_of)), Fraction(depth))

    for place, term in enumerate(terms):
        if isinstance(term, Aggregate) or any(child in holding for child in term.children):
            holding.add(term)
            below = []
            for child in _operands(term):
                if child not in cells:
                    cells[child] = cell_of(child, [], len(terms))
                below.append(cells[child])
            cells[term] = cell_of(term, below, len(terms) - 1 - place)
    root = cells[program] if program in cells else cell_of(program, [], 0)
    above = {id(cell): cell for term in holding if isinstance(term, Aggregate) for cell in cells[term].above.values()}
    return root, list(above.values())


def _fields(term: LogicNode, fields_of: FieldsOf) -> tuple[Field, ...]:
    try:
        return fields_of(term)
    except TypeError:  # a statement
        return ()


def _operands(term: LogicNode) -> tuple[LogicNode, ...]:
    """The children that cells are made for: operands of the nodes that the rules know, all of any other."""
    match term:
        case MapJoin(_, args):
            return args
        case Aggregate(_, _, arg, _) | Reorder(arg, _):
            return (arg,)
        case _:
            return cast(tuple[LogicNode, ...], term.children)


def _apply(cell: _Cell) -> Iterator[_Cell | None]:
    """Try each rule once, one after another; for each that applies, the new cell below, if any."""
    if isinstance(cell.like, MapJoin):
        place = _leaving(cell)
        if place is not None:
            inner = cell.below[place]
            below = [*cell.below[:place], inner.below[0], *cell.below[place + 1 :]]
            made = cell.over(cell.like, below, ())
            cell.become(inner.like, [made], inner.idxs)
            yield made
    match cell.like, cell.below[0].like if cell.below else None:
        case Aggregate(op, Immediate(), _, _), Aggregate(inner_op, Immediate(start), _, _) if (
            op is inner_op and isinstance(op, Immediate) and laws.is_identity(op.value, start)
        ):
            inner = cell.below[0]
            cell.become(cell.like, inner.below, inner.idxs + cell.idxs)
            yield None
        case Reorder(), Aggregate() as reduction:
            inner = cell.below[0]
            made = cell.over(cell.like, inner.below, cell.idxs + inner.idxs)
            cell.become(reduction, [made], inner.idxs)
            yield made


def _leaving(cell: _Cell) -> int | None:
    """The place of the argument of a map-join whose reduction can leave it: the last, as in Finch.jl."""
    op = cast(MapJoin, cell.like).op
    for place in reversed(range(len(cell.below))):
        match op, cell.below[place].like:
            case Immediate(outer), Aggregate(Immediate(inner), Immediate(init), _, _) if laws.distributes(
                outer, inner
            ) and laws.annihilates(outer, init):
                arg = cell.below[place]
                others = cell.below[:place] + cell.below[place + 1 :]
                around = frozenset[Field]().union(*[other.fields for other in others])
                # A field that the aggregate binds must not catch one of the same name outside.
                if len(arg.fields) == len(around) and around.isdisjoint(arg.idxs):
                    return place
    return None


def _term(root: _Cell) -> Term:
    """The program that cells stand for now."""
    made: dict[int, Term] = {}
    stack = [root]
    while stack:
        cell = stack[-1]
        missing = [below for below in cell.below if id(below) not in made]
        if id(cell) in made:
            stack.pop()
        elif missing:
            stack.extend(missing)
        else:
            made[id(stack.pop())] = _node(cell, made)
    return made[id(root)]


def _node(cell: _Cell, made: Mapping[int, Term]) -> Term:
    below = cast(tuple[LogicNode, ...], tuple([made[id(part)] for part in cell.below]))
    match cell.like:
        case MapJoin(op, _):
            return MapJoin(op, below) if below else cell.like
        case Aggregate(op, init, _, _) if below:
            return Aggregate(op, init, below[0], cell.idxs)
        case Reorder() if below:
            return Reorder(below[0], cell.idxs)
        case like:
            return like.with_children(below) if below else like
