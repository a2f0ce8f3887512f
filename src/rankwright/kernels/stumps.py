"""Scores of sums of threshold stumps: one lookup per feature."""

from __future__ import annotations

import numpy as np

from rankwright.kernels.jit import Floats, Ints, kernel

GRAIN = 2.0**-32  # weights of stumps are whole multiples of this, so that their sums are exact in any order
_BLOCK = 256
_FEW = 48  # thresholds: fewer are compared with many documents at a time, more are searched


@kernel
def step_scores(X: Floats, features: Ints, starts: Ints, thresholds: Floats, values: Floats) -> Floats:
    """The sum over ``features`` of a step function of each.

    Feature ``features[k]`` has the thresholds ``starts[k]`` to ``starts[k + 1]``, ascending, none twice, and two more
    values than thresholds: the first of them is ``values[starts[k] + 2 * k]``, for documents above no threshold; the
    last is for missing values.
    """
    n = len(X)
    out, x, below = np.zeros(n), np.empty(_BLOCK, np.float32), np.empty(_BLOCK, np.int32)
    for first in range(0, n, _BLOCK):
        size = min(_BLOCK, n - first)
        for k in range(len(features)):
            column, low, high = features[k], starts[k], starts[k + 1]
            steps = values[low + 2 * k : high + 2 * k + 2]
            for i in range(size):
                x[i] = X[first + i, column]
            if high - low <= _FEW:
                below[:] = 0
                for t in range(low, high):
                    bar = thresholds[t]
                    for i in range(_BLOCK):  # the rest of the last block is compared in vain
                        below[i] += x[i] > bar
            else:
                for i in range(size):
                    at, left = low, high - low
                    while left > 0:
                        half = left >> 1
                        above = x[i] > thresholds[at + half]
                        at = at + half + 1 if above else at
                        left = left - half - 1 if above else half
                    below[i] = at - low
            for i in range(size):
                out[first + i] += steps[below[i] if x[i] == x[i] else high - low + 1]
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
