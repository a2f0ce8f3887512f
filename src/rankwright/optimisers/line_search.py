"""Line search: the best of all steps along a line, exactly, and the step inside the best interval."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankwright.basics.array_types import Floats, Ints
from rankwright.kernels.optimisers.likelihood import compute_likelihood_slope
from rankwright.optimisers.columns import Direction
from rankwright.optimisers.landscape import JumpsOnLine, Landscape, LandscapePoint, MeasureShard, RankedShard
from rankwright.optimisers.prior_penalty import PenaltyOnLine, PriorPenalty

_NARROW = 1e-9  # intervals narrower than this, relative to t, may come from rounding
_SLACK = 1e-12  # values closer than this are equal
_MAX_TRIES = 3  # intervals whose value is confirmed or refuted
_OTHER_PARTS = (0.6180339887498949, 0.4142135623730951)  # of an interval, tried where the first step hits a tie


@dataclass(frozen=True, slots=True)
class LineSearchResult:
    """The result of a line search: the interval of steps with the best measure, and the step chosen inside it.

    Parameters
    ----------
    low, high : float
        Its ends, which are jumps, or the ends of the search.
    value : float
        The mean measure inside, evaluated again at the chosen step.
    t : float
        The chosen step.
    point : LandscapePoint
        The point after the step.
    """

    low: float
    high: float
    value: float
    t: float
    point: LandscapePoint = field(repr=False)


def search_line(
    landscape: Landscape,
    point: LandscapePoint,
    direction: Direction,
    *,
    low: float = -np.inf,
    high: float = np.inf,
    choice: StepChoice | None = None,
    penalty: PriorPenalty | None = None,
    beat: float = -np.inf,
    stop: Callable[[], bool] | None = None,
) -> LineSearchResult | None:
    """Return the interval of steps along a line with the best measure; None if none is better than ``beat``.

    Of equally good intervals the widest is taken, never one of no width. Its value is evaluated again at the chosen
    step: there two documents may tie whose order elsewhere in the interval does not matter, or whose scores differ by
    rounding only. Then another step is tried, and then the next best interval.

    Parameters
    ----------
    landscape : Landscape
        The measure that is searched.
    point : LandscapePoint
        The point of t = 0.
    direction : int or array
        A column, or a weight for every column.
    low, high : float
        The range of t; it must hold 0.
    choice : StepChoice, optional
        Chooses the step within the best interval; the midpoint by default. An infinite end is replaced by the last
        jump plus (or minus) twice its distance from 0. If that is less, twice the step that changes scores by as much
        as they range counts instead.
    penalty : PriorPenalty, optional
        A penalty subtracted from the measure; the step is then the one inside the interval with the least penalty.
    beat : float
        The value that the measure, less the penalty, must exceed.
    stop : callable, optional
        Whether to give up in the middle, where the measure is a Python function; SearchStoppedError is then raised.

    Examples
    --------
    >>> from rankwright import Queries, Serial, parse_measure
    >>> queries = Queries.from_arrays([[1.0, 0.0], [0.0, 1.0], [0.0, 3.0]], [0, 1, 2], qid=[1, 1, 1])
    >>> landscape = Landscape.of(queries, parse_measure("ndcg"), Serial())
    >>> search_line(landscape, landscape.evaluate(np.array([1.0, 0.0])), 1, low=0.0, high=5.0)
    LineSearchResult(low=1.0, high=5.0, value=1.0, t=3.0)
    """
    paid = None if penalty is None else penalty.along(point.coef, direction)
    jumps = landscape.find_jumps(point, direction, low, high, stop)
    if jumps is None:
        intervals, unit = _Intervals(np.array([low]), np.array([high]), np.array([point.value])), 1.0
    else:
        intervals, unit = _find_candidates(landscape, point, jumps, paid, beat), jumps.unit
    for i in _sort_best_first(intervals, paid, unit, beat, landscape.max_value):
        ends = float(intervals.low[i]), float(intervals.high[i])
        left, right = _make_finite(*ends, unit)
        if paid is None:
            t = (choice or MidpointStep())(landscape, point, direction, left, right)
        else:  # an infinite end does not limit the step
            margin = MARGIN * (right - left)
            t = min(max(paid.argmin, ends[0] + margin), ends[1] - margin)
        for step in (t, *(left + part * (right - left) for part in _OTHER_PARTS)):
            reached = landscape.step(point, direction, step)
            if abs(reached.value - intervals.value[i]) <= _SLACK * landscape.max_value:
                return LineSearchResult(*ends, reached.value, step, reached)
    return None


class _Intervals(NamedTuple):
    """The intervals of a line on which the measure is constant: their ends, from the left, and the measure on each."""

    low: Floats
    high: Floats
    value: Floats

    def penalised(self, paid: PenaltyOnLine | None) -> Floats:
        """Return the measure less the least penalty in each interval."""
        return self.value if paid is None else self.value - paid(paid.argmin_within(self))

    def are_wide(self, unit: float) -> NDArray[np.bool_]:
        """Return which intervals are wider than rounding."""
        ends = np.where(np.isfinite(self.low), np.abs(self.low), 0.0)
        wide: NDArray[np.bool_] = self.high - self.low > _NARROW * (ends + unit)
        return wide


def _find_candidates(
    landscape: Landscape, point: LandscapePoint, jumps: JumpsOnLine, paid: PenaltyOnLine | None, beat: float
) -> _Intervals:
    """Return the intervals that may be the best, taken only from the buckets of jumps that may hold one."""
    at_zero, at_low, sums, gains = jumps.totals
    before = np.concatenate([[0], np.cumsum(sums)]) + (at_low - at_zero)
    occupied = (gains > 0) | (sums != 0)
    at_edges = point.value + before / jumps.fixed_point
    upper = at_edges[:-1] + gains / jumps.fixed_point * (1.0 + 1e-9)
    edges = np.clip(jumps.edges, jumps.low, jumps.high)
    lower = at_edges
    if paid is not None:
        upper = upper - paid(np.clip(paid.argmin, edges[:-1], _find_last_ends(occupied, edges)))
        lower = at_edges - paid(edges)
    floor, slack = max(beat, float(lower.max())), _SLACK * landscape.max_value
    while True:
        wanted = occupied & (upper >= floor - slack)
        at_start = at_edges[0] - (0.0 if paid is None else paid.minimum(jumps.low, float(edges[-1])))
        first = bool(at_start >= floor - slack)
        intervals = _collect_intervals(landscape, point, jumps, before, occupied, wanted, first)
        values = intervals.penalised(paid)
        wide = intervals.are_wide(jumps.unit)
        best = float(values[wide].max()) if wide.any() else -np.inf
        if best >= floor - 2 * slack or floor <= beat:
            return intervals
        floor = max(beat, best)  # the floor was the value of an interval of no width


def _find_last_ends(occupied: NDArray[np.bool_], edges: Floats) -> Floats:
    """Return for each bucket how far an interval that begins in it can reach: to the end of the next with a jump."""
    ends = np.where(occupied, edges[1:], np.inf)
    next_ends = np.append(np.minimum.accumulate(ends[::-1])[::-1][1:], np.inf)
    reached: Floats = np.minimum(next_ends, edges[-1])
    return reached


def _collect_intervals(
    landscape: Landscape,
    point: LandscapePoint,
    jumps: JumpsOnLine,
    before: Ints,
    occupied: NDArray[np.bool_],
    wanted: NDArray[np.bool_],
    first: bool,
) -> _Intervals:
    """Return the intervals that begin with a jump in a wanted bucket; the leftmost one too if ``first``."""
    full = np.flatnonzero(occupied)
    if len(full) == 0:
        value = point.value + before[:1] / jumps.fixed_point
        return _Intervals(np.array([jumps.low]), np.array([jumps.high]), value)
    chosen = np.flatnonzero(wanted[full])
    # an interval that begins with the last jump of a bucket ends with the first of the next one
    fetched = np.zeros(len(full) + 1, dtype=bool)
    fetched[chosen] = fetched[chosen + 1] = True
    fetched[0] |= first
    fetch = np.zeros(len(occupied), dtype=np.int64)
    fetch[full[fetched[:-1]]] = 1
    times, deltas, buckets = landscape.collect_jumps(jumps, fetch)
    running = np.cumsum(deltas)
    start = np.searchsorted(buckets, buckets)  # the first jump of each jump's bucket
    values = before[buckets] + running - (running[start] - deltas[start])
    high = np.append(times[1:], jumps.high)
    keep = wanted[buckets]
    low, high, values = times[keep], high[keep], values[keep]
    if first:
        low = np.concatenate([[jumps.low], low])
        high = np.concatenate([[times[0]], high])
        values = np.concatenate([[before[0]], values])
    return _Intervals(low, high, point.value + values / jumps.fixed_point)


def _sort_best_first(
    intervals: _Intervals, paid: PenaltyOnLine | None, unit: float, beat: float, max_value: float
) -> list[int]:
    """Return the indexes of the best intervals; of those that differ by rounding only, the widest first."""
    values = intervals.penalised(paid)
    usable = np.flatnonzero(intervals.are_wide(unit) & (values > beat))
    if len(usable) == 0:
        return []
    width = intervals.high - intervals.low
    order = usable[np.lexsort((-width[usable], -np.round(values[usable] / (_SLACK * max_value))))]
    return [int(i) for i in order[:_MAX_TRIES]]


def _make_finite(low: float, high: float, unit: float) -> tuple[float, float]:
    """Return the ends of an interval of steps, with infinite ends replaced by near ones."""
    if np.isinf(low) and np.isinf(high):
        return -unit, unit
    if np.isinf(high):
        return low, low + 2.0 * max(abs(low), unit)
    if np.isinf(low):
        return high - 2.0 * max(abs(high), unit), high
    return low, high


MARGIN = 0.05  # the least distance of a step from the ends of its interval, relative to its width
_BISECTIONS = 12


class StepChoice(ABC):
    """The base of rules that choose a step between the ends of the best interval."""

    __slots__ = ()

    @abstractmethod
    def __call__(
        self, landscape: Landscape, point: LandscapePoint, direction: Direction, low: float, high: float
    ) -> float:
        """Return a step between two finite ends."""


@dataclass(frozen=True, slots=True)
class MidpointStep(StepChoice):
    """The rule that takes the midpoint of the interval, as far as possible from any change of the ranking."""

    def __call__(
        self, landscape: Landscape, point: LandscapePoint, direction: Direction, low: float, high: float
    ) -> float:
        """Return the midpoint."""
        return low + (high - low) / 2


@dataclass(frozen=True, slots=True)
class MaximumLikelihoodStep(StepChoice):
    """The rule that takes the step of highest Plackett-Luce likelihood of the label order (Tan et al., section 2.3).

    Parameters
    ----------
    k : int
        The number of positions of the label order that count.
    """

    k: int

    def __call__(
        self, landscape: Landscape, point: LandscapePoint, direction: Direction, low: float, high: float
    ) -> float:
        """Return the most likely step that is a little inside of the ends."""
        margin = MARGIN * (high - low)
        return find_likeliest(landscape, point, direction, low + margin, high - margin, self.k)


def find_likeliest(
    landscape: Landscape, point: LandscapePoint, direction: Direction, low: float, high: float, k: int
) -> float:
    """Return the step t between ``low`` and ``high`` of the highest Plackett-Luce likelihood of the label order.

    The log likelihood is concave, so its derivative changes its sign once.
    """
    backend = landscape.backend
    lines = backend.apply(_label_lines, point.shards, direction)
    if len(lines) == 1:  # one call where the shard is, instead of one for each bisection
        return backend.gather(_find_likeliest_alone, lines, low, high, k)[0]
    return _bisect(lambda t: float(backend.sum(_differentiate_likelihood, lines, k, t)), low, high)


def _bisect(derivative: Callable[[float], float], low: float, high: float) -> float:
    """Return by bisection about where a derivative changes from above to below 0 between two ends: a maximum."""
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        if derivative(middle) > 0.0:
            low = middle
        else:
            high = middle
    return (low + high) / 2


class _LabelledLines(NamedTuple):
    """The scores of a shard's documents and their slopes along a line, and the documents sorted by grade."""

    shard: MeasureShard
    by_grade: Ints
    scores: Floats
    slopes: Floats


def _label_lines(ranked: RankedShard, direction: Direction) -> _LabelledLines:
    """Sort the documents of a shard by grade, and return them with their scores and slopes along a direction."""
    shard = ranked.shard
    query = np.repeat(np.arange(len(shard.weight)), np.diff(shard.measure.indptr))
    X, column = shard.columns.line(direction)
    slopes = X[:, column].astype(np.float64)
    return _LabelledLines(shard, np.lexsort((shard.measure.tie_keys, query)), ranked.scores, slopes)


def _differentiate_likelihood(lines: _LabelledLines, k: int, t: float) -> float:
    """Return the derivative by ``t`` of the log likelihood of the label order's first ``k`` places, for one shard."""
    measure, weight = lines.shard.measure, lines.shard.weight
    return compute_likelihood_slope(
        lines.by_grade, measure.tie_keys, lines.scores, lines.slopes, weight, measure.indptr, k, t
    )


def _find_likeliest_alone(lines: _LabelledLines, low: float, high: float, k: int) -> float:
    """Return the step between two ends of the highest likelihood, where one shard holds all the queries."""
    return _bisect(lambda t: _differentiate_likelihood(lines, k, t), low, high)
