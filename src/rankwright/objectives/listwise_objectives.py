"""Losses of whole lists, in score space."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rankwright.basics.array_types import Floats, Ints
from rankwright.basics.errors import InputError
from rankwright.data.queries import Queries
from rankwright.kernels.objectives.graded_pairs import find_grade_order
from rankwright.kernels.objectives.list_losses import (
    compute_query_softmax,
    sum_cosine_losses,
    sum_cross_entropies,
    sum_label_likelihoods,
)
from rankwright.kernels.objectives.plackett_luce import compute_expected_top_two, estimate_expected
from rankwright.measures import NDCG, Measure, MeasureArrays, PreparedMeasure, parse_measure
from rankwright.objectives.base import BuiltinObjective, Evaluation, MeasureObjective, PreparedObjective, check_scores
from rankwright.objectives.smooth_objectives import prepare_gains

_MAX_GRADE = 60.0  # larger grades are scaled down: their gain would be too large


@dataclass(frozen=True, slots=True)
class TopOne(BuiltinObjective):
    """The loss of ListNet: the cross entropy of softmax(grades) and softmax(scores) of each query.

    It is -sum over i of P(i) log Q(i), where P = softmax(grades) and Q = softmax(scores) are the probabilities of being
    first under Plackett-Luce.

    Notes
    -----
    Cao et al. (2007), top-one probabilities. Convex, O(n).

    Examples
    --------
    >>> queries = Queries.from_arrays(np.zeros((2, 1)), [1, 0], qid=[1, 1])
    >>> TopOne().prepare(queries)(np.array([1.0, 0.0])).gradient.tolist()  # the scores are the grades
    [0.0, 0.0]
    """

    def prepare(self, queries: Queries) -> PreparedTopOne:
        """Compute the wanted probabilities."""
        return PreparedTopOne(compute_query_softmax(queries.y, queries.indptr), queries.indptr, queries.query_weight)


@dataclass(frozen=True, slots=True, eq=False)
class PreparedTopOne(PreparedObjective):
    """The loss of ListNet, prepared for some queries."""

    target: Floats
    indptr: Ints
    weight: Floats

    def __call__(self, scores: Floats, rng: np.random.Generator | None = None) -> Evaluation:
        """Return the loss at these scores with its derivatives."""
        scores = check_scores(scores, len(self.target))
        gradient, curvature = np.empty(len(scores)), np.empty(len(scores))
        loss = sum_cross_entropies(scores, self.target, self.indptr, self.weight, gradient, curvature)
        return Evaluation(loss, gradient, curvature)


@dataclass(frozen=True, slots=True)
class Likelihood(BuiltinObjective):
    """The loss of ListMLE: minus the logarithm of the Plackett-Luce probability of the ranking by grade.

        sum over j of log(sum over l_i <= l_j of exp(s_i)) - s_j

    Notes
    -----
    Xia et al. (2008). Documents of one grade have no order among themselves: each is chosen among all of its grade or
    lower ones. Convex, O(n) for each query once it is sorted by grade.

    Examples
    --------
    >>> queries = Queries.from_arrays(np.zeros((3, 1)), [2, 1, 0], qid=[1, 1, 1])
    >>> bool(np.isclose(Likelihood().prepare(queries)(np.zeros(3)).loss, np.log(3 * 2 * 1)))
    True
    """

    def prepare(self, queries: Queries) -> PreparedLikelihood:
        """Sort the documents by grade."""
        rows, lower = find_grade_order(queries.y, queries.indptr)
        return PreparedLikelihood(rows, lower, queries.indptr, queries.query_weight)


@dataclass(frozen=True, slots=True, eq=False)
class PreparedLikelihood(PreparedObjective):
    """The loss of ListMLE, prepared for some queries."""

    rows: Ints  # by query and descending grade
    lower: Ints
    indptr: Ints
    weight: Floats

    def __call__(self, scores: Floats, rng: np.random.Generator | None = None) -> Evaluation:
        """Return the loss at these scores with its derivatives."""
        scores, n = check_scores(scores, len(self.rows)), len(self.rows)
        slopes, curves, gradient, curvature = np.empty(n), np.empty(n), np.empty(n), np.empty(n)
        loss = sum_label_likelihoods(scores[self.rows], self.lower, self.indptr, self.weight, slopes, curves)
        gradient[self.rows], curvature[self.rows] = slopes, curves
        return Evaluation(loss, gradient, curvature)


@dataclass(frozen=True, slots=True)
class Cosine(BuiltinObjective):
    """The loss of RankCosine: (1 - c) / 2, where c is the cosine of a query's centred scores and centred gains.

    In symbols, ``(1 - t . s / |s|) / 2``, where s is the scores of a query minus their mean, and t the target.

    Parameters
    ----------
    target : "gains" or "ndcg"
        With "gains", t is the gains 2^l - 1 less their mean, divided by their length, so that the loss is
        (1 - cosine) / 2, between 0 and 1. With "ndcg", the gains are divided by the query's ideal DCG instead of their
        length. That form is consistent with NDCG: the weight of a query is its share in NDCG.

    Notes
    -----
    Qin et al. (2008); the consistent form is Ravikumar et al. (2011). Not convex. Where all scores of a query are equal
    the loss is 1/2 and its gradient is 0: start from other scores. The loss of queries of one grade is 0. O(n).

    Examples
    --------
    >>> queries = Queries.from_arrays(np.zeros((2, 1)), [1, 0], qid=[1, 1])
    >>> [round(Cosine().prepare(queries)(np.array(scores)).loss, 6) for scores in ([9.0, 1.0], [1.0, 9.0])]
    [0.0, 1.0]
    """

    target: str = "gains"

    def prepare(self, queries: Queries) -> PreparedCosine:
        """Center and normalise the targets."""
        if self.target not in ("gains", "ndcg"):
            raise InputError(f"target={self.target!r}; expected 'gains' or 'ndcg'")
        highest = float(queries.y.max())
        if highest > _MAX_GRADE:
            queries = queries.replace(y=queries.y * (_MAX_GRADE / highest))
        arrays = NDCG().prepare(queries).arrays  # ideals over the full list
        starts, sizes = queries.indptr[:-1], queries.sizes
        centred = arrays.gain - np.repeat(np.add.reduceat(arrays.gain, starts) / sizes, sizes)
        lengths = np.sqrt(np.add.reduceat(centred**2, starts))
        lengths[lengths <= 1e-12 * np.maximum.reduceat(arrays.gain, starts)] = 0.0  # one grade, but for rounding
        unit = np.divide(1.0, lengths, out=np.zeros(len(lengths)), where=lengths > 0.0)
        if self.target == "ndcg":
            unit = np.where(unit > 0.0, arrays.scale, 0.0)
        return PreparedCosine(centred * np.repeat(unit, sizes), queries.indptr, queries.query_weight)


@dataclass(frozen=True, slots=True, eq=False)
class PreparedCosine(PreparedObjective):
    """The loss of RankCosine, prepared for some queries."""

    target: Floats
    indptr: Ints
    weight: Floats

    def __call__(self, scores: Floats, rng: np.random.Generator | None = None) -> Evaluation:
        """Return the loss at these scores with its gradient."""
        scores = check_scores(scores, len(self.target))
        gradient = np.empty(len(scores))
        return Evaluation(sum_cosine_losses(scores, self.target, self.indptr, self.weight, gradient), gradient)


@dataclass(frozen=True, slots=True)
class ExpectedMeasure(MeasureObjective):
    """The loss of BayesRank: 1 - the expected measure of a ranking drawn from the Plackett-Luce model of the scores.

        p(ranking) = product over t of exp(s_t) / (sum over r >= t of exp(s_r))

    Parameters
    ----------
    measure : Measure or str
        Any measure, also a user's own.
    n_samples : int
        The number of rankings drawn for each query at each evaluation. From 2 samples on, the others are the control
        variate of each. Measures of one or two ranks are computed exactly, without samples.

    Notes
    -----
    Kuo et al. (2009), eq. (10) to (14), with the loss 1 - E of section 3.2 for which theorem 1 holds, in place of -E.
    Two ranks are computed exactly in O(n), where the paper's sum has n^2 terms. For more ranks, value and gradient are
    unbiased estimates from sampled rankings, O(n + k log n) each (``kernels/objectives/plackett_luce.py``). The
    derivative of the document at a rank is exact; the ranks after it are sampled as a difference from other samples.
    Without a generator of random numbers the samples are the same at every call. A user's measure has only the value
    of a whole ranking: its advantage over the mean of the other samples weights the ranking's log-probability.

    Examples
    --------
    >>> from rankwright.measures import NDCG
    >>> queries = Queries.from_arrays(np.zeros((2, 1)), [1, 0], qid=[1, 1])
    >>> evaluation = ExpectedMeasure(NDCG(1)).prepare(queries)(np.log([3.0, 1.0]))
    >>> evaluation.loss, evaluation.gradient.tolist()
    (0.25, [-0.1875, 0.1875])
    """

    measure: Measure | str
    n_samples: int = 8

    def prepare(self, queries: Queries) -> PreparedObjective:
        """Compute gains, ideals and discounts."""
        measure = parse_measure(self.measure).for_training()
        if type(self.n_samples) is not int or self.n_samples < 1:
            raise InputError(f"n_samples={self.n_samples!r}; expected a whole number of at least 1")
        prepared = measure.prepare(queries)
        if not measure.has_arrays:
            return PreparedSampledMeasure(prepared, queries.query_weight, self.n_samples)
        data, lost = prepare_gains(measure, queries)
        return PreparedExpectedMeasure(data, float(lost.sum()), self.n_samples)


@dataclass(frozen=True, slots=True, eq=False)
class PreparedExpectedMeasure(PreparedObjective):
    """The loss 1 - expected measure, prepared for some queries and a built-in measure."""

    data: MeasureArrays
    offset: float  # the loss where all gains are 0
    n_samples: int

    @property
    def is_sampled(self) -> bool:
        """Whether loss and gradient are estimates from random samples."""
        return len(self.data.discount) > 2

    def __call__(self, scores: Floats, rng: np.random.Generator | None = None) -> Evaluation:
        """Return the loss at these scores with its gradient, or estimates of both where they are sampled."""
        scores = check_scores(scores, len(self.data.gain))
        if not np.isfinite(scores).all():
            return Evaluation.infinite(len(scores))
        if self.is_sampled:
            return self.estimate(scores, draw_gumbel_noise(rng, self.n_samples, len(scores)))
        gradient = np.empty(len(scores))
        return Evaluation(self.offset - compute_expected_top_two(self.data, scores, gradient), -gradient)

    def estimate(self, scores: Floats, noise: Floats) -> Evaluation:
        """Estimate loss and gradient from the rankings by scores + noise; the noise has a row for each sample."""
        gradient = np.empty(len(scores))
        return Evaluation(self.offset - estimate_expected(self.data, scores, noise, gradient), -gradient)


@dataclass(frozen=True, slots=True, eq=False)
class PreparedSampledMeasure(PreparedObjective):
    """The loss 1 - expected measure, prepared for a user's measure: estimated from sampled rankings."""

    measure: PreparedMeasure
    weight: Floats
    n_samples: int

    @property
    def is_sampled(self) -> bool:
        """Whether loss and gradient are estimates from random samples."""
        return True

    def __call__(self, scores: Floats, rng: np.random.Generator | None = None) -> Evaluation:
        """Return estimates of the loss at these scores and of its gradient."""
        indptr, n = self.measure.indptr, self.n_samples
        scores = check_scores(scores, int(indptr[-1]))
        if not np.isfinite(scores).all():
            return Evaluation.infinite(len(scores))
        scores = scores - np.repeat(np.maximum.reduceat(scores, indptr[:-1]), np.diff(indptr))  # noise is small
        keys = scores + draw_gumbel_noise(rng, n, len(scores))
        values = np.nan_to_num(np.array([self.measure.values(row) for row in keys]))  # by sample and query
        others = (values.sum(axis=0) - values) / (n - 1) if n > 1 else np.zeros_like(values)
        advantage = np.where(self.measure.is_counted, self.weight, 0.0) * (values - others) / n
        gradient, order = np.zeros(len(scores)), np.empty(len(scores), dtype=np.int64)
        for row, worth in zip(keys, advantage, strict=True):
            for q in range(len(self.weight)):  # the likelihood's grades are the places of the drawn ranking
                rows = slice(int(indptr[q]), int(indptr[q + 1]))
                order[rows] = indptr[q] + np.argsort(-row[rows], kind="stable")
            slopes, curves = np.empty(len(scores)), np.empty(len(scores))
            sum_label_likelihoods(scores[order], np.arange(1, len(scores) + 1), indptr, worth, slopes, curves)
            gradient[order] += slopes
        counted = np.where(self.measure.is_counted, self.weight, 0.0)
        return Evaluation(float((counted * (1.0 - values.mean(axis=0))).sum()), gradient)


def draw_gumbel_noise(rng: np.random.Generator | None, n_samples: int, n_docs: int) -> Floats:
    """Draw Gumbel noise by sample and document; sorting by scores + noise draws a Plackett-Luce ranking."""
    noise = (np.random.default_rng(0) if rng is None else rng).standard_exponential((n_samples, n_docs))
    np.log(noise, out=noise)
    return np.negative(noise, out=noise)
