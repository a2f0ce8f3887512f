"""LinearRisk: the mean of an objective over queries as a function of a linear scorer's weights."""

from __future__ import annotations

from operator import attrgetter
from typing import NamedTuple

import numpy as np

from rankwright.backends import Backend, Shards
from rankwright.data import Floats, Queries
from rankwright.kernels.linear import linear_scores, weighted_columns
from rankwright.objectives.base import BoundObjective, Objective
from rankwright.optimisers.cutting_plane import Plane


class _Part(NamedTuple):
    """Some queries with the objective bound to them."""

    X: Floats
    objective: BoundObjective


class _Placed(NamedTuple):
    """And with scores, and the objective at these."""

    part: _Part
    scores: Floats
    loss: float
    gradient: Floats


class LinearRisk:
    """An objective that is linear in the scores between kinks, divided by ``total``, at scores X (w * factor).

    Parameters
    ----------
    objective : Objective
        A convex one whose derivatives add up to 0 within each query, as of all that is made of pairs.
    shards : Shards of Queries
        The training data.
    factor : array of shape (n_features,)
        What weights are multiplied by to act on X.
    total : float
        What the sum over the queries is divided by.
    backend : Backend
        Where the work runs.
    """

    def __init__(
        self, objective: Objective, shards: Shards[Queries], factor: Floats, total: float, backend: Backend
    ) -> None:
        self.backend, self.factor, self.total = backend, factor, total
        self.n_features = len(factor)
        self.parts: Shards[_Part] = backend.apply(_bind, shards, objective)

    def at(self, w: Floats) -> Shards[_Placed]:
        """The objective at these weights."""
        return self.backend.apply(_place, self.parts, w * self.factor)

    def mixed(self, place: Shards[_Placed], other: Shards[_Placed], t: float) -> Shards[_Placed]:
        """The objective between: scores mix as weights do."""
        return self.backend.apply(_mix, _joined(place, other), t)

    def loss(self, place: Shards[_Placed]) -> float:
        """The loss there."""
        return float(self.backend.sum(attrgetter("loss"), place)) / self.total

    def slope(self, place: Shards[_Placed], start: Shards[_Placed], end: Shards[_Placed]) -> float:
        """Its derivative along a way, by the part of the way; no products with X."""
        return float(self.backend.sum(_slope, _joined(place, start, end))) / self.total

    def plane(self, place: Shards[_Placed]) -> Plane:
        """The loss, linear as it is there."""
        sums = self.backend.sum(_plane, place) / self.total
        return Plane(float(sums[0]), sums[1:] * self.factor)


def _joined(*places: Shards[_Placed]) -> Shards[tuple[_Placed, ...]]:
    return Shards(tuple(zip(*(place.parts for place in places), strict=True)))


def _bind(queries: Queries, objective: Objective) -> _Part:
    return _Part(queries.X, objective.bind(queries))


def _place(part: _Part, coef: Floats) -> _Placed:
    return _evaluated(part, linear_scores(part.X, coef, 0.0))


def _mix(places: tuple[_Placed, _Placed], t: float) -> _Placed:
    here, there = places
    return _evaluated(here.part, here.scores + t * (there.scores - here.scores))


def _evaluated(part: _Part, scores: Floats) -> _Placed:
    loss, gradient, _ = part.objective(scores)
    return _Placed(part, scores, loss, gradient)


def _slope(places: tuple[_Placed, _Placed, _Placed]) -> float:
    here, start, end = places
    return float((here.gradient * (end.scores - start.scores)).sum())


def _plane(placed: _Placed) -> Floats:
    offset = placed.loss - float((placed.gradient * placed.scores).sum())
    return np.append(offset, weighted_columns(placed.gradient, placed.part.X))
