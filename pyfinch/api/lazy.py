"""Lazy tensors: Logic expressions under construction, with the shape, dtype and storage order of what they stand for.

Every mode has a field; an expression's fields stand in reverse mode order (Logic's last field is the outermost), so a
row-major tensor's table needs no reordering. Each lazy tensor is a subquery, so programs keep their sharing.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from pyfinch.algebra import operators as ops
from pyfinch.algebra.dtypes import check_dtype
from pyfinch.algebra.errors import DTypeError, PyFinchError, ShapeError
from pyfinch.algebra.fixed import fixed_result
from pyfinch.algebra.operators import Operator
from pyfinch.algebra.values import is_special
from pyfinch.api.methods import ArrayMethods, boxed, is_asked_by_scipy
from pyfinch.api.tensor import dense_tensor
from pyfinch.formats.format import FType
from pyfinch.formats.tensor import Tensor
from pyfinch.logic.nodes import (
    Aggregate,
    Alias,
    Deferred,
    Field,
    Immediate,
    LogicNode,
    MapJoin,
    Relabel,
    Reorder,
    Subquery,
    Table,
)

__all__ = ["LazyTensor", "NeedsValueError", "aggregate", "broadcast_shapes", "map_join", "rename", "table"]

DType = np.dtype[Any]
_numbers = itertools.count()


def fresh_fields(count: int) -> tuple[Field, ...]:
    """Fields that nothing else has."""
    return tuple(Field(f"f{next(_numbers)}") for _ in range(count))


class NeedsValueError(PyFinchError):
    """Something asked for the value of a lazy tensor."""


class LazyTensor(ArrayMethods):
    """A tensor that is not computed yet; `pyfinch.compute` computes it.

    It has the operators and methods of an eager tensor; see `pyfinch.lazy`.

    Attributes
    ----------
    shape : tuple of int
    dtype : np.dtype
    expr : LogicNode
        Its fields in reverse mode order.
    order : tuple of int
        The storage order that its operands suggest, outermost mode first.
    sparse : bool
        Whether an operand with a sparse level determines `order`.
    operands : Mapping of str to Tensor
        The tensors that the deferred tables in `expr` stand for.
    fill, static : NumPy scalar or None
        The fill value, and the same where it is part of the program. A fill that depends on run-time numbers is not
        static even where it comes out special; None is a fill that is not known.
    weak : type or None
        The Python type whose rules of promotion it follows, if it stands for a Python number.
    """

    __slots__ = ("__weakref__", "dtype", "expr", "fill", "operands", "order", "shape", "sparse", "static", "weak")

    def __init__(
        self,
        expr: LogicNode,
        shape: tuple[int, ...],
        dtype: DType,
        order: tuple[int, ...],
        sparse: bool,
        operands: Mapping[str, Tensor],
        fill: Any = None,
        static: Any = None,
    ) -> None:
        self.fill = fill
        self.static = static
        self.expr = expr
        self.shape = shape
        self.dtype = dtype
        self.order = order
        self.sparse = sparse
        self.operands = operands
        self.weak: type | None = None

    @property
    def ndim(self) -> int:
        """Number of modes."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """Number of elements."""
        return int(np.prod(self.shape, dtype=object)) if self.shape else 1

    def __repr__(self) -> str:
        return f"<lazy tensor, shape={self.shape}, dtype={self.dtype}; pyfinch.compute(x) computes it>"

    def _refuse(self, what: str) -> NeedsValueError:
        return NeedsValueError(f"{what} needs the values of a lazy tensor: call pyfinch.compute(x) first")

    def __bool__(self) -> bool:
        raise self._refuse("bool()")

    def __int__(self) -> int:
        raise self._refuse("int()")

    def __float__(self) -> float:
        raise self._refuse("float()")

    def __complex__(self) -> complex:
        raise self._refuse("complex()")

    def __index__(self) -> int:
        raise self._refuse("index()")

    def __iter__(self) -> Any:
        raise self._refuse("iteration")

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("a 0-d tensor has no len()")
        return self.shape[0]

    def item(self) -> Any:
        """Refuses: the value is not there yet."""
        raise self._refuse("item()")

    def todense(self) -> Any:
        """Refuses: the values are not there yet."""
        raise self._refuse("todense()")

    def astype(self, dtype: Any, *, copy: bool = True) -> LazyTensor:
        """See `pyfinch.astype`."""
        wanted = check_dtype(dtype)
        if wanted == self.dtype and self.weak is None:
            return self
        if self.dtype.kind == "c" and wanted.kind != "c":
            raise DTypeError(f"astype from {self.dtype} to {wanted} drops the imaginary part; use real()")
        return map_join(ops.cast(wanted), [self])

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        if is_asked_by_scipy(sys._getframe(1)):
            return boxed(self)
        raise self._refuse("np.asarray")


def table(tensor: Tensor, name: str | None = None) -> LazyTensor:
    """A lazy tensor that stands for a tensor."""
    name = name or f"t{id(tensor)}"  # the same tensor is one operand; `operands` keeps it alive
    ftype = tensor.ftype
    fields = fresh_fields(tensor.ndim)
    storage = tuple(fields[mode] for mode in reversed(ftype.mode_order))
    expr: LogicNode = Table(Deferred(name, ftype), storage)
    if storage != fields[::-1]:
        expr = Reorder(expr, fields[::-1])
    operands = {name: tensor}
    # a number's value is its fill, and known only at run time
    fill, static = (tensor.fill_value, ftype.fill) if tensor.ndim else (tensor.buffers[0][0][0], None)
    return LazyTensor(
        _shared(expr), tensor.shape, tensor.dtype, ftype.mode_order, is_sparse(ftype), operands, fill, static
    )


def is_sparse(ftype: FType) -> bool:
    """Whether a type leaves anything out."""
    return any(level.appends or len(level.buffer_names) > 1 for level in ftype.levels)


def _shared(expr: LogicNode) -> Subquery:
    return Subquery(Alias(f"s{next(_numbers)}"), expr)


def rename(x: LazyTensor, fields: Sequence[Field]) -> LogicNode:
    """The expression of ``x`` with its modes named ``fields``."""
    return Relabel(x.expr, tuple(reversed(fields)))


def merged(operands: Iterable[LazyTensor]) -> dict[str, Tensor]:
    """The tensors that several expressions stand on."""
    together: dict[str, Tensor] = {}
    for x in operands:
        together.update(x.operands)
    return together


def broadcast_shapes(shapes: Sequence[tuple[int, ...]], what: str) -> tuple[int, ...]:
    """The common shape by NumPy's rules; the error names both shapes and the axis."""
    ndim = max((len(shape) for shape in shapes), default=0)
    result: list[int] = [1] * ndim
    for shape in shapes:
        for axis, size in zip(range(ndim - len(shape), ndim), shape, strict=True):
            if size != 1:
                if result[axis] not in (1, size):
                    other = next(
                        s for s in shapes if len(s) > axis - ndim + len(s) >= 0 and s[axis - ndim] == result[axis]
                    )
                    raise ShapeError(
                        f"{what}: shapes {other} and {shape} do not broadcast: axis {axis - ndim} has sizes "
                        f"{result[axis]} and {size}"
                    )
                result[axis] = size
    return tuple(result)


