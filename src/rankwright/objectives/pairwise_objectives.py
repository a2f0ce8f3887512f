"""Losses of pairs of documents with different grades, in score space."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, replace

import numpy as np

from rankwright.basics.array_types import Floats, Ints
from rankwright.basics.errors import InputError
from rankwright.data.queries import Queries
from rankwright.kernels.objectives.graded_pairs import (
    FIDELITY,
    LOGISTIC,
    GradedDocuments,
    find_grade_order,
    sum_exponential_pairs,
    sum_pair_losses,
)
from rankwright.kernels.objectives.hinge_pairs import (
    SMOOTH_LOSS,
    PairLabels,
    RankedScores,
    find_grade_places,
    sum_pair_costs,
    sum_pairs,
)
from rankwright.objectives.base import BuiltinObjective, Evaluation, PreparedObjective, check_scores
from rankwright.objectives.relevance_pairs import PreparedRelevancePairs


class PairObjective(BuiltinObjective):
    """An objective that is a sum over pairs; document weights weight a pair by the product of those of its two.

    Pairs of different grades count alike (``pair_weighting="pair"``), or queries (``"query"``). With ``"relevance"``
    the loss is linear in the grades: the sum over documents i of y_i times the loss of i before every other document.
    So it is unbiased where the grades are unbiased estimates of relevance, as those from clicks: a click at a position
    that is looked at with probability e weighs 1 / e.
    """

    __slots__ = ()
    is_doc_weighted = True
    pair_weighting: str

    def prepare(self, queries: Queries) -> PreparedObjective:
        """Sort the documents by grade and weight the pairs of each query."""
        if self.pair_weighting != "relevance":
            return self._prepare_pairs(queries)
        return PreparedRelevancePairs.of(replace(self, pair_weighting="pair"), queries)  # type: ignore[type-var]

    @abstractmethod
    def _prepare_pairs(self, queries: Queries) -> PreparedObjective:
        """Prepare the loss of pairs that count alike, or of queries that do."""


@dataclass(frozen=True, slots=True)
class Hinge(PairObjective):
    """The hinge loss: the sum over a query's pairs l_i > l_j of max(1 - (s_i - s_j), 0), l the grades, s the scores.

    Parameters
    ----------
    pair_weighting : "pair", "query" or "relevance"
        Whether pairs count alike, or queries: the sum, or the mean over the pairs of each query; or each document
        before every other, weighted by its grade.

    Examples
    --------
    >>> queries = Queries.from_arrays(np.zeros((3, 1)), [2, 1, 0], qid=[1, 1, 1])
    >>> Hinge().prepare(queries)(np.array([1.5, 0.0, 0.5]))
    Evaluation(loss=1.5, gradient=array([ 0., -1.,  1.]), curvature=None)
    """

    pair_weighting: str = "pair"

    def _prepare_pairs(self, queries: Queries) -> PreparedHinge:
        """Rank the grades and weight the pairs of each query."""
        return PreparedHinge(_make_pair_labels(queries, self.pair_weighting), 0.0)


@dataclass(frozen=True, slots=True)
class SquaredHinge(PairObjective):
    """The squared hinge loss: the sum over a query's pairs of max(margin - (s_i - s_j), 0)^2, i of higher grade than j.

    Parameters
    ----------
    pair_weighting : "pair", "query" or "relevance"
        Whether pairs count alike, or queries: the sum, or the mean over the pairs of each query; or each document
        before every other, weighted by its grade.
    margin : float
        The difference of scores from which on a pair has no loss.

    Examples
    --------
    >>> queries = Queries.from_arrays(np.zeros((2, 1)), [1, 0], qid=[1, 1])
    >>> SquaredHinge().prepare(queries)(np.array([0.0, 0.5])).loss
    2.25
    >>> SquaredHinge(margin=0.5).prepare(queries)(np.array([0.0, 0.5])).loss
    1.0
    """

    pair_weighting: str = "pair"
    margin: float = 1.0

    def _prepare_pairs(self, queries: Queries) -> PreparedHinge:
        """Rank the grades and weight the pairs of each query."""
        return PreparedHinge(_make_pair_labels(queries, self.pair_weighting), np.inf, _check_margin(self.margin))


@dataclass(frozen=True, slots=True)
class Fidelity(PairObjective):
    """The loss of FRank, called fidelity: how far the modelled probability of each pair's order is from the wanted one.

    It is the sum over pairs of grades l_i > l_j of 1 - sqrt(P* P) - sqrt((1 - P*) (1 - P)).

    P = 1 / (1 + exp(-o)), o = s_i - s_j. The loss of a pair is between 0 and 1, and 0 where P = P*. It is not convex:
    its second derivative is negative for pairs that are far from right.

    Parameters
    ----------
    pair_weighting : "query", "pair" or "relevance"
        Whether queries count alike, or pairs: the mean over the pairs of each query, or the sum; or each document
        before every other, weighted by its grade.
    target : float
        P*, the wanted probability that the document of the higher grade comes first.

    Notes
    -----
    Tsai et al. (2007), section 3.2. dF/do = -1/2 (sqrt(P* e^o) - e^o sqrt(1 - P*)) / (1 + e^o)^(3/2), which is -1/2 of
    the weight (4). O(pairs).

    Examples
    --------
    >>> queries = Queries.from_arrays(np.zeros((2, 1)), [1, 0], qid=[1, 1])
    >>> evaluation = Fidelity().prepare(queries)(np.array([0.0, np.log(3.0)]))  # P = 1/4
    >>> evaluation.loss, evaluation.gradient.tolist()
    (0.5, [-0.1875, 0.1875])
    """

    pair_weighting: str = "query"
    target: float = 1.0

    def _prepare_pairs(self, queries: Queries) -> PreparedPairLoss:
        """Sort the documents by grade and weight the pairs of each query."""
        return PreparedPairLoss(*sort_by_grade(queries, self.pair_weighting), FIDELITY, _check_probability(self.target))


@dataclass(frozen=True, slots=True)
class Logistic(PairObjective):
    """The loss of RankNet: the cross entropy of the modelled and the wanted probability of each pair's order.

    It is the sum over pairs of grades l_i > l_j of -P* o + ln(1 + exp(o)), where o = s_i - s_j.

    Parameters
    ----------
    pair_weighting : "pair", "query" or "relevance"
        Whether pairs count alike, or queries: the sum, or the mean over the pairs of each query; or each document
        before every other, weighted by its grade.
    target : float
        P*, the wanted probability that the document of the higher grade comes first.

    Notes
    -----
    Burges et al. (2005), as in Tsai et al. (2007), section 2. O(pairs).

    Examples
    --------
    >>> queries = Queries.from_arrays(np.zeros((2, 1)), [1, 0], qid=[1, 1])
    >>> bool(np.isclose(Logistic().prepare(queries)(np.zeros(2)).loss, np.log(2.0)))
    True
    """

    pair_weighting: str = "pair"
    target: float = 1.0

    def _prepare_pairs(self, queries: Queries) -> PreparedPairLoss:
        """Sort the documents by grade and weight the pairs of each query."""
        return PreparedPairLoss(*sort_by_grade(queries, self.pair_weighting), LOGISTIC, _check_probability(self.target))


@dataclass(frozen=True, slots=True)
class Exponential(PairObjective):
    """The loss of RankBoost: the sum over pairs of exp(s_j - s_i), where document i has the higher grade.

    It is computed in O(n) for each query, once the query is sorted by grade.

    Parameters
    ----------
    pair_weighting : "pair", "query" or "relevance"
        Whether pairs count alike, or queries: the sum, or the mean over the pairs of each query; or each document
        before every other, weighted by its grade.

    Examples
    --------
    >>> queries = Queries.from_arrays(np.zeros((3, 1)), [2, 1, 0], qid=[1, 1, 1])
    >>> Exponential().prepare(queries)(np.zeros(3)).loss
    3.0
    """

    pair_weighting: str = "pair"

    def _prepare_pairs(self, queries: Queries) -> PreparedExponential:
        """Sort the documents by grade and weight the pairs of each query."""
        return PreparedExponential(*sort_by_grade(queries, self.pair_weighting))


@dataclass(frozen=True, slots=True, eq=False)
class PreparedPairLoss(PreparedObjective):
    """The fidelity or the logistic loss, prepared for some queries; it is summed pair by pair."""

    rows: Ints  # by query and descending grade
    graded: GradedDocuments
    kind: int
    target: float

    def __call__(self, scores: Floats, rng: np.random.Generator | None = None) -> Evaluation:
        """Return the loss at these scores with its derivatives."""
        scores, n = check_scores(scores, len(self.rows)), len(self.rows)
        slopes, curves = np.empty(n), np.empty(n)
        loss = sum_pair_losses(self.graded, scores[self.rows], self.kind, self.target, slopes, curves)
        gradient, curvature = np.empty(n), np.empty(n)
        gradient[self.rows], curvature[self.rows] = slopes, curves
        return Evaluation(loss, gradient, curvature)


@dataclass(frozen=True, slots=True, eq=False)
class PreparedExponential(PreparedObjective):
    """The exponential loss of pairs, prepared for some queries."""

    rows: Ints  # by query and descending grade
    graded: GradedDocuments

    def __call__(self, scores: Floats, rng: np.random.Generator | None = None) -> Evaluation:
        """Return the loss at these scores with its gradient."""
        scores = check_scores(scores, len(self.rows))
        slopes, gradient = np.empty(len(self.rows)), np.empty(len(self.rows))
        loss = sum_exponential_pairs(self.graded, scores[self.rows], slopes)
        gradient[self.rows] = slopes
        return Evaluation(loss, gradient)


@dataclass(frozen=True, slots=True, eq=False)
class PreparedHinge(PreparedObjective):
    """The hinge loss of pairs, prepared for some queries: plain if ``smoothing`` is 0, squared if it is infinite."""

    labels: PairLabels
    smoothing: float
    margin: float = 1.0

    def __call__(self, scores: Floats, rng: np.random.Generator | None = None) -> Evaluation:
        """Return the loss at these scores with its gradient, in O(n log n) for each query."""
        scores, n = check_scores(scores, len(self.labels.place)) / self.margin, len(self.labels.place)
        gradient, ranked = np.empty(n), RankedScores(scores, np.arange(n), np.empty(n), np.empty(n))
        loss = float(sum_pairs(self.labels, ranked, self.smoothing, gradient)[SMOOTH_LOSS])
        if self.smoothing == 0.0:
            return Evaluation(loss, gradient)
        weight = np.repeat(self.labels.weight, np.diff(self.labels.indptr))
        per_score = 2.0 * self.margin  # the loss of scores in units of the margin, times its square
        return Evaluation(per_score * self.margin * loss, per_score * gradient, 2.0 * weight * ranked.curvature)


def count_query_pairs(y: Floats, indptr: Ints, doc_weight: Floats | None = None) -> Floats:
    """Return for each query the number of its pairs of documents with different grades, or the sum of their weights.

    >>> count_query_pairs(np.array([0.0, 1.0, 1.0, 2.0]), np.array([0, 3, 4])).tolist()
    [2.0, 0.0]
    """
    cost = np.ones(len(y)) if doc_weight is None else doc_weight
    labels = PairLabels(find_grade_places(y, indptr), cost, np.ones(len(indptr) - 1), indptr, doc_weight)
    return sum_pair_costs(labels)[0]


def compute_pair_weights(queries: Queries, pair_weighting: str) -> Floats:
    """Return by query the weight of each of its pairs, so that all pairs, or all queries, count alike."""
    if pair_weighting == "pair":
        return queries.query_weight
    if pair_weighting != "query":
        raise InputError(f"pair_weighting={pair_weighting!r}; expected 'pair', 'query' or, of objectives, 'relevance'")
    pairs = count_query_pairs(queries.y, queries.indptr, queries.doc_weight)
    weights: Floats = np.divide(queries.query_weight, pairs, out=np.zeros(len(pairs)), where=pairs > 0)
    return weights


def _make_pair_labels(queries: Queries, pair_weighting: str) -> PairLabels:
    """Return what the hinge kernels need of the labels: the places of the grades, and the weights of pairs."""
    places = find_grade_places(queries.y, queries.indptr)
    cost = np.ones(queries.n_docs) if queries.doc_weight is None else queries.doc_weight
    weight = compute_pair_weights(queries, pair_weighting)
    return PairLabels(places, cost, weight, queries.indptr, queries.doc_weight)


def sort_by_grade(queries: Queries, pair_weighting: str) -> tuple[Ints, GradedDocuments]:
    """Return the rows by query and descending grade, and the pairs of different grades with their weights."""
    rows, lower = find_grade_order(queries.y, queries.indptr)
    doc_weight = None if queries.doc_weight is None else queries.doc_weight[rows]
    return rows, GradedDocuments(queries.indptr, lower, compute_pair_weights(queries, pair_weighting), doc_weight)


def _check_margin(margin: float) -> float:
    if not 0.0 < margin < np.inf:
        raise InputError(f"margin={margin!r}; expected a finite number above 0")
    return float(margin)


def _check_probability(target: float) -> float:
    if not 0.0 <= target <= 1.0:
        raise InputError(f"target={target!r}; expected a probability, from 0 to 1")
    return float(target)
