"""Smooth approximations of measures, with their derivatives by score.

By positions: the soft gain at rank j is a weighted mean over the documents,

    m_j = sum over i of h_ij g_i,    h_ij = e_ij / sum over k of e_kj,    e_ij = exp(-(s_i - s_(j))^2 / sigma),

where s_(j) is the j-th highest score, and the measure is computed as in ``measure_values.py`` with m_j as the gain at
rank j.

By ranks: the soft rank of document i is 1 + sum over j of 1 / (1 + exp((s_i - s_j) / sigma)).
"""

from __future__ import annotations

import numpy as np

from rankwright.kernels.jit import Floats, inner_kernel, kernel, loose_kernel
from rankwright.kernels.measures.discounts import DiscountFunction, compute_discount
from rankwright.kernels.measures.measure_values import MeasureArrays
from rankwright.kernels.measures.sorting import max_query_size, sort_descending
from rankwright.kernels.objectives.exponentials import exp

_REACH = 40.0  # exp(-40), 4e-18, is negligible beside the 1 of a document at its own position


@loose_kernel
def _soften(s: Floats, gain: Floats, center: float, steep: float, e: Floats) -> tuple[float, float]:
    """Write documents' weights at the position of score ``center``; return the sums of weights and weighted gains.

    The weights are e of the module's first lines, before they are divided by their sum.
    """
    total, gains = 0.0, 0.0
    for i in range(len(s)):
        x = s[i] - center
        e[i] = exp(steep * (x * x))
        total += e[i]
        gains += gain[i] * e[i]
    return total, gains


@loose_kernel
def _add_position_slopes(
    s: Floats, gain: Floats, center: float, soft: float, slope: float, e: Floats, out: Floats
) -> float:
    """Add the derivatives of the soft gain at one position by each score to ``out``, and return their sum."""
    total = 0.0
    for i in range(len(s)):
        x = slope * ((gain[i] - soft) * (e[i] * (s[i] - center)))
        out[i] += x
        total += x
    return total


@inner_kernel
def _compute_soft_value(soft: Floats, discount: Floats, u: float, v: float, slopes: Floats) -> float:
    """Return the measure of a list of soft gains by rank, and write its derivative by each of them.

    Additive: sum of d_j m_j. Average precision: sum of d_j m_j (m_1 + ... + m_j). Cascade: sum of d_j m_j times the
    probability of reaching rank j, (1 - m_1) ... (1 - m_{j-1}).
    """
    n, value = len(soft), 0.0
    if v != 0.0:
        reach = 1.0
        for j in range(n):
            slopes[j] = reach
            value += discount[j] * soft[j] * reach
            reach *= 1.0 - soft[j]
        after = 0.0  # the sum from this rank on, given that it is reached
        for j in range(n - 1, -1, -1):
            slopes[j] *= discount[j] - after
            after = discount[j] * soft[j] + (1.0 - soft[j]) * after
    elif u != 0.0:
        so_far = 0.0
        for j in range(n):
            so_far += soft[j]
            value += discount[j] * soft[j] * so_far
            slopes[j] = discount[j] * (so_far + soft[j])
        after = 0.0
        for j in range(n - 1, -1, -1):
            slopes[j] += after
            after += discount[j] * soft[j]
    else:
        for j in range(n):
            value += discount[j] * soft[j]
            slopes[j] = discount[j]
    return value


