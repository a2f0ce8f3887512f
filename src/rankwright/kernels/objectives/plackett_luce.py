"""Expected measures under Plackett-Luce, with their derivatives by score.

A ranking is drawn document by document: document i takes rank t with probability exp(s_i) / Z_t, Z_t the sum over the
documents that are left. A measure is the sum of ``measure_values.py``: g_t d_t lead_t, lead_{t+1} = lead_t + g_t (u + v
lead_t). The sum over the ranks after t is an affine function of the lead there,

    A_t lead_{t+1} + B_t,    A_{t-1} = g_t d_t + A_t (1 + v g_t),    B_{t-1} = B_t + u g_t A_t,

from the last rank that counts upwards.
"""

from __future__ import annotations

import numpy as np

from rankwright.kernels.jit import Floats, Ints, inner_kernel, kernel, loose_kernel
from rankwright.kernels.measures.measure_values import MeasureArrays
from rankwright.kernels.measures.sorting import merge_sort
from rankwright.kernels.objectives.exponentials import exp
from rankwright.kernels.objectives.list_losses import softmax

_FEW = 256  # ranks: so few are inserted one by one, more are sorted


@kernel
def compute_expected_top_two(arrays: MeasureArrays, scores: Floats, gradient: Floats) -> float:
    """Return the exact expected measure of the first two ranks under Plackett-Luce, in O(n) a query.

    It is summed over the queries, each times its scale.
    With p the softmax, G its mean gain, and H_i the mean gain under the softmax without i,

        E = d_1 G + d_2 sum over i of p_i (1 + (u + v) g_i) H_i.

    At most one document has p_i > 1/2: the softmax without that one is computed anew, the others by division.
    """
    indptr, gain, discount, scale, _, u, v = arrays
    total = 0.0
    for q in range(len(scale)):
        a, b = indptr[q], indptr[q + 1]
        out, g = gradient[a:b], gain[a:b]
        n = b - a
        if scale[q] == 0.0:
            out[:] = 0.0
            continue
        p, rest, top = np.empty(n), np.empty(n), 0
        softmax(scores[a:b], p)
        mean = 0.0
        for i in range(n):
            mean += p[i] * g[i]
            if p[i] > p[top]:
                top = i
        value = discount[0] * mean
        for i in range(n):
            out[i] = discount[0] * p[i] * (g[i] - mean)
        if n > 1 and len(discount) > 1:
            _compute_softmax_without(scores[a:b], top, rest)
            value += discount[1] * _add_second_rank(p, rest, top, g, u + v, discount[1], out)
        total += scale[q] * value
        for i in range(n):
            out[i] *= scale[q]
    return total


@loose_kernel
def _compute_softmax_without(scores: Floats, top: int, out: Floats) -> None:
    """Write the softmax of the scores of all documents but ``top`` to ``out``."""
    highest, total = -np.inf, 0.0
    for i in range(len(scores)):
        if i != top:
            highest = max(highest, scores[i])
    for i in range(len(scores)):
        out[i] = 0.0 if i == top else exp(scores[i] - highest)
        total += out[i]
    for i in range(len(scores)):
        out[i] /= total


@inner_kernel
def _add_second_rank(p: Floats, rest: Floats, top: int, g: Floats, more: float, d: float, out: Floats) -> float:
    """Return the expected gain at rank 2 times its lead; add d times its derivatives by score to ``out``."""
    n, mean, rest_mean = len(p), 0.0, 0.0
    for i in range(n):
        mean += p[i] * g[i]
        rest_mean += rest[i] * g[i]
    value, weights, weighted = p[top] * (1.0 + more * g[top]) * rest_mean, 0.0, 0.0
    after = np.empty(n)  # H
    after[top] = rest_mean
    for i in range(n):
        if i != top:
            after[i] = (mean - p[i] * g[i]) / (1.0 - p[i])
            own = p[i] * (1.0 + more * g[i])
            value += own * after[i]
            weights += own / (1.0 - p[i])
            weighted += own / (1.0 - p[i]) * after[i]
    first = p[top] * (1.0 + more * g[top])
    for i in range(n):
        own = p[i] * (1.0 + more * g[i])
        slope = own * after[i] - p[i] * value
        others, others_gain = weights, weighted  # i comes second, after any other but the top
        if i != top:
            others -= own / (1.0 - p[i])
            others_gain -= own / (1.0 - p[i]) * after[i]
        slope += p[i] * (g[i] * others - others_gain) + first * rest[i] * (g[i] - rest_mean)
        out[i] += d * slope
    return float(value)


