"""Sparse and structured tensors: array code, autoscheduled and compiled.

Examples
--------
>>> import pyfinch as pf
>>> A = pf.random((100, 100), density=0.1, rng=0)
>>> C = pf.compute((pf.lazy(A) @ A) * A)
>>> C.shape
(100, 100)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyfinch.algebra.errors import (
    BackendUnavailableError,
    CrossCheckError,
    DTypeError,
    FormatError,
    IndexBoundsError,
    ParseError,
    PyFinchError,
    ScheduleError,
    ShapeError,
)
from pyfinch.algebra.operators import operator
from pyfinch.api import elementwise as _elementwise
from pyfinch.api import indexing as _indexing  # noqa: F401  (the tensors' indexing registers itself)
from pyfinch.api import registry as _registry  # noqa: F401  (backends and schedulers register themselves)
from pyfinch.api.creation import (
    asarray,
    compute,
    eye,
    full,
    lazy,
    ones,
    random,
    zeros,
)
from pyfinch.api.einop import einop
from pyfinch.api.einsum import einsum
from pyfinch.api.elementwise import *  # noqa: F403  (a function for each row of the operator table)
from pyfinch.api.elementwise import astype, clip, where
from pyfinch.api.explain import explain
from pyfinch.api.fuse import fuse
from pyfinch.api.lazy import LazyTensor
from pyfinch.api.manipulation import broadcast_to, expand_dims, matrix_transpose, permute_dims, squeeze
from pyfinch.api.products import matmul, tensordot, vecdot
from pyfinch.api.reductions import all, any, max, mean, min, prod, sum
from pyfinch.api.tensor import Tensor
from pyfinch.backends.base import use_backend, use_scheduler
from pyfinch.backends.crosscheck import crosscheck
from pyfinch.backends.threads import get_num_threads, set_num_threads
from pyfinch.formats.format import Format, FType, format

__all__ = [
    "BackendUnavailableError",
    "CrossCheckError",
    "DTypeError",
    "FType",
    "Format",
    "FormatError",
    "IndexBoundsError",
    "LazyTensor",
    "ParseError",
    "PyFinchError",
    "ScheduleError",
    "ShapeError",
    "Tensor",
    "all",
    "any",
    "asarray",
    "astype",
    "broadcast_to",
    "clip",
    "compute",
    "crosscheck",
    "einop",
    "einsum",
    "expand_dims",
    "explain",
    "eye",
    "format",
    "full",
    "fuse",
    "get_num_threads",
    "lazy",
    "matmul",
    "matrix_transpose",
    "max",
    "mean",
    "min",
    "ones",
    "operator",
    "permute_dims",
    "prod",
    "random",
    "set_num_threads",
    "squeeze",
    "sum",
    "tensordot",
    "use_backend",
    "use_scheduler",
    "vecdot",
    "where",
    "zeros",
]
__all__ += _elementwise.__all__

if TYPE_CHECKING:

    def __getattr__(name: str) -> Any: ...
