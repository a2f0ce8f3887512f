"""PairLoss: the mean loss of pairs of documents as a function of a linear scorer's weights."""

from __future__ import annotations

from operator import attrgetter
from typing import NamedTuple

import numpy as np

from rankwright.basics.array_types import Floats, Ints
from rankwright.data.grouping import query_ranges
from rankwright.kernels.objectives.linear_pairs import curvature_moments, product_at, scores_along, sum_rows, sums_at
from rankwright.kernels.objectives.pair_sums import (
    ALPHA,
    EXACT,
    N_TOTALS,
    NEAR,
    SMOOTH,
    Labels,
    Ranked,
    grade_places,
    pair_sums,
    pair_weights,
)
from rankwright.runtime.backends import Backend, Serial, Shards, n_shards
from rankwright.scorers.scaling import compute_moments

_COLUMNS = 48  # of so many the outline takes all queries, of twice as many every other, at the price of some products
_ROWS = 4  # the documents a column that such a sample must have, or else the outline knows too little


class _PairShard(NamedTuple):
    """Some queries."""

    X: Floats
    labels: Labels


class _RankedPairShard(NamedTuple):
    """A part ranked, and its sums over pairs."""

    part: _PairShard
    ranked: Ranked
    totals: Floats


class PairPoint(NamedTuple):
    """The mean pair loss at some weights."""

    w: Floats
    smoothing: float
    exact: float  # the loss itself
    loss: float  # smoothed
    gradient: Floats  # of the smoothed loss
    bound: float  # C bound - |C gradient|^2 / 2 is a lower bound on the minimum, the value of a dual point
    bend: float  # the mean second derivative of a pair's loss
    shards: Shards[_RankedPairShard]


class PairLine(NamedTuple):
    """The scores of a point, and their changes along a direction."""

    shards: Shards[tuple[_RankedPairShard, Floats]]
    point: PairPoint


