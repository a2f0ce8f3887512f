"""The most violated ranking under a measure that is a sum over ranks: an assignment of documents to ranks.

Document i at rank r is worth s_i a_r - g_i d_r, where a falls linearly and d is the discount. Prices of the ranks (dual
variables) that were right for other scores are nearly right for these: documents take the rank that is worth most to
them at these prices, and only those that collide are placed by shortest augmenting paths (Jonker and Volgenant). What a
document is worth at a rank is computed when it is needed, so that memory is linear.
"""

from __future__ import annotations

import numpy as np

from rankwright.kernels.jit import Floats, Ints, kernel


@kernel
def assign_ranks(
    order: Ints,
    scores: Floats,
    classes: Ints,
    gain: Floats,
    discount: Floats,
    worth: Floats,
    norm: Floats,
    trade: float,
    live: Ints,
    indptr: Ints,
    prices: Floats,
    turn: int,
) -> None:
    """The rankings that maximise F - trade E; ``order`` holds the documents by score.

    ``prices`` has several guesses of the prices of ranks, a row each. The best one is made right, and replaces the one
    whose turn it is.

    F falls by 2 / norm times the score differences of documents in the wrong order, and so, up to a constant, does the
    sum of (n + 1 - 2 rank) s / norm. Documents of one class take their ranks in the order of their scores.
    """
    for q in live:
        a, n = indptr[q], indptr[q + 1] - indptr[q]
        rows = order[a : a + n]
        line, lost = np.empty(n), np.zeros(n)
        for r in range(n):
            line[r] = (n - 1 - 2 * r) / norm[q]
        deep = min(n, len(discount))
        lost[:deep] = discount[:deep] * (trade / worth[q])
        s, g = scores[rows], gain[rows]
        best, least = 0, np.inf
        for k in range(len(prices)):
            value = _dual(s, g, line, lost, prices[k, a : a + n])
            if value < least:
                best, least = k, value
        price = prices[best, a : a + n].copy()
        rank_of = _assign(s, g, line, lost, price)
        prices[turn, a : a + n] = price
        by_rank = np.empty(n, np.int64)
        for i in range(n):
            by_rank[rank_of[i]] = classes[rows[i]]
        starts = np.zeros(classes[rows].max() + 2, np.int64)
        for row in rows:
            starts[classes[row] + 1] += 1
        starts = np.cumsum(starts)
        arranged, filled = np.empty(n, np.int64), starts.copy()
        for row in rows:
            arranged[filled[classes[row]]] = row
            filled[classes[row]] += 1
        for r in range(n):
            rows[r] = arranged[starts[by_rank[r]]]
            starts[by_rank[r]] += 1


@kernel
def _dual(s: Floats, g: Floats, line: Floats, lost: Floats, price: Floats) -> float:
    """What all ranks and documents have together at these prices: no assignment is worth more."""
    total = price.sum()
    for i in range(len(s)):
        best = -np.inf
        for r in range(len(s)):
            best = max(best, s[i] * line[r] - g[i] * lost[r] - price[r])
        total += best
    return float(total)


@kernel
def _assign(s: Floats, g: Floats, line: Floats, lost: Floats, price: Floats) -> Ints:
    """The rank of each document in the assignment worth most; ``price`` of each rank, a guess, is made right."""
    n = len(s)
    rank_of, taken_by = np.full(n, -1, np.int64), np.full(n, -1, np.int64)
    left = np.zeros(n)  # to each document, at these prices
    for i in range(n):
        best, at = -np.inf, 0
        for r in range(n):
            value = s[i] * line[r] - g[i] * lost[r] - price[r]
            if value > best:
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
