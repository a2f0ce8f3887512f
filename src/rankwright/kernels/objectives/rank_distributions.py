"""Expected measures of documents whose scores have Gaussian noise, with their derivatives by score.

Document i comes before document j with the probability Phi((s_i - s_j) / (sqrt(2) sigma)). If these comparisons are
taken for independent trials with probabilities a_1, a_2, ..., the number r of documents before j has a distribution p
that is built trial by trial, and j adds g_j times the sum of D(r) p(r) to the measure:

    p_t(r) = (1 - a_t) p_{t-1}(r) + a_t p_{t-1}(r - 1),    p_0(0) = 1.

The derivative of the sum by a_t is minus the sum over r of p_{t-1}(r) c_t(r). Here c_t(r) is what one more document
before j costs where r come before it after t of the m trials, from the last trial back:

    c_{t-1}(r) = (1 - a_t) c_t(r) + a_t c_t(r + 1),    c_m(r) = D(r) - D(r + 1).

No term is negative where discounts fall, so that nothing cancels. Ranks that do not count are left out.
"""

from __future__ import annotations

import math

import numpy as np

from rankwright.kernels.jit import Floats, Ints, inner_kernel, kernel, loose_kernel
from rankwright.kernels.measures.measure_values import MeasureArrays
from rankwright.kernels.measures.sorting import max_query_size

_REACH = 6.0  # of (s_i - s_j) / (2 sigma): beyond it the probability of the other order is below 2e-17
_NEGLIGIBLE = 40.0  # minus the logarithm of a probability that is negligible, 4e-18
_LANES = 16  # ranks that vector code computes at once
_TABLE = 1 << 15  # numbers: the distributions of so many trials are kept at once, or those of sqrt(n) trials
_PER_ROOT_PI = 1.0 / math.sqrt(math.pi)


@inner_kernel
def _compare_noisily(s: Floats, j: int, unit: float, above: Floats, slope: Floats, place: Ints) -> tuple[int, int]:
    """Write the probability that each document comes before document ``j``, its slope by score, and the document.

    Only uncertain comparisons are written. Returns how many there are, and how many documents surely come before.
    """
    m, n_sure = 0, 0
    for i in range(len(s)):
        x = (s[i] - s[j]) * unit
        if x > _REACH:
            n_sure += 1
        elif x >= -_REACH and i != j:
            above[m] = 0.5 * math.erfc(-x)
            slope[m] = unit * _PER_ROOT_PI * math.exp(-x * x)
            place[m] = i
            m += 1
    return m, n_sure


@inner_kernel
def _is_out_of_reach(above: Floats, depth: int) -> bool:
    """Return whether a document surely has ``depth`` others before it, also without any one of them.

    By Chernoff's bound: P(r <= mean - x) is at most exp(-x^2 / (2 mean)).
    """
    mean = -1.0
    for t in range(len(above)):
        mean += above[t]
    return mean > depth and (mean - depth) ** 2 > 2.0 * _NEGLIGIBLE * mean


@loose_kernel
def _add_trial(p: Floats, a: float, out: Floats) -> None:
    """Write a rank distribution after one more trial; that of r is at r + 1, after a 0."""
    b = 1.0 - a
    for r in range(1, len(p)):
        out[r] = b * p[r] + a * p[r - 1]


@loose_kernel
def _remove_trial(p: Floats, a: float, c: Floats) -> float:
    """Return the sum of p times c, and make c that of one trial before."""
    b, total = 1.0 - a, 0.0
    for r in range(len(p)):
        total += p[r] * c[r]
        c[r] = b * c[r] + a * c[r + 1]
    return total


