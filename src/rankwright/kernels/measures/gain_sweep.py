"""Sweeps of one query that keep only its documents with a gain ranked, while scores move along lines: b + a t.

Documents without a gain are only counted: for each document with a gain, how many of them rank above it. So a sweep has
two kinds of events: two neighbours with a gain swap, or a document with a gain meets one without. Swaps are found as
the ranking changes, since only neighbours swap. Meetings are found beforehand and come sorted.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from rankwright.kernels.jit import Floats, Ints, inlined, inner_kernel, kernel
from rankwright.kernels.measures.measure_values import MeasureArrays
from rankwright.kernels.measures.sorting import bucket_sort

_BLOCK = 16
_GROUP = 16  # blocks


class GainSweep(NamedTuple):
    """The state of a sweep, in which scores move along lines: the current ranking of documents that have a gain."""

    b: Floats  # score at t = 0
    a: Floats  # slope
    g: Floats  # gain
    zero_b: Floats
    zero_a: Floats
    first_above: Ints  # how many documents without a gain were above each at t = 0
    above: Ints  # and how many are now
    ranked: Ints
    rank_of: Ints
    lead: Floats
    cross: Floats  # by rank, when a document swaps with the next one
    soonest: Floats  # the minimum of ``cross`` in each block of ranks
    sooner: Floats  # the minimum of ``soonest`` in each group of blocks
    value: Floats  # a single number: the value of the query in fixed point, not rounded
    whole: Ints  # a single number: the same, rounded
    discount: Floats
    factor: float  # of the query's sum, in fixed point
    u: float
    v: float
    sign: float  # 1 to the right, -1 to the left


@inner_kernel
def compute_crossing_time(b_upper: float, a_upper: float, b_lower: float, a_lower: float, now: float) -> float:
    """Return the time t at which the lower of two score lines overtakes the upper one; infinity if never."""
    at = (b_upper - b_lower) / (a_lower - a_upper)
    at = at if at > now else now
    return at if a_lower > a_upper else np.inf


@inner_kernel
def double_capacity(values: Any) -> Any:
    """Return an array twice as long that begins with the same values."""
    out = np.empty(2 * len(values), values.dtype)
    for i in range(len(values)):
        out[i] = values[i]
    return out


@inlined
def record_jump(
    value: float, whole: Any, now: float, sign: float, times: Floats, deltas: Ints, count: int
) -> tuple[Any, int]:
    """Append a jump of a measure if its rounded value has changed; return that value and the number of jumps."""
    new = np.int64(np.rint(value))
    if new != whole:
        times[count], deltas[count] = sign * now, (new - whole if sign > 0.0 else whole - new)
        count += 1
    return new, count


@inner_kernel
def _look_up_discount(discount: Floats, r: int) -> float:
    """Return the discount of a rank, counted from 0; it is 0 beyond the cut-off."""
    return float(discount[r]) if r < len(discount) else 0.0


@kernel
def make_gain_sweep(
    arrays: MeasureArrays, order: Ints, scores: Floats, slopes: Floats, q: int, sign: float
) -> GainSweep:
    """Return a sweep of one query's documents with a gain, at t = 0; t will grow (``sign`` is 1) or fall (-1)."""
    gain, discount, factor, u, v = arrays.gain, arrays.discount, arrays.scale[q], arrays.u, arrays.v
    first, n = arrays.indptr[q], arrays.indptr[q + 1] - arrays.indptr[q]
    kept = 0
    for r in range(n):
        kept += gain[order[first + r]] != 0.0
    b, a, g, lead = np.empty(kept), np.empty(kept), np.empty(kept), np.empty(kept + 1)
    above = np.empty(kept, np.int64)
    zero_b, zero_a = np.empty(n - kept), np.empty(n - kept)
    m, zeros, total = 0, 0, 0.0
    lead[0] = 1.0
    for r in range(n):
        row = order[first + r]
        if gain[row] != 0.0:
            b[m], a[m], g[m], above[m] = scores[row], sign * slopes[row], gain[row], zeros
            total += g[m] * lead[m] * _look_up_discount(discount, r)
            lead[m + 1] = lead[m] + g[m] * (u + v * lead[m])
            m += 1
        else:
            zero_b[zeros], zero_a[zeros] = scores[row], sign * slopes[row]
            zeros += 1
    groups = (kept + _BLOCK * _GROUP - 1) // (_BLOCK * _GROUP)
    blocks = groups * _GROUP if groups > 1 else (kept + _BLOCK - 1) // _BLOCK
    cross, soonest, sooner = np.empty(blocks * _BLOCK), np.empty(blocks), np.empty(groups)
    cross[:] = np.inf
    soonest[:] = np.inf
    sooner[:] = np.inf
    for r in range(kept - 1):
        cross[r] = compute_crossing_time(b[r], a[r], b[r + 1], a[r + 1], 0.0)
    value, whole = np.empty(1), np.empty(1, np.int64)
    value[0] = factor * total
    whole[0] = np.int64(np.rint(value[0]))
    above_now, ranked, rank_of = np.empty(kept, np.int64), np.empty(kept, np.int64), np.empty(kept, np.int64)
    for r in range(kept):
        above_now[r], ranked[r], rank_of[r] = above[r], r, r
    update_soonest(cross, soonest, sooner, 0, max(kept - 1, 0))
    return GainSweep(
        b,
        a,
        g,
        zero_b,
        zero_a,
        above,
        above_now,
        ranked,
        rank_of,
        lead,
        cross,
        soonest,
        sooner,
        value,
        whole,
        discount,
        factor,
        u,
        v,
        sign,
    )


