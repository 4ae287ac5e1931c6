"""The structure of tensors, one trait a field, and how operations combine it.

Finch.jl's algebra of traits (`src/interface/traits.jl`), with the traits kept by field instead of nested. A
field that is Sparse may have slices that hold nothing but the fill. Where pyfinch decides otherwise than
Finch.jl, the function says so.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum, auto
from typing import Any

import numpy as np

from pyfinch.algebra.dtypes import DT
from pyfinch.algebra.errors import ScheduleError
from pyfinch.algebra.operator import Operator
from pyfinch.algebra.term import Term, postorder
from pyfinch.algebra.values import is_special
from pyfinch.formats.format import Format, FType
from pyfinch.formats.levels import Dense
from pyfinch.logic.fills import apply_to_fills
from pyfinch.logic.nodes import (
    Aggregate,
    Alias,
    Deferred,
    Field,
    Immediate,
    LogicNode,
    MapJoin,
    Reformat,
    Relabel,
    Reorder,
    Table,
)
from pyfinch.schedule.common import pointwise

__all__ = ["Rep", "Trait", "infer", "infer_parts"]


class Trait(Enum):
    """What is known of one field of a tensor."""

    DENSE = auto()
    SPARSE = auto()
    REPEAT = auto()
    EXTRUDE = auto()  # of size 1


@dataclass(frozen=True, slots=True)
class Rep:
    """The structure of a tensor or an expression.

    Attributes
    ----------
    idxs : tuple of Field
        Its fields, the last one outermost.
    traits : tuple of Trait
        One for each field.
    fill : LogicNode
        Its fill value, an expression (`pyfinch.logic.fills`).
    dtype : np.dtype
    constant : bool
        Whether it is a number, so that it has its fill everywhere.
    partial : bool
        Whether some of it is not stored although no field is Sparse, since a Sparse field of size 1 was dropped.
    """

    idxs: tuple[Field, ...]
    traits: tuple[Trait, ...]
    fill: LogicNode
    dtype: DT
    constant: bool = False
    partial: bool = False

    def trait(self, idx: Field) -> Trait:
        """The trait of a field; one that it has not got is of size 1."""
        return self.traits[self.idxs.index(idx)] if idx in self.idxs else Trait.EXTRUDE


def infer(expr: LogicNode, known: Mapping[Alias, Rep]) -> Rep:
    """The structure of an expression over aliases of known structure.

    Raises
    ------
    ScheduleError
        If the type of a tensor is not known, or the expression is not one.
    """
    return replace(_of(expr, infer_parts(expr, known)), partial=False)


def infer_parts(
    expr: LogicNode,
    known: Mapping[Alias, Rep],
    reps: dict[Term, Rep] | None = None,
    seen: set[Term] | None = None,
) -> dict[Term, Rep]:
    """The structure of each part of an expression; what is known of parts, those in ``seen``, is added to."""
    reps = {} if reps is None else reps
    for term in postorder(expr, seen=seen):
        match term:
            case Alias():
                if term in known:
                    reps[term] = known[term]
            case Table(tensor, idxs):
                reps[term] = table_rep(tensor, idxs)
            case MapJoin(Immediate(op), args):
                reps[term] = _map(op, [_of(arg, reps) for arg in args])
            case Aggregate(Immediate(op), init, arg, idxs):
                reps[term] = _aggregate(op, _of(init, reps), arg, idxs, reps)
            case Reorder(arg, idxs):
                rep = _of(arg, reps)
                reps[term] = _reorder(rep, idxs) if isinstance(arg, (Relabel, Alias)) else _align(rep, idxs)
            case Relabel(arg, idxs):
                rep = _of(arg, reps)
                reps[term] = rep if rep.constant else replace(rep, idxs=idxs)
            case Reformat(Immediate(Format() as target), arg):
                reps[term] = _reformat(target, _of(arg, reps), arg)
            case Reformat(_, arg):
                reps[term] = _of(arg, reps)
            case Immediate(np.generic()) | Deferred(_, np.dtype()):
                reps[term] = _of(term, reps)
    return reps


def _of(node: LogicNode, reps: Mapping[Term, Rep]) -> Rep:
    if node in reps:
        return reps[node]
    match node:
        case Immediate(np.generic() as value):
            return _constant(value)
        case Deferred(_, np.dtype() as dtype):
            return Rep((), (), node, dtype, constant=True)
        case _:
            raise ScheduleError(f"format_queries: the structure of {node} is not known")


def _constant(value: Any) -> Rep:
    # Numbers without algebra of their own are arguments of a kernel: nothing may depend on their value.
    fill: LogicNode = Immediate(value) if is_special(value) else Deferred(f"literal {value!r}", value.dtype)
    return Rep((), (), fill, value.dtype, constant=True)


def table_rep(tensor: LogicNode, idxs: tuple[Field, ...]) -> Rep:
    """The structure that a tensor's type shows; its outermost storage slot is the last field."""
    match tensor:
        case Deferred(_, FType() as ftype):
            pass
        case Deferred(_, np.dtype() as dtype):
            return Rep((), (), tensor, dtype, constant=True)
        case Immediate(value) if isinstance(getattr(value, "ftype", None), FType):
            ftype = value.ftype
        case _:
            raise ScheduleError(f"format_queries: the type of {tensor} is not known")
    if ftype.ndim != len(idxs):
        raise ScheduleError(f"format_queries: {tensor} has {ftype.ndim} modes, got {len(idxs)} fields")
    if not idxs:
        return Rep((), (), tensor, ftype.dtype, constant=True)  # a number that is known at run time
    fill: LogicNode = tensor if ftype.fill is None else Immediate(ftype.fill)
    return Rep(idxs, _level_traits(ftype.levels), fill, ftype.dtype)


