"""Values and changes of measures: one recurrence for all families.

With the documents in ranked order, gains g_1, g_2, ... and discounts d_1, d_2, ... every measure is

    base + scale * sum over r of g_r d_r lead_r,    lead_1 = 1,    lead_{r+1} = lead_r + g_r (u + v lead_r)

    additive (DCG, NDCG, P, recall, RBP):  u = 0, v = 0    lead is 1
    average precision:                     u = 1, v = 0    lead is 1 + relevant documents before r
    cascade (ERR, RR):                     u = 0, v = -1   lead is the probability of reaching rank r

A change of the measure when two documents swap places follows from the recurrence (see ``swap_deltas``).
"""

from __future__ import annotations

import numpy as np

from rankwright.kernels.jit import Floats, Ints, kernel
from rankwright.kernels.measures.sorting import sort_rows


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
def weighted_total(values: Floats, weight: Floats) -> float:
    """The sum of the values times their weights, in order; a value without weight may be NaN."""
    total = 0.0
    for q in range(len(values)):
        if weight[q] != 0.0:
            total += values[q] * weight[q]
    return total


@kernel
def ranked_total(
    keys: Floats,
    tie: Floats,
    order: Ints,
    gain: Floats,
    discount: Floats,
    scale: Floats,
    base: Floats,
    u: float,
    v: float,
    indptr: Ints,
    weight: Floats,
) -> float:
    """Rank all documents and return the weighted sum of the measures, in one call."""
    values = np.empty(len(weight))
    sort_rows(keys, tie, indptr, 0, len(weight), order)
    ranked_values(order, gain, discount, scale, base, u, v, indptr, 0, len(weight), values)
    return float(weighted_total(values, weight))


@kernel
def _sort_gains(gains: Floats, levels: Floats, counts: Ints, n_levels: int, out: Floats) -> int:
    """Write the gains in descending order, and return the number of levels.

    ``levels`` holds the different gains seen so far in any query, descending, and each gain is counted at its level;
    more different ones than there is room for are sorted.
    """
    counts[:] = 0
    for g in gains:
        j = 0
        for i in range(n_levels):
            j += levels[i] > g
        if j == n_levels or levels[j] != g:
            if n_levels == len(levels):
                out[: len(gains)] = np.sort(gains)[::-1]
                return n_levels
            for i in range(n_levels, j, -1):
                levels[i], counts[i] = levels[i - 1], counts[i - 1]
            levels[j], counts[j] = g, 0
            n_levels += 1
        counts[j] += 1
    at = 0
    for j in range(n_levels):
        for _ in range(counts[j]):
            out[at] = levels[j]
            at += 1
    return n_levels


@kernel
def ideal_values(gain: Floats, discount: Floats, u: float, v: float, indptr: Ints) -> Floats:
    """The sum (without scale and base) of every query ranked by descending gain."""
    m, longest, n_levels = len(indptr) - 1, 0, 0
    for q in range(m):
        longest = max(longest, indptr[q + 1] - indptr[q])
    ranked, levels, counts = np.empty(longest), np.empty(16), np.empty(16, np.int64)
    out = np.empty(m)
    for q in range(m):
        n_levels = _sort_gains(gain[indptr[q] : indptr[q + 1]], levels, counts, n_levels, ranked)
        total, lead = 0.0, 1.0
        for r in range(min(indptr[q + 1] - indptr[q], len(discount))):
            total += ranked[r] * discount[r] * lead
            lead += ranked[r] * (u + v * lead)
        out[q] = total
    return out


@kernel
def _survival(gains: Floats, n: int, depth: int, out: Floats) -> None:
    """For j = 0 to depth, the mean over all j-subsets of n gains of the product of (1 - g), into ``out``.

    A subset of the first m gains holds the m-th with probability j / m: O(n depth). If all gains are 0 or 1, it is the
    probability that none of the j is a 1, in O(depth).
    """
    ones, binary = 0, True
    for i in range(n):
        ones += gains[i] == 1.0
        binary &= gains[i] == 1.0 or gains[i] == 0.0
    out[: depth + 1] = 0.0
    out[0] = 1.0
    if binary:
        for j in range(1, depth + 1):
            out[j] = out[j - 1] * max(n - ones - j + 1, 0) / (n - j + 1)
        return
    for m in range(1, n + 1):
        for j in range(min(m, depth), 0, -1):
            out[j] = ((m - j) * out[j] + j * (1.0 - gains[m - 1]) * out[j - 1]) / m


@kernel
def averaged_values(
    order: Ints,
    scores: Floats,
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
    """As ``ranked_values``, but the mean over all orders of documents with equal scores.

    Of n tied documents the j-th adds in the mean d_j (mean g lead + u (j - 1) mean of g g' over pairs) if v = 0, and
    d_j lead (s_{j-1} - s_j) if u = 0 and v = -1, where s_j is the mean over j of them of the product of (1 - g).
    """
    longest = 0
    for q in range(start, stop):
        longest = max(longest, indptr[q + 1] - indptr[q])
    gains, survival = np.empty(longest), np.empty(longest + 1)
    for q in range(start, stop):
        a, n = indptr[q], indptr[q + 1] - indptr[q]
        depth = min(n, len(discount))
        total, lead, low = 0.0, 1.0, 0
        while low < depth:
            tied, first, second = 0, 0.0, 0.0
            while low + tied < n and scores[order[a + low + tied]] == scores[order[a + low]]:
                g = gain[order[a + low + tied]]
                gains[tied] = g
                first += g
                second += g * g
                tied += 1
            inside = min(tied, depth - low)
            if first > 0.0 and v == 0.0:
                pair = (first * first - second) / (tied * (tied - 1)) if tied > 1 else 0.0
                for j in range(inside):
                    total += discount[low + j] * (first / tied * lead + u * j * pair)
                lead += u * first
            elif first > 0.0:
                _survival(gains, tied, inside, survival)
                for j in range(inside):
                    total += discount[low + j] * lead * (survival[j] - survival[j + 1])
                lead *= survival[inside]
            low += tied
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
    return float((lower - upper) * lead[r] * (here - below))


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
