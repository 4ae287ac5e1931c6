"""Random programs, well-formed by construction, and tensors for them.

Values are chosen so that a comparison can be strict: floats are small multiples of 1/4, whose sums and products are
exact, so the order of additions cannot show. Where nan and infinities occur, the operators are those of which no law
that sparse computing relies on (``0 * x == 0``) could show either.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol, TypeVar

import numpy as np

from pyfinch.algebra.errors import DTypeError
from pyfinch.algebra.operators import Operator, cast, get
from pyfinch.formats.convert import build
from pyfinch.formats.format import Format, format
from pyfinch.formats.levels import Dense
from pyfinch.formats.tensor import Tensor
from pyfinch.logic.nodes import (
    Aggregate,
    Alias,
    Deferred,
    Field,
    Immediate,
    LogicNode,
    MapJoin,
    Plan,
    Produces,
    Query,
    Relabel,
    Reorder,
    Subquery,
    Table,
)

__all__ = ["CAMPAIGN", "SMALL", "Case", "Config", "Draw", "Seeded", "draw_case", "random_case"]

T = TypeVar("T")


class Draw(Protocol):
    """Where choices come from: a seeded generator, or Hypothesis."""

    def choice(self, items: Sequence[T]) -> T:
        """One of the items."""

    def integer(self, low: int, high: int) -> int:
        """An integer, both ends included."""


class Seeded:
    """Choices by a seed; equal on every machine."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def choice(self, items: Sequence[T]) -> T:
        """One of the items."""
        return items[self.random.randrange(len(items))]

    def integer(self, low: int, high: int) -> int:
        """An integer, both ends included."""
        return self.random.randint(low, high)


@dataclass(frozen=True)
class Config:
    """What random programs are made of.

    Attributes
    ----------
    dtypes, formats : tuple of str
        Of the inputs; formats are given with ``{}`` for the number of modes that a rest of levels covers.
    fills : tuple
        Fill values, each used where the dtype has it.
    sizes : tuple of int
        What modes may measure.
    tensors, operations, results : int
        How many there are at most.
    permuted : bool
        Whether inputs may have any storage order.
    special : bool
        Whether some programs have nan, infinities and -0.0.
    """

    dtypes: tuple[str, ...] = (
        "float64", "float32", "int64", "int32", "int8", "uint8", "uint64", "bool", "complex128", "complex64",
    )  # fmt: skip
    formats: tuple[str, ...] = ("dense", "sparse_list", "coo", "bytemap", "mixed")
    fills: tuple[Any, ...] = (0, 0, 0, 0, 1, -1, 2.5, "inf", "nan")
    sizes: tuple[int, ...] = (3, 3, 4, 2, 1, 0)
    tensors: int = 3
    operations: int = 5
    results: int = 2
    permuted: bool = True
    special: bool = True


SMALL: Final = Config()
#: Few types, so that a compiler meets many of a program's parts again.
CAMPAIGN: Final = Config(
    dtypes=("float64", "float64", "int64", "bool", "complex128"), formats=("dense", "sparse_list", "coo"),
    fills=(0, 0, 0, 1, "inf"), tensors=2, operations=3,
)  # fmt: skip


@dataclass(frozen=True, eq=False)
class Case:
    """A program, and the tensors that its deferred tables stand for."""

    program: Plan
    tensors: dict[str, Tensor]
    name: str = ""


@dataclass(frozen=True)
class _Array:
    """An expression under way; axis 0 is the outermost, so its fields come in reverse."""

    node: LogicNode
    shape: tuple[int, ...]
    dtype: np.dtype[Any]


_UNARY: Final = ("negative", "abs", "square", "sign", "sin", "tanh", "atan", "floor", "round", "real", "conj",
                 "isnan", "bitwise_invert", "logical_not", "expm1")  # fmt: skip
_BINARY: Final = ("add", "add", "multiply", "multiply", "subtract", "maximum", "minimum", "equal", "not_equal", "less",
                  "greater_equal", "logical_and", "logical_or", "logical_xor", "bitwise_and", "bitwise_or",
                  "bitwise_xor", "hypot")  # fmt: skip
