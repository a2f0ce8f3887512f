"""LinearRisk: an objective summed over queries, as a function of a linear scorer's weights."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, NamedTuple, Self

import numpy as np

from rankwright.basics.array_types import Floats, Ints
from rankwright.data.queries import Queries
from rankwright.kernels.objectives.hinge_pairs import PairLabels, RankedScores
from rankwright.kernels.objectives.linear_pairs import compute_curvature_moments
from rankwright.kernels.scorers.linear_scores import compute_linear_scores, sum_query_columns, sum_weighted_columns
from rankwright.objectives.base import Evaluation, Objective, PreparedObjective
from rankwright.optimisers.loss_protocols import CuttingPlane
from rankwright.runtime.backends import Backend, Shards

_FEATURES_PER_STRIDE = 16  # with k times as many features, every k-th query makes up the approximate Hessian
_DOCS_PER_FEATURE = 32  # but no fewer documents than this for each feature


class _ObjectiveShard(NamedTuple):
    """A shard: the features of some queries' documents, and the objective prepared for them."""

    X: Floats
    indptr: Ints
    objective: PreparedObjective


class _EvaluatedShard(NamedTuple):
    """A shard with its scores, and the loss and the gradient of the objective at these scores."""

    shard: _ObjectiveShard
    scores: Floats
    loss: float
    gradient: Floats
    slope: float = 0.0  # the derivative along the step that led here
    step: Floats | None = None  # the change of the scores along it


_State = Shards[_EvaluatedShard]


