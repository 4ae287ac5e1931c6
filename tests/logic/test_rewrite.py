"""Rewriting combinators."""

from __future__ import annotations

import pytest

from pyfinch.algebra.operators import get
from pyfinch.algebra.term import Term
from pyfinch.logic.nodes import Alias, Field, Immediate, LogicNode, MapJoin, Relabel
from pyfinch.logic.rewrite import Chain, Fixpoint, PostOrder, Postwalk, Prestep, Prewalk, Rewrite

A, B, C = Alias("A"), Alias("B"), Alias("C")
F = Immediate(get("max"))


def join(*args: LogicNode) -> MapJoin:
    return MapJoin(F, args)


def swap(term: Term) -> Term | None:
    return B if term is A else None


def test_what_does_not_change_is_the_same_object() -> None:
    node = join(C, join(C))
    for walk in (Prewalk(swap), Postwalk(swap), Prestep(swap), Fixpoint(swap), Chain([swap])):
        assert walk(node) is None
        assert Rewrite(walk)(node) is node


def test_walks_reach_every_part() -> None:
    node = join(A, join(A, C))
    assert Rewrite(Prewalk(swap))(node) is Rewrite(Postwalk(swap))(node) is join(B, join(B, C))


def test_prewalk_goes_below_what_a_rule_made_and_postwalk_does_not() -> None:
    def unfold(term: Term) -> Term | None:
        return join(A) if term is C else swap(term)

    assert Rewrite(Prewalk(unfold))(C) is join(B)
    assert Rewrite(Postwalk(unfold))(C) is join(A)


def test_postwalk_sees_children_rewritten() -> None:
    seen: list[Term] = []

    def note(term: Term) -> Term | None:
        seen.append(term)
        return swap(term)

    Postwalk(note)(join(A))
    assert seen == [F, A, join(B)]


def test_prestep_stops_where_the_rule_does_not_apply() -> None:
    def rule(term: Term) -> Term | None:
        return swap(term) or (term if isinstance(term, MapJoin) else None)

    assert Rewrite(Prestep(rule))(join(A, Relabel(A, (Field("i"),)))) is join(B, Relabel(A, (Field("i"),)))


def test_chain_and_fixpoint() -> None:
    def next_alias(term: Term) -> Term | None:
        return {A: B, B: C}.get(term)  # type: ignore[call-overload]

    assert Rewrite(Chain([next_alias, next_alias]))(A) is C
    assert Rewrite(Chain([next_alias]))(A) is B
    assert Rewrite(Fixpoint(next_alias))(A) is C


def test_post_order_is_over_distinct_parts() -> None:
    node = join(A, join(A))
    assert list(PostOrder([node])) == [F, A, join(A), node]


def test_a_shared_part_is_rewritten_once() -> None:
    calls = 0

    def count(term: Term) -> Term | None:
        nonlocal calls
        calls += 1
        return swap(term)

    node: LogicNode = A
    for _ in range(60):
        node = join(node, node)
    for walk in (Prewalk(count), Postwalk(count)):
        calls = 0
        assert walk(node) is not None
        assert calls < 200


def test_a_rule_that_nests_forever_is_reported() -> None:
    with pytest.raises(RecursionError, match="below itself"):
        Prewalk(lambda term: join(term) if term is A else None)(A)


def test_depth_is_no_limit() -> None:
    node: LogicNode = A
    for _ in range(20_000):
        node = join(node)
    for walk in (Prewalk(swap), Postwalk(swap)):
        assert walk(node) is not None
