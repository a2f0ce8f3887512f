"""Landscape: the mean measure of a weighted sum of columns, as a function of the weights.

It is constant but for jumps, and knows its value at a point, where it jumps along a line, and how to step along it.
"""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate, pairwise
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np

from rankwright.basics.array_types import Floats, Ints
from rankwright.data.grouping import query_ranges
from rankwright.data.queries import Queries
from rankwright.kernels.measures.jump_buckets import pick_jumps
from rankwright.kernels.optimisers.likelihood import likelihood_slope
from rankwright.kernels.scorers.linear_scores import moved_scores, query_spread, query_spreads
from rankwright.measures import Jumps, Lines, Measure, PreparedMeasure, Tally
from rankwright.optimisers.columns import Direction, MatrixColumns, ScoreColumns
from rankwright.runtime.backends import Backend, Shards, n_shards

_FIXED_POINT = 2.0**60
_EXACT = 1 << 22  # features up to here are scored anew after every step


class _MeasureShard(NamedTuple):
    """Some queries: their documents' columns, the measure bound to them, and what each query that counts weighs."""

    columns: ScoreColumns
    bound: PreparedMeasure
    weight: Floats


class _RankedShard(NamedTuple):
    """A part with its scores and the ranking by them; the weighted sum of its values, and the spread of its scores."""

    part: _MeasureShard
    scores: Floats
    order: Ints
    totals: Floats


@dataclass(frozen=True, slots=True, eq=False)
class LandscapePoint:
    """Weights, the documents ranked by them, and the mean measure."""

    coef: Floats
    shards: Shards[_RankedShard]
    value: float
    spread: float  # the range of a query's scores, in the mean


@dataclass(frozen=True, slots=True, eq=False)
class MeasureProfile:
    """The measure along a line, from ``low`` to ``high``: ``values[i]`` between ``times[i - 1]`` and ``times[i]``."""

    times: Floats
    values: Floats

    def __call__(self, t: Floats) -> Floats:
        """The measure at each t that is not itself a jump."""
        values: Floats = self.values[np.searchsorted(self.times, t)]
        return values


@dataclass(frozen=True, slots=True, eq=False)
class JumpsOnLine:
    """The jumps along a line, still in parts, and what is known of them all together."""

    shards: Shards[Jumps]
    unit: float  # where the moving column is worth as much as the rest
    low: float
    high: float
    tally: Tally

    @property
    def edges(self) -> Floats:
        """The ends of the buckets, one more than there are buckets."""
        half = len(self.tally.sums) // 2
        x = np.arange(-half, half + 1) / half
        with np.errstate(divide="ignore"):
            edges: Floats = self.unit * x / (1.0 - np.abs(x))
        return edges


