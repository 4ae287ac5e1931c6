"""Tensors for people who use Julia and Python together: memory is shared, each side keeps it alive for the other."""

from __future__ import annotations

from typing import Any

import numpy as np

from pyfinch.backends.finchjl import session
from pyfinch.backends.finchjl.kernels import translated_error
from pyfinch.backends.finchjl.tensors import Kept, Views, row, spec
from pyfinch.formats.format import format
from pyfinch.formats.tensor import Tensor
from pyfinch.logic.nodes import Immediate
from pyfinch.logic.text import parse

__all__ = ["from_julia", "to_julia"]


def to_julia(tensor: Tensor) -> Any:
    """A tensor of Finch.jl's over the same memory.

    Parameters
    ----------
    tensor : Tensor
        Any tensor. Levels, values and indices are shared; a byte map's list of entries is copied.

    Returns
    -------
    juliacall value
        A ``Finch.Tensor`` with reversed modes (Finch.jl's last index is the outermost storage slot), a ``Finch.Scalar``
        for a tensor without modes. To be used on Julia's thread (`on_julia`); Julia keeps the memory alive.

    Examples
    --------
    >>> import pyfinch as pf
    >>> from pyfinch.backends.finchjl import on_julia, to_julia
    >>> A = pf.eye(3, format="csr")
    >>> on_julia(lambda Main: float(Main.seval("sum")(to_julia(A))))  # doctest: +SKIP
    3.0
    """

    def run() -> Any:
        numbers, kept = row([tensor])
        given = np.array(numbers, np.int64)
        text = spec(tensor.ftype, tensor.fill_value)
        try:
            return session.bridge().adopt(text, given.ctypes.data, len(given), kept)
        except Exception as error:
            raise translated_error(error, text) from error

    return session.call(run)


def from_julia(value: Any) -> Tensor:
    """A pyfinch tensor over the memory of a ``Finch.Tensor``.

    Parameters
    ----------
    value : juliacall value
        A tensor of dense, sparse list, sparse coordinate, byte map, element and pattern levels. Values are shared, and
        so are indices that are stored from 0 (``PlusOneVector``); indices that count from 1 are copied.

    Returns
    -------
    Tensor
        Its modes are the Finch.jl tensor's reversed; it keeps Julia's memory alive.

    Raises
    ------
    JuliaError
        If the value is no such tensor.
    """

    def run() -> Tensor:
        try:
            number, text, fill_text, extents, numbers = session.bridge().export_tensor(value)
        except Exception as error:
            raise translated_error(error, "export_tensor") from error
        kept = Kept(int(number), session.dropped)
        literal = parse(f"immediate({fill_text})")
        assert isinstance(literal, Immediate)
        fill = literal.value
        ftype = format(str(text)).specify(fill.dtype, fill)
        shape = tuple(int(n) for n in extents)
        tensor = Views([int(n) for n in numbers], kept).tensor(ftype, shape, fill)
        tensor.validate()
        return tensor

    return session.call(run)
