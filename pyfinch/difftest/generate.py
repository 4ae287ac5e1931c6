"""Random programs, well-formed by construction, and tensors for them.

Floats are small multiples of 1/4, whose sums and products are exact, so that the order of additions seldom shows; what
may show, and what laws of sparse computing may (``0 * x == 0``), `pyfinch.difftest.liberties` tells.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from pyfinch.algebra.errors import DTypeError
from pyfinch.algebra.operators import Operator, all_operators, cast, get
from pyfinch.difftest.case import Case, store, with_tensors
from pyfinch.difftest.choices import Draw, Seeded
from pyfinch.difftest.config import FORMATS, SMALL, Config
from pyfinch.formats.format import Format, format
from pyfinch.formats.levels import Dense, Element, Level
from pyfinch.formats.tensor import Tensor
from pyfinch.logic.interpreter import evaluate
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
    Reformat,
    Relabel,
    Reorder,
    Subquery,
    Table,
)

__all__ = ["draw_case", "random_case"]


@dataclass(frozen=True)
class _Array:
    """An expression under way; axis 0 is the outermost, so its fields come in reverse."""

    node: LogicNode
    shape: tuple[int, ...]
    dtype: np.dtype[Any]


# What takes some care with its arguments, and so has a place of its own; and what shows the sign of a nan, which is
# nobody's business.
_APART: Final = frozenset(("pow", "bitwise_left_shift", "bitwise_right_shift", "copysign", "signbit"))
_UNARY: Final = tuple(op.name for op in all_operators() if op.arity == 1 and op.name not in _APART)
_BINARY: Final = tuple(op.name for op in all_operators() if op.arity in (2, -1) and op.name not in _APART)
_ARITHMETIC: Final = ("add", "multiply", "subtract", "maximum", "minimum", "less", "equal")
_BY_NUMBER: Final = ("divide", "floor_divide", "remainder", "bitwise_left_shift", "bitwise_right_shift", "pow")
_FOLDS: Final = (
    "add", "add", "add", "maximum", "minimum", "multiply", "logical_or", "logical_and", "logical_xor", "bitwise_or",
    "bitwise_and", "bitwise_xor", "hypot", "logaddexp",
)  # fmt: skip
_SEMIRINGS: Final = (
    ("multiply", "add"), ("multiply", "add"), ("add", "minimum"), ("multiply", "maximum"),
    ("logical_and", "logical_or"), ("minimum", "maximum"), ("bitwise_and", "bitwise_xor"), ("equal", "add"),
)  # fmt: skip
# Of these no law shows that holds for finite numbers only, so all executors give the same whatever they meet.
_LAWLESS_UNARY: Final = ("negative", "abs", "isnan", "isinf", "isfinite", "logical_not")
_LAWLESS_BINARY: Final = ("equal", "not_equal", "less", "greater_equal", "first")
_KINDS: Final = {"b": "biufc", "u": "uifc", "i": "ifcb", "f": "fcbi", "c": "cb"}


def random_case(seed: int | random.Random, config: Config = SMALL) -> Case:
    """The case of a seed, or the next one of a generator.

    Examples
    --------
    >>> case = random_case(7)
    >>> str(case.program) == str(random_case(7).program), sorted(case.tensors)[:1]
    (True, ['T0'])
    """
    return draw_case(Seeded(seed), config, f"seed {seed}" if isinstance(seed, int) else "")


def draw_case(draw: Draw, config: Config, name: str = "") -> Case:
    """A case by any source of choices."""
    return _Generator(draw, config).case(name)


class _Generator:
    def __init__(self, draw: Draw, config: Config) -> None:
        self.draw, self.config = draw, config
        # Programs without special values, with them but without operators that may meet them, and with all.
        mood = draw.integer(0, 5) if config.special else 1
        self.special, self.lawless = mood in (0, 5), mood == 5
        self.count = 0
        self.tensors: dict[str, Tensor] = {}
        self.sizes = [draw.choice(config.sizes) for _ in range(3)]
        self.dtypes, self.formats = config.dtypes, config.formats
        if config.kinds:
            self.dtypes = tuple(draw.choice(config.dtypes) for _ in range(config.kinds))
            self.formats = tuple(draw.choice(config.formats) for _ in range(config.kinds))

    def case(self, name: str) -> Case:
        pool = [self.input(k) for k in range(self.draw.integer(1, self.config.tensors))]
        for _ in range(self.draw.integer(1, self.config.operations)):
            made = next(filter(None, (self.operation(pool) for _ in range(6))), None)
            if made is not None:
                pool.append(made)
        wanted = [pool[-1]] + [self.draw.choice(pool) for _ in range(self.draw.integer(1, self.config.results) - 1)]
        results = [Alias(f"R{k}") for k in range(len(wanted))]
        queries = [Query(alias, array.node) for alias, array in zip(results, wanted, strict=True)]
        program = Plan((*queries, Produces(tuple(results))))
        return with_tensors(program, self.tensors, name)

    # ----------------------------------------------------------------------------------------------------- inputs

    def input(self, number: int) -> _Array:
        dtype = np.dtype(self.draw.choice(self.dtypes))
        ndim = self.draw.choice(self.config.ndims)
        shape = tuple(self.draw.choice(self.sizes) for _ in range(ndim))
        fill = self.fill(dtype)
        array = np.full(shape, fill, dtype)
        for place in np.ndindex(shape):
            if self.draw.integer(0, 9) < 4:
                array[place] = self.value(dtype)
        order = tuple(range(ndim))
        if self.config.permuted and ndim > 1 and self.draw.integer(0, 3) == 0:
            order = self.order(ndim)
        levels, order = _levels(self.draw.choice(self.formats), order)
        stored = Format((*levels, Element(None, dtype)), order)
        keep = None if all(isinstance(level, Dense) for level in levels) else fill
        tensor = store(array, stored, fill, keep_unlike=keep)
        name = f"T{number}"
        self.tensors[name] = tensor
        # The fields of a table follow the storage, the last one outermost.
        table = self.subquery(Table(Deferred(name, tensor.ftype), self.fields(ndim)))
        made = _Array(table, tensor.storage_shape, dtype)
        return self.transposed(made, tuple(map(order.index, range(ndim)))) or made

    def order(self, ndim: int) -> tuple[int, ...]:
        left = list(range(ndim))
        return tuple(left.pop(self.draw.integer(0, len(left) - 1)) for _ in range(ndim))

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
            match self.draw.integer(0, 14):
                case 0 | 1:
                    return self.mapped(self.one_of(_LAWLESS_UNARY if self.lawless else _UNARY, 1), array)
                case 2 | 3 | 4:
                    return self.mapped(self.one_of(_LAWLESS_BINARY if self.lawless else _ARITHMETIC), array, other)
                case 5:
                    return self.mapped(self.one_of(_LAWLESS_BINARY if self.lawless else _BINARY), array, other)
                case 6:
                    return self.with_number(array)
                case 7 | 8:
                    return self.reduced(array)
                case 9:
                    return self.transposed(array, self.order(len(array.shape)))
                case 10 | 11:
                    return self.contracted(array, other)
                case 12:
                    return self.chosen(array, other, self.draw.choice(pool))
                case 13:
                    return self.stored(array)
                case _:
                    return self.reshaped(array)
        except DTypeError:
            return None

    def one_of(self, names: Sequence[str], arity: int = 2) -> Operator | None:
        """One of some operators, if the configuration has any of them."""
        allowed = self.config.operators
        chosen = names if allowed is None else [name for name in names if name in allowed]
        return get(self.draw.choice(chosen), arity) if chosen else None

    def mapped(self, op: Operator | None, *args: _Array) -> _Array | None:
        """A pointwise operation with NumPy's broadcasting."""
        if op is None:
            return None
        dtype = op.result_dtype(*[arg.dtype for arg in args])
        try:
            shape = np.broadcast_shapes(*[arg.shape for arg in args])
        except ValueError:
            return None
        if len(shape) > 3:
            return None
        idxs = self.fields(len(shape))
        named = tuple(self.aligned(arg, shape, idxs) for arg in args)
        return _Array(self.subquery(Reorder(MapJoin(Immediate(op), named), idxs)), shape, dtype)

    def aligned(self, array: _Array, shape: tuple[int, ...], idxs: tuple[Field, ...]) -> LogicNode:
        """An array under the fields of a result; an axis of size 1 that is stretched is dropped."""
        ndim = len(array.shape)
        if not ndim:  # a number, or an array without axes, of which Finch.jl asks the fields
            return array.node if isinstance(array.node, Immediate) else Reorder(Relabel(array.node, ()), ())
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
        if kind == "b" or self.lawless:
            return self.converted(array)
        op = self.one_of((*_ARITHMETIC, *_BY_NUMBER))
        if op is None:
            return None
        number: Any = self.draw.integer(0, 3) if kind == "u" or op.name in _BY_NUMBER else self.draw.integer(-2, 2)
        if kind in "fc" and op.name not in _BY_NUMBER:
            number = number / 2
        literal = _Array(Immediate(array.dtype.type(number)), (), array.dtype)
        is_second = op.name in _BY_NUMBER or self.draw.integer(0, 1)
        return self.mapped(op, *((array, literal) if is_second else (literal, array)))

    def converted(self, array: _Array) -> _Array | None:
        """A cast; from floats to integers only of what is whole and small, since others are nobody's business."""
        kinds = _KINDS[array.dtype.kind]
        targets = sorted({name for name in self.config.dtypes if np.dtype(name).kind in kinds})
        if not targets or self.config.operators is not None:
            return None
        target = np.dtype(self.draw.choice(targets))
        if array.dtype.kind == "f" and target.kind == "i":
            values = self.values(array)
            if not np.all(np.isfinite(values) & (np.abs(values) < 100)):
                return None
        return self.mapped(cast(target), array)

    def values(self, array: _Array) -> np.ndarray[Any, Any]:
        """What an expression gives."""
        alias = Alias("values")
        with np.errstate(all="ignore"):
            (value,) = evaluate(Plan((Query(alias, array.node), Produces((alias,)))), self.tensors)
        return np.asarray(value)

    def chosen(self, condition: _Array, a: _Array, b: _Array) -> _Array | None:
        """One or the other; or a number between two."""
        if condition.dtype.kind == "b":
            return self.mapped(self.one_of(("where",), 3), condition, a, b)
        low, high = (_Array(Immediate(a.dtype.type(value)), (), a.dtype) for value in (0, 1))
        return None if self.lawless else self.mapped(self.one_of(("clip",), 3), a, low, high)

    def reduced(self, array: _Array) -> _Array | None:
        ndim = len(array.shape)
        op = self.one_of(_FOLDS)
        if not ndim or self.lawless or op is None:
            return None
        dtype = op.result_dtype(array.dtype, array.dtype)
        init = op.identity(dtype)
        if init is None or self.draw.integer(0, 5) == 0:
            init = dtype.type(self.draw.choice((1, 2) if dtype.kind != "b" else (0, 1)))
        # A wide accumulator, as NumPy's sums of small integers have.
        if dtype.kind in "iu" and self.draw.integer(0, 2) == 0:
            init = np.dtype("int64" if dtype.kind == "i" else "uint64").type(init)
        if op.result_dtype(init.dtype, array.dtype) != init.dtype:
            return None
        axes = [axis for axis in range(ndim) if self.draw.integer(0, 1)] or [self.draw.integer(0, ndim - 1)]
        idxs = self.fields(ndim)
        over = tuple(idxs[ndim - 1 - axis] for axis in axes)
        node = Aggregate(Immediate(op), Immediate(init), Relabel(array.node, idxs), over)
        shape = tuple(size for axis, size in enumerate(array.shape) if axis not in axes)
        return _Array(self.subquery(node), shape, init.dtype)

    def transposed(self, array: _Array, axes: tuple[int, ...]) -> _Array | None:
        """Axis k of the result is axis ``axes[k]``."""
        ndim = len(array.shape)
        if axes == tuple(range(ndim)):
            return None
        idxs = self.fields(ndim)
        new = tuple(idxs[ndim - 1 - axis] for axis in reversed(axes))
        shape = tuple(array.shape[axis] for axis in axes)
        return _Array(self.subquery(Reorder(Relabel(array.node, idxs), new)), shape, array.dtype)

    def contracted(self, a: _Array, b: _Array) -> _Array | None:
        """A product of two, reduced over the last axis of one and the first of the other, in some semiring."""
        if self.lawless or not a.shape or not b.shape or a.shape[-1] != b.shape[0]:
            return None
        if len(a.shape) + len(b.shape) > 5:
            return None
        inner, outer = self.draw.choice(_SEMIRINGS)
        times, plus = self.one_of((inner,)), self.one_of((outer,))
        if times is None or plus is None:
            return None
        dtype = plus.result_dtype(*[times.result_dtype(a.dtype, b.dtype)] * 2)
        zero = plus.identity(dtype)
        if zero is None:
            return None
        left, right = self.fields(len(a.shape)), list(self.fields(len(b.shape)))
        right[-1] = left[0]
        product = MapJoin(Immediate(times), (Relabel(a.node, left), Relabel(b.node, tuple(right))))
        total = Aggregate(Immediate(plus), Immediate(zero), product, (left[0],))
        idxs = (*right[:-1], *left[1:])
        return _Array(self.subquery(Reorder(total, idxs)), (*a.shape[:-1], *b.shape[1:]), dtype)

    def stored(self, array: _Array) -> _Array | None:
        """An array in a format that is asked for."""
        if not self.config.reformats:
            return None
        levels, order = _levels(self.draw.choice(self.formats), tuple(range(len(array.shape))))
        node = Reformat(Immediate(Format((*levels, Element()), order)), array.node)
        return _Array(self.subquery(node), array.shape, array.dtype)

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
            axis = self.draw.integer(0, ndim)
            kept.insert(ndim - axis, self.fields(1)[0])
            shape.insert(axis, 1)
        else:
            return None
        node = (
            Reorder(Relabel(array.node, tuple(idxs)), tuple(kept))
            if ndim
            else Reorder(Relabel(array.node, ()), tuple(kept))
        )
        return _Array(self.subquery(node), tuple(shape), array.dtype)

    # ------------------------------------------------------------------------------------------------------- names

    def fields(self, number: int) -> tuple[Field, ...]:
        first = self.count
        self.count += number
        return tuple(Field(f"x{k}") for k in range(first, first + number))

    def subquery(self, node: LogicNode) -> Subquery:
        self.count += 1
        return Subquery(Alias(f"X{self.count}"), node)


def _levels(word: str, order: tuple[int, ...]) -> tuple[tuple[Level, ...], tuple[int, ...]]:
    text = FORMATS[word][len(order) - 1] if order else "{}"
    return format(text.format("element()"), ndim=len(order)).levels[:-1], order
