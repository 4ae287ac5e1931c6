"""Scalar functions that operator templates call.

Each is plain Python that is right both as it stands on NumPy scalars and compiled by Numba with
``error_model="numpy"``. Types must not drift under Numba (int64 unified with uint64 becomes
float64), so zeros and ones are derived from the arguments instead of written as literals. No helper
calls another, so each can be compiled on its own.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

__all__ = [
    "clip_real",
    "complex_divide",
    "complex_expm1",
    "complex_log1p",
    "complex_power",
    "complex_reciprocal",
    "complex_sign",
    "divide_signed",
    "divide_unsigned",
    "float_to_int64",
    "float_to_uint64",
    "floor_divide_float",
    "left_shift",
    "log_add_exp",
    "power_integer",
    "remainder_float",
    "remainder_signed",
    "remainder_unsigned",
    "right_shift",
    "sign_real",
]

# The arguments are scalars of any dtype: Numba specialises each function to the dtypes it meets.
Scalar = Any


def divide_signed(a: Scalar, b: Scalar) -> Scalar:
    """Floor division of signed integers; 0 where b is 0, and the most negative value wraps."""
    if b == 0:
        return a ^ a
    if b == -1:
        # The machine instruction traps on min // -1.
        return -a
    return a // b


def divide_unsigned(a: Scalar, b: Scalar) -> Scalar:
    """Division of unsigned integers; 0 where b is 0."""
    if b == 0:
        return a ^ a
    return a // b


def remainder_signed(a: Scalar, b: Scalar) -> Scalar:
    """Remainder with the sign of b; 0 where b is 0."""
    if b == 0 or b == -1:
        return a ^ a
    return a % b


def remainder_unsigned(a: Scalar, b: Scalar) -> Scalar:
    """Remainder of unsigned integers; 0 where b is 0."""
    if b == 0:
        return a ^ a
    return a % b


def floor_divide_float(a: Scalar, b: Scalar) -> Scalar:
    """Floor division of floats through fmod, which is exact, and not through a rounded quotient."""
    if b == 0:
        return a / b
    mod = np.fmod(a, b)
    div = (a - mod) / b
    if mod != 0 and (b < 0) != (mod < 0):
        div = div - 1
    if div == 0:
        return np.copysign(div, a / b)
    whole = np.floor(div)
    if div - whole > 0.5:
        whole = whole + 1
    return whole


def remainder_float(a: Scalar, b: Scalar) -> Scalar:
    """Remainder of floats with the sign of b; nan where b is 0."""
    mod = np.fmod(a, b)
    if b == 0:
        return mod
    if mod == 0:
        return np.copysign(mod, b)
    if (b < 0) != (mod < 0):
        mod = mod + b
    return mod


def power_integer(a: Scalar, b: Scalar) -> Scalar:
    """Integer power by squaring, wrapping as multiplication does."""
    if b < 0:
        raise ValueError("an integer power needs exponents >= 0; cast the base to a float first")
    zero = a ^ a
    result = zero - ~zero  # 1 in the type of a
    square = a
    while b != 0:
        if b & 1:
            result = result * square
        b = b >> 1
        if b != 0:
            square = square * square
    return result


def left_shift(a: Scalar, b: Scalar) -> Scalar:
    """Shift that gives 0 where the count is negative or at least the width."""
    if b < 0 or b >= 64:
        return a ^ a
    return a << b


def right_shift(a: Scalar, b: Scalar) -> Scalar:
    """Shift that gives 0 or -1, by a's sign, where the count is negative or at least the width."""
    if b < 0 or b >= 64:
        return (a >> 63) >> 1
    return a >> b


def sign_real(a: Scalar) -> Scalar:
    """-1, 0 or 1; nan stays nan, and -0.0 becomes 0.0."""
    if a > 0:
        return a / a if a != a + a else 1.0
    if a < 0:
        return -1.0
    if a == 0:
        return 0.0
    return a + 0.0


def complex_sign(a: Scalar) -> Scalar:
    """a / |a|, and 0 for 0."""
    size = np.hypot(a.real, a.imag)
    if size == 0:
        return complex(0.0, 0.0)
    if math.isinf(size) and not (math.isinf(a.real) and math.isinf(a.imag)):
        # An infinite part alone fixes the direction, unless the other is nan.
        if a.real != a.real or a.imag != a.imag:
            return complex(np.nan, np.nan)
        if math.isinf(a.real):
            return complex(np.copysign(1.0, a.real), 0.0)
        if math.isinf(a.imag):
            return complex(0.0, np.copysign(1.0, a.imag))
    return complex(a.real / size, a.imag / size)


