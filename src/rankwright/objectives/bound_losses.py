"""Bounds bound to queries: the loss of every query at some scores, its gradient, and whether it is exact."""

from __future__ import annotations

from abc import ABC, abstractmethod
from itertools import permutations
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankwright.basics.array_types import Floats, Ints
from rankwright.basics.errors import InputError
from rankwright.data.queries import Queries
from rankwright.kernels.objectives.lattice import SLACK
from rankwright.kernels.objectives.surrogates import MARGIN, STEP, violations
from rankwright.measures import Measure
from rankwright.objectives.base import Evaluation
from rankwright.objectives.rankings import rankings

SHORT = 7  # documents: all n! rankings of a query are listed
_TRADES = (0.25, 1.0, 4.0)  # between losing E and keeping F, where a search for the worst ranking begins


class Losses(NamedTuple):
    """A bound at some scores."""

    values: Floats  # by query
    gradient: Floats  # of their weighted sum, by score
    exact: NDArray[np.bool_]  # by query; otherwise the true value may be larger, and this one bounds the basic loss too


class PreparedBound(ABC):
    """A loss of some queries."""

    def __init__(self, measure: Measure, queries: Queries, phi: str = "pairs") -> None:
        self.rankings = rankings(measure, queries, phi)
        self.weight, self.sizes = queries.query_weight, queries.sizes

    def at(self, scores: Floats) -> Losses:
        """The loss of each query at these scores."""
        scores = np.asarray(scores, dtype=np.float64)
        if not np.isfinite(scores).all():
            raise InputError(f"score {int(np.argmin(np.isfinite(scores)))} is not finite; bounds are of numbers")
        return self._at(self._prepared(scores))

    def _prepared(self, scores: Floats) -> Floats:
        """Scores less the highest of their query: F does not change, and ties stay ties to the last bit."""
        shifted: Floats = scores - np.repeat(np.maximum.reduceat(scores, self.rankings.indptr[:-1]), self.sizes)
        return shifted

    @abstractmethod
    def _at(self, scores: Floats) -> Losses:
        """The same, where 0 is the highest score of each query."""

    def __call__(self, scores: Floats, rng: np.random.Generator | None = None) -> Evaluation:
        """The weighted sum over the queries, and its gradient."""
        found = self.at(scores)
        return Evaluation(float(found.values @ self.weight), found.gradient)

    def _flat(self, values: Floats) -> Losses:
        """Values that do not change with the scores but at ties; queries that do not count have none."""
        dead = np.ones(len(values), dtype=bool)
        dead[self.rankings.live] = False
        return Losses(np.where(dead, 0.0, values), np.zeros(self.sizes.sum()), np.ones(len(values), dtype=bool))


class PreparedBasicLoss(PreparedBound):
    """1 - E."""

    def _at(self, scores: Floats) -> Losses:
        return self._flat(1.0 - self.rankings.E(self.rankings.by_score(scores)))


class PreparedTypeOne(PreparedBound):
    """A function of E."""

    def __init__(self, measure: Measure, queries: Queries, kind: int) -> None:
        super().__init__(measure, queries)
        self.kind = kind

    def _at(self, scores: Floats) -> Losses:
        E = self.rankings.E(self.rankings.by_score(scores))
        return self._flat(violations(self.kind, np.ones(len(E)), -E)[0])


class Rules(NamedTuple):
    """Which type two bound."""

    kind: int  # kernels/surrogates.py
    phi: str
    by_grade: bool  # whether perfect is by descending gain down to the last document
    effort: int  # nodes of a search


class _PreparedTypeTwo(PreparedBound):
    """Pairs of perfect and imperfect rankings."""

    def __init__(self, measure: Measure, queries: Queries, rules: Rules) -> None:
        super().__init__(measure, queries, rules.phi)
        self.kind, self.by_grade, self.effort = rules.kind, rules.by_grade, rules.effort
        self.same: Floats | None = None
        if self.rankings.same_F or (self.by_grade and rules.phi == "pairs"):
            self.same = self.rankings.coefficients(self.rankings.hardest_by_grade(np.zeros(queries.n_docs)))

    def _prepared(self, scores: Floats) -> Floats:
        """The step knows no scale, but rounding does: the lowest score of a query becomes -1."""
        shifted = super()._prepared(scores)
        if self.kind != STEP:
            return shifted
        lows = np.minimum.reduceat(shifted, self.rankings.indptr[:-1])
        scaled: Floats = shifted / np.repeat(np.maximum(-lows, 1e-300), self.sizes)
        return scaled

    def perfect(self, scores: Floats) -> Floats:
        """The derivatives of F of the hardest perfect rankings; under the pair Phi all may have the same."""
        if self.same is not None:
            return self.same
        r = self.rankings
        return r.coefficients(r.hardest_by_grade(scores) if self.by_grade else r.hardest_perfect(scores))

    def F(self, coefficients: Floats, scores: Floats) -> Floats:
        """By query."""
        total: Floats = np.add.reduceat(coefficients * scores, self.rankings.indptr[:-1])
        return total