_BY_NUMBER: Final = ("divide", "floor_divide", "remainder", "bitwise_left_shift", "bitwise_right_shift")
_FOLDS: Final = ("add", "add", "add", "maximum", "minimum", "multiply", "logical_or", "logical_and", "bitwise_or")
_SPECIAL_UNARY: Final = ("negative", "abs", "isnan", "isinf", "isfinite", "signbit", "logical_not")
_SPECIAL_BINARY: Final = ("equal", "not_equal", "less", "greater_equal", "copysign", "first")


def random_case(seed: int, config: Config = SMALL) -> Case:
    """The case of a seed.

    Examples
    --------
    >>> case = random_case(7)
    >>> str(case.program) == str(random_case(7).program), sorted(case.tensors)[:1]
    (True, ['T0'])
    """
    return draw_case(Seeded(seed), config, f"seed {seed}")


def draw_case(draw: Draw, config: Config, name: str = "") -> Case:
    """A case by any source of choices."""
    return _Generator(draw, config).case(name)


class _Generator:
    def __init__(self, draw: Draw, config: Config) -> None:
        self.draw, self.config = draw, config
        self.special = config.special and draw.integer(0, 5) == 0
        self.count = 0
        self.tensors: dict[str, Tensor] = {}
        self.sizes = [draw.choice(config.sizes) for _ in range(3)]

    def case(self, name: str) -> Case:
        pool = [self.input(k) for k in range(self.draw.integer(1, self.config.tensors))]
        for _ in range(self.draw.integer(1, self.config.operations)):
            made = next(filter(None, (self.operation(pool) for _ in range(4))), None)
            if made is not None:
                pool.append(made)
        wanted = [pool[-1]] + [self.draw.choice(pool) for _ in range(self.draw.integer(1, self.config.results) - 1)]
        results = [Alias(f"R{k}") for k in range(len(wanted))]
        queries = [Query(alias, array.node) for alias, array in zip(results, wanted, strict=True)]
        return Case(Plan((*queries, Produces(tuple(results)))), self.tensors, name)

    # ----------------------------------------------------------------------------------------------------- inputs

    def input(self, number: int) -> _Array:
        dtype = np.dtype(self.draw.choice(self.config.dtypes))
        ndim = self.draw.choice((2, 2, 1, 2, 3, 0, 1))
        shape = tuple(self.draw.choice(self.sizes) for _ in range(ndim))
        fill = self.fill(dtype)
        array = np.full(shape, fill, dtype)
        for place in np.ndindex(shape):
            if self.draw.integer(0, 9) < 4:
                array[place] = self.value(dtype)
        order = tuple(range(ndim))
        if self.config.permuted and ndim > 1 and self.draw.integer(0, 3) == 0:
            order = order[::-1]
        fmt = _format(self.draw.choice(self.config.formats), ndim, dtype, order)
        is_dense = all(isinstance(level, Dense) for level in fmt.levels[:-1])
        kept = np.ones(shape, np.bool_) if is_dense else np.asarray(array != fill if fill == fill else array == array)
        coords = np.argwhere(kept).T.reshape(ndim, int(kept.sum())).astype(np.int64)
        tensor = build(shape, coords, array[kept], fmt, fill, in_order_of=tuple(range(ndim)))
        name = f"T{number}"
        self.tensors[name] = tensor
        # The fields of a table follow the storage, the last one outermost.
        table = self.subquery(Table(Deferred(name, tensor.ftype), self.fields(ndim)))
        stored = _Array(table, tensor.storage_shape, dtype)
        return stored if order == tuple(range(ndim)) else self.transposed(stored, order)

    def fill(self, dtype: np.dtype[Any]) -> Any:
        value = self.draw.choice(self.config.fills)
        if isinstance(value, str) and (not self.special or dtype.kind != "f"):
            value = 0
        if dtype.kind in "bu" and value != abs(float(value)):
            value = 1
        if dtype.kind in "biu" and value != int(float(value)):
            value = 1
        return dtype.type(value)

    def value(self, dtype: np.dtype[Any]) -> Any:
        number = self.draw.integer(-6, 6)
        if self.special and dtype.kind == "f" and self.draw.integer(0, 2) == 0:
            return dtype.type(self.draw.choice(("nan", "inf", "-inf", "-0.0")))
        match dtype.kind:
            case "b":
                return np.bool_(number > 0)
            case "f":
                return dtype.type(number / 4)
            case "c":
                return dtype.type(complex(number / 4, self.draw.integer(-2, 2) / 2))
        return dtype.type(abs(number) if dtype.kind == "u" else number)

    # -------------------------------------------------------------------------------------------------- operations

    def operation(self, pool: list[_Array]) -> _Array | None:
        """One more expression, or None where the choices do not fit each other."""
        array = self.draw.choice((pool[-1], self.draw.choice(pool)))
        other = self.draw.choice(pool)
        try:
            match self.draw.integer(0, 10):
                case 0:
                    unary: tuple[str, ...] = _SPECIAL_UNARY if self.special else _UNARY
                    return self.mapped(get(self.draw.choice(unary), 1), array)
                case 1 | 2 | 3:
                    binary: tuple[str, ...] = _SPECIAL_BINARY if self.special else _BINARY
                    return self.mapped(get(self.draw.choice(binary), 2), array, other)
                case 4:
                    return self.with_number(array)
                case 5 | 6:
                    return self.reduced(array)
                case 7:
                    return self.transposed(array, tuple(reversed(range(len(array.shape)))))
                case 8 | 9:
                    return self.contracted(array, other)
                case _:
                    return self.reshaped(array)
        except DTypeError:
            return None

    def mapped(self, op: Operator, *args: _Array) -> _Array | None:
        """A pointwise operation with NumPy's broadcasting."""
        dtype = op.result_dtype(*[arg.dtype for arg in args])
        try:
            shape = np.broadcast_shapes(*[arg.shape for arg in args])
        except ValueError:
            return None
        idxs = self.fields(len(shape))
        named = tuple(self.aligned(arg, shape, idxs) for arg in args)
        return _Array(self.subquery(Reorder(MapJoin(Immediate(op), named), idxs)), shape, dtype)

    def aligned(self, array: _Array, shape: tuple[int, ...], idxs: tuple[Field, ...]) -> LogicNode:
        """An array under the fields of a result; an axis of size 1 that is stretched is dropped."""
        ndim = len(array.shape)
        if not ndim:
            return array.node
        own = list(idxs[:ndim])
        kept = []
        for axis, size in enumerate(array.shape):
            place = ndim - 1 - axis
            if size == 1 and shape[len(shape) - ndim + axis] != 1:
                own[place] = self.fields(1)[0]
            else:
                kept.append(idxs[place])
        return Reorder(Relabel(array.node, tuple(own)), tuple(sorted(kept, key=idxs.index)))

    def with_number(self, array: _Array) -> _Array | None:
        """An operation with a literal."""
        kind = array.dtype.kind
        if kind == "b" or self.special:
            return self.converted(array)
        names = ("add", "multiply", "subtract", "maximum", "minimum", "less", "greater_equal", *_BY_NUMBER)
        op = get(self.draw.choice(names), 2)
        number = self.draw.choice((1, 2, 3)) if kind == "u" or op.name in _BY_NUMBER else self.draw.integer(-2, 2)
        if kind in "fc" and op.name not in _BY_NUMBER:
            number = number / 2  # type: ignore[assignment]
        return self.mapped(op, array, _Array(Immediate(array.dtype.type(number)), (), array.dtype))

    def converted(self, array: _Array) -> _Array | None:
        targets = {"b": ("int64", "float64", "int8"), "u": ("float64", "int64"), "i": ("float32", "int64", "bool"),
                   "f": ("complex128", "float64", "bool"), "c": ("complex128",)}  # fmt: skip
        return self.mapped(cast(self.draw.choice(targets[array.dtype.kind])), array)

    def reduced(self, array: _Array) -> _Array | None:
        ndim = len(array.shape)
        if not ndim or self.special:
            return None
        op = get(self.draw.choice(_FOLDS))
        dtype = op.result_dtype(array.dtype, array.dtype)
        init = op.identity(dtype)
        if init is None or (dtype.kind == "f" and not np.isfinite(init) and 0 in array.shape):
            init = dtype.type(1)
        axes = [axis for axis in range(ndim) if self.draw.integer(0, 1)] or [self.draw.integer(0, ndim - 1)]
        idxs = self.fields(ndim)
        over = tuple(idxs[ndim - 1 - axis] for axis in axes)
        node = Aggregate(Immediate(op), Immediate(init), Relabel(array.node, idxs), over)
        shape = tuple(size for axis, size in enumerate(array.shape) if axis not in axes)
        return _Array(self.subquery(node), shape, dtype)

    def transposed(self, array: _Array, axes: tuple[int, ...]) -> _Array:
        """Axis k of the result is axis ``axes[k]``."""
        ndim = len(array.shape)
        idxs = self.fields(ndim)
        new = tuple(idxs[ndim - 1 - axis] for axis in reversed(axes))
        shape = tuple(array.shape[axis] for axis in axes)
        if ndim < 2:
            return array
        return _Array(self.subquery(Reorder(Relabel(array.node, idxs), new)), shape, array.dtype)

    def contracted(self, a: _Array, b: _Array) -> _Array | None:
        """The sum of products over the last axis of one and the first of the other."""
        if self.special or not a.shape or not b.shape or a.shape[-1] != b.shape[0] or a.dtype != b.dtype:
            return None
        if len(a.shape) + len(b.shape) > 5:
            return None
        left, right = self.fields(len(a.shape)), list(self.fields(len(b.shape)))
        right[-1] = left[0]
        times, plus = get("multiply"), get("add")
        product = MapJoin(Immediate(times), (Relabel(a.node, left), Relabel(b.node, tuple(right))))
        total = Aggregate(Immediate(plus), Immediate(a.dtype.type(0)), product, (left[0],))
        idxs = (*right[:-1], *left[1:])
        return _Array(self.subquery(Reorder(total, idxs)), (*a.shape[:-1], *b.shape[1:]), a.dtype)

    def reshaped(self, array: _Array) -> _Array | None:
        """An axis of size 1 dropped or added."""
        ndim = len(array.shape)
        idxs = list(self.fields(ndim))
        ones = [axis for axis, size in enumerate(array.shape) if size == 1]
        shape = list(array.shape)
        kept = list(idxs)
        if ones:
            axis = self.draw.choice(ones)
            del shape[axis], kept[ndim - 1 - axis]
        elif ndim < 3:
            kept.insert(0, self.fields(1)[0])
            shape.append(1)
        else:
            return None
        node = Reorder(Relabel(array.node, tuple(idxs)), tuple(kept)) if ndim else Reorder(array.node, tuple(kept))
        return _Array(self.subquery(node), tuple(shape), array.dtype)

    # ------------------------------------------------------------------------------------------------------- names

    def fields(self, number: int) -> tuple[Field, ...]:
        first = self.count
        self.count += number
        return tuple(Field(f"x{k}") for k in range(first, first + number))

    def subquery(self, node: LogicNode) -> Subquery:
        self.count += 1
        return Subquery(Alias(f"X{self.count}"), node)


_LEVELS: Final = {
    "dense": ("dense({})", "dense(dense({}))", "dense(dense(dense({})))"),
    "sparse_list": ("sparse_list({})", "dense(sparse_list({}))", "dense(sparse_list(sparse_list({})))"),
    "mixed": ("sparse_list({})", "sparse_list(dense({}))", "sparse_list(dense(sparse_list({})))"),
    "coo": ("sparse_coo[1]({})", "sparse_coo[2]({})", "sparse_coo[3]({})"),
    "bytemap": ("sparse_bytemap({})", "dense(sparse_bytemap({}))", "dense(dense(sparse_bytemap({})))"),
}


def _format(word: str, ndim: int, dtype: np.dtype[Any], order: tuple[int, ...]) -> Format:
    levels = _LEVELS[word][ndim - 1] if ndim else "{}"
    made = format(levels.format(f"element({dtype.name})"), ndim=ndim)
    return Format(made.levels, order)
