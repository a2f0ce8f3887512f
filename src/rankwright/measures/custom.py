"""Measures written by the user: any Python function of the grades in ranked order."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from inspect import Parameter, signature
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from rankwright.basics.array_types import Floats, Ints
from rankwright.basics.errors import InputError
from rankwright.data.queries import Queries, Unretrieved
from rankwright.kernels.measures.jump_buckets import count_jumps
from rankwright.measures.base import N_BUCKETS, Jumps, Lines, Measure, PreparedMeasure, Tally

Judge = Callable[..., float]
_NONE = np.empty(0)


@dataclass(frozen=True, slots=True)
class CustomMeasure(Measure):
    """A measure computed by a Python function, query by query.

    Parameters
    ----------
    name : str
    judge : callable
        Of the grades in ranked order and, if ``sees_unretrieved``, of the grades of judged documents that no run found.
    sees_unretrieved : bool
    """

    name: str
    judge: Judge
    sees_unretrieved: bool = False

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

    def for_bounds(self) -> CustomMeasure:
        """Itself."""
        return self

    @property
    def family(self) -> str:
        """A function of its own."""
        return "custom"

    @property
    def cut_off(self) -> None:
        """Unknown: the function sees every grade."""
        return

    def truncated(self, k: int) -> CustomMeasure:
        """The function of the first ``k`` grades."""
        name = f"{self.name} of the first {k}"
        if self.sees_unretrieved:
            return CustomMeasure(name, lambda grades, others: self.judge(grades[:k], others), sees_unretrieved=True)
        return CustomMeasure(name, lambda grades: self.judge(grades[:k]))

    def cut_at(self, k: int | None) -> CustomMeasure:
        """The function of the first ``k`` grades."""
        return self if k is None else self.truncated(k)

    def prepare(self, queries: Queries) -> PreparedCustomMeasure:
        """Keep the grades."""
        return PreparedCustomMeasure(queries.indptr, "pessimistic", queries.y, self, queries.unretrieved)


@dataclass(frozen=True, slots=True, eq=False)
class PreparedCustomMeasure(PreparedMeasure):
    """A user's measure with the grades of one set of queries; it never meets a kernel."""

    indptr: Ints
    ties: str
    tie_keys: Floats  # the grades
    measure: CustomMeasure
    unretrieved: Unretrieved | None = None
    arrays: None = None

    @property
    def counted(self) -> NDArray[np.bool_]:
        """All queries."""
        return np.ones(len(self.indptr) - 1, dtype=bool)

    def fill(self, scores: Floats, order: Ints, start: int, stop: int, out: Floats) -> None:
        """Write the values of queries ``start`` to ``stop``."""
        for q in range(start, stop):
            out[q] = self._judge(self.tie_keys[order[self.indptr[q] : self.indptr[q + 1]]], q)

    @property
    def fixed(self) -> NDArray[np.bool_]:
        """None that is known of."""
        return np.zeros(len(self.indptr) - 1, dtype=bool)

    @property
    def highest(self) -> float:
        """1: other values are refused."""
        return 1.0

    def jumps(self, lines: Lines) -> Jumps:
        """All jumps, query by query, in Python: between crossings of different grades the function is constant."""
        times: list[float] = []
        deltas: list[int] = []
        slopes = lines.slopes
        at_zero, at_low = 0, 0
        for q, worth in enumerate(lines.worth.tolist()):
            rows = slice(int(self.indptr[q]), int(self.indptr[q + 1]))
            at_zero += round(worth * self._judge(self.tie_keys[lines.order[rows]], q))
            found = self._values_between(lines.scores[rows], slopes[rows], q, lines)
            value = at_start = None
            for time, measured in found:
                new = round(worth * measured)
                if value is None:
                    at_start = new
                elif new != value:
                    times.append(time)
                    deltas.append(new - value)
                value = new
            at_low += at_start or 0
        at, changes = np.array(times), np.array(deltas, dtype=np.int64)
        counted = count_jumps(at, changes, 1.0 / lines.unit, N_BUCKETS)
        return Jumps(at, changes, Tally(at_zero, at_low, *counted))

    def _values_between(
        self, scores: Floats, slopes: Floats, query: int, lines: Lines
    ) -> Iterator[tuple[float, float]]:
        """From the left, where each interval between crossings begins and the value within it."""
        grades = self.tie_keys[self.indptr[query] : self.indptr[query + 1]]
        i, j = np.triu_indices(len(scores), 1)
        steeper = slopes[i] - slopes[j]
        cross = np.divide(scores[j] - scores[i], steeper, out=np.full(len(i), np.inf), where=steeper != 0)
        inside = (grades[i] != grades[j]) & (cross > lines.low) & (cross < lines.high) & np.isfinite(cross)
        cuts = np.unique(cross[inside])
        starts = np.concatenate([[lines.low], cuts])
        for start, inner in zip(starts, _between(cuts, lines.low, lines.high), strict=True):
            order = np.lexsort((grades, -(scores + slopes * inner)))
            yield float(start), self._judge(grades[order], query)

    def part(self, start: int, stop: int) -> PreparedCustomMeasure:
        """The grades of these queries."""
        rows = slice(int(self.indptr[start]), int(self.indptr[stop]))
        indptr = self.indptr[start : stop + 1] - self.indptr[start]
        others = None if self.unretrieved is None else self.unretrieved.take(np.arange(start, stop))
        return PreparedCustomMeasure(indptr, self.ties, self.tie_keys[rows], self.measure, others)

    def swap_deltas(self, scores: Floats, query: int) -> Floats:
        """The change of the measure if documents i and j exchanged their ranks, by trying every pair."""
        order = self.rank(scores, query)
        grades = self.tie_keys[self.indptr[query] + order]
        now = self._judge(grades, query)
        deltas = np.zeros((len(order), len(order)))
        for i, j in combinations(range(len(order)), 2):
            if grades[i] != grades[j]:
                swapped = grades.copy()
                swapped[[i, j]] = grades[[j, i]]
                deltas[order[i], order[j]] = deltas[order[j], order[i]] = self._judge(swapped, query) - now
        return deltas

    def _others(self, query: int) -> Floats:
        """The grades of judged documents of a query that no run found."""
        if self.unretrieved is None:
            return _NONE
        y, indptr = self.unretrieved
        return y[indptr[query] : indptr[query + 1]]

    def _judge(self, grades: Floats, query: int) -> float:
        others = () if not self.measure.sees_unretrieved else (self._others(query),)
        value = float(self.measure.judge(grades, *others))
        if not 0.0 <= value <= 1.0:
            raise InputError(f"measure {self.measure} returned {value:g}; expected a number from 0 to 1")
        return value


def takes_two(judge: Judge) -> bool:
    """Return whether a function must have two arguments.

    >>> takes_two(lambda grades: 1.0), takes_two(lambda grades, unretrieved: 1.0), takes_two(lambda grades, k=3: 1.0)
    (False, True, False)
    """
    try:
        parameters = signature(judge).parameters.values()
    except (TypeError, ValueError):  # a function that is not Python's
        return False
    by_place = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)
    return sum(each.kind in by_place and each.default is Parameter.empty for each in parameters) == 2


def _between(cuts: Floats, low: float, high: float) -> Floats:
    """A point in every interval that sorted cuts make of a range."""
    ends = np.concatenate([[low], cuts, [high]])
    if len(cuts) == 0 and np.isinf(low) and np.isinf(high):
        return np.zeros(1)
    ends[0] = ends[1] - 2.0 - 2.0 * abs(ends[1]) if np.isinf(low) else low
    ends[-1] = ends[-2] + 2.0 + 2.0 * abs(ends[-2]) if np.isinf(high) else high
    points: Floats = (ends[1:] + ends[:-1]) / 2
    return points
