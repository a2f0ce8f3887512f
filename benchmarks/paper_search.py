"""The line searches our sweep is measured against: Tan et al.'s algorithm 2 as written, and all pairs of documents.

Both start from the ranking at minus infinity, the flattest line first, and follow DCG of the first ranks: a gain per
document, a discount per rank. They find every jumping point, where one of the first ranks changes, and by how much the
measure then changes, which may be nothing. Neither is made for lines that meet in one point.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from rankwright.kernels.jit import Floats, Ints, kernel


class Found(NamedTuple):
    """The jumping points of each query, from the left."""

    times: Floats
    changes: Floats
    starts: Floats  # per query: the value at minus infinity
    indptr: Ints  # query i has the points indptr[i] to indptr[i + 1]

    def value(self, query: int, t: float) -> float:
        """The value of a query at a t that is not itself a jumping point."""
        own = slice(int(self.indptr[query]), int(self.indptr[query + 1]))
        return float(self.starts[query] + self.changes[own][self.times[own] < t].sum())


Search = Callable[[Floats, Floats, Floats, Floats, Floats, Ints], Found]


@kernel
def _grown(values: Floats) -> Floats:
    out = np.empty(2 * len(values))
    out[: len(values)] = values
    return out


@kernel
def _put_flattest_first(order: Ints, slopes: Floats, depth: int) -> None:
    """Selection sort of the first ``depth`` places, as algorithm 2 begins."""
    for r in range(depth):
        flattest = r
        for i in range(r + 1, len(order)):
            if slopes[order[i]] < slopes[order[flattest]]:
                flattest = i
        order[r], order[flattest] = order[flattest], order[r]


@kernel
def _algorithm_2(
    scores: Floats, slopes: Floats, gain: Floats, discount: Floats, scale: Floats, indptr: Ints
) -> tuple[Floats, Floats, Floats, Ints]:
    """At every jumping point the next is looked for among all neighbours and all outsiders; see ``algorithm_2``."""
    n_queries = len(indptr) - 1
    times: Floats = np.empty(len(scores))
    changes: Floats = np.empty(len(scores))
    count = 0
    starts, ends = np.zeros(n_queries), np.zeros(n_queries + 1, np.int64)
    for q in range(n_queries):
        first, n = indptr[q], indptr[q + 1] - indptr[q]
        last = min(len(discount), n) - 1
        order = np.arange(first, first + n)
        _put_flattest_first(order, slopes, last + 1)
        b, a, g = scores[order], slopes[order], gain[order]
        for r in range(last + 1):
            starts[q] += scale[q] * g[r] * discount[r]
        now = -np.inf
        while True:
            soonest, upper, lower = np.inf, -1, -1
            for i in range(last):
                p = (b[i] - b[i + 1]) / (a[i + 1] - a[i])
                if p > now and p < soonest:
                    soonest, upper, lower = p, i, i + 1
            for i in range(last + 1, n):
                p = (b[last] - b[i]) / (a[i] - a[last])
                if p > now and p < soonest:
                    soonest, upper, lower = p, last, i
            if upper < 0:
                break
            now = soonest
            lost = discount[upper] - (discount[lower] if lower <= last else 0.0)
            if count == len(times):
                times, changes = _grown(times), _grown(changes)
            times[count], changes[count] = now, scale[q] * (g[lower] - g[upper]) * lost
            count += 1
            b[upper], b[lower] = b[lower], b[upper]
            a[upper], a[lower] = a[lower], a[upper]
            g[upper], g[lower] = g[lower], g[upper]
        ends[q + 1] = count
    return times[:count], changes[:count], starts, ends


def algorithm_2(scores: Floats, slopes: Floats, gain: Floats, discount: Floats, scale: Floats, indptr: Ints) -> Found:
    """Tan et al.'s algorithm 2: O(n) at every jumping point, on top of O(k n) to begin with."""
    return Found(*_algorithm_2(scores, slopes, gain, discount, scale, indptr))


@kernel
def _crossings(scores: Floats, slopes: Floats, times: Floats, pairs: Ints) -> None:
    """Where each pair of lines meets."""
    n, at = len(scores), 0
    for i in range(n):
        for j in range(i + 1, n):
            times[at] = (scores[i] - scores[j]) / (slopes[j] - slopes[i])
            pairs[at] = i * n + j
            at += 1


@kernel
def _walk(
    slopes: Floats, gain: Floats, discount: Floats, scale: float, pairs: Ints, by_time: Ints, changes: Floats
) -> tuple[Ints, float]:
    """Swap the pairs in order of time; returns which of them changed the first ranks, and the value to begin with."""
    n, depth, count, start = len(slopes), min(len(discount), len(slopes)), 0, 0.0
    rank, jumps = np.empty(n, np.int64), np.empty(len(pairs), np.int64)
    order = np.argsort(slopes)
    for r in range(n):
        rank[order[r]] = r
        if r < depth:
            start += scale * gain[order[r]] * discount[r]
    for at in by_time:
        i, j = pairs[at] // n, pairs[at] % n
        rank[i], rank[j] = rank[j], rank[i]
        upper = min(rank[i], rank[j])
        if upper < depth:
            lower = max(rank[i], rank[j])
            lost = discount[upper] - (discount[lower] if lower < depth else 0.0)
            change = scale * (gain[i] - gain[j]) * lost
            changes[count], jumps[count] = change if rank[i] == upper else -change, at
            count += 1
    return jumps[:count], start


def all_pairs(scores: Floats, slopes: Floats, gain: Floats, discount: Floats, scale: Floats, indptr: Ints) -> Found:
    """All O(n^2) crossings, sorted by NumPy, and one pass over them in that order."""
    found: list[tuple[Any, Any]] = []
    starts, ends = np.zeros(len(indptr) - 1), np.zeros(len(indptr), np.int64)
    for q in range(len(indptr) - 1):
        rows = slice(int(indptr[q]), int(indptr[q + 1]))
        n = rows.stop - rows.start
        times, pairs = np.empty(n * (n - 1) // 2), np.empty(n * (n - 1) // 2, np.int64)
        _crossings(scores[rows], slopes[rows], times, pairs)
        changes = np.empty(len(times))
        jumps, starts[q] = _walk(slopes[rows], gain[rows], discount, scale[q], pairs, np.argsort(times), changes)
        found.append((times[jumps], changes[: len(jumps)]))
        ends[q + 1] = ends[q] + len(jumps)
    return Found(np.concatenate([t for t, _ in found]), np.concatenate([c for _, c in found]), starts, ends)