@inner_kernel
def _select_highest(keys: Floats, depth: int, chosen: Ints) -> None:
    """Write the indices of the ``depth`` highest keys in descending order; of equal keys the earlier comes first."""
    if depth > _FEW:
        n = len(keys)
        sorted_keys, order = np.empty(n), np.empty(n, np.int64)
        for i in range(n):
            sorted_keys[i], order[i] = keys[i], i
        merge_sort(sorted_keys, order, np.empty(n), np.empty(n, np.int64), n)
        for i in range(depth):
            chosen[i] = order[i]
        return
    held = 0
    for i in range(len(keys)):
        if held < depth:
            at = held
            held += 1
        elif keys[i] > keys[chosen[depth - 1]]:
            at = depth - 1
        else:
            continue
        while at > 0 and keys[chosen[at - 1]] < keys[i]:
            chosen[at] = chosen[at - 1]
            at -= 1
        chosen[at] = i


@loose_kernel
def _exponentiate(scores: Floats, highest: float, gain: Floats, out: Floats) -> tuple[float, float]:
    """Write exp(score - ``highest``) of all documents; return its sum, and the sum of gain times it."""
    total, gains = 0.0, 0.0
    for i in range(len(scores)):
        out[i] = exp(scores[i] - highest)
        total += out[i]
        gains += out[i] * gain[i]
    return total, gains


@loose_kernel
def _find_highest(scores: Floats) -> float:
    """Return the highest score, or minus infinity if there are no scores."""
    highest = -np.inf
    for i in range(len(scores)):
        highest = max(highest, scores[i])
    return highest


@loose_kernel
def _add_unranked_gradient(weight: Floats, gain: Floats, by_gain: float, by: float, out: Floats) -> None:
    """Add to ``out`` the derivatives by the scores of documents that a drawn ranking leaves out."""
    for i in range(len(weight)):
        out[i] += weight[i] * (by_gain * gain[i] - by)


@inner_kernel
def _compute_remainders(
    s: Floats, g: Floats, chosen: Ints, left: Floats, gain_left: Floats, weight: Floats, ranked: Floats
) -> float:
    """Write the log sum of exp(score) and the mean gain of the documents left at each rank of a drawn ranking.

    Returns the highest score left after the last rank; ``weight`` becomes the exp of the scores less it, and 0 for the
    documents of the ranking. Sums only ever grow, so that nothing cancels, whatever the scores.
    """
    depth = len(chosen)
    for t in range(depth):
        ranked[t], s[chosen[t]] = s[chosen[t]], -np.inf
    highest = _find_highest(s)
    level, mean = -np.inf, 0.0
    if highest > -np.inf:
        total, gains = _exponentiate(s, highest, g, weight)
        for t in range(depth):
            weight[chosen[t]] = 0.0  # it was 3e-308
        level, mean = highest + np.log(total), gains / total
    else:
        weight[:] = 0.0
    for t in range(depth - 1, -1, -1):
        up = max(level, ranked[t])
        both = up + np.log(np.exp(level - up) + np.exp(ranked[t] - up))
        mean += np.exp(ranked[t] - both) * (g[chosen[t]] - mean)
        level = both
        left[t], gain_left[t] = level, mean
    for t in range(depth):
        s[chosen[t]] = ranked[t]
    return highest


