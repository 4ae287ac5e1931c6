"""Scalar expressions of the Loop language as Python text in three-address form."""

from __future__ import annotations

import numpy as np

from pyfinch.algebra.dtypes import constructor
from pyfinch.algebra.errors import ScheduleError
from pyfinch.algebra.operators import Operator, cast
from pyfinch.algebra.values import literal
from pyfinch.backends.numba.emitter import Emitter
from pyfinch.loops.nodes import Call, Literal, LoopNode, Value, Variable
from pyfinch.loops.simplify import dtype_of

__all__ = ["Scalars"]

_NATURAL = frozenset(np.dtype(t) for t in ("int64", "uint64", "float32", "float64", "complex64", "complex128"))


class Scalars:
    """Emits scalar expressions; ``known`` maps terms to the names that already hold them."""

    def __init__(self, out: Emitter) -> None:
        self.out = out
        self.functions: dict[str, Operator] = {}

    def text(self, node: LoopNode, known: dict[LoopNode, str]) -> str:
        """The text that stands for an expression, its parts emitted as statements before it."""
        stack = [node]
        while stack:
            term = stack[-1]
            if term in known:
                stack.pop()
                continue
            match term:
                case Literal(value):
                    known[term] = self.constant(value)
                case Value(name, _) | Variable(name, _):
                    known[term] = name
                case Call(op, args, dtype):
                    waiting = [arg for arg in args if arg not in known]
                    if waiting:
                        stack.extend(reversed(waiting))
                        continue
                    text = self.apply(op, [(known[arg], dtype_of(arg)) for arg in args], dtype)
                    known[term] = text if term is node else self.out.let("t", text)
                case _:
                    raise ScheduleError(f"{term!r} is used where it is not bound")
        return known[node]

    def constant(self, value: np.generic) -> str:
        """The name of a constant."""
        if value.dtype.kind == "b":
            return literal(value)
        return self.out.constant("c", literal(value))

    def apply(self, op: Operator, args: list[tuple[str, np.dtype[np.generic]]], dtype: np.dtype[np.generic]) -> str:
        """One application of an operator to named arguments, giving NumPy's value in NumPy's dtype."""
        if op.arity == -1 and len(args) > 2:
            text, kind = args[0]
            for i, arg in enumerate(args[1:]):
                text = self.apply(op, [(text, kind), arg], dtype)
                kind = dtype
                if i < len(args) - 2:
                    text = self.out.let("t", text)
            return text
        if len(args) == 1 and op.arity == -1:
            return self.cast(args[0][0], args[0][1], dtype)
        kinds = [kind for _, kind in args]
        wanted = op.operand_dtypes(*kinds)
        template = op.template(*kinds)
        texts = []
        for k, ((text, kind), want) in enumerate(zip(args, wanted, strict=True)):
            text = self.cast(text, kind, want)
            if template.count(f"{{{k}}}") > 1 and not text.isidentifier():
                text = self.out.let("t", text)
            texts.append(text)
        text = template.format(*texts)
        result = op.result_dtype(*kinds)
        # Plain arithmetic on the wide types has their type; functions may answer in another (the sign as a float).
        natural = result in _NATURAL and "(" not in template[1:] and all(want == result for want in wanted)
        if result.kind != "b" and not natural:
            text = f"{constructor(result)}({text})"
        return self.cast(text, result, dtype)

    def cast(self, text: str, kind: np.dtype[np.generic], dtype: np.dtype[np.generic]) -> str:
        """The value in another dtype."""
        if kind == dtype:
            return text
        return cast(dtype).template(kind).format(text)
