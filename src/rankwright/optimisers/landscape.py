"""Landscape: the mean measure of a weighted sum of columns, as a function of the weights.

The word is that of "loss landscape". A measure of rankings is constant but for jumps, so a landscape has no gradient:
it has values at points, jumps along lines, and steps along them.
"""

from __future__ import annotations

from collections.abc import Callable
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
from rankwright.kernels.measures.jump_buckets import select_jumps
from rankwright.kernels.scorers.linear_scores import move_scores, sum_log_range, sum_log_ranges
from rankwright.measures import Jumps, JumpTotals, Measure, PreparedMeasure, ScoreLines
from rankwright.optimisers.columns import Direction, MatrixColumns, ScoreColumns
from rankwright.runtime.backends import Backend, Shards, count_shards

_FIXED_POINT = 2.0**60
_EXACT_SIZE = 1 << 22  # documents times columns up to which every step computes all scores again


class MeasureShard(NamedTuple):
    """A shard: the columns of some queries' documents, the measure prepared for them, and the queries' weights."""

    columns: ScoreColumns
    measure: PreparedMeasure
    weight: Floats


class RankedShard(NamedTuple):
    """A shard with its scores and its ranking; ``totals`` are its sums of the measure and of the score ranges."""

    shard: MeasureShard
    scores: Floats
    order: Ints
    totals: Floats


@dataclass(frozen=True, slots=True, eq=False)
class LandscapePoint:
    """A point of the landscape: weights of the columns, the documents ranked by them, and the mean measure."""

    coef: Floats
    shards: Shards[RankedShard]
    value: float
    spread: float  # the mean range of a query's scores


@dataclass(frozen=True, slots=True, eq=False)
class MeasureProfile:
    """The mean measure along a line, a step function: ``values[i]`` between ``times[i - 1]`` and ``times[i]``."""

    times: Floats
    values: Floats

    def __call__(self, t: Floats) -> Floats:
        """Return the measure at each t that is not itself a jump."""
        values: Floats = self.values[np.searchsorted(self.times, t)]
        return values


@dataclass(frozen=True, slots=True, eq=False)
class JumpsOnLine:
    """The jumps of the measure along a line, unsorted, with their steps t, and their sums in buckets of t."""

    shards: Shards[Jumps]
    totals: JumpTotals
    edges: Floats  # the ends of the buckets, one more than there are buckets
    unit: float  # the t at which the moving column changes scores by as much as they range
    low: float
    high: float
    fixed_point: float  # the fixed-point number of a change by 1