@kernel
def compute_soft_positions(arrays: MeasureArrays, scores: Floats, sigma: float, gradient: Floats) -> float:
    """Return a measure of soft gains by position (SmoothRank), summed over queries, and write its gradient.

    Eq. (7), (8), (10) and appendix 2 of Chapelle & Wu: O(n) a position, over the documents near it only, which are
    adjacent once they are sorted. A shift of all scores changes nothing, so the derivative by the score at the
    position itself is minus the sum of the others.
    """
    indptr, gain, discount, scale, _, u, v = arrays
    longest, reach, steep = max_query_size(indptr), np.sqrt(_REACH * sigma), -1.0 / sigma
    s, g, e = np.empty(longest), np.empty(longest), np.empty(longest)
    changes, work = np.empty(longest), np.empty(longest)
    items, items2 = np.empty(longest, np.int64), np.empty(longest, np.int64)
    soft, slopes, totals = np.empty(len(discount)), np.empty(len(discount)), np.empty(len(discount))
    low, high = np.empty(len(discount), np.int64), np.empty(len(discount), np.int64)
    loss = 0.0
    for q in range(len(scale)):
        a, n = indptr[q], indptr[q + 1] - indptr[q]
        gradient[a : a + n] = 0.0
        if scale[q] == 0.0:
            continue
        for i in range(n):
            s[i], items[i] = scores[a + i], i
        sort_descending(s, items, work, items2, n)
        for i in range(n):
            g[i], changes[i] = gain[a + items[i]], 0.0
        depth, first, last = min(n, len(discount)), 0, 0
        for j in range(depth):
            while s[first] - s[j] > reach:
                first += 1
            while last < n and s[j] - s[last] <= reach:
                last += 1
            low[j], high[j] = first, last
            totals[j], gains = _soften(s[first:last], g[first:last], s[j], steep, e)
            soft[j] = gains / totals[j]
            if u == 0.0 and v == 0.0:  # the derivative by each gain is known: its discount
                slope = 2.0 * steep * discount[j] / totals[j]
                changes[j] -= _add_position_slopes(
                    s[first:last], g[first:last], s[j], soft[j], slope, e, changes[first:last]
                )
        loss += scale[q] * _compute_soft_value(soft[:depth], discount, u, v, slopes)
        if u != 0.0 or v != 0.0:
            for j in range(depth):
                first, last = low[j], high[j]
                _soften(s[first:last], g[first:last], s[j], steep, e)
                slope = 2.0 * steep * slopes[j] / totals[j]
                changes[j] -= _add_position_slopes(
                    s[first:last], g[first:last], s[j], soft[j], slope, e, changes[first:last]
                )
        for i in range(n):
            gradient[a + items[i]] = scale[q] * changes[i]
    return loss


@loose_kernel
def _compare_softly(s: Floats, gain: Floats, own: float, per_sigma: float, p: Floats) -> tuple[float, float]:
    """Write for each document how surely, from 0 to 1, it is above the score ``own``; return two sums of this.

    It is p, a sigmoid of the difference of scores; the sums are those of p and of the gains times p.
    """
    total, gains = 0.0, 0.0
    for j in range(len(s)):
        p[j] = 1.0 / (1.0 + exp(min((own - s[j]) * per_sigma, 700.0)))
        total += p[j]
        gains += gain[j] * p[j]
    return total, gains


@loose_kernel
def _add_term_slopes(p: Floats, gain: Floats, by_rank: float, by_lead: float, out: Floats) -> float:
    """Add the slopes of one document's term by the other documents' scores to ``out``; return their sum."""
    total = 0.0
    for j in range(len(p)):
        x = (p[j] * (1.0 - p[j])) * (by_rank + by_lead * gain[j])
        out[j] += x
        total += x
    return total


@kernel
def compute_soft_ranks(
    arrays: MeasureArrays, discount: DiscountFunction, scores: Floats, sigma: float, gradient: Floats
) -> float:
    """Return a measure of discounts at soft ranks (as ApproxNDCG), summed over queries, and write its gradient.

    Each query counts with its scale; O(n) for each document with a gain.
    Eq. (5): sum of g_i D(r_i). Eq. (9), for average precision: sum of g_i c_i / r_i, where c_i is 1 plus the relevant
    documents softly above i, and r_i is 1 plus all documents softly above i; the document itself counts 1 in both.
    """
    indptr, gain, _, scale, _, u, _ = arrays
    p, per_sigma, loss = np.empty(max_query_size(indptr)), 1.0 / sigma, 0.0
    gradient[:] = 0.0
    for q in range(len(scale)):
        if scale[q] == 0.0:
            continue
        rows = slice(indptr[q], indptr[q + 1])
        s, g, out = scores[rows], gain[rows], gradient[rows]
        for i in range(len(s)):
            if g[i] == 0.0:
                continue
            total, gains = _compare_softly(s, g, s[i], per_sigma, p)
            p[i] = 0.0  # it is not above itself
            lead = 1.0 + u * (gains - 0.5 * g[i])
            d, slope = compute_discount(discount, 0.5 + total)
            by = scale[q] * g[i] * per_sigma
            loss += scale[q] * g[i] * lead * d
            out[i] -= _add_term_slopes(p[: len(s)], g, by * lead * slope, by * u * d, out)
    return loss
