"""Jumps: where a measure changes while the scores move along lines, score = b + a t.

From the ranking at t = 0 each query is swept to the right and to the left. Two neighbours are due to swap when the
lower one is steeper, at max(crossing, now): lines through one point are then swapped one after another, whatever order
rounding puts them in, and every pair swaps once. Identical lines never swap: their order, the pessimistic one, stays.

Two ways to follow the ranking give the same jumps:

- ``_sweep_top`` keeps the first k documents sorted. Only neighbours among them can swap, and the k-th with the document
  below k that overtakes it first, which is looked for when the k-th changes. A document below k
  others that are at least as steep never comes up: the candidates that remain are a few times k in any list.
- ``sweep_gains`` keeps only documents with a gain sorted, and for each the number of those without above it. With R
  documents of n that have a gain it costs O(R n log n), where all pairs would cost O(n^2 log n). Long lists, of which
  that many pairs cannot be held, are left to ``long_sweep.py``.

Changes of the measure are whole numbers: a query's value in fixed point, less the one before. They add up without
rounding, so they can be added in any order, and a running sum of millions of them stays exact.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from rankwright.kernels.jit import Floats, Ints, inner_kernel, kernel
from rankwright.kernels.measures.gain_sweep import compute_crossing_time, double_capacity, record_jump, sweep_gains
from rankwright.kernels.measures.jump_buckets import sum_jumps
from rankwright.kernels.measures.measure_values import MeasureArrays, compute_query_sum
from rankwright.kernels.measures.sorting import max_query_size

MAX_TOP_DEPTH = 32  # cut-offs up to here are swept fastest by _sweep_top


@inner_kernel
def _find_overtaker(
    b: float, a: float, outer_b: Floats, outer_a: Floats, place: Ints, n: int, now: float, times: Floats
) -> int:
    """Return the document below the cut-off that first overtakes the score line b + a t, or -1 if none does.

    Of several that do so at once it is the steepest, then the first in rank.
    """
    for j in range(n):
        times[j] = compute_crossing_time(b, a, outer_b[j], outer_a[j], now)
    best, chosen = np.inf, -1
    for j in range(n):
        if times[j] < best:
            best, chosen = times[j], j
        elif times[j] == best and chosen >= 0:
            steeper = outer_a[j] - outer_a[chosen]
            if steeper > 0.0 or (steeper == 0.0 and place[j] < place[chosen]):
                chosen = j
    return chosen


@inner_kernel
def _sweep_top(
    arrays: MeasureArrays,
    order: Ints,
    scores: Floats,
    slopes: Floats,
    q: int,
    sign: float,
    limit: float,
    space: Floats,
    places: Ints,
    times: Floats,
    deltas: Ints,
    count: int,
) -> tuple[Floats, Ints, int, Any]:
    """Append the jumps of a query's measure as scores move one way along lines; rank its first documents only."""
    gain, discount, factor, u, v = arrays.gain, arrays.discount, arrays.scale[q], arrays.u, arrays.v
    first, n = arrays.indptr[q], arrays.indptr[q + 1] - arrays.indptr[q]
    depth = min(len(discount), n)
    b, a, g, lead, cross, steep = space[0], space[1], space[2], space[3], space[4], space[5]
    outer_b, outer_a, outer_g, waits = space[6], space[7], space[8], space[9]
    place, outer_place = places[0], places[1]
    total, running = 0.0, 1.0
    for r in range(depth):
        row = order[first + r]
        slope = sign * slopes[row]
        b[r], a[r], g[r], place[r], lead[r] = scores[row], slope, gain[row], r, running
        total += g[r] * discount[r] * running
        running += g[r] * (u + v * running)
        i = r  # the steepest so far, flattest first
        while i > 0 and steep[i - 1] > slope:
            steep[i] = steep[i - 1]
            i -= 1
        steep[i] = slope
    outside = 0
    for r in range(depth, n):
        row = order[first + r]
        slope = sign * slopes[row]
        if slope > steep[0]:
            outer_b[outside], outer_a[outside], outer_g[outside] = scores[row], slope, gain[row]
            outer_place[outside] = r
            outside += 1
            i = 1
            while i < depth and steep[i] < slope:
                steep[i - 1] = steep[i]
                i += 1
            steep[i - 1] = slope
    now, last = 0.0, depth - 1
    for r in range(last):
        cross[r] = compute_crossing_time(b[r], a[r], b[r + 1], a[r + 1], now)
    rival = _find_overtaker(b[last], a[last], outer_b, outer_a, outer_place, outside, now, waits)
    cross[last] = waits[rival] if rival >= 0 else np.inf
    value = factor * total
    whole = np.int64(np.rint(value))
    start = whole
    while True:
        at, r = cross[0], 0
        for i in range(1, depth):
            if cross[i] < at:
                at, r = cross[i], i
        if not (at <= limit and at < np.inf):
            break
        now = at
        if r < last:
            delta = (g[r + 1] - g[r]) * lead[r] * (discount[r] - discount[r + 1])
            b[r], b[r + 1] = b[r + 1], b[r]
            a[r], a[r + 1] = a[r + 1], a[r]
            g[r], g[r + 1] = g[r + 1], g[r]
            place[r], place[r + 1] = place[r + 1], place[r]
            lead[r + 1] = lead[r] + g[r] * (u + v * lead[r])
            cross[r] = np.inf
            if r + 1 < last:
                cross[r + 1] = compute_crossing_time(b[r + 1], a[r + 1], b[r + 2], a[r + 2], now)
        else:
            delta = (outer_g[rival] - g[r]) * lead[r] * discount[r]
            b[r], outer_b[rival] = outer_b[rival], b[r]
            a[r], outer_a[rival] = outer_a[rival], a[r]
            g[r], outer_g[rival] = outer_g[rival], g[r]
            place[r], outer_place[rival] = outer_place[rival], place[r]
        if r > 0:
            cross[r - 1] = compute_crossing_time(b[r - 1], a[r - 1], b[r], a[r], now)
        if r + 1 >= last and outside > 0:
            rival = _find_overtaker(b[last], a[last], outer_b, outer_a, outer_place, outside, now, waits)
            cross[last] = waits[rival] if rival >= 0 else np.inf
        if delta != 0.0:
            if count == len(times):
                times, deltas = double_capacity(times), double_capacity(deltas)
            value += factor * delta
            whole, count = record_jump(value, whole, now, sign, times, deltas, count)
    return times, deltas, count, (0 if sign > 0.0 else whole - start)


