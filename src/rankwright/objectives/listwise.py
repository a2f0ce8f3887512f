"""Losses of whole lists, in score space."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from rankwright.data import Floats, Ints, Queries
from rankwright.errors import InputError
from rankwright.kernels.graded import grade_order
from rankwright.kernels.listwise import cosines, cross_entropies, label_likelihoods, query_softmax
from rankwright.measures import NDCG
from rankwright.objectives.base import Evaluation, check_scores

_HIGHEST = 60.0  # grade of a gain


@dataclass(frozen=True, slots=True)
class TopOne:
    """ListNet's loss: the cross entropy -sum over i of P(i) log Q(i), P = softmax(grades), Q = softmax(scores).

    P and Q are the probabilities of being first under Plackett-Luce.

    Notes
    -----
    Cao et al. (2007), top-one probabilities. Convex, O(n).

    Examples
    --------
    >>> queries = Queries.from_arrays(np.zeros((2, 1)), [1, 0], qid=[1, 1])
    >>> TopOne().bind(queries)(np.array([1.0, 0.0])).gradient.tolist()  # the scores are the grades
    [0.0, 0.0]
    """

    def bind(self, queries: Queries) -> BoundTopOne:
        """The wanted probabilities."""
        return BoundTopOne(query_softmax(queries.y, queries.indptr), queries.indptr, queries.query_weight)


@dataclass(frozen=True, slots=True, eq=False)
class BoundTopOne:
    """The cross entropy, bound."""

    target: Floats
    indptr: Ints
    weight: Floats

    def __call__(self, scores: Floats, rng: np.random.Generator | None = None) -> Evaluation:
        """The loss at these scores, and its derivatives."""
        scores = check_scores(scores, len(self.target))
        gradient, curvature = np.empty(len(scores)), np.empty(len(scores))
        loss = cross_entropies(scores, self.target, self.indptr, self.weight, gradient, curvature)
        return Evaluation(loss, gradient, curvature)


@dataclass(frozen=True, slots=True)
class Likelihood:
    """ListMLE's loss: -log of the Plackett-Luce probability of the order of the grades.

        sum over j of log(sum over l_i <= l_j of exp(s_i)) - s_j

    Notes
    -----
    Xia et al. (2008). Documents of one grade have no order among themselves: each is chosen among all of its grade or
    lower ones. Convex, O(n) a query once it is sorted by grade.

    Examples
    --------
    >>> queries = Queries.from_arrays(np.zeros((3, 1)), [2, 1, 0], qid=[1, 1, 1])
    >>> bool(np.isclose(Likelihood().bind(queries)(np.zeros(3)).loss, np.log(3 * 2 * 1)))
    True
    """

    def bind(self, queries: Queries) -> BoundLikelihood:
        """Order the documents by grade."""
        rows, lower = grade_order(queries.y, queries.indptr)
        return BoundLikelihood(rows, lower, queries.indptr, queries.query_weight)


@dataclass(frozen=True, slots=True, eq=False)
class BoundLikelihood:
    """The likelihood, bound."""

    rows: Ints  # by query and descending grade
    lower: Ints
    indptr: Ints
    weight: Floats

    def __call__(self, scores: Floats, rng: np.random.Generator | None = None) -> Evaluation:
        """The loss at these scores, and its derivatives."""
        scores, n = check_scores(scores, len(self.rows)), len(self.rows)
        slopes, curves, gradient, curvature = np.empty(n), np.empty(n), np.empty(n), np.empty(n)
        loss = label_likelihoods(scores[self.rows], self.lower, self.indptr, self.weight, slopes, curves)
        gradient[self.rows], curvature[self.rows] = slopes, curves
        return Evaluation(loss, gradient, curvature)


@dataclass(frozen=True, slots=True)
class Cosine:
    """RankCosine's loss: (1 - t . s / |s|) / 2, s the scores of a query less their mean.

    Parameters
    ----------
    target : "gains" or "ndcg"
        With "gains", t is the gains 2^l - 1 less their mean, divided by their length, so that the loss is
        (1 - cosine) / 2, between 0 and 1. With "ndcg", the gains are divided by the query's ideal DCG in place of their
        length: the form that is consistent with NDCG, in which queries count by what they are worth to it.

    Notes
    -----
    Qin et al. (2008); the consistent form is Ravikumar et al. (2011). Not convex. Where all scores of a query are equal
    the loss is 1/2 and has no slope: begin elsewhere. Queries of one grade count nothing. O(n).

    Examples
    --------
    >>> queries = Queries.from_arrays(np.zeros((2, 1)), [1, 0], qid=[1, 1])
    >>> [round(Cosine().bind(queries)(np.array(scores)).loss, 6) for scores in ([9.0, 1.0], [1.0, 9.0])]
    [0.0, 1.0]
    """

    target: str = "gains"

    def bind(self, queries: Queries) -> BoundCosine:
        """Centre the targets."""
        if self.target not in ("gains", "ndcg"):
            raise InputError(f"target={self.target!r}; expected 'gains' or 'ndcg'")
        highest = float(queries.y.max())
        if highest > _HIGHEST:  # 2^l would be too high
            queries = replace(queries, y=queries.y * (_HIGHEST / highest))
        arrays = NDCG().bind(queries).arrays  # ideals over the full list
        assert arrays is not None
        starts, sizes = queries.indptr[:-1], queries.sizes
        centred = arrays.gain - np.repeat(np.add.reduceat(arrays.gain, starts) / sizes, sizes)
        lengths = np.sqrt(np.add.reduceat(centred**2, starts))
        lengths[lengths <= 1e-12 * np.maximum.reduceat(arrays.gain, starts)] = 0.0  # one grade, but for rounding
        unit = np.divide(1.0, lengths, out=np.zeros(len(lengths)), where=lengths > 0.0)
        if self.target == "ndcg":
            unit = np.where(unit > 0.0, arrays.scale, 0.0)
        return BoundCosine(centred * np.repeat(unit, sizes), queries.indptr, queries.query_weight)


@dataclass(frozen=True, slots=True, eq=False)
class BoundCosine:
    """The cosine, bound."""

    target: Floats
    indptr: Ints
    weight: Floats

    def __call__(self, scores: Floats, rng: np.random.Generator | None = None) -> Evaluation:
        """The loss at these scores, and its gradient."""
        scores = check_scores(scores, len(self.target))
        gradient = np.empty(len(scores))
        return Evaluation(cosines(scores, self.target, self.indptr, self.weight, gradient), gradient)
