"""Working sets of rankings, of which PermuRank learns, as documents of a Ranking SVM."""

from __future__ import annotations

from itertools import accumulate
from typing import NamedTuple

import numpy as np

from rankwright.basics.array_types import Floats, Ints
from rankwright.data.queries import Queries
from rankwright.kernels.scorers.linear_scores import linear_scores, query_columns
from rankwright.measures import Measure
from rankwright.objectives.rankings import Rankings, prepare_rankings
from rankwright.optimisers.pair_loss import PairLoss
from rankwright.optimisers.weight_space import WeightSpace
from rankwright.runtime.backends import Backend, Shards


class _Part(NamedTuple):
    """Some queries, their documents in the space of the weights, and their rankings."""

    X: Floats
    coordinates: Floats
    rankings: Rankings
    by_grade: bool  # whether perfect is by descending grade


class _Found(NamedTuple):
    """Of each query one ranking: what tells it from others, its query-level features, and what it loses."""

    keys: list[bytes]
    features: Floats
    lost: Floats


class _Set:
    """Different rankings of one query."""

    __slots__ = ("features", "keys", "lost")

    def __init__(self) -> None:
        self.keys: set[bytes] = set()
        self.features: list[Floats] = []
        self.lost: list[float] = []

    def add(self, found: _Found, q: int) -> bool:
        """Whether the ranking of query q is new; if it is, keep it."""
        if found.keys[q] in self.keys:
            return False
        self.keys.add(found.keys[q])
        self.features.append(found.features[q])
        self.lost.append(float(found.lost[q]))
        return True


class WorkingSets:
    """The perfect rankings B and the imperfect ones C of every query that has any.

    Parameters
    ----------
    train : Queries
        The training data.
    measure : Measure
        Tells perfect from imperfect.
    phi : "pairs" or "ranks"
        What query-level features are made of.
    perfect : "measure" or "grades"
        Which rankings are perfect.
    factor : array of shape (n_features,)
        What weights are multiplied by to act on the features.
    backend : Backend
        Where the work runs.
    space : WeightSpace, optional
        Where weights are looked for; query-level features are of that space. All weights by default. Rankings are by
        the features themselves, so that documents that are alike tie.
    """

    def __init__(
        self,
        train: Queries,
        measure: Measure,
        phi: str,
        perfect: str,
        factor: Floats,
        backend: Backend,
        space: WeightSpace | None = None,
    ) -> None:
        self.space = WeightSpace(train.X, np.zeros(len(factor)), factor) if space is None else space
        self.backend, self.factor = backend, factor
        shards = backend.scatter(train)
        in_space = backend.scatter(train.with_X(self.space.X))
        self.parts: Shards[_Part] = backend.apply(_bind, shards, in_space, measure, phi, perfect == "grades")
        self.weight, self.total = train.query_weight, float(train.query_weight.sum())
        first_queries = [0, *accumulate(backend.gather(len, shards))][:-1]
        self.live: Ints = backend.concat(_live, self.parts, backend.distribute(first_queries))
        self.perfect, self.imperfect = [_Set() for _ in self.live], [_Set() for _ in self.live]

    def grow(self, w: Floats) -> bool:
        """Add the hardest perfect and the best imperfect ranking of each query under these weights; if any is new."""
        found = self.backend.gather(_ask, self.parts, self.space.weights(w) * self.factor)
        new = False
        for which, sets in enumerate((self.perfect, self.imperfect)):
            parts = [asked[which] for asked in found]
            joined = _Found(
                [key for part in parts for key in part.keys],
                np.concatenate([part.features for part in parts]) * self.space.factor,
                np.concatenate([part.lost for part in parts]),
            )
            for own, q in zip(sets, self.live, strict=True):
                if which == 0 or joined.lost[q] > 0.0:
                    new |= own.add(joined, int(q))
        return new

    def problem(self) -> PairLoss:
        """Prefer every perfect ranking to every imperfect one, at a cost of what that loses, over |B|."""
        pairs = [(b, c) for b, c in zip(self.perfect, self.imperfect, strict=True) if c.lost]
        used = [q for q, c in zip(self.live, self.imperfect, strict=True) if c.lost]
        if not pairs:
            return PairLoss(np.zeros((1, len(self.space.factor))), np.zeros(1), np.array([0, 1]))
        features = np.concatenate([np.array(each.features) for pair in pairs for each in pair])
        grades = np.concatenate([np.repeat([1.0, 0.0], [len(b.lost), len(c.lost)]) for b, c in pairs])
        cost = np.concatenate([[*np.ones(len(b.lost)), *c.lost] for b, c in pairs])
        indptr = np.concatenate([[0], np.cumsum([len(b.lost) + len(c.lost) for b, c in pairs])])
        weight = self.weight[used] / np.array([len(b.lost) for b, _ in pairs])
        return PairLoss(features, grades, indptr, cost, weight, backend=self.backend)

    def sizes(self) -> dict[str, float]:
        """How many rankings B and C hold in the mean."""
        named = {"perfect": self.perfect, "imperfect": self.imperfect}
        return {name: float(np.mean([len(own.lost) for own in sets] or [0])) for name, sets in named.items()}


def _bind(queries: Queries, in_space: Queries, measure: Measure, phi: str, by_grade: bool) -> _Part:
    return _Part(queries.X, in_space.X, prepare_rankings(measure, queries, phi), by_grade)


def _live(part: _Part, first_query: int) -> Ints:
    return first_query + part.rankings.live


def _ask(part: _Part, coef: Floats) -> tuple[_Found, _Found]:
    r, scores = part.rankings, linear_scores(part.X, coef, 0.0)
    perfect = r.find_hardest_by_grade(scores) if part.by_grade else r.find_hardest_perfect(scores)
    return _found(part, perfect), _found(part, r.find_best_imperfect(scores))


def _found(part: _Part, order: Ints) -> _Found:
    r = part.rankings
    coefficients = r.compute_coefficients(order)
    keys = [coefficients[a:b].tobytes() for a, b in zip(r.indptr[:-1], r.indptr[1:], strict=True)]
    return _Found(keys, query_columns(coefficients, part.coordinates, r.indptr), 1.0 - r.E(order))
