"""LinearRisk: an objective summed over queries, as a function of a linear scorer's weights."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, NamedTuple, Self

import numpy as np

from rankwright.basics.array_types import Floats, Ints
from rankwright.data.queries import Queries
from rankwright.kernels.objectives.linear_pairs import curvature_moments
from rankwright.kernels.objectives.pair_sums import Labels, Ranked
from rankwright.kernels.scorers.linear_scores import linear_scores, query_columns, weighted_columns
from rankwright.objectives.base import Evaluation, Objective, PreparedObjective
from rankwright.optimisers.cutting_plane import CuttingPlane
from rankwright.runtime.backends import Backend, Shards

_COLUMNS = 16  # of so many the second derivative takes all queries, of twice as many every other: a few steps' time
_DOCS_PER_COLUMN = 32  # but no fewer documents than this for each feature


class _ObjectiveShard(NamedTuple):
    """Some queries with the objective bound to them."""

    X: Floats
    indptr: Ints
    objective: PreparedObjective


class _EvaluatedShard(NamedTuple):
    """And with scores, and the objective at these."""

    part: _ObjectiveShard
    scores: Floats
    loss: float
    gradient: Floats
    slope: float = 0.0  # along the way it was found on
    way: Floats | None = None  # how the scores changed on it


_Evaluated = Shards[_EvaluatedShard]


class LinearRisk:
    """An objective divided by ``total``, at scores (X - mean) (w * factor).

    Parameters
    ----------
    objective : Objective
        Any; cutting planes ask for a convex one that is linear between kinks.
    shards : Shards of Queries
        The training data.
    factor : array of shape (n_features,)
        What weights are multiplied by to act on X.
    total : float
        What the sum over the queries is divided by.
    backend : Backend
        Where the work runs.
    mean : array of shape (n_features,), optional
        Where columns are centred; 0 without. Objectives of rankings do not notice.
    """

    def __init__(
        self,
        objective: Objective,
        shards: Shards[Queries],
        factor: Floats,
        total: float,
        backend: Backend,
        mean: Floats | None = None,
    ) -> None:
        self.backend, self.factor, self.total = backend, factor, total
        self.n_features = len(factor)
        self.mean = np.zeros(len(factor)) if mean is None else mean
        self.n_docs = int(backend.sum(attrgetter("n_docs"), shards))
        self.shards: Shards[_ObjectiveShard] = backend.apply(_bind, shards, objective)

    def evaluate(self, w: Floats) -> _Evaluated:
        """The objective at these weights."""
        coef = w * self.factor
        return self.backend.apply(_place, self.shards, coef, -float(coef @ self.mean))

    def move(self, place: _Evaluated, way: Floats) -> _Evaluated:
        """The objective where a way, a change of the weights, leads from a place."""
        coef = way * self.factor
        return self.backend.apply(_move, place, coef, -float(coef @ self.mean))

    def interpolate(self, place: _Evaluated, other: _Evaluated, t: float) -> _Evaluated:
        """The objective between: scores mix as weights do."""
        return self.backend.apply(_mix, place, other, t)

    def loss(self, place: _Evaluated) -> float:
        """The loss there."""
        return float(self.backend.sum(attrgetter("loss"), place)) / self.total

    def derivative_between(self, place: _Evaluated, start: _Evaluated, end: _Evaluated) -> float:
        """Its derivative along a way, by the part of the way; no products with X."""
        return float(self.backend.sum(_slope, place, start, end)) / self.total

    def directional_derivative(self, place: _Evaluated) -> float:
        """The same at a place that was moved to, or mixed of the ends of a way."""
        return float(self.backend.sum(attrgetter("slope"), place)) / self.total

    def gradient(self, place: _Evaluated) -> Floats:
        """The derivative by the weights."""
        gradient: Floats = self.backend.sum(_columns, place, self.mean) * (self.factor / self.total)
        return gradient

    def approximate_hessian(self, place: _Evaluated) -> Floats:
        """Return about the second derivative by the weights: what the diagonal of that by the scores tells of it.

        Scores of a query that all move alike change nothing. An objective without a diagonal counts as one whose
        diagonal is 1, so that the matrix is right up to a factor at best. With many features a sample of the queries
        stands for all.
        """
        enough = self.n_docs // (_DOCS_PER_COLUMN * self.n_features)
        every = max(1, min(self.n_features // _COLUMNS, enough))
        upper = self.backend.sum(_second_derivative, place, self.mean, every)
        both = (np.triu(upper) + np.triu(upper, 1).T) * np.outer(self.factor, self.factor)
        matrix: Floats = both / self.total
        return matrix

    def hessian_factor(self, place: _Evaluated, n: int) -> Floats:
        """Return some rows V, every so many documents, with V'V about what ``second_derivative`` returns."""
        every = max(1, -(-self.n_docs // n))
        rows: Floats = self.backend.concat(_curvature_rows, place, every) * (self.factor / np.sqrt(self.total))
        return rows

    def linearise(self, place: _Evaluated) -> CuttingPlane:
        """The loss, linear as it is there."""
        sums = self.backend.sum(_plane, place, self.mean) / self.total
        return CuttingPlane(float(sums[0]), sums[1:] * self.factor)

    @property
    def is_ranked(self) -> bool:
        """Whether the objective depends on the ranking beside the scores."""
        return bool(self.backend.sum(_is_ranked, self.shards))

    @property
    def is_sampled(self) -> bool:
        """Whether losses and gradients are estimates."""
        return bool(self.backend.sum(_is_sampled, self.shards))

    def with_seed(self, seed: tuple[int, ...]) -> Self:
        """The same with random numbers of this seed wherever it is evaluated."""
        numbers = self.backend.distribute(range(len(self.shards)))
        return self._with(self.backend.apply(_seed, self.shards, numbers, seed))

    def with_smoothing(self, sigma: float) -> Self:
        """The same with an objective that is smoothed so much."""
        return self._with(self.backend.apply(_smooth, self.shards, sigma))

    def with_ranking_of(self, place: _Evaluated) -> Self:
        """The same with an objective that sees the ranking of this place, whatever the scores."""
        return self._with(self.backend.apply(_freeze, place))

    def _with(self, parts: Shards[_ObjectiveShard]) -> Self:
        other = copy(self)
        other.shards = parts
        return other


def _bind(queries: Queries, objective: Objective) -> _ObjectiveShard:
    return _ObjectiveShard(queries.X, queries.indptr, objective.prepare(queries))


def _is_ranked(part: _ObjectiveShard) -> int:
    return int(part.objective.uses_ranking)


def _is_sampled(part: _ObjectiveShard) -> int:
    return int(part.objective.is_sampled)


@dataclass(frozen=True, slots=True, eq=False)
class _Seeded(PreparedObjective):
    """An objective with its random numbers."""

    objective: PreparedObjective
    seed: tuple[int, ...]

    def __call__(self, scores: Floats, rng: np.random.Generator | None = None) -> Evaluation:
        return self.objective(scores, np.random.default_rng(self.seed))


def _seed(part: _ObjectiveShard, number: int, seed: tuple[int, ...]) -> _ObjectiveShard:
    return part._replace(objective=_Seeded(part.objective, (*seed, number)))


def _smooth(part: Any, sigma: float) -> _ObjectiveShard:
    smoothed: _ObjectiveShard = part._replace(objective=part.objective.with_sigma(sigma))
    return smoothed


def _freeze(placed: Any) -> _ObjectiveShard:
    frozen: _ObjectiveShard = placed.part._replace(objective=placed.part.objective.fix_ranking(placed.scores))
    return frozen


def _place(part: _ObjectiveShard, coef: Floats, intercept: float) -> _EvaluatedShard:
    scores = linear_scores(part.X, coef, intercept)
    return _EvaluatedShard(part, scores, *part.objective(scores)[:2])


def _move(here: _EvaluatedShard, coef: Floats, intercept: float) -> _EvaluatedShard:
    return _on_way(here, linear_scores(here.part.X, coef, intercept), 1.0)


def _mix(here: _EvaluatedShard, there: _EvaluatedShard, t: float) -> _EvaluatedShard:
    # scores that are sums of ways: rounding adds up from step to step, and is not multiplied by steps beyond an end
    return _on_way(here, there.scores - here.scores if there.way is None else there.way, t)


def _on_way(here: _EvaluatedShard, way: Floats, t: float) -> _EvaluatedShard:
    scores = here.scores + t * way
    loss, gradient, _ = here.part.objective(scores)
    with np.errstate(over="ignore", invalid="ignore"):  # a way that leads too far is not gone
        slope = float((gradient * way).sum())
    return _EvaluatedShard(here.part, scores, loss, gradient, slope, way)


def _slope(here: _EvaluatedShard, start: _EvaluatedShard, end: _EvaluatedShard) -> float:
    return float((here.gradient * (end.scores - start.scores)).sum())


def _columns(placed: _EvaluatedShard, mean: Floats) -> Floats:
    sums: Floats = weighted_columns(placed.gradient, placed.part.X) - float(placed.gradient.sum()) * mean
    return sums


def _plane(placed: _EvaluatedShard, mean: Floats) -> Floats:
    offset = placed.loss - float((placed.gradient * placed.scores).sum())
    return np.append(offset, _columns(placed, mean))


def _curvature(placed: _EvaluatedShard) -> Floats:
    """Return the diagonal of the second derivative by the scores, where it is positive; 1 where there is none."""
    found = placed.part.objective(placed.scores).curvature
    return np.ones(len(placed.scores)) if found is None else np.maximum(found, 0.0)


def _second_derivative(placed: _EvaluatedShard, mean: Floats, every: int) -> Floats:
    part, none = placed.part, np.empty(0)
    labels = Labels(np.empty(0, np.int64), none, np.ones(len(part.indptr) - 1), part.indptr)
    ranked = Ranked(placed.scores, np.empty(0, np.int64), _curvature(placed), none)
    return curvature_moments(part.X, mean, labels, ranked, every)


def _curvature_rows(placed: _EvaluatedShard, every: int) -> Floats:
    part, curvature = placed.part, _curvature(placed)
    starts, sizes = part.indptr[:-1], np.diff(part.indptr)
    total = np.add.reduceat(curvature, starts)
    share = np.divide(1.0, total, out=np.zeros(len(total)), where=total > 0.0)
    centers = query_columns(curvature * np.repeat(share, sizes), part.X, part.indptr)
    taken = np.arange(0, len(curvature), every)
    query = np.repeat(np.arange(len(sizes)), sizes)[taken]
    rows: Floats = (part.X[taken] - centers[query]) * np.sqrt(every * curvature[taken])[:, np.newaxis]
    return rows
