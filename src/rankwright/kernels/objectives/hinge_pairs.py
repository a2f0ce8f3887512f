"""The smoothed hinge over pairs of a query's documents with different grades, in O(n log n), without a list of pairs.

Document i has a higher grade than j, their scores miss a margin of 1 by u = 1 - (s_i - s_j), and the pair costs
``higher_cost[i] cost[j] h(u)``, where h is the hinge max(u, 0) with its corner rounded off over a zone of width delta:

    h(u) = 0  (u <= -delta/2),    (u + delta/2)^2 / (2 delta)  (in the zone),    u  (u >= delta/2, beyond it).

So h exceeds the hinge by delta/8 at most; ``delta = 0`` is the hinge, and ``delta = inf`` stands for max(u, 0)^2 / 2, a
zone without end. The derivative h'(u) grows from 0 to 1 in the zone; it is u for ``delta = inf``.

A query is sorted by score. The documents whose pairs with document i are in the zone, or beyond it, are then those
above a bar that moves with s_i: two pointers take every document into the zone and out of it once. The documents inside
are summed by a Fenwick tree over the grades of the query, which gives the sums over all lower grades. The sums over all
higher grades are the same sweep of the mirrored query: scores negated, grades and order reversed.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from rankwright.kernels.jit import Floats, Ints, inlined, inner_kernel, kernel
from rankwright.kernels.measures.sorting import max_query_size, merge_sort, sort_descending
from rankwright.kernels.objectives.graded_pairs import get_doc_weight

SMOOTH_LOSS, SLOPE, CURVATURE, HINGE_LOSS, N_TOTALS = 0, 1, 2, 3, 4  # sums over pairs: h, h', h''; the hinge


class PairLabels(NamedTuple):
    """The grades, pair costs and query weights that define the pairs of a hinge loss."""

    place: Ints  # of a document's grade among those of its query
    cost: Floats  # of a pair whose lower document this is
    weight: Floats  # of each query
    indptr: Ints
    higher_cost: Floats | None = None  # a factor of the cost of a pair whose higher document this is; 1 where None


class RankedScores(NamedTuple):
    """The scores of documents, their ranking, and the derivatives of the pair loss that kernels fill in.

    Kernels sort ``order``, which holds the rows of every query, in any order at first.
    """

    scores: Floats
    order: Ints
    curvature: Floats  # each document's sum of h'' over its pairs
    gradient_by_delta: Floats  # the gradient by score, differentiated by delta


@kernel
def find_grade_places(y: Floats, indptr: Ints) -> Ints:
    """Return for each document the place of its grade among the different grades of its query, lowest 0."""
    place, longest = np.empty(len(y), np.int64), max_query_size(indptr)
    keys, keys2, order, order2 = (
        np.empty(longest),
        np.empty(longest),
        np.empty(longest, np.int64),
        np.empty(longest, np.int64),
    )
    for q in range(len(indptr) - 1):
        a, n = indptr[q], indptr[q + 1] - indptr[q]
        for k in range(n):
            keys[k], order[k] = -y[a + k], a + k
        merge_sort(keys, order, keys2, order2, n)
        here = 0
        for k in range(n):
            if k > 0 and y[order[k]] > y[order[k - 1]]:
                here += 1
            place[order[k]] = here
    return place


@kernel
def sum_pair_costs(labels: PairLabels) -> tuple[Floats, Floats]:
    """Return the summed cost of the pairs (of documents with different grades) by query, and by document."""
    place, cost, _, indptr, higher_cost = labels
    by_query, by_document = np.zeros(len(indptr) - 1), np.zeros(len(place))
    for q in range(len(by_query)):
        a, b = indptr[q], indptr[q + 1]
        top = 0
        for i in range(a, b):
            top = max(top, place[i])
        higher, lower = np.zeros(top + 2), np.zeros(top + 2)
        for i in range(a, b):
            higher[place[i]] += get_doc_weight(higher_cost, i)
            lower[place[i] + 1] += cost[i]
        for k in range(1, len(higher)):
            higher[-1 - k] += higher[-k]
            lower[k] += lower[k - 1]
        for i in range(a, b):
            below = get_doc_weight(higher_cost, i) * lower[place[i]]
            by_query[q] += below
            by_document[i] = below + cost[i] * higher[place[i] + 1]
    return by_query, by_document


@inner_kernel
def _find_zone(delta: float) -> tuple[float, float, float]:
    """Return where the rounded zone of the smoothed hinge begins and ends, and the second derivative in it."""
    if delta == np.inf:
        return 0.0, np.inf, 1.0
    return -delta / 2.0, delta / 2.0, 1.0 / delta if delta > 0.0 else 0.0


@inlined
def _add_to_tree(tree: Floats, place: int, values: tuple[float, ...]) -> None:
    """Add a number to each column of a Fenwick tree at this place."""
    k = place + 1
    while k < len(tree):
        for column in range(len(values)):
            tree[k, column] += values[column]
        k += k & -k


@inlined
def _sum_before(tree: Floats, place: int, column: int) -> float:
    """Return the sum of a Fenwick tree's column over all places before this one."""
    total, k = 0.0, place
    while k > 0:
        total += tree[k, column]
        k -= k & -k
    return total


