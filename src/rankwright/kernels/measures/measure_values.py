"""Values and changes of measures: one recurrence for all families.

With the documents in ranked order, gains g_1, g_2, ... and discounts d_1, d_2, ... every measure is

    base + scale * sum over r of g_r d_r lead_r,    lead_1 = 1,    lead_{r+1} = lead_r + g_r (u + v lead_r)

where lead_r is the factor that the documents before rank r put on its gain:

    additive (DCG, NDCG, P, recall, RBP):  u = 0, v = 0    lead is 1
    average precision:                     u = 1, v = 0    lead is 1 + relevant documents before r
    cascade (ERR, RR):                     u = 0, v = -1   lead is the probability of reaching rank r

The change of the measure when two documents swap ranks follows from the recurrence (see ``compute_swap_deltas``).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from rankwright.kernels.jit import Floats, Ints, inlined, inner_kernel, kernel
from rankwright.kernels.measures.sorting import max_query_size, merge_sort, sort_rows


class MeasureArrays(NamedTuple):
    """The arrays of a measure that is prepared for some queries: the form in which every kernel takes it."""

    indptr: Ints
    gain: Floats  # per document
    discount: Floats  # per rank; 0 beyond its end
    scale: Floats  # per query
    base: Floats  # per query
    u: float
    v: float


@inlined
def compute_query_sum(arrays: MeasureArrays, order: Ints, q: int) -> float:
    """Return the measure of one ranked query before ``scale`` and ``base`` are applied."""
    a, discount, total, lead = arrays.indptr[q], arrays.discount, 0.0, 1.0
    for r in range(min(arrays.indptr[q + 1] - a, len(discount))):
        g = arrays.gain[order[a + r]]
        if g != 0.0:
            total += g * discount[r] * lead
            lead += g * (arrays.u + arrays.v * lead)
    return total


@kernel
def compute_ranked_values(arrays: MeasureArrays, order: Ints, start: int, stop: int, out: Floats) -> None:
    """Write the measure of each of the queries ``start`` to ``stop`` to ``out``; ``order`` holds their ranked rows."""
    for q in range(start, stop):
        out[q] = arrays.base[q] + arrays.scale[q] * compute_query_sum(arrays, order, q)


@kernel
def sum_weighted(values: Floats, weight: Floats) -> float:
    """Return the sum of values times weights, in order; where the weight is 0, the value may be NaN."""
    total = 0.0
    for q in range(len(values)):
        if weight[q] != 0.0:
            total += values[q] * weight[q]
    return total


@kernel
def rank_and_sum(arrays: MeasureArrays, keys: Floats, tie: Floats, order: Ints, weight: Floats) -> float:
    """Rank the documents of all queries by ``keys``, and return the weighted sum of the queries' measures."""
    values = np.empty(len(weight))
    sort_rows(keys, tie, arrays.indptr, 0, len(weight), order)
    compute_ranked_values(arrays, order, 0, len(weight), values)
    return float(sum_weighted(values, weight))


@inner_kernel
def _sort_gains(gains: Floats, levels: Floats, counts: Ints, n_levels: int, out: Floats) -> int:
    """Write the gains of one query in descending order; return the number of different gains seen so far.

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
                n = len(gains)
                keys2, items, items2 = np.empty(n), np.empty(n, np.int64), np.empty(n, np.int64)
                for i in range(n):
                    out[i] = gains[i]
                merge_sort(out, items, keys2, items2, n)
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
def compute_ideal_values(arrays: MeasureArrays) -> Floats:
    """Return by query the sum of an ideal ranking, by descending gain, before ``scale`` and ``base`` are applied."""
    indptr, discount, u, v, n_levels = arrays.indptr, arrays.discount, arrays.u, arrays.v, 0
    ranked, levels, counts = np.empty(max_query_size(indptr)), np.empty(16), np.empty(16, np.int64)
    out = np.empty(len(indptr) - 1)
    for q in range(len(out)):
        n_levels = _sort_gains(arrays.gain[indptr[q] : indptr[q + 1]], levels, counts, n_levels, ranked)
        total, lead = 0.0, 1.0
        for r in range(min(indptr[q + 1] - indptr[q], len(discount))):
            total += ranked[r] * discount[r] * lead
            lead += ranked[r] * (u + v * lead)
        out[q] = total
    return out


@inner_kernel
def _fill_survival(gains: Floats, n: int, depth: int, out: Floats) -> None:
    """Write for j = 0 to ``depth`` the mean product of (1 - gain) over all choices of j of the n documents.

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
def compute_averaged_values(
    arrays: MeasureArrays, order: Ints, scores: Floats, start: int, stop: int, out: Floats
) -> None:
    """Write by query the mean of the measure over all orders of documents with equal scores to ``out``.

    Of n tied documents the j-th adds in the mean d_j (mean g lead + u (j - 1) mean of g g' over pairs) if v = 0, and
    d_j lead (s_{j-1} - s_j) if u = 0 and v = -1, where s_j is the mean over j of them of the product of (1 - g).
    """
    indptr, gain, discount, scale, base, u, v = arrays
    longest = max_query_size(indptr[start : stop + 1])
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
                _fill_survival(gains, tied, inside, survival)
                for j in range(inside):
                    total += discount[low + j] * lead * (survival[j] - survival[j + 1])
                lead *= survival[inside]
            low += tied
        out[q] = base[q] + scale[q] * total


@inner_kernel
def compute_leads(gains: Floats, u: float, v: float) -> Floats:
    """Return for every rank the factor (lead) that the gains of one query put on it from the ranks before."""
    out = np.empty(len(gains))
    lead = 1.0
    for r in range(len(gains)):
        out[r] = lead
        lead += gains[r] * (u + v * lead)
    return out


@kernel
def compute_swap_deltas(gains: Floats, discount: Floats, u: float, v: float) -> Floats:
    """Return the changes of one query's measure, before ``scale``, if each two ranks swapped documents.

    Between ranks i and j the lead is an affine function of the lead after i: A lead + B. With
    M = sum over i < r < j of g_r d_r A_r, swapping i and j changes the sum by

        (g_j - g_i) (lead_i (d_i - A d_j) + M (u + v lead_i) - B d_j);

    ranks after j keep their lead.
    """
    n = len(gains)
    d = np.zeros(n)
    for r in range(min(n, len(discount))):
        d[r] = discount[r]
    lead = compute_leads(gains, u, v)
    out = np.zeros((n, n))
    for i in range(n):
        a, b, m = 1.0, 0.0, 0.0
        for j in range(i + 1, n):
            delta = (gains[j] - gains[i]) * (lead[i] * (d[i] - a * d[j]) + m * (u + v * lead[i]) - b * d[j])
            out[i, j] = out[j, i] = delta
            m += gains[j] * d[j] * a
            a, b = a * (1.0 + v * gains[j]), b * (1.0 + v * gains[j]) + u * gains[j]
    return out
