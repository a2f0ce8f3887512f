"""The smoothed hinge over pairs for linear scores: scores, sweep and sums over documents in one call, query by query.

The rows of a query are still in the cache when they are read again. Columns are centred as they are read: this changes
no difference of two documents, and keeps the precision where a mean is large against the spread.
"""

from __future__ import annotations

import numpy as np

from rankwright.kernels.jit import Floats, inner_kernel, kernel
from rankwright.kernels.objectives.hinge_pairs import (
    HINGE_LOSS,
    N_TOTALS,
    SMOOTH_LOSS,
    PairLabels,
    RankedScores,
    make_pair_workspace,
    multiply_query_hessian,
    sum_query_hinge,
    sum_query_pairs,
)
from rankwright.kernels.scorers.linear_scores import ROWS_AT_ONCE, add_outer_products


@kernel
def _score_rows(X: Floats, mean: Floats, coef: Floats, start: int, stop: int, out: Floats) -> None:
    """Write the scores ``(X - mean) @ coef`` of the rows ``start`` to ``stop`` to ``out``."""
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


@inner_kernel
def _add_weighted_rows(X: Floats, mean: Floats, by_row: Floats, start: int, stop: int, out: Floats) -> None:
    """Add the weighted sum ``by_row @ (X - mean)`` of the rows ``start`` to ``stop`` to ``out``."""
    for i in range(start, stop):
        value = by_row[i]
        if value != 0.0:
            row = X[i]
            for j in range(len(out)):
                out[j] += value * (row[j] - mean[j])


@inner_kernel
def _sum_range(values: Floats, start: int, stop: int) -> float:
    """Return the sum of the values ``start`` to ``stop``, in order."""
    total = 0.0
    for i in range(start, stop):
        total += values[i]
    return total


@kernel
def sum_linear_pairs(
    X: Floats, mean: Floats, coef: Floats, labels: PairLabels, ranked: RankedScores, delta: float
) -> Floats:
    """Return the sums of ``sum_pairs``, the hinge loss and the gradient by ``coef``, for scores by ``coef``."""
    totals, gradient = np.zeros(N_TOTALS + X.shape[1]), np.empty(X.shape[0])
    space, indptr = make_pair_workspace(labels.indptr), labels.indptr
    for q in range(len(indptr) - 1):
        _score_rows(X, mean, coef, indptr[q], indptr[q + 1], ranked.scores)
        sum_query_pairs(labels, ranked, q, delta, space, gradient, totals)
        if 0.0 < delta < np.inf:
            totals[HINGE_LOSS] += sum_query_hinge(labels, q, space)
        _add_weighted_rows(X, mean, gradient, indptr[q], indptr[q + 1], totals[N_TOTALS:])
    if not 0.0 < delta < np.inf:
        totals[HINGE_LOSS] = totals[SMOOTH_LOSS]
    return totals


@kernel
def multiply_linear_hessian(
    X: Floats, mean: Floats, direction: Floats, labels: PairLabels, ranked: RankedScores, delta: float
) -> Floats:
    """Return the product of a direction and the Hessian, by ``coef``, of the smoothed hinge loss of all pairs."""
    out, space, indptr = np.zeros(X.shape[1]), make_pair_workspace(labels.indptr), labels.indptr
    v, by_row = np.empty(X.shape[0]), np.empty(X.shape[0])
    for q in range(len(indptr) - 1):
        near = labels.weight[q] * _sum_range(ranked.curvature, indptr[q], indptr[q + 1])
        if near > 0.0:
            _score_rows(X, mean, direction, indptr[q], indptr[q + 1], v)
            multiply_query_hessian(labels, ranked, q, delta, space, v, by_row)
            _add_weighted_rows(X, mean, by_row, indptr[q], indptr[q + 1], out)
    return out


@kernel
def score_centred(X: Floats, mean: Floats, direction: Floats) -> Floats:
    """Return the scores ``(X - mean) @ direction`` of all rows."""
    out = np.empty(X.shape[0])
    _score_rows(X, mean, direction, 0, X.shape[0], out)
    return out


@kernel
def sum_centred_rows(X: Floats, mean: Floats, by_row: Floats) -> Floats:
    """Return the weighted sum of the centred rows, ``by_row @ (X - mean)``."""
    out = np.zeros(X.shape[1])
    _add_weighted_rows(X, mean, by_row, 0, X.shape[0], out)
    return out


@kernel
def compute_curvature_moments(X: Floats, mean: Floats, labels: PairLabels, ranked: RankedScores, every: int) -> Floats:
    """Return the upper triangle of an approximate Hessian of the smoothed hinge loss by ``coef``.

    It is the sum over the queries of w_q sum_i c_i z_i z_i', where c_i is document i's sum of h'' and z = x less the
    query's mean with these weights. It is exact but for the difference of the means of two grades with all pairs in
    the zone: half of it is missing. Only every ``every``-th query counts, ``every`` times.
    """
    d, indptr = X.shape[1], labels.indptr
    out, own, z, c = np.zeros((d, d)), np.zeros(d), np.zeros((ROWS_AT_ONCE, d)), np.zeros(ROWS_AT_ONCE)
    for q in range(0, len(indptr) - 1, every):
        start, stop = indptr[q], indptr[q + 1]
        total = _sum_range(ranked.curvature, start, stop)
        if labels.weight[q] == 0.0 or total <= 0.0:
            continue
        own[:] = 0.0
        _add_weighted_rows(X, mean, ranked.curvature, start, stop, own)
        for j in range(d):
            own[j] /= total
        filled = 0
        for i in range(start, stop):
            if ranked.curvature[i] != 0.0:
                c[filled] = every * labels.weight[q] * ranked.curvature[i]
                for j in range(d):
                    z[filled, j] = X[i, j] - mean[j] - own[j]
                filled += 1
                if filled == ROWS_AT_ONCE:
                    add_outer_products(c, z, out)
                    filled = 0
        if filled > 0:
            c[filled:] = 0.0
            add_outer_products(c, z, out)
    return out
