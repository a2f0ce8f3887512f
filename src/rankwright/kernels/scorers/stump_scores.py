"""Scores of sums of threshold stumps, with one lookup per feature."""

from __future__ import annotations

import numpy as np

from rankwright.kernels.jit import Floats, Ints, inlined, kernel

GRAIN = 2.0**-32  # weights of stumps are whole multiples of this, so that their sums are exact in any order
_BLOCK = 256  # documents at a time
_FEW, _MANY = 4, 48  # thresholds


@inlined
def count_below(x: float, thresholds: Floats, low: int, high: int) -> int:
    """Return how many of the ascending thresholds ``low`` to ``high`` are below x, by binary search."""
    at, left = low, high - low
    while left > 0:
        half = left >> 1
        above = x > thresholds[at + half]
        at = at + half + 1 if above else at
        left = left - half - 1 if above else half
    return at - low


@kernel
def compute_step_scores(X: Floats, features: Ints, starts: Ints, thresholds: Floats, values: Floats) -> Floats:
    """Return the scores of a sum of stumps, merged into one step function for each of ``features``.

    Feature ``features[k]`` has the thresholds ``starts[k]`` to ``starts[k + 1]``, ascending, none twice, and two more
    values than thresholds: the first of them is ``values[starts[k] + 2 * k]``, 0, for documents above no threshold; the
    last is for missing values. Few steps are added one by one and some are counted, both vectorised over documents;
    many are found by binary search.
    """
    n = len(X)
    out, sums = np.empty(n), np.empty(_BLOCK)
    x, below = np.zeros(_BLOCK, np.float32), np.zeros(_BLOCK, np.int32)
    for first in range(0, n, _BLOCK):
        size = min(_BLOCK, n - first)  # sums beyond the end of the last block are ignored
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
                    below[i] = count_below(x[i], thresholds, low, high)
            for i in range(_BLOCK):
                sums[i] += steps[below[i] if x[i] == x[i] else last]
        for i in range(size):
            out[first + i] = sums[i]
    return out


@kernel
def add_above(scores: Floats, codes: Ints, above: int, last: int, missing: bool, weight: float) -> Floats:
    """Return the scores plus ``weight`` where the document's bin is higher than ``above``: a stump is added.

    Bin ``last`` has the missing values.
    """
    out = np.empty(len(scores))
    for i in range(len(scores)):
        known = codes[i] != last
        counts = codes[i] > above if known else missing
        out[i] = scores[i] + (weight if counts else 0.0)
    return out
