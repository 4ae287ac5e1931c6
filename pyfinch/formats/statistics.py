"""Statistics of tensors: how large each mode is and which part of it is stored, in bins.

A schedule may depend on them, so they are coarse: a tensor that grows a little gets no other schedule.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyfinch.formats.tensor import Tensor

__all__ = ["Bins", "binned", "density_of_bin", "size_of_bin", "statistics"]

#: One bin a storage slot (its extent), then one a level that lists what it stores (how much of all that could be).
Bins = tuple[int, ...]


def binned(size: int) -> int:
    """The bin of a size: 0 for 0, 1 for 1, then one for each factor of two."""
    return size.bit_length()


def size_of_bin(number: int) -> float:
    """A size in the middle of a bin.

    Examples
    --------
    >>> [binned(size) for size in (0, 1, 2, 3, 4, 1000)]
    [0, 1, 2, 2, 3, 10]
    >>> size_of_bin(10)
    724.0
    """
    return float(number) if number < 2 else float(round(2.0 ** (number - 0.5)))


def density_of_bin(number: int) -> float:
    """The part of all coordinates that is stored: 1 for bin 0, half as much for each next one."""
    return 2.0**-number


def statistics(tensor: Tensor) -> Bins:
    """The statistics of a tensor, found in a time that does not grow with it, once."""
    try:
        return tensor._statistics
    except AttributeError:
        tensor._statistics = _found(tensor)
        return tensor._statistics


def _found(tensor: Tensor) -> Bins:
    sizes = [tensor.shape[mode] for mode in tensor.ftype.mode_order]
    bins = [size.bit_length() for size in sizes]
    slot, space = 0, 1
    for level, buffers in zip(tensor.ftype.levels, tensor.buffers, strict=True):
        for size in sizes[slot : slot + level.modes]:
            space *= size
        slot += level.modes
        if len(level.buffer_names) > 1:
            bins.append(max(space.bit_length() - len(buffers[1]).bit_length(), 0))
    return tuple(bins)
