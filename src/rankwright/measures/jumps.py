"""Jumps: where measures change while scores move along lines."""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

import numpy as np

from rankwright.basics.array_types import Floats, Ints

N_BUCKETS = 4096


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


class LongList(Protocol):
    """A query with too many jumps to keep all of them; those in chosen buckets of times are computed again."""

    def select_jumps(self, wanted: Ints) -> Ints:
        """Return the jumps of the buckets where ``wanted`` is not 0, as the kernel ``select_jumps`` does."""
        ...


class Jumps(NamedTuple):
    """The times t at which measures of queries change as scores move along lines, and the changes there.

    They are in any order, and the changes in fixed point.
    """

    times: Floats
    deltas: Ints  # as t increases
    totals: JumpTotals  # of all jumps, those of long lists included
    long_lists: tuple[LongList, ...] = ()
