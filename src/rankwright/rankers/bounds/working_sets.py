"""Working sets of PermuRank: rankings of each query, which a Ranking SVM learns to compare as documents."""

from __future__ import annotations

from itertools import accumulate
from typing import NamedTuple

import numpy as np

from rankwright.basics.array_types import Floats, Ints
from rankwright.data.queries import Queries
from rankwright.kernels.scorers.linear_scores import compute_linear_scores, sum_query_columns
from rankwright.measures import Measure
from rankwright.objectives.rankings import Rankings, prepare_rankings
from rankwright.optimisers.pair_loss import PairLoss
from rankwright.optimisers.weight_space import WeightSpace
from rankwright.runtime.backends import Backend, Shards


class _RankingShard(NamedTuple):
    """A part of the queries: features, coordinates in the space of the weights, and a finder of rankings."""

    X: Floats
    coordinates: Floats
    rankings: Rankings
    by_grade: bool  # whether perfect is by descending grade


class _FoundRankings(NamedTuple):
    """A record of one ranking of each query: its key, its query-level features, and its loss, 1 - measure."""

    keys: list[bytes]
    features: Floats
    lost: Floats


class _RankingSet:
    """The different rankings found so far of one query, with their query-level features and losses."""

    __slots__ = ("features", "keys", "lost")

    def __init__(self) -> None:
        self.keys: set[bytes] = set()
        self.features: list[Floats] = []
        self.lost: list[float] = []

    def add(self, found: _FoundRankings, q: int) -> bool:
        """Add the ranking of query q; return whether it is new."""
        if found.keys[q] in self.keys:
            return False
        self.keys.add(found.keys[q])
        self.features.append(found.features[q])
        self.lost.append(float(found.lost[q]))
        return True


class WorkingSets:
    """The working sets of PermuRank: for each query the perfect rankings B and the imperfect ones C found so far.

    Parameters
    ----------
    train : Queries
        The training data.
    measure : Measure
        Decides which rankings are perfect.
    phi : "pairs" or "ranks"
        The kind of query-level features.
    perfect : "measure" or "grades"
        Which rankings are perfect.
    factor : array of shape (n_features,)
        A factor for each weight before it acts on the features.
    backend : Backend
        Where the work runs.
    space : WeightSpace, optional
        The space of the weights and of the query-level features; all weights by default. Documents are ranked by the
        features themselves, so that equal documents tie.
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
        self.space = WeightSpace(train, np.zeros(len(factor)), factor) if space is None else space
        self.backend, self.factor = backend, factor
        shards = backend.scatter(train)
        in_space = shards if self.space.basis is None else backend.scatter(self.space.queries)
        self.parts: Shards[_RankingShard] = backend.apply(
            _prepare_shard, shards, in_space, measure, phi, perfect == "grades"
        )
        self.weight, self.total = train.query_weight, float(train.query_weight.sum())
        first_queries = [0, *accumulate(backend.gather(len, shards))][:-1]
        self.live: Ints = backend.concat(_number_live_queries, self.parts, backend.distribute(first_queries))
        self.perfect, self.imperfect = [_RankingSet() for _ in self.live], [_RankingSet() for _ in self.live]

    def grow(self, w: Floats) -> bool:
        """Add the hardest perfect and the best imperfect ranking of each query; return whether any is new."""
        found = self.backend.gather(_find_hardest_rankings, self.parts, self.space.weights(w) * self.factor)
        new = False
        for which, sets in enumerate((self.perfect, self.imperfect)):
            parts = [both[which] for both in found]
            joined = _FoundRankings(
                [key for part in parts for key in part.keys],
                np.concatenate([part.features for part in parts]) * self.space.factor,
                np.concatenate([part.lost for part in parts]),
            )
            for own, q in zip(sets, self.live, strict=True):
                if which == 0 or joined.lost[q] > 0.0:
                    new |= own.add(joined, int(q))
        return new

    def make_loss(self) -> PairLoss:
        """Return the loss of preferring imperfect to perfect rankings; the cost of a pair is the loss over |B|."""
        pairs = [(b, c) for b, c in zip(self.perfect, self.imperfect, strict=True) if c.lost]
        used = [q for q, c in zip(self.live, self.imperfect, strict=True) if c.lost]
        if not pairs:
            none = Queries(np.zeros((1, len(self.space.factor))), np.zeros(1), np.array([0, 1]), np.zeros(1, np.int64))
            return PairLoss(none)
        features = np.concatenate([np.array(each.features) for pair in pairs for each in pair])
        grades = np.concatenate([np.repeat([1.0, 0.0], [len(b.lost), len(c.lost)]) for b, c in pairs])
        cost = np.concatenate([[*np.ones(len(b.lost)), *c.lost] for b, c in pairs])
        indptr = np.concatenate([[0], np.cumsum([len(b.lost) + len(c.lost) for b, c in pairs])])
        weight = self.weight[used] / np.array([len(b.lost) for b, _ in pairs])
        rankings = Queries(features, grades, indptr, np.arange(len(pairs)))
        return PairLoss(rankings, cost, weight, backend=self.backend)

    def count_rankings(self) -> dict[str, float]:
        """Return the mean number of rankings in B and in C."""
        named = {"perfect": self.perfect, "imperfect": self.imperfect}
        return {name: float(np.mean([len(own.lost) for own in sets] or [0])) for name, sets in named.items()}


def _prepare_shard(queries: Queries, in_space: Queries, measure: Measure, phi: str, by_grade: bool) -> _RankingShard:
    """Prepare a part of the queries for finding their perfect and imperfect rankings."""
    return _RankingShard(queries.X, in_space.X, prepare_rankings(measure, queries, phi), by_grade)


def _number_live_queries(part: _RankingShard, first_query: int) -> Ints:
    """Return the numbers, among all queries, of this part's queries that have an imperfect ranking."""
    return first_query + part.rankings.live


def _find_hardest_rankings(part: _RankingShard, coef: Floats) -> tuple[_FoundRankings, _FoundRankings]:
    """Return for each query the lowest scored perfect ranking, and the highest scored imperfect one."""
    r, scores = part.rankings, compute_linear_scores(part.X, coef, 0.0)
    perfect = r.find_hardest_by_grade(scores) if part.by_grade else r.find_hardest_perfect(scores)
    return _describe_rankings(part, perfect), _describe_rankings(part, r.find_best_imperfect(scores))


def _describe_rankings(part: _RankingShard, order: Ints) -> _FoundRankings:
    """Return the key, the query-level features and the loss of the ranking ``order`` of each query."""
    r = part.rankings
    coefficients = r.compute_coefficients(order)
    keys = [coefficients[a:b].tobytes() for a, b in zip(r.indptr[:-1], r.indptr[1:], strict=True)]
    return _FoundRankings(keys, sum_query_columns(coefficients, part.coordinates, r.indptr), 1.0 - r.E(order))
