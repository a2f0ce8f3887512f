"""LongLists: the jumps of lists that are too long for all of them to be kept."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rankwright.basics.array_types import Floats, Ints
from rankwright.kernels.measures.gain_sweep import Chain, make_chain
from rankwright.kernels.measures.jump_buckets import pick_jumps
from rankwright.kernels.measures.long_sweep import Notes, make_notes, pick_blocks, tally_blocks
from rankwright.kernels.measures.meetings import make_cuts
from rankwright.measures.base import Lines, MeasureArrays

MOST_PAIRS = 1 << 18  # of documents of a query that may swap: the jumps of longer lists are not kept
_ROOM, _PER_DOCUMENT = 1 << 16, 32  # the meetings held at a time, at least and by document
_NOTES = 32  # the most rankings noted down on the way to one side


@dataclass(frozen=True, slots=True, eq=False)
class LongSide:
    """One query on the way to one side: how it begins, and rankings noted on the way. Make one with :meth:`of`."""

    lines: Lines
    arrays: MeasureArrays
    factor: float
    first: int
    n: int
    sign: float
    cuts: Floats
    notes: Notes
    n_notes: int
    times: Floats  # of the jumps, and their changes, if they are few; then there are no notes
    deltas: Ints
    change: int  # of the value, from t = 0 to the end

    @classmethod
    def of(
        cls, lines: Lines, arrays: MeasureArrays, query: int, indptr: Ints, sign: float, sums: Ints, gains: Floats
    ) -> LongSide:
        """Follow the ranking to the end of the range, and add its jumps to the sums of the buckets."""
        first, n = int(indptr[query]), int(indptr[query + 1] - indptr[query])
        factor = float(arrays.scale[query] * lines.worth[query])
        limit = lines.high if sign > 0.0 else -lines.low
        chain = _chain(lines, arrays, factor, first, n, sign)
        start, room = int(chain.whole[0]), _room(n)
        cuts = make_cuts(chain, limit, room)
        notes, a = make_notes(chain, min(_NOTES, len(cuts))), arrays
        times, deltas, n_notes = tally_blocks(
            chain, cuts, room, a.discount, factor, a.u, a.v, sign, lines.unit, notes, sums, gains
        )
        change = int(chain.whole[0]) - start
        return cls(lines, arrays, factor, first, n, sign, cuts, notes, n_notes, times, deltas, change)

    def pick(self, wanted: Ints) -> Ints:
        """Return the jumps of the buckets where ``wanted`` is not 0, as ``kernels.jumps.pick_jumps`` does."""
        a, unit = self.arrays, self.lines.unit
        if self.n_notes == 0:
            return pick_jumps(self.times, self.deltas, 1.0 / unit, wanted)
        chain = _chain(self.lines, a, self.factor, self.first, self.n, self.sign)
        return pick_blocks(
            chain,
            self.cuts,
            _room(self.n),
            a.discount,
            self.factor,
            a.u,
            a.v,
            self.sign,
            unit,
            self.notes,
            self.n_notes,
            wanted,
        )


def _room(n: int) -> int:
    return max(_ROOM, _PER_DOCUMENT * n)


def _chain(lines: Lines, arrays: MeasureArrays, factor: float, first: int, n: int, sign: float) -> Chain:
    rows, own = slice(first, first + n), lines.order[first : first + n] - first
    slopes = lines.X[rows, lines.column].astype(np.float64)
    a = arrays
    return make_chain(own, lines.scores[rows], slopes, a.gain[rows], a.discount, factor, a.u, a.v, 0, n, sign)
