"""Values and changes of measures: one recurrence for all families.

With the documents in ranked order, gains g_1, g_2, ... and discounts d_1, d_2, ... every measure is

    base + scale * sum over r of g_r d_r lead_r,    lead_1 = 1,    lead_{r+1} = lead_r + g_r (u + v lead_r)

    additive (DCG, NDCG, P, recall, RBP):  u = 0, v = 0    lead is 1
    average precision:                     u = 1, v = 0    lead is 1 + relevant documents before r
    cascade (ERR, RR):                     u = 0, v = -1   lead is the probability of reaching rank r

A change of the measure when two documents swap places follows from the recurrence (see ``swap_deltas``).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankwright.kernels.jit import kernel

Floats = NDArray[np.floating[Any]]
Ints = NDArray[np.integer[Any]]


@kernel
def ranked_values(
    order: Ints,
    gain: Floats,
    discount: Floats,
    scale: Floats,
    base: Floats,
    u: float,
    v: float,
    indptr: Ints,
    start: int,
    stop: int,
    out: Floats,
) -> None:
    """Write the measure of queries ``start`` to ``stop`` into ``out``; ``order`` holds their ranked rows."""
    for q in range(start, stop):
        a = indptr[q]
        depth = min(indptr[q + 1] - a, len(discount))
        total, lead = 0.0, 1.0
        for r in range(depth):
            g = gain[order[a + r]]
            if g != 0.0:
                total += g * discount[r] * lead
                lead += g * (u + v * lead)
        out[q] = base[q] + scale[q] * total


@kernel
def averaged_values(
    order: Ints,
    scores: Floats,
    gain: Floats,
    discount: Floats,
    scale: Floats,
    base: Floats,
    indptr: Ints,
    start: int,
    stop: int,
    out: Floats,
) -> None:
    """As ``ranked_values``, for additive measures, averaged over all orders of documents with equal scores."""
    for q in range(start, stop):
        a, n = indptr[q], indptr[q + 1] - indptr[q]
        depth = min(n, len(discount))
        total, low = 0.0, 0
        while low < depth:
            gains, discounts, high = 0.0, 0.0, low
            while high < n and scores[order[a + high]] == scores[order[a + low]]:
                gains += gain[order[a + high]]
                if high < depth:
                    discounts += discount[high]
                high += 1
            total += gains / (high - low) * discounts
            low = high
        out[q] = base[q] + scale[q] * total


@kernel
def leads(gains: Floats, u: float, v: float) -> Floats:
    """The lead of every rank, for the gains of one query in ranked order."""
    out = np.empty(len(gains))
    lead = 1.0
    for r in range(len(gains)):
        out[r] = lead
        lead += gains[r] * (u + v * lead)
    return out


@kernel
def swap_adjacent(gains: Floats, lead: Floats, discount: Floats, u: float, v: float, r: int) -> float:
    """Swap ranks ``r`` and ``r + 1`` (from 0) in place and return the change of the sum, in O(1)."""
    upper, lower = gains[r], gains[r + 1]
    here = discount[r] if r < len(discount) else 0.0
    below = discount[r + 1] if r + 1 < len(discount) else 0.0
    gains[r], gains[r + 1] = lower, upper
    lead[r + 1] = lead[r] + lower * (u + v * lead[r])
    return (lower - upper) * lead[r] * (here - below)


@kernel
def swap_deltas(gains: Floats, discount: Floats, u: float, v: float) -> Floats:
    """The change of the sum for every pair of ranks that could swap, O(1) a pair.

    Between ranks i and j the lead is an affine function of the lead after i: A lead + B. With
    M = sum over i < r < j of g_r d_r A_r, swapping i and j changes the sum by

        (g_j - g_i) (lead_i (d_i - A d_j) + M (u + v lead_i) - B d_j);

    what comes after j keeps its lead.
    """
    n = len(gains)
    d = np.zeros(n)
    d[: len(discount)] = discount[:n]
    lead = leads(gains, u, v)
    out = np.zeros((n, n))
    for i in range(n):
        a, b, m = 1.0, 0.0, 0.0
        for j in range(i + 1, n):
            delta = (gains[j] - gains[i]) * (lead[i] * (d[i] - a * d[j]) + m * (u + v * lead[i]) - b * d[j])
            out[i, j] = out[j, i] = delta
            m += gains[j] * d[j] * a
            a, b = a * (1.0 + v * gains[j]), b * (1.0 + v * gains[j]) + u * gains[j]
    return out
