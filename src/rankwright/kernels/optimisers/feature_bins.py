"""Bins of features, and sums over the documents of each bin.

A feature's bins are numbered from 0 by ascending value, and a threshold lies between each and the next; documents that
lack the feature have one more bin of their own. The bins of all features lie in one array of *slots*: those of
feature f are ``starts[f]`` to ``starts[f + 1]``, the last of which is for missing values.
"""

from __future__ import annotations

import numpy as np

from rankwright.kernels.jit import Floats, Ints, kernel
from rankwright.kernels.scorers.stump_scores import count_below


@kernel
def find_thresholds(values: Floats, max_bins: int) -> Floats:
    """Return at most ``max_bins - 1`` thresholds that divide sorted values into bins of about equal size.

    A value that fills a bin of its own takes one, and the others share the rest. Each threshold is halfway between
    two neighbouring values, in float32: the lower of them is not above it, the upper one is.
    """
    n, distinct = len(values), 1
    for i in range(1, n):
        distinct += values[i] > values[i - 1]
    out = np.empty(max(min(distinct, max_bins) - 1, 0), np.float32)
    found, held, start = 0, 0, 0  # held: values in the open bin
    while start < n:
        stop = start + 1
        while stop < n and values[stop] == values[start]:
            stop += 1
        target = (n - start + held) / (max_bins - found)  # the values left, shared by the bins left
        full = held > 0 and (held + (stop - start) / 2.0 > target or stop - start >= target)
        if start > 0 and (full or distinct <= max_bins) and found < len(out):
            low, high = values[start - 1], values[start]
            middle = np.float32(low / np.float32(2.0) + high / np.float32(2.0))
            out[found] = middle if low <= middle < high else low
            found, held = found + 1, 0
        held += stop - start
        start = stop
    return out[:found]


@kernel
def assign_bins(X: Floats, rows: Ints, thresholds: Floats, starts: Ints, codes: Ints) -> None:
    """Write the bin of each feature in each chosen row: ``codes[f, i]`` is that of feature f in row ``rows[i]``.

    ``thresholds`` has an entry per slot: that above the slot's bin. The last two slots of a feature have none.
    """
    block = 64  # rows, which stay in the cache while one feature after another is read
    for first in range(0, len(rows), block):
        last = min(first + block, len(rows))
        for f in range(codes.shape[0]):
            a = starts[f]
            n = starts[f + 1] - a - 2
            for i in range(first, last):
                x = X[rows[i], f]
                codes[f, i] = count_below(x, thresholds, a, a + n) if x == x else n + 1


@kernel
def sum_bins(codes: Ints, starts: Ints, features: Ints, values: Floats, out: Floats) -> None:
    """Add the sums of ``values`` over the documents in each bin of these features to ``out``.

    An addition waits for the last one to the same address, and neighbours are often in one bin. So two features are
    summed at a time, into four copies each.
    """
    widest, n, to = 0, len(values), 0
    for f in features:
        widest = max(widest, starts[f + 1] - starts[f])
    copies = np.empty((8, widest))
    a0, a1, a2, a3 = copies[0], copies[1], copies[2], copies[3]
    b0, b1, b2, b3 = copies[4], copies[5], copies[6], copies[7]
    whole = n - n % 4
    for k in range(0, len(features), 2):
        f, g = features[k], features[min(k + 1, len(features) - 1)]
        size, size2 = starts[f + 1] - starts[f], starts[g + 1] - starts[g]
        copies[:, : max(size, size2)] = 0.0
        a, b = codes[f], codes[g]
        for i in range(0, whole, 4):
            v0, v1, v2, v3 = values[i], values[i + 1], values[i + 2], values[i + 3]
            a0[a[i]] += v0
            b0[b[i]] += v0
            a1[a[i + 1]] += v1
            b1[b[i + 1]] += v1
            a2[a[i + 2]] += v2
            b2[b[i + 2]] += v2
            a3[a[i + 3]] += v3
            b3[b[i + 3]] += v3
        for i in range(whole, n):
            a0[a[i]] += values[i]
            b0[b[i]] += values[i]
        for slot in range(size):
            out[to + slot] += (a0[slot] + a1[slot]) + (a2[slot] + a3[slot])
        to += size
        if k + 1 < len(features):
            for slot in range(size2):
                out[to + slot] += (b0[slot] + b1[slot]) + (b2[slot] + b3[slot])
            to += size2


@kernel
def accumulate_bins(out: Floats, starts: Ints, features: Ints) -> None:
    """Replace the sums of each feature's bins by running sums over its bins, in place."""
    to = 0
    for f in features:
        size = starts[f + 1] - starts[f]
        for k in range(to + 1, to + size):
            out[k] += out[k - 1]
        to += size