class PreparedMax(_PreparedTypeTwo):
    """The worst pair."""

    def _at(self, scores: Floats) -> Losses:
        r = self.rankings
        perfect = self.perfect(scores)
        F_perfect = self.F(perfect, scores)
        if self.kind == MARGIN:
            found, exact = r.most_violated(scores), r.searches_all
        else:
            found, exact = self._search(scores, F_perfect)
        own = r.coefficients(found)
        values, slopes = violations(self.kind, 1.0 - r.E(found), self.F(own, scores) - F_perfect)
        counts = np.zeros(len(values))
        counts[r.live] = 1.0
        by_row = np.repeat(slopes * counts * self.weight, self.sizes)
        return Losses(values * counts, by_row * (own - perfect), exact)

    def _search(self, scores: Floats, F_perfect: Floats) -> tuple[Ints, NDArray[np.bool_]]:
        r = self.rankings
        found = r.best_imperfect(scores)
        values = self._violations(found, scores, F_perfect)
        for other in r.violated(scores, _TRADES):
            its = self._violations(other, scores, F_perfect)
            found = np.where(np.repeat(its > values, self.sizes), other, found)
            values = np.maximum(values, its)
        return found, r.worst(scores, self.kind, F_perfect, values, found, self.effort)

    def _violations(self, order: Ints, scores: Floats, F_perfect: Floats) -> Floats:
        r = self.rankings
        return violations(self.kind, 1.0 - r.E(order), r.F(order, scores) - F_perfect)[0]


class PreparedSum(_PreparedTypeTwo):
    """The sum over all pairs; of long queries, over working sets."""

    def __init__(self, measure: Measure, queries: Queries, rules: Rules) -> None:
        super().__init__(measure, queries, rules)
        short = [int(q) for q in self.rankings.live if self.sizes[q] <= SHORT]
        self.listed = {q: _Listed.of(measure, queries.slice(q, q + 1), rules) for q in short}

    def _at(self, scores: Floats) -> Losses:
        values, gradient = np.zeros(len(self.sizes)), np.zeros(len(scores))
        exact = np.zeros(len(self.sizes), dtype=bool)
        for q, listed in self.listed.items():
            rows = slice(int(self.rankings.indptr[q]), int(self.rankings.indptr[q + 1]))
            values[q], by_score = listed.total(self.kind, scores[rows])
            gradient[rows], exact[q] = self.weight[q] * by_score, True
        self._add_working_sets(scores, values, gradient, ~exact)
        exact[np.setdiff1d(np.arange(len(exact)), self.rankings.live)] = True
        return Losses(values, gradient, exact)

    def _add_working_sets(self, scores: Floats, values: Floats, gradient: Floats, wanted: NDArray[np.bool_]) -> None:
        r = self.rankings
        counts = np.zeros(len(values))
        counts[r.live] = wanted[r.live]
        if not counts.any():
            return
        perfect, best, violated = self.perfect(scores), r.best_imperfect(scores), r.most_violated(scores)
        differ = np.add.reduceat(best != violated, r.indptr[:-1]) > 0
        F_perfect = self.F(perfect, scores)
        for order, weight in ((best, counts), (violated, counts * differ)):
            its, slopes = violations(self.kind, 1.0 - r.E(order), r.F(order, scores) - F_perfect)
            values += weight * its
            gradient += np.repeat(weight * slopes * self.weight, self.sizes) * (r.coefficients(order) - perfect)


class _Listed(NamedTuple):
    """All rankings of a short query."""

    lost: Floats  # 1 - E of the imperfect ones
    imperfect: Floats  # coefficients of F, a row each
    perfect: Floats

    @classmethod
    def of(cls, measure: Measure, query: Queries, rules: Rules) -> _Listed:
        """List them."""
        n = query.n_docs
        all_orders = np.array(list(permutations(range(n))))
        many = len(all_orders)
        copies = Queries(
            np.zeros((many * n, 1), dtype=np.float32),
            np.tile(query.y, many),
            np.arange(many + 1) * n,
            np.arange(many),
        )
        copied = rankings(measure, copies, rules.phi)
        order = (all_orders + np.arange(many)[:, None] * n).ravel()
        E, coefficients = copied.E(order), copied.coefficients(order).reshape(many, n)
        imperfect = E < 1.0 - SLACK
        by_grade = (np.diff(copied.classes[order].reshape(many, n)) >= 0).all(axis=1)
        perfect = by_grade if rules.by_grade else ~imperfect
        return cls(1.0 - E[imperfect], coefficients[imperfect], coefficients[perfect])

    def total(self, kind: int, scores: Floats) -> tuple[float, Floats]:
        """The sum over all pairs of rankings, and its gradient."""
        x = (self.imperfect @ scores)[None, :] - (self.perfect @ scores)[:, None]
        values, slopes = violations(kind, np.tile(self.lost, len(self.perfect)), x.ravel())
        by_pair = slopes.reshape(x.shape)
        return float(values.sum()), by_pair.sum(axis=0) @ self.imperfect - by_pair.sum(axis=1) @ self.perfect
