"""Exponentials and logarithms that the compiler can vectorise.

Numba calls the C library for every single ``exp``; a polynomial has no call, so loops of it become vector code. The
relative error is about 2e-16, which tests compare with the library's.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import types

from rankwright.kernels.jit import inlined, llvm

_LOG2E = 1.4426950408889634
_LN2_HIGH = 6.93147180369123816490e-01  # the leading bits: its products with whole numbers are exact
_LN2_LOW = 1.90821492927058770002e-10
_SHIFTER = 6755399441055744.0  # 1.5 * 2^52: a number added to it is rounded to a whole one, in its lowest bits
_LEAST = -708.0  # below it, exp is subnormal or 0


@llvm
def _multiply_by_power_of_two(context: Any, value: Any, shifted: Any) -> Any:
    """Return ``value`` times 2^k, where the whole number k is in the lowest bits of ``shifted``."""

    def generate(target: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        word = ir.IntType(64)
        power = builder.shl(builder.bitcast(arguments[1], word), ir.Constant(word, 52))
        return builder.bitcast(builder.add(builder.bitcast(arguments[0], word), power), ir.DoubleType())

    return types.float64(types.float64, types.float64), generate


@inlined
def exp(x: float) -> float:
    """Return e^x for x up to 700, in a form that vectorises; below -708 it stays at e^-708, about 3e-308."""
    x = max(x, _LEAST)
    shifted = x * _LOG2E + _SHIFTER
    n = shifted - _SHIFTER
    r = (x - n * _LN2_HIGH) - n * _LN2_LOW  # |r| <= ln(2) / 2
    r2 = r * r
    r4 = r2 * r2
    # Taylor to r^13, whose remainder is below 2^-58, in pairs: short chains of dependent operations
    low = (1.0 + r) + r2 * (1 / 2 + r * (1 / 6))
    middle = (1 / 24 + r * (1 / 120)) + r2 * (1 / 720 + r * (1 / 5040))
    high = (1 / 40320 + r * (1 / 362880)) + r2 * (1 / 3628800 + r * (1 / 39916800))
    last = 1 / 479001600 + r * (1 / 6227020800)
    power: float = _multiply_by_power_of_two(low + r4 * (middle + r4 * (high + r4 * last)), shifted)
    return power


@inlined
def log1p(x: float) -> float:
    """Return ``log(1 + x)`` for x from 0 to 1, in a form that vectorises.

    It is 2 atanh(z), z = x / (2 + x), whose series in z^2 <= 1/9 has terms of one sign. The first terms are exact, and
    the rest, which is small, is a polynomial.
    """
    z = x / (2.0 + x)
    y = z * z
    y2 = y * y
    y4 = y2 * y2
    low = (1 / 3 + y * (1 / 5)) + y2 * (1 / 7 + y * (1 / 9))
    middle = (1 / 11 + y * (1 / 13)) + y2 * (1 / 15 + y * (1 / 17))
    high = (1 / 19 + y * (1 / 21)) + y2 * (1 / 23 + y * (1 / 25))
    last = (1 / 27 + y * (1 / 29)) + y2 * (1 / 31 + y * (1 / 33))
    return 2.0 * z + 2.0 * z * y * (low + y4 * (middle + y4 * (high + y4 * last)))
