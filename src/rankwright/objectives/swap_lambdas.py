"""LambdaRank's gradients: pairs weighted by the change of a measure when their documents are swapped."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass

import numpy as np

from rankwright.basics.array_types import Floats, Ints
from rankwright.data.queries import Queries
from rankwright.kernels.measures.sorting import sort_rows
from rankwright.kernels.objectives.lambda_sums import sum_lambdas
from rankwright.measures import Measure, MeasureArrays, PreparedMeasure, parse_measure
from rankwright.objectives.base import Evaluation, MeasureObjective, PreparedObjective, check_scores
from rankwright.objectives.smooth_objectives import prepare_gains


@dataclass(frozen=True, slots=True)
class Lambdas(MeasureObjective):
    """The loss of LambdaRank: logistic losses of pairs, weighted by the change of the measure if they were swapped.

    It is the sum over pairs g_i > g_j of ``c_ij log(1 + exp(-(s_i - s_j)))``. g are the gains, and c_ij is the size
    of the change of the measure if i and j were swapped.

    The changes are those of the ranking by the scores. The gradient takes them as constant: it is the gradient of the
    value with the ranking kept (``fix_ranking``), not of the value as a function of the scores.

    Parameters
    ----------
    measure : Measure or str
        Any measure. For a user's own, every swap is tried.

    Notes
    -----
    Burges et al. (2007). Wang et al. (2018) show that the loss with the ranking kept descends: its minimisation is a
    step of expectation-maximisation. O(k n) for each query with a cut-off k.

    Examples
    --------
    >>> from rankwright.measures import NDCG
    >>> queries = Queries.from_arrays(np.zeros((2, 1)), [1, 0], qid=[1, 1])
    >>> evaluation = Lambdas(NDCG()).prepare(queries)(np.zeros(2))
    >>> bool(np.isclose(evaluation.loss, (1 - 1 / np.log2(3)) * np.log(2)))
    True
    """

    measure: Measure | str

    def prepare(self, queries: Queries) -> RankingObjective:
        """Compute gains, ideals and discounts."""
        measure = parse_measure(self.measure).for_training()
        if not measure.has_arrays:
            return PreparedSwapLambdas(measure.prepare(queries), queries.y, queries.query_weight)
        return PreparedLambdas(measure.prepare(queries).tie_keys, prepare_gains(measure, queries)[0])


class RankingObjective(PreparedObjective):
    """A prepared objective that depends on the scores and on the ranking by them, which can be kept fixed."""

    __slots__ = ()
    uses_ranking = True

    @abstractmethod
    def fix_ranking(self, scores: Floats) -> PreparedObjective:
        """Return the objective with the ranking by these scores: a smooth function of the scores it is called with."""

    def __call__(self, scores: Floats, rng: np.random.Generator | None = None) -> Evaluation:
        """Return the loss at these scores with its derivatives, the ranking kept."""
        return self.fix_ranking(scores)(scores)


@dataclass(frozen=True, slots=True, eq=False)
class PreparedLambdas(RankingObjective):
    """The LambdaRank loss, prepared for some queries and a built-in measure."""

    tie_keys: Floats  # documents with equal scores are ranked by these
    data: MeasureArrays

    def fix_ranking(self, scores: Floats) -> FixedLambdas:
        """Return the loss with the changes of the ranking by these scores, ties broken pessimistically."""
        scores = check_scores(scores, len(self.data.gain))
        order, indptr = np.arange(len(scores)), self.data.indptr
        sort_rows(scores, self.tie_keys, indptr, 0, len(indptr) - 1, order)
        return FixedLambdas(self.data, order)


@dataclass(frozen=True, slots=True, eq=False)
class FixedLambdas(PreparedObjective):
    """The LambdaRank loss with pair weights fixed at one ranking, which makes it convex and smooth."""

    data: MeasureArrays
    order: Ints  # the rows in ranked order

    def __call__(self, scores: Floats, rng: np.random.Generator | None = None) -> Evaluation:
        """Return the loss at these scores with its derivatives."""
        scores = check_scores(scores, len(self.order))
        gradient, curvature = np.empty(len(scores)), np.empty(len(scores))
        loss = sum_lambdas(self.data, self.order, scores, gradient, curvature)
        return Evaluation(loss, gradient, curvature)


@dataclass(frozen=True, slots=True, eq=False)
class PreparedSwapLambdas(RankingObjective):
    """The LambdaRank loss, prepared for some queries and a user's measure, for which every swap is tried."""

    measure: PreparedMeasure
    y: Floats
    weight: Floats

    def fix_ranking(self, scores: Floats) -> FixedSwapLambdas:
        """Return the loss with the changes of the ranking by these scores."""
        scores, changes = check_scores(scores, len(self.y)), []
        for q, weight in enumerate(self.weight.tolist()):
            y = self.y[self.measure.indptr[q] : self.measure.indptr[q + 1]]
            higher = y[:, None] > y
            changes.append(weight * np.where(higher, np.abs(self.measure.compute_swap_deltas(scores, q)), 0.0))
        return FixedSwapLambdas(self.measure.indptr, changes)


@dataclass(frozen=True, slots=True, eq=False)
class FixedSwapLambdas(PreparedObjective):
    """The LambdaRank loss of a user's measure with pair weights fixed at one ranking."""

    indptr: Ints
    changes: list[Floats]  # by query: the weight of each pair whose first document has the higher grade

    def __call__(self, scores: Floats, rng: np.random.Generator | None = None) -> Evaluation:
        """Return the loss at these scores with its derivatives."""
        scores = check_scores(scores, int(self.indptr[-1]))
        loss, gradient, curvature = 0.0, np.empty(len(scores)), np.empty(len(scores))
        for q, change in enumerate(self.changes):
            rows = slice(int(self.indptr[q]), int(self.indptr[q + 1]))
            o = scores[rows, None] - scores[rows]
            wrong = np.exp(-np.logaddexp(0.0, o))
            loss += float((change * np.logaddexp(0.0, -o)).sum())
            slope, second = change * wrong, change * wrong * (1.0 - wrong)
            gradient[rows] = slope.sum(axis=0) - slope.sum(axis=1)
            curvature[rows] = second.sum(axis=0) + second.sum(axis=1)
        return Evaluation(loss, gradient, curvature)