def _level_traits(levels: Iterable[Any]) -> tuple[Trait, ...]:
    traits: list[Trait] = []
    for level in levels:
        match level:
            case Dense():
                traits.append(Trait.DENSE)
            case _:
                traits.extend([Trait.SPARSE] * level.modes)
    return tuple(reversed(traits))


def _map(op: Operator, args: Sequence[Rep]) -> Rep:
    """A pointwise operation.

    A field is Sparse if all arguments are, or if fixing those that are at their fills fixes the result at
    its fill; else Dense if any argument is Dense or Sparse there. Unlike in Finch.jl, a number is no
    obstacle (``A + 1`` is as sparse as ``A``, its fill 1 more), and several sparse arguments are fixed
    together.
    """
    dtypes = [arg.dtype for arg in args]
    dtype = op.result_dtype(*dtypes)
    fill = _map_fill(op, args, dtypes)
    idxs = tuple(dict.fromkeys([idx for arg in args for idx in arg.idxs]))
    traits = tuple([_map_trait(op, args, [arg.trait(idx) for arg in args], dtypes, fill) for idx in idxs])
    return Rep(idxs, traits, fill, dtype, all(arg.constant for arg in args), _is_partial(op, args, dtypes, fill))


def _is_partial(op: Operator, args: Sequence[Rep], dtypes: Sequence[DT], fill: LogicNode) -> bool:
    """Whether what partial arguments do not store fixes the result at its fill."""
    if not any(arg.partial for arg in args):
        return False
    return apply_to_fills(op, [None if _stores_all(arg) else arg.fill for arg in args], dtypes) is fill


def _stores_all(rep: Rep) -> bool:
    return Trait.SPARSE not in rep.traits and not rep.constant and not rep.partial


def _map_fill(op: Operator, args: Sequence[Rep], dtypes: Sequence[DT]) -> LogicNode:
    """The operation over the arguments' fills.

    The fill of a tensor that is Dense in every field says nothing of its values, so if the others fix the
    result alone, that is its fill: 0 for csr / dense, and not the nan of 0 / 0.
    """
    numbers = [arg.fill if arg.constant else None for arg in args]
    if any(numbers) and not all(numbers):
        fill = apply_to_fills(op, numbers, dtypes)  # 0 * x is 0 everywhere, whatever the fill of x
        if fill is not None:
            return fill
    dense = [_stores_all(arg) for arg in args]
    if any(dense) and not all(dense):
        some = [None if skip else arg.fill for arg, skip in zip(args, dense, strict=True)]
        fill = apply_to_fills(op, some, dtypes)
        if fill is not None:
            return fill
    fill = apply_to_fills(op, [arg.fill for arg in args], dtypes)
    assert fill is not None
    return fill


def _map_trait(
    op: Operator, args: Sequence[Rep], traits: Sequence[Trait], dtypes: Sequence[DT], fill: LogicNode
) -> Trait:
    own = [trait for trait, arg in zip(traits, args, strict=True) if not arg.constant]
    for kind in (Trait.SPARSE, Trait.REPEAT):
        if kind not in own:
            continue
        if all(trait is kind for trait in own):
            return kind
        # At a slice that these arguments do not store, whatever the others hold.
        fixed = [arg.fill if arg.constant or trait is kind else None for arg, trait in zip(args, traits, strict=True)]
        if apply_to_fills(op, fixed, dtypes) is fill:
            return kind
        return Trait.DENSE
    return Trait.DENSE if Trait.DENSE in own else Trait.EXTRUDE


