"""The logistic loss of pairs, each weighted by the change of a measure when its two documents are swapped."""

from __future__ import annotations

import numpy as np

from rankwright.kernels.jit import Floats, Ints, inner_kernel, kernel, loose_kernel
from rankwright.kernels.measures.measure_values import MeasureArrays, compute_leads
from rankwright.kernels.objectives.exponentials import exp, log1p


@inner_kernel
def _fill_changes(g: Floats, d: Floats, lead: float, i: int, u: float, v: float, out: Floats) -> None:
    """Write the absolute changes of one query's measure, before scale, if rank i swapped with each rank below."""
    own, here = g[i], d[i]
    if u == 0.0 and v == 0.0:
        for j in range(len(out)):
            out[j] = abs((g[i + 1 + j] - own) * (here - d[i + 1 + j]))
        return
    a, b, m = 1.0, 0.0, 0.0
    for j in range(len(out)):
        gain, below = g[i + 1 + j], d[i + 1 + j]
        out[j] = abs((gain - own) * (lead * (here - a * below) + m * (u + v * lead) - b * below))
        m += gain * below * a
        a, b = a * (1.0 + v * gain), b * (1.0 + v * gain) + u * gain


@loose_kernel
def _sum_weighted_logistic(
    own: float, gain: float, s: Floats, g: Floats, change: Floats, slopes: Floats, curves: Floats
) -> tuple[float, float, float]:
    """Return a document's weighted logistic loss and derivatives by its score; add those by other scores."""
    loss, slope, curve = 0.0, 0.0, 0.0
    for j in range(len(s)):
        sign = 1.0 if gain > g[j] else -1.0  # of equal gains nothing changes
        o = sign * (own - s[j])
        small = exp(-abs(o))
        wrong = (small if o >= 0.0 else 1.0) / (1.0 + small)
        loss += change[j] * (max(-o, 0.0) + log1p(small))
        x, c = -sign * change[j] * wrong, change[j] * (wrong * (1.0 - wrong))
        slopes[j] -= x
        curves[j] += c
        slope += x
        curve += c
    return loss, slope, curve


@kernel
def sum_lambdas(arrays: MeasureArrays, order: Ints, scores: Floats, gradient: Floats, curvature: Floats) -> float:
    """Return LambdaRank's loss: the sum of the pairs' logistic losses times their swaps' change of the measure.

    It is the sum of |change| log(1 + exp(-(s_i - s_j))) over pairs with gains g_i > g_j.
    The changes are those of the ranking ``order``, whatever the scores. Only pairs with a document within the cut-off
    have one: O(k n) a query.
    """
    indptr, gain, discount, scale, _, u, v = arrays
    loss = 0.0
    for q in range(len(scale)):
        a, b = indptr[q], indptr[q + 1]
        n = b - a
        if scale[q] == 0.0:
            gradient[a:b], curvature[a:b] = 0.0, 0.0
            continue
        s, g, d, change = np.empty(n), np.empty(n), np.zeros(n), np.empty(n)
        slopes, curves = np.zeros(n), np.zeros(n)
        for r in range(n):
            s[r], g[r] = scores[order[a + r]], gain[order[a + r]]
        depth = min(n, len(discount))
        for r in range(depth):
            d[r] = discount[r]
        lead, total = compute_leads(g, u, v), 0.0
        for i in range(min(depth, n - 1)):
            _fill_changes(g, d, lead[i], i, u, v, change[: n - i - 1])
            own, slope, curve = _sum_weighted_logistic(
                s[i], g[i], s[i + 1 :], g[i + 1 :], change[: n - i - 1], slopes[i + 1 :], curves[i + 1 :]
            )
            total += own
            slopes[i] += slope
            curves[i] += curve
        loss += scale[q] * total
        for r in range(n):
            gradient[order[a + r]], curvature[order[a + r]] = scale[q] * slopes[r], scale[q] * curves[r]
    return loss
