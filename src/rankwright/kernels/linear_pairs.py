"""Pair sums of linear scores: scores, sweep and the sums over documents in one call, a query at a time.

The rows of a query are still in the cache when they are read again. Columns are centred as they are read: this changes
no difference of two documents, and keeps the precision where a mean is large against the spread.
"""

from __future__ import annotations

import numpy as np

from rankwright.kernels.jit import Floats, kernel
from rankwright.kernels.pair_products import query_product
from rankwright.kernels.pairs import N_TOTALS, Labels, Ranked, longest_query, make_workspace, query_sums


@kernel
def _score(X: Floats, mean: Floats, coef: Floats, start: int, stop: int, out: Floats) -> None:
    """``(X - mean) @ coef`` of some rows; four fixed partial sums a row."""
    d = X.shape[1]
    whole = d - d % 4
    for i in range(start, stop):
        row = X[i]
        s0, s1, s2, s3 = 0.0, 0.0, 0.0, 0.0
        for j in range(0, whole, 4):
            s0 += (row[j] - mean[j]) * coef[j]
            s1 += (row[j + 1] - mean[j + 1]) * coef[j + 1]
            s2 += (row[j + 2] - mean[j + 2]) * coef[j + 2]
            s3 += (row[j + 3] - mean[j + 3]) * coef[j + 3]
        for j in range(whole, d):
            s0 += (row[j] - mean[j]) * coef[j]
        out[i] = (s0 + s1) + (s2 + s3)


@kernel
def _gather(X: Floats, mean: Floats, by_row: Floats, start: int, stop: int, out: Floats) -> None:
    """Add ``by_row @ (X - mean)`` of some rows to ``out``."""
    for i in range(start, stop):
        value = by_row[i]
        if value != 0.0:
            row = X[i]
            for j in range(len(out)):
                out[j] += value * (row[j] - mean[j])


@kernel
def sums_at(X: Floats, mean: Floats, coef: Floats, labels: Labels, ranked: Ranked, delta: float) -> Floats:
    """As ``pair_sums`` of the scores by ``coef``, which it fills in; then the derivatives by ``coef``."""
    totals, gradient = np.zeros(N_TOTALS + X.shape[1]), np.empty(X.shape[0])
    space, indptr = make_workspace(labels.indptr), labels.indptr
    for q in range(len(indptr) - 1):
        _score(X, mean, coef, indptr[q], indptr[q + 1], ranked.scores)
        query_sums(labels, ranked, q, delta, space, gradient, totals)
        _gather(X, mean, gradient, indptr[q], indptr[q + 1], totals[N_TOTALS:])
    return totals


@kernel
def product_at(X: Floats, mean: Floats, direction: Floats, labels: Labels, ranked: Ranked, delta: float) -> Floats:
    """The second derivative by ``coef`` of the sum of h where ``sums_at`` has been, times a direction."""
    out, tree, indptr = np.zeros(X.shape[1]), np.empty(longest_query(labels.indptr) + 1), labels.indptr
    v, by_row = np.empty(X.shape[0]), np.empty(X.shape[0])
    for q in range(len(indptr) - 1):
        near = labels.weight[q] * ranked.curvature[indptr[q] : indptr[q + 1]].sum()
        if near > 0.0:
            _score(X, mean, direction, indptr[q], indptr[q + 1], v)
            query_product(labels, ranked, q, delta, tree, v, by_row)
            _gather(X, mean, by_row, indptr[q], indptr[q + 1], out)
    return out


@kernel
def scores_along(X: Floats, mean: Floats, direction: Floats) -> Floats:
    """``(X - mean) @ direction``."""
    out = np.empty(X.shape[0])
    _score(X, mean, direction, 0, X.shape[0], out)
    return out


@kernel
def pair_covariance(X: Floats, mean: Floats, factor: Floats, labels: Labels, by_document: Floats, every: int) -> Floats:
    """Sum over the queries of sum_i c_i z_i z_i', z = (x - their weighted mean) factor, c_i the weight of i's pairs.

    Up to half of what is between the grades, this is the sum over pairs of (z_i - z_j)(z_i - z_j)'. Only every so many
    queries count. The last number of the last row is the sum of the pairs' weights.
    """
    d, rows, weight, indptr = X.shape[1], 4, labels.weight, labels.indptr
    out, own = np.zeros((d + 1, d)), np.zeros(d)
    z, c = np.zeros((rows, d)), np.zeros(rows)
    for q in range(0, len(indptr) - 1, every):
        total = 0.0
        own[:] = 0.0
        for i in range(indptr[q], indptr[q + 1]):
            total += by_document[i]
            for j in range(d):
                own[j] += by_document[i] * (X[i, j] - mean[j])
        if total == 0.0 or weight[q] == 0.0:
            continue
        out[d, d - 1] += weight[q] * total / 2.0
        own /= total
        for first in range(indptr[q], indptr[q + 1], rows):
            for r in range(rows):
                i = min(first + r, indptr[q + 1] - 1)
                c[r] = weight[q] * by_document[i] if first + r < indptr[q + 1] else 0.0
                for j in range(d):
                    z[r, j] = (X[i, j] - mean[j] - own[j]) * factor[j]
            for a in range(d):
                c0, c1, c2, c3 = c[0] * z[0, a], c[1] * z[1, a], c[2] * z[2, a], c[3] * z[3, a]
                sums, z0, z1, z2, z3 = out[a, a:], z[0, a:], z[1, a:], z[2, a:], z[3, a:]
                for b in range(len(sums)):
                    sums[b] += (c0 * z0[b] + c1 * z1[b]) + (c2 * z2[b] + c3 * z3[b])
    return out
