"""Scores of sums of threshold stumps: one lookup per feature."""

from __future__ import annotations

import numpy as np

from rankwright.kernels.jit import Floats, Ints, kernel

GRAIN = 2.0**-32  # weights of stumps are whole multiples of this, so that their sums are exact in any order
_BLOCK = 256  # documents at a time
_FEW, _MANY = 4, 48  # thresholds


@kernel
def _add_jumps(x: Floats, thresholds: Floats, low: int, high: int, values: Floats, at: int, out: Floats) -> None:
    """Add a step function of few steps, jump by jump: several documents with each instruction."""
    for t in range(low, high):
        bar, jump = thresholds[t], values[at + t - low + 1] - values[at + t - low]
        for i in range(_BLOCK):
            out[i] += jump if x[i] > bar else 0.0
    missing = values[at + high - low + 1]
    if missing != 0.0:
        for i in range(_BLOCK):
            out[i] += missing if x[i] != x[i] else 0.0


@kernel
def _count_below(x: Floats, thresholds: Floats, low: int, high: int, below: Ints) -> None:
    """How many thresholds are below each value: compared one after the other, many documents at a time."""
    below[:] = 0
    for t in range(low, high):
        bar = thresholds[t]
        for i in range(_BLOCK):
            below[i] += x[i] > bar


@kernel
def _search_below(x: Floats, thresholds: Floats, low: int, high: int, below: Ints) -> None:
    """The same for many thresholds, by halves."""
    for i in range(_BLOCK):
        at, left = low, high - low
        while left > 0:
            half = left >> 1
            above = x[i] > thresholds[at + half]
            at = at + half + 1 if above else at
            left = left - half - 1 if above else half
        below[i] = at - low


@kernel
def step_scores(X: Floats, features: Ints, starts: Ints, thresholds: Floats, values: Floats) -> Floats:
    """The sum over ``features`` of a step function of each.

    Feature ``features[k]`` has the thresholds ``starts[k]`` to ``starts[k + 1]``, ascending, none twice, and two more
    values than thresholds: the first of them is ``values[starts[k] + 2 * k]``, 0, for documents above no threshold; the
    last is for missing values.
    """
    n = len(X)
    out, sums = np.empty(n), np.empty(_BLOCK)
    x, below = np.zeros(_BLOCK, np.float32), np.zeros(_BLOCK, np.int32)
    for first in range(0, n, _BLOCK):
        size = min(_BLOCK, n - first)  # the rest of the last block is summed in vain
        sums[:] = 0.0
        for k in range(len(features)):
            column, low, high = features[k], starts[k], starts[k + 1]
            at = low + 2 * k
            for i in range(size):
                x[i] = X[first + i, column]
            if high - low <= _FEW:
                _add_jumps(x, thresholds, low, high, values, at, sums)
                continue
            if high - low <= _MANY:
                _count_below(x, thresholds, low, high, below)
            else:
                _search_below(x, thresholds, low, high, below)
            missing = at + high - low + 1
            for i in range(_BLOCK):
                sums[i] += values[at + below[i] if x[i] == x[i] else missing]
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
