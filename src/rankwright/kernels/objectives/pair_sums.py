"""Sums over the pairs of a query's documents with different grades, in O(n log n) and without a list of pairs.

Document i has a higher grade than j, their scores miss a margin of 1 by u = 1 - (s_i - s_j), and the pair costs
``cost[j] h(u)``, where h is the hinge max(u, 0) with its corner rounded off over a zone of width delta:

    h(u) = 0  (u <= -delta/2),    (u + delta/2)^2 / (2 delta)  (in the zone),    u  (u >= delta/2, beyond it).

So h exceeds the hinge by delta/8 at most; ``delta = 0`` is the hinge, and ``delta = inf`` stands for max(u, 0)^2 / 2, a
zone without end. The derivative alpha = h'(u) grows from 0 to 1 in the zone; it is u for ``delta = inf``.

A query is sorted by score. The documents whose pairs with document i are in the zone, or beyond it, are then those
above a bar that moves with s_i: two pointers take every document into the zone and out of it once. What is inside is
summed by a Fenwick tree over the grades of the query, which tells the sums over all lower (or all higher) grades.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from rankwright.kernels.jit import Floats, Ints, kernel
from rankwright.kernels.measures.sorting import count_sort, merge_sort

_SHORT = 256
SMOOTH, ALPHA, NEAR, EXACT, N_TOTALS = 0, 1, 2, 3, 4  # sums over pairs: h, h', h''; the hinge


class Labels(NamedTuple):
    """What is known of the documents of some queries before they are scored."""

    place: Ints  # of a document's grade among those of its query
    cost: Floats  # of a pair whose lower document this is
    weight: Floats  # of each query
    indptr: Ints


class Ranked(NamedTuple):
    """Documents ranked by score. Kernels sort ``order``, which holds the rows of every query, in any order at first."""

    scores: Floats
    order: Ints
    curvature: Floats  # each document's sum of h'' over its pairs
    drift: Floats  # the derivatives by score, differentiated once more by delta


@kernel
def grade_places(y: Floats, indptr: Ints) -> Ints:
    """Every document's place among the distinct grades of its query, from 0 up."""
    place = np.empty(len(y), np.int64)
    for q in range(len(indptr) - 1):
        a, n = indptr[q], indptr[q + 1] - indptr[q]
        order = np.argsort(y[a : a + n])
        here = 0
        for k in range(n):
            if k > 0 and y[a + order[k]] > y[a + order[k - 1]]:
                here += 1
            place[a + order[k]] = here
    return place


@kernel
def pair_weights(labels: Labels) -> tuple[Floats, Floats]:
    """The summed cost of the pairs of every query, and of those every document is in."""
    place, cost, _, indptr = labels
    by_query, by_document = np.zeros(len(indptr) - 1), np.zeros(len(place))
    for q in range(len(by_query)):
        a, b = indptr[q], indptr[q + 1]
        higher, lower = np.zeros(place[a:b].max() + 2), np.zeros(place[a:b].max() + 2)
        for i in range(a, b):
            higher[place[i]] += 1.0
            lower[place[i] + 1] += cost[i]
        for k in range(1, len(higher)):
            higher[-1 - k] += higher[-k]
            lower[k] += lower[k - 1]
        for i in range(a, b):
            by_query[q] += lower[place[i]]
            by_document[i] = lower[place[i]] + cost[i] * higher[place[i] + 1]
    return by_query, by_document


@kernel
def find_zone(delta: float) -> tuple[float, float, float]:
    """Where the zone begins and ends, and the second derivative of h in it."""
    if delta == np.inf:
        return 0.0, np.inf, 1.0
    return -delta / 2.0, delta / 2.0, 1.0 / delta if delta > 0.0 else 0.0


@kernel
def _add(tree: Floats, place: int, weight: float, s: float) -> None:
    """Add a document to a Fenwick tree: its weight, and its weight times its score to the first and second power."""
    k = place + 1
    while k < tree.shape[0]:
        tree[k, 0] += weight
        tree[k, 1] += weight * s
        tree[k, 2] += weight * s * s
        k += k & -k


