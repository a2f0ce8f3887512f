"""Sweeps of long lists, whose jumps are too many to be kept: memory linear in the documents.

The way to one side is followed block by block (``meetings.py``), and after every few blocks the ranking is noted down.
So what lies in some buckets of t is found again later from the last note before, and need not be kept. Events come in
the order they have in sweeps that hold them all: the bits are the same.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from rankwright.kernels.jit import Floats, Ints, kernel
from rankwright.kernels.measures.gain_sweep import Chain, find_soonest, follow
from rankwright.kernels.measures.jump_buckets import place_of
from rankwright.kernels.measures.meetings import NO_ONE, Buffer, find_meetings, make_buffer

_ALIKE = 1e-10  # jumps of a query that are closer than this are one: intervals so narrow are never chosen


class Notes(NamedTuple):
    """Rankings noted on the way to one side; a row each."""

    above: Ints
    ranked: Ints
    lead: Floats
    cross: Floats
    floats: Floats  # the value, and where the block before ended
    ints: Ints  # the value in fixed point, who met last, the next cut, the block, the lowest and highest bucket since


@kernel
def _join_alike(times: Floats, deltas: Ints, count: int, unit: float) -> int:
    """Make jumps that are hardly apart one, or one at either end; return how many are left."""
    kept, i = 0, 0
    while i < count:
        at, last, total = times[i], i, deltas[i]
        while last + 1 < count and abs(times[last + 1] - at) <= _ALIKE * (abs(at) + unit):
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


@kernel
def next_block(
    chain: Chain,
    buffer: Buffer,
    cut: float,
    discount: Floats,
    factor: float,
    u: float,
    v: float,
    sign: float,
    unit: float,
    times: Floats,
    deltas: Ints,
) -> tuple[Floats, Ints, int, bool]:
    """Follow the ranking through the next block; return its jumps, and whether it ends at the cut."""
    meetings, who = find_meetings(chain, buffer, cut)
    is_whole = buffer.last_who[0] == NO_ONE
    until = cut if is_whole else -1.0
    times, deltas, count = follow(
        chain, discount, factor, u, v, meetings, who, len(meetings), until, sign, times, deltas, 0
    )
    buffer.after_time[0], buffer.after_who[0] = buffer.last_time[0], buffer.last_who[0]
    return times, deltas, _join_alike(times, deltas, count, unit), is_whole


@kernel
def make_notes(chain: Chain, n: int) -> Notes:
    """Return room for so many notes."""
    kept = len(chain.ranked)
    above, ranked = np.empty((n, kept), np.int32), np.empty((n, kept), np.int32)
    lead, cross = np.empty((n, kept + 1)), np.empty((n, len(chain.cross)))
    return Notes(above, ranked, lead, cross, np.empty((n, 2)), np.zeros((n, 6), np.int64))


@kernel
def _note(chain: Chain, buffer: Buffer, notes: Notes, at: int, cut: int, block: int) -> None:
    """Note the ranking down."""
    notes.above[at], notes.ranked[at], notes.lead[at], notes.cross[at] = (
        chain.above,
        chain.ranked,
        chain.lead,
        chain.cross,
    )
    notes.floats[at, 0], notes.floats[at, 1] = chain.value[0], buffer.after_time[0]
    notes.ints[at, 0], notes.ints[at, 1] = chain.whole[0], buffer.after_who[0]
    notes.ints[at, 2], notes.ints[at, 3] = cut, block
    notes.ints[at, 4], notes.ints[at, 5] = NO_ONE, -1


@kernel
def _restore(chain: Chain, buffer: Buffer, notes: Notes, at: int) -> None:
    """Take up the ranking where it was noted."""
    chain.above[:], chain.ranked[:], chain.lead[:], chain.cross[:] = (
        notes.above[at],
        notes.ranked[at],
        notes.lead[at],
        notes.cross[at],
    )
    for r in range(len(chain.ranked)):
        chain.rank_of[chain.ranked[r]] = r
    find_soonest(chain.cross, chain.soonest, chain.sooner, 0, len(chain.ranked) - 1)
    chain.value[0], buffer.after_time[0] = notes.floats[at, 0], notes.floats[at, 1]
    chain.whole[0], buffer.after_who[0] = notes.ints[at, 0], notes.ints[at, 1]


@kernel
def tally_blocks(
    chain: Chain,
    cuts: Floats,
    room: int,
    discount: Floats,
    factor: float,
    u: float,
    v: float,
    sign: float,
    unit: float,
    notes: Notes,
    sums: Ints,
    gains: Floats,
) -> tuple[Floats, Ints, int]:
    """Follow a ranking to the end, add its jumps to the sums of buckets of t, and take notes.

    Returns the jumps if they are not more than there is room for, and no notes are needed, or the number of notes.
    """
    all_times, all_deltas, n = np.empty(room), np.empty(room, np.int64), 0
    buffer = make_buffer(room)
    times: Any = np.empty(4 * room)
    deltas: Any = np.empty(len(times), np.int64)
    every = (len(cuts) + len(notes.floats) - 1) // len(notes.floats)
    cut, block, taken, half = 0, 0, 0, len(sums) // 2
    while cut < len(cuts):
        if block % every == 0 and taken < len(notes.floats):
            _note(chain, buffer, notes, taken, cut, block)
            taken += 1
        times, deltas, count, is_whole = next_block(
            chain, buffer, cuts[cut], discount, factor, u, v, sign, unit, times, deltas
        )
        own = notes.ints[taken - 1]
        for k in range(count):
            place = place_of(times[k], 1.0 / unit, half)
            sums[place] += deltas[k]
            gains[place] += max(deltas[k], 0)
            own[4], own[5] = min(own[4], place), max(own[5], place)
        if n + count <= room:
            all_times[n : n + count], all_deltas[n : n + count] = times[:count], deltas[:count]
        n += count
        cut, block = cut + is_whole, block + 1
    if n <= room:
        return all_times[:n].copy(), all_deltas[:n].copy(), 0
    return all_times[:0].copy(), all_deltas[:0].copy(), taken


@kernel
def pick_blocks(
    chain: Chain,
    cuts: Floats,
    room: int,
    discount: Floats,
    factor: float,
    u: float,
    v: float,
    sign: float,
    unit: float,
    notes: Notes,
    taken: int,
    wanted: Ints,
) -> Ints:
    """Return the jumps of the buckets where ``wanted`` is not 0, as ``pick_jumps`` does, from notes before them."""
    buffer = make_buffer(room)
    times: Any = np.empty(4 * room)
    deltas: Any = np.empty(len(times), np.int64)
    found: Any = np.empty((1024, 3), np.int64)
    n, half = 0, len(wanted) // 2
    for at in range(taken):
        low, high = notes.ints[at, 4], notes.ints[at, 5]
        if high < 0 or not wanted[low : high + 1].any():
            continue
        _restore(chain, buffer, notes, at)
        cut, block = notes.ints[at, 2], notes.ints[at, 3]
        while cut < len(cuts) and (at + 1 == taken or block < notes.ints[at + 1, 3]):
            times, deltas, count, is_whole = next_block(
                chain, buffer, cuts[cut], discount, factor, u, v, sign, unit, times, deltas
            )
            for k in range(count):
                place = place_of(times[k], 1.0 / unit, half)
                if wanted[place] != 0:
                    if n == len(found):
                        more = np.empty((2 * n, 3), np.int64)
                        more[:n] = found
                        found = more
                    found[n, 1], found[n, 2] = deltas[k], place
                    found.view(np.float64)[n, 0] = times[k]
                    n += 1
            cut, block = cut + is_whole, block + 1
    picked: Ints = found[:n]
    return picked
