"""Jumps of measures along score lines, and those of lists that are too long for all of them to be kept."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from rankwright.basics.array_types import Floats, Ints
from rankwright.kernels.measures.gain_sweep import GainSweep, make_gain_sweep
from rankwright.kernels.measures.jump_buckets import select_jumps
from rankwright.kernels.measures.long_sweep import SweepSnapshots, allocate_snapshots, select_from_blocks, sum_blocks
from rankwright.kernels.measures.measure_values import MeasureArrays
from rankwright.kernels.measures.meetings import choose_block_ends

N_BUCKETS = 4096


class SearchStoppedError(Exception):
    """The error of a line search that was given up before its end, as after a time limit."""


class ScoreLines(NamedTuple):
    """The scores of documents as linear functions of t: ``scores + X[:, column] * t``, with a range of t."""

    scores: Floats  # at t = 0
    order: Ints  # the rows in ranked order at t = 0
    X: Floats
    column: int
    value_scale: Floats  # per query: the factor from the measure's values to fixed point
    low: float  # the range of t, which holds 0
    high: float
    unit: float  # of t: the distance from 0 within which half of the buckets lie
    stop: Callable[[], bool] | None = None  # whether to give up; only a user's measure takes long enough to ask

    @property
    def slopes(self) -> Floats:
        """The column along which scores move."""
        return self.X[:, self.column].astype(np.float64)

    def slice(self, query: int, indptr: Ints) -> ScoreLines:
        """Return the lines of one query alone."""
        first, last = int(indptr[query]), int(indptr[query + 1])
        return self._replace(
            scores=self.scores[first:last],
            order=self.order[first:last] - first,
            X=self.X[first:last],
            value_scale=self.value_scale[query : query + 1],
        )


class JumpTotals(NamedTuple):
    """The sums of measures' jumps along score lines: values at two times, and changes by bucket of times."""

    at_zero: int  # the sum of all queries at t = 0, up to a constant
    at_low: int  # and at the low end of the range
    sums: Ints  # of the changes in each bucket of t, from the left; see ``kernels/measures/jump_buckets.py``
    gains: Floats  # of the positive ones alone

    def __add__(self, other: Any) -> JumpTotals:
        return JumpTotals(*(own + its for own, its in zip(self, other, strict=True)))


class Jumps(NamedTuple):
    """The times t at which measures of queries change as scores move along lines, and the changes there.

    They are in any order, and the changes in fixed point.
    """

    times: Floats
    deltas: Ints  # as t increases
    totals: JumpTotals  # of all jumps, those of long lists included
    long_lists: tuple[LongSweep, ...] = ()  # queries with too many jumps to keep: they are computed again


MAX_PAIRS = 1 << 18  # of documents of a query that may swap: the jumps of longer lists are not kept
_ROOM, _PER_DOCUMENT = 1 << 16, 32  # the meetings held at a time, at least and by document
_MAX_SNAPSHOTS = 32


@dataclass(frozen=True, slots=True, eq=False)
class LongSweep:
    """The sweep of one long query's scores one way along lines: its start, and snapshots. Made by :meth:`of`."""

    lines: ScoreLines  # of the query alone
    arrays: MeasureArrays  # of the query alone, in fixed point
    sign: float
    ends: Floats
    snapshots: SweepSnapshots
    n_snapshots: int
    times: Floats  # of the jumps, and their changes, if they are few; then there are no snapshots
    deltas: Ints
    change: int  # of the value, from t = 0 to the end

    @classmethod
    def of(cls, lines: ScoreLines, arrays: MeasureArrays, sign: float, sums: Ints, gains: Floats) -> LongSweep:
        """Sweep a query to the end of the range, and add its jumps to the sums of the buckets."""
        limit = lines.high if sign > 0.0 else -lines.low
        sweep = _start_sweep(lines, arrays, sign)
        start, room = int(sweep.whole[0]), _count_room(lines)
        ends = choose_block_ends(sweep, limit, room)
        snapshots = allocate_snapshots(sweep, min(_MAX_SNAPSHOTS, len(ends)))
        times, deltas, n_snapshots = sum_blocks(sweep, ends, room, lines.unit, snapshots, sums, gains)
        change = int(sweep.whole[0]) - start
        return cls(lines, arrays, sign, ends, snapshots, n_snapshots, times, deltas, change)

    def select_jumps(self, wanted: Ints) -> Ints:
        """Return the jumps of the buckets where ``wanted`` is not 0, as the kernel ``select_jumps`` does."""
        unit = self.lines.unit
        if self.n_snapshots == 0:
            return select_jumps(self.times, self.deltas, 1.0 / unit, wanted)
        sweep = _start_sweep(self.lines, self.arrays, self.sign)
        return select_from_blocks(
            sweep, self.ends, _count_room(self.lines), unit, self.snapshots, self.n_snapshots, wanted
        )


def _count_room(lines: ScoreLines) -> int:
    """Return how many meetings of two documents a sweep holds in memory at a time."""
    return max(_ROOM, _PER_DOCUMENT * len(lines.scores))


def _start_sweep(lines: ScoreLines, arrays: MeasureArrays, sign: float) -> GainSweep:
    """Return a sweep of one query at t = 0, towards higher t (``sign`` is 1) or lower t (-1)."""
    return make_gain_sweep(arrays, lines.order, lines.scores, lines.slopes, 0, sign)
