"""Pair sums of linear scores: scores, sweep and the sums over documents in one call, a query at a time.

The rows of a query are still in the cache when they are read again. Columns are centred as they are read: this changes
no difference of two documents, and keeps the precision where a mean is large against the spread.
"""

from __future__ import annotations

import numpy as np

from rankwright.kernels.jit import Floats, kernel
from rankwright.kernels.objectives.pair_products import query_product
from rankwright.kernels.objectives.pair_sums import (
    EXACT,
    N_TOTALS,
    SMOOTH,
    Labels,
    Ranked,
    longest_query,
    make_workspace,
    query_hinge,
    query_sums,
)


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
    """As ``pair_sums`` of the scores by ``coef``, which it fills in; the loss itself; the derivatives by ``coef``."""
    totals, gradient = np.zeros(N_TOTALS + X.shape[1]), np.empty(X.shape[0])
    space, indptr = make_workspace(labels.indptr), labels.indptr
    for q in range(len(indptr) - 1):
        _score(X, mean, coef, indptr[q], indptr[q + 1], ranked.scores)
        query_sums(labels, ranked, q, delta, space, gradient, totals)
        if 0.0 < delta < np.inf:
            totals[EXACT] += query_hinge(labels, q, space)
        _gather(X, mean, gradient, indptr[q], indptr[q + 1], totals[N_TOTALS:])
    if not 0.0 < delta < np.inf:
        totals[EXACT] = totals[SMOOTH]
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
def sum_rows(X: Floats, mean: Floats, by_row: Floats) -> Floats:
    """``by_row @ (X - mean)``."""
    out = np.zeros(X.shape[1])
    _gather(X, mean, by_row, 0, X.shape[0], out)
    return out


_ROWS = 4


@kernel
def curvature_moments(X: Floats, mean: Floats, labels: Labels, ranked: Ranked, every: int) -> Floats:
    """About the second derivative by ``coef`` of the sum of h; its upper triangle.

    Sum over the queries of w_q sum_i c_i z_i z_i', where c_i is document i's sum of h'' and z = x less the query's mean
    with these weights. This is exact but for what two grades whose pairs are all in the zone differ by in the mean:
    half of that is missing. Only every so many queries count, times as much.
    """
    d, indptr = X.shape[1], labels.indptr
    out, own, z, c = np.zeros((d, d)), np.zeros(d), np.zeros((_ROWS, d)), np.zeros(_ROWS)
    for q in range(0, len(indptr) - 1, every):
        start, stop = indptr[q], indptr[q + 1]
        total = ranked.curvature[start:stop].sum()
        if labels.weight[q] == 0.0 or total <= 0.0:
            continue
        own[:] = 0.0
        _gather(X, mean, ranked.curvature, start, stop, own)
        own /= total
        filled = 0
        for i in range(start, stop):
            if ranked.curvature[i] != 0.0:
                c[filled] = every * labels.weight[q] * ranked.curvature[i]
                for j in range(d):
                    z[filled, j] = X[i, j] - mean[j] - own[j]
                filled += 1
                if filled == _ROWS:
                    _add_products(c, z, out)
                    filled = 0
        if filled > 0:
            c[filled:] = 0.0
            _add_products(c, z, out)
    return out


@kernel
def _add_products(c: Floats, z: Floats, out: Floats) -> None:
    """Add the upper triangle of c z z' of four rows."""
    for a in range(z.shape[1]):
        c0, c1, c2, c3 = c[0] * z[0, a], c[1] * z[1, a], c[2] * z[2, a], c[3] * z[3, a]
        sums, z0, z1, z2, z3 = out[a, a:], z[0, a:], z[1, a:], z[2, a:], z[3, a:]
        for b in range(len(sums)):
            sums[b] += (c0 * z0[b] + c1 * z1[b]) + (c2 * z2[b] + c3 * z3[b])
