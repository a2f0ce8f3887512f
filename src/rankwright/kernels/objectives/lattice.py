"""Rankings of a query that keep the order within every class, as paths of a lattice.

A node is the number of documents of each class that are ranked. On every path to it the measure's lead is the same (see
``measure_values.py``) and so are the remaining documents: dynamic programming finds the best path. Taking the next
document of a class lowers F by 2 / norm times the sum of the score differences to the documents of other classes with
higher scores that come later. After the last rank that counts, the rest follow by score, at no cost.
"""

from __future__ import annotations

import numpy as np

from rankwright.kernels.jit import Floats, Ints, inner_kernel, kernel
from rankwright.kernels.measures.measure_values import MeasureArrays
from rankwright.kernels.measures.sorting import max_query_size
from rankwright.kernels.objectives.ranking_search import group_by_class
from rankwright.kernels.objectives.surrogates import compute_violation

SLACK = 1e-12  # values this close are equal


@kernel
def count_nodes(classes: Ints, depth: int, indptr: Ints) -> Floats:
    """Return by query an upper bound on the number of nodes of its lattice of rankings: the cost of a search."""
    out, sizes = np.empty(len(indptr) - 1), np.empty(max_query_size(indptr), np.int64)
    for q in range(len(out)):
        count = 0
        for i in range(indptr[q], indptr[q + 1]):
            while count <= classes[i]:
                sizes[count] = 0
                count += 1
            sizes[classes[i]] += 1
        out[q] = 1.0
        for c in range(count):
            out[q] *= min(sizes[c], depth) + 1
    return out


@inner_kernel
def _arrange_by_class(
    rows: Ints, scores: Floats, classes: Ints, gain: Floats
) -> tuple[Ints, Ints, Floats, Ints, Floats]:
    """Return rows by class and score, the starts and gains of classes, counts of rows ahead, and sums of scores.

    ``ahead[c, i]`` counts the documents of class c with a higher score than the i-th row; ``sums[i]`` is that of the
    scores before it.
    """
    n = len(rows)
    arranged, starts = group_by_class(rows, classes)
    count = len(starts) - 1
    gains, ahead, sums = np.empty(count), np.empty((count, n), np.int64), np.zeros(n + 1)
    for i in range(n):
        sums[i + 1] = sums[i] + scores[arranged[i]]
    for c in range(count):
        gains[c] = gain[arranged[starts[c]]]
        for other in range(count):
            at = starts[c]
            for i in range(starts[other], starts[other + 1]):
                while at < starts[c + 1] and scores[arranged[at]] > scores[arranged[i]]:
                    at += 1
                ahead[c, i] = at - starts[c]
    return arranged, starts, gains, ahead, sums


@inner_kernel
def _sum_overtaken_scores(
    i: int, own: int, score: float, taken: Ints, starts: Ints, ahead: Ints, sums: Floats
) -> float:
    """Return the sum, over documents of other classes that a row overtakes, of their scores minus its own."""
    total = 0.0
    for c in range(len(taken)):
        if c != own and ahead[c, i] > taken[c]:
            total += sums[starts[c] + ahead[c, i]] - sums[starts[c] + taken[c]] - (ahead[c, i] - taken[c]) * score
    return total