def map_join(op: Operator, args: Sequence[LazyTensor | np.generic], dtype: DType | None = None) -> LazyTensor:
    """``op`` applied elementwise with broadcasting; NumPy scalars become part of the program.

    Raises
    ------
    ShapeError, DTypeError
        If shapes do not broadcast, or the operator does not take the dtypes.
    """
    result_dtype = dtype or op.result_dtype(*[arg.dtype for arg in args])
    if op.finch.distributes_over(ops.get("add")):
        args = [_widened(arg, result_dtype) if isinstance(arg, LazyTensor) else arg for arg in args]
    lazies = [arg for arg in args if isinstance(arg, LazyTensor)]
    shape = broadcast_shapes([x.shape for x in lazies], op.name)
    fields = fresh_fields(len(shape))
    parts: list[LogicNode] = []
    for arg in args:
        if isinstance(arg, LazyTensor):
            parts.append(_placed(arg, fields, shape))
        else:
            parts.append(Immediate(arg))
    expr = Reorder(MapJoin(Immediate(op), tuple(parts)), fields[::-1])
    order, sparse = _common_order(lazies, shape)
    fill, static = _fill_of(op, args, result_dtype)
    if sparse and static is None and fill is not None and is_special(fill):
        expr = Reorder(MapJoin(Immediate(ops.known_fill(fill)), (expr,)), fields[::-1])
        static = fill
    return LazyTensor(_shared(expr), shape, result_dtype, order, sparse, merged(lazies), fill, static)


