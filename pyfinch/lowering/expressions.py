"""Pointwise Logic expressions as scalar expressions of the Loop language."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from pyfinch.algebra.errors import ScheduleError
from pyfinch.algebra.term import postorder
from pyfinch.formats.format import FType
from pyfinch.formats.levels import Dense
from pyfinch.logic.nodes import Alias, Field, Immediate, LogicNode, MapJoin, Relabel, Reorder
from pyfinch.loops.nodes import Access, Call, Index, Literal, LoopNode, Variable
from pyfinch.loops.simplify import dtype_of, fill_of, simplify_call

__all__ = ["Expressions"]

DType = np.dtype[Any]


class Expressions:
    """Lowers the expressions of one query, naming operands ``A B C …`` and indices ``i j k …`` by appearance."""

    def __init__(self, types: Mapping[Alias, FType], same: Mapping[Alias, Alias], wide: bool = False) -> None:
        self.types = types
        self.same = same
        self.wide = wide
        self.variables: dict[Alias, Variable] = {}
        self.names: dict[Field, Index] = {}
        self.accesses: list[Access] = []

    @property
    def operands(self) -> tuple[str, ...]:
        """The aliases that are read, in the order of their variables."""
        return tuple(alias.name for alias in self.variables)

    def index(self, field: Field) -> Index:
        """The loop index of a field."""
        if field not in self.names:
            k = len(self.names)
            self.names[field] = Index("ijklmn"[k] if k < 6 else f"i{k}")
        return self.names[field]

    def lower(self, arg: LogicNode, order: tuple[Field, ...]) -> LoopNode:
        """The scalar expression of a pointwise expression, ``order`` being the loops, outermost first."""
        for field in order:
            self.index(field)
        done: dict[LogicNode, LoopNode] = {}

        def get(node: LogicNode) -> LoopNode:
            if node not in done:
                match node:
                    case Relabel(Alias() as alias, idxs):
                        done[node] = self.access(alias, tuple(reversed(idxs)), order)
                    case _:
                        raise ScheduleError(f"lowering does not know the expression {node}")
            return done[node]

        for term in postorder(arg):
            match term:
                case Immediate(value) if isinstance(value, (np.generic, bool, int, float, complex)):
                    done[term] = Literal(np.asarray(value)[()])
                case Alias() if not self.types[term].ndim:
                    done[term] = self.access(term, (), order)
                case Relabel(Alias(), _):
                    pass  # its loops are known where it is used
                case Reorder(Relabel(Alias() as alias, idxs), kept):
                    loops = tuple(field for field in order if field in kept)
                    done[term] = self.access(alias, tuple(reversed(idxs)), loops)
                case Reorder(inner, _) | Relabel(inner, _) if isinstance(inner, LogicNode) and inner in done:
                    done[term] = done[inner]
                case MapJoin(Immediate(op), args):
                    values = tuple([get(a) for a in args])
                    dtype = op.result_dtype(*[dtype_of(value) for value in values])
                    done[term] = simplify_call(op, values, dtype)
        return get(arg)

    def fill(self, value: LoopNode) -> LoopNode:
        """The fill of a result: its expression over its operands' fills.

        The fill of an operand that stores everything says nothing of its values. It counts only where the others
        do not decide: csr / dense has the fill 0 and not the nan of 0 / 0.
        """
        done: dict[LoopNode, tuple[LoopNode, LoopNode]] = {}  # with such operands open, and with their fills
        for term in postorder(value):
            match term:
                case Access(tensor, idxs) if idxs:
                    assert isinstance(tensor.type, FType)
                    stores_all = all(isinstance(level, Dense) for level in tensor.type.levels[:-1])
                    done[term] = (term if stores_all else fill_of(tensor), fill_of(tensor))
                case Call(op, args, dtype):
                    opened = simplify_call(op, tuple([done[a][0] for a in args]), dtype)
                    closed = simplify_call(op, tuple([done[a][1] for a in args]), dtype)
                    is_decided = not any(isinstance(t, Access) and t.idxs for t in postorder(opened))
                    done[term] = (opened, opened if is_decided else closed)
                case LoopNode():
                    done[term] = (term, term)
        return done[value][1]

    def access(self, alias: Alias, slots: tuple[Field, ...], order: tuple[Field, ...]) -> Access:
        """An operand's element; a field that no loop binds has size 1."""
        alias = self.same.get(alias, alias)
        if alias not in self.variables:
            k = len(self.variables)
            name = "ABCDEFGHIJKLMNOPQ"[k] if k < 17 else f"T{k}"
            self.variables[alias] = Variable(name, self.types[alias])
        places = [order.index(field) for field in slots if field in order]
        if places != sorted(places):
            raise ScheduleError(f"the loops {[f.name for f in order]} do not follow the storage of {alias.name}")
        idxs = tuple(self.index(field) if field in order else Literal(np.int64(0)) for field in slots)
        access = Access(self.variables[alias], idxs)
        if access not in self.accesses:
            self.accesses.append(access)
        return access

    def without(self, alias: Alias) -> Access:
        """Forget an operand that is computed where it is read, and give its access."""
        variable = self.variables.pop(alias)
        (access,) = [access for access in self.accesses if access.tensor is variable]
        self.accesses.remove(access)
        return access

    def extent(self, field: Field) -> int | tuple[int, int]:
        """Where a loop's extent comes from: an operand and its slot, or 1 for a field that no operand has."""
        index = self.index(field)
        order = list(self.variables.values())
        for access in self.accesses:
            if index in access.idxs:
                return order.index(access.tensor), access.idxs.index(index)
        return 1

    def index_types_of(self, out: Sequence[Field]) -> tuple[tuple[DType | None, ...], DType | None]:
        """For each result slot the narrowest index type that an operand uses for it, and the widest pointer type."""
        pairs = []
        for access in self.accesses:
            assert isinstance(access.tensor.type, FType)
            pairs.append((access.tensor.type, access.idxs))
        return self._index_types(pairs, [self.index(field) for field in out])

    def index_types(
        self, operands: Sequence[tuple[FType, Sequence[object]]], out: Sequence[object]
    ) -> tuple[tuple[DType | None, ...], DType | None]:
        """The same for operands given with the names of their slots."""
        return self._index_types(operands, out)

    def _index_types(
        self, operands: Sequence[tuple[FType, Sequence[object]]], out: Sequence[object]
    ) -> tuple[tuple[DType | None, ...], DType | None]:
        if self.wide:
            return (None,) * len(out), None
        narrow: dict[object, DType] = {}
        pointer: DType | None = None
        for ftype, names in operands:
            slot = 0
            for level in ftype.levels:
                if level.appends or len(level.buffer_names) > 1:
                    ptr, idx = np.dtype(level.buffer_dtypes[0]), np.dtype(level.buffer_dtypes[1])
                    pointer = ptr if pointer is None else max(pointer, ptr, key=lambda d: d.itemsize)
                    for name in names[slot : slot + level.modes]:
                        old = narrow.get(name)
                        narrow[name] = idx if old is None else min(old, idx, key=lambda d: d.itemsize)
                slot += level.modes
        return tuple(narrow.get(name) for name in out), pointer
