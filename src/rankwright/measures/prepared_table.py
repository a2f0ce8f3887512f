"""Table measures prepared for queries: kernels compute their values, jumps and swaps."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rankwright.basics.array_types import Floats, Ints
from rankwright.kernels.measures.jump_sweep import MAX_TOP_DEPTH, sweep_queries
from rankwright.kernels.measures.measure_values import (
    MeasureArrays,
    compute_averaged_values,
    compute_ideal_values,
    compute_ranked_values,
    compute_swap_deltas,
    rank_and_sum,
)
from rankwright.measures import long_lists
from rankwright.measures.base import PreparedMeasure
from rankwright.measures.jumps import N_BUCKETS, Jumps, JumpTotals, ScoreLines


@dataclass(frozen=True, slots=True, eq=False)
class PreparedTableMeasure(PreparedMeasure):
    """A built-in measure prepared for one set of queries, as the arrays that kernels take."""

    indptr: Ints
    arrays: MeasureArrays
    ties: str
    tie_keys: Floats

    @property
    def is_counted(self) -> NDArray[np.bool_]:
        """Whether each query is not skipped."""
        return ~np.isnan(self.arrays.base)

    def fill_values(self, scores: Floats, order: Ints, start: int, stop: int, out: Floats) -> None:
        """Write the values of queries ``start`` to ``stop``."""
        if self.ties == "average":
            compute_averaged_values(self.arrays, order, scores, start, stop, out)
        else:
            compute_ranked_values(self.arrays, order, start, stop, out)

    @property
    def is_constant(self) -> NDArray[np.bool_]:
        """Whether each query has no relevant document."""
        constant: NDArray[np.bool_] = self.arrays.scale == 0.0
        return constant

    @property
    def max_value(self) -> float:
        """The upper bound 1, or for sums that are not normalised the best query's ideal."""
        ideal = np.nan_to_num(self.arrays.base) + self.arrays.scale * compute_ideal_values(self.arrays)
        return max(1.0, float(ideal.max()))

    def find_jumps(self, lines: ScoreLines) -> Jumps:
        """Return all jumps, from the kernel that serves every family."""
        arrays = self.arrays._replace(scale=self.arrays.scale * lines.value_scale)
        times, deltas, at_zero, at_low, sums, gains, left_out = sweep_queries(
            arrays,
            lines.order,
            lines.scores,
            lines.X,
            lines.column,
            lines.low,
            lines.high,
            MAX_TOP_DEPTH,
            1.0 / lines.unit,
            N_BUCKETS,
            long_lists.MAX_PAIRS,
        )
        sweeps = []
        for query in left_out.tolist():
            own, own_arrays = lines.slice(query, self.indptr), slice_arrays(arrays, query, query + 1)
            for sign in (sign for sign, limit in ((1.0, lines.high), (-1.0, -lines.low)) if limit > 0.0):
                sweep = long_lists.LongSweep.of(own, own_arrays, sign, sums, gains)
                at_low += sweep.change if sign < 0.0 else 0
                sweeps.append(sweep)
        return Jumps(times, deltas, JumpTotals(at_zero, at_low, sums, gains), tuple(sweeps))

    def rank_and_sum(self, scores: Floats, order: Ints, weight: Floats) -> float:
        """Rank all documents and return the weighted sum, in one call: threads do not wait for each other's Python."""
        if self.ties == "average":
            return super(PreparedTableMeasure, self).rank_and_sum(scores, order, weight)
        return rank_and_sum(self.arrays, self.sort_keys(scores), self.tie_keys, order, weight)

    def slice(self, start: int, stop: int) -> PreparedTableMeasure:
        """Return the prepared measure of these queries, sharing memory."""
        rows = slice(int(self.indptr[start]), int(self.indptr[stop]))
        arrays = slice_arrays(self.arrays, start, stop)
        return PreparedTableMeasure(arrays.indptr, arrays, self.ties, self.tie_keys[rows])

    def compute_swap_deltas(self, scores: Floats, query: int) -> Floats:
        """Return the change of the measure if documents i and j of a query swapped ranks, for all i and j."""
        order, a = self.rank(scores, query), self.arrays
        by_rank = compute_swap_deltas(a.gain[self.indptr[query] + order], a.discount, a.u, a.v)
        deltas = np.empty_like(by_rank)
        deltas[np.ix_(order, order)] = by_rank * a.scale[query]
        return deltas


def slice_arrays(arrays: MeasureArrays, start: int, stop: int) -> MeasureArrays:
    """Return a prepared measure's arrays for the queries ``start`` to ``stop`` alone, as views of the same memory."""
    indptr = arrays.indptr
    return arrays._replace(
        indptr=indptr[start : stop + 1] - indptr[start],
        gain=arrays.gain[int(indptr[start]) : int(indptr[stop])],
        scale=arrays.scale[start:stop],
        base=arrays.base[start:stop],
    )
