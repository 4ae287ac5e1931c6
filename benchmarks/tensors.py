"""Tensors of three and four modes: MTTKRP, TTV, TTM, a step of CP-ALS, a step of Tucker's decomposition."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

import pyfinch as pf
from benchmarks import hand, peers
from benchmarks import tensors_by_hand as by_hand
from benchmarks.agreement import entries
from benchmarks.harness import Bench, Row, at_most
from benchmarks.inputs import tensors

HAND = (at_most(1.05, "hand"),)
MANY = 3_000_000  # more products than this are not asked of pydata/sparse, which stores them all


@dataclass(frozen=True)
class Fibers:
    """A tensor as dense(sparse_list(…)): pointers and indices of every mode but the first."""

    shape: tuple[int, ...]
    coords: Any
    ptrs: tuple[Any, ...]
    idxs: tuple[Any, ...]
    values: Any

    def parts(self) -> tuple[Any, ...]:
        """What a kernel by hand takes."""
        return (*[part for pair in zip(self.ptrs, self.idxs, strict=True) for part in pair], self.values)

    def tensor(self) -> Any:
        """The same as a tensor of pyfinch."""
        lists = len(self.shape) - 1
        text = f"dense({'sparse_list(' * lists}element(0.0, float64){')' * lists})"
        levels = list(zip(self.ptrs, self.idxs, strict=True))
        return pf.Tensor.from_buffers(pf.format(text), self.shape, [(), *levels, (self.values,)])

    def fiber_coords(self) -> tuple[Any, Any]:
        """The coordinates of the fibers of a 3-D tensor along its last mode."""
        first = np.repeat(np.arange(self.shape[0]), np.diff(self.ptrs[0]))
        return first, self.idxs[0]


def fibers(shape: tuple[int, ...], coords: Any, values: Any, order: tuple[int, ...] | None = None) -> Fibers:
    """Compress coordinates, after bringing the modes into another order."""
    order = order or tuple(range(len(shape)))
    shape, coords = tuple(shape[k] for k in order), coords[list(order)]
    sort = np.lexsort(coords[::-1])
    coords, values = coords[:, sort], values[sort]
    ptrs, idxs = [], []
    owner, owners = coords[0], shape[0]  # which fiber of the level above each entry is in
    for mode in range(1, len(shape)):
        places = owner * shape[mode] + coords[mode]
        starts = np.concatenate(([True], places[1:] != places[:-1]))
        counts = np.bincount(owner[starts], minlength=owners)
        ptrs.append(np.concatenate(([0], np.cumsum(counts))).astype(np.int32))
        idxs.append(coords[mode][starts].astype(np.int32))
        owner, owners = np.cumsum(starts) - 1, int(starts.sum())
    return Fibers(shape, coords, tuple(ptrs), tuple(idxs), values)


def factors(shape: tuple[int, ...], width: int) -> list[Any]:
    """A random matrix for each mode."""
    rng = np.random.default_rng(1)
    return [rng.random((size, width)) for size in shape]


def mttkrp_by_hand(t: Fibers, matrices: Any) -> Any:
    """Of the first mode."""
    out = np.empty((t.shape[0], matrices[0].shape[1]))
    kernel = hand.mttkrp if len(t.shape) == 3 else by_hand.mttkrp4
    kernel(*t.parts(), *matrices[1:], out, 0, t.shape[0])
    return out


def mttkrp(bench: Bench, name: str, t: Fibers, width: int, pydata: Any) -> Row:
    """A[i,r] = Σ T[i,j,k] B[j,r] C[k,r], and with four modes."""
    f, matrices = t.tensor(), factors(t.shape, width)
    ours = [pf.asarray(m) for m in matrices]
    text = "ijk,jr,kr->ir" if len(t.shape) == 3 else "ijkl,jr,kr,lr->ir"
    sparse = peers.pydata() if t.values.size * width <= MANY and len(t.shape) == 3 else None
    calls = {
        "pyfinch": lambda: pf.einsum(text, f, *ours[1:]),
        "hand": lambda: mttkrp_by_hand(t, matrices),
        "pydata": sparse and (lambda: sparse.einsum(text, pydata, *matrices[1:])),
    }
    return bench.measure(f"MTTKRP {width}", name, calls, wanted=HAND)


def products(bench: Bench, name: str, t: Fibers, width: int, pydata: Any) -> Iterator[Row]:
    """Times a vector, and times a matrix, along the last mode."""
    f, (_, v, w) = t.tensor(), factors(t.shape, width)
    x, sparse = np.ascontiguousarray(w[:, 0]), peers.pydata()
    fx, fv, fw = pf.asarray(x), pf.asarray(v), pf.asarray(w)
    first, second = t.fiber_coords()
    calls = {
        "pyfinch": lambda: pf.einsum("ijk,k->ij", f, fx),
        "hand": lambda: by_hand.ttv(t.ptrs[1], t.idxs[1], t.values, x),
        "pydata": sparse and (lambda: sparse.tensordot(pydata, x, axes=1)),
    }
    views = {"hand": lambda sums: entries(t.shape[:2], (first, second), sums)}
    yield bench.measure("TTV", name, calls, wanted=HAND, views=views)
    calls = {
        "pyfinch": lambda: pf.einsum("ijk,kr->ijr", f, fw),
        "hand": lambda: by_hand.ttm(t.ptrs[1], t.idxs[1], t.values, w),
        "pydata": sparse and (lambda: sparse.tensordot(pydata, w, axes=1)),
    }
    column = np.arange(width)
    views = {
        "hand": lambda rows: entries(
            (*t.shape[:2], width),
            (np.repeat(first, width), np.repeat(second, width), np.tile(column, len(first))),
            rows.reshape(-1),
        )
    }
    yield bench.measure(f"TTM {width}", name, calls, wanted=HAND, views=views)
    calls = {
        "pyfinch": lambda: pf.einsum("ijk,jr,ks->irs", f, fv, fw),
        "hand": lambda: by_hand.ttmc(*t.parts(), v, w, t.shape[0]),
    }
    yield bench.measure(f"Tucker step {width}", name, calls, wanted=HAND)


def alternating(bench: Bench, name: str, orders: list[Fibers], width: int) -> Row:
    """One sweep of CP-ALS (Carroll and Chang, 1970); a copy of the tensor for each mode, as SPLATT keeps."""
    shape = orders[0].shape
    ours = [t.tensor() for t in orders]

    def sweep(product: Any) -> Any:
        matrices = factors(shape, width)
        for mode in range(3):
            others = [k for k in range(3) if k != mode]
            gram = np.prod([matrices[k].T @ matrices[k] for k in others], axis=0)
            result = np.asarray(product(mode, [matrices[mode], *[matrices[k] for k in others]]))
            matrices[mode] = np.linalg.solve(gram, result.T).T.copy()
        return matrices[2]

    calls = {
        "pyfinch": lambda: sweep(lambda mode, m: pf.einsum("ijk,jr,kr->ir", ours[mode], m[1], m[2])),
        "hand": lambda: sweep(lambda mode, m: mttkrp_by_hand(orders[mode], m)),
    }
    return bench.measure(f"CP-ALS step {width}", name, calls, wanted=HAND, tolerance=1e-6)


def run(bench: Bench) -> Iterator[Row]:
    """Measure."""
    width, sparse = 16 if bench.quick else 32, peers.pydata()
    for name, shape, coords, values in tensors(bench.quick):
        t = fibers(shape, coords, values)
        pydata = sparse and sparse.COO(coords, values, shape=shape, sorted=True)
        yield mttkrp(bench, name, t, width, pydata)
        if len(shape) == 3:
            yield from products(bench, name, t, width, pydata)
            orders = [t, *[fibers(shape, coords, values, order) for order in ((1, 0, 2), (2, 0, 1))]]
            yield alternating(bench, name, orders, width)
