"""Making tensors, changing formats, transposing, slicing, fancy indexing, joining."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp

import pyfinch as pf
from benchmarks import peers
from benchmarks.harness import Bench, Row, at_most
from benchmarks.inputs import matrices, tensors

WANTED = (at_most(1.0, "scipy"),)


def conversions(bench: Bench, name: str, csr: Any) -> Iterator[Row]:
    """Between csr, csc, coo and dense; a transpose that is stored by rows."""
    csc, coo = csr.tocsc(), csr.tocoo()
    a, b, c = pf.asarray(csr), pf.asarray(csc), pf.asarray(coo)
    sparse = peers.pydata()
    p, g = (sparse.COO.from_scipy_sparse(csr), sparse.GCXS.from_scipy_sparse(csr)) if sparse else (None, None)
    shuffled = np.random.default_rng(1).permutation(csr.nnz)
    jumbled = sp.coo_array((coo.data[shuffled], tuple(x[shuffled] for x in coo.coords)), shape=coo.shape)
    rows = {
        "asarray(csr)": {
            "pyfinch": lambda: pf.asarray(csr),
            "scipy": lambda: sp.csr_array((csr.data, csr.indices, csr.indptr), shape=csr.shape),
            "pydata": sparse and (lambda: sparse.GCXS.from_scipy_sparse(csr)),
        },
        "asarray(csr, copy)": {"pyfinch": lambda: pf.asarray(csr, copy=True), "scipy": csr.copy},
        "asarray(jumbled coo) as csr": {
            "pyfinch": lambda: pf.asarray(jumbled, format="csr"),
            "scipy": jumbled.tocsr,
            "pydata": sparse and (lambda: sparse.COO(np.array(jumbled.coords), jumbled.data, shape=csr.shape)),
        },
        "csr to csc": {
            "pyfinch": lambda: a.to_format("csc"),
            "scipy": csr.tocsc,
            "pydata": sparse and (lambda: g.change_compressed_axes([1])),
        },
        "csc to csr": {"pyfinch": lambda: b.to_format("csr"), "scipy": csc.tocsr},
        "csr to coo": {
            "pyfinch": lambda: a.to_format("coo"),
            "scipy": csr.tocoo,
            "pydata": sparse and g.tocoo,
        },
        "coo to csr": {
            "pyfinch": lambda: c.to_format("csr"),
            "scipy": coo.tocsr,
            "pydata": sparse and (lambda: sparse.GCXS.from_coo(p, compressed_axes=[0])),
        },
        "transpose": {"pyfinch": lambda: a.T.to_format("csr"), "scipy": lambda: csr.T.tocsr()},
        "to_scipy": {
            "pyfinch": a.to_scipy,
            "scipy": lambda: sp.csr_array((csr.data, csr.indices, csr.indptr), shape=csr.shape),
        },
    }
    if csr.shape[0] <= 3_000:
        full = csr.toarray()
        rows["todense"] = {"pyfinch": a.todense, "scipy": csr.toarray, "pydata": sparse and g.todense}
        rows["dense to csr"] = {
            "pyfinch": lambda: pf.asarray(full, format="csr"),
            "scipy": lambda: sp.csr_array(full),
            "pydata": sparse and (lambda: sparse.GCXS.from_numpy(full, compressed_axes=[0])),
        }
    for workload, calls in rows.items():
        yield bench.measure(workload, name, calls, wanted=WANTED)


def parts(bench: Bench, name: str, csr: Any) -> Iterator[Row]:
    """Slices, rows by a list or a mask, and joining."""
    a, n, rng = pf.asarray(csr), csr.shape[0], np.random.default_rng(1)
    sparse = peers.pydata()
    p = sparse and sparse.GCXS.from_scipy_sparse(csr)
    some, mask = rng.integers(n, size=n // 10), rng.random(n) < 0.1
    works = {
        "slice, rows": lambda x: x[n // 4 : n // 2],
        "slice, columns": lambda x: x[:, n // 4 : n // 2],
        "slice, with a step": lambda x: x[::2, ::3],
        "one row": lambda x: x[n // 2],
        "rows by a list": lambda x: x[some],
        "rows by a mask": lambda x: x[mask],
    }
    for workload, work in works.items():
        calls = {
            "pyfinch": lambda work=work: work(a),
            "scipy": lambda work=work: work(csr),
            "pydata": sparse and (lambda work=work: work(p)),
        }
        yield bench.measure(workload, name, calls, wanted=WANTED)
    for axis, join in ((0, sp.vstack), (1, sp.hstack)):
        calls = {
            "pyfinch": lambda axis=axis: pf.concat([a, a], axis=axis),
            "scipy": lambda join=join: join([csr, csr], format="csr"),
            "pydata": sparse and (lambda axis=axis: sparse.concatenate([p, p], axis=axis)),
        }
        yield bench.measure(f"concat, axis {axis}", name, calls, wanted=WANTED)


def of_tensors(bench: Bench, name: str, shape: Any, coords: Any, values: Any) -> Iterator[Row]:
    """Coo to csf, a transpose that is stored in row-major order, a slice."""
    sparse = peers.pydata()
    if sparse is None:
        return
    p = sparse.COO(coords, values, shape=shape, sorted=True)
    a, backwards = pf.asarray(p), tuple(reversed(range(len(shape))))
    yield bench.measure("asarray(pydata coo)", name, {"pyfinch": lambda: pf.asarray(p)})
    calls = {"pyfinch": lambda: a.to_format("csf"), "pydata": lambda: sparse.GCXS.from_coo(p, compressed_axes=[0])}
    yield bench.measure("coo to csf", name, calls)
    calls = {
        "pyfinch": lambda: pf.permute_dims(a, backwards).to_format("coo"),
        "pydata": lambda: p.transpose(backwards),
    }
    yield bench.measure("transpose, tensors", name, calls)
    calls = {"pyfinch": lambda: a[:, shape[1] // 2], "pydata": lambda: p[:, shape[1] // 2]}
    yield bench.measure("slice, tensors", name, calls)


def run(bench: Bench) -> Iterator[Row]:
    """Measure."""
    for name, csr in matrices(bench.quick):
        if name in (
            ("bcsstk13",) if bench.quick else ("uniform 1e4×10", "uniform 1e5×10", "power law 2^17", "bcsstk13")
        ):
            yield from conversions(bench, name, csr)
            yield from parts(bench, name, csr)
    for name, *given in tensors(bench.quick):
        if name in (("3-D uniform",) if bench.quick else ("3-D uniform", "4-D uniform")):
            yield from of_tensors(bench, name, *given)