class Landscape:
    """The mean measure over queries of a weighted sum of columns, as a function of the weights.

    Make one with :meth:`of` or :meth:`of_prepared`.

    Attributes
    ----------
    n_columns : int
        The number of weights.
    total_weight : float
        The summed weight of the queries that count.
    exact_steps : bool
        Whether a step computes all scores again, as prediction does. On large data it only adds to them.
    """

    def __init__(self, shards: Shards[MeasureShard], n_columns: int, backend: Backend) -> None:
        self.backend, self.n_columns, self.shards = backend, n_columns, shards
        total_weight, n_documents = backend.sum(_count_weight_and_docs, shards)
        self.total_weight = float(total_weight)
        self.exact_steps = bool(n_documents * n_columns <= _EXACT_SIZE)

    @classmethod
    def of(cls, queries: Queries, measure: Measure, backend: Backend) -> Landscape:
        """Return the landscape of a measure on queries; it is prepared where the backend keeps them."""
        return cls.of_columns(queries, _get_features, queries.n_features, measure, backend)

    @classmethod
    def of_columns(
        cls,
        queries: Queries,
        fn: Callable[[Queries], ScoreColumns],
        n_columns: int,
        measure: Measure,
        backend: Backend,
    ) -> Landscape:
        """Return the landscape of columns that a function makes of each shard of the queries."""
        return cls(backend.apply(_prepare_shard, backend.scatter(queries), fn, measure), n_columns, backend)

    @classmethod
    def of_prepared(
        cls, columns: ScoreColumns, measure: PreparedMeasure, weight: Floats, backend: Backend
    ) -> Landscape:
        """Return the landscape of a prepared measure: a row for each of its documents, a weight for each query."""
        indptr, shards = measure.indptr, []
        for start, stop in query_ranges(indptr, count_shards(columns.shape[0])):
            own = columns.rows(int(indptr[start]), int(indptr[stop]))
            shards.append(_make_shard(own, measure.slice(start, stop), weight[start:stop]))
        return cls(backend.distribute(shards), columns.shape[1], backend)

    @cached_property
    def max_value(self) -> float:
        """An upper bound on the measure; at least 1."""
        return float(max(self.backend.concat(_get_max_value, self.shards)))

    def evaluate(self, coef: Floats) -> LandscapePoint:
        """Return the point of these weights, scored as prediction scores."""
        return self._make_point(coef, self.backend.apply(_score, self.shards, coef))

    def step(self, point: LandscapePoint, direction: Direction, t: float) -> LandscapePoint:
        """Return the point that is t times a direction away; on large data its scores are updated only."""
        coef = point.coef.copy()
        if isinstance(direction, int):
            coef[direction] += t
        else:
            coef += t * direction
        if self.exact_steps:
            return self.evaluate(coef)
        return self._make_point(coef, self.backend.apply(_move, point.shards, direction, t))

    def rescore(self, point: LandscapePoint) -> LandscapePoint:
        """Return the same point scored as prediction scores, whatever steps led to it."""
        return point if self.exact_steps else self.evaluate(point.coef)

    def with_exact_steps(self) -> Landscape:
        """Return the same landscape, in which every step computes all scores again."""
        other = copy(self)
        other.exact_steps = True
        return other

    def with_columns(self, point: LandscapePoint, columns: ScoreColumns) -> tuple[Landscape, LandscapePoint]:
        """Return the landscape of other columns added to the scores of a point, and its point of weights 0."""
        parts = self.backend.distribute(columns.rows(a, b) for a, b in pairwise(self._first_rows))
        return self._with_parts(point, self.backend.apply(_replace_columns, point.shards, parts), columns.shape[1])

    def with_column_of(
        self, point: LandscapePoint, fn: Callable[..., Floats], documents: Shards[Any], *arguments: Any
    ) -> tuple[Landscape, LandscapePoint]:
        """Return the landscape of one column added to the scores of a point, and its point of weight 0.

        The column is what a function returns for each shard of documents.
        """
        return self._with_parts(point, self.backend.apply(_compute_column, point.shards, documents, fn, *arguments), 1)

    def _with_parts(
        self, point: LandscapePoint, ranked: Shards[RankedShard], n_columns: int
    ) -> tuple[Landscape, LandscapePoint]:
        """Return the landscape of shards that have other columns, and its point of weights 0."""
        other = copy(self)
        other.__dict__.pop("_column_spreads", None)
        other.shards, other.n_columns = self.backend.apply(attrgetter("shard"), ranked), n_columns
        other.exact_steps = False  # the scores are not the weighted sum of these columns
        return other, replace(point, coef=np.zeros(n_columns), shards=ranked)

    def add_scores_of(
        self, point: LandscapePoint, fn: Callable[..., Floats], documents: Shards[Any], *arguments: Any
    ) -> LandscapePoint:
        """Return the point whose scores have more added: what a function returns for each shard of documents."""
        return self._make_point(point.coef, self.backend.apply(_add_scores, point.shards, documents, fn, *arguments))

    def with_scores_of(
        self, point: LandscapePoint, fn: Callable[..., Floats], documents: Shards[Any], *arguments: Any
    ) -> LandscapePoint:
        """Return a point of other scores: what a function returns for each shard of documents."""
        return self._make_point(
            point.coef, self.backend.apply(_compute_scores, point.shards, documents, fn, *arguments)
        )

    def with_scores(self, point: LandscapePoint, scores: Floats) -> LandscapePoint:
        """Return a point of other scores; sorting starts from the ranking of the given point."""
        parts = self.backend.distribute(scores[a:b] for a, b in pairwise(self._first_rows))
        return self._make_point(point.coef, self.backend.apply(_replace_scores, point.shards, parts))

    def find_jumps(
        self,
        point: LandscapePoint,
        direction: Direction,
        low: float = -np.inf,
        high: float = np.inf,
        stop: Callable[[], bool] | None = None,
    ) -> JumpsOnLine | None:
        """Return the jumps along a line through a point; None if no query's ranking can change.

        Raise SearchStoppedError if ``stop`` says so in the middle of a measure that takes long.
        """
        moving = self._spread_along(direction)
        if moving == 0.0:
            return None
        unit, fixed_point = (point.spread or 1.0) / moving, _FIXED_POINT / self.max_value
        shards = self.backend.apply(
            _find_jumps, point.shards, direction, fixed_point, self.total_weight, low, high, unit, stop
        )
        totals = self.backend.sum(attrgetter("totals"), shards)
        half = len(totals.sums) // 2
        x = np.arange(-half, half + 1) / half
        with np.errstate(divide="ignore"):
            edges = unit * x / (1.0 - np.abs(x))
        return JumpsOnLine(shards, totals, edges, unit, low, high, fixed_point)

    def collect_jumps(self, jumps: JumpsOnLine, wanted: Ints) -> tuple[Floats, Ints, Ints]:
        """Return the jumps in the wanted buckets, sorted by t: their t, changes in fixed point, and buckets."""
        packed = self.backend.concat(_select_jumps, jumps.shards, 1.0 / jumps.unit, wanted)
        times = packed[:, 0].view(np.float64)
        order = np.argsort(times, kind="stable")
        return times[order], packed[order, 1], packed[order, 2]

    def profile(
        self, point: LandscapePoint, direction: Direction, low: float = -np.inf, high: float = np.inf
    ) -> MeasureProfile:
        """Return the whole measure along a line."""
        jumps = self.find_jumps(point, direction, low, high)
        if jumps is None:
            return MeasureProfile(np.empty(0), np.array([point.value]))
        times, deltas, _ = self.collect_jumps(jumps, np.ones(len(jumps.totals.sums), dtype=np.int64))
        changes = jumps.totals.at_low - jumps.totals.at_zero + np.concatenate([[0], np.cumsum(deltas)])
        return MeasureProfile(times, point.value + changes / jumps.fixed_point)

    def _make_point(self, coef: Floats, ranked: Shards[RankedShard]) -> LandscapePoint:
        totals = self.backend.sum(attrgetter("totals"), ranked)
        return LandscapePoint(
            coef, ranked, float(totals[0]) / self.total_weight, float(_compute_mean_ranges(totals[1:]))
        )

    def _spread_along(self, direction: Direction) -> float:
        """Return the mean range of a query's scores along a direction."""
        if isinstance(direction, int):
            return float(self._column_spreads[direction])
        return float(_compute_mean_ranges(self.backend.sum(_measure_spread, self.shards, direction))[0])

    @cached_property
    def _column_spreads(self) -> Floats:
        return _compute_mean_ranges(self.backend.sum(_measure_column_spreads, self.shards))

    @cached_property
    def _first_rows(self) -> list[int]:
        """The first row of every shard, and the number of all rows."""
        return [0, *accumulate(self.backend.gather(_count_rows, self.shards))]