def _widened(x: LazyTensor, dtype: DType) -> LazyTensor:
    """``x`` in a wider dtype, said as an operation of its own where ``x`` may hold sums of integers.

    These wrap around (or, of bools, stop at True) before they are widened, so a schedule may not move the operation
    that widens into the sum.
    """
    if x.dtype == dtype or x.dtype.kind not in "biu":
        return x
    inner = x.expr
    while isinstance(inner, Reorder | Relabel | Subquery):
        inner = inner.arg
    return x if isinstance(inner, Table) else map_join(ops.cast(dtype), [x])


def _fill_of(op: Operator, args: Sequence[LazyTensor | np.generic], dtype: DType) -> tuple[Any, Any]:
    """The fill of an elementwise result, and the same where the program tells it."""
    fills = [arg.fill if isinstance(arg, LazyTensor) else arg for arg in args]
    statics = [arg.static if isinstance(arg, LazyTensor) else arg if is_special(arg) else None for arg in args]
    cast = ops.cast(dtype)
    try:
        static = fixed_result(op, statics, [arg.dtype for arg in args])
        if static is not None:
            static = cast(static)
            return static, static
        return (None if any(fill is None for fill in fills) else cast(op(*fills))), None
    except (ArithmeticError, ValueError, TypeError):  # a user's operator that does not take the fills
        return None, None


def _placed(x: LazyTensor, fields: tuple[Field, ...], shape: tuple[int, ...]) -> LogicNode:
    """An operand under the result's fields, without those modes of size 1 that broadcast."""
    sizes = shape[len(shape) - x.ndim :]
    places = fields[len(fields) - x.ndim :]
    stays = [size == full for size, full in zip(x.shape, sizes, strict=True)]
    # A mode that broadcasts has a field of its own: nothing may take it for the result's.
    own = [field if stay else fresh_fields(1)[0] for field, stay in zip(places, stays, strict=True)]
    kept = [field for field, stay in zip(own, stays, strict=True) if stay]
    return Reorder(rename(x, own), tuple(reversed(kept)))


def _common_order(lazies: Sequence[LazyTensor], shape: tuple[int, ...]) -> tuple[tuple[int, ...], bool]:
    """The storage order of the first full sparse operand, else of the first full one."""
    full = [x for x in lazies if x.ndim == len(shape)]
    for x in full:
        if x.sparse:
            return x.order, True
    sparse = any(x.sparse for x in lazies)
    return (full[0].order if full and not sparse else tuple(range(len(shape)))), sparse


def aggregate(op: Operator, init: np.generic, x: LazyTensor, axes: Sequence[int], keepdims: bool = False) -> LazyTensor:
    """The reduction of ``x`` by ``op`` over some axes, starting from ``init``, whose dtype is the result's."""
    x = _widened(x, init.dtype)
    fields = fresh_fields(x.ndim)
    reduced = tuple(fields[axis] for axis in axes)
    kept = [axis for axis in range(x.ndim) if axis not in axes]
    expr: LogicNode = Aggregate(Immediate(op), Immediate(init), rename(x, fields), reduced[::-1])
    if keepdims:
        fresh = dict(zip(axes, fresh_fields(len(axes)), strict=True))
        new = tuple(fresh.get(axis, fields[axis]) for axis in range(x.ndim))
        shape = tuple(1 if axis in axes else size for axis, size in enumerate(x.shape))
        order = x.order
    else:
        new = tuple(fields[axis] for axis in kept)
        shape = tuple(x.shape[axis] for axis in kept)
        order = tuple(kept.index(axis) for axis in x.order if axis in kept)
    expr = Reorder(expr, new[::-1])
    fill, static = _reduced_fill(init, shape)
    return LazyTensor(_shared(expr), shape, init.dtype, order, x.sparse, x.operands, fill, static)