class LinearRisk:
    """The mean objective of a linear scorer as a function of its weights w: scores are (X - mean) (w * factor).

    Parameters
    ----------
    objective : Objective
        Any objective; cutting planes need a convex one that is piecewise linear.
    shards : Shards of Queries
        The training data.
    factor : array of shape (n_features,)
        A factor for each weight before it acts on X.
    total : float
        The divisor of the sum over the queries.
    backend : Backend
        Where the work runs.
    mean : array of shape (n_features,), optional
        The centre of each column; 0 without. It changes no objective that depends on differences of scores only.
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
        self.shards: Shards[_ObjectiveShard] = backend.apply(_prepare_shard, shards, objective)

    def evaluate(self, w: Floats) -> _State:
        """Return the state of these weights."""
        coef = w * self.factor
        return self.backend.apply(_evaluate_shard, self.shards, coef, -float(coef @ self.mean))

    def move(self, state: _State, step: Floats) -> _State:
        """Return the state after a step: a change of the weights."""
        coef = step * self.factor
        return self.backend.apply(_move_by_weights, state, coef, -float(coef @ self.mean))

    def interpolate(self, state: _State, other: _State, t: float) -> _State:
        """Return the state at a part t of the line from one state to another: scores are linear in the weights."""
        return self.backend.apply(_interpolate, state, other, t)

    def loss(self, state: _State) -> float:
        """Return the loss of a state."""
        return float(self.backend.sum(attrgetter("loss"), state)) / self.total

    def derivative_between(self, state: _State, start: _State, end: _State) -> float:
        """Return the derivative at a state along the line from ``start`` to ``end``; it needs no product with X."""
        return float(self.backend.sum(_differentiate_on_line, state, start, end)) / self.total

    def directional_derivative(self, state: _State) -> float:
        """Return the derivative along the step that led to a state."""
        return float(self.backend.sum(attrgetter("slope"), state)) / self.total

    def gradient(self, state: _State) -> Floats:
        """Return the gradient by the weights."""
        gradient: Floats = self.backend.sum(_compute_gradient, state, self.mean) * (self.factor / self.total)
        return gradient

    def approximate_hessian(self, state: _State) -> Floats:
        """Return an approximate Hessian by the weights, from the diagonal of the Hessian by the scores.

        The same change of all scores of a query counts nothing. An objective without a diagonal counts as one whose
        diagonal is 1, so that the matrix is right up to a factor at best. With many features a sample of the queries
        represents all.
        """
        enough = self.n_docs // (_DOCS_PER_FEATURE * self.n_features)
        stride = max(1, min(self.n_features // _FEATURES_PER_STRIDE, enough))
        upper = self.backend.sum(_approximate_hessian, state, self.mean, stride)
        both = (np.triu(upper) + np.triu(upper, 1).T) * np.outer(self.factor, self.factor)
        matrix: Floats = both / self.total
        return matrix

    def hessian_factor(self, state: _State, n: int) -> Floats:
        """Return about n rows V, of a sample of the documents, such that V'V approximates the Hessian."""
        stride = max(1, -(-self.n_docs // n))
        rows: Floats = self.backend.concat(_factor_curvature, state, stride) * (self.factor / np.sqrt(self.total))
        return rows

    def linearise(self, state: _State) -> CuttingPlane:
        """Return the plane that touches the loss at a state."""
        sums = self.backend.sum(_linearise, state, self.mean) / self.total
        return CuttingPlane(float(sums[0]), sums[1:] * self.factor)

    @property
    def uses_ranking(self) -> bool:
        """Whether the objective depends on the ranking beside the scores."""
        return any(self.backend.gather(attrgetter("objective.uses_ranking"), self.shards))

    @property
    def is_sampled(self) -> bool:
        """Whether losses and gradients are estimates."""
        return any(self.backend.gather(attrgetter("objective.is_sampled"), self.shards))

    def with_seed(self, seed: tuple[int, ...]) -> Self:
        """Return the same risk with random numbers of this seed at every evaluation."""
        numbers = self.backend.distribute(range(len(self.shards)))
        return self._replace(self.backend.apply(_fix_seed, self.shards, numbers, seed))

    def with_sigma(self, sigma: float) -> Self:
        """Return the same risk with an objective smoothed by ``sigma``."""
        return self._replace(self.backend.apply(_smooth_objective, self.shards, sigma))

    def fix_ranking(self, state: _State) -> Self:
        """Return the same risk with an objective that keeps the ranking of a state, whatever the scores."""
        return self._replace(self.backend.apply(_fix_ranking, state))

    def _replace(self, shards: Shards[_ObjectiveShard]) -> Self:
        other = copy(self)
        other.shards = shards
        return other


def _prepare_shard(queries: Queries, objective: Objective) -> _ObjectiveShard:
    """Make a shard of some queries, with the objective prepared for them."""
    return _ObjectiveShard(queries.X, queries.indptr, objective.prepare(queries))


@dataclass(frozen=True, slots=True, eq=False)
class _SeededObjective(PreparedObjective):
    """An objective whose random numbers are the same at every call, as they come from one fixed seed."""

    objective: PreparedObjective
    seed: tuple[int, ...]

    def __call__(self, scores: Floats, rng: np.random.Generator | None = None) -> Evaluation:
        return self.objective(scores, np.random.default_rng(self.seed))


def _fix_seed(shard: _ObjectiveShard, number: int, seed: tuple[int, ...]) -> _ObjectiveShard:
    """Return a shard whose objective draws the same random numbers at every call."""
    return shard._replace(objective=_SeededObjective(shard.objective, (*seed, number)))


def _smooth_objective(shard: Any, sigma: float) -> _ObjectiveShard:
    """Return a shard with the objective smoothed by ``sigma``."""
    smoothed: _ObjectiveShard = shard._replace(objective=shard.objective.with_sigma(sigma))
    return smoothed


def _fix_ranking(here: Any) -> _ObjectiveShard:
    """Return a shard whose objective keeps what depends on the ranking, such as pair weights, as it is now."""
    fixed: _ObjectiveShard = here.shard._replace(objective=here.shard.objective.fix_ranking(here.scores))
    return fixed


def _evaluate_shard(shard: _ObjectiveShard, coef: Floats, intercept: float) -> _EvaluatedShard:
    """Score the documents of a shard by weights and an intercept, and evaluate the objective there."""
    scores = compute_linear_scores(shard.X, coef, intercept)
    return _EvaluatedShard(shard, scores, *shard.objective(scores)[:2])


def _move_by_weights(here: _EvaluatedShard, coef: Floats, intercept: float) -> _EvaluatedShard:
    """Return the shard evaluated after a change of the weights by ``coef`` and of the intercept by ``intercept``."""
    return _move_by_scores(here, compute_linear_scores(here.shard.X, coef, intercept), 1.0)


def _interpolate(here: _EvaluatedShard, there: _EvaluatedShard, t: float) -> _EvaluatedShard:
    """Return the shard evaluated on the line from ``here`` to ``there``: t = 0 is here, t = 1 is there."""
    # scores are sums of steps: rounding errors add up, and are not multiplied where t is beyond 1
    return _move_by_scores(here, there.scores - here.scores if there.step is None else there.step, t)


def _move_by_scores(here: _EvaluatedShard, step: Floats, t: float) -> _EvaluatedShard:
    """Return the shard evaluated after ``t`` times ``step`` is added to its scores."""
    scores = here.scores + t * step
    loss, gradient, _ = here.shard.objective(scores)
    with np.errstate(over="ignore", invalid="ignore"):  # a step that leads too far is not taken
        slope = float((gradient * step).sum())
    return _EvaluatedShard(here.shard, scores, loss, gradient, slope, step)


def _differentiate_on_line(here: _EvaluatedShard, start: _EvaluatedShard, end: _EvaluatedShard) -> float:
    """Return the derivative of the objective at ``here`` along the line from ``start`` to ``end``."""
    return float((here.gradient * (end.scores - start.scores)).sum())


def _compute_gradient(here: _EvaluatedShard, mean: Floats) -> Floats:
    """Return the gradient of a shard's objective by the weights of the centred features."""
    sums: Floats = sum_weighted_columns(here.gradient, here.shard.X) - float(here.gradient.sum()) * mean
    return sums


def _linearise(here: _EvaluatedShard, mean: Floats) -> Floats:
    """Return the plane that touches a shard's objective at its weights: the offset, then the slope by each weight."""
    offset = here.loss - float((here.gradient * here.scores).sum())
    return np.append(offset, _compute_gradient(here, mean))


def _compute_curvature(here: _EvaluatedShard) -> Floats:
    """Return the diagonal of the objective's Hessian by the scores, at least 0; ones if the objective has none."""
    found = here.shard.objective(here.scores).curvature
    return np.ones(len(here.scores)) if found is None else np.maximum(found, 0.0)


def _approximate_hessian(here: _EvaluatedShard, mean: Floats, stride: int) -> Floats:
    """Return the upper triangle of about the Hessian of a shard's objective, from every ``stride``-th query."""
    shard, none = here.shard, np.empty(0)
    labels = PairLabels(np.empty(0, np.int64), none, np.ones(len(shard.indptr) - 1), shard.indptr)
    ranked = RankedScores(here.scores, np.empty(0, np.int64), _compute_curvature(here), none)
    return compute_curvature_moments(shard.X, mean, labels, ranked, stride)


def _factor_curvature(here: _EvaluatedShard, stride: int) -> Floats:
    """Return rows V, of every ``stride``-th document, for which V'V is about the Hessian by the weights."""
    shard, curvature = here.shard, _compute_curvature(here)
    starts, sizes = shard.indptr[:-1], np.diff(shard.indptr)
    total = np.add.reduceat(curvature, starts)
    share = np.divide(1.0, total, out=np.zeros(len(total)), where=total > 0.0)
    centers = sum_query_columns(curvature * np.repeat(share, sizes), shard.X, shard.indptr)
    taken = np.arange(0, len(curvature), stride)
    query = np.repeat(np.arange(len(sizes)), sizes)[taken]
    rows: Floats = (shard.X[taken] - centers[query]) * np.sqrt(stride * curvature[taken])[:, np.newaxis]
    return rows
