"""The rankings of a query as a measure and a query-level score F see them, and those that bounds ask for."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from rankwright.basics.array_types import Floats, Ints
from rankwright.basics.errors import InputError
from rankwright.data.queries import Queries
from rankwright.kernels.measures.sorting import sort_rows
from rankwright.kernels.objectives.assignment import assign_ranks
from rankwright.kernels.objectives.lattice import SLACK, best_paths, lattice_sizes, worst_rankings
from rankwright.kernels.objectives.ranking_search import (
    best_imperfect,
    hardest_perfect,
    rank_classes,
    violate_precision,
)
from rankwright.measures import Measure, MeasureArrays, PreparedMeasure
from rankwright.objectives.phi import PHIS, PairPhi, Phi

MOST_NODES = 1 << 20  # of a query's lattice
_FEW_NODES = 1 << 8  # above this an assignment is faster, where it will do


class Rankings(ABC):
    """The rankings of some queries. A ranking of all is an array of their rows, each query's in ranked order.

    E is the measure divided by the query's highest value, so that perfect rankings have E = 1, whatever the measure. A
    query counts only if some ranking is imperfect: ``live`` holds those that do.

    Parameters
    ----------
    queries : Queries
        The judged documents.
    bound : PreparedMeasure
        The measure of these queries.
    phi : Phi
        What F is made of.
    gain : array of shape (n_docs,)
        Documents with equal gains are of one class.
    """

    def __init__(self, queries: Queries, bound: PreparedMeasure, phi: Phi, gain: Floats) -> None:
        self.indptr, self.bound, self.phi = queries.indptr, bound, phi
        self.classes, self.n_classes, pairs = rank_classes(gain, queries.indptr)
        self.norm = np.maximum(phi.norms(queries.sizes, pairs), 1.0)
        best_last = self.classes.astype(np.float64)
        self.ideal, worst = self._value(self.by_score(-best_last)), self._value(self.by_score(best_last))
        self.live: Ints = np.flatnonzero(self.ideal - worst > SLACK * self.ideal)

    def by_score(self, scores: Floats) -> Ints:
        """The ranking by descending score; of equal scores the lower grade comes first."""
        order = np.arange(len(scores))
        sort_rows(scores, self.bound.tie_keys, self.indptr, 0, len(self.norm), order)
        return order

    def E(self, order: Ints) -> Floats:
        """The measure of a ranking of every query, where perfect is 1; 1 for queries that do not count."""
        out = np.ones(len(self.ideal))
        out[self.live] = self._value(order)[self.live] / self.ideal[self.live]
        return out

    def coefficients(self, order: Ints) -> Floats:
        """The derivative of F of this ranking by every score; F is linear in the scores."""
        out = np.empty(len(order))
        self.phi.fill(order, self.classes, self.n_classes, self.norm, self.indptr, out)
        return out

    def F(self, order: Ints, scores: Floats) -> Floats:
        """The query-level score of a ranking of every query."""
        total: Floats = np.add.reduceat(self.coefficients(order) * scores, self.indptr[:-1])
        return total

    def hardest_by_grade(self, scores: Floats) -> Ints:
        """Of every query, of the rankings that are perfect for the whole list, the one with the lowest F."""
        order = np.arange(len(scores))
        hardest_perfect(scores, self.classes, len(scores), self.indptr, order)
        return order

    @property
    @abstractmethod
    def same_F(self) -> bool:
        """Whether all perfect rankings of a query have the same F."""

    @abstractmethod
    def hardest_perfect(self, scores: Floats) -> Ints:
        """Of every query the perfect ranking with the lowest F."""

    @abstractmethod
    def best_imperfect(self, scores: Floats) -> Ints:
        """Of every query that counts the imperfect ranking with the highest F."""

    @abstractmethod
    def most_violated(self, scores: Floats, trade: float = 1.0) -> Ints:
        """Of every query that counts the imperfect ranking with the highest trade (1 - E) + F.

        It may be perfect where no imperfect one would have a positive loss.
        """

    def violated(self, scores: Floats, trades: Sequence[float]) -> Iterator[Ints]:
        """The most violated rankings at different trades."""
        return (self.most_violated(scores, trade) for trade in trades)

    @property
    @abstractmethod
    def searches_all(self) -> NDArray[np.bool_]:
        """By query, whether ``most_violated`` is certain to be the most violated of all."""

    @abstractmethod
    def worst(
        self, scores: Floats, kind: int, F_perfect: Floats, values: Floats, order: Ints, most: int
    ) -> NDArray[np.bool_]:
        """Replace imperfect rankings of these violations by the worst there are, in place; whether that is certain.

        ``F_perfect`` is what a query's F is compared with, and ``kind`` how (``kernels/surrogates.py``).
        """

    def _value(self, order: Ints) -> Floats:
        out = np.empty(len(self.norm))
        self.bound.fill(np.zeros(len(order)), order, 0, len(out), out)
        return np.nan_to_num(out)


class TableRankings(Rankings):
    """Rankings under a measure made of tables: everything exact, by kernels."""

    def __init__(self, queries: Queries, bound: PreparedMeasure, phi: Phi, arrays: MeasureArrays) -> None:
        super().__init__(queries, bound, phi, arrays.gain)
        arrays = arrays._replace(discount=arrays.discount[: np.count_nonzero(arrays.discount > 0)])
        self.arrays = arrays
        discount = arrays.discount[: self.depth]
        certain, none = arrays.gain >= 1.0, arrays.gain == 0.0  # of a cascade: after such a document nothing counts
        first_alone = arrays.v < 0 and certain.any() and bool((certain | none).all())
        #: how deep rules hold: every rank down to here counts more than the next one
        self.rule_depth = 1 if first_alone else self.depth
        self.strict = bool((np.diff(discount) < 0).all()) and (first_alone or arrays.v >= 0 or not certain.any())
        self.worth = self.ideal / np.where(arrays.scale > 0, arrays.scale, 1.0)  # a sum of gains that makes E = 1

    @cached_property
    def depth(self) -> int:
        """As many as there are discounts."""
        return min(len(self.arrays.discount), int(np.diff(self.indptr).max()))

    @cached_property
    def _sizes(self) -> Floats:
        return lattice_sizes(self.classes, self.depth, self.indptr)

    @cached_property
    def small(self) -> NDArray[np.bool_]:
        """Which queries have a lattice that is small enough."""
        return self._sizes <= MOST_NODES

    @cached_property
    def same_F(self) -> bool:
        """Whether all perfect rankings of a query have the same F."""
        whole = self.rule_depth == np.diff(self.indptr).max()
        return bool(self.strict and whole and isinstance(self.phi, PairPhi))

    @cached_property
    def _precision(self) -> bool:
        return self.arrays.u == 1.0 and self.same_F

    def hardest_perfect(self, scores: Floats) -> Ints:
        """By a rule for strict measures, otherwise by the lattice with the scores turned round."""
        if self.strict:
            order = np.arange(len(scores))
            hardest_perfect(scores, self.classes, self.rule_depth, self.indptr, order)
            return order
        return self._paths(-scores, 0.0, True)

    def best_imperfect(self, scores: Floats) -> Ints:
        """By a rule for strict measures, otherwise by the lattice."""
        if not self.strict:
            return self._paths(scores, 0.0, False)
        order = self.by_score(scores)
        best_imperfect(scores, self.classes, self.rule_depth, self.indptr, order)
        # what cannot be seen in the measure is no loss, however strict it is on paper
        unseen = (self.E(order) >= 1.0 - SLACK) & self.small & np.isin(np.arange(len(self.norm)), self.live)
        if not unseen.any():
            return order
        found = self._paths(scores, 0.0, False, np.flatnonzero(unseen))
        return np.where(np.repeat(unseen, np.diff(self.indptr)), found, order)

    def most_violated(self, scores: Floats, trade: float = 1.0) -> Ints:
        """For average precision by a rule, otherwise by the lattice, or by assignment where that is too large."""
        if not self._precision:
            return self._paths(scores, trade, False)
        order = self.by_score(scores)
        violate_precision(scores, self.classes, self.norm, trade, self.live, self.indptr, order)
        return order

    @property
    def searches_all(self) -> NDArray[np.bool_]:
        """All, but for assignments that may end at a perfect ranking with a higher F than other perfect ones."""
        return self.small | self.same_F

    def worst(
        self, scores: Floats, kind: int, F_perfect: Floats, values: Floats, order: Ints, most: int
    ) -> NDArray[np.bool_]:
        """By branch and bound, of up to so many nodes of a query."""
        best = self.by_score(scores)
        x = self.F(best, scores) - F_perfect
        gain, discount, _, _, u, v = self.arrays
        about = (self.classes, gain, discount, self.worth, u, v, self.norm)
        visited = worst_rankings(best, scores, *about, kind, x, values, most, self.live, self.indptr, order)
        certain: NDArray[np.bool_] = visited <= most
        return certain

    def _paths(self, scores: Floats, trade: float, perfect: bool, only: Ints | None = None) -> Ints:
        """By the lattice, or by assignment; of the queries that count, or of some, the others by score."""
        gain, discount, _, _, u, v = self.arrays
        order, wanted = self.by_score(scores), self.live if only is None else only
        assignable = trade > 0.0 and u == 0.0 and v == 0.0 and not perfect and self.same_F
        small = self._sizes <= min(_FEW_NODES, MOST_NODES) if assignable else self.small
        live = wanted[small[wanted]]
        best_paths(
            order, scores, self.classes, gain, discount, self.worth, u, v, self.norm, trade, perfect, live, self.indptr
        )
        large = wanted[~small[wanted]]
        if len(large) and (u != 0.0 or v != 0.0 or perfect or trade == 0.0):
            raise InputError("a query has too many documents and grades for this measure; give it a cut-off, like @10")
        if len(large):
            assign_ranks(order, scores, self.classes, gain, discount, self.worth, self.norm, trade, large, self.indptr)
        return order


class PlainRankings(Rankings):
    """Rankings under a measure of which only values are known, such as a user's own function of the grades.

    Ranking by descending grade is taken to be perfect. The best imperfect ranking is the order of the scores or, where
    that is perfect, the cheapest swap of neighbours of different grades that lowers the measure.
    """

    @property
    def same_F(self) -> bool:
        """Of those by descending grade, under the pair Phi."""
        return isinstance(self.phi, PairPhi)

    def hardest_perfect(self, scores: Floats) -> Ints:
        """By descending grade, the lowest scores first."""
        return self.hardest_by_grade(scores)

    def best_imperfect(self, scores: Floats) -> Ints:
        """By trying swaps, the cheapest first."""
        order = self.by_score(scores)
        E, value = self.E(order), np.empty(len(self.norm))
        for q in self.live[E[self.live] >= 1.0 - SLACK]:
            rows = order[self.indptr[q] : self.indptr[q + 1]]
            different = np.flatnonzero(np.diff(self.classes[rows]))
            for j in different[np.argsort(scores[rows[different]] - scores[rows[different + 1]], kind="stable")]:
                rows[[j, j + 1]] = rows[[j + 1, j]]
                self.bound.fill(scores, order, int(q), int(q) + 1, value)
                if value[q] < (1.0 - SLACK) * self.ideal[q]:
                    break
                rows[[j, j + 1]] = rows[[j + 1, j]]
        return order

    def most_violated(self, scores: Floats, trade: float = 1.0) -> Ints:
        """The best imperfect one: there is no way to search for a worse one."""
        return self.best_imperfect(scores)

    def violated(self, scores: Floats, trades: Sequence[float]) -> Iterator[Ints]:
        """None but the best imperfect one."""
        return iter(())

    @property
    def searches_all(self) -> NDArray[np.bool_]:
        """None."""
        return np.zeros(len(self.norm), dtype=bool)

    def worst(
        self, scores: Floats, kind: int, F_perfect: Floats, values: Floats, order: Ints, most: int
    ) -> NDArray[np.bool_]:
        """What is known already."""
        return np.zeros(len(values), dtype=bool)


def rankings(measure: Measure, queries: Queries, phi: str = "pairs") -> Rankings:
    """The rankings of these queries under a measure; ``phi`` is "pairs" or "ranks"."""
    bound = measure.for_training().prepare(queries)
    if bound.arrays is None:
        return PlainRankings(queries, bound, PHIS[phi], queries.y)
    return TableRankings(queries, bound, PHIS[phi], bound.arrays)
