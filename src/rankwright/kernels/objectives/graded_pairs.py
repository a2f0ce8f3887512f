"""Losses of pairs of documents with different grades, with the documents of a query ordered by descending grade.

The documents of a lower grade than document i are then the rows ``lower[i]`` to the end of its query.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from rankwright.kernels.jit import Floats, Ints, inlined, kernel, loose_kernel
from rankwright.kernels.measures.sorting import max_query_size, merge_sort
from rankwright.kernels.objectives.exponentials import exp, log1p

FIDELITY, LOGISTIC = 0, 1


class GradedDocuments(NamedTuple):
    """The documents of some queries, sorted by descending grade, with the weight of each query's pairs."""

    indptr: Ints
    lower: Ints  # the first row of the query with a lower grade
    weight: Floats  # of a pair, per query
    doc_weight: Floats | None = None  # of each document; a pair is weighted by the product of those of its documents


@inlined
def get_doc_weight(doc_weight: Floats | None, i: int) -> float:
    """Return the weight of document ``i``; the constant 1 if documents have no weights, which costs nothing."""
    if doc_weight is None:
        return 1.0
    return doc_weight[i]  # type: ignore[no-any-return]


@inlined
def slice_doc_weights(doc_weight: Floats | None, start: int, stop: int) -> Floats | None:
    """Return the weights of the documents ``start`` to ``stop``; None if documents have no weights."""
    if doc_weight is None:
        return None
    return doc_weight[start:stop]


@kernel
def find_grade_order(y: Floats, indptr: Ints) -> tuple[Ints, Ints]:
    """Return the rows of each query by descending grade, and for each the place where lower grades begin."""
    rows, lower, longest = np.empty(len(y), np.int64), np.empty(len(y), np.int64), max_query_size(indptr)
    keys, keys2, rows2 = np.empty(longest), np.empty(longest), np.empty(longest, np.int64)
    for q in range(len(indptr) - 1):
        a, b = indptr[q], indptr[q + 1]
        for i in range(a, b):
            keys[i - a], rows[i] = y[i], i
        merge_sort(keys, rows[a:b], keys2, rows2, b - a)
        first_lower = b
        for i in range(b - 1, a - 1, -1):
            if i + 1 < b and y[rows[i]] > y[rows[i + 1]]:
                first_lower = i + 1
            lower[i] = first_lower
    return rows, lower


@kernel
def sum_exponential_pairs(graded: GradedDocuments, scores: Floats, gradient: Floats) -> float:
    """Return RankBoost's loss, the weighted sum of exp(s_j - s_i) over pairs, and write its gradient, in O(n).

    exp(s_j - s_i) is a product, so a document needs only two sums over other grades for all its pairs.
    """
    indptr, lower, weight, doc_weight = graded
    loss, up, down = 0.0, np.empty(len(scores)), np.empty(len(scores))
    for q in range(len(weight)):
        a, b = indptr[q], indptr[q + 1]
        if lower[a] == b or weight[q] == 0.0:
            gradient[a:b] = 0.0
            continue
        low, high = scores[a], scores[a]
        for i in range(a, b):
            low, high = min(low, scores[i]), max(high, scores[i])
        middle = (high + low) / 2.0
        below, here, first_lower = 0.0, 0.0, b
        for i in range(b - 1, a - 1, -1):
            if lower[i] < first_lower:  # a higher grade begins
                below, here, first_lower = below + here, 0.0, lower[i]
            own, grown = get_doc_weight(doc_weight, i), np.exp(scores[i] - middle)
            up[i], down[i] = 0.0, 0.0
            if own > 0.0:  # or else 0 times infinity were possible
                up[i], down[i] = own * grown, own / grown
            here += up[i]
            gradient[i] = -weight[q] * below * down[i]
            loss -= gradient[i]
        above, here, first_lower = 0.0, 0.0, lower[a]
        for j in range(a, b):
            if lower[j] > first_lower:
                above, here, first_lower = above + here, 0.0, lower[j]
            here += down[j]
            gradient[j] += weight[q] * above * up[j]
    return loss


@loose_kernel
def _sum_logistic_pairs(
    own: float, s: Floats, others: Floats | None, target: float, slopes: Floats, curves: Floats, w: float
) -> tuple[float, float, float]:
    """Return a document's logistic loss with lower grades and its own derivatives; add those by their scores.

    ``others`` are the weights of the documents of lower grades.
    """
    loss, slope, curve = 0.0, 0.0, 0.0
    for j in range(len(s)):
        o, c = own - s[j], get_doc_weight(others, j)
        small = exp(-abs(o))
        p = (1.0 if o >= 0.0 else small) / (1.0 + small)
        loss += c * ((max(o, 0.0) - target * o) + log1p(small))
        slope += c * (p - target)
        curve += c * (p * (1.0 - p))
        slopes[j] -= w * c * (p - target)
        curves[j] += w * c * (p * (1.0 - p))
    return w * loss, w * slope, w * curve


