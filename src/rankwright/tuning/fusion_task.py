"""Runs over judged queries: what weights reach, the best of them, and what there is without them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations_with_replacement, product

import numpy as np
from numpy.typing import NDArray

from rankwright.basics import progress
from rankwright.basics.array_types import Floats, Ints
from rankwright.data.grouping import query_ranges
from rankwright.data.ids import as_ids
from rankwright.data.queries import Queries
from rankwright.data.run_fusion import equal_weights, make_features, sum_reciprocal_ranks
from rankwright.data.trec import DocumentPool
from rankwright.kernels.measures.sorting import sort_rows
from rankwright.kernels.optimisers.dominance import top_candidates
from rankwright.kernels.scorers.linear_scores import linear_scores
from rankwright.measures import Measure, P, PreparedMeasure, check_counted, compute_retrieved_values, weighted_mean
from rankwright.optimisers.ascent import find_best_weights
from rankwright.runtime.backends import Backend, n_shards
from rankwright.tuning.fusion_result import EQUAL, RRF, TUNED

_MOST_STARTS, _MOST_CLIMBS = 300, 20
_STARTED, _CLIMBED = 30_000_000, 200_000  # documents that all starts, and all climbs, may add up to
_SIGNED = 3  # runs whose weights are tried with both signs
_USUAL_DEPTH = 10  # of judged@k, for a measure without a cut-off

Mask = NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False)
class Judge:
    """A measure of weights."""

    X: Floats
    bound: PreparedMeasure
    backend: Backend

    def __call__(self, weights: Floats) -> Floats:
        """The measure of each query when its documents are ranked by the weighted sum."""
        return self.bound.values(linear_scores(self.X, weights, 0.0), self.backend)


@dataclass(frozen=True, slots=True, eq=False)
class Task:
    """Runs over judged queries, ready to be weighed.

    Documents that a ranking does not find belong to the ideal ranking and to nothing else: a measure is bound to the
    documents that are ranked, with the grades of the others as unretrieved.
    """

    measure: Measure
    pool: DocumentPool  # of the documents that a run found
    queries: Queries  # the same, with the grades of documents that only a judge saw
    full: PreparedMeasure
    judge: Judge  # by the measure's own rule for ties
    train: Judge  # by the pessimistic rule
    nonnegative: bool

    @classmethod
    def of(cls, pool: DocumentPool, measure: Measure, normalise: str, nonnegative: bool, backend: Backend) -> Task:
        """Normalise the scores and prepare the measure."""
        X, y = make_features(pool, normalise), np.nan_to_num(pool.grades)
        queries = Queries(X, y, pool.indptr, as_ids(pool.qid), pool.docid).keep_retrieved(pool.found)
        measure = measure.with_max_grade(queries.max_grade)
        check_counted(measure, queries, "judged")
        full, training, kept = measure.prepare(queries), measure.for_training(), queries
        if nonnegative and training.cut_off is not None:
            kept = queries.keep_retrieved(_candidates(queries, training.cut_off, backend))
        train = Judge(kept.X, training.prepare(kept), backend)
        # what is dropped cannot matter where ties are broken as in training; another rule may see it
        judge = train if measure == training else Judge(queries.X, full, backend)
        return cls(measure, pool.keep_found(), queries, full, judge, train, nonnegative)

    @property
    def backend(self) -> Backend:
        """Where the work runs."""
        return self.judge.backend

    def fit(self, starts: Starts, left_out: Ints) -> Floats:
        """The best weights without some queries; their magnitudes add up to 1."""
        weight = self.full.counted.astype(np.float64)
        weight[left_out] = 0.0
        found, _ = find_best_weights(
            self.train.X,
            self.train.bound,
            weight,
            starts=starts.best(weight),
            nonnegative=self.nonnegative,
            backend=self.backend,
        )
        scaled: Floats = found / np.abs(found).sum()
        return scaled

    def mean(self, weights: Floats) -> float:
        """The mean measure of weights over all queries."""
        values = self.judge(weights)
        return weighted_mean(values, np.ones(len(values)))

    def held_out(self, parts: Sequence[Ints], weights: Sequence[Floats]) -> Floats:
        """The measure of each query by the weights that were fitted without its part; NaN for queries in no part."""
        values = np.full(len(self.pool.qid), np.nan)
        for part, each in zip(parts, weights, strict=True):
            values[part] = self.judge(each)[part]
        return values

    def baselines(self, names: Sequence[str]) -> dict[str, Floats]:
        """The measure of each query for each run alone, for RRF, and for equal weights."""
        alone = {name: self._ranked(self.pool.scores[:, run]) for run, name in enumerate(names)}
        fused = self._ranked(sum_reciprocal_ranks(self.pool))
        return alone | {RRF: fused, EQUAL: self.judge(equal_weights(self.pool.n_runs))}

    def _ranked(self, scores: Floats) -> Floats:
        """The measure of documents ranked by their scores: NaN is not ranked, and a query without a ranking is 0."""
        ranked = _first(scores, self.pool.indptr, self.measure.cut_off)
        values: Floats = compute_retrieved_values(
            [self.measure], self.queries, np.where(ranked, scores, np.nan), self.backend
        )[0]
        return values

    @property
    def judged_at(self) -> int:
        """How deep to look for judged documents: as the measure does."""
        return self.measure.cut_off or _USUAL_DEPTH

    def judged(self, names: Sequence[str], weights: Floats) -> dict[str, float]:
        """The mean share of judged documents among the first k of each run and of the weighted sum."""
        shares = {name: self._judged_share(self.pool.scores[:, run]) for run, name in enumerate(names)}
        return shares | {TUNED: self._judged_share(linear_scores(self.queries.X, weights, 0.0))}

    def _judged_share(self, scores: Floats) -> float:
        ranked = _first(scores, self.pool.indptr, self.judged_at)
        indptr = np.unique(np.concatenate([[0], np.cumsum(ranked)])[self.pool.indptr])  # of queries with a ranking
        judged = (~np.isnan(self.pool.grades[ranked])).astype(np.float64)
        answers = Queries(np.zeros((len(judged), 1), np.float32), judged, indptr, np.arange(len(indptr) - 1))
        return P(self.judged_at, short="list", ties="average").mean(answers, scores[ranked], self.backend)


def _first(scores: Floats, indptr: Ints, k: int | None) -> Mask:
    """Which documents can be among the first k of their queries, whatever is done with ties; NaN is not ranked."""
    if k is None:
        return ~np.isnan(scores)
    keys = np.where(np.isnan(scores), -np.inf, scores).astype(np.float32)  # as trec_eval compares them
    least = [part.min() if len(part) <= k else np.partition(part, -k)[-k] for part in np.split(keys, indptr[1:-1])]
    within: Mask = (keys >= np.repeat(least, np.diff(indptr))) & ~np.isnan(scores)
    return within


def _candidates(queries: Queries, k: int, backend: Backend) -> Mask:
    """The documents that can be among the first k for some weights that are not negative."""
    X, y, indptr = queries.X, queries.y, queries.indptr
    order, keep = np.arange(len(y)), np.zeros(len(y), dtype=bool)
    sums = linear_scores(X, np.ones(X.shape[1]), 0.0)

    def work(part: tuple[int, int]) -> None:
        sort_rows(sums, y, indptr, *part, order)
        top_candidates(X, y, order, indptr, k, *part, keep)

    backend.each(work, query_ranges(indptr, n_shards(len(y))))
    return keep


@dataclass(frozen=True, slots=True, eq=False)
class Starts:
    """A grid of weights, and the training measure of each query for each of them.

    Climbs start from the best of the grid, so that what they reach is never worse than the grid. Its values are
    computed once; each fit chooses by the queries that it may see. The more documents, the more alike the climbs end
    and the longer they take: the grid is coarser then, and the climbs are fewer.
    """

    weights: Floats  # (n_weights, n_runs)
    neighbours: Mask  # (n_weights, n_weights)
    values: Floats  # (n_weights, n_queries)
    climbs: int

    @classmethod
    def of(cls, judge: Judge, n_runs: int, nonnegative: bool) -> Starts:
        """Weights that add up to 1 in steps of a tenth, or of more where those are too many; and equal weights.

        With weights that may be negative, also those whose magnitudes add up to 1.
        """
        n_docs = len(judge.X)
        most, climbs = min(_MOST_STARTS, _STARTED // n_docs), max(1, min(_MOST_CLIMBS, _CLIMBED // n_docs))
        steps = next(m for m in range(10, 0, -1) if m == 1 or math.comb(m + n_runs - 1, m) <= most)
        shares = [np.bincount(c, minlength=n_runs) for c in combinations_with_replacement(range(n_runs), steps)]
        weights = np.concatenate([np.array(shares) / steps, np.full((1, n_runs), 1.0 / n_runs)])
        if not nonnegative:
            signs = np.array(list(product((1.0, -1.0), repeat=min(n_runs, _SIGNED))))
            signs = np.pad(signs, ((0, 0), (0, n_runs - signs.shape[1])), constant_values=1.0)
            weights = np.unique((weights[:, None] * signs).reshape(-1, n_runs) + 0.0, axis=0)
        apart = np.abs(weights[:, None] - weights).sum(axis=2)
        neighbours = (apart > 0) & (apart < 2.5 / steps)  # no more than a step, from one run to another
        each = progress.track(weights, "searching", len(weights))
        return cls(weights, neighbours, np.array([np.nan_to_num(judge(start)) for start in each]), climbs)

    def best(self, weight: Floats) -> Floats:
        """The best weights on weighted queries: first those that no neighbour beats, then others."""
        means = self.values @ weight
        beaten = (self.neighbours & (means > means[:, None])).any(axis=1)
        chosen: Floats = self.weights[np.lexsort((-means, beaten))[: self.climbs]]
        return chosen
