"""Summaries of columns: counts, extremes and hash keys of each feature from one pass over the rows."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from rankwright.kernels.jit import Floats, Ints, inlined, kernel

_STEP = np.uint64(0x9E3779B97F4A7C15)
_FIRST, _SECOND = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_THIRTY, _TWENTY_SEVEN, _THIRTY_ONE, _ONE = np.uint64(30), np.uint64(27), np.uint64(31), np.uint64(1)
_MISSING, _ZERO = np.uint32(0x7FC00000), np.uint32(0)
_WHOLE = np.float32(2.0**24)  # from here on every float32 is a whole number


class ColumnSummaries(NamedTuple):
    """The summaries of the columns of some rows: an array of one number per column each.

    Two columns whose keys are equal are almost surely equal. All missing values are equal, and so are 0 and -0. Keys
    of consecutive blocks of rows add up.
    """

    missing: Ints  # rows with NaN
    zeros: Ints  # rows with 0
    fractions: Ints  # rows with a number that is not whole, or so large that every float32 is
    low: Floats  # infinity where all rows are missing
    high: Floats  # minus infinity where all rows are missing
    varying: Ints  # queries whose rows are not all equal
    keys: Ints


@inlined
def _mix_number(number: np.uint64) -> np.uint64:
    """Return an odd number of 64 bits that looks random and depends on ``number`` only (SplitMix64)."""
    mixed = (number + _ONE) * _STEP
    mixed = (mixed ^ (mixed >> _THIRTY)) * _FIRST
    mixed = (mixed ^ (mixed >> _TWENTY_SEVEN)) * _SECOND
    return (mixed ^ (mixed >> _THIRTY_ONE)) | _ONE


@kernel
def summarise_columns(X: Floats, bits: Ints, indptr: Ints, first_row: int) -> ColumnSummaries:
    """Return the summaries of the columns of whole queries; ``bits`` are those of ``X`` as uint32.

    ``indptr`` begins at 0. Keys depend on ``first_row``, the number of the first of these rows in the data set.
    """
    d = X.shape[1]
    missing, zeros, fractions = np.zeros(d, np.int32), np.zeros(d, np.int32), np.zeros(d, np.int32)
    low, high = np.full(d, np.inf, np.float32), np.full(d, -np.inf, np.float32)
    varying, differs, keys = np.zeros(d, np.int32), np.zeros(d, np.int32), np.zeros(d, np.uint64)
    for q in range(len(indptr) - 1):
        first = indptr[q]
        differs[:] = 0
        for i in range(first, indptr[q + 1]):
            factor = _mix_number(np.uint64(first_row + i))
            for j in range(d):
                x, start = X[i, j], X[first, j]
                absent, absent_first = x != x, start != start
                missing[j] += absent
                zeros[j] += x == np.float32(0.0)
                fractions[j] += (x != np.floor(x)) | (abs(x) >= _WHOLE)
                low[j] = x if x < low[j] else low[j]
                high[j] = x if x > high[j] else high[j]
                differs[j] |= (x != start) & ~(absent & absent_first)
                own = _MISSING if absent else bits[i, j]
                keys[j] += factor * np.uint64(_ZERO if x == np.float32(0.0) else own)
        for j in range(d):
            varying[j] += differs[j]
    for j in range(d):
        fractions[j] -= missing[j]
    return ColumnSummaries(missing, zeros, fractions, low, high, varying, keys)
