"""Terms: immutable, hash-consed trees, the base of the nodes of both intermediate languages.

Two terms built from equal parts are the same object, so identity is structural equality: comparing
programs, finding common subexpressions and keying a cache all cost one pointer comparison, and a term's
hash is its identity's. Values are compared by type and bits: ``1``, ``True`` and ``1.0`` differ, ``0.0``
and ``-0.0`` differ, one nan equals another. Nothing here recurses over a term, so chains thousands deep and
DAGs with astronomically many paths are fine.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import MISSING, fields
from functools import cache
from itertools import islice
from operator import is_ as _is
from typing import Any, ClassVar, Self, cast
from weakref import KeyedRef

import numpy as np

__all__ = ["Term", "postorder", "preorder"]

# A plain dictionary of weak references: building terms is what schedulers spend their time on.
_table: dict[tuple[Any, ...], KeyedRef[tuple[Any, ...], Term]] = {}
_lock = threading.RLock()  # re-entrant: a garbage collection inside may build or drop terms
_EXACT_TYPES = (str, int, bool, bytes, type(None), type)


class _ById:
    """A key for a value told apart by identity only; it keeps the value alive, so ids stay unique."""

    __slots__ = ("value",)

    def __init__(self, value: object) -> None:
        self.value = value

    def __hash__(self) -> int:
        return id(self.value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _ById) and other.value is self.value


def _key(value: Any) -> Any:
    """The part of an interning key that stands for ``value``: a term stands for itself."""
    if isinstance(value, Term):
        return value
    kind = type(value)
    if kind is tuple:
        return tuple([_key(item) for item in value])
    if kind in _EXACT_TYPES:
        return (kind, value)
    if kind is float or kind is complex:
        return (kind, _bits(np.float64(value) if kind is float else np.complex128(value)))
    if isinstance(value, np.generic):
        return (value.dtype.str, _bits(value))
    if getattr(kind, "__eq__", None) is object.__eq__:
        return value
    try:
        hash(value)
    except TypeError:
        return _ById(value)
    return (kind, value)


def _bits(value: Any) -> bytes | str:
    """The bytes of a NumPy scalar, all nans of a dtype being one."""
    if value.dtype.kind in "fc" and value != value:
        parts = (value.real, value.imag) if value.dtype.kind == "c" else (value,)
        return ",".join("nan" if part != part else part.tobytes().hex() for part in parts)
    return bytes(value.tobytes())


class _TermMeta(type):
    """Makes the constructor of a term return the one existing term with the same parts, if there is one."""

    def __call__(cls, *args: Any, **named: Any) -> Any:
        if named or len(args) != len(cls.__match_args__):  # type: ignore[attr-defined]
            args = _bind(cls, args, named)
        args = cls._canonical(args)  # type: ignore[attr-defined]
        parts: list[Any] = [cls]
        children: list[Term] = []
        for arg in args:
            if isinstance(arg, Term):
                parts.append(arg)
                children.append(arg)
            elif type(arg) is tuple and arg and isinstance(arg[0], Term):
                parts.append(arg)
                children += arg
            else:
                parts.append(_key(arg))
        key = tuple(parts)
        reference = _table.get(key)
        if reference is not None:
            found = reference()
            if found is not None:
                return found
        made = object.__new__(cast(type[Term], cls))
        for set_part, arg in zip(_setters(cls), args, strict=True):
            set_part(made, arg)
        _set_children(made, tuple(children))
        with _lock:
            reference = _table.get(key)
            found = reference() if reference is not None else None
            if found is not None:
                return found
            _table[key] = KeyedRef(made, _forget, key)
        return made


def _forget(reference: Any) -> None:
    """Drop the entry of a term that is gone, unless an equal one has taken its place."""
    key = reference.key
    if _table.get(key) is reference:
        del _table[key]


def _holds_terms(part: Any) -> bool:
    return type(part) is tuple and bool(part) and isinstance(part[0], Term)


@cache
def _setters(cls: type) -> tuple[Callable[[Any, Any], None], ...]:
    """The functions that fill the slots of a frozen instance, without the dataclass's slower __init__."""
    return tuple([getattr(cls, field.name).__set__ for field in fields(cls)])


def _bind(cls: type, args: tuple[Any, ...], named: dict[str, Any]) -> tuple[Any, ...]:
    """The constructor's arguments, all positional."""
    bound = list(args)
    rest = dict(named)
    for field in islice(fields(cls), len(args), None):
        if field.name in rest:
            bound.append(rest.pop(field.name))
        elif field.default is not MISSING:
            bound.append(field.default)
        else:
            raise TypeError(f"{cls.__name__}() is missing the argument {field.name!r}")
    if rest or len(bound) != len(fields(cls)):
        raise TypeError(f"{cls.__name__}() got arguments that it does not have: {rest or bound}")
    return tuple(bound)