class Landscape:
    """The mean measure over queries of a weighted sum of columns, as a function of the weights.

    Make one with :meth:`of` or :meth:`of_prepared`.
    """

    def __init__(self, parts: Shards[_MeasureShard], n_columns: int, backend: Backend) -> None:
        self.backend, self.n_columns, self.shards = backend, n_columns, parts
        total_weight, n_documents = backend.sum(_counts, parts)
        self.total_weight = float(total_weight)
        self.exact_steps = bool(n_documents * n_columns <= _EXACT)

    @classmethod
    def of(cls, queries: Queries, measure: Measure, backend: Backend) -> Landscape:
        """The landscape of a measure on queries, bound where the backend keeps them."""
        return cls(backend.apply(_bind, backend.scatter(queries), measure), queries.n_features, backend)

    @classmethod
    def of_prepared(cls, columns: ScoreColumns, bound: PreparedMeasure, weight: Floats, backend: Backend) -> Landscape:
        """The landscape of a bound measure: there is a row for each of its documents, ``weight`` is per query."""
        indptr, parts = bound.indptr, []
        for start, stop in query_ranges(indptr, n_shards(columns.shape[0])):
            own = columns.rows(int(indptr[start]), int(indptr[stop]))
            parts.append(_part(own, bound.part(start, stop), weight[start:stop]))
        return cls(backend.distribute(parts), columns.shape[1], backend)

    @cached_property
    def max_value(self) -> float:
        """No value is above this; at least 1."""
        return float(max(self.backend.concat(_max_value, self.shards)))

    @property
    def fixed_point_scale(self) -> float:
        """What a mean of 1 is in fixed point."""
        return _FIXED_POINT / self.max_value

    def evaluate(self, coef: Floats) -> LandscapePoint:
        """The point of these weights, scored as prediction scores."""
        return self._point(coef, self.backend.apply(_placed, self.shards, coef))

    def step(self, point: LandscapePoint, direction: Direction, t: float) -> LandscapePoint:
        """The point reached from another by a step; on large data its scores are updated, not computed anew."""
        coef = point.coef.copy()
        if isinstance(direction, int):
            coef[direction] += t
        else:
            coef += t * direction
        if self.exact_steps:
            return self.evaluate(coef)
        return self._point(coef, self.backend.apply(_moved, point.shards, direction, t))

    def rescore(self, point: LandscapePoint) -> LandscapePoint:
        """The same point scored as prediction scores, whatever steps led to it."""
        return point if self.exact_steps else self.evaluate(point.coef)

    def with_exact_steps(self) -> Landscape:
        """The same landscape that scores every step anew."""
        other = Landscape(self.shards, self.n_columns, self.backend)
        other.exact_steps = True
        return other

    def with_columns(self, point: LandscapePoint, columns: ScoreColumns) -> tuple[Landscape, LandscapePoint]:
        """The same documents with other columns, and the same scores as the point where all their weights are 0."""
        rows = pairwise(self._first_rows)
        placed = self.backend.apply(
            _replace_columns, point.shards, self.backend.distribute(columns.rows(a, b) for a, b in rows)
        )
        other = copy(self)
        other.__dict__.pop("_spreads", None)  # of the columns
        other.shards, other.n_columns = self.backend.apply(attrgetter("part"), placed), columns.shape[1]
        other.exact_steps = False  # the scores are not the weighted sum of these columns
        return other, replace(point, coef=np.zeros(columns.shape[1]), shards=placed)

    def with_scores(self, point: LandscapePoint, scores: Floats) -> LandscapePoint:
        """The same documents with other scores, whose ranking is looked for from that of the point."""
        parts = self.backend.distribute(scores[a:b] for a, b in pairwise(self._first_rows))
        return self._point(point.coef, self.backend.apply(_rescored, point.shards, parts))

    def find_jumps(
        self, point: LandscapePoint, direction: Direction, low: float = -np.inf, high: float = np.inf
    ) -> JumpsOnLine | None:
        """The jumps along a line through a point; None if no query's ranking can change."""
        moving = self._spread_along(direction)
        if moving == 0.0:
            return None
        unit = (point.spread or 1.0) / moving
        shares = self.fixed_point_scale, self.total_weight
        parts = self.backend.apply(_sweep, point.shards, direction, shares, low, high, unit)
        return JumpsOnLine(parts, unit, low, high, self.backend.sum(attrgetter("tally"), parts))

    def collect_jumps(self, jumping: JumpsOnLine, wanted: Ints) -> tuple[Floats, Ints, Ints]:
        """The jumps in some buckets, from the left: times, changes, buckets."""
        packed = self.backend.concat(_picked, jumping.shards, 1.0 / jumping.unit, wanted)
        times = packed[:, 0].view(np.float64)
        order = np.argsort(times, kind="stable")
        return times[order], packed[order, 1], packed[order, 2]

    def profile(
        self, point: LandscapePoint, direction: Direction, low: float = -np.inf, high: float = np.inf
    ) -> MeasureProfile:
        """The whole measure along a line."""
        jumping = self.find_jumps(point, direction, low, high)
        if jumping is None:
            return MeasureProfile(np.empty(0), np.array([point.value]))
        times, deltas, _ = self.collect_jumps(jumping, np.ones(len(jumping.tally.sums), dtype=np.int64))
        changes = jumping.tally.at_low - jumping.tally.at_zero + np.concatenate([[0], np.cumsum(deltas)])
        return MeasureProfile(times, point.value + self.from_fixed_point(changes))

    def from_fixed_point(self, fixed: Any) -> Any:
        """A change of the mean measure from one in fixed point."""
        return fixed / self.fixed_point_scale

    def find_likeliest(self, point: LandscapePoint, direction: Direction, low: float, high: float, k: int) -> float:
        """Between two ends, the t of the highest Plackett-Luce likelihood of the label order, by bisection.

        The log likelihood is concave, so its derivative changes its sign once.
        """
        lines = self.backend.apply(_labelled, point.shards, direction)
        for _ in range(_BISECTIONS):
            middle = (low + high) / 2
            if float(self.backend.sum(_likelihood, lines, k, middle)) > 0.0:
                low = middle
            else:
                high = middle
        return (low + high) / 2

    def _point(self, coef: Floats, placed: Shards[_RankedShard]) -> LandscapePoint:
        totals = self.backend.sum(attrgetter("totals"), placed)
        return LandscapePoint(coef, placed, float(totals[0]) / self.total_weight, float(_mean_range(totals[1:])))

    def _spread_along(self, direction: Direction) -> float:
        if isinstance(direction, int):
            return float(self._spreads[direction])
        return float(_mean_range(self.backend.sum(_spreads_along, self.shards, direction))[0])

    @cached_property
    def _first_rows(self) -> list[int]:
        """The first row of every part, and the number of all rows."""
        return [0, *accumulate(self.backend.gather(_n_rows, self.shards))]

    @cached_property
    def _spreads(self) -> Floats:
        return _mean_range(self.backend.sum(_spreads, self.shards))


