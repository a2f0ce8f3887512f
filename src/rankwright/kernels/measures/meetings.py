"""Meetings of documents with a gain and documents without one, in blocks of t: memory linear in the documents.

The meetings of a block are the pairs whose order differs between its two ends, up to rounding: a merge sort finds them
in O(n log n) and the time it takes to list them. If a block has more meetings than the buffer holds, it ends early: the
first ones are kept. Meetings are ordered by time, then by the documents that meet.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from rankwright.kernels.jit import Floats, Ints, inlined, inner_kernel, kernel
from rankwright.kernels.measures.gain_sweep import GainSweep, compute_crossing_time
from rankwright.kernels.measures.sorting import bucket_sort, merge_sort

NO_PAIR = np.int64(np.iinfo(np.int64).max)  # who met last if a block is complete
_ROUNDING = 1e-15  # more than the relative error of a score, and of a crossing
_SAMPLES = 64  # crossings looked at, for each block
_RUN = 16
_PIVOTS = 63
_FAR = 1e100


class MeetingBuffer(NamedTuple):
    """A buffer for the meetings in a block of time: when a document with a gain meets one without, and which two."""

    times: Floats
    who: Ints
    size: Ints  # a single number, as are the next ones
    after_time: Floats
    after_who: Ints
    last_time: Floats
    last_who: Ints


@inner_kernel
def make_meeting_buffer(room: int) -> MeetingBuffer:
    """Return an empty buffer for ``room`` meetings, with as much space again for meetings that are dropped later."""
    ints, floats = np.zeros((3, 1), np.int64), np.zeros((2, 1))
    floats[0, 0], ints[1, 0] = -1.0, -1
    return MeetingBuffer(
        np.empty(2 * room), np.empty(2 * room, np.int64), ints[0], floats[0], ints[1], floats[1], ints[2]
    )


@kernel
def choose_block_ends(sweep: GainSweep, limit: float, room: int) -> Floats:
    """Return the times that end blocks with about ``room`` meetings each, estimated from a sample of pairs."""
    kept, zeros = len(sweep.b), len(sweep.zero_b)
    pairs = kept * zeros + kept * kept // 2
    blocks = pairs // room + 1
    sample, count = np.empty(_SAMPLES * blocks), 0
    for k in range(len(sample)):
        i = int(kept * ((k * 0.7548776662466927) % 1.0))
        j = int((kept + zeros) * ((k * 0.5698402909980532) % 1.0))
        if j < kept:
            b, a = sweep.b[j], sweep.a[j]
        else:
            b, a = sweep.zero_b[j - kept], sweep.zero_a[j - kept]
        if a != sweep.a[i]:
            at = (sweep.b[i] - b) / (a - sweep.a[i])
            if 0.0 < at <= limit and at < np.inf:
                sample[count] = at
                count += 1
    order = _find_ascending_order(sample[:count])
    ends, n = np.empty(blocks), 0
    for k in range(1, blocks):
        at = k * _SAMPLES
        if at < count and (n == 0 or sample[order[at]] > ends[n - 1]) and sample[order[at]] < min(limit, _FAR):
            ends[n] = sample[order[at]]
            n += 1
    ends[n] = limit
    return ends[: n + 1]


@inner_kernel
def _find_ascending_order(values: Floats) -> Ints:
    """Return the indices of values in ascending order."""
    n = len(values)
    keys, items = np.empty(n), np.empty(n, np.int64)
    for i in range(n):
        keys[i], items[i] = -values[i], i
    merge_sort(keys, items, np.empty(n), np.empty(n, np.int64), n)
    return items


@inner_kernel
def _sort_numbers(numbers: Ints) -> None:
    """Sort whole numbers, ascending, in place."""
    n = len(numbers)
    items = np.empty(n, np.int64)
    for i in range(n):
        numbers[i] = -numbers[i]
    merge_sort(numbers, items, np.empty(n, np.int64), np.empty(n, np.int64), n)
    for i in range(n):
        numbers[i] = -numbers[i]


@inner_kernel
def _sort_meetings(buffer: MeetingBuffer, low: float) -> tuple[Floats, Ints]:
    """Return the times and the documents of the buffer's meetings, sorted by time, then by documents."""
    times, who = bucket_sort(buffer.times, buffer.who, buffer.size[0], low)
    first = 0
    for i in range(1, len(times) + 1):
        if i == len(times) or times[i] != times[first]:
            if i - first > 1:
                _sort_numbers(who[first:i])
            first = i
    return times, who


