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
