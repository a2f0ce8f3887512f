"""Smooth measures of scores, with their derivatives.

By positions: the gain that is softly at rank j is a mean over the documents,

    m_j = sum over i of h_ij g_i,    h_ij = e_ij / sum over k of e_kj,    e_ij = exp(-(s_i - s_(j))^2 / sigma),

where s_(j) is the j-th highest score, and a measure is that of ``kernels/measures.py`` with m_j for the gain at rank j.

By ranks: the soft rank of document i is 1 + sum over j of 1 / (1 + exp((s_i - s_j) / sigma)).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from rankwright.kernels.jit import Floats, Ints, kernel, loose_kernel
from rankwright.kernels.measures.discounts import Law, discount_at
from rankwright.kernels.measures.sorting import count_sort, merge_sort
from rankwright.kernels.objectives.exponentials import exp

_REACH = 40.0  # exp(-40), 4e-18, is nothing beside the 1 of a document at its own position
_SHORT = 256  # documents: so few are sorted by counting


class Gained(NamedTuple):
    """Documents with gains, and what a query's sum of discounted gains is worth."""

    indptr: Ints
    gain: Floats
    discount: Floats
    worth: Floats  # per query: its weight times the scale of the measure
    u: float
    v: float


@loose_kernel
def _soften(s: Floats, gain: Floats, center: float, steep: float, e: Floats) -> tuple[float, float]:
    """Write e of some documents for the position of this score; their sum, and that of their gains by them."""
    total, gains = 0.0, 0.0
    for i in range(len(s)):
        x = s[i] - center
        e[i] = exp(steep * (x * x))
        total += e[i]
        gains += gain[i] * e[i]
    return total, gains


@loose_kernel
def _pull(s: Floats, gain: Floats, center: float, soft: float, slope: float, e: Floats, out: Floats) -> float:
    """Add what these documents do to the gain at a position, and return the sum."""
    total = 0.0
    for i in range(len(s)):
        x = slope * ((gain[i] - soft) * (e[i] * (s[i] - center)))
        out[i] += x
        total += x
    return total


@kernel
def _value(soft: Floats, discount: Floats, u: float, v: float, slopes: Floats) -> float:
    """The measure of gains by position, and its derivative by each.

    Additive: sum of d_j m_j. Average precision: sum of d_j m_j (m_1 + ... + m_j). Cascade: sum of d_j m_j times the
    probability of coming so far, (1 - m_1) ... (1 - m_{j-1}).
    """
    n, value = len(soft), 0.0
    if v != 0.0:
        reach = 1.0
        for j in range(n):
            slopes[j] = reach
            value += discount[j] * soft[j] * reach
            reach *= 1.0 - soft[j]
        after = 0.0  # what comes from here on, once one has come so far
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
def _sorted(scores: Floats, keys: Floats, items: Ints, keys2: Floats, items2: Ints) -> None:
    """Write the scores in descending order, and whose they are."""
    n = len(scores)
    for i in range(n):
        keys[i], items[i] = scores[i], i
    if n <= _SHORT:
        count_sort(keys, items, keys2, items2, n)
    else:
        merge_sort(keys, items, keys2, items2, n)


@kernel
def _longest(indptr: Ints) -> int:
    longest = 0
    for q in range(len(indptr) - 1):
        longest = max(longest, indptr[q + 1] - indptr[q])
    return longest


@kernel
def soft_positions(data: Gained, scores: Floats, sigma: float, gradient: Floats) -> float:
    """The sum over queries of worth times the measure by soft positions, and its derivatives by score.

    Eq. (7), (8), (10) and appendix 2 of Chapelle & Wu: O(n) a position, and no more than the documents within reach
    of it, which are adjacent once they are sorted. Moving all scores changes nothing, so the derivative by the score
    at the position itself is minus the sum of the others.
    """
    indptr, gain, discount, worth, u, v = data
    longest, reach, steep = _longest(indptr), np.sqrt(_REACH * sigma), -1.0 / sigma
    s, g, e = np.empty(longest), np.empty(longest), np.empty(longest)
    pulls, work = np.empty(longest), np.empty(longest)
    items, items2 = np.empty(longest, np.int64), np.empty(longest, np.int64)
    soft, slopes, totals = np.empty(len(discount)), np.empty(len(discount)), np.empty(len(discount))
    low, high = np.empty(len(discount), np.int64), np.empty(len(discount), np.int64)
    loss = 0.0
    for q in range(len(worth)):
        a, n = indptr[q], indptr[q + 1] - indptr[q]
        gradient[a : a + n] = 0.0
        if worth[q] == 0.0:
            continue
        _sorted(scores[a : a + n], s, items, work, items2)
        for i in range(n):
            g[i], pulls[i] = gain[a + items[i]], 0.0
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
                pulls[j] -= _pull(s[first:last], g[first:last], s[j], soft[j], slope, e, pulls[first:last])
        loss += worth[q] * _value(soft[:depth], discount, u, v, slopes)
        if u != 0.0 or v != 0.0:
            for j in range(depth):
                first, last = low[j], high[j]
                _soften(s[first:last], g[first:last], s[j], steep, e)
                slope = 2.0 * steep * slopes[j] / totals[j]
                pulls[j] -= _pull(s[first:last], g[first:last], s[j], soft[j], slope, e, pulls[first:last])
        for i in range(n):
            gradient[a + items[i]] = worth[q] * pulls[i]
    return loss


@loose_kernel
def _outrank(s: Floats, gain: Floats, own: float, per_sigma: float, p: Floats) -> tuple[float, float]:
    """Write how far each document is above this score; the sum, and that of the gains by it."""
    total, gains = 0.0, 0.0
    for j in range(len(s)):
        p[j] = 1.0 / (1.0 + exp(min((own - s[j]) * per_sigma, 700.0)))
        total += p[j]
        gains += gain[j] * p[j]
    return total, gains


@loose_kernel
def _push(p: Floats, gain: Floats, by_rank: float, by_lead: float, out: Floats) -> float:
    """Add what every document above or below does to the rank and the lead of one; return the sum."""
    total = 0.0
    for j in range(len(p)):
        x = (p[j] * (1.0 - p[j])) * (by_rank + by_lead * gain[j])
        out[j] += x
        total += x
    return total


@kernel
def soft_ranks(data: Gained, law: Law, scores: Floats, sigma: float, gradient: Floats) -> float:
    """The sum over queries of worth times the measure by soft ranks, and its derivatives by score: O(n) a gain.

    Eq. (5): sum of g_i D(r_i). Eq. (9), for average precision: sum of g_i c_i / r_i, where c_i is 1 plus the relevant
    documents that are softly above i, and r_i is 1 plus all that are; the document itself counts 1 in both.
    """
    indptr, gain, _, worth, u, _ = data
    p, per_sigma, loss = np.empty(_longest(indptr)), 1.0 / sigma, 0.0
    gradient[:] = 0.0
    for q in range(len(worth)):
        if worth[q] == 0.0:
            continue
        rows = slice(indptr[q], indptr[q + 1])
        s, g, out = scores[rows], gain[rows], gradient[rows]
        for i in range(len(s)):
            if g[i] == 0.0:
                continue
            total, gains = _outrank(s, g, s[i], per_sigma, p)
            p[i] = 0.0  # it is not above itself
            lead = 1.0 + u * (gains - 0.5 * g[i])
            d, slope = discount_at(law, 0.5 + total)
            by = worth[q] * g[i] * per_sigma
            loss += worth[q] * g[i] * lead * d
            out[i] -= _push(p[: len(s)], g, by * lead * slope, by * u * d, out)
    return loss