@loose_kernel
def _sum_fidelity_pairs(
    own: float, s: Floats, others: Floats | None, target: float, slopes: Floats, curves: Floats, w: float
) -> tuple[float, float, float]:
    """Sum FRank's fidelity loss as ``_sum_logistic_pairs`` does: 1 - sqrt(P* P) - sqrt((1 - P*) (1 - P))."""
    loss, slope, curve = 0.0, 0.0, 0.0
    for j in range(len(s)):
        o, c = own - s[j], get_doc_weight(others, j)
        small = exp(-abs(o))
        p = (1.0 if o >= 0.0 else small) / (1.0 + small)  # P, and 1 - P without cancellation
        other = (small if o >= 0.0 else 1.0) / (1.0 + small)
        agree, differ = np.sqrt(target * p), np.sqrt((1.0 - target) * other)
        first = 0.5 * (differ * p - agree * other)
        second = 0.25 * (agree * other * (3.0 * p - 1.0) + differ * p * (3.0 * other - 1.0))
        loss += c * (1.0 - agree - differ)
        slope += c * first
        curve += c * second
        slopes[j] -= w * c * first
        curves[j] += w * c * second
    return w * loss, w * slope, w * curve


@kernel
def sum_pair_losses(
    graded: GradedDocuments, scores: Floats, kind: int, target: float, gradient: Floats, curvature: Floats
) -> float:
    """Return the weighted sum of a loss over all pairs, and write its first and second derivatives by score.

    ``target`` is P*, the desired probability that the document of the higher grade wins.
    """
    indptr, lower, weight, doc_weight = graded
    loss = 0.0
    gradient[:], curvature[:] = 0.0, 0.0
    for q in range(len(weight)):
        stop = indptr[q + 1]
        for i in range(indptr[q], stop):
            if lower[i] == stop:
                break
            below, w = slice(lower[i], stop), weight[q] * get_doc_weight(doc_weight, i)
            others = slice_doc_weights(doc_weight, lower[i], stop)
            if kind == LOGISTIC:
                own, slope, curve = _sum_logistic_pairs(
                    scores[i], scores[below], others, target, gradient[below], curvature[below], w
                )
            else:
                own, slope, curve = _sum_fidelity_pairs(
                    scores[i], scores[below], others, target, gradient[below], curvature[below], w
                )
            loss += own
            gradient[i] += slope
            curvature[i] += curve
    return loss


@kernel
def compute_misordered_shares(scores: Floats, place: Ints, indptr: Ints) -> Floats:
    """Return by query the share of its pairs of different grades that scores misorder; equal scores count half.

    ``place`` is each document's place among the grades of its query. NaN where there are no pairs.
    """
    shares, longest = np.empty(len(indptr) - 1), max_query_size(indptr)
    keys, keys2, order, order2 = (
        np.empty(longest),
        np.empty(longest),
        np.empty(longest, np.int64),
        np.empty(longest, np.int64),
    )
    for q in range(len(shares)):
        a, n, known = indptr[q], indptr[q + 1] - indptr[q], 0
        for i in range(n):
            if scores[a + i] == scores[a + i]:
                keys[known], order[known] = scores[a + i], i
                known += 1
        merge_sort(keys, order, keys2, order2, known)
        for i in range(n):
            if scores[a + i] != scores[a + i]:  # missing scores come last
                order[known] = i
                known += 1
        above, tied, wrong, pairs, i = np.zeros(n, np.int64), np.zeros(n, np.int64), 0.0, 0.0, 0
        while i < n:
            tied[place[a + order[i]]] += 1
            end = i + 1  # NaN is equal to no score, itself included
            while end < n and scores[a + order[end]] == scores[a + order[i]]:
                tied[place[a + order[end]]] += 1
                end += 1
            for j in range(i, end):
                own = place[a + order[j]]
                for grade in range(own):
                    wrong += above[grade] + 0.5 * tied[grade]
            for j in range(i, end):
                own = place[a + order[j]]
                above[own] += 1
                tied[own] = 0
            i = end
        seen = 0
        for grade in range(n):
            pairs += above[grade] * seen
            seen += above[grade]
        shares[q] = wrong / pairs if pairs > 0.0 else np.nan
    return shares