@inner_kernel
def _round_up(n: int, width: int) -> int:
    """Return ``n`` rounded up to whole vectors, at most ``width``."""
    return min((n + _LANES - 1) // _LANES * _LANES, width)


@inner_kernel
def _fill_distributions(above: Floats, first: int, last: int, width: int, table: Floats) -> None:
    """Write the distributions after the trials from ``first`` to ``last`` to rows 1, 2, ...; row 0 is given.

    After t trials at most t documents come before: so many ranks are computed, rounded up.
    """
    held = _round_up(first + 1, width)
    for t in range(first, last):
        wide = _round_up(t + 2, width)
        p, after = table[t - first], table[t - first + 1]
        for r in range(held + 1, wide + 1):
            p[r] = 0.0
        after[0], held = 0.0, wide
        _add_trial(p[: wide + 1], above[t], after)


@inner_kernel
def expect_discount(above: Floats, discount: Floats, table: Floats, starts: Floats, c: Floats, cost: Floats) -> float:
    """Return the expected discount of a document, and write minus its derivative by the probability of each trial.

    ``table``, ``starts`` and ``c`` are scratch. The table has the distributions of one block of trials at a time, and
    ``starts`` those before each block, so that the memory is O(k sqrt(n)) for long lists.
    """
    m, size, value = len(above), len(table) - 1, 0.0
    width = _round_up(len(discount), table.shape[1] - 1)
    n_blocks = max(1, (m + size - 1) // size)
    table[0, :] = 0.0
    table[0, 1] = 1.0
    for block in range(n_blocks - 1):
        for r in range(width + 1):
            starts[block, r] = table[0, r]
        _fill_distributions(above, block * size, (block + 1) * size, width, table)
        for r in range(width + 1):
            table[0, r] = table[size, r]
    c[:] = 0.0
    for r in range(len(discount)):
        c[r] = discount[r] - (discount[r + 1] if r + 1 < len(discount) else 0.0)
    for block in range(n_blocks - 1, -1, -1):
        first, last = block * size, min((block + 1) * size, m)
        if block < n_blocks - 1:
            for r in range(width + 1):
                table[0, r] = starts[block, r]
        _fill_distributions(above, first, last, width, table)
        if last == m:
            for r in range(min(m + 1, len(discount))):
                value += discount[r] * table[m - first, r + 1]
        for t in range(last - 1, first - 1, -1):
            p = table[t - first, 1 : _round_up(t + 1, width) + 1]
            cost[t] = _remove_trial(p, above[t], c)
    return value


@kernel
def compute_noisy_ranks(arrays: MeasureArrays, scores: Floats, sigma: float, gradient: Floats) -> float:
    """Return the expected sum of discounted gains under Gaussian noise, summed over queries, and write its gradient.

    Each query counts with its scale; O(n k) for each document with a gain.
    """
    indptr, gain, discount, scale, _, _, _ = arrays
    n, unit, total = max_query_size(indptr), 0.5 / sigma, 0.0
    width = _round_up(min(n, len(discount)), n + _LANES)
    size = min(n, max(math.ceil(math.sqrt(n)), _TABLE // width))
    table, starts, c = np.empty((size + 1, width + 1)), np.empty((n // size + 1, width + 1)), np.empty(width + 1)
    above, slope, cost, place = np.empty(n), np.empty(n), np.empty(n), np.empty(n, np.int64)
    gradient[:] = 0.0
    for q in range(len(scale)):
        if scale[q] == 0.0:
            continue
        rows = slice(indptr[q], indptr[q + 1])
        s, g, out = scores[rows], gain[rows], gradient[rows]
        depth = min(len(s), len(discount))
        for j in range(len(s)):
            if g[j] == 0.0:
                continue
            m, n_sure = _compare_noisily(s, j, unit, above, slope, place)
            if n_sure >= depth or _is_out_of_reach(above[:m], depth - n_sure):
                continue
            worth = scale[q] * g[j]
            total += worth * expect_discount(above[:m], discount[n_sure:depth], table, starts, c, cost)
            own = 0.0
            for t in range(m):
                change = worth * cost[t] * slope[t]
                out[place[t]] -= change
                own += change
            out[j] += own
    return total