@kernel
def find_best_paths(
    arrays: MeasureArrays,
    order: Ints,
    scores: Floats,
    classes: Ints,
    ideal: Floats,
    norm: Floats,
    trade: float,
    perfect: bool,
    live: Ints,
) -> None:
    """Rank each query to maximise its score F minus ``trade`` times its measure E, by dynamic programming.

    ``order`` holds the documents by score at first. It searches only perfect rankings, or only imperfect ones.
    ``ideal`` is the sum of gains of a perfect ranking, which has E = 1. A path is perfect if no other to any of its
    nodes has a higher E, and its end has E = 1.
    """
    indptr, discount, u, v = arrays.indptr, arrays.discount, arrays.u, arrays.v
    for q in live:
        a, n = indptr[q], indptr[q + 1] - indptr[q]
        rows, depth, price = order[a : a + n], min(n, len(discount)), 2.0 / norm[q]
        arranged, starts, gains, ahead, sums = _arrange_by_class(rows, scores, classes, arrays.gain)
        count = len(gains)
        widths, stride = np.empty(count, np.int64), np.empty(count, np.int64)
        nodes = 1
        for c in range(count - 1, -1, -1):
            widths[c], stride[c] = min(starts[c + 1] - starts[c], depth), nodes
            nodes *= widths[c] + 1
        E, lead = np.empty(nodes), np.empty(nodes)
        value = np.empty((2, nodes))  # of paths with the highest E to their nodes, and of the others
        way = np.empty((2, nodes), np.int64)
        taken, node, rank, end, best = np.zeros(count, np.int64), 0, 0, -1, -np.inf
        E[0], lead[0], value[0, 0], value[1, 0] = 0.0, 1.0, 0.0, -np.inf
        while True:
            # the next node: one more of the last class that can have it, and none of those after
            c = count - 1
            while c >= 0 and (taken[c] == widths[c] or rank == depth):
                rank -= taken[c]
                node -= taken[c] * stride[c]
                taken[c] = 0
                c -= 1
            if c < 0:
                break
            taken[c] += 1
            node += stride[c]
            rank += 1
            E[node] = -np.inf
            for c in range(count):
                if taken[c] > 0:
                    before = node - stride[c]
                    gained = gains[c] * discount[rank - 1] * lead[before] / ideal[q]
                    if E[before] + gained > E[node]:
                        E[node] = E[before] + gained
                    lead[node] = lead[before] + gains[c] * (u + v * lead[before])
            value[0, node], value[1, node] = -np.inf, -np.inf
            for c in range(count):
                if taken[c] == 0:
                    continue
                before, i = node - stride[c], starts[c] + taken[c] - 1
                gained = gains[c] * discount[rank - 1] * lead[before] / ideal[q]
                taken[c] -= 1
                paid = trade * gained + price * _sum_overtaken_scores(
                    i, c, scores[arranged[i]], taken, starts, ahead, sums
                )
                taken[c] += 1
                lost = 0 if E[before] + gained >= E[node] - SLACK else 1
                for kind in range(2):
                    to = max(kind, lost)
                    if value[kind, before] - paid > value[to, node]:
                        value[to, node], way[to, node] = value[kind, before] - paid, 2 * c + kind
            if rank == depth:
                for kind in range(2):
                    is_perfect = kind == 0 and E[node] >= 1.0 - SLACK
                    if is_perfect == perfect and value[kind, node] > best:
                        best, end = value[kind, node], 2 * node + kind
        if end >= 0:
            _write_ranking_to_node(end, way, stride, starts, arranged, depth, rows)


@inner_kernel
def _find_first_row(rows: Ints) -> int:
    """Return the lowest of a query's row numbers."""
    first: int = rows[0]
    for row in rows:
        first = min(first, row)
    return first


@inner_kernel
def _write_ranking_to_node(
    end: int, way: Ints, stride: Ints, starts: Ints, arranged: Ints, depth: int, rows: Ints
) -> None:
    """Write the ranking of the lattice path that ends at ``end``: its documents, then the rest in order."""
    node, kind = end // 2, end % 2
    taken, at = np.empty(len(stride), np.int64), node
    for c in range(len(stride)):
        taken[c] = at // stride[c]
        at -= taken[c] * stride[c]
    head, used = np.empty(depth, np.int64), np.zeros(len(rows), np.bool_)
    first = _find_first_row(rows)
    for rank in range(depth - 1, -1, -1):
        step = way[kind, node]
        c, kind = step // 2, step % 2
        taken[c] -= 1
        node -= stride[c]
        head[rank] = arranged[starts[c] + taken[c]]
        used[head[rank] - first] = True
    at = len(rows) - 1
    for i in range(len(rows) - 1, -1, -1):
        if not used[rows[i] - first]:
            rows[at] = rows[i]
            at -= 1
    for rank in range(depth):
        rows[rank] = head[rank]


