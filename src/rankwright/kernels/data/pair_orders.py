"""Pairs of documents of different grades, and the share of them that a feature alone puts in order."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankwright.kernels.jit import Floats, Ints, inner_kernel, kernel


class PairOrders(NamedTuple):
    """The pairs of each query as each feature orders them: arrays of shape (n_features, n_queries)."""

    right: Ints  # pairs in which the document of the higher grade has the higher value
    wrong: Ints  # pairs in which it has the lower value
    present: Ints  # pairs in which neither value is missing
    uppers: Ints  # documents that are the higher one of a pair that is present
    top: Floats  # of the documents with the highest value, the share above the lowest grade of the query
    bottom: Floats  # the same of the documents with the lowest value; NaN where all values are missing


@kernel
def count_ordered_pairs(values: Floats, indptr: Ints, lower: Ints, chosen: NDArray[np.bool_]) -> PairOrders:
    """Return what each row of ``values``, a feature by document, makes of the pairs of each query.

    The documents of a query are sorted by descending grade. ``lower[i]`` is the first document of the query that has a
    lower grade than document ``i``, or the end of the query; only documents with ``chosen`` are the higher of a pair.
    """
    d, m = values.shape[0], len(indptr) - 1
    right, wrong = np.zeros((d, m), np.int64), np.zeros((d, m), np.int64)
    present, uppers = np.zeros((d, m), np.int64), np.zeros((d, m), np.int64)
    top, bottom = np.full((d, m), np.nan), np.full((d, m), np.nan)
    for f in range(d):
        for q in range(m):
            a, b = indptr[q], indptr[q + 1]
            for i in range(a, b):
                x = values[f, i]
                if not chosen[i] or x != x or lower[i] == b:
                    continue
                above, below, both = 0, 0, 0
                for z in values[f, lower[i] : b]:
                    above += x > z
                    below += x < z
                    both += z == z
                right[f, q] += above
                wrong[f, q] += below
                present[f, q] += both
                uppers[f, q] += both > 0
            top[f, q], bottom[f, q] = _find_ends(values[f, a:b], lower[a:b], b)
    return PairOrders(right, wrong, present, uppers, top, bottom)


@inner_kernel
def _find_ends(values: Floats, lower: Ints, end: int) -> tuple[float, float]:
    """Return the shares of documents above the lowest grade among those of the highest and of the lowest value."""
    high, low = -np.inf, np.inf
    for x in values:
        high, low = max(high, x) if x == x else high, min(low, x) if x == x else low
    n_high, n_low, hits_high, hits_low = 0, 0, 0, 0
    for i in range(len(values)):
        is_above = lower[i] < end
        if values[i] == high:
            n_high, hits_high = n_high + 1, hits_high + is_above
        if values[i] == low:
            n_low, hits_low = n_low + 1, hits_low + is_above
    if n_high == 0:
        return np.nan, np.nan
    return hits_high / n_high, hits_low / n_low
