"""The search FRank's is measured against: Tsai et al.'s figure 2 as written, every stump tried on every pair."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

import rankwright as rw
from rankwright.basics.array_types import Floats, Ints
from rankwright.optimisers.weak.threshold_stumps import FeatureBins, round_weight

_SAME = 1e-12  # losses that differ by less are equal, up to rounding


class PairList(NamedTuple):
    """All pairs of documents l_i > l_j of the same query, and D (1): they add up to 1."""

    i: Ints
    j: Ints
    D: Floats


def list_pairs(queries: rw.Queries) -> PairList:
    """The pairs, one by one."""
    i, j, D = [], [], []
    for part in queries:
        higher, lower = np.nonzero(queries.y[part, None] > queries.y[part])
        i.append(part.start + higher)
        j.append(part.start + lower)
        D.append(np.full(len(higher), 1.0 / max(len(higher), 1)))
    weight = np.concatenate(D)
    return PairList(np.concatenate(i), np.concatenate(j), weight / weight.sum())


class Tried(NamedTuple):
    """A stump with its step (3), and the loss (2) with it."""

    feature: int
    threshold: float
    alpha: float
    loss: float


def list_stumps(bins: FeatureBins) -> list[tuple[int, float]]:
    """Every feature and threshold."""
    return [
        (f, float(t)) for f in range(bins.n_features) for t in bins.thresholds[bins.starts[f] : bins.starts[f + 1] - 2]
    ]


def try_all(
    X: Floats, pairs: PairList, scores: Floats, stumps: list[tuple[int, float]], smoothing: float
) -> list[Tried]:
    """Figure 2, step (a) as written: for every stump alpha, and then the loss, each from all pairs."""
    o = scores[pairs.i] - scores[pairs.j]
    W = pairs.D * np.exp(0.5 * o) / (1.0 + np.exp(o)) ** 1.5  # (4)
    tried = []
    for feature, threshold in stumps:
        h = (X[:, feature] > np.float32(threshold)).astype(np.float64)
        way = h[pairs.i] - h[pairs.j]
        right, wrong = W[way > 0].sum(), W[way < 0].sum()
        alpha = round_weight(0.5 * math.log((right + smoothing) / (wrong + smoothing)))
        loss = (
            pairs.D * (1.0 - 1.0 / np.sqrt(1.0 + np.exp(-(o + alpha * way))))
        ).sum()  # no BLAS: it would take threads
        tried.append(Tried(feature, threshold, alpha, float(loss)))
    return tried


def search_naively(
    queries: rw.Queries, pairs: PairList, bins: FeatureBins, n_estimators: int, smoothing: float
) -> list[Tried]:
    """Figure 2: the stump of every round, the first of equals."""
    scores, winners, stumps = np.zeros(queries.n_docs), [], list_stumps(bins)
    for _ in range(n_estimators):
        tried = try_all(queries.X, pairs, scores, stumps, smoothing)
        least = min(each.loss for each in tried)
        winner = next(each for each in tried if each.loss <= least + _SAME)
        scores += winner.alpha * (queries.X[:, winner.feature] > np.float32(winner.threshold))
        winners.append(winner)
    return winners
