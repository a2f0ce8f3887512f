"""Measures written by the user: any Python function of the grades in ranked order."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from inspect import Parameter, signature
from itertools import combinations
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from rankwright.basics.array_types import Floats, Ints
from rankwright.basics.errors import InputError, quote
from rankwright.data.queries import Queries
from rankwright.data.unretrieved import Unretrieved
from rankwright.kernels.measures.jump_buckets import sum_jumps
from rankwright.measures.base import Measure, PreparedMeasure
from rankwright.measures.jumps import N_BUCKETS, Jumps, JumpTotals, ScoreLines, SearchStoppedError

MeasureFunction = Callable[..., float]
_NO_GRADES = np.empty(0)


@dataclass(frozen=True, slots=True)
class CustomMeasure(Measure):
    """A measure that the user wrote as a Python function of one query's grades in ranked order.

    Parameters
    ----------
    name : str
    function : callable
        A function of the grades in ranked order and, if ``takes_unretrieved``, of the grades of judged documents that
        no run retrieved.
    takes_unretrieved : bool
    """

    has_arrays: ClassVar[bool] = False

    name: str
    function: MeasureFunction
    takes_unretrieved: bool = False

    def __str__(self) -> str:
        return self.name

    __repr__ = __str__

    @property
    def is_normalised(self) -> bool:
        """Whether the values lie between 0 and 1: others are refused."""
        return True

    def for_training(self) -> CustomMeasure:
        """Return the measure itself: its ties are always broken pessimistically."""
        return self

    def for_weak_rankers(self) -> CustomMeasure:
        """Return the measure itself: the mean over all orders of tied documents has no formula."""
        return self

    def for_upper_bounds(self) -> CustomMeasure:
        """Return the measure itself."""
        return self

    @property
    def family(self) -> str:
        """The family of measures that only Python can compute."""
        return "custom"

    @property
    def cut_off(self) -> None:
        """The number of ranks that count: None, since the function sees every grade."""
        return

    def truncate(self, k: int) -> CustomMeasure:
        """Return the measure of the first ``k`` grades."""
        name = f"{self.name} of the first {k}"
        if self.takes_unretrieved:
            return CustomMeasure(name, lambda grades, others: self.function(grades[:k], others), takes_unretrieved=True)
        return CustomMeasure(name, lambda grades: self.function(grades[:k]))

    def with_cut_off(self, k: int | None) -> CustomMeasure:
        """Return the measure of the first ``k`` grades."""
        return self if k is None else self.truncate(k)

    def prepare(self, queries: Queries) -> PreparedCustomMeasure:
        """Keep the grades of these queries."""
        return PreparedCustomMeasure(queries.indptr, "pessimistic", queries.y, self, queries.unretrieved)


@dataclass(frozen=True, slots=True, eq=False)
class PreparedCustomMeasure(PreparedMeasure):
    """A user's measure prepared for one set of queries; its Python function is called query by query."""

    indptr: Ints
    ties: str
    tie_keys: Floats  # the grades
    measure: CustomMeasure
    unretrieved: Unretrieved | None = None

    @property
    def is_counted(self) -> NDArray[np.bool_]:
        """Whether each query has a value: all have."""
        return np.ones(len(self.indptr) - 1, dtype=bool)

    def fill_values(self, scores: Floats, order: Ints, start: int, stop: int, out: Floats) -> None:
        """Write the values of queries ``start`` to ``stop``."""
        for q in range(start, stop):
            out[q] = self._evaluate(self.tie_keys[order[self.indptr[q] : self.indptr[q + 1]]], q)

    @property
    def is_constant(self) -> NDArray[np.bool_]:
        """Whether each query is known to have the same value under every ranking: none is."""
        return np.zeros(len(self.indptr) - 1, dtype=bool)

    @property
    def max_value(self) -> float:
        """The upper bound 1: higher values are refused."""
        return 1.0

    def find_jumps(self, lines: ScoreLines) -> Jumps:
        """Return all jumps, query by query: between crossings of different grades the function is constant."""
        times: list[float] = []
        deltas: list[int] = []
        slopes = lines.slopes
        at_zero, at_low = 0, 0
        for q, scale in enumerate(lines.value_scale.tolist()):
            if lines.stop is not None and lines.stop():
                raise SearchStoppedError
            rows = slice(int(self.indptr[q]), int(self.indptr[q + 1]))
            at_zero += round(scale * self._evaluate(self.tie_keys[lines.order[rows]], q))
            found = self._compute_values_between(lines.scores[rows], slopes[rows], q, lines)
            value = at_start = None
            for time, measured in found:
                new = round(scale * measured)
                if value is None:
                    at_start = new
                elif new != value:
                    times.append(time)
                    deltas.append(new - value)
                value = new
            at_low += at_start or 0
        at, changes = np.array(times), np.array(deltas, dtype=np.int64)
        by_bucket = sum_jumps(at, changes, 1.0 / lines.unit, N_BUCKETS)
        return Jumps(at, changes, JumpTotals(at_zero, at_low, *by_bucket))

    def _compute_values_between(
        self, scores: Floats, slopes: Floats, query: int, lines: ScoreLines
    ) -> Iterator[tuple[float, float]]:
        """Yield the start of each interval between crossings, from the left, and the value within it."""
        grades = self.tie_keys[self.indptr[query] : self.indptr[query + 1]]
        i, j = np.triu_indices(len(scores), 1)
        steeper = slopes[i] - slopes[j]
        cross = np.divide(scores[j] - scores[i], steeper, out=np.full(len(i), np.inf), where=steeper != 0)
        inside = (grades[i] != grades[j]) & (cross > lines.low) & (cross < lines.high) & np.isfinite(cross)
        cuts = np.unique(cross[inside])
        starts = np.concatenate([[lines.low], cuts])
        for start, inner in zip(starts, _choose_points(cuts, lines.low, lines.high), strict=True):
            order = np.lexsort((grades, -(scores + slopes * inner)))
            yield float(start), self._evaluate(grades[order], query)

    def slice(self, start: int, stop: int) -> PreparedCustomMeasure:
        """Return the prepared measure of these queries."""
        rows = slice(int(self.indptr[start]), int(self.indptr[stop]))
        indptr = self.indptr[start : stop + 1] - self.indptr[start]
        others = None if self.unretrieved is None else self.unretrieved.take(np.arange(start, stop))
        return PreparedCustomMeasure(indptr, self.ties, self.tie_keys[rows], self.measure, others)

    def compute_swap_deltas(self, scores: Floats, query: int) -> Floats:
        """Return the change of the measure if documents i and j swapped ranks, by trying every pair."""
        order = self.rank(scores, query)
        grades = self.tie_keys[self.indptr[query] + order]
        now = self._evaluate(grades, query)
        deltas = np.zeros((len(order), len(order)))
        for i, j in combinations(range(len(order)), 2):
            if grades[i] != grades[j]:
                swapped = grades.copy()
                swapped[[i, j]] = grades[[j, i]]
                deltas[order[i], order[j]] = deltas[order[j], order[i]] = self._evaluate(swapped, query) - now
        return deltas

    def _get_unretrieved(self, query: int) -> Floats:
        """Return the grades of judged documents of a query that no run retrieved."""
        if self.unretrieved is None:
            return _NO_GRADES
        y, indptr = self.unretrieved
        return y[indptr[query] : indptr[query + 1]]

    def _evaluate(self, grades: Floats, query: int) -> float:
        others = () if not self.measure.takes_unretrieved else (self._get_unretrieved(query),)
        found = self.measure.function(grades, *others)
        try:
            value = float(found)
        except (TypeError, ValueError):
            expected = "expected a number from 0 to 1"
            raise InputError(f"measure {self.measure} returned {quote(found)}; {expected}") from None
        if not 0.0 <= value <= 1.0:
            raise InputError(f"measure {self.measure} returned {value:g}; expected a number from 0 to 1")
        return value


def takes_two_arguments(function: MeasureFunction) -> bool:
    """Return whether a function has exactly two arguments without defaults.

    >>> takes_two_arguments(lambda grades, k=3: 1.0), takes_two_arguments(lambda grades, unretrieved: 1.0)
    (False, True)
    """
    try:
        parameters = signature(function).parameters.values()
    except (TypeError, ValueError):  # a function that is not Python's
        return False
    by_place = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)
    return sum(each.kind in by_place and each.default is Parameter.empty for each in parameters) == 2


def _choose_points(cuts: Floats, low: float, high: float) -> Floats:
    """Return a point inside each of the intervals into which sorted ``cuts`` divide ``low`` to ``high``."""
    ends = np.concatenate([[low], cuts, [high]])
    if len(cuts) == 0 and np.isinf(low) and np.isinf(high):
        return np.zeros(1)
    ends[0] = ends[1] - 2.0 - 2.0 * abs(ends[1]) if np.isinf(low) else low
    ends[-1] = ends[-2] + 2.0 + 2.0 * abs(ends[-2]) if np.isinf(high) else high
    points: Floats = (ends[1:] + ends[:-1]) / 2
    return points
