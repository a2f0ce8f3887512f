"""PairLoss: the mean loss of pairs of documents, as a function of a linear scorer's weights."""

from __future__ import annotations

from operator import attrgetter
from typing import NamedTuple

import numpy as np

from rankwright.basics.array_types import Floats, Ints
from rankwright.data.grouping import query_ranges
from rankwright.data.queries import Queries
from rankwright.kernels.objectives.hinge_pairs import (
    CURVATURE,
    HINGE_LOSS,
    N_TOTALS,
    SLOPE,
    SMOOTH_LOSS,
    PairLabels,
    RankedScores,
    find_grade_places,
    sum_pair_costs,
    sum_pairs,
)
from rankwright.kernels.objectives.linear_pairs import (
    compute_curvature_moments,
    multiply_linear_hessian,
    score_centred,
    sum_centred_rows,
    sum_linear_pairs,
)
from rankwright.runtime.backends import Backend, Serial, Shards, count_shards
from rankwright.scorers.linear import StandardScaling

_FEATURES_PER_STRIDE = 48  # with k times as many features, every k-th query makes up the approximate Hessian
_DOCS_PER_FEATURE = 4  # but no fewer documents than this for each feature


class _PairShard(NamedTuple):
    """A shard: the features of some queries' documents, and their grades, costs and weights."""

    X: Floats
    labels: PairLabels


class _RankedPairShard(NamedTuple):
    """A shard ranked by its scores, with the sums of the loss and its derivatives over its pairs."""

    shard: _PairShard
    ranked: RankedScores
    totals: Floats


class PairPoint(NamedTuple):
    """The mean loss of pairs at some weights, with its gradient and the ranked documents."""

    w: Floats
    smoothing: float
    loss: float
    smoothed_loss: float
    gradient: Floats  # of the smoothed loss
    dual_term: float  # C dual_term - |C gradient|^2 / 2 is the value of a dual point: a lower bound on the minimum
    curvature: float  # the mean second derivative of a pair's loss
    shards: Shards[_RankedPairShard]


class PairLine(NamedTuple):
    """The scores of the documents at a point, and their changes along a direction, for a line search."""

    shards: Shards[tuple[_RankedPairShard, Floats]]
    point: PairPoint


