"""Upper bounds prepared for queries: the loss of every query at some scores, its gradient, and whether it is exact."""

from __future__ import annotations

from abc import abstractmethod
from itertools import permutations
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankwright.basics.array_types import Floats, Ints
from rankwright.basics.errors import InputError
from rankwright.data.queries import Queries
from rankwright.kernels.objectives.lattice import SLACK
from rankwright.kernels.objectives.surrogates import MARGIN, STEP, compute_violations
from rankwright.measures import Measure
from rankwright.objectives.base import Evaluation, PreparedObjective
from rankwright.objectives.rankings import prepare_rankings

SHORT = 7  # documents: all n! rankings of a query this short are listed
_TRADES = (0.25, 1.0, 4.0)  # weights of 1 - E against F, with which a search for the worst ranking begins


class QueryLosses(NamedTuple):
    """The values of a bound at some scores, by query, with their gradient and whether each value is exact."""

    values: Floats  # by query
    gradient: Floats  # of their weighted sum, by score
    exact: NDArray[np.bool_]  # by query; otherwise the true value may be larger, but the value is an upper bound, too


class PreparedBound(PreparedObjective):
    """An upper bound on the loss 1 - measure, prepared for some queries; ``at`` returns it query by query."""

    def __init__(self, measure: Measure, queries: Queries, phi: str = "pairs") -> None:
        self.rankings = prepare_rankings(measure, queries, phi)
        self.weight, self.sizes = queries.query_weight, queries.sizes

    def at(self, scores: Floats) -> QueryLosses:
        """Return the loss of each query at these scores."""
        scores = np.asarray(scores, dtype=np.float64)
        if not np.isfinite(scores).all():
            raise InputError(f"score {int(np.argmin(np.isfinite(scores)))} is not finite; a bound needs finite scores")
        return self._at(self._normalise(scores))

    def _normalise(self, scores: Floats) -> Floats:
        """Subtract the highest score of each query: F does not change, and ties stay exact."""
        shifted: Floats = scores - np.repeat(np.maximum.reduceat(scores, self.rankings.indptr[:-1]), self.sizes)
        return shifted

    @abstractmethod
    def _at(self, scores: Floats) -> QueryLosses:
        """Return the loss of each query at scores whose highest in each query is 0."""

    def __call__(self, scores: Floats, rng: np.random.Generator | None = None) -> Evaluation:
        """Return the weighted sum over the queries with its gradient."""
        found = self.at(scores)
        return Evaluation(float(found.values @ self.weight), found.gradient)

    def _piecewise_constant(self, values: Floats) -> QueryLosses:
        """Return values that are constant except at ties, with gradient 0; queries that do not count have loss 0."""
        dead = np.ones(len(values), dtype=bool)
        dead[self.rankings.live] = False
        return QueryLosses(np.where(dead, 0.0, values), np.zeros(self.sizes.sum()), np.ones(len(values), dtype=bool))


class PreparedBasicLoss(PreparedBound):
    """The basic loss, prepared for some queries: 1 - E, E the measure divided by the query's highest value."""

    def _at(self, scores: Floats) -> QueryLosses:
        return self._piecewise_constant(1.0 - self.rankings.E(self.rankings.rank_by_score(scores)))


class PreparedTypeOne(PreparedBound):
    """A type one bound of Xu et al. (2008), prepared for some queries: a decreasing function of the measure."""

    def __init__(self, measure: Measure, queries: Queries, kind: int) -> None:
        super().__init__(measure, queries)
        self.kind = kind

    def _at(self, scores: Floats) -> QueryLosses:
        E = self.rankings.E(self.rankings.rank_by_score(scores))
        return self._piecewise_constant(compute_violations(self.kind, np.ones(len(E)), -E)[0])


class TypeTwoOptions(NamedTuple):
    """The options of a type two bound: its surrogate, pairs, perfect rankings, and limit on the search."""

    kind: int  # of kernels/objectives/surrogates.py
    phi: str
    by_grade: bool  # whether perfect means by descending gain down to the last document
    effort: int  # the most nodes that a search visits


class _PreparedTypeTwo(PreparedBound):
    """A type two bound, prepared for some queries: it compares perfect rankings with imperfect ones."""

    def __init__(self, measure: Measure, queries: Queries, options: TypeTwoOptions) -> None:
        super().__init__(measure, queries, options.phi)
        self.kind, self.by_grade, self.effort = options.kind, options.by_grade, options.effort
        self.same: Floats | None = None
        if self.rankings.same_F or (self.by_grade and options.phi == "pairs"):
            self.same = self.rankings.compute_coefficients(
                self.rankings.find_hardest_by_grade(np.zeros(queries.n_docs))
            )

    def _normalise(self, scores: Floats) -> Floats:
        """Scale the lowest score of each query to -1 for the step, whose value has no scale but whose rounding has."""
        shifted = super()._normalise(scores)
        if self.kind != STEP:
            return shifted
        lows = np.minimum.reduceat(shifted, self.rankings.indptr[:-1])
        scaled: Floats = shifted / np.repeat(np.maximum(-lows, 1e-300), self.sizes)
        return scaled

    def compute_perfect(self, scores: Floats) -> Floats:
        """Return the derivatives of F of the hardest perfect rankings; under the pair Phi all may have the same."""
        if self.same is not None:
            return self.same
        r = self.rankings
        return r.compute_coefficients(
            r.find_hardest_by_grade(scores) if self.by_grade else r.find_hardest_perfect(scores)
        )

    def F(self, coefficients: Floats, scores: Floats) -> Floats:
        """Return F of each query from its derivatives."""
        total: Floats = np.add.reduceat(coefficients * scores, self.rankings.indptr[:-1])
        return total