@kernel
def _before(tree: Floats, place: int) -> tuple[float, float, float]:
    """The sums over all places before this one."""
    weight, first, second, k = 0.0, 0.0, 0.0, place
    while k > 0:
        weight += tree[k, 0]
        first += tree[k, 1]
        second += tree[k, 2]
        k -= k & -k
    return weight, first, second


@kernel
def _pairs_with_lower(
    s: Floats,
    place: Ints,
    cost: Floats,
    top: int,
    delta: float,
    trees: Floats,
    alpha: Floats,
    near: Floats,
    lean: Floats,
) -> float:
    """The sum of h; each document's sums over its pairs with lower grades of h', h'' and h'' u.

    ``s`` descends; ``top`` is the place of the highest grade.
    """
    n, total, a, b = len(s), 0.0, 0, 0
    low, high, steep = find_zone(delta)
    zone, beyond = trees[0, : top + 2], trees[1, : top + 2]
    zone[:], beyond[:] = 0.0, 0.0
    for i in range(n):
        alpha[i], near[i], lean[i] = 0.0, 0.0, 0.0
        if place[i] == 0:
            continue
        bar = s[i] - 1.0 + low  # u - low = s_j - bar
        while a < n and s[a] > bar:
            if place[a] < top:
                _add(zone, place[a], cost[a], s[a])
            a += 1
        while b < a and s[b] >= bar - low + high:
            if place[b] < top:
                _add(zone, place[b], -cost[b], s[b])
                _add(beyond, place[b], cost[b], s[b])
            b += 1
        if a == b:  # empty, but for rounding
            zone[:] = 0.0
        weight, first, second = _before(zone, place[i])
        far, far_first, _ = _before(beyond, place[i])
        total += 0.5 * steep * (second - 2.0 * bar * first + bar * bar * weight) + (far_first - (s[i] - 1.0) * far)
        alpha[i] = steep * (first - bar * weight) + far
        near[i] = steep * max(weight, 0.0)
        lean[i] = steep * (first - (s[i] - 1.0) * weight)
    return total


@kernel
def _pairs_with_higher(
    s: Floats, place: Ints, top: int, delta: float, trees: Floats, alpha: Floats, near: Floats, lean: Floats
) -> None:
    """Each document's sums over its pairs with higher grades of h', h'' and h'' u, its own cost aside."""
    a, b = len(s) - 1, len(s) - 1
    low, high, steep = find_zone(delta)
    zone, beyond = trees[0, : top + 2], trees[1, : top + 2]
    zone[:], beyond[:] = 0.0, 0.0
    for j in range(len(s) - 1, -1, -1):
        alpha[j], near[j], lean[j] = 0.0, 0.0, 0.0
        if place[j] == top:
            continue
        bar = s[j] + 1.0 - low  # u - low = bar - s_i
        while a >= 0 and s[a] < bar:
            if place[a] > 0:
                _add(zone, top - place[a], 1.0, s[a])
            a -= 1
        while b > a and s[b] <= bar + low - high:
            if place[b] > 0:
                _add(zone, top - place[b], -1.0, s[b])
                _add(beyond, top - place[b], 1.0, s[b])
            b -= 1
        if a == b:
            zone[:] = 0.0
        weight, first, _ = _before(zone, top - place[j])
        far, _, _ = _before(beyond, top - place[j])
        alpha[j] = steep * (bar * weight - first) + far
        near[j] = steep * max(weight, 0.0)
        lean[j] = steep * ((s[j] + 1.0) * weight - first)


