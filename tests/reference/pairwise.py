"""Pair losses with every pair written out."""

from __future__ import annotations

from itertools import pairwise

import numpy as np


def pairs(y, indptr):
    """All (higher, lower) rows of one query."""
    for a, b in pairwise(indptr):
        for i in range(a, b):
            for j in range(a, b):
                if y[i] > y[j]:
                    yield i, j


def h(u, delta):
    """The rounded hinge, its first and its second derivative."""
    if delta == np.inf:
        return (u**2 / 2, u, 1.0) if u > 0 else (0.0, 0.0, 0.0)
    if u >= delta / 2 and u > 0:
        return u, 1.0, 0.0
    if u <= -delta / 2 or delta == 0:
        return 0.0, 0.0, 0.0
    return (u + delta / 2) ** 2 / (2 * delta), (u + delta / 2) / delta, 1 / delta


def pair_sums(scores, y, indptr, cost, weight, delta):
    """Sums of the hinge, h, h' and h''; gradient by score; Hessian by score."""
    n = len(scores)
    totals, gradient, hessian = np.zeros(4), np.zeros(n), np.zeros((n, n))
    query = np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))
    for i, j in pairs(y, indptr):
        u = 1 - (scores[i] - scores[j])
        value, slope, bend = h(u, delta)
        c = cost[j] * weight[query[i]]
        totals += c * np.array([value if delta == np.inf else max(u, 0.0), value, slope, bend])
        gradient[i] -= c * slope
        gradient[j] += c * slope
        e = np.zeros(n)
        e[i], e[j] = 1, -1
        hessian += c * bend * np.outer(e, e)
    return totals, gradient, hessian


def differences(X, y, indptr):
    """x_i - x_j of every pair, a row each."""
    rows = [X[i].astype(np.float64) - X[j] for i, j in pairs(y, indptr)]
    return np.array(rows).reshape(-1, X.shape[1])