def _aggregate(op: Operator, init: Rep, arg: LogicNode, dropped: tuple[Field, ...], reps: Mapping[Term, Rep]) -> Rep:
    """A reduction.

    The result's fill is the init. Its fields keep their traits if reducing the argument's fill gives the
    init, or else nothing of it is Sparse. Unlike in Finch.jl, a field is not Sparse where a sum over a
    dense field collects it from all sides (the column sums of a csr), see `_collected`.
    """
    rep = spread(_of(arg, reps), arg)
    dtype = np.dtype(op.result_dtype(init.dtype, rep.dtype))
    while (wider := op.result_dtype(dtype, rep.dtype)) != dtype:
        dtype = wider
    kept = tuple([idx for idx in rep.idxs if idx not in dropped])
    traits = [rep.trait(idx) for idx in kept]
    if apply_to_fills(op, [init.fill, rep.fill], [init.dtype, rep.dtype]) is not init.fill:
        traits = [Trait.DENSE if trait is Trait.SPARSE else trait for trait in traits]
    else:
        leaves = [reps[term] for term in pointwise(arg) if isinstance(term, Relabel) and term in reps]
        traits = [
            Trait.DENSE if trait is Trait.SPARSE and _collected(idx, rep, kept, leaves) else trait
            for idx, trait in zip(kept, traits, strict=True)
        ]
    return Rep(kept, tuple(traits), init.fill, dtype)


def _collected(idx: Field, rep: Rep, kept: tuple[Field, ...], leaves: Sequence[Rep]) -> bool:
    """Whether nearly every coordinate of a sparse field is touched when what it lies in is reduced.

    That is so if it lies in a dense field that is reduced, and no sparse operand selects from that one. The
    outermost field is then Dense, which costs no more than the operand's own pointers did (also where
    something does select, if there are more fields: the pointers of a csr). An inner field is Dense only if
    there is a dense operand of the size that the result will have, as in dense @ csr.
    """
    outermost = idx is kept[-1]
    for over in rep.idxs[rep.idxs.index(idx) + 1 :]:
        if over in kept or rep.trait(over) is not Trait.DENSE:
            continue
        if any(idx in leaf.idxs and leaf.trait(idx) is Trait.SPARSE and over not in leaf.idxs for leaf in leaves):
            continue  # a mask of the result itself, as in SDDMM
        others = [leaf for leaf in leaves if over in leaf.idxs and idx not in leaf.idxs]
        selected = any(Trait.SPARSE in leaf.traits for leaf in others)
        if outermost and (len(kept) > 1 or not selected):
            return True
        if not selected and any(not set(kept).isdisjoint(leaf.idxs) for leaf in others):
            return True
    return False


def spread(rep: Rep, expr: LogicNode) -> Rep:
    """The structure of an expression; a number under fields, which are all of size 1, is a tensor that stores it."""
    match expr:
        case Reorder(_, idxs) if rep.constant and idxs:
            return replace(rep, idxs=idxs, traits=(Trait.EXTRUDE,) * len(idxs), constant=False)
    return rep


def _align(rep: Rep, idxs: tuple[Field, ...]) -> Rep:
    """The loops of a pointwise operation: its operands are concordant, so every trait holds in loop order."""
    return rep if rep.constant else replace(rep, idxs=idxs, traits=tuple([rep.trait(idx) for idx in idxs]))


def _reorder(rep: Rep, idxs: tuple[Field, ...]) -> Rep:
    """Permute, drop and add fields of a stored tensor.

    A Dense field that comes to lie inside a Sparse one which it did not lie in is Sparse there, as each
    fiber holds only some of it. A Sparse field that becomes the outermost one is Dense if it lay in a Dense
    one (a csr copied into columns is a csc; Finch.jl would make it sparse in both modes).
    """
    if rep.constant:
        return rep
    old = [idx for idx in reversed(rep.idxs) if idx in idxs]  # outermost first
    new = [idx for idx in reversed(idxs) if idx in old]
    traits: dict[Field, Trait] = {}
    for place, idx in enumerate(new):
        trait = rep.trait(idx)
        before = old[: old.index(idx)]
        if trait is Trait.DENSE:
            if any(rep.trait(other) is Trait.SPARSE and other not in before for other in new[:place]):
                trait = Trait.SPARSE
        elif trait is Trait.SPARSE and place == 0 and any(rep.trait(other) is Trait.DENSE for other in before):
            trait = Trait.DENSE
        traits[idx] = trait
    partial = rep.partial or any(rep.trait(idx) is Trait.SPARSE for idx in rep.idxs if idx not in idxs)
    return replace(rep, idxs=idxs, traits=tuple([traits.get(idx, Trait.EXTRUDE) for idx in idxs]), partial=partial)


def _reformat(target: Format, rep: Rep, arg: LogicNode) -> Rep:
    fill = rep.fill if target.fill is None else Immediate(target.fill)
    dtype = rep.dtype if target.dtype is None else target.dtype
    return Rep(spread(rep, arg).idxs, _level_traits(target.levels), fill, dtype)