@inner_kernel
def _compute_affine_rest(g: Floats, discount: Floats, u: float, v: float, A: Floats, B: Floats) -> None:
    """Write for each rank the A and B with which all later ranks add A lead + B to the measure."""
    a, b = 0.0, 0.0
    for t in range(len(g) - 1, -1, -1):
        A[t], B[t] = a, b
        b += u * g[t] * a
        a = g[t] * discount[t] + a * (1.0 + v * g[t])


@kernel
def estimate_expected(arrays: MeasureArrays, scores: Floats, noise: Floats, gradient: Floats) -> float:
    """Return an unbiased estimate of the expected measure under Plackett-Luce, from sampled rankings.

    It is summed over the queries, each times its scale; a sample costs O(n + k log n).
    A sample ranks by s_i + Gumbel noise, a row of ``noise`` for each. The derivative of

        E = E[sum over t of g_t d_t lead_t]

    has two parts. The effect of the choice at rank t on its own gain is summed over all documents left, not sampled.
    The effect on later ranks is sampled, less the mean of the other samples as a control variate: a function of the
    lead, whose mean over all documents left is added again. With T_t the remainder and G_t the mean gain left,

        dE / ds_i = T_rank(i) + sum over t <= rank(i) of P_t(i) (c_t (g_i - G_t) - T_t),
        c_t = d_t lead_t + (u + v lead_t) (mean A_t of the others).

    Sums over t are kept in units of P_t, where they only ever shrink: scores may be as far apart as they like.
    """
    indptr, gain, discount, scale, _, u, v = arrays
    n_samples, total = len(noise), 0.0
    gradient[:] = 0.0
    for q in range(len(scale)):
        if scale[q] == 0.0:
            continue
        a, n = indptr[q], indptr[q + 1] - indptr[q]
        depth = min(n, len(discount))
        # less the highest: noise and logarithms would be lost beside large numbers
        highest, s, keys = _find_highest(scores[a : a + n]), np.empty(n), np.empty(n)
        for i in range(n):
            s[i] = scores[a + i] - highest
        g, out = gain[a : a + n], gradient[a : a + n]
        chosen = np.empty((n_samples, depth), np.int64)
        A, B, gains = np.empty((n_samples, depth)), np.empty((n_samples, depth)), np.empty((n_samples, depth))
        sum_A, sum_B = np.zeros(depth), np.zeros(depth)
        for m in range(n_samples):
            for i in range(n):
                keys[i] = s[i] + noise[m, a + i]
            _select_highest(keys, depth, chosen[m])
            for t in range(depth):
                gains[m, t] = g[chosen[m, t]]
            _compute_affine_rest(gains[m], discount, u, v, A[m], B[m])
            for t in range(depth):
                sum_A[t] += A[m, t]
                sum_B[t] += B[m, t]
        left, gain_left, ranked, weight = np.empty(depth), np.empty(depth), np.empty(depth), np.empty(n)
        value, per = 0.0, scale[q] / n_samples
        for m in range(n_samples):
            highest = _compute_remainders(s, g, chosen[m], left, gain_left, weight, ranked)
            lead, by_gain, by = 1.0, 0.0, 0.0
            for t in range(depth):
                own = gains[m, t]
                others_A = (sum_A[t] - A[m, t]) / (n_samples - 1) if n_samples > 1 else 0.0
                others_B = (sum_B[t] - B[m, t]) / (n_samples - 1) if n_samples > 1 else 0.0
                value += discount[t] * lead * gain_left[t]
                c = discount[t] * lead + (u + v * lead) * others_A
                lead += own * (u + v * lead)
                T = lead * (A[m, t] - others_A) + (B[m, t] - others_B)
                shrink = np.exp(left[t] - left[t - 1]) if t > 0 else 0.0
                by_gain = by_gain * shrink + c
                by = by * shrink + c * gain_left[t] + T
                out[chosen[m, t]] += per * (T + np.exp(ranked[t] - left[t]) * (by_gain * own - by))
            if highest > -np.inf:
                unit = per * np.exp(highest - left[depth - 1])
                _add_unranked_gradient(weight, g, unit * by_gain, unit * by, out)
        total += per * value
    return total
