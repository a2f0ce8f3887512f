"""Losses of pairs of documents with different grades, in score space."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rankwright.data import Floats, Ints, Queries
from rankwright.errors import InputError
from rankwright.kernels.pairs import SMOOTH, Labels, Ranked, grade_places, pair_sums, pair_weights
from rankwright.objectives.base import Evaluation


@dataclass(frozen=True, slots=True)
class Hinge:
    """The sum over pairs l_i > l_j of one query of max(1 - (s_i - s_j), 0).

    Parameters
    ----------
    per : "pair" or "query"
        Whether pairs count alike, or queries: the sum, or the mean over the pairs of each query.

    Examples
    --------
    >>> queries = Queries.from_arrays(np.zeros((3, 1)), [2, 1, 0], qid=[1, 1, 1])
    >>> Hinge().bind(queries)(np.array([1.5, 0.0, 0.5]))
    Evaluation(loss=1.5, gradient=array([ 0., -1.,  1.]), curvature=None)
    """

    per: str = "pair"

    def bind(self, queries: Queries) -> BoundPairs:
        """Find the grades, and count the pairs."""
        return BoundPairs(_labels(queries, self.per), 0.0)


@dataclass(frozen=True, slots=True)
class SquaredHinge:
    """The sum over pairs l_i > l_j of one query of max(1 - (s_i - s_j), 0)^2.

    Parameters
    ----------
    per : "pair" or "query"
        Whether pairs count alike, or queries: the sum, or the mean over the pairs of each query.

    Examples
    --------
    >>> queries = Queries.from_arrays(np.zeros((2, 1)), [1, 0], qid=[1, 1])
    >>> SquaredHinge().bind(queries)(np.array([0.0, 0.5])).loss
    2.25
    """

    per: str = "pair"

    def bind(self, queries: Queries) -> BoundPairs:
        """Find the grades, and count the pairs."""
        return BoundPairs(_labels(queries, self.per), np.inf)


@dataclass(frozen=True, slots=True, eq=False)
class BoundPairs:
    """A loss of pairs, bound: the hinge with no smoothing, or squared with smoothing without end."""

    labels: Labels
    smoothing: float

    def __call__(self, scores: Floats, rng: np.random.Generator | None = None) -> Evaluation:
        """The loss at these scores, and its gradient, in O(n log n) a query."""
        n = len(self.labels.place)
        gradient, ranked = np.empty(n), Ranked(scores, np.arange(n), np.empty(n), np.empty(n))
        loss = float(pair_sums(self.labels, ranked, self.smoothing, gradient)[SMOOTH])
        if self.smoothing == 0.0:
            return Evaluation(loss, gradient)
        weight = np.repeat(self.labels.weight, np.diff(self.labels.indptr))
        return Evaluation(2.0 * loss, 2.0 * gradient, 2.0 * weight * ranked.curvature)


def query_pairs(y: Floats, indptr: Ints) -> Floats:
    """The number of pairs of each query.

    >>> query_pairs(np.array([0.0, 1.0, 1.0, 2.0]), np.array([0, 3, 4])).tolist()
    [2.0, 0.0]
    """
    return pair_weights(Labels(grade_places(y, indptr), np.ones(len(y)), np.ones(len(indptr) - 1), indptr))[0]


def pair_query_weights(queries: Queries, per: str) -> Floats:
    """What each pair of a query weighs, so that pairs, or queries, count alike."""
    if per == "pair":
        return queries.query_weight
    if per != "query":
        raise InputError(f"per={per!r}; expected 'pair' or 'query'")
    pairs = query_pairs(queries.y, queries.indptr)
    weights: Floats = np.divide(queries.query_weight, pairs, out=np.zeros(len(pairs)), where=pairs > 0)
    return weights


def _labels(queries: Queries, per: str) -> Labels:
    places = grade_places(queries.y, queries.indptr)
    return Labels(places, np.ones(queries.n_docs), pair_query_weights(queries, per), queries.indptr)
