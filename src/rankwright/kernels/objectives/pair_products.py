"""The second derivative of pair sums by the scores, times a vector, by the sweep of ``pairs.py``."""

from __future__ import annotations

from rankwright.kernels.jit import Floats, kernel
from rankwright.kernels.objectives.pair_sums import Labels, Ranked, find_zone


@kernel
def _add(tree: Floats, place: int, value: float) -> None:
    """Add to a Fenwick tree."""
    k = place + 1
    while k < len(tree):
        tree[k] += value
        k += k & -k


@kernel
def _before(tree: Floats, place: int) -> float:
    """The sum over all places before this one."""
    total, k = 0.0, place
    while k > 0:
        total += tree[k]
        k -= k & -k
    return total


@kernel
def query_product(labels: Labels, ranked: Ranked, q: int, delta: float, tree: Floats, v: Floats, out: Floats) -> None:
    """Fill the rows of one query: out_i = w_q (sum over the pairs of i in the zone of h'' (v_i - v_other))."""
    place, cost, weight, indptr = labels
    scores, order, curvature, _ = ranked
    items, top = order[indptr[q] : indptr[q + 1]], 0
    for i in items:
        out[i] = curvature[i] * v[i]
        top = max(top, place[i])
    low, high, steep = find_zone(delta)
    n, middle, zone, a, b = len(items), scores[items[len(items) // 2]], tree[: top + 2], 0, 0
    zone[:] = 0.0
    for i in items:  # from above, with lower grades
        bar = scores[i] - middle - 1.0 + low
        while a < n and scores[items[a]] - middle > bar:
            _add(zone, place[items[a]], cost[items[a]] * v[items[a]])
            a += 1
        while b < a and scores[items[b]] - middle >= bar - low + high:
            _add(zone, place[items[b]], -cost[items[b]] * v[items[b]])
            b += 1
        if a == b:  # empty, but for rounding
            zone[:] = 0.0
        out[i] -= steep * _before(zone, place[i])
    zone[:], a, b = 0.0, n - 1, n - 1
    for j in items[::-1]:  # from below, with higher grades
        bar = scores[j] - middle + 1.0 - low
        while a >= 0 and scores[items[a]] - middle < bar:
            _add(zone, top - place[items[a]], v[items[a]])
            a -= 1
        while b > a and scores[items[b]] - middle <= bar + low - high:
            _add(zone, top - place[items[b]], -v[items[b]])
            b -= 1
        if a == b:
            zone[:] = 0.0
        out[j] -= steep * cost[j] * _before(zone, top - place[j])
    for i in items:
        out[i] *= weight[q]
