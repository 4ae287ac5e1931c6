"""What random programs are made of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

__all__ = ["CAMPAIGN", "FORMATS", "SMALL", "Config"]

#: Levels for one, two and three modes; the last mode order is that of the storage.
FORMATS: Final = {
    "dense": ("dense({})", "dense(dense({}))", "dense(dense(dense({})))"),
    "csr": ("sparse_list({})", "dense(sparse_list({}))", "dense(sparse_list(sparse_list({})))"),
    "dcsr": ("sparse_list({})", "sparse_list(sparse_list({}))", "sparse_list(sparse_list(sparse_list({})))"),
    "mixed": ("sparse_list({})", "sparse_list(dense({}))", "sparse_list(dense(sparse_list({})))"),
    "coo": ("sparse_coo[1]({})", "sparse_coo[2]({})", "sparse_coo[3]({})"),
    "bytemap": ("sparse_bytemap({})", "dense(sparse_bytemap({}))", "dense(dense(sparse_bytemap({})))"),
}


@dataclass(frozen=True)
class Config:
    """What random programs are made of.

    Attributes
    ----------
    dtypes, formats : tuple of str
        Of the inputs; a format is one of the words in `FORMATS`.
    fills : tuple
        Fill values, each used where the dtype has it; those that are not finite in some programs only.
    sizes, ndims : tuple of int
        What modes may measure, and how many of them an input may have. What stands twice comes twice as often.
    operators : tuple of str, optional
        The names of the operators; None for all of the operator table.
    tensors, operations, results : int
        How many there are at most.
    kinds : int
        How many dtypes, and how many formats, one program may have; 0 for no limit.
    permuted : bool
        Whether inputs may have any storage order.
    special : bool
        Whether some programs have nan, infinities and -0.0 among their values.
    reformats : bool
        Whether intermediate results may be asked for in some format.
    """

    dtypes: tuple[str, ...] = (
        "float64", "float64", "float32", "int64", "int32", "int16", "int8", "uint8", "uint16", "uint32", "uint64",
        "bool", "complex128", "complex64",
    )  # fmt: skip
    formats: tuple[str, ...] = ("dense", "csr", "coo", "dcsr", "bytemap", "mixed")
    fills: tuple[Any, ...] = (0, 0, 0, 0, 1, -1, 2.5, "inf", "-inf", "nan", "-0.0")
    sizes: tuple[int, ...] = (3, 3, 4, 2, 1, 0)
    ndims: tuple[int, ...] = (2, 2, 1, 2, 3, 0, 1)
    operators: tuple[str, ...] | None = None
    tensors: int = 3
    operations: int = 6
    results: int = 3
    kinds: int = 0
    permuted: bool = True
    special: bool = True
    reformats: bool = True


SMALL: Final = Config()
#: Few types, so that a compiler meets many of a program's parts again.
CAMPAIGN: Final = Config(
    dtypes=("float64", "float64", "int64", "bool", "complex128"), formats=("dense", "csr", "coo"),
    fills=(0, 0, 0, 1, "inf"), tensors=2, operations=3, results=2, kinds=1, reformats=False,
)  # fmt: skip
