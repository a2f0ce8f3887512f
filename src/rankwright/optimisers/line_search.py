"""Line search: the best of all steps along a line, exactly.

Along a line the measure is constant between jumps. Jumps are counted into buckets of t; the sums of the buckets give
the measure at their ends, and the positive changes bound what it can reach inside. Only the buckets that can hold the
best interval are sorted, which are few, so that the search costs little more than finding the jumps.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankwright.basics.array_types import Floats, Ints
from rankwright.optimisers.columns import Direction
from rankwright.optimisers.landscape import JumpsOnLine, Landscape, LandscapePoint
from rankwright.optimisers.prior_penalty import PenaltyOnLine, PriorPenalty

_NARROW = 1e-9  # intervals narrower than this, relative to t, may be nothing but rounding
_SLACK = 1e-12
_MARGIN = 0.05  # how far from its ends, relative to its width, a point of an interval is at least
_TRIED = 3


@dataclass(frozen=True, slots=True)
class LineSearchResult:
    """The best interval of a line, and the step chosen inside it.

    Parameters
    ----------
    low, high : float
        Its ends, which are jumps, or the ends of the search.
    value : float
        The mean measure inside, as evaluated anew at the chosen step.
    t : float
        The chosen step.
    point : LandscapePoint
        Where it leads.
    """

    low: float
    high: float
    value: float
    t: float
    point: LandscapePoint = field(repr=False)


class StepChoice(ABC):
    """How a step is chosen between the ends of an interval."""

    __slots__ = ()

    @abstractmethod
    def __call__(
        self, landscape: Landscape, point: LandscapePoint, direction: Direction, low: float, high: float
    ) -> float:
        """A step between two finite ends."""


@dataclass(frozen=True, slots=True)
class MidpointStep(StepChoice):
    """The middle: as far as possible from any change."""

    def __call__(
        self, landscape: Landscape, point: LandscapePoint, direction: Direction, low: float, high: float
    ) -> float:
        """The middle."""
        return low + (high - low) / 2


@dataclass(frozen=True, slots=True)
class MaximumLikelihoodStep(StepChoice):
    """Where the label order is likeliest under Plackett-Luce (Tan et al., section 2.3).

    Parameters
    ----------
    k : int
        How many places of the label order count.
    """

    k: int

    def __call__(
        self, landscape: Landscape, point: LandscapePoint, direction: Direction, low: float, high: float
    ) -> float:
        """The likeliest step, a little inside of the ends."""
        margin = _MARGIN * (high - low)
        return landscape.find_likeliest(point, direction, low + margin, high - margin, self.k)


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
) -> LineSearchResult | None:
    """The best interval along a line through a point; None if none is better than ``beat``.

    Of equally good intervals the widest is taken, never one of no width. Its value is evaluated anew at the chosen
    step: there two documents may tie whose order elsewhere in the interval does not matter, or whose scores differ by
    rounding only. Then another step is tried, and then the next best interval.

    Parameters
    ----------
    landscape : Landscape
        Where to search.
    point : LandscapePoint
        Where t is 0.
    direction : int or array
        A column, or a weight for every column.
    low, high : float
        The range of t; it must hold 0.
    choice : StepChoice, optional
        Chooses within the best interval; the middle by default. An end that is infinite is replaced by the last jump
        plus (or minus) twice its distance from 0, or twice the step at which the moving column is worth as much as the
        rest, if that is more.
    penalty : PriorPenalty, optional
        What is taken off the measure; the step is then the one inside the interval that has the least penalty.
    beat : float
        Only an interval whose value, less the penalty, is above this is wanted.

    Examples
    --------
    >>> from rankwright import Queries, Serial, parse
    >>> queries = Queries.from_arrays([[1.0, 0.0], [0.0, 1.0], [0.0, 3.0]], [0, 1, 2], qid=[1, 1, 1])
    >>> landscape = Landscape.of(queries, parse("ndcg"), Serial())
    >>> search_line(landscape, landscape.evaluate(np.array([1.0, 0.0])), 1, low=0.0, high=5.0)
    LineSearchResult(low=1.0, high=5.0, value=1.0, t=3.0)
    """
    along = None if penalty is None else penalty.along(point.coef, direction)
    jumping = landscape.find_jumps(point, direction, low, high)
    if jumping is None:
        intervals, unit = _Intervals(np.array([low]), np.array([high]), np.array([point.value])), 1.0
    else:
        intervals, unit = _near_best(landscape, point, jumping, along, beat), jumping.unit
    for i in _best_first(intervals, along, unit, beat, landscape.max_value):
        ends = float(intervals.low[i]), float(intervals.high[i])
        left, right = _finite(*ends, unit)
        if along is None:
            t = (choice or MidpointStep())(landscape, point, direction, left, right)
        else:  # an end that is infinite keeps nothing from its place
            margin = _MARGIN * (right - left)
            t = min(max(along.argmin, ends[0] + margin), ends[1] - margin)
        for step in (t, *(left + part * (right - left) for part in _OTHER_PARTS)):
            reached = landscape.step(point, direction, step)
            if abs(reached.value - intervals.value[i]) <= _SLACK * landscape.max_value:
                return LineSearchResult(*ends, reached.value, step, reached)
    return None


_OTHER_PARTS = (0.6180339887498949, 0.4142135623730951)


class _Intervals(NamedTuple):
    """Intervals from the left and their values."""

    low: Floats
    high: Floats
    value: Floats


def _near_best(
    landscape: Landscape, point: LandscapePoint, jumping: JumpsOnLine, along: PenaltyOnLine | None, beat: float
) -> _Intervals:
    """All intervals that may be the best, from the buckets that may hold one."""
    at_zero, at_low, sums, gains = jumping.tally
    before = np.concatenate([[0], np.cumsum(sums)]) + (at_low - at_zero)
    occupied = (gains > 0) | (sums != 0)
    at_edges = point.value + landscape.from_fixed_point(before)
    reach = at_edges[:-1] + landscape.from_fixed_point(gains) * (1.0 + 1e-9)
    edges = np.clip(jumping.edges, jumping.low, jumping.high)
    held = at_edges
    if along is not None:
        reach = reach - along(np.clip(along.argmin, edges[:-1], _ends_of_intervals(occupied, edges)))
        held = at_edges - along(edges)
    floor, slack = max(beat, float(held.max())), _SLACK * landscape.max_value
    while True:
        wanted = occupied & (reach >= floor - slack)
        at_start = at_edges[0] - (0.0 if along is None else along.minimum(jumping.low, float(edges[-1])))
        start = bool(at_start >= floor - slack)
        intervals = _intervals(landscape, point, jumping, before, occupied, wanted, start)
        values = intervals.value if along is None else intervals.value - along(along.argmin_within(intervals))
        wide = _wide(intervals, jumping.unit)
        best = float(values[wide].max()) if wide.any() else -np.inf
        if best >= floor - 2 * slack or floor <= beat:
            return intervals
        floor = max(beat, best)  # the floor was the value of an interval of no width


def _ends_of_intervals(occupied: NDArray[np.bool_], edges: Floats) -> Floats:
    """How far to the right an interval that begins in a bucket can reach: to the end of the next one with a jump."""
    ends = np.where(occupied, edges[1:], np.inf)
    next_ends = np.append(np.minimum.accumulate(ends[::-1])[::-1][1:], np.inf)
    reached: Floats = np.minimum(next_ends, edges[-1])
    return reached


def _intervals(
    landscape: Landscape,
    point: LandscapePoint,
    jumping: JumpsOnLine,
    before: Ints,
    occupied: NDArray[np.bool_],
    wanted: NDArray[np.bool_],
    start: bool,
) -> _Intervals:
    """The intervals that begin with a jump in a wanted bucket, and the first of all if ``start``."""
    full = np.flatnonzero(occupied)
    if len(full) == 0:
        value = point.value + landscape.from_fixed_point(before[:1])
        return _Intervals(np.array([jumping.low]), np.array([jumping.high]), value)
    chosen = np.flatnonzero(wanted[full])
    # an interval that begins with the last jump of a bucket ends with the first of the next one
    fetched = np.zeros(len(full) + 1, dtype=bool)
    fetched[chosen] = fetched[chosen + 1] = True
    fetched[0] |= start
    fetch = np.zeros(len(occupied), dtype=np.int64)
    fetch[full[fetched[:-1]]] = 1
    times, deltas, places = landscape.collect_jumps(jumping, fetch)
    running = np.cumsum(deltas)
    first = np.searchsorted(places, places)  # of each jump's bucket
    values = before[places] + running - (running[first] - deltas[first])
    high = np.append(times[1:], jumping.high)
    keep = wanted[places]
    low, high, values = times[keep], high[keep], values[keep]
    if start:
        low = np.concatenate([[jumping.low], low])
        high = np.concatenate([[times[0]], high])
        values = np.concatenate([[before[0]], values])
    return _Intervals(low, high, point.value + landscape.from_fixed_point(values))


def _wide(intervals: _Intervals, unit: float) -> NDArray[np.bool_]:
    ends = np.where(np.isfinite(intervals.low), np.abs(intervals.low), 0.0)
    wide: NDArray[np.bool_] = intervals.high - intervals.low > _NARROW * (ends + unit)
    return wide


def _best_first(
    intervals: _Intervals, along: PenaltyOnLine | None, unit: float, beat: float, highest: float
) -> list[int]:
    """The places of the best intervals; of those that differ by rounding only, the widest first."""
    values = intervals.value if along is None else intervals.value - along(along.argmin_within(intervals))
    usable = np.flatnonzero(_wide(intervals, unit) & (values > beat))
    if len(usable) == 0:
        return []
    width = intervals.high - intervals.low
    order = usable[np.lexsort((-width[usable], -np.round(values[usable] / (_SLACK * highest))))]
    return [int(i) for i in order[:_TRIED]]


def _finite(low: float, high: float, unit: float) -> tuple[float, float]:
    """The same interval with ends that are infinite brought near enough."""
    if np.isinf(low) and np.isinf(high):
        return -unit, unit
    if np.isinf(high):
        return low, low + 2.0 * max(abs(low), unit)
    if np.isinf(low):
        return high - 2.0 * max(abs(high), unit), high
    return low, high
