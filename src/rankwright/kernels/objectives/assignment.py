"""The most violated ranking under a measure that is a sum over ranks: an assignment of documents to ranks.

Document i at rank r has the value s_i a_r - g_i d_r, where a and the discount d fall from rank to rank. One rank
earlier its value is higher by s_i (a_r - a_{r+1}) - g_i (d_r - d_{r+1}). If the best r documents by this number were
among the best r + 1 for every r, they would have their ranks, and the numbers between the last of the best and the
first of the others would be the differences of the ranks' prices (dual variables). This is nearly so: these prices are
the start, and the few documents that collide are assigned by shortest augmenting paths (Jonker and Volgenant). Values
are computed when they are needed, so that memory is linear.
"""

from __future__ import annotations

import numpy as np

from rankwright.kernels.jit import Floats, Ints, inner_kernel, kernel
from rankwright.kernels.measures.measure_values import MeasureArrays
from rankwright.kernels.objectives.ranking_search import group_by_class


@kernel
def assign_ranks(
    arrays: MeasureArrays,
    order: Ints,
    scores: Floats,
    classes: Ints,
    ideal: Floats,
    norm: Floats,
    trade: float,
    live: Ints,
) -> None:
    """Rank each query to maximise its score F minus ``trade`` times its measure E, by optimal assignment.

    ``order`` holds the documents by score at first, and only the queries in ``live`` are ranked.
    F falls by 2 / norm times the score differences of documents in the wrong order, and so, up to a constant, does the
    sum of (n + 1 - 2 rank) s / norm. Documents of one class take their ranks in the order of their scores.
    """
    indptr, gain, discount = arrays.indptr, arrays.gain, arrays.discount
    for q in live:
        a, n = indptr[q], indptr[q + 1] - indptr[q]
        rows = order[a : a + n]
        arranged, starts = group_by_class(rows, classes)
        line, lost = np.empty(n), np.zeros(n)
        for r in range(n):
            line[r] = (n - 1 - 2 * r) / norm[q]
        deep = min(n, len(discount))
        for r in range(deep):
            lost[r] = discount[r] * (trade / ideal[q])
        steps, s, g = np.empty(n), np.empty(n), np.empty(n)
        for i in range(n):
            steps[i], s[i], g[i] = 2.0 / norm[q], scores[arranged[i]], gain[arranged[i]]
        _rank_classes(rows, classes, arranged, starts, s, g, line, steps, lost)


@kernel
def assign_positions(
    arrays: MeasureArrays,
    order: Ints,
    scores: Floats,
    classes: Ints,
    ideal: Floats,
    position_weight: Floats,
    trade: float,
    live: Ints,
) -> None:
    """Rank each query to maximise the sum of position weight times score minus ``trade`` times its measure E.

    ``order`` holds the documents by score at first, and only the queries in ``live`` are ranked. The weights of the
    positions must not rise. Documents of one class take their ranks in the order of their scores.
    """
    indptr, discount = arrays.indptr, arrays.discount
    for q in live:
        a, n = indptr[q], indptr[q + 1] - indptr[q]
        rows = order[a : a + n]
        arranged, starts = group_by_class(rows, classes)
        line, steps, lost = position_weight[:n], np.zeros(n), np.zeros(n)
        for r in range(n - 1):
            steps[r] = line[r] - line[r + 1]
        deep = min(n, len(discount))
        for r in range(deep):
            lost[r] = discount[r] * (trade / ideal[q])
        s, g = np.empty(n), np.empty(n)
        for i in range(n):
            s[i], g[i] = scores[arranged[i]], arrays.gain[arranged[i]]
        _rank_classes(rows, classes, arranged, starts, s, g, line, steps, lost)


