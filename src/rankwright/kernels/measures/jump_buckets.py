"""Jumps in buckets of t: summed, and picked."""

from __future__ import annotations

import numpy as np

from rankwright.kernels.jit import Floats, Ints, kernel

_FAR = 1e18  # of the middle, in units


@kernel
def place_of(t: float, inverse_unit: float, half: int) -> int:
    """The bucket of a jump: an increasing function of t whose buckets are evenly filled where t is Cauchy's."""
    x = min(max(t * inverse_unit, -_FAR), _FAR)
    return min(int(half + half * (x / (1.0 + abs(x)))), 2 * half - 1)


@kernel
def count_jumps(times: Floats, deltas: Ints, inverse_unit: float, n_buckets: int) -> tuple[Ints, Floats]:
    """The sums of the changes in each bucket, and of the positive ones alone."""
    sums, gains, half = np.zeros(n_buckets, np.int64), np.zeros(n_buckets), n_buckets // 2
    for i in range(len(times)):
        place = place_of(times[i], inverse_unit, half)
        sums[place] += deltas[i]
        gains[place] += max(deltas[i], 0)
    return sums, gains


@kernel
def pick_jumps(times: Floats, deltas: Ints, inverse_unit: float, wanted: Ints) -> Ints:
    """The jumps of the buckets where ``wanted`` is not 0, a row each: the bits of the time, the change, the bucket."""
    half, count = len(wanted) // 2, 0
    for i in range(len(times)):
        count += wanted[place_of(times[i], inverse_unit, half)] != 0
    out = np.empty((count, 3), np.int64)
    bits, at = out.view(np.float64), 0
    for i in range(len(times)):
        place = place_of(times[i], inverse_unit, half)
        if wanted[place] != 0:
            bits[at, 0], out[at, 1], out[at, 2] = times[i], deltas[i], place
            at += 1
    return out
