"""Listwise losses with derivatives, in O(n) a query: top-one cross entropy, Plackett-Luce likelihood, cosine."""

from __future__ import annotations

import numpy as np

from rankwright.kernels.jit import Floats, Ints, kernel, loose_kernel
from rankwright.kernels.objectives.exponentials import exp


@loose_kernel
def softmax(scores: Floats, out: Floats) -> float:
    """Write the softmax of one query's scores to ``out``, and return the logarithm of the sum of exp(score)."""
    highest, total = -np.inf, 0.0
    for i in range(len(scores)):
        highest = max(highest, scores[i])
    for i in range(len(scores)):
        out[i] = exp(scores[i] - highest)
        total += out[i]
    for i in range(len(scores)):
        out[i] /= total
    return float(highest + np.log(total))


@kernel
def compute_query_softmax(values: Floats, indptr: Ints) -> Floats:
    """Return the softmax of values within each query: they become positive, and sum to 1 in a query."""
    out = np.empty(len(values))
    for q in range(len(indptr) - 1):
        softmax(values[indptr[q] : indptr[q + 1]], out[indptr[q] : indptr[q + 1]])
    return out


@kernel
def sum_cross_entropies(
    scores: Floats, target: Floats, indptr: Ints, weight: Floats, gradient: Floats, curvature: Floats
) -> float:
    """Return ListNet's loss, the weighted sum of -target . log softmax(scores), and write its derivatives.

    The target of each query sums to 1.
    """
    loss = 0.0
    for q in range(len(weight)):
        a, b = indptr[q], indptr[q + 1]
        log_total, own, w = softmax(scores[a:b], gradient[a:b]), 0.0, weight[q]
        for i in range(a, b):
            own += target[i] * (log_total - scores[i])
            p = gradient[i]
            gradient[i], curvature[i] = w * (p - target[i]), w * p * (1.0 - p)
        loss += w * own
    return loss


@kernel
def sum_label_likelihoods(
    scores: Floats, lower: Ints, indptr: Ints, weight: Floats, gradient: Floats, curvature: Floats
) -> float:
    """Return ListMLE's loss: the weighted sum of -log P(order of the grades) under Plackett-Luce.

    Documents come by descending grade.
    A document is chosen among all of its grade or lower ones, so that the order of equal grades does not matter:

        sum over j of log Z_j - s_j,    Z_j = sum over l_i <= l_j of exp(s_i).

    ``lower`` is the first row of the query with a lower grade. From the lowest grade up, Z only grows; from the highest
    down, so does the sum over j of 1 / Z_j, which is all that a document needs from the ones above.
    """
    loss, logs = 0.0, np.empty(len(scores))
    for q in range(len(weight)):
        a, b, w, own = indptr[q], indptr[q + 1], weight[q], 0.0
        highest, total, end = -np.inf, 0.0, b
        for i in range(b - 1, a - 1, -1):
            if scores[i] > highest:
                total, highest = total * np.exp(highest - scores[i]), scores[i]
            total += np.exp(scores[i] - highest)
            if i == a or lower[i - 1] != lower[i]:  # all documents of the grade are in the sum
                logs[i:end] = highest + np.log(total)
                end = i
            own -= scores[i]
        steepest, inverse, squares = -np.inf, 0.0, 0.0  # sums over j of exp(-log Z_j - steepest), and of its squares
        i = a
        while i < b:
            count, shrink = lower[i] - i, np.exp(steepest + logs[i])  # log Z only falls on the way down
            steepest, inverse, squares = -logs[i], inverse * shrink + count, squares * shrink * shrink + count
            own += count * logs[i]
            for j in range(i, lower[i]):
                p = np.exp(scores[j] + steepest)
                gradient[j], curvature[j] = w * (p * inverse - 1.0), w * (p * inverse - p * p * squares)
            i = lower[i]
        loss += w * own
    return loss


@kernel
def sum_cosine_losses(scores: Floats, target: Floats, indptr: Ints, weight: Floats, gradient: Floats) -> float:
    """Return the weighted sum over queries of (1 - cosine of ``target`` and the centred scores) / 2.

    If all scores of a query are equal, it adds 1/2 without a gradient; |target| is 1.
    The targets of each query sum to 0; queries whose targets are all 0 count nothing.
    """
    loss = 0.0
    for q in range(len(weight)):
        a, b, w = indptr[q], indptr[q + 1], weight[q]
        mean, dot, squares, largest = 0.0, 0.0, 0.0, 0.0
        for i in range(a, b):
            mean += scores[i]
        mean /= b - a
        for i in range(a, b):
            s = scores[i] - mean
            dot += target[i] * s
            squares += s * s
            largest = max(largest, abs(target[i]))
        gradient[a:b] = 0.0
        if largest == 0.0:
            continue
        size = np.sqrt(squares)
        if size <= 1e-12 * abs(mean):  # only rounding
            loss += 0.5 * w
            continue
        loss += 0.5 * w * (1.0 - dot / size)
        for i in range(a, b):
            gradient[i] = -0.5 * w / size * (target[i] - dot / squares * (scores[i] - mean))
    return loss