@kernel
def _sort(scores: Floats, items: Ints, keys: Floats, keys2: Floats, items2: Ints) -> None:
    """Sort a query's rows by descending score, and leave the scores in ``keys``, less the middle one."""
    n, ascents = len(items), 0
    for k in range(n):
        keys[k] = scores[items[k]]
        ascents += k > 0 and keys[k - 1] < keys[k]
    if n <= _SHORT and ascents > n // 8:
        count_sort(keys, items, keys2, items2, n)
    elif ascents > 0:
        merge_sort(keys, items, keys2, items2, n)
    middle = keys[n // 2]
    for k in range(n):
        keys[k] -= middle


@kernel
def longest_query(indptr: Ints) -> int:
    """The most documents of a query."""
    longest = 0
    for q in range(len(indptr) - 1):
        longest = max(longest, indptr[q + 1] - indptr[q])
    return longest


class Workspace(NamedTuple):
    """Arrays as long as the longest query."""

    floats: Floats
    ints: Ints
    trees: Floats


@kernel
def make_workspace(indptr: Ints) -> Workspace:
    """Space for any of these queries."""
    n = longest_query(indptr)
    return Workspace(np.empty((8, n)), np.empty((2, n), np.int64), np.empty((2, n + 1, 3)))


@kernel
def query_sums(
    labels: Labels, ranked: Ranked, q: int, delta: float, space: Workspace, gradient: Floats, totals: Floats
) -> None:
    """Rank one query; add its sums of h, h' and h'' to ``totals``; fill its derivatives and curvatures."""
    items = ranked.order[labels.indptr[q] : labels.indptr[q + 1]]
    n, top, floats, places = len(items), 0, space.floats, space.ints[1, : len(items)]
    keys, costs = floats[0, :n], floats[1, :n]
    alpha, near, lean = floats[2, :n], floats[3, :n], floats[4, :n]
    alpha2, near2, lean2 = floats[5, :n], floats[6, :n], floats[7, :n]
    _sort(ranked.scores, items, keys, alpha, space.ints[0])
    for k in range(n):
        places[k], costs[k] = labels.place[items[k]], labels.cost[items[k]]
        top = max(top, places[k])
    if top == 0:  # no pairs
        for k in range(n):
            gradient[items[k]], ranked.curvature[items[k]], ranked.drift[items[k]] = 0.0, 0.0, 0.0
        return
    weight, per_delta = labels.weight[q], 1.0 / delta if delta > 0.0 else 0.0
    totals[SMOOTH] += weight * _pairs_with_lower(keys, places, costs, top, delta, space.trees, alpha, near, lean)
    _pairs_with_higher(keys, places, top, delta, space.trees, alpha2, near2, lean2)
    for k in range(n):
        totals[ALPHA] += weight * alpha[k]
        totals[NEAR] += weight * near[k]
        gradient[items[k]] = weight * (costs[k] * alpha2[k] - alpha[k])
        ranked.curvature[items[k]] = costs[k] * near2[k] + near[k]
        ranked.drift[items[k]] = weight * (lean[k] - costs[k] * lean2[k]) * per_delta


@kernel
def query_hinge(labels: Labels, q: int, space: Workspace) -> float:
    """The sum of the hinge over the pairs of a query that ``query_sums`` has just ranked, times its weight."""
    n = labels.indptr[q + 1] - labels.indptr[q]
    floats, places = space.floats, space.ints[1, :n]
    top = places.max()
    if top == 0:
        return 0.0
    a, b, c = floats[2, :n], floats[3, :n], floats[4, :n]
    total = _pairs_with_lower(floats[0, :n], places, floats[1, :n], top, 0.0, space.trees, a, b, c)
    return float(labels.weight[q] * total)


@kernel
def pair_sums(labels: Labels, ranked: Ranked, delta: float, gradient: Floats) -> Floats:
    """Sums over all pairs of h, h' and h'', times the weight of the query.

    Sorts ``ranked.order`` and fills what follows it; ``gradient`` becomes the derivatives by score.
    """
    totals, space = np.zeros(EXACT), make_workspace(labels.indptr)
    for q in range(len(labels.indptr) - 1):
        query_sums(labels, ranked, q, delta, space, gradient, totals)
    return totals