class PairWorkspace(NamedTuple):
    """The scratch arrays of the pair sums of one query, long enough for the longest query."""

    floats: Floats
    ints: Ints
    trees: Floats


@inner_kernel
def make_pair_workspace(indptr: Ints) -> PairWorkspace:
    """Return scratch arrays for the pair sums of any of these queries."""
    n = max_query_size(indptr)
    return PairWorkspace(np.empty((12, n)), np.empty((3, n), np.int64), np.empty((2, n + 1, 3)))


@inner_kernel
def _sum_pairs_with_lower(
    s: Floats,
    place: Ints,
    cost: Floats,
    own: Floats,
    top: int,
    delta: float,
    trees: Floats,
    slope: Floats,
    near: Floats,
    lean: Floats,
) -> float:
    """Return the summed smoothed hinge of a query, and write each document's sums over pairs with lower grades.

    The sums are of h', h'' and h'' u, in ``slope``, ``near`` and ``lean``.
    ``s`` descends; ``top`` is the place of the highest grade. A pair costs ``own`` of its higher document times
    ``cost`` of its lower one.
    """
    n, total, a, b = len(s), 0.0, 0, 0
    low, high, steep = _find_zone(delta)
    zone, beyond = trees[0, : top + 2], trees[1, : top + 2]  # columns: sums of cost times s^0, s^1, s^2
    zone[:], beyond[:] = 0.0, 0.0
    for i in range(n):
        slope[i], near[i], lean[i] = 0.0, 0.0, 0.0
        if place[i] == 0:
            continue
        bar = s[i] - 1.0 + low  # u - low = s_j - bar
        while a < n and s[a] > bar:
            if place[a] < top:
                _add_to_tree(zone, place[a], (cost[a], cost[a] * s[a], cost[a] * s[a] * s[a]))
            a += 1
        while b < a and s[b] >= bar - low + high:
            if place[b] < top:
                _add_to_tree(zone, place[b], (-cost[b], -cost[b] * s[b], -cost[b] * s[b] * s[b]))
                _add_to_tree(beyond, place[b], (cost[b], cost[b] * s[b]))
            b += 1
        if a == b:  # empty, but for rounding
            zone[:] = 0.0
        weight, first = _sum_before(zone, place[i], 0), _sum_before(zone, place[i], 1)
        second, far = _sum_before(zone, place[i], 2), _sum_before(beyond, place[i], 0)
        far_first = _sum_before(beyond, place[i], 1)
        in_zone = 0.5 * steep * (second - 2.0 * bar * first + bar * bar * weight)
        total += own[i] * (in_zone + (far_first - (s[i] - 1.0) * far))
        slope[i] = own[i] * (steep * (first - bar * weight) + far)
        near[i] = own[i] * (steep * max(weight, 0.0))
        lean[i] = own[i] * (steep * (first - (s[i] - 1.0) * weight))
    return total


