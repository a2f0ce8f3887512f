"""LambdaRank's gradients: pairs weighted by what their exchange would change a measure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from rankwright.basics.array_types import Floats, Ints
from rankwright.data.queries import Queries
from rankwright.kernels.measures.sorting import sort_rows
from rankwright.kernels.objectives.lambda_sums import lambda_sums
from rankwright.kernels.objectives.smooth_measures import Gained
from rankwright.measures import Measure, PreparedMeasure, parse
from rankwright.objectives.base import Evaluation, PreparedObjective, check_scores
from rankwright.objectives.smooth import gained


class PreparedRankingObjective(PreparedObjective, Protocol):
    """An objective that depends on the ranking by the scores, beside the scores."""

    def frozen(self, scores: Floats) -> PreparedObjective:
        """The same, of the ranking by these scores, whatever scores it is evaluated at: a smooth function."""
        ...


@dataclass(frozen=True, slots=True)
class Lambdas:
    """The sum over pairs g_i > g_j of |change of the measure if i and j were swapped| log(1 + exp(-(s_i - s_j))).

    The changes are those of the ranking by the scores and are taken as constant by the gradient, which is therefore not
    that of the value as a function of the scores, but of the value with the ranking kept (``frozen``).

    Parameters
    ----------
    measure : Measure or str
        Any measure; a user's own by trying every swap.

    Notes
    -----
    Burges et al. (2007). That the frozen loss is what descends is Wang et al. (2018), who see steps of
    expectation-maximisation in it. O(k n) a query for a cut-off k.

    Examples
    --------
    >>> from rankwright.measures import NDCG
    >>> queries = Queries.from_arrays(np.zeros((2, 1)), [1, 0], qid=[1, 1])
    >>> evaluation = Lambdas(NDCG()).prepare(queries)(np.zeros(2))
    >>> bool(np.isclose(evaluation.loss, (1 - 1 / np.log2(3)) * np.log(2)))
    True
    """

    measure: Measure | str

    def prepare(self, queries: Queries) -> PreparedRankingObjective:
        """Find gains, ideals and discounts."""
        measure = parse(self.measure).for_training()
        bound = measure.prepare(queries)
        if bound.arrays is None:
            return PreparedSwapLambdas(bound, queries.y, queries.query_weight)
        return PreparedLambdas(bound, gained(measure, queries)[0])


@dataclass(frozen=True, slots=True, eq=False)
class PreparedLambdas:
    """The lambdas of a measure that has arrays."""

    bound: PreparedMeasure
    data: Gained

    def __call__(self, scores: Floats, rng: np.random.Generator | None = None) -> Evaluation:
        """The loss at these scores, and its derivatives with the ranking kept."""
        return self.frozen(scores)(scores)

    def frozen(self, scores: Floats) -> FixedLambdas:
        """With the changes of the ranking by these scores, ties broken pessimistically."""
        scores = check_scores(scores, len(self.data.gain))
        order, indptr = np.arange(len(scores)), self.data.indptr
        sort_rows(scores, self.bound.tie_keys, indptr, 0, len(indptr) - 1, order)
        return FixedLambdas(self.data, order)


@dataclass(frozen=True, slots=True, eq=False)
class FixedLambdas:
    """The same with the changes of one ranking: a convex, smooth loss."""

    data: Gained
    order: Ints  # the rows in ranked order

    def __call__(self, scores: Floats, rng: np.random.Generator | None = None) -> Evaluation:
        """The loss at these scores, and its derivatives."""
        scores = check_scores(scores, len(self.order))
        gradient, curvature = np.empty(len(scores)), np.empty(len(scores))
        loss = lambda_sums(self.data, self.order, scores, gradient, curvature)
        return Evaluation(loss, gradient, curvature)


@dataclass(frozen=True, slots=True, eq=False)
class PreparedSwapLambdas:
    """The lambdas of a user's measure, by trying every swap."""

    bound: PreparedMeasure
    y: Floats
    weight: Floats

    def __call__(self, scores: Floats, rng: np.random.Generator | None = None) -> Evaluation:
        """The loss at these scores, and its derivatives with the ranking kept."""
        return self.frozen(scores)(scores)

    def frozen(self, scores: Floats) -> FixedSwapLambdas:
        """With the changes of the ranking by these scores."""
        scores, changes = check_scores(scores, len(self.y)), []
        for q, weight in enumerate(self.weight.tolist()):
            y = self.y[self.bound.indptr[q] : self.bound.indptr[q + 1]]
            higher = y[:, None] > y
            changes.append(weight * np.where(higher, np.abs(self.bound.swap_deltas(scores, q)), 0.0))
        return FixedSwapLambdas(self.bound.indptr, changes)


@dataclass(frozen=True, slots=True, eq=False)
class FixedSwapLambdas:
    """The same with the changes of one ranking."""

    indptr: Ints
    changes: list[Floats]  # by query: the weight of each pair whose first document has the higher grade

    def __call__(self, scores: Floats, rng: np.random.Generator | None = None) -> Evaluation:
        """The loss at these scores, and its derivatives."""
        scores = check_scores(scores, int(self.indptr[-1]))
        loss, gradient, curvature = 0.0, np.empty(len(scores)), np.empty(len(scores))
        for q, change in enumerate(self.changes):
            rows = slice(int(self.indptr[q]), int(self.indptr[q + 1]))
            o = scores[rows, None] - scores[rows]
            wrong = np.exp(-np.logaddexp(0.0, o))
            loss += float((change * np.logaddexp(0.0, -o)).sum())
            pull, bend = change * wrong, change * wrong * (1.0 - wrong)
            gradient[rows] = pull.sum(axis=0) - pull.sum(axis=1)
            curvature[rows] = bend.sum(axis=0) + bend.sum(axis=1)
        return Evaluation(loss, gradient, curvature)
