"""Steps that go over every stored value of one operand and ask for no coordinate: loops over the array of values.

``A * 2`` shares the structure of A, and ``sum(A)`` has none; a loop over rows and their entries would only hide from
the compiler that it goes straight through memory.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from pyfinch.algebra.term import postorder
from pyfinch.formats.format import FType
from pyfinch.formats.levels import Dense
from pyfinch.formats.tensor import Tensor
from pyfinch.loops.nodes import Access, Assign, Block, Declare, Freeze, Index, Loop, LoopNode, Variable, Yield
from pyfinch.loops.simplify import Context, fill_of, is_nothing, substitute
from pyfinch.lowering import Step

__all__ = ["Flat", "flattened"]


@dataclass(frozen=True, slots=True)
class Flat:
    """A program over one operand's values as a dense vector, beside numbers.

    ``operand`` is the operand's variable; ``maps`` says whether the result has the operand's structure. Else it is a
    number.
    """

    program: Block
    operand: Variable
    maps: bool

    def vector(self, tensor: Tensor) -> Tensor:
        """The values of a tensor as a dense vector."""
        (values,) = tensor.buffers[-1]
        return Tensor._trusted(_vector(tensor.ftype), (len(values),), tensor.fill_value, ((), (values,)))

    def result(self, values: Tensor, tensor: Tensor, ftype: FType) -> Tensor:
        """The result of a step: a number, or values in the structure of a tensor."""
        if not self.maps:
            return values
        shape = tuple([tensor.shape[mode] for mode in tensor.ftype.mode_order])
        return Tensor._trusted(ftype, shape, values.fill_value, (*tensor.buffers[:-1], values.buffers[-1]))


@cache
def _vector(ftype: FType) -> FType:
    return FType((Dense(), ftype.levels[-1]), (0,))


def flattened(step: Step) -> Flat | None:
    """The flat form of a step; None if it has none."""
    if step.kind != "kernel" or step.given or step.program is None:
        return None
    match step.program:
        case Block((Declare(Variable() as result, init), Loop() as body, Freeze(), Yield())):
            pass
        case _:
            return None
    order: list[LoopNode] = []
    inner: LoopNode = body
    while isinstance(inner, Loop):
        order.append(inner.index)
        inner = inner.body
    if not isinstance(inner, Assign):
        return None
    reads = [term for term in postorder(inner.rhs) if isinstance(term, Access)]
    tensors = {access.tensor: access for access in reads if access.idxs}
    if len(tensors) != 1:
        return None
    ((operand, access),) = tensors.items()
    ftype, kind = operand.type, result.type
    assert isinstance(ftype, FType)
    assert isinstance(kind, FType)
    lists = [level for level in ftype.levels if level.appends]
    if (
        not lists
        or access.idxs != tuple(order)
        or not ftype.levels[-1].buffer_names
        or not kind.levels[-1].buffer_names
    ):
        return None
    absent = substitute(body, {access: fill_of(operand)}, Context({result: init}))
    if not is_nothing(absent):
        return None  # what is not stored counts, too
    maps = bool(inner.lhs.idxs)
    if maps and (inner.lhs.idxs != access.idxs or ftype.levels[:-1] != kind.levels[:-1] or _collapses(inner)):
        return None
    index = Index("i")
    vector = Variable(operand.name, _vector(ftype))
    target = Variable(result.name, _vector(kind)) if maps else result
    value = substitute(inner.rhs, {access: Access(vector, (index,))}, Context({}))
    assign = Assign(Access(target, (index,) if maps else ()), inner.op, value)
    program = Block((Declare(target, init), Loop(index, None, assign), Freeze(target), Yield((target,))))
    return Flat(program, operand, maps)


def _collapses(assign: Assign) -> bool:
    """Whether stored values may become the fill, so that fewer are stored."""
    ops = [term.op for term in postorder(assign.rhs) if hasattr(term, "op")]
    return any(op.collapses for op in ops)
