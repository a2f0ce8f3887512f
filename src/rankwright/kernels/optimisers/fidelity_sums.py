"""The effect of a threshold stump on the fidelity loss, summed over pairs that are never all stored.

A pair with o = s_i - s_j has x = exp(-o), y = P = 1 / (1 + x), and with P* = 1

    F = 1 - sqrt(y),    W = x y^(3/2),    F' = -W / 2,    F'' = W (3 y - 1) / 4,    F''' = W (-7.5 y^2 + 6 y - 0.5) / 4,

where W is the paper's pair weight (4) without the weight D of the pair. Documents are ordered as in
``graded_pairs.py``.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from rankwright.kernels.jit import Floats, Ints, inner_kernel, kernel, loose_kernel
from rankwright.kernels.measures.sorting import max_query_size
from rankwright.kernels.objectives.graded_pairs import GradedDocuments, get_doc_weight, slice_doc_weights
from rankwright.kernels.scorers.stump_scores import GRAIN

LOSS, WEIGHT, LIGHTER, HEAVIER, FLATTER, N_STATE = 0, 1, 2, 3, 4, 5
_PAIRS = 8192  # held at a time, or the pairs of one document
_FEATURES = 64  # processed at a time
_WIDE = 600.0  # if the scores of a query span more, their factors overflow
_FARTHEST = 300.0


class PairOdds(NamedTuple):
    """The scores and their exponentials, whose quotients are the odds x = exp(s_j - s_i) of pairs.

    It is ``up[j] / up[i]``, except in queries with a wide range of scores.
    """

    scores: Floats
    up: Floats
    wide: Ints  # per query


@inner_kernel
def _compute_odds(indptr: Ints, scores: Floats) -> PairOdds:
    """Return the exponentials of scores, centred by query, and which queries have too wide a range for them."""
    up, wide = np.empty(len(scores)), np.zeros(len(indptr) - 1, np.int64)
    for q in range(len(wide)):
        a, b = indptr[q], indptr[q + 1]
        low, high = scores[a], scores[a]
        for i in range(a, b):
            low, high = min(low, scores[i]), max(high, scores[i])
        wide[q] = high - low > _WIDE
        for i in range(a, b):
            up[i] = np.exp(scores[i] - (low + high) / 2.0)
    return PairOdds(scores, up, wide)


@inner_kernel
def _count_pairs_held(graded: GradedDocuments) -> int:
    """Return how many pairs of documents are held in memory at a time."""
    return max(max_query_size(graded.indptr), _PAIRS)


@inner_kernel
def _find_last_held(graded: GradedDocuments, i: int, b: int, room: int) -> int:
    """Return the end of the documents from ``i`` on whose pairs fit into memory for ``room`` pairs."""
    while i < b and graded.lower[i] < b and room >= b - graded.lower[i]:
        room -= b - graded.lower[i]
        i += 1
    return i


@loose_kernel
def _fill_odds(odds: PairOdds, q: int, i: int, lower: int, b: int, x: Floats) -> None:
    """Write the odds x = exp(s_j - s_i) of the pairs of document i with each j from ``lower`` to ``b``."""
    if odds.wide[q]:
        for j in range(lower, b):
            x[j - lower] = np.exp(min(max(odds.scores[j] - odds.scores[i], -_FARTHEST), _FARTHEST))
    else:
        up, inverse = odds.up[lower:b], 1.0 / odds.up[i]
        for k in range(len(up)):
            x[k] = up[k] * inverse


@loose_kernel
def compute_fidelity_state(graded: GradedDocuments, before: Floats, scores: Floats, potentials: Floats) -> Floats:
    """Return sums over pairs of the fidelity loss and the pair weight, and by how much weights fell and rose.

    They are the sums of F, of W, of the falls and rises of W since ``before``, and of the falls of F''.
    ``potentials`` has two rows, which become, per document, the sums of W and of F''' over the pairs it should win,
    less those over the pairs it should lose.
    """
    odds, old = _compute_odds(graded.indptr, scores), _compute_odds(graded.indptr, before)
    totals, space = np.zeros(N_STATE), _count_pairs_held(graded)
    x_now, x_old = np.empty(space), np.empty(space)
    potentials[:] = 0.0
    for q in range(len(graded.weight)):
        d, b = graded.weight[q], graded.indptr[q + 1]
        for i in range(graded.indptr[q], b):
            first = graded.lower[i]
            n = b - first
            if n == 0 or d == 0.0:
                break  # the rest of the query is of its lowest grade
            _fill_odds(odds, q, i, first, b, x_now)
            _fill_odds(old, q, i, first, b, x_old)
            x, x0 = x_now[:n], x_old[:n]
            own, others, own3, others3 = 0.0, potentials[0, first:b], 0.0, potentials[1, first:b]
            mine, theirs = d * get_doc_weight(graded.doc_weight, i), slice_doc_weights(graded.doc_weight, first, b)
            loss, lighter, heavier, flatter = 0.0, 0.0, 0.0, 0.0
            for k in range(n):
                y, c = 1.0 / (1.0 + x[k]), mine * get_doc_weight(theirs, k)
                root = np.sqrt(y)
                w = c * x[k] * y * root
                third = w * ((6.0 - 7.5 * y) * y - 0.5) / 4.0
                y0 = 1.0 / (1.0 + x0[k])
                w0 = c * x0[k] * y0 * np.sqrt(y0)
                fall, flat = w0 - w, (w0 * (3.0 * y0 - 1.0) - w * (3.0 * y - 1.0)) / 4.0
                loss += c * (1.0 - root)
                lighter += fall if fall > 0.0 else 0.0
                heavier += -fall if fall < 0.0 else 0.0
                flatter += flat if flat > 0.0 else 0.0
                own += w
                own3 += third
                others[k] -= w
                others3[k] -= third
            potentials[0, i] += own
            potentials[1, i] += own3
            totals[LOSS] += loss
            totals[WEIGHT] += own
            totals[LIGHTER] += lighter
            totals[HEAVIER] += heavier
            totals[FLATTER] += flatter
    return totals


@loose_kernel
def _fill_weights(x: Floats, d: float, others: Floats | None, w: Floats, curvature: Floats) -> None:
    """Write FRank's weight W of each pair with odds ``x``, and the second derivative of its fidelity loss.

    ``others`` are the weights of the lower documents, ``d`` is everything else that weights a pair.
    """
    for k in range(len(x)):
        y = 1.0 / (1.0 + x[k])
        w[k] = d * get_doc_weight(others, k) * x[k] * y * np.sqrt(y)
        curvature[k] = w[k] * (3.0 * y - 1.0) / 4.0


@loose_kernel
def _add_splits(
    codes: Floats,
    first: Floats,
    second: Floats,
    w: Floats,
    curvature: Floats,
    lower: Ints,
    a: int,
    b: int,
    begin: int,
    end: int,
    width: int,
) -> None:
    """Add what some pairs contribute, at the bins of their documents, to the sums of split pairs.

    ``first`` gets W, ``second`` F''. The pairs are those of documents ``begin`` to ``end``, at some features.
    Indices are unsigned, for then the compiler knows that none is negative, and takes several features at once.
    """
    p, columns = 0, np.uint64(width)
    for row in range(begin, end):
        i = np.uint64(row - a)
        for other in range(lower[row], b):
            j, one, two = np.uint64(other - a), 2.0 * w[p], 2.0 * curvature[p]
            p += 1
            for f in range(columns):
                above = 1.0 if codes[j, f] > codes[i, f] else 0.0
                t = above * one
                u = above * two
                first[i, f] += t
                first[j, f] -= t
                second[i, f] += u
                second[j, f] -= u


@loose_kernel
def sum_split_pairs(
    graded: GradedDocuments, scores: Floats, codes: Ints, starts: Ints, features: Ints, out: Floats
) -> None:
    """Add the sums of pair weights W and curvatures F'' over the pairs that each threshold splits to ``out``.

    The columns of ``out`` are the slots of the features; summed up from the left they are the sums. A pair is split by
    the thresholds from the lower of its two bins up to the higher one: it adds w at one end and takes it away at the
    other. So the higher document gets w (2 [c_j > c_i] - 1) at its bin, and the lower one the opposite; a pair in one
    bin adds nothing in the end. The part that does not depend on the feature is summed once.
    """
    odds, space = _compute_odds(graded.indptr, scores), _count_pairs_held(graded)
    x, w, curvature = np.empty(space), np.empty(space), np.empty(space)
    shape, rest = (max_query_size(graded.indptr), _FEATURES), np.empty((2, space))
    bins, first, second = np.zeros(shape), np.zeros(shape), np.zeros(shape)
    for q in range(len(graded.weight)):
        a, b, d = graded.indptr[q], graded.indptr[q + 1], graded.weight[q]
        begin = a
        while begin < b and graded.lower[begin] < b and d > 0.0:
            end, n = _find_last_held(graded, begin, b, space), 0
            rest[:, : b - a] = 0.0
            for i in range(begin, end):
                size = b - graded.lower[i]
                _fill_odds(odds, q, i, graded.lower[i], b, x)
                mine = d * get_doc_weight(graded.doc_weight, i)
                theirs = slice_doc_weights(graded.doc_weight, graded.lower[i], b)
                _fill_weights(x[:size], mine, theirs, w[n : n + size], curvature[n : n + size])
                for k in range(size):
                    at = graded.lower[i] - a + k
                    rest[0, i - a] -= w[n + k]
                    rest[0, at] += w[n + k]
                    rest[1, i - a] -= curvature[n + k]
                    rest[1, at] += curvature[n + k]
                n += size
            to = 0
            for chunk in range(0, len(features), _FEATURES):
                some = features[chunk : chunk + _FEATURES]
                width = (len(some) + 7) // 8 * 8
                first[: b - a], second[: b - a] = 0.0, 0.0
                for f in range(len(some)):
                    for k in range(b - a):
                        bins[k, f] = codes[some[f], a + k]
                _add_splits(bins, first, second, w, curvature, graded.lower, a, b, begin, end, width)
                for f in range(len(some)):
                    for k in range(b - a):
                        slot = to + codes[some[f], a + k]
                        out[0, slot] += first[k, f] + rest[0, k]
                        out[1, slot] += second[k, f] + rest[1, k]
                    to += starts[some[f] + 1] - starts[some[f]]
            begin = end


@loose_kernel
def _sum_split_gains(
    x: Floats, root: Floats, others: Floats | None, above: Floats, side: float, factor: float
) -> float:
    """Return by how much a stump decreases the fidelity losses of one document's pairs that it splits.

    ``others`` are the weights of the lower documents.
    """
    total = 0.0
    for k in range(len(x)):
        split = 1.0 if above[k] != side else 0.0
        total += split * get_doc_weight(others, k) * (1.0 / np.sqrt(1.0 + x[k] * factor) - root[k])
    return total


@loose_kernel
def compute_fidelity_gains(
    graded: GradedDocuments, scores: Floats, codes: Ints, features: Ints, cuts: Ints, alphas: Floats, out: Floats
) -> None:
    """Add by how much each stump, added with its weight alpha, decreases the fidelity loss to ``out``."""
    odds, space = _compute_odds(graded.indptr, scores), _count_pairs_held(graded)
    x, root, above = np.empty(space), np.empty(space), np.empty(space)
    helped, harmed = np.exp(-alphas), np.exp(alphas)
    for q in range(len(graded.weight)):
        a, b, d = graded.indptr[q], graded.indptr[q + 1], graded.weight[q]
        begin = a
        while begin < b and graded.lower[begin] < b and d > 0.0:
            end, n = _find_last_held(graded, begin, b, space), 0
            for i in range(begin, end):
                size = b - graded.lower[i]
                _fill_odds(odds, q, i, graded.lower[i], b, x[n:])
                n += size
            for k in range(n):
                root[k] = 1.0 / np.sqrt(1.0 + x[k])
            for c in range(len(features)):
                row, gain, n = codes[features[c], a:b], 0.0, 0
                for k in range(b - a):
                    above[k] = 1.0 if row[k] > cuts[c] else 0.0
                for i in range(begin, end):
                    low, size, side = graded.lower[i] - a, b - graded.lower[i], above[i - a]
                    factor = helped[c] if side > 0.0 else harmed[c]
                    mine = get_doc_weight(graded.doc_weight, i)
                    theirs = slice_doc_weights(graded.doc_weight, graded.lower[i], b)
                    own_x, own_root, own_above = x[n : n + size], root[n : n + size], above[low : b - a]
                    gain += mine * _sum_split_gains(own_x, own_root, theirs, own_above, side, factor)
                    n += size
                out[c] += d * gain
            begin = end


@inner_kernel
def _compute_alpha(right: float, wrong: float, smoothing: float) -> float:
    """Return FRank's weight alpha of a stump (eq. 3), rounded to a grid, from the right and wrong pair weights."""
    return float(np.rint(0.5 * np.log((right + smoothing) / (wrong + smoothing)) / GRAIN) * GRAIN)


@inner_kernel
def _compute_crude_bound(right: float, wrong: float, alpha: float) -> float:
    """Return an upper bound on a stump's decrease of the loss, from the right and wrong pair weights W.

    F(o + a) - F(o) >= -W (exp(a / 2) - 1) for every a.
    """
    return float(right * (np.exp(alpha / 2.0) - 1.0) - wrong * (1.0 - np.exp(-alpha / 2.0)))


@kernel
def compute_stale_bounds(
    r: Floats, least: Floats, most: Floats, curvature: Floats, smoothing: float, out: Floats
) -> None:
    """Write upper bounds on the gains of stumps whose pair weights are known only within a range.

    They follow from W+ - W-, a range of W+ + W-, and a lower bound on F''.
    The crude bound falls as W+ + W- grows while their difference stays. The other is Taylor's: F''' is at least -W / 2
    and at most 0.175 W; W grows by a factor of exp(a / 2) at most where o rises by a, of exp(a) where it falls by a.
    """
    for k in range(len(r)):
        net = abs(r[k])
        low = max(least[k], net)
        right, wrong = (low + net) / 2.0, (low - net) / 2.0
        alpha = _compute_alpha(right, wrong, smoothing)
        out[k] = _compute_crude_bound(right, wrong, alpha)
        if np.isfinite(curvature[k]):
            high = max(most[k], low)
            right, wrong = (high + net) / 2.0, (high - net) / 2.0
            step = _compute_alpha(right, wrong, smoothing) if curvature[k] > 0.0 else alpha
            rest = (0.5 * right * np.exp(alpha / 2.0) + 0.175 * wrong * np.exp(alpha)) * alpha**3 / 6.0
            out[k] = min(out[k], net * alpha / 2.0 - curvature[k] * step**2 / 2.0 + rest)


@kernel
def compute_fresh_bounds(
    r: Floats, split: Floats, curvature: Floats, third: Floats, smoothing: float, out: Floats
) -> None:
    """Write the weight alpha and an upper bound on the gain of each stump whose sums over pairs are all known.

    They are the columns of ``out``.
    Taylor's formula with a remainder: the fourth derivative is at least -0.2434 W.
    """
    for k in range(len(r)):
        net, sign = abs(r[k]), 1.0 if r[k] >= 0.0 else -1.0
        total = max(split[k], net)
        right, wrong = (total + net) / 2.0, (total - net) / 2.0
        alpha = _compute_alpha(right, wrong, smoothing)
        series = net * alpha / 2.0 - curvature[k] * alpha**2 / 2.0 - sign * third[k] * alpha**3 / 6.0
        rest = 0.2434 * (right * np.exp(alpha / 2.0) + wrong * np.exp(alpha)) * alpha**4 / 24.0
        out[k, 0] = sign * alpha
        out[k, 1] = min(_compute_crude_bound(right, wrong, alpha), series + rest)
