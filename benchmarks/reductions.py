"""Reductions of matrices and tensors over each axis and over all of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyfinch as pf
from benchmarks import peers
from benchmarks.harness import Bench, Row, at_most
from benchmarks.inputs import matrices, tensors

WANTED = (at_most(1.0, "scipy"),)
MATRICES = ("uniform 1e4×10", "uniform 1e5×10", "power law 2^17", "banded 1e5×9", "nearly dense 1500", "bcsstk13")
AXES = {0: "columns", 1: "rows", None: "all"}


def by_graphblas(gb: Any, a: Any, monoid: Any, axis: int | None) -> Any:
    """GraphBLAS's reduction, whose result is sparse."""
    if axis is None:
        return lambda: a.reduce_scalar(monoid).new()
    return (lambda: a.reduce_rowwise(monoid).new()) if axis else (lambda: a.reduce_columnwise(monoid).new())


def of_matrix(bench: Bench, name: str, matrix: Any) -> Iterator[Row]:
    """Sum, maximum and mean."""
    a = pf.asarray(matrix)
    gb, sparse = peers.graphblas(), peers.pydata()
    g, p = gb and gb.io.from_scipy_sparse(matrix), sparse and sparse.COO.from_scipy_sparse(matrix)
    for axis, what in AXES.items():
        calls = {
            "pyfinch": lambda axis=axis: pf.sum(a, axis=axis),
            "scipy": lambda axis=axis: matrix.sum(axis=axis),
            "pydata": sparse and (lambda axis=axis: p.sum(axis=axis)),
            "graphblas": gb and by_graphblas(gb, g, gb.monoid.plus, axis),
        }
        yield bench.measure("sum", f"{name}, {what}", calls, wanted=WANTED)
        calls = {
            "pyfinch": lambda axis=axis: pf.max(a, axis=axis),
            "scipy": lambda axis=axis: matrix.max(axis=axis),
            "pydata": sparse and (lambda axis=axis: p.max(axis=axis)),
        }
        yield bench.measure("max", f"{name}, {what}", calls, wanted=WANTED)
    calls = {"pyfinch": lambda: pf.mean(a, axis=1), "scipy": lambda: matrix.mean(axis=1)}
    yield bench.measure("mean", f"{name}, rows", calls, wanted=WANTED)


def of_tensor(bench: Bench, name: str, shape: Any, coords: Any, values: Any) -> Iterator[Row]:
    """The sum over each mode; pyfinch's tensor is csf, its result as it comes."""
    sparse = peers.pydata()
    if sparse is None:
        return
    p = sparse.COO(coords, values, shape=shape, sorted=True)
    a = pf.asarray(p).to_format("csf")
    for axis in (*range(len(shape)), None):
        calls = {"pyfinch": lambda axis=axis: pf.sum(a, axis=axis), "pydata": lambda axis=axis: p.sum(axis=axis)}
        what = "all modes" if axis is None else f"mode {axis}"
        yield bench.measure("sum, tensors", f"{name}, {what}", calls)


def run(bench: Bench) -> Iterator[Row]:
    """Measure."""
    for name, matrix in matrices(bench.quick):
        if name in (("uniform 1e4×10",) if bench.quick else MATRICES):
            yield from of_matrix(bench, name, matrix)
    for given in tensors(bench.quick):
        if given[0] in (("3-D uniform",) if bench.quick else ("3-D uniform", "3-D power law", "4-D uniform")):
            yield from of_tensor(bench, *given)
