"""When documents with a gain meet documents without one, in blocks of t: memory linear in the documents.

The meetings of a block are those pairs whose order differs between its two ends, up to rounding: a merge sort reports
them in O(n log n) and the time it takes to list them. A block ends early where more meetings than there is room for are
found: the first ones are kept. Meetings are ordered by time, then by the documents that meet.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from rankwright.kernels.jit import Floats, Ints, inlined, kernel
from rankwright.kernels.measures.gain_sweep import Chain
from rankwright.kernels.measures.sorting import bucket_sort

NO_ONE = np.int64(np.iinfo(np.int64).max)  # who met last where a block is whole
_ROUNDING = 1e-15  # more than the relative error of a score, and of a crossing
_SAMPLES = 64  # crossings looked at, for each block
_RUN = 16
_PIVOTS = 63
_FAR = 1e100


class Buffer(NamedTuple):
    """Meetings after ``after`` up to ``last``: times, and who meets; see ``gain_sweep.follow``."""

    times: Floats
    who: Ints
    size: Ints  # a single number, as are the next ones
    after_time: Floats
    after_who: Ints
    last_time: Floats
    last_who: Ints


@kernel
def make_buffer(room: int) -> Buffer:
    """Return room for so many meetings, and for as many that are dropped again."""
    ints, floats = np.zeros((3, 1), np.int64), np.zeros((2, 1))
    floats[0, 0], ints[1, 0] = -1.0, -1
    return Buffer(np.empty(2 * room), np.empty(2 * room, np.int64), ints[0], floats[0], ints[1], floats[1], ints[2])


@kernel
def make_cuts(chain: Chain, limit: float, room: int) -> Floats:
    """Return the ends of blocks that have about as many meetings as there is room for, from a sample of pairs."""
    kept, zeros = len(chain.b), len(chain.zero_b)
    pairs = kept * zeros + kept * kept // 2
    blocks = pairs // room + 1
    sample, count = np.empty(_SAMPLES * blocks), 0
    for k in range(len(sample)):
        i = int(kept * ((k * 0.7548776662466927) % 1.0))
        j = int((kept + zeros) * ((k * 0.5698402909980532) % 1.0))
        if j < kept:
            b, a = chain.b[j], chain.a[j]
        else:
            b, a = chain.zero_b[j - kept], chain.zero_a[j - kept]
        if a != chain.a[i]:
            at = (chain.b[i] - b) / (a - chain.a[i])
            if 0.0 < at <= limit and at < np.inf:
                sample[count] = at
                count += 1
    sample = np.sort(sample[:count])
    cuts, n = np.empty(blocks), 0
    for k in range(1, blocks):
        at = k * _SAMPLES
        if at < count and (n == 0 or sample[at] > cuts[n - 1]) and sample[at] < min(limit, _FAR):
            cuts[n] = sample[at]
            n += 1
    cuts[n] = limit
    return cuts[: n + 1]


@kernel
def _sort_meetings(buffer: Buffer, low: float) -> tuple[Floats, Ints]:
    """Return the meetings by time, then by who meets."""
    times, who = bucket_sort(buffer.times, buffer.who, buffer.size[0], low)
    first = 0
    for i in range(1, len(times) + 1):
        if i == len(times) or times[i] != times[first]:
            if i - first > 1:
                who[first:i] = np.sort(who[first:i])
            first = i
    return times, who


@kernel
def _drop_last(buffer: Buffer) -> None:
    """Keep about the first half of the meetings, and take no more that come after them."""
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


@kernel
def _try_all(chain: Chain, buffer: Buffer) -> None:
    """Keep the meetings of this block by looking at all pairs: where most of them meet at nearly the same t."""
    b, a, zero_b, zero_a, zeros = chain.b, chain.a, chain.zero_b, chain.zero_a, len(chain.zero_b)
    times, whos, after_time, after_who = buffer.times, buffer.who, buffer.after_time[0], buffer.after_who[0]
    for i in range(len(b)):
        if buffer.size[0] + zeros > len(times):
            _drop_last(buffer)
        n, last_time, last_who = buffer.size[0], buffer.last_time[0], buffer.last_who[0]
        for rises, low, high in ((1, 0, chain.first_above[i]), (0, chain.first_above[i], zeros)):
            side, code = (1.0 if rises == 1 else -1.0), (np.int64(i) << 32) + rises
            for j in range(low, high):
                steeper = side * (a[i] - zero_a[j])
                at = max(side * (zero_b[j] - b[i]) / steeper, 0.0)
                who = code + (np.int64(j) << 1)
                times[n], whos[n] = at, who
                after = (at > after_time) | ((at == after_time) & (who > after_who))
                before = (at < last_time) | ((at == last_time) & (who <= last_who))
                n += (steeper > 0.0) & (at < np.inf) & after & before
        buffer.size[0] = n


@inlined
def _offer(chain: Chain, buffer: Buffer, i: int, j: int, rises: bool) -> None:
    """Keep the meeting of a document with a gain and one without, if it is one of this block."""
    if (j < chain.first_above[i]) != rises:
        return
    if rises:
        steeper, distance = chain.a[i] - chain.zero_a[j], chain.zero_b[j] - chain.b[i]
    else:
        steeper, distance = chain.zero_a[j] - chain.a[i], chain.b[i] - chain.zero_b[j]
    if not steeper > 0.0:
        return
    at = max(distance / steeper, 0.0)
    who = (np.int64(i) << 32) + (np.int64(j) << 1) + np.int64(rises)
    if not at < np.inf or at < buffer.after_time[0] or (at == buffer.after_time[0] and who <= buffer.after_who[0]):
        return
    if at < buffer.last_time[0] or (at == buffer.last_time[0] and who <= buffer.last_who[0]):
        n = buffer.size[0]
        buffer.times[n], buffer.who[n], buffer.size[0] = at, who, n + 1
        if n + 1 == len(buffer.times):
            _drop_last(buffer)


@kernel
def _merge(keys: Floats, items: Ints, low: int, mid: int, high: int, space: Ints) -> None:
    """Merge two runs of items, each by descending key."""
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


@kernel
def _report(chain: Chain, buffer: Buffer, p0: Floats, p1: Floats, q0: Floats, q1: Floats, rises: bool) -> None:
    """Offer all pairs i, j with p0[i] <= q0[j] and p1[i] >= q1[j]: j was after i, and is not after it any more."""
    own, others = np.argsort(p0), np.argsort(q0)
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
                    _offer(chain, buffer, own[x], others[y], rises)
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
                    _offer(chain, buffer, own[x], others[y], rises)
            _merge(p1, own, owns[low], owns[mid], owns[high], space)
            _merge(q1, others, zs[low], zs[mid], zs[high], space)
        width *= 2


@kernel
def _insertion_sort(keys: Floats, items: Ints, low: int, high: int) -> None:
    """Sort some items by descending key."""
    for k in range(low + 1, high):
        item, at = items[k], k
        while at > low and keys[items[at - 1]] < keys[item]:
            items[at] = items[at - 1]
            at -= 1
        items[at] = item


@kernel
def _ends(b: Floats, a: Floats, t: float, side: float, slack: float) -> Floats:
    """Return the scores at t times ``side``, moved by as much as rounding may have moved them; at infinity, slopes."""
    out = np.empty(len(b))
    for i in range(len(b)):
        if t == np.inf:
            out[i] = np.nextafter(side * a[i], -np.inf) if slack > 0.0 else side * a[i]  # equal slopes never meet
        else:
            out[i] = side * (b[i] + a[i] * t) + slack * (abs(b[i]) + abs(a[i] * t))
    return out


@kernel
def find_meetings(chain: Chain, buffer: Buffer, cut: float) -> tuple[Floats, Ints]:
    """Return the meetings after the last block up to ``cut``, or as many as there is room for, in order."""
    buffer.size[0], buffer.last_time[0], buffer.last_who[0] = 0, cut, NO_ONE
    if 0 <= buffer.after_who[0] < NO_ONE:  # there were too many for one block
        _try_all(chain, buffer)
        return _sort_meetings(buffer, max(buffer.after_time[0], 0.0))
    start, end = max(buffer.after_time[0], 0.0) * (1.0 - _ROUNDING), cut * (1.0 + _ROUNDING)
    for rises in (True, False):
        side = 1.0 if rises else -1.0
        p0 = _ends(chain.b, chain.a, start, side, -_ROUNDING)
        q0 = _ends(chain.zero_b, chain.zero_a, start, side, _ROUNDING)
        p1 = _ends(chain.b, chain.a, end, side, _ROUNDING)
        q1 = _ends(chain.zero_b, chain.zero_a, end, side, -_ROUNDING)
        _report(chain, buffer, p0, p1, q0, q1, rises)
    return _sort_meetings(buffer, max(buffer.after_time[0], 0.0))
