"""Rankings of queries under a measure E and a query-level score F, and searches for those that bounds need."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from rankwright.basics.array_types import Floats, Ints
from rankwright.basics.errors import InputError
from rankwright.data.queries import Queries
from rankwright.kernels.measures.sorting import sort_rows
from rankwright.kernels.objectives.assignment import assign_ranks
from rankwright.kernels.objectives.lattice import SLACK, count_nodes, find_best_paths, search_worst
from rankwright.kernels.objectives.ranking_search import (
    find_best_imperfect,
    find_classes,
    find_hardest_perfect,
    find_most_violated_precision,
)
from rankwright.measures import Measure, MeasureArrays, PreparedMeasure
from rankwright.objectives.phi import PHIS, Phi

MAX_NODES = 1 << 20  # of a query's lattice
_FEW_NODES = 1 << 8  # above this an assignment is faster, where one is possible


class Rankings(ABC):
    """The rankings of some queries under a measure: their values, and searches for those that bounds need.

    A ranking of all queries is an array of their rows, each query's in ranked order.

    E is the measure divided by the query's highest value, so that perfect rankings have E = 1, whatever the measure. A
    query counts only if some ranking of it is imperfect: ``live`` holds the queries that count.

    Parameters
    ----------
    queries : Queries
        The judged documents.
    measure : PreparedMeasure
        The measure, prepared for these queries.
    phi : Phi
        The pairs of documents that F sums over.
    gain : array of shape (n_docs,)
        Documents with equal gains are of one class.
    """

    can_search: ClassVar[bool]  # whether ``find_most_violated`` depends on the scale of the scores

    def __init__(self, queries: Queries, measure: PreparedMeasure, phi: Phi, gain: Floats) -> None:
        self.indptr, self.measure, self.phi = queries.indptr, measure, phi
        self.classes, self.n_classes, pairs = find_classes(gain, queries.indptr)
        self.norm = np.maximum(phi.norms(queries.sizes, pairs), 1.0)
        best_last = self.classes.astype(np.float64)
        self.ideal, worst = self._value(self.rank_by_score(-best_last)), self._value(self.rank_by_score(best_last))
        self.live: Ints = np.flatnonzero(self.ideal - worst > SLACK * self.ideal)

    def rank_by_score(self, scores: Floats) -> Ints:
        """Return the ranking by descending score; of equal scores the lower grade comes first."""
        order = np.arange(len(scores))
        sort_rows(scores, self.measure.tie_keys, self.indptr, 0, len(self.norm), order)
        return order

    def E(self, order: Ints) -> Floats:
        """Return E of a ranking of every query; it is 1 for perfect rankings and for queries that do not count."""
        out = np.ones(len(self.ideal))
        out[self.live] = self._value(order)[self.live] / self.ideal[self.live]
        return out

    def compute_coefficients(self, order: Ints) -> Floats:
        """Return the derivative of F of this ranking by every score; F is linear in the scores."""
        out = np.empty(len(order))
        self.phi.fill(order, self.classes, self.n_classes, self.norm, self.indptr, out)
        return out

    def F(self, order: Ints, scores: Floats) -> Floats:
        """Return the query-level score of a ranking of every query."""
        total: Floats = np.add.reduceat(self.compute_coefficients(order) * scores, self.indptr[:-1])
        return total

    def find_hardest_by_grade(self, scores: Floats) -> Ints:
        """Return for every query the ranking with the lowest F among those by descending gain of all documents."""
        order = np.arange(len(scores))
        find_hardest_perfect(scores, self.classes, len(scores), self.indptr, order)
        return order

    @property
    @abstractmethod
    def same_F(self) -> bool:
        """Whether all perfect rankings of a query have the same F."""

    @abstractmethod
    def find_hardest_perfect(self, scores: Floats) -> Ints:
        """Return for every query the perfect ranking with the lowest F."""

    @abstractmethod
    def find_best_imperfect(self, scores: Floats) -> Ints:
        """Return for every query that counts the imperfect ranking with the highest F."""

    @abstractmethod
    def find_most_violated(self, scores: Floats, trade: float = 1.0) -> Ints:
        """Return for every query that counts the imperfect ranking with the highest trade (1 - E) + F.

        The ranking may be perfect where no imperfect one would have a positive loss.
        """

    def find_violated(self, scores: Floats, trades: Sequence[float]) -> Iterator[Ints]:
        """Yield the most violated rankings at different trades."""
        return (self.find_most_violated(scores, trade) for trade in trades)

    @property
    @abstractmethod
    def searches_all(self) -> NDArray[np.bool_]:
        """Whether, for each query, ``find_most_violated`` is certain to find the most violated ranking of all."""

    @abstractmethod
    def search_worst(
        self, scores: Floats, kind: int, F_perfect: Floats, values: Floats, order: Ints, most: int
    ) -> NDArray[np.bool_]:
        """Replace imperfect rankings that have these violations by the worst ones, in place.

        Return for each query whether no ranking is worse. ``F_perfect`` is the F of a perfect ranking that a query's F
        is compared with, and ``kind`` the comparison (``kernels/objectives/surrogates.py``).
        """

    def _value(self, order: Ints) -> Floats:
        out = np.empty(len(self.norm))
        self.measure.fill_values(np.zeros(len(order)), order, 0, len(out), out)
        return np.nan_to_num(out)


class TableRankings(Rankings):
    """The rankings under a built-in measure, which kernels search."""

    can_search = True

    def __init__(self, queries: Queries, measure: PreparedMeasure, phi: Phi, arrays: MeasureArrays) -> None:
        super().__init__(queries, measure, phi, arrays.gain)
        arrays = arrays._replace(discount=arrays.discount[: np.count_nonzero(arrays.discount > 0)])
        self.arrays = arrays
        discount = arrays.discount[: self.depth]
        certain, none = arrays.gain >= 1.0, arrays.gain == 0.0  # in a cascade nothing counts after a certain one
        first_alone = arrays.v < 0 and certain.any() and bool((certain | none).all())
        # every rank down to this depth counts more than the next one: closed rules hold
        self.rule_depth = 1 if first_alone else self.depth
        self.strict = bool((np.diff(discount) < 0).all()) and (first_alone or arrays.v >= 0 or not certain.any())
        self.worth = self.ideal / np.where(arrays.scale > 0, arrays.scale, 1.0)  # a sum of gains that makes E = 1

    @cached_property
    def depth(self) -> int:
        """The number of ranks with a discount, at most the length of the longest query."""
        return min(len(self.arrays.discount), int(np.diff(self.indptr).max()))

    @cached_property
    def _sizes(self) -> Floats:
        return count_nodes(self.classes, self.depth, self.indptr)

    @cached_property
    def small(self) -> NDArray[np.bool_]:
        """Whether the lattice of each query is small enough to be searched."""
        return self._sizes <= MAX_NODES

    @cached_property
    def same_F(self) -> bool:
        """Whether all perfect rankings of a query have the same F."""
        whole = self.rule_depth == np.diff(self.indptr).max()
        return bool(self.strict and whole and self.phi.same_for_perfect)

    @cached_property
    def _is_precision(self) -> bool:
        return self.arrays.u == 1.0 and self.same_F

    def find_hardest_perfect(self, scores: Floats) -> Ints:
        """Find it by a rule for strict measures, otherwise by the lattice with the scores negated."""
        if self.strict:
            order = np.arange(len(scores))
            find_hardest_perfect(scores, self.classes, self.rule_depth, self.indptr, order)
            return order
        return self._search_paths(-scores, 0.0, True)

    def find_best_imperfect(self, scores: Floats) -> Ints:
        """Find it by a rule for strict measures, otherwise by the lattice."""
        if not self.strict:
            return self._search_paths(scores, 0.0, False)
        order = self.rank_by_score(scores)
        find_best_imperfect(scores, self.classes, self.rule_depth, self.indptr, order)
        # a loss below the precision of the measure does not count, even if the measure is strict
        unseen = (self.E(order) >= 1.0 - SLACK) & self.small & np.isin(np.arange(len(self.norm)), self.live)
        if not unseen.any():
            return order
        found = self._search_paths(scores, 0.0, False, np.flatnonzero(unseen))
        return np.where(np.repeat(unseen, np.diff(self.indptr)), found, order)

    def find_most_violated(self, scores: Floats, trade: float = 1.0) -> Ints:
        """Find it by a rule for average precision, by the lattice, or by assignment where that is too large."""
        if not self._is_precision:
            return self._search_paths(scores, trade, False)
        order = self.rank_by_score(scores)
        find_most_violated_precision(scores, self.classes, self.norm, trade, self.live, self.indptr, order)
        return order

    @property
    def searches_all(self) -> NDArray[np.bool_]:
        """Whether the search is exact: an assignment may end at a perfect ranking with a higher F than others."""
        return self.small | self.same_F

    def search_worst(
        self, scores: Floats, kind: int, F_perfect: Floats, values: Floats, order: Ints, most: int
    ) -> NDArray[np.bool_]:
        """Search by branch and bound, visiting at most ``most`` nodes for each query."""
        best = self.rank_by_score(scores)
        x = self.F(best, scores) - F_perfect
        about = (self.classes, self.worth, self.norm)
        visited = search_worst(self.arrays, best, scores, *about, kind, x, values, most, self.live, order)
        certain: NDArray[np.bool_] = visited <= most
        return certain

    def _search_paths(self, scores: Floats, trade: float, perfect: bool, only: Ints | None = None) -> Ints:
        """Search the lattice, or assign ranks, for the queries that count or ``only`` some; rank others by score."""
        u, v = self.arrays.u, self.arrays.v
        order, wanted = self.rank_by_score(scores), self.live if only is None else only
        assignable = trade > 0.0 and u == 0.0 and v == 0.0 and not perfect and self.same_F
        small = self._sizes <= min(_FEW_NODES, MAX_NODES) if assignable else self.small
        live = wanted[small[wanted]]
        find_best_paths(self.arrays, order, scores, self.classes, self.worth, self.norm, trade, perfect, live)
        large = wanted[~small[wanted]]
        if len(large) and (u != 0.0 or v != 0.0 or perfect or trade == 0.0):
            raise InputError("a query has too many documents and grades for this measure; give it a cut-off, like @10")
        if len(large):
            assign_ranks(self.arrays, order, scores, self.classes, self.worth, self.norm, trade, large)
        return order


class PlainRankings(Rankings):
    """The rankings under a user's measure, of which only values are known, so that few can be searched.

    Ranking by descending grade is assumed to be perfect. The best imperfect ranking is the order of the scores or,
    where that is perfect, the cheapest swap of neighbours of different grades that lowers the measure.
    """

    can_search = False

    @property
    def same_F(self) -> bool:
        """Whether all rankings by descending grade have the same F."""
        return self.phi.same_for_perfect

    def find_hardest_perfect(self, scores: Floats) -> Ints:
        """Rank by descending grade, the lowest scores first."""
        return self.find_hardest_by_grade(scores)

    def find_best_imperfect(self, scores: Floats) -> Ints:
        """Try swaps of neighbours, the cheapest first."""
        order = self.rank_by_score(scores)
        E, value = self.E(order), np.empty(len(self.norm))
        for q in self.live[E[self.live] >= 1.0 - SLACK]:
            rows = order[self.indptr[q] : self.indptr[q + 1]]
            different = np.flatnonzero(np.diff(self.classes[rows]))
            for j in different[np.argsort(scores[rows[different]] - scores[rows[different + 1]], kind="stable")]:
                rows[[j, j + 1]] = rows[[j + 1, j]]
                self.measure.fill_values(scores, order, int(q), int(q) + 1, value)
                if value[q] < (1.0 - SLACK) * self.ideal[q]:
                    break
                rows[[j, j + 1]] = rows[[j + 1, j]]
        return order

    def find_most_violated(self, scores: Floats, trade: float = 1.0) -> Ints:
        """Return the best imperfect ranking: values alone do not lead to a worse one."""
        return self.find_best_imperfect(scores)

    def find_violated(self, scores: Floats, trades: Sequence[float]) -> Iterator[Ints]:
        """Yield nothing: the best imperfect ranking is the only candidate."""
        return iter(())

    @property
    def searches_all(self) -> NDArray[np.bool_]:
        """Whether the search is exact: it never is."""
        return np.zeros(len(self.norm), dtype=bool)

    def search_worst(
        self, scores: Floats, kind: int, F_perfect: Floats, values: Floats, order: Ints, most: int
    ) -> NDArray[np.bool_]:
        """Keep the rankings: there is nothing to search."""
        return np.zeros(len(values), dtype=bool)


def prepare_rankings(measure: Measure, queries: Queries, phi: str = "pairs") -> Rankings:
    """Make the rankings of these queries under a measure, to be searched; F sums over "pairs" or "ranks"."""
    prepared = measure.for_training().prepare(queries)
    if not measure.has_arrays:
        return PlainRankings(queries, prepared, PHIS[phi], queries.y)
    return TableRankings(queries, prepared, PHIS[phi], prepared.arrays)