class PairLoss:
    """The weighted mean over pairs (i, j) of documents of one query, l_i > l_j, of a loss of 1 - (s_i - s_j).

    The loss is max(u, 0), smoothed or not, or max(u, 0)^2 with ``smoothing=inf``. The weight of a pair is
    ``query_weight[q] * cost[j]``, the scores are s = X (w * factor).

    Parameters
    ----------
    X : array of shape (n_docs, n_features), float32 or float64
        The documents, those of a query adjacent. Not copied.
    y : array of shape (n_docs,)
        Their grades.
    indptr : array of shape (n_queries + 1,)
        Query q owns the rows ``indptr[q]`` to ``indptr[q + 1]``.
    cost : array of shape (n_docs,), optional
        What a pair costs whose lower document this is.
    query_weight : array of shape (n_queries,), optional
        Weights of the queries.
    factor : array of shape (n_features,), optional
        What weights are multiplied by to act on X.
    mean : array of shape (n_features,), optional
        Where columns are centred for precision; changes nothing else.
    backend : Backend, optional
        Where the work runs.

    Attributes
    ----------
    total : float
        The summed weight of all pairs, by which the sum is divided.
    """

    def __init__(
        self,
        X: Floats,
        y: Floats,
        indptr: Ints,
        cost: Floats | None = None,
        query_weight: Floats | None = None,
        factor: Floats | None = None,
        mean: Floats | None = None,
        backend: Backend | None = None,
    ) -> None:
        m, d = len(indptr) - 1, X.shape[1]
        cost = np.ones(len(y)) if cost is None else np.asarray(cost, dtype=np.float64)
        weight = np.ones(m) if query_weight is None else np.asarray(query_weight, dtype=np.float64)
        place = grade_places(y, indptr)
        self.n_features = d
        self._every = max(1, min(d // _COLUMNS, len(y) // (_ROWS * d)))
        self.factor = np.ones(d) if factor is None else factor
        self.mean = compute_moments(X)[0] if mean is None else mean
        self.backend = Serial() if backend is None else backend
        parts = []
        for start, stop in query_ranges(indptr, n_shards(len(y))):
            rows, own = slice(int(indptr[start]), int(indptr[stop])), indptr[start : stop + 1] - indptr[start]
            parts.append(_PairShard(X[rows], Labels(place[rows], cost[rows], weight[start:stop], own)))
        self.shards = self.backend.distribute(parts)
        self.total = float(self.backend.sum(_total, self.shards))
        self._scale = 1.0 / self.total if self.total > 0.0 else 0.0

    def evaluate(self, w: Floats, smoothing: float, near: PairPoint | None = None) -> PairPoint:
        """The loss and its derivatives at w; from the ranking of a point that is near they are found faster."""
        coef = w * self.factor
        if near is None:
            placed = self.backend.apply(_placed, self.shards, self.mean, coef, smoothing)
        else:
            placed = self.backend.apply(_moved, near.shards, self.mean, coef, smoothing)
        totals = self.backend.sum(attrgetter("totals"), placed) * self._scale
        exact, loss, alpha, bend = (float(totals[k]) for k in (EXACT, SMOOTH, ALPHA, NEAR))
        gradient = totals[N_TOTALS:] * self.factor
        if smoothing == np.inf:  # twice u^2 / 2
            return PairPoint(w, smoothing, 2 * exact, 2 * loss, 2 * gradient, 2 * alpha - 2 * loss, 2 * bend, placed)
        return PairPoint(w, smoothing, exact, loss, gradient, alpha, bend, placed)

    def hessian_product(self, point: PairPoint, direction: Floats) -> Floats:
        """The second derivative of the smoothed loss at a point, times a direction."""
        raw = self.backend.sum(_product, point.shards, self.mean, direction * self.factor, point.smoothing)
        times = 2.0 if point.smoothing == np.inf else 1.0
        product: Floats = times * self._scale * raw * self.factor
        return product

    def prepare_line(self, point: PairPoint, direction: Floats) -> PairLine:
        """The line through a point; what is evaluated along it needs no products with X."""
        return PairLine(self.backend.apply(_line, point.shards, self.mean, direction * self.factor), point)

    def evaluate_on_line(self, line: PairLine, t: float) -> tuple[float, float]:
        """The smoothed loss and its derivative along the line, t directions from the point."""
        sums = self.backend.sum(_along, line.shards, t, line.point.smoothing)
        times = 2.0 if line.point.smoothing == np.inf else 1.0
        return times * self._scale * float(sums[0]), times * self._scale * float(sums[1])

    def gradient_by_smoothing(self, point: PairPoint) -> Floats:
        """The gradient of the smoothed loss at a point, differentiated by the smoothing."""
        drift: Floats = self._scale * self.backend.sum(_drift, point.shards, self.mean) * self.factor
        return drift

    def approximate_hessian(self, point: PairPoint) -> Floats:
        """About the second derivative of the smoothed loss; with many features, of a sample of the queries."""
        upper = self.backend.sum(_moments, point.shards, self.mean, self._every)
        times = 2.0 if point.smoothing == np.inf else 1.0
        both = (np.triu(upper) + np.triu(upper, 1).T) * np.outer(self.factor, self.factor)
        outline: Floats = times * self._scale * both
        return outline


def _total(part: _PairShard) -> float:
    return float((pair_weights(part.labels)[0] * part.labels.weight).sum())


def _placed(part: _PairShard, mean: Floats, coef: Floats, smoothing: float) -> _RankedPairShard:
    return _place(part, np.arange(len(part.X)), mean, coef, smoothing)


def _moved(placed: _RankedPairShard, mean: Floats, coef: Floats, smoothing: float) -> _RankedPairShard:
    return _place(placed.part, placed.ranked.order.copy(), mean, coef, smoothing)


def _place(part: _PairShard, order: Ints, mean: Floats, coef: Floats, smoothing: float) -> _RankedPairShard:
    n = len(order)
    ranked = Ranked(np.empty(n), order, np.empty(n), np.empty(n))
    return _RankedPairShard(part, ranked, sums_at(part.X, mean, coef, part.labels, ranked, smoothing))


def _product(placed: _RankedPairShard, mean: Floats, direction: Floats, smoothing: float) -> Floats:
    return product_at(placed.part.X, mean, direction, placed.part.labels, placed.ranked, smoothing)


def _line(placed: _RankedPairShard, mean: Floats, direction: Floats) -> tuple[_RankedPairShard, Floats]:
    return placed, scores_along(placed.part.X, mean, direction)


def _along(line: tuple[_RankedPairShard, Floats], t: float, smoothing: float) -> Floats:
    placed, change = line
    scores, order, n = placed.ranked.scores, placed.ranked.order, len(change)
    gradient, moved = np.empty(n), Ranked(scores + t * change, order.copy(), np.empty(n), np.empty(n))
    totals = pair_sums(placed.part.labels, moved, smoothing, gradient)
    return np.array([totals[SMOOTH], (gradient * change).sum()])


def _drift(placed: _RankedPairShard, mean: Floats) -> Floats:
    return sum_rows(placed.part.X, mean, placed.ranked.drift)


def _moments(placed: _RankedPairShard, mean: Floats, every: int) -> Floats:
    return curvature_moments(placed.part.X, mean, placed.part.labels, placed.ranked, every)
