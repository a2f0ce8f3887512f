"""Scores of sums of threshold stumps: one lookup per feature."""

from __future__ import annotations

import numpy as np

from rankwright.kernels.jit import Floats, Ints, kernel

GRAIN = 2.0**-32  # weights of stumps are whole multiples of this, so that their sums are exact in any order
_BLOCK = 256  # documents at a time
_FEW, _MANY = 4, 48  # thresholds


@kernel
def _search(x: float, thresholds: Floats, low: int, high: int) -> int:
    """How many thresholds are below a value, by halves."""
    at, left = low, high - low
    while left > 0:
        half = left >> 1
        above = x > thresholds[at + half]
        at = at + half + 1 if above else at
        left = left - half - 1 if above else half
    return at - low


@kernel
def step_scores(X: Floats, features: Ints, starts: Ints, thresholds: Floats, values: Floats) -> Floats:
    """The sum over ``features`` of a step function of each.

    Feature ``features[k]`` has the thresholds ``starts[k]`` to ``starts[k + 1]``, ascending, none twice, and two more
    values than thresholds: the first of them is ``values[starts[k] + 2 * k]``, 0, for documents above no threshold; the
    last is for missing values. Few steps are added jump by jump and some are counted, both for several documents with
    each instruction; many are searched.
    """
    n = len(X)
    out, sums = np.empty(n), np.empty(_BLOCK)
    x, below = np.zeros(_BLOCK, np.float32), np.zeros(_BLOCK, np.int32)
    for first in range(0, n, _BLOCK):
        size = min(_BLOCK, n - first)  # the rest of the last block is summed in vain
        sums[:] = 0.0
        for k in range(len(features)):
            column, low, high = features[k], starts[k], starts[k + 1]
            steps = values[low + 2 * k : high + 2 * k + 2]
            last = high - low + 1
            for i in range(size):
                x[i] = X[first + i, column]
            if high - low <= _FEW:
                for t in range(low, high):
                    bar, jump = thresholds[t], steps[t - low + 1] - steps[t - low]
                    for i in range(_BLOCK):
                        sums[i] += jump if x[i] > bar else 0.0
                if steps[last] != 0.0:
                    for i in range(_BLOCK):
                        sums[i] += steps[last] if x[i] != x[i] else 0.0
                continue
            if high - low <= _MANY:
                below[:] = 0
                for t in range(low, high):
                    bar = thresholds[t]
                    for i in range(_BLOCK):
                        below[i] += x[i] > bar
            else:
                for i in range(_BLOCK):
                    below[i] = _search(x[i], thresholds, low, high)
            for i in range(_BLOCK):
                sums[i] += steps[below[i] if x[i] == x[i] else last]
        out[first : first + size] = sums[:size]
    return out


@kernel
def add_where(scores: Floats, codes: Ints, above: int, last: int, missing: bool, weight: float) -> Floats:
    """Scores with a weight added where a document's bin is above one; the bin ``last`` is that of missing values."""
    out = np.empty(len(scores))
    for i in range(len(scores)):
        known = codes[i] != last
        counts = codes[i] > above if known else missing
        out[i] = scores[i] + (weight if counts else 0.0)
    return out