class Term(metaclass=_TermMeta):
    """The base of all nodes.

    A subclass is declared ``@dataclass(frozen=True, slots=True, eq=False, repr=False)``. A field of it holds
    a term, a tuple of terms, or a plain value (a string, a number, a NumPy scalar, an operator, a format, a
    tuple of these). Terms compare by identity, which is structural equality, see the module.
    """

    __slots__ = ("__weakref__", "_children")
    __match_args__: ClassVar[tuple[str, ...]] = ()
    _children: tuple[Term, ...]

    @classmethod
    def _canonical(cls, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """The arguments as they are stored; a subclass may normalise them here."""
        return args

    @property
    def children(self) -> tuple[Term, ...]:
        """The terms directly below, in the order of the fields, tuples spliced."""
        return self._children

    def with_children(self, children: Sequence[Term]) -> Self:
        """The same term over other children, as many as before; itself when they are the same objects."""
        old = self._children
        if len(children) != len(old):
            raise ValueError(f"{type(self).__name__} has {len(old)} children, got {len(children)}")
        if all(map(_is, old, children)):
            return self
        parts: list[Any] = []
        place = 0
        for name in self.__match_args__:
            part = getattr(self, name)
            if isinstance(part, Term):
                part = children[place]
                place += 1
            elif type(part) is tuple and part and isinstance(part[0], Term):
                count = len(part)
                part = tuple(children[place : place + count])
                place += count
            parts.append(part)
        return type(self)(*parts)

    def _parts(self) -> tuple[Any, ...]:
        return tuple([getattr(self, name) for name in self.__match_args__])

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: object) -> Self:
        return self

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        return _rebuild, (_flatten(self),)

    def __repr__(self) -> str:
        return _repr(self, 200)


_set_children: Callable[[Any, Any], None] = Term.__dict__["_children"].__set__


class _Ref(int):
    """In a flattened term: the position of the term that stands here."""


def _flatten(root: Term) -> tuple[tuple[type, tuple[Any, ...]], ...]:
    """A term as a flat tuple, children before parents, so that pickling it does not recurse."""
    places: dict[Term, _Ref] = {}
    flat: list[tuple[type, tuple[Any, ...]]] = []
    for term in postorder(root):
        places[term] = _Ref(len(flat))
        parts: list[Any] = []
        for part in term._parts():
            if isinstance(part, Term):
                parts.append(places[part])
            elif _holds_terms(part):
                parts.append(tuple([places[item] for item in part]))
            else:
                parts.append(part)
        flat.append((type(term), tuple(parts)))
    return tuple(flat)


def _rebuild(flat: tuple[tuple[type, tuple[Any, ...]], ...]) -> Term:
    made: list[Term] = []
    for kind, parts in flat:
        args: list[Any] = []
        for part in parts:
            if isinstance(part, _Ref):
                args.append(made[part])
            elif type(part) is tuple and part and isinstance(part[0], _Ref):
                args.append(tuple([made[item] for item in part]))
            else:
                args.append(part)
        made.append(kind(*args))
    return made[-1]


def postorder(*roots: Term, seen: set[Term] | None = None) -> Iterator[Term]:
    """Every distinct term reachable from the roots once, children before parents, left to right.

    Linear in the number of distinct terms, however many paths lead to them. Terms in ``seen`` are left out
    with what is below them; those that are visited are added to it.
    """
    seen = set() if seen is None else seen
    stack: list[tuple[Term, Iterator[Term]]] = []
    for root in roots:
        if root in seen:
            continue
        seen.add(root)
        stack.append((root, iter(root.children)))
        while stack:
            term, rest = stack[-1]
            for child in rest:
                if child not in seen:
                    seen.add(child)
                    stack.append((child, iter(child.children)))
                    break
            else:
                stack.pop()
                yield term


def preorder(*roots: Term) -> Iterator[Term]:
    """Every distinct term reachable from the roots once, in order of first appearance when read as text."""
    seen: set[Term] = set()
    stack = list(reversed(roots))
    while stack:
        term = stack.pop()
        if term not in seen:
            seen.add(term)
            yield term
            stack.extend(reversed(term.children))


def _repr(root: Term, limit: int) -> str:
    """A constructor-like text, cut after ``limit`` terms: a DAG written as a tree can be huge."""
    out: list[str] = []
    stack: list[Any] = [root]
    while stack:
        item = stack.pop()
        if isinstance(item, Term):
            limit -= 1
            if limit < 0:
                out.append("…")
                continue
            stack.append(")")
            stack.extend(reversed(_separated(item._parts())))
            stack.append(f"{type(item).__name__}(")
        elif isinstance(item, str):
            out.append(item)
    return "".join(out)


def _separated(parts: Iterable[Any]) -> list[Any]:
    """The parts as strings and terms, with commas between them and parentheses around tuples of terms."""
    out: list[Any] = []
    for part in parts:
        if out:
            out.append(", ")
        if isinstance(part, Term):
            out.append(part)
        elif _holds_terms(part):
            out += ["(", *_separated(part), "," if len(part) == 1 else "", ")"]
        else:
            out.append(repr(part))
    return out