_BISECTIONS = 12


def _mean_range(sums: Floats) -> Floats:
    """The geometric mean of the ranges whose logarithms were summed and counted; 0 where there are none."""
    means: Floats = np.where(sums[1] > 0, np.exp(sums[0] / np.maximum(sums[1], 1.0)), 0.0)
    return means


def _part(columns: ScoreColumns, bound: PreparedMeasure, weight: Floats) -> _MeasureShard:
    return _MeasureShard(columns, bound, np.where(bound.counted, weight, 0.0))


def _bind(queries: Queries, measure: Measure) -> _MeasureShard:
    return _part(MatrixColumns(queries.X), measure.prepare(queries), queries.query_weight)


def _counts(part: _MeasureShard) -> Floats:
    """The weight of the queries, and the number of documents."""
    return np.array([part.weight.sum(), part.columns.shape[0]])


def _max_value(part: _MeasureShard) -> Floats:
    return np.array([part.bound.highest])


def _place(part: _MeasureShard, scores: Floats, spread: Floats, order: Ints) -> _RankedShard:
    total = part.bound.total(scores, order, part.weight)
    return _RankedShard(part, scores, order, np.array([total, *spread]))


def _placed(part: _MeasureShard, coef: Floats) -> _RankedShard:
    scores = part.columns.scores(coef)
    return _place(part, scores, query_spread(scores, part.bound.indptr), np.arange(len(scores)))


def _moved(placed: _RankedShard, direction: Direction, t: float) -> _RankedShard:
    part = placed.part
    scores, spread = moved_scores(placed.scores, *part.columns.line(direction), t, part.bound.indptr)
    return _place(part, scores, spread, placed.order.copy())


def _replace_columns(placed: _RankedShard, columns: ScoreColumns) -> _RankedShard:
    return placed._replace(part=placed.part._replace(columns=columns))


def _rescored(placed: _RankedShard, scores: Floats) -> _RankedShard:
    return _place(placed.part, scores, query_spread(scores, placed.part.bound.indptr), placed.order.copy())


def _n_rows(part: _MeasureShard) -> int:
    return part.columns.shape[0]


def _spreads(part: _MeasureShard) -> Floats:
    return part.columns.spreads(part.bound.indptr)


def _spreads_along(part: _MeasureShard, direction: Floats) -> Floats:
    return query_spreads(part.columns.line(direction)[0], part.bound.indptr)


def _sweep(
    placed: _RankedShard, direction: Direction, shares: tuple[float, float], low: float, high: float, unit: float
) -> Jumps:
    part, (worth, total_weight) = placed.part, shares
    per_query = part.weight / total_weight * worth
    lines = Lines(placed.scores, placed.order, *part.columns.line(direction), per_query, low, high, unit)
    return part.bound.jumps(lines)


def _picked(jumps: Jumps, inverse_unit: float, wanted: Ints) -> Ints:
    kept = pick_jumps(jumps.times, jumps.deltas, inverse_unit, wanted)
    return np.concatenate([kept, *(each.pick(wanted) for each in jumps.long_lists)])


class _Labelled(NamedTuple):
    """Lines whose documents are also sorted by grade."""

    part: _MeasureShard
    by_grade: Ints
    scores: Floats
    slopes: Floats


def _labelled(placed: _RankedShard, direction: Direction) -> _Labelled:
    part = placed.part
    query = np.repeat(np.arange(len(part.weight)), np.diff(part.bound.indptr))
    X, column = part.columns.line(direction)
    slopes = X[:, column].astype(np.float64)
    return _Labelled(part, np.lexsort((part.bound.tie_keys, query)), placed.scores, slopes)


def _likelihood(lines: _Labelled, k: int, t: float) -> float:
    bound, weight = lines.part.bound, lines.part.weight
    return likelihood_slope(lines.by_grade, bound.tie_keys, lines.scores, lines.slopes, weight, bound.indptr, k, t)
