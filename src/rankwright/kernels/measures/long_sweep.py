"""Sweeps of long lists, whose jumps are too many to be kept: memory linear in the documents.

The sweep to one side goes block by block (``meetings.py``), and after every few blocks a snapshot of the ranking is
saved. The jumps in some buckets of t are found again later from the last snapshot before them, and need not be kept.
Events come in the same order as in sweeps that hold them all, so the bits are the same.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from rankwright.kernels.jit import Floats, Ints, get_bits, inner_kernel, kernel
from rankwright.kernels.measures.gain_sweep import GainSweep, advance_sweep, update_soonest
from rankwright.kernels.measures.jump_buckets import find_bucket
from rankwright.kernels.measures.meetings import NO_PAIR, MeetingBuffer, find_meetings, make_meeting_buffer

_CLOSE = 1e-10  # jumps of a query closer than this are merged: intervals so narrow are never chosen


class SweepSnapshots(NamedTuple):
    """The states of a sweep that were saved on its way, a row each: ranking, value of the measure, progress."""

    above: Ints
    ranked: Ints
    lead: Floats
    cross: Floats
    floats: Floats  # the value, and the end of the block before
    ints: Ints  # the rounded value, who met last, the next end, the block, the lowest and highest bucket since


@inner_kernel
def _merge_close_jumps(times: Floats, deltas: Ints, count: int, unit: float) -> int:
    """Merge jumps of a measure at almost the same time, in place; return how many jumps are left."""
    kept, i = 0, 0
    while i < count:
        at, last, total = times[i], i, deltas[i]
        while last + 1 < count and abs(times[last + 1] - at) <= _CLOSE * (abs(at) + unit):
            last += 1
            total += deltas[last]
        if times[last] != at:
            total -= deltas[i]
            times[kept], deltas[kept] = at, deltas[i]
            kept += 1
        if total != 0:
            times[kept], deltas[kept] = times[last], total
            kept += 1
        i = last + 1
    return kept


@inner_kernel
def _sweep_block(
    sweep: GainSweep, buffer: MeetingBuffer, end: float, unit: float, times: Floats, deltas: Ints
) -> tuple[Floats, Ints, int, bool]:
    """Advance a sweep by a block of time; return its jumps, their number, and whether it reached ``end``."""
    meetings, who = find_meetings(sweep, buffer, end)
    is_complete = buffer.last_who[0] == NO_PAIR
    until = end if is_complete else -1.0
    times, deltas, count = advance_sweep(sweep, meetings, who, until, times, deltas, 0)
    buffer.after_time[0], buffer.after_who[0] = buffer.last_time[0], buffer.last_who[0]
    return times, deltas, _merge_close_jumps(times, deltas, count, unit), is_complete


@kernel
def allocate_snapshots(sweep: GainSweep, n: int) -> SweepSnapshots:
    """Allocate arrays for ``n`` states that a sweep will save on its way."""
    kept = len(sweep.ranked)
    above, ranked = np.empty((n, kept), np.int32), np.empty((n, kept), np.int32)
    lead, cross = np.empty((n, kept + 1)), np.empty((n, len(sweep.cross)))
    return SweepSnapshots(above, ranked, lead, cross, np.empty((n, 2)), np.zeros((n, 6), np.int64))


@inner_kernel
def _save_snapshot(
    sweep: GainSweep, buffer: MeetingBuffer, snapshots: SweepSnapshots, at: int, next_end: int, block: int
) -> None:
    """Save the current state of a sweep, its ranking above all, in row ``at`` of the snapshots."""
    for r in range(len(sweep.ranked)):
        snapshots.above[at, r], snapshots.ranked[at, r] = sweep.above[r], sweep.ranked[r]
    for r in range(len(sweep.lead)):
        snapshots.lead[at, r] = sweep.lead[r]
    for r in range(len(sweep.cross)):
        snapshots.cross[at, r] = sweep.cross[r]
    snapshots.floats[at, 0], snapshots.floats[at, 1] = sweep.value[0], buffer.after_time[0]
    snapshots.ints[at, 0], snapshots.ints[at, 1] = sweep.whole[0], buffer.after_who[0]
    snapshots.ints[at, 2], snapshots.ints[at, 3] = next_end, block
    snapshots.ints[at, 4], snapshots.ints[at, 5] = NO_PAIR, -1


@inner_kernel
def _restore_snapshot(sweep: GainSweep, buffer: MeetingBuffer, snapshots: SweepSnapshots, at: int) -> None:
    """Set a sweep back to the state that was saved in row ``at`` of the snapshots."""
    for r in range(len(sweep.ranked)):
        sweep.above[r], sweep.ranked[r] = snapshots.above[at, r], snapshots.ranked[at, r]
        sweep.rank_of[sweep.ranked[r]] = r
    for r in range(len(sweep.lead)):
        sweep.lead[r] = snapshots.lead[at, r]
    for r in range(len(sweep.cross)):
        sweep.cross[r] = snapshots.cross[at, r]
    update_soonest(sweep.cross, sweep.soonest, sweep.sooner, 0, len(sweep.ranked) - 1)
    sweep.value[0], buffer.after_time[0] = snapshots.floats[at, 0], snapshots.floats[at, 1]
    sweep.whole[0], buffer.after_who[0] = snapshots.ints[at, 0], snapshots.ints[at, 1]


@kernel
def sum_blocks(
    sweep: GainSweep,
    ends: Floats,
    room: int,
    unit: float,
    snapshots: SweepSnapshots,
    sums: Ints,
    gains: Floats,
) -> tuple[Floats, Ints, int]:
    """Run a sweep to its end, block by block: add its jumps to the sums by bucket of times; save snapshots.

    Returns the jumps if there are at most ``room``, and then needs no snapshots, or the number of snapshots.
    """
    all_times, all_deltas, n = np.empty(room), np.empty(room, np.int64), 0
    buffer = make_meeting_buffer(room)
    times: Any = np.empty(4 * room)
    deltas: Any = np.empty(len(times), np.int64)
    every = (len(ends) + len(snapshots.floats) - 1) // len(snapshots.floats)
    next_end, block, taken, half = 0, 0, 0, len(sums) // 2
    while next_end < len(ends):
        if block % every == 0 and taken < len(snapshots.floats):
            _save_snapshot(sweep, buffer, snapshots, taken, next_end, block)
            taken += 1
        times, deltas, count, is_complete = _sweep_block(sweep, buffer, ends[next_end], unit, times, deltas)
        own = snapshots.ints[taken - 1]
        for k in range(count):
            bucket = find_bucket(times[k], 1.0 / unit, half)
            sums[bucket] += deltas[k]
            gains[bucket] += max(deltas[k], 0)
            own[4], own[5] = min(own[4], bucket), max(own[5], bucket)
        if n + count <= room:
            for k in range(count):
                all_times[n + k], all_deltas[n + k] = times[k], deltas[k]
        n += count
        next_end, block = next_end + is_complete, block + 1
    kept = n if n <= room else 0
    own_times, own_deltas = np.empty(kept), np.empty(kept, np.int64)
    for k in range(kept):
        own_times[k], own_deltas[k] = all_times[k], all_deltas[k]
    return own_times, own_deltas, 0 if n <= room else taken


@kernel
def select_from_blocks(
    sweep: GainSweep,
    ends: Floats,
    room: int,
    unit: float,
    snapshots: SweepSnapshots,
    taken: int,
    wanted: Ints,
) -> Ints:
    """Return the jumps in the buckets of times where ``wanted`` is not 0, by sweeping again from snapshots."""
    buffer = make_meeting_buffer(room)
    times: Any = np.empty(4 * room)
    deltas: Any = np.empty(len(times), np.int64)
    found: Any = np.empty((1024, 3), np.int64)
    n, half = 0, len(wanted) // 2
    for at in range(taken):
        low, high = snapshots.ints[at, 4], snapshots.ints[at, 5]
        n_wanted = 0
        for bucket in range(low, high + 1):
            n_wanted += wanted[bucket] != 0
        if high < 0 or n_wanted == 0:
            continue
        _restore_snapshot(sweep, buffer, snapshots, at)
        next_end, block = snapshots.ints[at, 2], snapshots.ints[at, 3]
        while next_end < len(ends) and (at + 1 == taken or block < snapshots.ints[at + 1, 3]):
            times, deltas, count, is_complete = _sweep_block(sweep, buffer, ends[next_end], unit, times, deltas)
            for k in range(count):
                bucket = find_bucket(times[k], 1.0 / unit, half)
                if wanted[bucket] != 0:
                    if n == len(found):
                        more = np.empty((2 * n, 3), np.int64)
                        for i in range(n):
                            more[i, 0], more[i, 1], more[i, 2] = found[i, 0], found[i, 1], found[i, 2]
                        found = more
                    found[n, 0], found[n, 1], found[n, 2] = get_bits(times[k]), deltas[k], bucket
                    n += 1
            next_end, block = next_end + is_complete, block + 1
    selected: Ints = found[:n]
    return selected
