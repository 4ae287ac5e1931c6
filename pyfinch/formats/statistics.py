"""Statistics of tensors: how large each mode is and how much each level stores, in bins.

A schedule may depend on them, so they are coarse: a tensor that grows a little gets no other schedule.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyfinch.formats.tensor import Tensor

__all__ = ["Bins", "binned", "size_of_bin", "statistics"]

#: One bin a storage slot (its extent), then one a level that lists what it stores (how many entries).
Bins = tuple[int, ...]


def binned(size: int) -> int:
    """The bin of a size: 0 for 0, 1 for 1, then one for each factor of four."""
    return (size.bit_length() + 2) >> 1 if size > 1 else size


def size_of_bin(number: int) -> float:
    """A size in the middle of a bin.

    Examples
    --------
    >>> [binned(size) for size in (0, 1, 2, 7, 8, 1000)]
    [0, 1, 2, 2, 3, 6]
    >>> size_of_bin(6)
    1024.0
    """
    return float(number) if number < 2 else 4.0 ** (number - 1)


def statistics(tensor: Tensor) -> Bins:
    """The statistics of a tensor, found in a time that does not grow with it."""
    bins = [binned(tensor.shape[mode]) for mode in tensor.ftype.mode_order]
    for level, buffers in zip(tensor.ftype.levels, tensor.buffers, strict=True):
        if len(level.buffer_names) > 1:
            bins.append(binned(len(buffers[1])))
    return tuple(bins)
