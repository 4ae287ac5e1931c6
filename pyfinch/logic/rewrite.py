"""Rewriting terms: rules, and the combinators that say where and how often a rule is tried.

A rule is a function from a term to a term, or to None where it does not apply. A combinator of rules is a
rule again. All of them are iterative and visit each distinct term once, so a rule must depend on its term
alone; a shared part of a program is rewritten once and stays shared. What does not change stays the same
object.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar, cast

from pyfinch.algebra.term import Term, postorder

__all__ = ["Chain", "Fixpoint", "PostOrder", "Postwalk", "Prestep", "Prewalk", "Rewrite", "Rule"]

T = TypeVar("T", bound=Term)
Rule = Callable[[Any], Term | None]


@dataclass(frozen=True, slots=True)
class Rewrite:
    """Makes a rule total: a term that it does not change stands for itself.

    Examples
    --------
    >>> from pyfinch.logic.nodes import Alias, Field, Relabel
    >>> rename = Rewrite(Postwalk(lambda term: Field("j") if term is Field("i") else None))
    >>> str(rename(Relabel(Alias("A"), (Field("i"),))))
    'relabel(alias(A), field(j))'
    """

    rule: Rule

    def __call__(self, term: T) -> T:
        made = self.rule(term)
        return term if made is None else cast(T, made)


@dataclass(frozen=True, slots=True)
class Chain:
    """Tries rules one after another, each on what the one before left."""

    rules: Sequence[Rule]

    def __call__(self, term: Term) -> Term | None:
        now = term
        for rule in self.rules:
            made = rule(now)
            if made is not None:
                now = made
        return None if now is term else now


@dataclass(frozen=True, slots=True)
class Fixpoint:
    """Applies a rule until it changes nothing."""

    rule: Rule

    def __call__(self, term: Term) -> Term | None:
        now = term
        while (made := self.rule(now)) is not None and made is not now:
            now = made
        return None if now is term else now


@dataclass(frozen=True, slots=True)
class Prewalk:
    """Applies a rule to a term, then to the children of what it became, and so on downwards.

    What a term became is remembered between calls, so a walk that is repeated costs the changed parts only.
    """

    rule: Rule
    _done: dict[Term, Term] = field(default_factory=dict)

    def __call__(self, term: Term) -> Term | None:
        made = _downwards(term, lambda t: self.rule(t) or t, self._done)
        return None if made is term else made


@dataclass(frozen=True, slots=True)
class Prestep:
    """Like `Prewalk`, but goes below a term only where the rule applied."""

    rule: Rule

    def __call__(self, term: Term) -> Term | None:
        made = _downwards(term, self.rule, {})
        return None if made is term else made


def _downwards(root: Term, step: Rule, done: dict[Term, Term]) -> Term:
    """Rewrite top-down: ``step`` gives the term whose children are next, or None to leave all below alone."""
    entered: dict[Term, Term] = {}
    stack = [root]
    while stack:
        term = stack[-1]
        if term in done:
            stack.pop()
            continue
        now = entered.get(term)
        if now is None:
            made = step(term)
            if made is None:
                done[stack.pop()] = term
                continue
            entered[term] = now = made
            below = [child for child in now.children if child not in done]
            if below:
                if any(child in entered for child in below):
                    raise RecursionError(f"a rule puts a term below itself: {term!r}")
                stack.extend(reversed(below))
                continue
        done[stack.pop()] = now.with_children([done[child] for child in now.children])
    return done[root]


@dataclass(frozen=True, slots=True)
class Postwalk:
    """Applies a rule to the children of a term first, then to what the term became."""

    rule: Rule

    def __call__(self, term: Term) -> Term | None:
        changed: dict[Term, Term] = {}
        rule = self.rule
        for part in postorder(term):
            now = part
            if changed:
                children = part.children
                if not changed.keys().isdisjoint(children):
                    now = part.with_children([changed.get(child, child) for child in children])
            now = rule(now) or now
            if now is not part:
                changed[part] = now
        return changed.get(term)


@dataclass(frozen=True, slots=True)
class PostOrder:
    """The distinct parts of some terms, children before parents."""

    roots: Iterable[Term]

    def __iter__(self) -> Iterator[Term]:
        return postorder(*self.roots)
