"""Measures written by the user: any Python function of the grades in ranked order."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from rankwright.data import Floats, Ints, Queries
from rankwright.errors import InputError
from rankwright.measures.base import BoundMeasure, Measure

Judge = Callable[[Floats], float]


@dataclass(frozen=True, slots=True)
class CustomMeasure(Measure):
    """A measure computed by a Python function, query by query."""

    name: str
    judge: Judge

    def __str__(self) -> str:
        return self.name

    __repr__ = __str__

    @property
    def bounded(self) -> bool:
        """Always: other values are refused."""
        return True

    def for_training(self) -> CustomMeasure:
        """Itself: its ties are always broken pessimistically."""
        return self

    def for_weak(self) -> CustomMeasure:
        """Itself: the mean over all orders of tied documents has no formula."""
        return self

    def bind(self, queries: Queries) -> BoundCustom:
        """Keep the grades."""
        return BoundCustom(queries.indptr, "pessimistic", queries.y, self)


@dataclass(frozen=True, slots=True, eq=False)
class BoundCustom(BoundMeasure):
    """A user's measure with the grades of one set of queries; it never meets a kernel."""

    indptr: Ints
    ties: str
    tie_keys: Floats  # the grades
    measure: CustomMeasure

    @property
    def counted(self) -> NDArray[np.bool_]:
        """All queries."""
        return np.ones(len(self.indptr) - 1, dtype=bool)

    def fill(self, scores: Floats, order: Ints, start: int, stop: int, out: Floats) -> None:
        """Write the values of queries ``start`` to ``stop``."""
        for q in range(start, stop):
            out[q] = self._judge(self.tie_keys[order[self.indptr[q] : self.indptr[q + 1]]])

    def swap_deltas(self, scores: Floats, query: int) -> Floats:
        """The change of the measure if documents i and j exchanged their ranks, by trying every pair."""
        order = self.rank(scores, query)
        grades = self.tie_keys[self.indptr[query] + order]
        now = self._judge(grades)
        deltas = np.zeros((len(order), len(order)))
        for i, j in combinations(range(len(order)), 2):
            if grades[i] != grades[j]:
                swapped = grades.copy()
                swapped[[i, j]] = grades[[j, i]]
                deltas[order[i], order[j]] = deltas[order[j], order[i]] = self._judge(swapped) - now
        return deltas

    def _judge(self, grades: Floats) -> float:
        value = float(self.measure.judge(grades))
        if not 0.0 <= value <= 1.0:
            raise InputError(f"measure {self.measure} returned {value:g}; expected a number from 0 to 1")
        return value