@kernel
def search_worst(
    arrays: MeasureArrays,
    order: Ints,
    scores: Floats,
    classes: Ints,
    ideal: Floats,
    norm: Floats,
    kind: int,
    ahead_of: Floats,
    value: Floats,
    max_nodes: int,
    live: Ints,
    found: Ints,
) -> Ints:
    """Find each query's most violated imperfect ranking by branch and bound; return the number of nodes visited.

    The violation is that of 1 - E and x, E being the measure.
    x is F less that of the hardest perfect ranking: ``ahead_of`` for the order of the scores, in ``order``. ``value``
    holds the violation of some ranking, which is in ``found``; larger ones replace both. After a node, E grows by at
    least the gains of the worst order of the rest, and F falls by at least nothing. A query that would take more than
    ``max_nodes`` nodes keeps the best ranking so far.
    """
    indptr, discount, u, v = arrays.indptr, arrays.discount, arrays.u, arrays.v
    visited = np.zeros(len(norm), np.int64)
    for q in live:
        a, n = indptr[q], indptr[q + 1] - indptr[q]
        rows, depth, price = order[a : a + n], min(n, len(discount)), 2.0 / norm[q]
        arranged, starts, gains, ahead, sums = _arrange_by_class(rows, scores, classes, arrays.gain)
        count = len(gains)
        taken, step = np.zeros(count, np.int64), np.empty(depth + 1, np.int64)
        for rank in range(depth + 1):
            step[rank] = count
        E, lead, x = np.empty(depth + 1), np.empty(depth + 1), np.empty(depth + 1)
        E[0], lead[0], x[0], rank = 0.0, 1.0, ahead_of[q], 0
        while rank >= 0 and visited[q] <= max_nodes:
            if step[rank] < count:  # back from a deeper rank: undo the choice made here
                taken[step[rank]] -= 1
            step[rank] -= 1
            c = step[rank]
            while c >= 0 and taken[c] == starts[c + 1] - starts[c]:
                c -= 1
            step[rank] = c
            if c < 0:
                step[rank] = count
                rank -= 1
                continue
            i = starts[c] + taken[c]
            paid = price * _sum_overtaken_scores(i, c, scores[arranged[i]], taken, starts, ahead, sums)
            taken[c] += 1
            visited[q] += 1
            E[rank + 1] = E[rank] + gains[c] * discount[rank] * lead[rank] / ideal[q]
            lead[rank + 1] = lead[rank] + gains[c] * (u + v * lead[rank])
            x[rank + 1] = x[rank] - paid
            remaining = _compute_least_gain(rank + 1, depth, lead[rank + 1], taken, starts, gains, discount, u, v)
            least = E[rank + 1] + remaining / ideal[q]
            reach = compute_violation(kind, 1.0 - least, x[rank + 1])
            if least > 1.0 - SLACK or reach <= value[q] * (1.0 + SLACK):
                continue
            if rank + 1 == depth:
                value[q] = reach
                _write_ranking_of_steps(step, starts, arranged, depth, rows, found[a : a + n])
                continue
            rank += 1
            step[rank] = count
    return visited


@inner_kernel
def _compute_least_gain(
    rank: int, depth: int, lead: float, taken: Ints, starts: Ints, gains: Floats, discount: Floats, u: float, v: float
) -> float:
    """Return the least that the remaining ranks can add to the measure: with the worst classes first."""
    total = 0.0
    for c in range(len(gains) - 1, -1, -1):
        left = min(starts[c + 1] - starts[c] - taken[c], depth - rank)
        if gains[c] != 0.0:
            for r in range(rank, rank + left):
                total += gains[c] * discount[r] * lead
                lead += gains[c] * (u + v * lead)
        rank += left
    return total


@inner_kernel
def _write_ranking_of_steps(step: Ints, starts: Ints, arranged: Ints, depth: int, rows: Ints, out: Ints) -> None:
    """Write the ranking that takes a document of each class in ``step`` in turn, then the rest in order."""
    taken, used, first = np.empty(len(starts), np.int64), np.zeros(len(rows), np.bool_), _find_first_row(rows)
    for c in range(len(starts)):
        taken[c] = starts[c]
    for rank in range(depth):
        row = arranged[taken[step[rank]]]
        taken[step[rank]] += 1
        out[rank] = row
        used[row - first] = True
    at = depth
    for row in rows:
        if not used[row - first]:
            out[at] = row
            at += 1
