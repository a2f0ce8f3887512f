"""Expected measures under Plackett-Luce, with their derivatives by score.

A ranking is drawn document by document: with probability exp(s_i) / Z_t, Z_t the sum over the documents that are left,
document i comes to rank t. A measure is the sum of ``kernels/measures.py``: g_t d_t lead_t, lead_{t+1} = lead_t + g_t
(u + v lead_t). What follows rank t is an affine function of the lead there,

    A_t lead_{t+1} + B_t,    A_{t-1} = g_t d_t + A_t (1 + v g_t),    B_{t-1} = B_t + u g_t A_t,

from the last rank that counts up.
"""

from __future__ import annotations

import numpy as np

from rankwright.kernels.jit import Floats, Ints, kernel, loose_kernel
from rankwright.kernels.objectives.exponentials import exp
from rankwright.kernels.objectives.list_losses import softmax
from rankwright.kernels.objectives.smooth_measures import Gained

_FEW = 256  # ranks: so few are kept in order one by one, more are sorted


@kernel
def expected_top_two(data: Gained, scores: Floats, gradient: Floats) -> float:
    """The sum over queries of worth times the expected measure of the first two ranks, exactly, in O(n) a query.

    With p the softmax, G its mean gain, and H_i the mean gain under the softmax without i,

        E = d_1 G + d_2 sum over i of p_i (1 + (u + v) g_i) H_i.

    At most one document has p_i > 1/2: the softmax without that one is computed anew, all others are by division.
    """
    indptr, gain, discount, worth, u, v = data
    total = 0.0
    for q in range(len(worth)):
        a, b = indptr[q], indptr[q + 1]
        out, g = gradient[a:b], gain[a:b]
        n = b - a
        if worth[q] == 0.0:
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
            _without(scores[a:b], top, rest)
            value += discount[1] * _second(p, rest, top, g, u + v, discount[1], out)
        total += worth[q] * value
        for i in range(n):
            out[i] *= worth[q]
    return total


@loose_kernel
def _without(scores: Floats, top: int, out: Floats) -> None:
    """The softmax without one document."""
    highest, total = -np.inf, 0.0
    for i in range(len(scores)):
        if i != top:
            highest = max(highest, scores[i])
    for i in range(len(scores)):
        out[i] = 0.0 if i == top else exp(scores[i] - highest)
        total += out[i]
    for i in range(len(scores)):
        out[i] /= total


@kernel
def _second(p: Floats, rest: Floats, top: int, g: Floats, more: float, d: float, out: Floats) -> float:
    """The expected gain at the second rank, times what the first makes of it; adds d times its derivatives."""
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


@kernel
def _draw(keys: Floats, depth: int, chosen: Ints) -> None:
    """The places of the ``depth`` highest keys, descending; of equal ones the first comes first."""
    if depth > _FEW:
        chosen[:] = np.argsort(-keys, kind="mergesort")[:depth]
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
def _scaled(scores: Floats, highest: float, gain: Floats, out: Floats) -> tuple[float, float]:
    """exp(s_i - highest); their sum, and that of the gains by them."""
    total, gains = 0.0, 0.0
    for i in range(len(scores)):
        out[i] = exp(scores[i] - highest)
        total += out[i]
        gains += out[i] * gain[i]
    return total, gains


@loose_kernel
def _highest(scores: Floats) -> float:
    highest = -np.inf
    for i in range(len(scores)):
        highest = max(highest, scores[i])
    return highest


@loose_kernel
def _spread(weight: Floats, gain: Floats, by_gain: float, by: float, out: Floats) -> None:
    for i in range(len(weight)):
        out[i] += weight[i] * (by_gain * gain[i] - by)


@kernel
def _follow(
    s: Floats, g: Floats, chosen: Ints, left: Floats, gain_left: Floats, weight: Floats, ranked: Floats
) -> float:
    """Along a drawn ranking: log Z_t and the mean gain of what is left at each rank, from the last rank up.

    Returns the highest score of what is left after the last rank, with ``weight`` the exp of the scores less it, and 0
    for the documents of the ranking. Sums only ever grow, so that nothing cancels, whatever the scores.
    """
    depth = len(chosen)
    for t in range(depth):
        ranked[t], s[chosen[t]] = s[chosen[t]], -np.inf
    highest = _highest(s)
    level, mean = -np.inf, 0.0
    if highest > -np.inf:
        total, gains = _scaled(s, highest, g, weight)
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


@kernel
def _futures(g: Floats, discount: Floats, u: float, v: float, A: Floats, B: Floats) -> None:
    """A_t and B_t of the gains of a ranking."""
    a, b = 0.0, 0.0
    for t in range(len(g) - 1, -1, -1):
        A[t], B[t] = a, b
        b += u * g[t] * a
        a = g[t] * discount[t] + a * (1.0 + v * g[t])


@kernel
def expected_sampled(data: Gained, scores: Floats, noise: Floats, gradient: Floats) -> float:
    """Unbiased estimates of the same for any number of ranks, from sampled rankings; O(n + k log n) each.

    A sample ranks by s_i + noise, which is Gumbel noise, a row of ``noise`` for each. Of the derivative of

        E = E[sum over t of g_t d_t lead_t]

    the part by what comes to rank t at once is summed over all documents that are left, not sampled; the part by what
    follows is sampled, less what follows in the mean of the other samples, as a function of the lead, whose mean over
    all documents that are left is added again. With T_t what remains of it and G_t the mean gain of what is left,

        dE / ds_i = T_rank(i) + sum over t <= rank(i) of P_t(i) (c_t (g_i - G_t) - T_t),
        c_t = d_t lead_t + (u + v lead_t) (mean A_t of the others).

    Sums over t are kept in units of P_t, where they only ever shrink: scores may be as far apart as they like.
    """
    indptr, gain, discount, worth, u, v = data
    n_samples, total = len(noise), 0.0
    gradient[:] = 0.0
    for q in range(len(worth)):
        if worth[q] == 0.0:
            continue
        a, n = indptr[q], indptr[q + 1] - indptr[q]
        depth = min(n, len(discount))
        # less the highest: noise and logarithms would be lost beside large numbers
        s, g, out = scores[a : a + n] - _highest(scores[a : a + n]), gain[a : a + n], gradient[a : a + n]
        chosen = np.empty((n_samples, depth), np.int64)
        A, B, gains = np.empty((n_samples, depth)), np.empty((n_samples, depth)), np.empty((n_samples, depth))
        sum_A, sum_B = np.zeros(depth), np.zeros(depth)
        for m in range(n_samples):
            _draw(s + noise[m, a : a + n], depth, chosen[m])
            for t in range(depth):
                gains[m, t] = g[chosen[m, t]]
            _futures(gains[m], discount, u, v, A[m], B[m])
            sum_A += A[m]
            sum_B += B[m]
        left, gain_left, ranked, weight = np.empty(depth), np.empty(depth), np.empty(depth), np.empty(n)
        value, per = 0.0, worth[q] / n_samples
        for m in range(n_samples):
            highest = _follow(s, g, chosen[m], left, gain_left, weight, ranked)
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
                _spread(weight, g, unit * by_gain, unit * by, out)
        total += per * value
    return total