def _compute_mean_ranges(sums: Floats) -> Floats:
    """Return the geometric means of ranges, given the sums of their logarithms and their numbers; 0 without ranges."""
    means: Floats = np.where(sums[1] > 0, np.exp(sums[0] / np.maximum(sums[1], 1.0)), 0.0)
    return means


def _make_shard(columns: ScoreColumns, measure: PreparedMeasure, weight: Floats) -> MeasureShard:
    """Make a shard of columns and a prepared measure; queries that the measure does not count get weight 0."""
    return MeasureShard(columns, measure, np.where(measure.is_counted, weight, 0.0))


def _get_features(queries: Queries) -> MatrixColumns:
    """Return the feature matrix of queries as columns."""
    return MatrixColumns(queries.X)


def _prepare_shard(queries: Queries, fn: Callable[[Queries], ScoreColumns], measure: Measure) -> MeasureShard:
    """Make a shard of some queries: the columns that a function makes of them, and the measure prepared for them."""
    return _make_shard(fn(queries), measure.prepare(queries), queries.query_weight)


def _count_weight_and_docs(shard: MeasureShard) -> Floats:
    """Return the total weight of a shard's queries, and the number of its documents."""
    return np.array([shard.weight.sum(), shard.columns.shape[0]])


def _count_rows(shard: MeasureShard) -> int:
    """Return the number of documents of a shard."""
    return shard.columns.shape[0]


