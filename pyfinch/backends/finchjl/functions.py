"""Users' operators as Julia expressions: a function whose body is a plain expression crosses the bridge."""

from __future__ import annotations

import ast
import inspect
import math
import textwrap
import types
from typing import Any, Final

import numpy as np

from pyfinch.algebra.dtypes import is_supported, julia_name
from pyfinch.algebra.errors import PyFinchError
from pyfinch.algebra.operators import UserOperator, get
from pyfinch.loops.numbers import number_text

__all__ = ["function_text"]

_INFIX: Final[dict[type, str]] = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.Pow: "^", ast.BitAnd: "&", ast.BitOr: "|",
    ast.LShift: "<<", ast.RShift: ">>",
    ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=",
}  # fmt: skip
_PREFIX: Final[dict[type, str]] = {ast.FloorDiv: "fld", ast.Mod: "mod", ast.BitXor: "xor"}
_BUILTINS: Final[dict[Any, str]] = {abs: "abs", min: "min", max: "max", round: "round", math.fabs: "abs"}
_TYPES: Final[dict[Any, str]] = {float: "Float64", int: "Int64", bool: "Bool", complex: "ComplexF64"}
_WHAT: Final = (
    "arithmetic, comparisons, conditionals (x if c else y, or if statements that return), functions of math or numpy, "
    "numbers, and local names"
)


def function_text(op: UserOperator) -> tuple[tuple[str, ...], str]:
    """The names of an operator's arguments, and its body in the expressions of the Loop language.

    Raises
    ------
    PyFinchError
        Naming the operator, and the part of its body that is no plain expression.

    Examples
    --------
    >>> from pyfinch.algebra.operators import operator
    >>> function_text(operator(lambda x, y: x * y if x > y else 0.0))
    (('x', 'y'), 'ifelse((x > y), (x * y), 0.0)')
    """
    return _Function(op).text()


