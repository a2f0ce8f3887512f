"""Linear scores, the same bits for a row whatever rows it comes with."""

from __future__ import annotations

import numpy as np

from rankwright.kernels.jit import Floats, kernel


@kernel
def linear_scores(X: Floats, coef: Floats, intercept: float) -> Floats:
    """``X @ coef + intercept`` in float64 without a float64 copy of ``X``; four fixed partial sums a row."""
    n, d = X.shape
    out = np.empty(n)
    whole = d - d % 4
    for i in range(n):
        s0, s1, s2, s3 = 0.0, 0.0, 0.0, 0.0
        for j in range(0, whole, 4):
            s0 += X[i, j] * coef[j]
            s1 += X[i, j + 1] * coef[j + 1]
            s2 += X[i, j + 2] * coef[j + 2]
            s3 += X[i, j + 3] * coef[j + 3]
        for j in range(whole, d):
            s0 += X[i, j] * coef[j]
        out[i] = ((s0 + s1) + (s2 + s3)) + intercept
    return out


@kernel
def weighted_columns(weight: Floats, values: Floats) -> Floats:
    """``weight @ values``, summed in the order of the rows."""
    out = np.zeros(values.shape[1])
    for i in range(len(weight)):
        w = weight[i]
        if w != 0.0:
            for j in range(values.shape[1]):
                out[j] += w * values[i, j]
    return out


@kernel
def weighted_moments(X: Floats, mean: Floats, factor: Floats, weight: Floats, target: Floats) -> Floats:
    """The upper triangle of sum of c z z', where z = ((x - mean) factor, target, 1), in the order of the rows.

    Two rows at a time halve the traffic of the sums.
    """
    n, d = X.shape
    out = np.zeros((d + 2, d + 2))
    z = np.zeros((2, d + 2))
    for start in range(0, n, 2):
        for half in range(2):
            i = start + half
            c = weight[i] if i < n else 0.0
            row = min(i, n - 1)
            for j in range(d):
                z[half, j] = (X[row, j] - mean[j]) * factor[j]
            z[half, d], z[half, d + 1] = target[row], 1.0
            if half == 0:
                first = c
            else:
                second = c
        for a in range(d + 2):
            left, right = first * z[0, a], second * z[1, a]
            for b in range(a, d + 2):
                out[a, b] += left * z[0, b] + right * z[1, b]
    return out
