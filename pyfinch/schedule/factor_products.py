"""Pass, of the auto scheduler: in which order, and how far fused, sums of products are computed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from pyfinch.algebra.operator import Operator
from pyfinch.algebra.operators import get as operator
from pyfinch.algebra.term import postorder
from pyfinch.logic.nodes import Aggregate, Field, Immediate, LogicNode, MapJoin, Plan, Produces, Query, Reorder, fields
from pyfinch.logic.rewrite import Prewalk, Rewrite
from pyfinch.schedule.common import statements
from pyfinch.schedule.joins import STORE, Join, Operand, operands_of
from pyfinch.schedule.sizes import Size, Sizes

__all__ = ["factor_products"]

#: The most factors that are ordered together.
MOST = 10
#: Up to so many sums every subset of them is tried as what comes first; above, all but one or two.
_ALL_SUBSETS = 5

Idxs = frozenset[Field]
Places = frozenset[int]


def factor_products(plan: Plan, sizes: Sizes) -> Plan:
    """Give each sum of products the nesting of sums of least estimated cost.

    In: a lifted plan whose relabels and reorders stand on leaves. Out: the same grammar. ``sum(A * B * v, j, k)``
    becomes ``sum(A * sum(B * v, j), k)`` where that is cheaper, by the distributive law in any semiring whose
    operators say so, and a sum that a factor stands outside of takes it in where that saves work: ``S * sum(X * Y)``
    is computed only where S has entries. ``where(M, x, 0)`` is such a factor, too. A choice is a set of sums to do
    first; the factors that one of them joins make an intermediate result each (S. M. Aji, R. J. McEliece, "The
    Generalized Distributive Law", IEEE Transactions on Information Theory 46(2), 2000).

    Examples
    --------
    >>> from pyfinch.logic.text import parse
    >>> from pyfinch.formats.format import format
    >>> import numpy as np
    >>> types = {t: format(t).specify(np.float64, 0.0) for t in ("csr", "vector")}
    >>> A = "table(deferred(A, `csr`), field(k), field(i))"
    >>> B = "table(deferred(B, `csr`), field(j), field(k))"
    >>> product = f"mapjoin(immediate(*), {A}, {B}, table(deferred(v, `vector`), field(j)))"
    >>> total = f"aggregate(immediate(+), immediate(0.0), {product}, field(j), field(k))"
    >>> plan = factor_products(parse(f"plan(query(alias(C), {total}))", types), Sizes())
    >>> outer = plan.bodies[0].rhs
    >>> [idx.name for idx in outer.idxs], [idx.name for idx in outer.arg.args[1].idxs]
    (['k'], ['j'])
    """
    if not any(isinstance(term, Aggregate) for term in postorder(plan)):
        return plan
    changed: dict[Query, Query] = {}
    for statement in statements(plan):
        if isinstance(statement, Query):
            made = _Factoring(sizes).query(statement)
            sizes.bind(made)
            if made is not statement:
                changed[statement] = made
    if not changed:
        return plan

    def replaced(node: LogicNode) -> LogicNode | None:
        return changed.get(node) if isinstance(node, Query) else node if isinstance(node, Produces) else None

    result = Rewrite(Prewalk(replaced))(plan)
    assert isinstance(result, Plan)
    return result


class _Factoring:
    """Rewrites the sums of products of one query."""

    def __init__(self, sizes: Sizes) -> None:
        self.sizes = sizes
        self.made: set[LogicNode] = set()

    def query(self, query: Query) -> Query:
        """The query with its sums of products nested anew."""
        rhs = Rewrite(Prewalk(self.rule))(query.rhs)
        return query if rhs is query.rhs else Query(query.lhs, rhs)

    def rule(self, node: LogicNode) -> LogicNode | None:
        """The best nesting of a maximal sum of products."""
        if node in self.made or not isinstance(node, (Aggregate, MapJoin)):
            return None
        product = _collected(node)
        if product is None:
            return None
        if product.is_simple and product.is_plain():
            self.made.add(node)
            return None
        search = _Search(product, self.sizes)
        self.sizes.used = True
        made = search.expression()
        sums = " ".join(idx.name for idx in product.sums)
        self.sizes.notes.append(
            f"sum over {sums} of a product of {len(search.all)}: {len(search.chosen)} nested sums, "
            f"estimated cost {search.cost:.3g}"
        )
        for part in search.parts:
            self.made.add(part)
        old = fields(node)
        return made if fields(made) == old else Reorder(made, old)


@dataclass(slots=True)
class _Product:
    """A sum of products: ``add`` over the fields ``sums`` of the product of factors where all filters hold.

    ``is_simple`` says whether it is written as one sum of one product already.
    """

    add: Immediate
    init: Immediate
    multiply: Immediate
    factors: list[LogicNode]
    filters: list[LogicNode]
    sums: list[Field]
    is_simple: bool

    def is_plain(self) -> bool:
        """Whether nothing can be gained by sums inside of sums: each sum goes over all factors but numbers."""
        tensors = [idxs for idxs in map(fields, [*self.factors, *self.filters]) if idxs]
        return all(idx in idxs for idx in self.sums for idxs in tensors)


def _collected(root: LogicNode) -> _Product | None:
    """What a node is as a sum of products, all sums inside pulled out; None if there is nothing to choose."""
    semiring = _semiring(root)
    if semiring is None:
        return None
    add, init, multiply = semiring
    factors: list[LogicNode] = []
    filters: list[LogicNode] = []
    sums: list[Field] = []
    depth = 0
    stack: list[LogicNode] = [root]
    while stack:
        node = stack.pop()
        room = len(factors) + len(filters) + len(stack) < MOST
        match node:
            case Reorder(MapJoin() | Aggregate() | Reorder() as arg, idxs) if set(idxs) == set(fields(arg)) and room:
                stack.append(arg)
            case Aggregate(op, start, arg, idxs) if op is add and start is init and room and _apart(idxs, sums):
                depth += 1
                sums.extend(idxs)
                stack.append(arg)
            case MapJoin(op, args) if op is multiply and room:
                stack.extend(reversed(args))
            case MapJoin(Immediate(Operator(name="where")), (mask, arg, other)) if _is_same(other, init) and room:
                depth += 1
                filters.append(mask)
                stack.append(arg)
            case _:
                factors.append(node)
    if not sums or len(factors) + len(filters) < 2 or not factors:
        return None
    every = [idx for part in (*factors, *filters) for idx in fields(part)]
    if not set(sums) <= set(every):
        return None
    is_simple = isinstance(root, Aggregate) and depth == 1
    return _Product(add, init, multiply, factors, filters, sums, is_simple)


def _apart(idxs: Sequence[Field], sums: Sequence[Field]) -> bool:
    return set(idxs).isdisjoint(sums)


def _is_same(other: LogicNode, init: Immediate) -> bool:
    """Whether a number is the initial value, in whatever dtype."""
    while isinstance(other, Reorder):
        other = other.arg
    return isinstance(other, Immediate) and isinstance(other.value, np.generic) and bool(other.value == init.value)


def _semiring(root: LogicNode) -> tuple[Immediate, Immediate, Immediate] | None:
    """The operators of a sum of products, and the sum's initial value, if they obey the laws."""
    multiply: Immediate | None = None
    node = root
    while True:
        match node:
            case Reorder(arg, _):
                node = arg
            case MapJoin(Immediate(Operator(name="where")), (_, arg, _)):
                node = arg
            case MapJoin(Immediate(Operator()) as op, args) if multiply is None or multiply is op:
                multiply = op
                inner = next((arg for arg in args if _has_sum(arg, op)), None)
                if inner is None:
                    return None
                node = inner
            case Aggregate(Immediate(Operator() as add) as op, Immediate(np.generic() as start) as init, arg, _):
                if multiply is None:
                    multiply = _product_below(arg)
                if multiply is None or not _is_semiring(add, start, multiply.value):
                    return None
                return op, init, multiply
            case _:
                return None


def _product_below(node: LogicNode) -> Immediate | None:
    """The operator of the product that is summed."""
    while True:
        match node:
            case Reorder(arg, _) | Aggregate(_, _, arg, _) | MapJoin(Immediate(Operator(name="where")), (_, arg, _)):
                if isinstance(node, MapJoin) and not isinstance(arg, (MapJoin, Reorder, Aggregate)):
                    return Immediate(operator("multiply"))
                node = arg
            case MapJoin(Immediate(Operator()) as op, _):
                return op
            case _:
                return None


def _has_sum(node: LogicNode, multiply: Immediate) -> bool:
    """Whether a sum lies below a factor with nothing but products and filters between."""
    stack = [node]
    while stack:
        match stack.pop():
            case Aggregate():
                return True
            case Reorder(arg, _) | MapJoin(Immediate(Operator(name="where")), (_, arg, _)):
                stack.append(arg)
            case MapJoin(op, args) if op is multiply:
                stack.extend(args)
    return False


def _is_semiring(add: Operator, start: Any, multiply: Any) -> bool:
    folds = isinstance(multiply, Operator) and all(
        op.associative and op.commutative and op.arity == -1 for op in (add, multiply)
    )
    return folds and multiply.distributes_over(add) and add.is_identity(start) and bool(multiply.is_annihilator(start))


@dataclass(frozen=True, slots=True)
class _Part:
    """An intermediate result, or a factor: how it is computed, its operands in a join, its cost so far, its place."""

    expr: LogicNode
    operands: tuple[Operand, ...]
    cost: float
    place: int
    is_filter: bool = False


class _Search:
    """Finds the nesting of least cost."""

    def __init__(self, product: _Product, sizes: Sizes) -> None:
        self.product, self.sizes = product, sizes
        self.all: list[LogicNode] = [*product.factors, *product.filters]
        self.fields: list[Idxs] = [frozenset(fields(node)) for node in self.all]
        self.leaves = [
            _Part(node, tuple(self.operands(node)), 0.0, k, k >= len(product.factors))
            for k, node in enumerate(self.all)
        ]
        self.known: dict[tuple[Places, Idxs], _Part | None] = {}
        self.parts: list[LogicNode] = []
        self.cost = 0.0
        self.chosen: set[Aggregate] = set()

    def operands(self, node: LogicNode) -> list[Operand]:
        """What a factor brings into a join: it drives only if its fill makes the product the sum's initial value."""
        found = operands_of(node, self.sizes)
        rep = self.sizes.rep(node)
        fill = rep.fill.value if isinstance(rep.fill, Immediate) else None
        is_filter = node in self.product.filters
        if rep.constant or (fill is not None and (not fill if is_filter else bool(fill == self.product.init.value))):
            return found
        return [Operand(o.size, o.chains, frozenset(), False) for o in found]

    def expression(self) -> LogicNode:
        """The product as it is to be computed."""
        best = self.best(frozenset(range(len(self.all))), frozenset(self.product.sums), final=True)
        assert best is not None
        self.cost = best.cost
        self.chosen = {term for term in postorder(best.expr) if isinstance(term, Aggregate) and term in self.parts}
        return best.expr

    def best(self, places: Places, sums: Idxs, final: bool = False) -> _Part | None:
        """The best way to do some sums over the product of some factors; None for filters alone."""
        key = places, sums
        if key in self.known:
            return self.known[key]
        chosen: _Part | None = None
        if any(not self.leaves[place].is_filter for place in places):
            for first in self.choices(sums):
                made = self.attempt(places, sums, first, final, chosen.cost if chosen is not None else None)
                if made is not None and (chosen is None or made.cost < chosen.cost):
                    chosen = made
        self.known[key] = chosen
        if chosen is not None:
            self.parts.append(chosen.expr)
            if isinstance(chosen.expr, Aggregate):
                self.parts.append(chosen.expr.arg)
        return chosen

    def choices(self, sums: Idxs) -> Iterator[Idxs]:
        """Sets of sums to do before the others."""
        ordered = [idx for idx in self.product.sums if idx in sums]
        yield frozenset()
        least = 1 if len(ordered) <= _ALL_SUBSETS else max(1, len(ordered) - 2)
        # all of them first is a choice where a factor without them is left: a filter, or what is outside of the sums
        for count in range(len(ordered), least - 1, -1):
            for chosen in combinations(ordered, count):
                yield frozenset(chosen)

    def attempt(self, places: Places, sums: Idxs, first: Idxs, final: bool, limit: float | None) -> _Part | None:
        """Do ``first``, then the other sums, all in one loop nest."""
        rest = set(places)
        inner: list[_Part] = []
        for group, own in self.groups(places, first):
            if group == places:
                return None  # the same loops
            part = self.best(group, own)
            if part is None or (limit is not None and part.cost >= limit):
                return None
            inner.append(part)
            rest -= group
        inner += [self.leaves[place] for place in rest]
        inner.sort(key=lambda part: (part.is_filter, part.place))
        if all(part.is_filter for part in inner):
            return None
        return self.joined(inner, sums - first, final)

    def groups(self, places: Places, sums: Idxs) -> list[tuple[Places, Idxs]]:
        """The factors that some sums join, and the sums that do, group by group."""
        left = [(frozenset([p for p in places if idx in self.fields[p]]), frozenset([idx])) for idx in sorted_(sums)]
        groups: list[tuple[Places, Idxs]] = []
        for group, own in left:
            apart = []
            for other, theirs in groups:
                if other & group:
                    group, own = group | other, own | theirs
                else:
                    apart.append((other, theirs))
            groups = [*apart, (group, own)]
        return groups

    def joined(self, parts: list[_Part], sums: Idxs, final: bool) -> _Part:
        """The product of some parts, summed."""
        product = self.product
        expr = self.multiplied(parts)
        idxs = tuple([idx for idx in product.sums if idx in sums])
        if idxs:
            expr = Aggregate(product.add, product.init, expr, idxs)
        every = dict.fromkeys([idx for part in parts for idx in fields(part.expr)])
        kept = [idx for idx in every if idx not in sums]
        operands = [operand for part in parts for operand in part.operands]
        size = self.size(operands, kept)
        join = Join(operands, kept, size.sparse)
        cost, _ = join.greedy(every)
        cost += sum(part.cost for part in parts)
        if not final:
            cost += STORE * size.entries
        result = Operand(size, (), size.sparse, bool(size.sparse))
        return _Part(expr, (result,), cost, min(part.place for part in parts))

    def multiplied(self, parts: list[_Part]) -> LogicNode:
        """The product of some parts, the filters among them around it."""
        factors = [part.expr for part in parts if not part.is_filter]
        expr = factors[0] if len(factors) == 1 else MapJoin(self.product.multiply, tuple(factors))
        for part in parts:
            if part.is_filter:
                expr = MapJoin(Immediate(operator("where")), (part.expr, expr, self.product.init))
        return expr

    def size(self, operands: list[Operand], kept: list[Field]) -> Size:
        """The size of the result of a join."""
        extents: dict[Field, float] = {}
        for operand in operands:
            for idx, extent in operand.size.extents.items():
                extents[idx] = max(extent, extents.get(idx, 1.0))
        filled = 1.0
        sparse: set[Field] = set()
        for operand in operands:
            if operand.selects:
                filled *= min(operand.size.entries / max(operand.size.space, 1.0), 1.0)
                sparse |= operand.size.sparse
        space = 1.0
        for extent in extents.values():
            space *= extent
        whole = Size(tuple(extents), extents, filled * space, frozenset(sparse))
        own = {idx: extents[idx] for idx in kept}
        lists = frozenset(sparse).intersection(kept)
        made = Size(tuple(kept), own, 0.0, lists)
        entries = whole.part(frozenset(kept)) if lists else made.space
        return Size(tuple(kept), own, entries, lists)


def sorted_(sums: Idxs) -> list[Field]:
    """Fields in a fixed order."""
    return sorted(sums, key=lambda idx: idx.name)