@inlined
def update_soonest(cross: Floats, soonest: Floats, sooner: Floats, first: int, last: int) -> None:
    """Update the times of the first swap in the blocks and groups of ranks that hold ``first`` to ``last``."""
    for block in range(first // _BLOCK, min(last // _BLOCK + 1, len(soonest))):
        at = cross[block * _BLOCK]
        for i in range(block * _BLOCK + 1, (block + 1) * _BLOCK):
            at = cross[i] if cross[i] < at else at
        soonest[block] = at
    if len(sooner) > 1:
        for group in range(first // (_BLOCK * _GROUP), last // (_BLOCK * _GROUP) + 1):
            at = soonest[group * _GROUP]
            for i in range(group * _GROUP + 1, (group + 1) * _GROUP):
                at = soonest[i] if soonest[i] < at else at
            sooner[group] = at


@inlined
def _find_next_swap(cross: Floats, soonest: Floats, sooner: Floats) -> int:
    """Return the rank of the upper one of the two neighbours that swap next; the first of several such ranks."""
    group = 0
    for i in range(1, len(sooner)):
        if sooner[i] < sooner[group]:
            group = i
    block = group * _GROUP
    for i in range(block + 1, min(block + _GROUP, len(soonest))):
        if soonest[i] < soonest[block]:
            block = i
    r = block * _BLOCK
    while cross[r] != soonest[block]:
        r += 1
    return r


@inner_kernel
def advance_sweep(
    sweep: GainSweep, meetings: Floats, who: Ints, until: float, times: Floats, deltas: Ints, count: int
) -> tuple[Floats, Ints, int]:
    """Advance a sweep through all given meetings, then through swaps up to ``until``, and append its jumps.

    The lowest bit of ``who`` is 1 if a document with a gain rises, and its upper 32 bits are the number of that
    document. Where the value changes is added to ``times``, and by how much as t increases to ``deltas``.
    """
    g, above, ranked, rank_of = sweep.g, sweep.above, sweep.ranked, sweep.rank_of
    a, b, lead, cross, soonest, sooner = sweep.a, sweep.b, sweep.lead, sweep.cross, sweep.soonest, sweep.sooner
    discount, factor, u, v, n = sweep.discount, sweep.factor, sweep.u, sweep.v, len(meetings)
    kept, value, whole, next_meeting = len(ranked), sweep.value[0], sweep.whole[0], 0
    if kept == 0:
        return times, deltas, count
    place = _find_next_swap(cross, soonest, sooner)
    swap = cross[place]
    while True:
        if next_meeting < n and meetings[next_meeting] <= swap:
            now, code = meetings[next_meeting], who[next_meeting]
            next_meeting += 1
            i = code >> 32
            r = rank_of[i] + above[i]
            above[i] += 1 - 2 * (code & 1)
            delta = (
                g[i]
                * lead[rank_of[i]]
                * (_look_up_discount(discount, rank_of[i] + above[i]) - _look_up_discount(discount, r))
            )
        else:
            if (next_meeting >= n and swap > until) or not swap < np.inf:
                break
            now, r = swap, place
            x, y = ranked[r], ranked[r + 1]
            delta = -g[x] * lead[r] * _look_up_discount(discount, r + above[x])
            delta -= g[y] * lead[r + 1] * _look_up_discount(discount, r + 1 + above[y])
            ranked[r], ranked[r + 1], rank_of[x], rank_of[y] = y, x, r + 1, r
            lead[r + 1] = lead[r] + g[y] * (u + v * lead[r])
            delta += g[y] * lead[r] * _look_up_discount(discount, r + above[y])
            delta += g[x] * lead[r + 1] * _look_up_discount(discount, r + 1 + above[x])
            cross[r] = np.inf
            if r > 0:
                z = ranked[r - 1]
                cross[r - 1] = compute_crossing_time(b[z], a[z], b[y], a[y], now)
            if r + 2 < kept:
                z = ranked[r + 2]
                cross[r + 1] = compute_crossing_time(b[x], a[x], b[z], a[z], now)
            update_soonest(cross, soonest, sooner, max(r - 1, 0), min(r + 1, kept - 1))
            place = _find_next_swap(cross, soonest, sooner)
            swap = cross[place]
        if delta != 0.0:
            if count == len(times):
                times, deltas = double_capacity(times), double_capacity(deltas)
            value += factor * delta
            whole, count = record_jump(value, whole, now, sweep.sign, times, deltas, count)
    sweep.value[0], sweep.whole[0] = value, whole
    return times, deltas, count


@inner_kernel
def _find_all_meetings(sweep: GainSweep, limit: float) -> tuple[Floats, Ints]:
    """Return the sorted times at which documents with and without a gain meet, and which two meet each time.

    ``advance_sweep`` says how the two are written.
    Every pair is written down and only those that meet are counted: the next pair overwrites one that does not meet,
    which is quicker than a branch that cannot be predicted.
    """
    b, a, zero_b, zero_a, zeros = sweep.b, sweep.a, sweep.zero_b, sweep.zero_a, len(sweep.zero_b)
    times: Any = np.empty(8 * zeros + 64)
    who: Any = np.empty(len(times), np.int64)
    count = 0
    for i in range(len(b)):
        if count + zeros >= len(times):
            times, who = double_capacity(times), double_capacity(who)
        code = np.int64(i) << 32
        for j in range(sweep.first_above[i]):
            at = compute_crossing_time(zero_b[j], zero_a[j], b[i], a[i], 0.0)
            times[count], who[count] = at, code + 1
            count += (at <= limit) & (at < np.inf)
        for j in range(sweep.first_above[i], zeros):
            at = compute_crossing_time(b[i], a[i], zero_b[j], zero_a[j], 0.0)
            times[count], who[count] = at, code
            count += (at <= limit) & (at < np.inf)
    return bucket_sort(times, who, count, 0.0)


@inner_kernel
def sweep_gains(
    arrays: MeasureArrays,
    order: Ints,
    scores: Floats,
    slopes: Floats,
    q: int,
    sign: float,
    limit: float,
    times: Floats,
    deltas: Ints,
    count: int,
) -> tuple[Floats, Ints, int, Any]:
    """Append the jumps of a query's measure as scores move one way along lines; rank documents with a gain only."""
    sweep = make_gain_sweep(arrays, order, scores, slopes, q, sign)
    start = sweep.whole[0]
    meetings, who = _find_all_meetings(sweep, limit)
    times, deltas, count = advance_sweep(sweep, meetings, who, limit, times, deltas, count)
    return times, deltas, count, (0 if sign > 0.0 else sweep.whole[0] - start)
