"""The problem of fusing runs: the measure of weights, the best weights, and rankings to compare them with."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations_with_replacement, product

import numpy as np
from numpy.typing import NDArray

from rankwright.basics import progress
from rankwright.basics.array_types import Floats, Ints
from rankwright.data.document_pools import DocumentPool
from rankwright.data.ids import as_ids
from rankwright.data.queries import Queries
from rankwright.data.run_fusion import make_equal_weights, make_features, sum_reciprocal_ranks
from rankwright.kernels.scorers.linear_scores import compute_linear_scores
from rankwright.measures import Measure, P, PreparedMeasure, check_counted, compute_retrieved_values, weighted_mean
from rankwright.optimisers.ascent import find_best_weights
from rankwright.optimisers.reachable_documents import find_reachable_documents
from rankwright.runtime.backends import Backend
from rankwright.tuning.fusion_result import EQUAL, RRF, TUNED

_MOST_STARTS, _MOST_CLIMBS = 300, 20
_STARTED, _CLIMBED = 30_000_000, 200_000  # the most documents of all starts, and of all climbs, together
_SIGNED = 3  # the most runs whose weights are tried with both signs
_USUAL_DEPTH = 10  # the k of judged@k, for a measure without a cut-off

Mask = NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False)
class WeightEvaluator:
    """A function from weights of runs to the measure of each query, ranked by the weighted sum of scores."""

    X: Floats
    prepared: PreparedMeasure
    backend: Backend

    def __call__(self, weights: Floats) -> Floats:
        """Return the measure of each query when its documents are ranked by the weighted sum."""
        return self.prepared.values(compute_linear_scores(self.X, weights, 0.0), self.backend)


@dataclass(frozen=True, slots=True, eq=False)
class FusionProblem:
    """The task of finding weights of runs that maximise a measure over judged queries, with its data prepared.

    Documents that no run finds count in the ideal ranking only: a measure is prepared for the
    documents that are ranked, with the grades of the others as unretrieved.
    """

    measure: Measure
    pool: DocumentPool  # the documents that a run found
    queries: Queries  # the same, with the grades of judged documents that no run found
    full: PreparedMeasure
    evaluate: WeightEvaluator  # with the measure's own rule for ties
    train: WeightEvaluator  # with the pessimistic rule
    nonnegative: bool

    @classmethod
    def prepare(
        cls, pool: DocumentPool, measure: Measure, normalise: str, nonnegative: bool, backend: Backend
    ) -> FusionProblem:
        """Normalise the scores and prepare the measure."""
        X, y = make_features(pool, normalise), np.nan_to_num(pool.grades)
        queries = Queries(X, y, pool.indptr, as_ids(pool.qid), pool.docid).keep_retrieved(pool.found)
        measure = measure.with_max_grade(queries.max_grade)
        check_counted(measure, queries, "judged")
        full, training, kept = measure.prepare(queries), measure.for_training(), queries
        if nonnegative and training.cut_off is not None:
            top = find_reachable_documents(queries.X, queries.y, queries.indptr, training.cut_off, backend)
            kept = queries.keep_retrieved(top)
        train = WeightEvaluator(kept.X, training.prepare(kept), backend)
        # documents that are left out matter only if ties are broken otherwise than in training
        evaluate = train if measure == training else WeightEvaluator(queries.X, full, backend)
        return cls(measure, pool.keep_found(), queries, full, evaluate, train, nonnegative)

    @property
    def backend(self) -> Backend:
        """The backend that runs the work."""
        return self.evaluate.backend

    def fit(self, starts: StartGrid, left_out: Ints) -> Floats:
        """Return the best weights for all queries but some; their magnitudes add up to 1."""
        weight = self.full.is_counted.astype(np.float64)
        weight[left_out] = 0.0
        found, _ = find_best_weights(
            self.train.X,
            self.train.prepared,
            weight,
            starts=starts.choose(weight),
            nonnegative=self.nonnegative,
            backend=self.backend,
        )
        scaled: Floats = found / np.abs(found).sum()
        return scaled

    def compute_mean(self, weights: Floats) -> float:
        """Return the mean measure of weights over all queries."""
        values = self.evaluate(weights)
        return weighted_mean(values, np.ones(len(values)))

    def evaluate_held_out(self, parts: Sequence[Ints], weights: Sequence[Floats]) -> Floats:
        """Return the measure of each query by the weights fitted without its part; NaN for queries in no part."""
        values = np.full(len(self.pool.qid), np.nan)
        for part, each in zip(parts, weights, strict=True):
            values[part] = self.evaluate(each)[part]
        return values

    def evaluate_baselines(self, names: Sequence[str]) -> dict[str, Floats]:
        """Return the measure of each query for each run alone, for RRF, and for equal weights."""
        alone = {name: self._evaluate_scores(self.pool.scores[:, run]) for run, name in enumerate(names)}
        fused = self._evaluate_scores(sum_reciprocal_ranks(self.pool))
        return alone | {RRF: fused, EQUAL: self.evaluate(make_equal_weights(self.pool.n_runs))}

    def _evaluate_scores(self, scores: Floats) -> Floats:
        """Return the measure of documents ranked by scores; NaN is not ranked, and queries with no ranking get 0."""
        ranked = _mark_top_documents(scores, self.pool.indptr, self.measure.cut_off)
        values: Floats = compute_retrieved_values(
            [self.measure], self.queries, np.where(ranked, scores, np.nan), self.backend
        )[0]
        return values

    @property
    def judged_at(self) -> int:
        """The k of judged@k: the cut-off of the measure, or a default."""
        return self.measure.cut_off or _USUAL_DEPTH

    def compute_judged_shares(self, names: Sequence[str], weights: Floats) -> dict[str, float]:
        """Return the mean share of judged documents among the first k of each run and of the weighted sum."""
        shares = {name: self._compute_judged_share(self.pool.scores[:, run]) for run, name in enumerate(names)}
        return shares | {TUNED: self._compute_judged_share(compute_linear_scores(self.queries.X, weights, 0.0))}

    def _compute_judged_share(self, scores: Floats) -> float:
        ranked = _mark_top_documents(scores, self.pool.indptr, self.judged_at)
        indptr = np.unique(np.concatenate([[0], np.cumsum(ranked)])[self.pool.indptr])  # queries with ranked documents
        judged = (~np.isnan(self.pool.grades[ranked])).astype(np.float64)
        answers = Queries(np.zeros((len(judged), 1), np.float32), judged, indptr, np.arange(len(indptr) - 1))
        return P(self.judged_at, short="list", ties="average").mean(answers, scores[ranked], self.backend)


def _mark_top_documents(scores: Floats, indptr: Ints, k: int | None) -> Mask:
    """Return a mask of the documents that can be among the first k of their query, however ties are broken.

    Documents whose score is NaN are not ranked.
    """
    if k is None:
        return ~np.isnan(scores)
    keys = np.where(np.isnan(scores), -np.inf, scores).astype(np.float32)  # as trec_eval compares them
    least = [part.min() if len(part) <= k else np.partition(part, -k)[-k] for part in np.split(keys, indptr[1:-1])]
    within: Mask = (keys >= np.repeat(least, np.diff(indptr))) & ~np.isnan(scores)
    return within


@dataclass(frozen=True, slots=True, eq=False)
class StartGrid:
    """A grid of weights from which searches start, with each query's training measure at every point.

    Climbs start from the best points of the grid, so their results are never worse than the grid. Its values are
    computed once; each fit chooses starts by the queries that it may see. With many documents climbs take longer and
    differ less, so the grid is coarser and the climbs are fewer.
    """

    weights: Floats  # (n_weights, n_runs)
    neighbours: Mask  # (n_weights, n_weights)
    values: Floats  # (n_weights, n_queries)
    n_climbs: int

    @classmethod
    def evaluate(cls, evaluator: WeightEvaluator, n_runs: int, nonnegative: bool) -> StartGrid:
        """Evaluate weights that add up to 1 in steps of a tenth, or more if those are too many, and equal weights.

        Weights that may be negative include those whose magnitudes add up to 1.
        """
        n_docs = len(evaluator.X)
        most, n_climbs = min(_MOST_STARTS, _STARTED // n_docs), max(1, min(_MOST_CLIMBS, _CLIMBED // n_docs))
        steps = next(m for m in range(10, 0, -1) if m == 1 or math.comb(m + n_runs - 1, m) <= most)
        shares = [np.bincount(c, minlength=n_runs) for c in combinations_with_replacement(range(n_runs), steps)]
        weights = np.concatenate([np.array(shares) / steps, np.full((1, n_runs), 1.0 / n_runs)])
        if not nonnegative:
            signs = np.array(list(product((1.0, -1.0), repeat=min(n_runs, _SIGNED))))
            signs = np.pad(signs, ((0, 0), (0, n_runs - signs.shape[1])), constant_values=1.0)
            weights = np.unique((weights[:, None] * signs).reshape(-1, n_runs) + 0.0, axis=0)
        apart = np.abs(weights[:, None] - weights).sum(axis=2)
        neighbours = (apart > 0) & (apart < 2.5 / steps)  # at most one step is moved from one run to another
        each = progress.track(weights, "searching", len(weights))
        return cls(weights, neighbours, np.array([np.nan_to_num(evaluator(start)) for start in each]), n_climbs)

    def choose(self, weight: Floats) -> Floats:
        """Return the best starts for weighted queries: first points that no neighbour beats, then others."""
        means = self.values @ weight
        beaten = (self.neighbours & (means > means[:, None])).any(axis=1)
        chosen: Floats = self.weights[np.lexsort((-means, beaten))[: self.n_climbs]]
        return chosen