def _get_max_value(shard: MeasureShard) -> Floats:
    """Return the highest value that the measure can have on a shard, as an array of one number."""
    return np.array([shard.measure.max_value])


def _rank(shard: MeasureShard, scores: Floats, spread: Floats, order: Ints) -> RankedShard:
    """Rank a shard by its scores; ``order`` is a ranking to start from, and is changed in place."""
    total = shard.measure.rank_and_sum(scores, order, shard.weight)
    return RankedShard(shard, scores, order, np.array([total, *spread]))


def _score(shard: MeasureShard, coef: Floats) -> RankedShard:
    """Score a shard's documents by weights of the columns, and rank them."""
    scores = shard.columns.scores(coef)
    return _rank(shard, scores, sum_log_range(scores, shard.measure.indptr), np.arange(len(scores)))


def _move(ranked: RankedShard, direction: Direction, t: float) -> RankedShard:
    """Return a shard, scored and ranked anew, after a step of length ``t`` along a direction of the weights."""
    shard = ranked.shard
    scores, spread = move_scores(ranked.scores, *shard.columns.line(direction), t, shard.measure.indptr)
    return _rank(shard, scores, spread, ranked.order.copy())


def _replace_scores(ranked: RankedShard, scores: Floats) -> RankedShard:
    """Return a shard ranked anew by other scores."""
    return _rank(ranked.shard, scores, sum_log_range(scores, ranked.shard.measure.indptr), ranked.order.copy())


def _compute_scores(ranked: RankedShard, documents: Any, fn: Callable[..., Floats], *arguments: Any) -> RankedShard:
    """Return a shard ranked anew by the scores that a function returns for its documents."""
    return _replace_scores(ranked, fn(documents, *arguments))


def _add_scores(ranked: RankedShard, documents: Any, fn: Callable[..., Floats], *arguments: Any) -> RankedShard:
    """Return a shard ranked anew after what a function returns for its documents was added to the scores."""
    more = MatrixColumns(fn(documents, *arguments)[:, None])
    scores, spread = move_scores(ranked.scores, *more.line(0), 1.0, ranked.shard.measure.indptr)
    return _rank(ranked.shard, scores, spread, ranked.order.copy())


def _compute_column(ranked: RankedShard, documents: Any, fn: Callable[..., Floats], *arguments: Any) -> RankedShard:
    """Return a shard whose only column is what a function returns for its documents, with the same scores."""
    return _replace_columns(ranked, MatrixColumns(fn(documents, *arguments)[:, None]))


def _replace_columns(ranked: RankedShard, columns: ScoreColumns) -> RankedShard:
    """Return a shard with other columns, and the same scores and ranking."""
    return ranked._replace(shard=ranked.shard._replace(columns=columns))


def _measure_column_spreads(shard: MeasureShard) -> Floats:
    """Return for each column the sum of the logarithms of its range in each query, and how many have one."""
    return shard.columns.spreads(shard.measure.indptr)


def _measure_spread(shard: MeasureShard, direction: Floats) -> Floats:
    """Return the sum of the logarithms of the range of each query's scores along a direction, and their number."""
    return sum_log_ranges(shard.columns.line(direction)[0], shard.measure.indptr)


def _find_jumps(
    ranked: RankedShard,
    direction: Direction,
    fixed_point: float,
    total_weight: float,
    low: float,
    high: float,
    unit: float,
    stop: Callable[[], bool] | None,
) -> Jumps:
    """Return the jumps of the measure on a shard for all steps from ``low`` to ``high`` along a direction."""
    shard = ranked.shard
    per_query = shard.weight / total_weight * fixed_point
    slopes, column = shard.columns.line(direction)
    moving = ranked.scores, ranked.order, slopes, column
    return shard.measure.find_jumps(ScoreLines(*moving, per_query, low, high, unit, stop))


def _select_jumps(jumps: Jumps, inverse_unit: float, wanted: Ints) -> Ints:
    """Return those of a shard's jumps that lie in the wanted buckets."""
    kept = select_jumps(jumps.times, jumps.deltas, inverse_unit, wanted)
    return np.concatenate([kept, *(long_list.select_jumps(wanted) for long_list in jumps.long_lists)])