@inner_kernel
def _rank_classes(
    rows: Ints,
    classes: Ints,
    arranged: Ints,
    starts: Ints,
    s: Floats,
    g: Floats,
    line: Floats,
    steps: Floats,
    lost: Floats,
) -> None:
    """Write the best assignment of a query's documents to ``rows``, each class in the order of its scores."""
    rank_of = _solve_assignment(s, g, line, lost, _estimate_prices(s, g, steps, lost, starts))
    by_rank = np.empty(len(rows), np.int64)
    for i in range(len(rows)):
        by_rank[rank_of[i]] = classes[arranged[i]]
    for r in range(len(rows)):
        rows[r] = arranged[starts[by_rank[r]]]
        starts[by_rank[r]] += 1


@inner_kernel
def _estimate_prices(s: Floats, g: Floats, steps: Floats, lost: Floats, starts: Ints) -> Floats:
    """Return first prices (dual variables) of the ranks, near those of the best assignment of documents.

    They come from the best r documents for every r; ``s`` and ``g`` descend within every class.
    From r to r + 1 one document is added; then the worst inside and the best outside are exchanged while that helps.
    """
    n, count = len(s), len(starts) - 1
    price, taken = np.zeros(n), np.empty(count, np.int64)
    for c in range(count):
        taken[c] = starts[c]
    for r in range(n - 1):
        step, drop = steps[r], lost[r] - lost[r + 1]
        added = False
        while True:
            best, entering, worst, leaving = -np.inf, -1, np.inf, -1
            for c in range(count):
                if taken[c] < starts[c + 1] and step * s[taken[c]] - g[taken[c]] * drop > best:
                    best, entering = step * s[taken[c]] - g[taken[c]] * drop, c
                if taken[c] > starts[c] and step * s[taken[c] - 1] - g[taken[c] - 1] * drop < worst:
                    worst, leaving = step * s[taken[c] - 1] - g[taken[c] - 1] * drop, c
            if not added:
                taken[entering] += 1
                added = True
            elif best > worst:
                taken[entering] += 1
                taken[leaving] -= 1
            else:
                price[r] = 0.5 * (best + worst)
                break
    for r in range(n - 2, -1, -1):  # so far the difference to the next one
        price[r] += price[r + 1]
    return price


@inner_kernel
def _solve_assignment(s: Floats, g: Floats, line: Floats, lost: Floats, price: Floats) -> Ints:
    """Return the rank of each document in the best assignment, found from estimated prices of the ranks."""
    n = len(s)
    rank_of, taken_by = np.empty(n, np.int64), np.empty(n, np.int64)
    rank_of[:] = -1
    taken_by[:] = -1
    left = np.empty(n)  # to each document, at these prices
    for i in range(n):
        best, at = -np.inf, 0
        for r in range(n):
            value = s[i] * line[r] - g[i] * lost[r] - price[r]
            if value > best or (value == best and taken_by[at] >= 0):
                best, at = value, r
        left[i] = best
        if taken_by[at] < 0:
            taken_by[at], rank_of[i] = i, at
    far, via, done = np.empty(n), np.empty(n, np.int64), np.empty(n, np.bool_)
    for start in range(n):
        if rank_of[start] >= 0:
            continue
        far[:], done[:] = np.inf, False
        i, so_far, end = start, 0.0, -1
        while end < 0:
            nearest, at = np.inf, -1
            for r in range(n):
                if not done[r]:
                    cost = so_far + left[i] + price[r] - (s[i] * line[r] - g[i] * lost[r])
                    if cost < far[r]:
                        far[r], via[r] = cost, i
                    if far[r] < nearest:
                        nearest, at = far[r], r
            so_far, done[at] = nearest, True
            if taken_by[at] < 0:
                end = at
            else:
                i = taken_by[at]
        left[start] -= so_far
        for r in range(n):
            if done[r] and r != end:
                left[taken_by[r]] -= so_far - far[r]
                price[r] += so_far - far[r]
        r = end
        while True:
            i = via[r]
            taken_by[r] = i
            r, rank_of[i] = rank_of[i], r
            if i == start:
                break
    return rank_of
