"""Counts what a computation does: iterations of its kernels' loops, and entries that are copied or sorted."""

from __future__ import annotations

import ast
import math
from typing import Any

import numpy as np

import pyfinch as pf
from pyfinch.algebra import scalar_functions
from pyfinch.api.compute import prepare
from pyfinch.backends.numba import runtime
from pyfinch.backends.numba.execute import run
from pyfinch.backends.numba.permute import combine, permute
from pyfinch.backends.steps import extent, permuted

__all__ = ["iterations"]


class _Count(ast.NodeTransformer):
    """Adds one to a global count at the start of each loop's body, and drops casts of subscripts."""

    def visit(self, node: Any) -> Any:
        node = super().visit(node)
        if isinstance(node, ast.For | ast.While):
            node.body.insert(0, ast.parse("_iterations_[0] += 1").body[0])
        return node

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        if isinstance(node.func, ast.Name) and node.func.id == "uintp":
            return node.args[0]
        return node


def _counting(source: str, count: list[int]) -> Any:
    namespace: dict[str, Any] = {"np": np, "math": math, "int64": int, "_iterations_": count}
    for module in (scalar_functions, runtime):
        namespace.update({name: getattr(module, name) for name in module.__all__})
    exec(compile(ast.fix_missing_locations(_Count().visit(ast.parse(source))), "<counted>", "exec"), namespace)
    return namespace["kernel"]


def iterations(*lazies: Any, scheduler: str | None = None) -> tuple[int, list[Any]]:
    """Loop iterations of all kernels (and, for steps that NumPy does, entries moved), and the results.

    The kernels run as plain Python, each loop with a counter in its body.
    """
    ready, names = prepare(lazies, "numba", scheduler)
    operands: dict[str, Any] = {}
    for x in lazies:
        operands.update(x.operands)
    tensors = {name: operands[old] for name, old in zip(ready.names, names, strict=True)}
    adaptive: Any = ready.executable
    executable = adaptive.chosen(tensors)
    env = {alias: tensors[name] for alias, name in executable.plan.inputs.items()}
    count = [0]
    for step in executable.steps:
        made = step.step
        tensors = [env[name] for name in made.operands]
        if made.kind == "share":
            env[made.result] = tensors[0]
            continue
        if made.kind == "permute":
            env[made.result] = permute(tensors[0], made.order, made.ftype)
            count[0] += tensors[0].nnz
            continue
        shape = tuple(extent(tensors, place) for place in made.shape)
        source = step.kernel.source
        given = {name: extent(tensors, place) for name, place in made.given}
        given.update(zip(made.variables, tensors, strict=True))
        picked = [given[variable.name] for variable in source.operands]
        with np.errstate(all="ignore"):
            result = run(_counting(source.source, count), source, picked, shape, given)
        if made.combine is not None:
            count[0] += result.nnz * max(1, math.ceil(math.log2(result.nnz + 1)))
            result = combine(result, made.combine, made.ftype)
        env[made.result] = result
    results = []
    for (name, order), users in zip(executable.plan.results, ready.orders, strict=True):
        stored = permuted(env[name], order)
        dense = pf.Tensor._trusted(stored.ftype, stored.shape, stored.fill_value, stored.buffers).todense()
        results.append(np.transpose(dense, np.argsort(users)) if users else dense)
    return count[0], results
