"""LinearRisk: the mean of an objective over queries as a function of a linear scorer's weights."""

from __future__ import annotations

from collections.abc import Sequence
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
    """And with scores."""

    part: _Part
    scores: Floats


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
        """The scores of all documents."""
        return self.backend.apply(_place, self.parts, w * self.factor)

    def plane(self, place: Shards[_Placed]) -> Plane:
        """The loss, linear as it is there."""
        sums = self.backend.sum(_plane, place) / self.total
        return Plane(float(sums[0]), sums[1:] * self.factor)

    def along(self, place: Shards[_Placed], other: Shards[_Placed], t: float) -> tuple[float, float]:
        """The loss between two places, and its derivative; no products with X."""
        loss, slope = self.backend.sum(_along, _paired(place, other), t) / self.total
        return float(loss), float(slope)

    def mixed(self, place: Shards[_Placed], other: Shards[_Placed], t: float) -> Shards[_Placed]:
        """Scores mix as weights do."""
        return Shards(tuple(_mix(pair, t) for pair in _paired(place, other).parts))


def _paired(place: Shards[_Placed], other: Shards[_Placed]) -> Shards[Sequence[_Placed]]:
    return Shards(tuple(zip(place.parts, other.parts, strict=True)))


def _bind(queries: Queries, objective: Objective) -> _Part:
    return _Part(queries.X, objective.bind(queries))


def _place(part: _Part, coef: Floats) -> _Placed:
    return _Placed(part, linear_scores(part.X, coef, 0.0))


def _plane(placed: _Placed) -> Floats:
    loss, gradient, _ = placed.part.objective(placed.scores)
    offset = loss - float((gradient * placed.scores).sum())
    return np.append(offset, weighted_columns(gradient, placed.part.X))


def _mix(pair: Sequence[_Placed], t: float) -> _Placed:
    here, there = pair
    return _Placed(here.part, here.scores + t * (there.scores - here.scores))


def _along(pair: Sequence[_Placed], t: float) -> Floats:
    here, there = pair
    loss, gradient, _ = here.part.objective(_mix(pair, t).scores)
    return np.array([loss, float((gradient * (there.scores - here.scores)).sum())])