class _Function:
    def __init__(self, op: UserOperator) -> None:
        self.op = op
        self.func: types.FunctionType = op.scalar
        self.locals: set[str] = set()

    def refusal(self, what: str) -> PyFinchError:
        return PyFinchError(
            f"operator {self.op.name} cannot run on backend 'finchjl': {what}; a body may have {_WHAT}. "
            "Use backend 'numba' for it"
        )

    def text(self) -> tuple[tuple[str, ...], str]:
        node = self.parse()
        names = tuple(arg.arg for arg in [*node.args.posonlyargs, *node.args.args][: self.op.arity])
        self.locals.update(names)
        if isinstance(node, ast.Lambda):
            return names, self.expression(node.body)
        lines: list[str] = []
        result = self.block(node.body, lines)
        return names, "\n".join([*lines, result])

    def parse(self) -> ast.FunctionDef | ast.Lambda:
        """The definition, from the source."""
        try:
            source = textwrap.dedent(inspect.getsource(self.func))
        except (OSError, TypeError):
            raise self.refusal("its source is not at hand") from None
        tree = None
        for text in (source, f"({source.strip().rstrip(',')})"):
            try:
                tree = ast.parse(text)
                break
            except SyntaxError:
                continue
        if tree is None:
            raise self.refusal("its source does not stand alone; define it with def")
        wanted = ast.Lambda if self.func.__name__ == "<lambda>" else ast.FunctionDef
        found = [node for node in ast.walk(tree) if isinstance(node, wanted)]
        if wanted is ast.Lambda:
            names = list(self.func.__code__.co_varnames[: self.func.__code__.co_argcount])
            found = [node for node in found if [arg.arg for arg in node.args.args] == names]
            if len(found) != 1:
                raise self.refusal("several lambdas stand on its line; define it with def")
        if not found:
            raise self.refusal("its source is not at hand")
        return found[0]

    # ------------------------------------------------------------------------------------------------- statements

    def block(self, body: list[ast.stmt], lines: list[str]) -> str:
        """The expression that a list of statements returns; assignments go to ``lines``."""
        for k, statement in enumerate(body):
            match statement:
                case ast.Expr(ast.Constant(str())) | ast.Pass():
                    continue
                case ast.Return(ast.expr() as value):
                    return self.expression(value)
                case ast.Assign([ast.Name(name)], value):
                    lines.append(f"{name} = {self.expression(value)}")
                    self.locals.add(name)
                case ast.AnnAssign(ast.Name(name), _, ast.expr() as value):
                    lines.append(f"{name} = {self.expression(value)}")
                    self.locals.add(name)
                case ast.If(test, then, other):
                    rest = other or body[k + 1 :]
                    if other and not _returns(other):
                        raise self.refusal(f"line {statement.lineno}: an if must return in both branches")
                    inner: list[str] = []
                    yes, no = self.block(then, inner), self.block(rest, inner)
                    if inner:
                        raise self.refusal(f"line {statement.lineno}: assignments inside of an if")
                    return f"ifelse({self.condition(test)}, {yes}, {no})"
                case _:
                    raise self.refusal(f"line {statement.lineno}: {ast.unparse(statement).splitlines()[0]!r}")
        raise self.refusal("not every path returns a value")

    # ------------------------------------------------------------------------------------------------ expressions

    def expression(self, node: ast.expr) -> str:
        match node:
            case ast.Constant(bool() | int() | float() | complex() as value):
                return _number(value)
            case ast.Name(name) if name in self.locals:
                return name
            case ast.Name() | ast.Attribute():
                value = self.value(node)
                if isinstance(value, bool | int | float | complex | np.generic):
                    return _number(value)
            case ast.BinOp(left, op, right):
                a, b = self.expression(left), self.expression(right)
                if type(op) in _INFIX:
                    return f"({a} {_INFIX[type(op)]} {b})"
                if type(op) in _PREFIX:
                    return f"{_PREFIX[type(op)]}({a}, {b})"
            case ast.UnaryOp(ast.USub(), operand):
                return f"(-{self.expression(operand)})"
            case ast.UnaryOp(ast.UAdd(), operand):
                return self.expression(operand)
            case ast.UnaryOp(ast.Invert(), operand):
                return f"(~{self.expression(operand)})"
            case ast.UnaryOp(ast.Not(), operand):
                return f"(!{self.condition(operand)})"
            case ast.BoolOp(op, values):
                name = "and" if isinstance(op, ast.And) else "or"
                return f"{name}({', '.join(self.condition(value) for value in values)})"
            case ast.Compare(left, ops, others) if all(type(op) in _INFIX for op in ops):
                terms = [self.expression(term) for term in (left, *others)]
                tests = [f"({a} {_INFIX[type(op)]} {b})" for a, op, b in zip(terms, ops, terms[1:], strict=False)]
                return tests[0] if len(tests) == 1 else f"and({', '.join(tests)})"
            case ast.IfExp(test, then, other):
                return f"ifelse({self.condition(test)}, {self.expression(then)}, {self.expression(other)})"
            case ast.Call(func, args, []):
                return self.call(func, args)
        raise self.refusal(f"{ast.unparse(node)!r}")

    def condition(self, node: ast.expr) -> str:
        """An expression as a truth value."""
        text = self.expression(node)
        is_truth = isinstance(node, ast.Compare | ast.BoolOp) or (
            isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not)
        )
        return text if is_truth else f"Bool({text})"

    def call(self, func: ast.expr, args: list[ast.expr]) -> str:
        value = self.value(func)
        texts = [self.expression(arg) for arg in args]
        if value in _TYPES and len(texts) == 1:
            return f"{_TYPES[value]}({texts[0]})"
        if isinstance(value, type) and issubclass(value, np.generic) and is_supported(value) and len(texts) == 1:
            return f"{julia_name(value)}({texts[0]})"
        if value is np.where and len(texts) == 3:
            return f"ifelse({self.condition(args[0])}, {texts[1]}, {texts[2]})"
        name = _BUILTINS.get(value) if callable(value) else None
        if name is None and getattr(value, "__module__", None) in ("math", "numpy", "builtins", None):
            try:
                name = get(value.__name__, len(texts)).symbol
            except (PyFinchError, AttributeError):
                name = None
        if name is None:
            raise self.refusal(f"it calls {ast.unparse(func)}, of which Julia's side knows nothing")
        return f"{name}({', '.join(texts)})"

    def value(self, node: ast.expr) -> Any:
        """What a global, a closure's or a module's name stands for."""
        match node:
            case ast.Name(name):
                closure = inspect.getclosurevars(self.func)
                for scope in (closure.nonlocals, closure.globals, closure.builtins):
                    if name in scope:
                        return scope[name]
            case ast.Attribute(ast.Name() as base, attribute):
                module = self.value(base)
                if isinstance(module, types.ModuleType) and hasattr(module, attribute):
                    return getattr(module, attribute)
        raise self.refusal(f"{ast.unparse(node)!r} is not known")


def _returns(body: list[ast.stmt]) -> bool:
    return any(isinstance(statement, ast.Return | ast.If) for statement in body)


def _number(value: Any) -> str:
    if isinstance(value, np.generic):
        return number_text(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    kind = np.int64 if isinstance(value, int) else np.float64 if isinstance(value, float) else np.complex128
    return number_text(kind(value))