def complex_divide(a: Scalar, b: Scalar) -> Scalar:
    """Smith's algorithm (CACM 1962, algorithm 116), with real division where b is 0."""
    if abs(b.real) >= abs(b.imag):
        if b.real == 0 and b.imag == 0:
            size = abs(b.real)
            return complex(a.real / size, a.imag / size)
        ratio = b.imag / b.real
        scale = b.real + b.imag * ratio
        return complex((a.real + a.imag * ratio) / scale, (a.imag - a.real * ratio) / scale)
    ratio = b.real / b.imag
    scale = b.imag + b.real * ratio
    return complex((a.real * ratio + a.imag) / scale, (a.imag * ratio - a.real) / scale)


def complex_reciprocal(a: Scalar) -> Scalar:
    """1 / a by Smith's algorithm; nan where a is 0."""
    if abs(a.imag) <= abs(a.real):
        ratio = a.imag / a.real
        scale = a.real + a.imag * ratio
        return complex(1.0 / scale, -ratio / scale)
    ratio = a.real / a.imag
    scale = a.real * ratio + a.imag
    return complex(ratio / scale, -1.0 / scale)


def complex_power(a: Scalar, b: Scalar) -> Scalar:
    """Complex power: exact for small integer exponents, exp(b log a) otherwise."""
    if b.real == 0 and b.imag == 0:
        return complex(1.0, 0.0)
    if a.real == 0 and a.imag == 0:
        if b.real > 0:
            return complex(0.0, 0.0)
        return complex(np.nan, np.nan)
    if b.imag == 0 and abs(b.real) < 100 and b.real == np.floor(b.real):
        count = int(abs(b.real))
        re, im = 1.0, 0.0
        base_re, base_im = float(a.real), float(a.imag)
        while count > 0:
            if count & 1:
                re, im = re * base_re - im * base_im, re * base_im + im * base_re
            count >>= 1
            if count > 0:
                base_re, base_im = base_re * base_re - base_im * base_im, 2.0 * base_re * base_im
        if b.real < 0:
            size = np.hypot(re, im)
            re, im = re / size / size, -im / size / size
        return complex(re, im)
    size = np.log(np.hypot(a.real, a.imag))
    angle = np.arctan2(a.imag, a.real)
    scale = np.exp(b.real * size - b.imag * angle)
    turn = b.imag * size + b.real * angle
    return complex(scale * np.cos(turn), scale * np.sin(turn))


def complex_log1p(a: Scalar) -> Scalar:
    """log(1 + a) part by part."""
    return complex(np.log(np.hypot(a.real + 1.0, a.imag)), np.arctan2(a.imag, a.real + 1.0))


def complex_expm1(a: Scalar) -> Scalar:
    """exp(a) - 1, accurate near 0."""
    half = np.sin(a.imag / 2.0)
    return complex(np.expm1(a.real) * np.cos(a.imag) - 2.0 * half * half, np.exp(a.real) * np.sin(a.imag))


def clip_real(a: Scalar, low: Scalar, high: Scalar) -> Scalar:
    """min(max(a, low), high), nan from any argument."""
    if a != a:
        return a
    if low != low:
        return low
    if high != high:
        return high
    lifted = a if a > low else low
    return lifted if lifted < high else high


def log_add_exp(a: Scalar, b: Scalar) -> Scalar:
    """log(exp(a) + exp(b)) without overflow."""
    if a == b:
        return a + math.log(2.0)
    if a > b:
        return a + np.log1p(np.exp(b - a))
    if a < b:
        return b + np.log1p(np.exp(a - b))
    return a + b


def float_to_int64(a: Scalar) -> Scalar:
    """Truncation; the most negative value where a is nan or does not fit, as x86 conversions give."""
    if -9223372036854775808.0 <= a < 9223372036854775808.0:
        return np.int64(a)
    return np.int64(-9223372036854775808)


def float_to_uint64(a: Scalar) -> Scalar:
    """Truncation; values that do not fit wrap through int64."""
    if 0.0 <= a < 18446744073709551616.0:
        return np.uint64(a)
    if -9223372036854775808.0 <= a < 0.0:
        return np.uint64(np.int64(a))
    return np.uint64(9223372036854775808)
