"""Format descriptors and ftypes."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

from pyfinch.algebra.errors import FormatError, ParseError, PyFinchError
from pyfinch.formats.format import Format, FType, format
from pyfinch.formats.levels import Dense, Element, Pattern, SparseByteMap, SparseCOO, SparseList

TEXTS = (
    "element()",
    "element(nan, float32)",
    "element(float32)",
    "pattern()",
    "dense(element(0.0, float64))",
    "dense(sparse_list(element(0.1, float32)))",
    "dense(sparse_list(element(-inf, float64))) mode_order=(1, 0)",
    "sparse_coo[3](element(True, bool), ptr=int32, idx=int64) mode_order=(2, 0, 1)",
    "sparse_list(sparse_bytemap(element((1-2j), complex64), ptr=int32, idx=int32), ptr=int64)",
    "sparse_bytemap(pattern())",
    "dense(element(18446744073709551615, uint64))",
    "dense(element(-0.0, float64))",
    "dense(element(-3, int8))",
)


@pytest.mark.parametrize("text", TEXTS)
def test_text_round_trips(text):
    fmt = format(text)
    assert format(str(fmt)) == fmt and hash(format(str(fmt))) == hash(fmt)
    assert pickle.loads(pickle.dumps(fmt)) == fmt
    if "0.1" not in text:  # float32 prints all its digits
        assert str(fmt) == text


def test_whitespace_and_untyped_fills_are_read():
    assert format(" dense( sparse_list ( element( 0.0 ) ) )  mode_order = ( 1 , 0 , ) ") == format(
        "dense(sparse_list(element(0.0, float64))) mode_order=(1, 0)"
    )
    assert format("element(1e3)").fill == 1000.0 and format("element(3)").dtype == np.int64


def test_shortcuts():
    csr = format("csr")
    assert csr.levels == (Dense(), SparseList(), Element()) and csr.mode_order == (0, 1)
    assert format("csc").mode_order == (1, 0)
    assert format("coo", ndim=3).levels[0] == SparseCOO(3)
    assert format("csf", ndim=3).levels[:3] == (SparseList(),) * 3
    assert format("dense", ndim=0).levels == (Element(),) and format("fortran", ndim=3).mode_order == (
        2,
        1,
        0,
    )
    assert format("coo", ndim=0).ndim == 0


@pytest.mark.parametrize(
    "text",
    [
        "",
        "dense",
        "dense(",
        "dense()",
        "dense(element()",
        "dense(element())x",
        "sparse_coo(element())",
        "dense[2](element())",
        "sparse_coo[0](element())",
        "hashed(element())",
        "element(x)",
        "element(0.0, float16)",
        "element(2.5, int8)",
        "element(300, int8)",
        "element(1, 2, int8)",
        "pattern(1)",
        "dense(element(), ptr=int32)",
        "sparse_list(element(), ptr=int8)",
        "sparse_list(element(), foo=int32)",
        "dense(element()) mode_order=(1)",
        "dense(dense(element())) mode_order=(0, 0)",
        "dense(element()) mode_order=()",
        "dense(element(" + "9" * 30 + "))",
        "csr2",
    ],
)
def test_bad_text_is_refused(text):
    with pytest.raises(PyFinchError):
        format(text)


def test_parse_errors_say_where():
    with pytest.raises(ParseError, match="column 7: unknown level 'foo'"):
        format("dense(foo(element()))")
    with pytest.raises(FormatError, match="2 modes, but 3"):
        format("csr", ndim=3)
    with pytest.raises(FormatError, match="needs ndim"):
        format("dense")
    with pytest.raises(FormatError):
        format(3)
    with pytest.raises(FormatError, match="one leaf"):
        Format((Element(), Dense()), (0,))


def test_two_nans_are_one_fill_and_two_zeros_are_two():
    assert Element(np.nan) == Element(-np.nan) and hash(Element(np.nan)) == hash(Element(-np.nan))
    assert Element(0.0) != Element(-0.0) and Element(0.0) != Element(0) and Element(1) != Element(True)


def test_ftypes_are_interned():
    one = format("csr").specify("float64", 0.0, np.int32, np.int32)
    two = format("dense(sparse_list(element(0.0, float64), ptr=int32, idx=int32))").specify(None, None)
    assert one is two and pickle.loads(pickle.dumps(one)) is one and copy.deepcopy(one) is one
    assert one.dtype == np.float64 and one.ndim == 2 and one.fill == 0.0
    nan = [format("csr").specify("float32", np.float32("nan")) for _ in range(2)]
    assert nan[0] is nan[1]
    assert format("csr").specify("float64", -0.0) is not format("csr").specify("float64", 0.0)


def test_only_special_fills_are_static():
    fmt = format("csr")
    assert fmt.specify("float64", 2.5) is fmt.specify("float64", 3.5)
    assert fmt.specify("float64", 2.5).fill is None
    for fill in (0, 1, np.inf, -np.inf):
        assert fmt.specify("float64", fill).fill == fill
    assert fmt.specify("bool", True).fill.dtype == np.bool_


def test_ftype_needs_every_dtype():
    with pytest.raises(FormatError, match="open in sparse_list"):
        FType((SparseList(), Element(0.0)), (0,))
    with pytest.raises(FormatError, match="special"):
        FType((Dense(), Element(2.5)), (0,))


def test_derived_ftypes():
    csc = format("csc").specify("float64", 0.0, np.int32, np.int32)
    assert csc.in_storage_order().mode_order == (0, 1) and csc.in_storage_order().levels == csc.levels
    coo = csc.as_coo()
    assert isinstance(coo.levels[0], SparseCOO) and coo.mode_order == (1, 0) and coo.fill == 0.0


def test_levels_describe_themselves():
    assert SparseCOO(2, np.dtype("int32"), np.dtype("int64")).buffer_dtypes == (np.int32, np.int64, np.int64)
    assert SparseByteMap().buffer_names == ("ptr", "idx", "tbl")
    assert [level.appends for level in (Dense(), SparseList(), SparseCOO(1), SparseByteMap(), Pattern())] == [
        False,
        True,
        True,
        False,
        False,
    ]
    for make in (SparseList, SparseByteMap):
        with pytest.raises(FormatError, match="int32 or int64"):
            make(np.dtype("int8"))
