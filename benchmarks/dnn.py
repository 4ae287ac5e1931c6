"""Inference with a sparse neural network, min(max(Y W + b, 0), 32) a layer, on one thread and on two.

The weights and images are those of the MIT/IEEE/Amazon Graph Challenge that come with pyfinch.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

import pyfinch as pf
from benchmarks import peers
from benchmarks.harness import Bench, Row, at_most
from benchmarks.inputs import canonical, load

BIAS = -0.3


@pf.fuse
def layer(y: Any, w: Any, bias: float) -> Any:
    """A layer, fused."""
    return pf.minimum(pf.maximum(y @ w + bias, 0.0), 32.0)


def by_scipy(y: Any, w: Any) -> Any:
    """A layer with SciPy."""
    y = y @ w
    y.data = np.minimum(np.maximum(y.data + BIAS, 0.0), 32.0)
    y.eliminate_zeros()
    return y


def by_graphblas(gb: Any, y: Any, w: Any) -> Any:
    """A layer as LAGraph writes it."""
    y = y.mxm(w, gb.semiring.plus_times).new()
    y << y.apply(gb.binary.plus, right=BIAS)
    y << y.select(">", 0.0)
    y << y.apply(gb.binary.min, right=32.0)
    return y


def through(step: Any, y: Any, weights: Any) -> Any:
    """All layers, one after the other."""
    for w in weights:
        y = step(y, w)
    return y


def network(bench: Bench, threads: int, images: Any, weights: Any) -> Iterator[Row]:
    """The first layer, and all."""
    gb = peers.graphblas()
    fy, fw = pf.asarray(images), [pf.asarray(w) for w in weights]
    if gb:
        gy, gw = gb.io.from_scipy_sparse(images), [gb.io.from_scipy_sparse(w) for w in weights]
    count = f"{threads} thread{'s' * (threads > 1)}"
    wanted = (at_most(0.8, "graphblas"),) if threads == 2 else ()
    for name, some in {"the first layer": 1, f"{len(weights)} layers": len(weights)}.items():
        calls = {
            "pyfinch": lambda some=some: through(lambda y, w: layer(y, w, BIAS), fy, fw[:some]),
            "scipy": lambda some=some: through(by_scipy, images, weights[:some]),
            "graphblas": gb and (lambda some=some: through(lambda y, w: by_graphblas(gb, y, w), gy, gw[:some])),
        }
        yield bench.measure("sparse DNN", f"{name}, {count}", calls, wanted=wanted)


def run(bench: Bench) -> Iterator[Row]:
    """Measure."""
    images = canonical(load("images-1024_subset"))
    weights = [canonical(load(f"n1024-l{k}")) for k in range(1, 3 if bench.quick else 11)]
    yield from network(bench, 1, images, weights)
    before = pf.set_num_threads(2)
    peers.set_threads(2)
    try:
        yield from network(bench, 2, images, weights)
    finally:
        pf.set_num_threads(before)
        peers.set_threads(1)
