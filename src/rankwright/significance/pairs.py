"""Paired values: what two methods reach on the same queries."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from rankwright.data import Floats
from rankwright.errors import InputError

# Values that are equal up to rounding differ by a few units of 2^-53, relative to the largest. A grid of 2^-40 is far
# above that and far below any difference that matters. It also leaves 13 bits for sums: up to thousands of times the
# largest value they are exact, so that no order of summation, and so no number of threads, changes them.
GRID_BITS = 40


def differences(a: ArrayLike, b: ArrayLike) -> Floats:
    """``b - a`` on the queries where neither is NaN, rounded so that noise is zero.

    >>> differences([0.1 + 0.2, 0.5, np.nan], [0.3, 0.75, 1.0]).tolist()
    [0.0, 0.25]
    """
    first, second = as_values(a, "a"), as_values(b, "b")
    if len(first) != len(second):
        raise InputError(f"a has {len(first)} values and b has {len(second)}; expected one of each per query")
    counted = ~(np.isnan(first) | np.isnan(second))
    return rounded_difference(first[counted], second[counted])


def rounded_difference(a: Floats, b: Floats) -> Floats:
    """``b - a`` in multiples of about 2^-40 of the largest value; neither holds NaN."""
    return rounded(b - a, max(largest(a), largest(b)))


def rounded(values: Floats, unit: float) -> Floats:
    """Values as multiples of a power of two, about 2^-40 of ``unit``."""
    shift = GRID_BITS - math.frexp(unit)[1]
    on_grid: Floats = np.ldexp(np.rint(np.ldexp(values, shift)), -shift) + 0.0  # never -0.0
    return on_grid


def largest(values: Floats) -> float:
    """The largest magnitude; 0 if there are no values."""
    return float(np.abs(values).max(initial=0.0))


def is_constant(values: Floats) -> bool:
    """Whether all values are equal; there must be one."""
    return bool((values == values[0]).all())


def as_values(values: ArrayLike, what: str) -> Floats:
    """One number per query, NaN where the measure skips it; anything else is refused."""
    try:
        array = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(f"{what} is not numeric: {error}") from None
    if array.ndim != 1:
        raise InputError(f"{what} has shape {array.shape}; expected one value per query")
    infinite = np.isinf(array)
    if infinite.any():
        raise InputError(
            f"{what}[{int(np.argmax(infinite))}] is infinite; expected numbers, or NaN for skipped queries"
        )
    return array