@inner_kernel
def _sort_query(scores: Floats, items: Ints, keys: Floats, keys2: Floats, items2: Ints) -> None:
    """Sort a query's rows by descending score, and write the sorted scores minus the median to ``keys``."""
    n = len(items)
    for k in range(n):
        keys[k] = scores[items[k]]
    sort_descending(keys, items, keys2, items2, n)
    middle = keys[n // 2]
    for k in range(n):
        keys[k] -= middle


@inner_kernel
def sum_query_pairs(
    labels: PairLabels,
    ranked: RankedScores,
    q: int,
    delta: float,
    space: PairWorkspace,
    gradient: Floats,
    totals: Floats,
) -> None:
    """Rank one query, add its sums of the smoothed hinge, h' and h'' to ``totals``, and write its gradient."""
    items = ranked.order[labels.indptr[q] : labels.indptr[q + 1]]
    n, top, floats = len(items), 0, space.floats
    places, mirrored_places = space.ints[1, :n], space.ints[2, :n]
    keys, costs, higher_costs = floats[0, :n], floats[1, :n], floats[10, :n]
    mirrored_keys, mirrored_costs, mirrored_higher = floats[8, :n], floats[9, :n], floats[11, :n]
    slope, near, lean = floats[2, :n], floats[3, :n], floats[4, :n]
    slope2, near2, lean2 = floats[5, :n], floats[6, :n], floats[7, :n]
    _sort_query(ranked.scores, items, keys, slope, space.ints[0])
    for k in range(n):
        places[k], costs[k] = labels.place[items[k]], labels.cost[items[k]]
        higher_costs[k] = get_doc_weight(labels.higher_cost, items[k])
        top = max(top, places[k])
    if top == 0:  # no pairs
        for k in range(n):
            gradient[items[k]], ranked.curvature[items[k]], ranked.gradient_by_delta[items[k]] = 0.0, 0.0, 0.0
        return
    for k in range(n):
        m = n - 1 - k
        mirrored_keys[k], mirrored_places[k] = -keys[m], top - places[m]
        mirrored_costs[k], mirrored_higher[k] = higher_costs[m], costs[m]
    weight, per_delta = labels.weight[q], 1.0 / delta if delta > 0.0 else 0.0
    totals[SMOOTH_LOSS] += weight * _sum_pairs_with_lower(
        keys, places, costs, higher_costs, top, delta, space.trees, slope, near, lean
    )
    _sum_pairs_with_lower(
        mirrored_keys, mirrored_places, mirrored_costs, mirrored_higher, top, delta, space.trees, slope2, near2, lean2
    )
    for k in range(n):
        m = n - 1 - k
        totals[SLOPE] += weight * slope[k]
        totals[CURVATURE] += weight * near[k]
        gradient[items[k]] = weight * (slope2[m] - slope[k])
        ranked.curvature[items[k]] = near2[m] + near[k]
        ranked.gradient_by_delta[items[k]] = weight * (lean[k] - lean2[m]) * per_delta


@inner_kernel
def sum_query_hinge(labels: PairLabels, q: int, space: PairWorkspace) -> float:
    """Return one query's weighted hinge loss, not smoothed; ``sum_query_pairs`` must have ranked it just before."""
    n = labels.indptr[q + 1] - labels.indptr[q]
    floats, places, top = space.floats, space.ints[1, :n], 0
    for k in range(n):
        top = max(top, places[k])
    if top == 0:
        return 0.0
    a, b, c = floats[2, :n], floats[3, :n], floats[4, :n]
    keys, costs, higher_costs = floats[0, :n], floats[1, :n], floats[10, :n]
    total = _sum_pairs_with_lower(keys, places, costs, higher_costs, top, 0.0, space.trees, a, b, c)
    return float(labels.weight[q] * total)


@kernel
def sum_pairs(labels: PairLabels, ranked: RankedScores, delta: float, gradient: Floats) -> Floats:
    """Return the weighted sums over all pairs of the smoothed hinge and of its first and second derivatives.

    Sorts ``ranked.order`` and fills the fields after it; ``gradient`` becomes the derivatives by score.
    """
    totals, space = np.zeros(HINGE_LOSS), make_pair_workspace(labels.indptr)
    for q in range(len(labels.indptr) - 1):
        sum_query_pairs(labels, ranked, q, delta, space, gradient, totals)
    return totals


@inner_kernel
def _sum_lower_in_zone(s: Floats, place: Ints, value: Floats, delta: float, tree: Floats, out: Floats) -> None:
    """Write for each document the sum of ``value`` over lower grades whose pair with it is in the rounded zone.

    ``s`` descends.
    """
    n, a, b = len(s), 0, 0
    low, high, _ = _find_zone(delta)
    tree[:] = 0.0
    for i in range(n):
        bar = s[i] - 1.0 + low
        while a < n and s[a] > bar:
            _add_to_tree(tree, place[a], (value[a],))
            a += 1
        while b < a and s[b] >= bar - low + high:
            _add_to_tree(tree, place[b], (-value[b],))
            b += 1
        if a == b:  # empty, but for rounding
            tree[:] = 0.0
        out[i] = _sum_before(tree, place[i], 0)


@inner_kernel
def multiply_query_hessian(
    labels: PairLabels, ranked: RankedScores, q: int, delta: float, space: PairWorkspace, v: Floats, out: Floats
) -> None:
    """Write the Hessian, by score, of one ranked query's smoothed hinge loss times a vector ``v`` to ``out``.

    out_i = w_q (sum over the pairs of i in the zone of h'' (v_i - v_other)).
    """
    place, cost, weight, indptr, higher_cost = labels
    items, top, floats = ranked.order[indptr[q] : indptr[q + 1]], 0, space.floats
    n, middle, steep = len(items), ranked.scores[items[len(items) // 2]], _find_zone(delta)[2]
    places, mirrored_places = space.ints[1, :n], space.ints[2, :n]
    keys, values, sums = floats[0, :n], floats[1, :n], floats[2, :n]
    mirrored_keys, mirrored_values, mirrored_sums = floats[3, :n], floats[4, :n], floats[5, :n]
    for i in items:
        top = max(top, place[i])
    for k in range(n):
        i, m = items[k], n - 1 - k
        keys[k], places[k], values[k] = ranked.scores[i] - middle, place[i], cost[i] * v[i]
        mirrored_keys[m], mirrored_places[m] = -keys[k], top - place[i]
        mirrored_values[m] = get_doc_weight(higher_cost, i) * v[i]
    tree = space.trees[0, : top + 2]
    _sum_lower_in_zone(keys, places, values, delta, tree, sums)
    _sum_lower_in_zone(mirrored_keys, mirrored_places, mirrored_values, delta, tree, mirrored_sums)
    for k in range(n):
        i = items[k]
        own = ranked.curvature[i] * v[i] - get_doc_weight(higher_cost, i) * (steep * sums[k])
        out[i] = (own - steep * cost[i] * mirrored_sums[n - 1 - k]) * weight[q]
