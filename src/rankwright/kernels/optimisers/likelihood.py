"""The derivative of the Plackett-Luce likelihood of the label order along lines."""

from __future__ import annotations

import numpy as np

from rankwright.kernels.jit import Floats, Ints, kernel


@kernel
def compute_likelihood_slope(
    by_grade: Ints, grades: Floats, scores: Floats, slopes: Floats, weight: Floats, indptr: Ints, k: int, t: float
) -> float:
    """Return the derivative by t of the Plackett-Luce log likelihood of the grades, scores being lines in t.

    Only the first ``k`` places of the label order count.
    Documents of grade l are chosen among all of grade l or lower, so that the order of equal grades does not matter:

        sum over j of s_j - log sum over l_i <= l_j of exp(s_i),    s = scores + slopes t.

    Where the k-th place falls among documents of one grade, each of them counts in proportion. ``by_grade`` holds the
    rows of each query by ascending grade.
    """
    derivative = 0.0
    for q in range(len(indptr) - 1):
        if weight[q] == 0.0:
            continue
        first, last = indptr[q], indptr[q + 1]
        highest, total, moment = -np.inf, 0.0, 0.0  # of exp(s - highest) and its product with the slopes
        own, low = 0.0, first
        while low < last:
            grade, high, sum_slopes = grades[by_grade[low]], low, 0.0
            while high < last and grades[by_grade[high]] == grade:
                row = by_grade[high]
                s = scores[row] + slopes[row] * t
                if s > highest:
                    shrink = np.exp(highest - s)
                    total, moment, highest = total * shrink, moment * shrink, s
                e = np.exp(s - highest)
                total += e
                moment += e * slopes[row]
                sum_slopes += slopes[row]
                high += 1
            counted = min(high - low, max(k - (last - high), 0))
            if counted > 0:
                own += counted * (sum_slopes / (high - low) - moment / total)
            low = high
        derivative += weight[q] * own
    return derivative
