"""RankBoost (Freund et al., 2003), figure 1, with D_t of every pair and the weak learner of section 3.2."""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import numpy as np
from tests.reference.pairwise import pairs

GRID = 2.0**32  # alpha is a multiple of its inverse
SAME = 1e-12
MOST = 1 - 1e-9  # of |r|, for a finite alpha


class Round(NamedTuple):
    """The weak ranking of a round: 1 where feature > threshold, low <= threshold < high, and ``missing`` without it."""

    feature: int
    low: float
    high: float
    missing: int
    r: float
    alpha: float
    Z: float
    loss: float  # the sum of D_1 exp(H(x_j) - H(x_i))
    scores: np.ndarray


def initial(y, indptr, query_weight, per):
    """Rows of pairs, the higher grade first, and D_1."""
    listed = np.array(list(pairs(y, indptr)), dtype=int).reshape(-1, 2)
    query = np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))[listed[:, 0]]
    D = np.asarray(query_weight, dtype=float)[query]
    if per == "query":
        D = D / np.bincount(query, minlength=len(indptr) - 1)[query]
    return listed, D / D.sum() if len(D) and D.sum() > 0 else D


def weak_rankings(X, f, low):
    """The two weak rankings of a threshold: documents that lack the feature get 0, or 1."""
    return [np.where(np.isnan(X[:, f]), q, X[:, f] > low).astype(float) for q in (0, 1)]


def every_cut(X):
    """(feature, low, high) of every threshold between neighbouring values, and below all where some are missing."""
    cuts = []
    for f, column in enumerate(X.T):
        values = np.unique(column[~np.isnan(column)])
        below = [-np.inf] if len(values) and np.isnan(column).any() else []
        cuts += [(f, *ends) for ends in pairwise([*below, *values])]
    return cuts


def rankboost(X, y, indptr, query_weight, per, n_estimators, cuts=None):
    """Yield rounds. Of equal thresholds the first is taken, and 0 for a missing value where 1 is not better."""
    (listed, D), cuts = initial(y, indptr, query_weight, per), every_cut(X) if cuts is None else cuts
    i, j = listed[:, 0], listed[:, 1]
    H, loss = np.zeros(len(X)), 1.0
    for _ in range(n_estimators):
        r = np.array([[(D * (h[i] - h[j])).sum() for h in weak_rankings(X, f, low)] for f, low, _ in cuts])
        if len(cuts) == 0 or np.abs(r).max() < SAME or loss <= SAME:
            return
        size = np.abs(r).max(axis=1)
        c = int(np.argmax(size >= size.max() - SAME))
        q = int(abs(r[c, 1]) > abs(r[c, 0]) + SAME)
        bounded = np.clip(r[c, q], -MOST, MOST)
        alpha = round(0.5 * np.log((1 + bounded) / (1 - bounded)) * GRID) / GRID
        h = weak_rankings(X, *cuts[c][:2])[q]
        D = D * np.exp(alpha * (h[j] - h[i]))
        Z = D.sum()
        D, H, loss = D / Z, H + alpha * h, loss * Z
        yield Round(*cuts[c], q, r[c, q], alpha, Z, loss, H)
