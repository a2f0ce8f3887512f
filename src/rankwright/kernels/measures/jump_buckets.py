"""Buckets of t: sums of the jumps in each, and the jumps of some of them."""

from __future__ import annotations

import numpy as np

from rankwright.kernels.jit import Floats, Ints, get_bits, inner_kernel, kernel

_FAR = 1e18  # the largest distance from 0, in units


@inner_kernel
def find_bucket(t: float, inverse_unit: float, half: int) -> int:
    """Return the number of the bucket that holds the time t of a jump; Cauchy distributed times fill buckets evenly."""
    x = min(max(t * inverse_unit, -_FAR), _FAR)
    return min(int(half + half * (x / (1.0 + abs(x)))), 2 * half - 1)


@kernel
def sum_jumps(times: Floats, deltas: Ints, inverse_unit: float, n_buckets: int) -> tuple[Ints, Floats]:
    """Return by bucket of times the sum of the measure's changes there, and the sum of the positive changes."""
    sums, gains, half = np.zeros(n_buckets, np.int64), np.zeros(n_buckets), n_buckets // 2
    for i in range(len(times)):
        bucket = find_bucket(times[i], inverse_unit, half)
        sums[bucket] += deltas[i]
        gains[bucket] += max(deltas[i], 0)
    return sums, gains


@kernel
def select_jumps(times: Floats, deltas: Ints, inverse_unit: float, wanted: Ints) -> Ints:
    """Return the jumps (time, change and bucket, a row each) in the buckets where ``wanted`` is not 0.

    A row has the bits of the time, the change and the bucket.
    """
    half, count = len(wanted) // 2, 0
    for i in range(len(times)):
        count += wanted[find_bucket(times[i], inverse_unit, half)] != 0
    out = np.empty((count, 3), np.int64)
    at = 0
    for i in range(len(times)):
        bucket = find_bucket(times[i], inverse_unit, half)
        if wanted[bucket] != 0:
            out[at, 0], out[at, 1], out[at, 2] = get_bits(times[i]), deltas[i], bucket
            at += 1
    return out