class PairLoss:
    """The mean hinge loss of pairs of unequally graded documents of a query, as a function of linear weights.

    The loss of a pair (i, j) with grades l_i > l_j is that of u = 1 - (s_i - s_j): max(u, 0), smoothed or not, or
    max(u, 0)^2 with ``smoothing=inf``. The mean is weighted: the weight of a pair is ``query_weight[q] *
    higher_cost[i] * cost[j]``, the
    scores are s = X (w * factor).

    Parameters
    ----------
    queries : Queries
        The documents and their grades, those of a query adjacent. Not copied.
    cost : array of shape (n_docs,), optional
        The cost of a pair whose lower document this is.
    query_weight : array of shape (n_queries,), optional
        Weights of the queries in the loss; ones by default.
    higher_cost : array of shape (n_docs,), optional
        A factor of the cost of a pair whose higher document this is.
    factor : array of shape (n_features,), optional
        A factor for each weight before it acts on X.
    mean : array of shape (n_features,), optional
        The centre of each column, for precision; it changes nothing else.
    backend : Backend, optional
        Where the work runs.

    Attributes
    ----------
    total : float
        The summed weight of all pairs, by which the sum is divided.
    """

    def __init__(
        self,
        queries: Queries,
        cost: Floats | None = None,
        query_weight: Floats | None = None,
        factor: Floats | None = None,
        mean: Floats | None = None,
        backend: Backend | None = None,
        higher_cost: Floats | None = None,
    ) -> None:
        m, d, y, indptr = len(queries), queries.n_features, queries.y, queries.indptr
        cost = np.ones(len(y)) if cost is None else np.asarray(cost, dtype=np.float64)
        weight = np.ones(m) if query_weight is None else np.asarray(query_weight, dtype=np.float64)
        place = find_grade_places(y, indptr)
        self.n_features = d
        self._stride = max(1, min(d // _FEATURES_PER_STRIDE, len(y) // (_DOCS_PER_FEATURE * d)))
        self.factor = np.ones(d) if factor is None else factor
        self.backend = Serial() if backend is None else backend
        self.mean = StandardScaling.fit(queries, self.backend).mean if mean is None else mean
        labels = []
        for start, stop in query_ranges(indptr, count_shards(len(y))):
            rows, own = slice(int(indptr[start]), int(indptr[stop])), indptr[start : stop + 1] - indptr[start]
            higher = None if higher_cost is None else higher_cost[rows]
            labels.append(PairLabels(place[rows], cost[rows], weight[start:stop], own, higher))
        shards = self.backend.scatter(queries)
        self.shards = self.backend.apply(_make_shard, shards, self.backend.distribute(labels))
        self.total = float(self.backend.sum(_sum_pair_weights, self.shards))
        self._scale = 1.0 / self.total if self.total > 0.0 else 0.0

    def evaluate(self, w: Floats, smoothing: float, near: PairPoint | None = None) -> PairPoint:
        """Return the loss and its derivatives at w; they are found faster from the ranking of a near point."""
        coef = w * self.factor
        if near is None:
            shards = self.backend.apply(_score, self.shards, self.mean, coef, smoothing)
        else:
            shards = self.backend.apply(_rescore, near.shards, self.mean, coef, smoothing)
        totals = self.backend.sum(attrgetter("totals"), shards) * self._scale
        loss, smoothed, dual, curvature = (float(totals[k]) for k in (HINGE_LOSS, SMOOTH_LOSS, SLOPE, CURVATURE))
        gradient = totals[N_TOTALS:] * self.factor
        if smoothing == np.inf:  # the kernels' loss is u^2 / 2
            loss, smoothed, gradient, curvature = 2 * loss, 2 * smoothed, 2 * gradient, 2 * curvature
            dual = 2 * dual - smoothed
        return PairPoint(w, smoothing, loss, smoothed, gradient, dual, curvature, shards)

    def hessian_product(self, point: PairPoint, direction: Floats) -> Floats:
        """Return the Hessian of the smoothed loss at a point, times a direction."""
        raw = self.backend.sum(_multiply_hessian, point.shards, self.mean, direction * self.factor, point.smoothing)
        product: Floats = self._factor_of(point) * raw * self.factor
        return product

    def prepare_line(self, point: PairPoint, direction: Floats) -> PairLine:
        """Return the line through a point; evaluations along it need no products with X."""
        return PairLine(self.backend.apply(_prepare_line, point.shards, self.mean, direction * self.factor), point)

    def evaluate_on_line(self, line: PairLine, t: float) -> tuple[float, float]:
        """Return the smoothed loss and its derivative along the line, t directions from the point."""
        sums = self.backend.sum(_evaluate_on_line, line.shards, t, line.point.smoothing)
        factor = self._factor_of(line.point)
        return factor * float(sums[0]), factor * float(sums[1])

    def gradient_by_smoothing(self, point: PairPoint) -> Floats:
        """Return the derivative of the smoothed loss's gradient by the smoothing."""
        found: Floats = (
            self._scale * self.backend.sum(_differentiate_by_smoothing, point.shards, self.mean) * self.factor
        )
        return found

    def approximate_hessian(self, point: PairPoint) -> Floats:
        """Return an approximate Hessian of the smoothed loss; with many features, of a sample of the queries."""
        upper = self.backend.sum(_approximate_hessian, point.shards, self.mean, self._stride)
        both = (np.triu(upper) + np.triu(upper, 1).T) * np.outer(self.factor, self.factor)
        hessian: Floats = self._factor_of(point) * both
        return hessian

    def _factor_of(self, point: PairPoint) -> float:
        """Return the factor of a sum over pairs: the squared loss is twice the kernels' u^2 / 2."""
        return (2.0 if point.smoothing == np.inf else 1.0) * self._scale


def _make_shard(queries: Queries, labels: PairLabels) -> _PairShard:
    """Return a shard of some queries."""
    return _PairShard(queries.X, labels)


def _sum_pair_weights(shard: _PairShard) -> float:
    """Return the total weight of the pairs of a shard."""
    return float((sum_pair_costs(shard.labels)[0] * shard.labels.weight).sum())


def _score(shard: _PairShard, mean: Floats, coef: Floats, smoothing: float) -> _RankedPairShard:
    """Score and rank the documents of a shard by weights of the features, and sum over its pairs."""
    return _rank(shard, np.arange(len(shard.X)), mean, coef, smoothing)


def _rescore(here: _RankedPairShard, mean: Floats, coef: Floats, smoothing: float) -> _RankedPairShard:
    """Score and rank a ranked shard anew by other weights, from its present ranking."""
    return _rank(here.shard, here.ranked.order.copy(), mean, coef, smoothing)


def _rank(shard: _PairShard, order: Ints, mean: Floats, coef: Floats, smoothing: float) -> _RankedPairShard:
    """Score and rank a shard by weights of the features, sorting ``order`` in place, and sum over its pairs."""
    n = len(order)
    ranked = RankedScores(np.empty(n), order, np.empty(n), np.empty(n))
    return _RankedPairShard(shard, ranked, sum_linear_pairs(shard.X, mean, coef, shard.labels, ranked, smoothing))


def _multiply_hessian(here: _RankedPairShard, mean: Floats, direction: Floats, smoothing: float) -> Floats:
    """Return the product of the Hessian of a shard's summed loss, by the weights, and a direction."""
    return multiply_linear_hessian(here.shard.X, mean, direction, here.shard.labels, here.ranked, smoothing)


def _prepare_line(here: _RankedPairShard, mean: Floats, direction: Floats) -> tuple[_RankedPairShard, Floats]:
    """Return a ranked shard with the changes of its scores along a direction of the weights."""
    return here, score_centred(here.shard.X, mean, direction)


def _evaluate_on_line(line: tuple[_RankedPairShard, Floats], t: float, smoothing: float) -> Floats:
    """Return a shard's smoothed loss and its derivative by ``t``, after a step of length ``t`` along a line."""
    start, change = line
    scores, order, n = start.ranked.scores, start.ranked.order, len(change)
    gradient, moved = np.empty(n), RankedScores(scores + t * change, order.copy(), np.empty(n), np.empty(n))
    totals = sum_pairs(start.shard.labels, moved, smoothing, gradient)
    return np.array([totals[SMOOTH_LOSS], (gradient * change).sum()])


def _differentiate_by_smoothing(here: _RankedPairShard, mean: Floats) -> Floats:
    """Return the derivative, by the smoothing parameter, of the gradient of a shard's summed loss."""
    return sum_centred_rows(here.shard.X, mean, here.ranked.gradient_by_delta)


def _approximate_hessian(here: _RankedPairShard, mean: Floats, stride: int) -> Floats:
    """Return the upper triangle of about the Hessian of a shard's summed loss, from every ``stride``-th query."""
    return compute_curvature_moments(here.shard.X, mean, here.shard.labels, here.ranked, stride)
