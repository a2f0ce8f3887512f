"""The ranking of the documents that have a gain, followed along lines: score = b + a t.

Documents without a gain are only counted: for each document with one, how many of them are above it. So a sweep has two
kinds of events: two neighbours with a gain swap, or a document with a gain meets one without. The former are found as
the ranking changes, since only neighbours swap; the latter are known beforehand, and come sorted.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from rankwright.kernels.jit import Floats, Ints, inlined, kernel
from rankwright.kernels.measures.sorting import bucket_sort

_BLOCK = 16
_GROUP = 16  # blocks


class Chain(NamedTuple):
    """The documents of one query that have a gain, ranked, on the way to one side; the others in their first order."""

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
    soonest: Floats  # of each block of ranks
    sooner: Floats  # of each group of blocks
    value: Floats  # a single number, as is the next one
    whole: Ints


@kernel
def crossing_time(b_upper: float, a_upper: float, b_lower: float, a_lower: float, now: float) -> float:
    """Return when the lower of two neighbours overtakes the upper one; infinite if it never does. Without a branch."""
    at = (b_upper - b_lower) / (a_lower - a_upper)
    at = at if at > now else now
    return at if a_lower > a_upper else np.inf


@kernel
def grow(values: Any) -> Any:
    """Return the same values with room for as many more."""
    out = np.empty(2 * len(values), values.dtype)
    out[: len(values)] = values
    return out


@kernel
def _at_rank(discount: Floats, r: int) -> float:
    return float(discount[r]) if r < len(discount) else 0.0


@kernel
def make_chain(
    order: Ints,
    scores: Floats,
    slopes: Floats,
    gain: Floats,
    discount: Floats,
    factor: float,
    u: float,
    v: float,
    first: int,
    n: int,
    sign: float,
) -> Chain:
    """Rank a query at t = 0, on the way to the right (``sign`` is 1) or to the left (-1)."""
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
            total += g[m] * lead[m] * _at_rank(discount, r)
            lead[m + 1] = lead[m] + g[m] * (u + v * lead[m])
            m += 1
        else:
            zero_b[zeros], zero_a[zeros] = scores[row], sign * slopes[row]
            zeros += 1
    groups = (kept + _BLOCK * _GROUP - 1) // (_BLOCK * _GROUP)
    blocks = groups * _GROUP if groups > 1 else (kept + _BLOCK - 1) // _BLOCK
    cross, soonest, sooner = np.full(blocks * _BLOCK, np.inf), np.full(blocks, np.inf), np.full(groups, np.inf)
    for r in range(kept - 1):
        cross[r] = crossing_time(b[r], a[r], b[r + 1], a[r + 1], 0.0)
    value, whole = np.array([factor * total]), np.empty(1, np.int64)
    whole[0] = np.int64(np.rint(value[0]))
    ranked, rank_of = np.arange(kept), np.arange(kept)
    chain = Chain(
        b, a, g, zero_b, zero_a, above, above.copy(), ranked, rank_of, lead, cross, soonest, sooner, value, whole
    )
    find_soonest(cross, soonest, sooner, 0, max(kept - 1, 0))
    return chain


@inlined
def find_soonest(cross: Floats, soonest: Floats, sooner: Floats, first: int, last: int) -> None:
    """Find the first swap of every block, and of every group if there are several, that has one of these ranks."""
    for block in range(first // _BLOCK, min(last // _BLOCK + 1, len(soonest))):
        soonest[block] = cross[block * _BLOCK : (block + 1) * _BLOCK].min()
    if len(sooner) > 1:
        for group in range(first // (_BLOCK * _GROUP), last // (_BLOCK * _GROUP) + 1):
            sooner[group] = soonest[group * _GROUP : (group + 1) * _GROUP].min()


@inlined
def _next_swap(cross: Floats, soonest: Floats, sooner: Floats) -> int:
    """Return the rank of the upper one of the neighbours that swap next: the first of equals."""
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


@kernel
def follow(
    chain: Chain,
    discount: Floats,
    factor: float,
    u: float,
    v: float,
    meetings: Floats,
    who: Ints,
    n: int,
    until: float,
    sign: float,
    times: Floats,
    deltas: Ints,
    count: int,
) -> tuple[Floats, Ints, int]:
    """Let all events happen up to the last of ``n`` meetings, and then swaps up to ``until``.

    ``who`` tells who meets: its lowest bit is 1 if a document with a gain rises, and its upper 32 bits are the number
    of that document. Where the value changes is added to ``times``, and by how much as t increases to ``deltas``.
    """
    g, above, ranked, rank_of = chain.g, chain.above, chain.ranked, chain.rank_of
    a, b, lead, cross, soonest, sooner = chain.a, chain.b, chain.lead, chain.cross, chain.soonest, chain.sooner
    kept, value, whole, next_meeting = len(ranked), chain.value[0], chain.whole[0], 0
    if kept == 0:
        return times, deltas, count
    place = _next_swap(cross, soonest, sooner)
    swap = cross[place]
    while True:
        if next_meeting < n and meetings[next_meeting] <= swap:
            now, code = meetings[next_meeting], who[next_meeting]
            next_meeting += 1
            i = code >> 32
            r = rank_of[i] + above[i]
            above[i] += 1 - 2 * (code & 1)
            delta = g[i] * lead[rank_of[i]] * (_at_rank(discount, rank_of[i] + above[i]) - _at_rank(discount, r))
        else:
            if (next_meeting >= n and swap > until) or not swap < np.inf:
                break
            now, r = swap, place
            x, y = ranked[r], ranked[r + 1]
            delta = -g[x] * lead[r] * _at_rank(discount, r + above[x])
            delta -= g[y] * lead[r + 1] * _at_rank(discount, r + 1 + above[y])
            ranked[r], ranked[r + 1], rank_of[x], rank_of[y] = y, x, r + 1, r
            lead[r + 1] = lead[r] + g[y] * (u + v * lead[r])
            delta += g[y] * lead[r] * _at_rank(discount, r + above[y])
            delta += g[x] * lead[r + 1] * _at_rank(discount, r + 1 + above[x])
            cross[r] = np.inf
            if r > 0:
                z = ranked[r - 1]
                cross[r - 1] = crossing_time(b[z], a[z], b[y], a[y], now)
            if r + 2 < kept:
                z = ranked[r + 2]
                cross[r + 1] = crossing_time(b[x], a[x], b[z], a[z], now)
            find_soonest(cross, soonest, sooner, max(r - 1, 0), min(r + 1, kept - 1))
            place = _next_swap(cross, soonest, sooner)
            swap = cross[place]
        if delta != 0.0:
            value += factor * delta
            new = np.int64(np.rint(value))
            if new != whole:
                if count == len(times):
                    times, deltas = grow(times), grow(deltas)
                times[count], deltas[count] = sign * now, (new - whole if sign > 0.0 else whole - new)
                count += 1
                whole = new
    chain.value[0], chain.whole[0] = value, whole
    return times, deltas, count


@kernel
def _all_meetings(chain: Chain, limit: float) -> tuple[Floats, Ints]:
    """Return when documents with and without a gain meet, in order, and who; see ``follow``.

    Every pair is written down and only those that meet are counted: what comes next overwrites the others, which is
    quicker than a branch that nothing predicts.
    """
    b, a, zero_b, zero_a, zeros = chain.b, chain.a, chain.zero_b, chain.zero_a, len(chain.zero_b)
    times: Any = np.empty(8 * zeros + 64)
    who: Any = np.empty(len(times), np.int64)
    count = 0
    for i in range(len(b)):
        if count + zeros >= len(times):
            times, who = grow(times), grow(who)
        code = np.int64(i) << 32
        for j in range(chain.first_above[i]):
            steeper = a[i] - zero_a[j]
            at = max((zero_b[j] - b[i]) / steeper, 0.0)
            times[count], who[count] = at, code + 1
            count += (steeper > 0.0) & (at <= limit) & (at < np.inf)
        for j in range(chain.first_above[i], zeros):
            steeper = zero_a[j] - a[i]
            at = max((b[i] - zero_b[j]) / steeper, 0.0)
            times[count], who[count] = at, code
            count += (steeper > 0.0) & (at <= limit) & (at < np.inf)
    return bucket_sort(times, who, count, 0.0)


@kernel
def sweep_gains(
    order: Ints,
    scores: Floats,
    slopes: Floats,
    gain: Floats,
    discount: Floats,
    factor: float,
    u: float,
    v: float,
    first: int,
    n: int,
    sign: float,
    limit: float,
    times: Floats,
    deltas: Ints,
    count: int,
) -> tuple[Floats, Ints, int, Any]:
    """Sweep one query to one side, keeping its documents with a gain sorted; see ``sweep``."""
    chain = make_chain(order, scores, slopes, gain, discount, factor, u, v, first, n, sign)
    start = chain.whole[0]
    meetings, who = _all_meetings(chain, limit)
    times, deltas, count = follow(
        chain, discount, factor, u, v, meetings, who, len(meetings), limit, sign, times, deltas, count
    )
    return times, deltas, count, (0 if sign > 0.0 else chain.whole[0] - start)