@kernel
def sweep_queries(
    arrays: MeasureArrays,
    order: Ints,
    scores: Floats,
    slopes: Floats,
    low: float,
    high: float,
    some_top: bool | None,
    some_by_gain: bool | None,
    max_top_depth: int,
    inverse_unit: float,
    n_buckets: int,
    max_pairs: int,
) -> tuple[Floats, Ints, Any, Any, Ints, Floats, Ints]:
    """Return the jumps of queries' measures as scores move along lines, from time ``low`` to time ``high``.

    Queries ranked to at most ``max_top_depth`` ranks, or an eighth of their documents, are swept by ``_sweep_top``, the
    others by ``sweep_gains``; 0 sweeps all by ``sweep_gains``. ``some_top`` and ``some_by_gain`` are None where no
    query is swept in that way, which is then not compiled.
    ``order`` ranks the rows at t = 0 by their ``scores``, and ``arrays.scale`` is the factor from each query's sum to
    fixed point. Returns where the jumps are and the changes there as t increases, the values at 0 and at ``low``, and
    by bucket of t the sums of the changes, and of the positive ones
    alone. Last come the queries of which only the values at 0 are included: those for ``sweep_gains`` of which more
    than ``max_pairs`` pairs of documents may swap; see ``long_sweep.py``.
    """
    indptr, gain, factor, discount = arrays.indptr, arrays.gain, arrays.scale, arrays.discount
    times: Any = np.empty(4 * len(scores) + 64)
    deltas: Any = np.empty(len(times), np.int64)
    longest = max_query_size(indptr)
    space, places = np.empty((10, longest)), np.empty((2, longest), np.int64)
    count = 0
    at_zero: Any = 0
    at_low: Any = 0
    left_out, n_left = np.empty(len(indptr) - 1, np.int64), 0
    for q in range(len(indptr) - 1):
        if factor[q] == 0.0:
            continue
        first, n = indptr[q], indptr[q + 1] - indptr[q]
        value = np.int64(np.rint(factor[q] * compute_query_sum(arrays, order, q)))
        at_zero += value
        at_low += value
        n_apart = 0
        for i in range(first + 1, first + n):
            n_apart += slopes[i] != slopes[first]
        if n_apart == 0:
            continue
        depth = min(len(discount), n)
        is_top = depth <= max_top_depth or (max_top_depth > 0 and 8 * depth <= n)
        if not is_top and n * n // 2 > max_pairs:
            kept = 0
            for i in range(first, first + n):
                kept += gain[i] != 0.0
            if kept * (n - kept) + kept * kept // 2 > max_pairs:
                left_out[n_left] = q
                n_left += 1
                continue
        for sign, limit in ((1.0, high), (-1.0, -low)):
            if limit <= 0.0:
                continue
            change: Any = 0
            if is_top:
                if some_top is not None:
                    times, deltas, count, change = _sweep_top(
                        arrays, order, scores, slopes, q, sign, limit, space, places, times, deltas, count
                    )
            elif some_by_gain is not None:
                times, deltas, count, change = sweep_gains(
                    arrays, order, scores, slopes, q, sign, limit, times, deltas, count
                )
            at_low += change
    times, deltas = times[:count], deltas[:count]
    sums, gains = sum_jumps(times, deltas, inverse_unit, n_buckets)
    return times, deltas, at_zero, at_low, sums, gains, left_out[:n_left]