class PreparedMax(_PreparedTypeTwo):
    """A type two bound, prepared for some queries: the largest over pairs of a perfect and an imperfect ranking."""

    def _at(self, scores: Floats) -> QueryLosses:
        r = self.rankings
        perfect = self.compute_perfect(scores)
        F_perfect = self.F(perfect, scores)
        if self.kind == MARGIN:
            found, exact = r.find_most_violated(scores), r.searches_all
        else:
            found, exact = self._search(scores, F_perfect)
        own = r.compute_coefficients(found)
        values, slopes = compute_violations(self.kind, 1.0 - r.E(found), self.F(own, scores) - F_perfect)
        counts = np.zeros(len(values))
        counts[r.live] = 1.0
        by_row = np.repeat(slopes * counts * self.weight, self.sizes)
        return QueryLosses(values * counts, by_row * (own - perfect), exact)

    def _search(self, scores: Floats, F_perfect: Floats) -> tuple[Ints, NDArray[np.bool_]]:
        r = self.rankings
        found = r.find_best_imperfect(scores)
        values = self._violations(found, scores, F_perfect)
        for other in r.find_violated(scores, _TRADES):
            its = self._violations(other, scores, F_perfect)
            found = np.where(np.repeat(its > values, self.sizes), other, found)
            values = np.maximum(values, its)
        return found, r.search_worst(scores, self.kind, F_perfect, values, found, self.effort)

    def _violations(self, order: Ints, scores: Floats, F_perfect: Floats) -> Floats:
        r = self.rankings
        return compute_violations(self.kind, 1.0 - r.E(order), r.F(order, scores) - F_perfect)[0]


class PreparedSum(_PreparedTypeTwo):
    """A type two bound, prepared for some queries: the sum over pairs of a perfect and an imperfect ranking.

    For short queries the sum is over all pairs, for long ones over working sets.
    """

    def __init__(self, measure: Measure, queries: Queries, options: TypeTwoOptions) -> None:
        super().__init__(measure, queries, options)
        short = [int(q) for q in self.rankings.live if self.sizes[q] <= SHORT]
        self.listed = {q: _AllRankings.of(measure, queries.slice(q, q + 1), options) for q in short}

    def _at(self, scores: Floats) -> QueryLosses:
        values, gradient = np.zeros(len(self.sizes)), np.zeros(len(scores))
        exact = np.zeros(len(self.sizes), dtype=bool)
        for q, listed in self.listed.items():
            rows = slice(int(self.rankings.indptr[q]), int(self.rankings.indptr[q + 1]))
            values[q], by_score = listed.sum_pairs(self.kind, scores[rows])
            gradient[rows], exact[q] = self.weight[q] * by_score, True
        self._add_working_sets(scores, values, gradient, ~exact)
        exact[np.setdiff1d(np.arange(len(exact)), self.rankings.live)] = True
        return QueryLosses(values, gradient, exact)

    def _add_working_sets(self, scores: Floats, values: Floats, gradient: Floats, wanted: NDArray[np.bool_]) -> None:
        r = self.rankings
        counts = np.zeros(len(values))
        counts[r.live] = wanted[r.live]
        if not counts.any():
            return
        perfect, best, violated = (
            self.compute_perfect(scores),
            r.find_best_imperfect(scores),
            r.find_most_violated(scores),
        )
        differ = np.add.reduceat(best != violated, r.indptr[:-1]) > 0
        F_perfect = self.F(perfect, scores)
        for order, weight in ((best, counts), (violated, counts * differ)):
            its, slopes = compute_violations(self.kind, 1.0 - r.E(order), r.F(order, scores) - F_perfect)
            values += weight * its
            gradient += np.repeat(weight * slopes * self.weight, self.sizes) * (r.compute_coefficients(order) - perfect)


class _AllRankings(NamedTuple):
    """The imperfect and the perfect rankings of a short query, all listed, for the sum over their pairs."""

    losses: Floats  # 1 - E of the imperfect ones
    imperfect: Floats  # coefficients of F, a row each
    perfect: Floats

    @classmethod
    def of(cls, measure: Measure, query: Queries, options: TypeTwoOptions) -> _AllRankings:
        """List all rankings of a query."""
        n = query.n_docs
        all_orders = np.array(list(permutations(range(n))))
        many = len(all_orders)
        rows, lists = np.tile(np.arange(n), many), np.zeros(many, np.int64)
        copies = Queries(
            np.zeros((many * n, 1), dtype=np.float32),
            query.y[rows],
            np.arange(many + 1) * n,
            np.arange(many),
            clicks=None if query.clicks is None else query.clicks.take(rows, lists),
        )
        copied = prepare_rankings(measure, copies, options.phi)
        order = (all_orders + np.arange(many)[:, None] * n).ravel()
        E, coefficients = copied.E(order), copied.compute_coefficients(order).reshape(many, n)
        imperfect = E < 1.0 - SLACK
        by_grade = (np.diff(copied.classes[order].reshape(many, n)) >= 0).all(axis=1)
        perfect = by_grade if options.by_grade else ~imperfect
        return cls(1.0 - E[imperfect], coefficients[imperfect], coefficients[perfect])

    def sum_pairs(self, kind: int, scores: Floats) -> tuple[float, Floats]:
        """Return the sum over all pairs of rankings with its gradient."""
        x = (self.imperfect @ scores)[None, :] - (self.perfect @ scores)[:, None]
        values, slopes = compute_violations(kind, np.tile(self.losses, len(self.perfect)), x.ravel())
        by_pair = slopes.reshape(x.shape)
        return float(values.sum()), by_pair.sum(axis=0) @ self.imperfect - by_pair.sum(axis=1) @ self.perfect