@inner_kernel
def _drop_later_half(buffer: MeetingBuffer) -> None:
    """Drop about the later half of a full buffer's meetings, and end the block before them."""
    n = buffer.size[0]
    times, who = np.empty(_PIVOTS), np.empty(_PIVOTS, np.int64)
    for k in range(_PIVOTS):  # the median of a sample, by insertion sort
        time, code, at = buffer.times[k * n // _PIVOTS], buffer.who[k * n // _PIVOTS], k
        while at > 0 and (times[at - 1] > time or (times[at - 1] == time and who[at - 1] > code)):
            times[at], who[at] = times[at - 1], who[at - 1]
            at -= 1
        times[at], who[at] = time, code
    last_time, last_who = times[_PIVOTS // 2], who[_PIVOTS // 2]
    kept = 0
    for k in range(n):
        time, code = buffer.times[k], buffer.who[k]
        buffer.times[kept], buffer.who[kept] = time, code
        kept += (time < last_time) | ((time == last_time) & (code <= last_who))
    buffer.size[0], buffer.last_time[0], buffer.last_who[0] = kept, last_time, last_who


@inner_kernel
def _collect_all_pairs(sweep: GainSweep, buffer: MeetingBuffer) -> None:
    """Add the block's meetings to the buffer by a look at every pair: quick if most meet at about the same time."""
    b, a, zero_b, zero_a, zeros = sweep.b, sweep.a, sweep.zero_b, sweep.zero_a, len(sweep.zero_b)
    times, whos, after_time, after_who = buffer.times, buffer.who, buffer.after_time[0], buffer.after_who[0]
    for i in range(len(b)):
        if buffer.size[0] + zeros > len(times):
            _drop_later_half(buffer)
        n, last_time, last_who = buffer.size[0], buffer.last_time[0], buffer.last_who[0]
        for rises, low, high in ((1, 0, sweep.first_above[i]), (0, sweep.first_above[i], zeros)):
            side, code = (1.0 if rises == 1 else -1.0), (np.int64(i) << 32) + rises
            for j in range(low, high):
                at = compute_crossing_time(side * zero_b[j], side * zero_a[j], side * b[i], side * a[i], 0.0)
                who = code + (np.int64(j) << 1)
                times[n], whos[n] = at, who
                after = (at > after_time) | ((at == after_time) & (who > after_who))
                before = (at < last_time) | ((at == last_time) & (who <= last_who))
                n += (at < np.inf) & after & before
        buffer.size[0] = n


@inlined
def _keep_meeting(sweep: GainSweep, buffer: MeetingBuffer, i: int, j: int, rises: bool) -> None:
    """Add the meeting of two documents, i with a gain and j without, to the buffer if it is in the block."""
    if (j < sweep.first_above[i]) != rises:
        return
    if rises:
        at = compute_crossing_time(sweep.zero_b[j], sweep.zero_a[j], sweep.b[i], sweep.a[i], 0.0)
    else:
        at = compute_crossing_time(sweep.b[i], sweep.a[i], sweep.zero_b[j], sweep.zero_a[j], 0.0)
    who = (np.int64(i) << 32) + (np.int64(j) << 1) + np.int64(rises)
    if not at < np.inf or at < buffer.after_time[0] or (at == buffer.after_time[0] and who <= buffer.after_who[0]):
        return
    if at < buffer.last_time[0] or (at == buffer.last_time[0] and who <= buffer.last_who[0]):
        n = buffer.size[0]
        buffer.times[n], buffer.who[n], buffer.size[0] = at, who, n + 1
        if n + 1 == len(buffer.times):
            _drop_later_half(buffer)


@inner_kernel
def _merge_runs(keys: Floats, items: Ints, low: int, mid: int, high: int, space: Ints) -> None:
    """Merge two neighbouring runs of items, each sorted by descending key, into one, in place."""
    for k in range(low, mid):
        space[k] = items[k]
    left, right, to = low, mid, low
    while left < mid:
        if right < high and keys[items[right]] > keys[space[left]]:
            items[to] = items[right]
            right += 1
        else:
            items[to] = space[left]
            left += 1
        to += 1


@inner_kernel
def _collect_inversions(
    sweep: GainSweep, buffer: MeetingBuffer, p0: Floats, p1: Floats, q0: Floats, q1: Floats, rises: bool
) -> None:
    """Add the meetings of all pairs i, j that change their order within the block to the buffer.

    These have p0[i] <= q0[j] and p1[i] >= q1[j]: j was after i and is no longer.
    """
    own, others = _find_ascending_order(p0), _find_ascending_order(q0)
    n, kept, zeros = len(own) + len(others), len(own), len(others)
    owns, zs = np.zeros(n + 1, np.int64), np.zeros(n + 1, np.int64)  # how many of each kind come before a place
    i, j = 0, 0
    for k in range(n):
        is_own = j == zeros or (i < kept and p0[own[i]] <= q0[others[j]])
        i, j = i + is_own, j + (not is_own)
        owns[k + 1], zs[k + 1] = i, j
    for low in range(0, n, _RUN):
        high = min(low + _RUN, n)
        for y in range(zs[low], zs[high]):
            for x in range(owns[low], owns[high]):
                if p0[own[x]] <= q0[others[y]] and p1[own[x]] >= q1[others[y]]:
                    _keep_meeting(sweep, buffer, own[x], others[y], rises)
        _insertion_sort(p1, own, owns[low], owns[high])
        _insertion_sort(q1, others, zs[low], zs[high])
    space = np.empty(n, np.int64)
    width = _RUN
    while width < n:
        for low in range(0, n - width, 2 * width):
            mid, high = low + width, min(low + 2 * width, n)
            reached = owns[low]
            for y in range(zs[mid], zs[high]):
                while reached < owns[mid] and p1[own[reached]] >= q1[others[y]]:
                    reached += 1
                for x in range(owns[low], reached):
                    _keep_meeting(sweep, buffer, own[x], others[y], rises)
            _merge_runs(p1, own, owns[low], owns[mid], owns[high], space)
            _merge_runs(q1, others, zs[low], zs[mid], zs[high], space)
        width *= 2


@inner_kernel
def _insertion_sort(keys: Floats, items: Ints, low: int, high: int) -> None:
    """Sort the items ``low`` to ``high`` by descending key, in place."""
    for k in range(low + 1, high):
        item, at = items[k], k
        while at > low and keys[items[at - 1]] < keys[item]:
            items[at] = items[at - 1]
            at -= 1
        items[at] = item


@inner_kernel
def _compute_scores_at(b: Floats, a: Floats, t: float, side: float, slack: float) -> Floats:
    """Return scores at time t, times ``side`` and shifted by what rounding may change; slopes if t is infinite."""
    out = np.empty(len(b))
    for i in range(len(b)):
        if t == np.inf:
            out[i] = np.nextafter(side * a[i], -np.inf) if slack > 0.0 else side * a[i]  # equal slopes never meet
        else:
            out[i] = side * (b[i] + a[i] * t) + slack * (abs(b[i]) + abs(a[i] * t))
    return out


@inner_kernel
def find_meetings(sweep: GainSweep, buffer: MeetingBuffer, end: float) -> tuple[Floats, Ints]:
    """Return the next meetings up to ``end``, sorted by time, or the first of them if the buffer cannot hold all."""
    buffer.size[0], buffer.last_time[0], buffer.last_who[0] = 0, end, NO_PAIR
    if 0 <= buffer.after_who[0] < NO_PAIR:  # the last block had too many
        _collect_all_pairs(sweep, buffer)
        return _sort_meetings(buffer, max(buffer.after_time[0], 0.0))
    first, last = max(buffer.after_time[0], 0.0) * (1.0 - _ROUNDING), end * (1.0 + _ROUNDING)
    for rises in (True, False):
        side = 1.0 if rises else -1.0
        p0 = _compute_scores_at(sweep.b, sweep.a, first, side, -_ROUNDING)
        q0 = _compute_scores_at(sweep.zero_b, sweep.zero_a, first, side, _ROUNDING)
        p1 = _compute_scores_at(sweep.b, sweep.a, last, side, _ROUNDING)
        q1 = _compute_scores_at(sweep.zero_b, sweep.zero_a, last, side, -_ROUNDING)
        _collect_inversions(sweep, buffer, p0, p1, q0, q1, rises)
    return _sort_meetings(buffer, max(buffer.after_time[0], 0.0))
