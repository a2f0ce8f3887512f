"""LinearRisk: an objective summed over queries, as a function of a linear scorer's weights."""

from __future__ import annotations

from copy import copy
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


class _Part(NamedTuple):
    """Some queries with the objective bound to them."""

    X: Floats
    indptr: Ints
    objective: PreparedObjective


class _Placed(NamedTuple):
    """And with scores, and the objective at these."""

    part: _Part
    scores: Floats
    loss: float
    gradient: Floats
    slope: float = 0.0  # along the way it was found on
    way: Floats | None = None  # how the scores changed on it


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
        self.parts: Shards[_Part] = backend.apply(_bind, shards, objective)

    def at(self, w: Floats) -> Shards[_Placed]:
        """The objective at these weights."""
        coef = w * self.factor
        return self.backend.apply(_place, self.parts, coef, -float(coef @ self.mean))

    def moved(self, place: Shards[_Placed], way: Floats) -> Shards[_Placed]:
        """The objective where a way, a change of the weights, leads from a place."""
        coef = way * self.factor
        return self.backend.apply(_move, place, coef, -float(coef @ self.mean))

    def mixed(self, place: Shards[_Placed], other: Shards[_Placed], t: float) -> Shards[_Placed]:
        """The objective between: scores mix as weights do."""
        return self.backend.apply(_mix, place, other, t)

    def loss(self, place: Shards[_Placed]) -> float:
        """The loss there."""
        return float(self.backend.sum(attrgetter("loss"), place)) / self.total

    def slope(self, place: Shards[_Placed], start: Shards[_Placed], end: Shards[_Placed]) -> float:
        """Its derivative along a way, by the part of the way; no products with X."""
        return float(self.backend.sum(_slope, place, start, end)) / self.total

    def way_slope(self, place: Shards[_Placed]) -> float:
        """The same at a place that was moved to, or mixed of the ends of a way."""
        return float(self.backend.sum(attrgetter("slope"), place)) / self.total

    def gradient(self, place: Shards[_Placed]) -> Floats:
        """The derivative by the weights."""
        gradient: Floats = self.backend.sum(_columns, place, self.mean) * (self.factor / self.total)
        return gradient

    def second_derivative(self, place: Shards[_Placed]) -> Floats:
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

    def curvature_rows(self, place: Shards[_Placed], n: int) -> Floats:
        """Return some rows V, every so many documents, with V'V about what ``second_derivative`` returns."""
        every = max(1, -(-self.n_docs // n))
        rows: Floats = self.backend.concat(_curvature_rows, place, every) * (self.factor / np.sqrt(self.total))
        return rows

    def plane(self, place: Shards[_Placed]) -> CuttingPlane:
        """The loss, linear as it is there."""
        sums = self.backend.sum(_plane, place, self.mean) / self.total
        return CuttingPlane(float(sums[0]), sums[1:] * self.factor)

    @property
    def is_ranked(self) -> bool:
        """Whether the objective depends on the ranking beside the scores."""
        return bool(self.backend.sum(_is_ranked, self.parts))

    @property
    def is_sampled(self) -> bool:
        """Whether losses and gradients are estimates."""
        return bool(self.backend.sum(_is_sampled, self.parts))

    def seeded(self, seed: tuple[int, ...]) -> Self:
        """The same with random numbers of this seed wherever it is evaluated."""
        numbers = self.backend.distribute(range(len(self.parts)))
        return self._with(self.backend.apply(_seed, self.parts, numbers, seed))

    def smoothed(self, sigma: float) -> Self:
        """The same with an objective that is smoothed so much."""
        return self._with(self.backend.apply(_smooth, self.parts, sigma))

    def frozen(self, place: Shards[_Placed]) -> Self:
        """The same with an objective that sees the ranking of this place, whatever the scores."""
        return self._with(self.backend.apply(_freeze, place))

    def _with(self, parts: Shards[_Part]) -> Self:
        other = copy(self)
        other.parts = parts
        return other


def _bind(queries: Queries, objective: Objective) -> _Part:
    return _Part(queries.X, queries.indptr, objective.prepare(queries))


def _is_ranked(part: _Part) -> int:
    return int(hasattr(part.objective, "frozen"))


def _is_sampled(part: _Part) -> int:
    return int(getattr(part.objective, "is_sampled", False))


class _Seeded(NamedTuple):
    """An objective with its random numbers."""

    objective: PreparedObjective
    seed: tuple[int, ...]

    def __call__(self, scores: Floats, rng: np.random.Generator | None = None) -> Evaluation:
        return self.objective(scores, np.random.default_rng(self.seed))


def _seed(part: _Part, number: int, seed: tuple[int, ...]) -> _Part:
    return part._replace(objective=_Seeded(part.objective, (*seed, number)))


def _smooth(part: Any, sigma: float) -> _Part:
    smoothed: _Part = part._replace(objective=part.objective.smoothed(sigma))
    return smoothed


def _freeze(placed: Any) -> _Part:
    frozen: _Part = placed.part._replace(objective=placed.part.objective.frozen(placed.scores))
    return frozen


def _place(part: _Part, coef: Floats, intercept: float) -> _Placed:
    scores = linear_scores(part.X, coef, intercept)
    return _Placed(part, scores, *part.objective(scores)[:2])


def _move(here: _Placed, coef: Floats, intercept: float) -> _Placed:
    return _on_way(here, linear_scores(here.part.X, coef, intercept), 1.0)


def _mix(here: _Placed, there: _Placed, t: float) -> _Placed:
    # scores that are sums of ways: rounding adds up from step to step, and is not multiplied by steps beyond an end
    return _on_way(here, there.scores - here.scores if there.way is None else there.way, t)


def _on_way(here: _Placed, way: Floats, t: float) -> _Placed:
    scores = here.scores + t * way
    loss, gradient, _ = here.part.objective(scores)
    with np.errstate(over="ignore", invalid="ignore"):  # a way that leads too far is not gone
        slope = float((gradient * way).sum())
    return _Placed(here.part, scores, loss, gradient, slope, way)


def _slope(here: _Placed, start: _Placed, end: _Placed) -> float:
    return float((here.gradient * (end.scores - start.scores)).sum())


def _columns(placed: _Placed, mean: Floats) -> Floats:
    sums: Floats = weighted_columns(placed.gradient, placed.part.X) - float(placed.gradient.sum()) * mean
    return sums


def _plane(placed: _Placed, mean: Floats) -> Floats:
    offset = placed.loss - float((placed.gradient * placed.scores).sum())
    return np.append(offset, _columns(placed, mean))


def _curvature(placed: _Placed) -> Floats:
    """Return the diagonal of the second derivative by the scores, where it is positive; 1 where there is none."""
    found = placed.part.objective(placed.scores).curvature
    return np.ones(len(placed.scores)) if found is None else np.maximum(found, 0.0)


def _second_derivative(placed: _Placed, mean: Floats, every: int) -> Floats:
    part, none = placed.part, np.empty(0)
    labels = Labels(np.empty(0, np.int64), none, np.ones(len(part.indptr) - 1), part.indptr)
    ranked = Ranked(placed.scores, np.empty(0, np.int64), _curvature(placed), none)
    return curvature_moments(part.X, mean, labels, ranked, every)


def _curvature_rows(placed: _Placed, every: int) -> Floats:
    part, curvature = placed.part, _curvature(placed)
    starts, sizes = part.indptr[:-1], np.diff(part.indptr)
    total = np.add.reduceat(curvature, starts)
    share = np.divide(1.0, total, out=np.zeros(len(total)), where=total > 0.0)
    centers = query_columns(curvature * np.repeat(share, sizes), part.X, part.indptr)
    taken = np.arange(0, len(curvature), every)
    query = np.repeat(np.arange(len(sizes)), sizes)[taken]
    rows: Floats = (part.X[taken] - centers[query]) * np.sqrt(every * curvature[taken])[:, np.newaxis]
    return rows