def _reduced_fill(init: np.generic, shape: Sequence[int]) -> tuple[Any, Any]:
    """The fill of a reduction's result, and the same where it is static.

    The one element of a result is known when the program has run; where it broadcasts it is a number, not a fill.
    """
    if all(size == 1 for size in shape):
        return None, None
    return init, init if is_special(init) else None


def relabeled(x: LazyTensor, sources: Sequence[int | None]) -> LazyTensor:
    """``x`` with its modes permuted: mode d of the result is mode ``sources[d]`` of ``x``, or new, of size 1.

    Modes that are not among the sources must have size 1; they are left out.
    """
    if not x.ndim and sources:
        # A number has no modes; an array of one element brings them.
        return map_join(ops.get("first"), [x, table(dense_tensor(np.zeros((1,) * len(sources), x.dtype)))])
    fields = fresh_fields(x.ndim)
    new = tuple(fresh_fields(1)[0] if source is None else fields[source] for source in sources)
    shape = tuple(1 if source is None else x.shape[source] for source in sources)
    expr = Reorder(rename(x, fields), new[::-1])
    place = {source: d for d, source in enumerate(sources) if source is not None}
    order = tuple(place[mode] for mode in x.order if mode in place)
    order += tuple(d for d, source in enumerate(sources) if source is None)
    return LazyTensor(_shared(expr), shape, x.dtype, order, x.sparse, x.operands, x.fill, x.static)


def contract(
    op: Operator,
    init: np.generic,
    product: Operator,
    operands: Sequence[tuple[LazyTensor, Sequence[str]]],
    out: Sequence[str],
    sizes: Mapping[str, int],
) -> LazyTensor:
    """A general product: operands with named modes, multiplied by ``product``, reduced by ``op`` to the modes ``out``.

    A name may repeat within one operand (a diagonal). A size-1 mode stands for any size.
    """
    if len(operands) > 1 and product.finch.distributes_over(ops.get("add")):
        wide = product.result_dtype(*[x.dtype for x, _ in operands])
        operands = [(_widened(x, wide), modes) for x, modes in operands]
    names = list(dict.fromkeys(name for _, modes in operands for name in modes))
    fields = dict(zip(names, fresh_fields(len(names)), strict=True))
    parts: list[LogicNode] = []
    for x, modes in operands:
        stays = [size == sizes[name] for name, size in zip(modes, x.shape, strict=True)]
        own = [fields[name] if stay else fresh_fields(1)[0] for name, stay in zip(modes, stays, strict=True)]
        kept = [field for field, stay in zip(own, stays, strict=True) if stay]
        expr = rename(x, own)
        parts.append(Reorder(expr, tuple(dict.fromkeys(reversed(kept)))))
    body: LogicNode = parts[0] if len(parts) == 1 else MapJoin(Immediate(product), tuple(parts))
    reduced = tuple(fields[name] for name in names if name not in out)
    if reduced:
        body = Aggregate(Immediate(op), Immediate(init), body, reduced[::-1])
    expr = Reorder(body, tuple(fields[name] for name in reversed(out)))
    shape = tuple(sizes[name] for name in out)
    order = _product_order(operands, out)
    lazies = [x for x, _ in operands]
    dtype = init.dtype if reduced else ops.get(product.name).result_dtype(*[x.dtype for x in lazies])
    fill, static = _reduced_fill(init, shape) if reduced else _fill_of(product, lazies, dtype)
    return LazyTensor(_shared(expr), shape, dtype, order, any(x.sparse for x in lazies), merged(lazies), fill, static)


def _product_order(operands: Sequence[tuple[LazyTensor, Sequence[str]]], out: Sequence[str]) -> tuple[int, ...]:
    """Row-major, unless every sparse operand of more than one mode is stored the other way round."""
    matrices = [(x, modes) for x, modes in operands if x.sparse and x.ndim > 1]
    if matrices and all(x.order == tuple(reversed(range(x.ndim))) for x, _ in matrices):
        return tuple(reversed(range(len(out))))
    return tuple(range(len(out)))
