"""Linear scores, the same bits for a row whatever rows it comes with."""

from __future__ import annotations

import numpy as np

from rankwright.kernels.jit import Floats, Ints, kernel


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


_ROWS = 4


@kernel
def weighted_moments(X: Floats, mean: Floats, factor: Floats, weight: Floats, target: Floats) -> Floats:
    """The upper triangle of sum of c z z', where z = ((x - mean) factor, target, 1), in the order of the rows.

    Four rows at a time, so that the sums are read and written a quarter as often; the slices are what lets the compiler
    see that it may add several columns at once.
    """
    n, d = X.shape
    out = np.zeros((d + 2, d + 2))
    z, c = np.zeros((_ROWS, d + 2)), np.zeros(_ROWS)
    for start in range(0, n, _ROWS):
        for r in range(_ROWS):
            i = min(start + r, n - 1)
            c[r] = weight[i] if start + r < n else 0.0
            for j in range(d):
                z[r, j] = (X[i, j] - mean[j]) * factor[j]
            z[r, d], z[r, d + 1] = target[i], 1.0
        for a in range(d + 2):
            c0, c1, c2, c3 = c[0] * z[0, a], c[1] * z[1, a], c[2] * z[2, a], c[3] * z[3, a]
            sums, z0, z1, z2, z3 = out[a, a:], z[0, a:], z[1, a:], z[2, a:], z[3, a:]
            for b in range(len(sums)):
                sums[b] += (c0 * z0[b] + c1 * z1[b]) + (c2 * z2[b] + c3 * z3[b])
    return out


@kernel
def column_moments(X: Floats, center: Floats) -> tuple[Floats, Floats, Floats, Floats, Floats]:
    """By column, of the values that are not missing: count, sum, sum of squares about ``center``, lowest, highest."""
    d = X.shape[1]
    count, total, squares = np.zeros(d), np.zeros(d), np.zeros(d)
    low, high = np.full(d, np.inf), np.full(d, -np.inf)
    for i in range(X.shape[0]):
        row = X[i]
        for j in range(d):
            x = np.float64(row[j])
            if x == x:
                count[j] += 1.0
                total[j] += x
                squares[j] += (x - center[j]) * (x - center[j])
                low[j] = min(low[j], x)
                high[j] = max(high[j], x)
    return count, total, squares, low, high


@kernel
def query_spread(values: Floats, indptr: Ints) -> Floats:
    """The sum over the queries of the logarithm of the range of their values, and how many queries have one.

    The geometric mean of the ranges tells the scale of values whatever a few outliers are.
    """
    out = np.zeros(2)
    for q in range(len(indptr) - 1):
        own = values[indptr[q] : indptr[q + 1]]
        spread = own.max() - own.min()
        if spread > 0.0:
            out[0] += np.log(spread)
            out[1] += 1.0
    return out


@kernel
def moved_scores(scores: Floats, X: Floats, column: int, t: float, indptr: Ints) -> tuple[Floats, Floats]:
    """The scores plus t times a column, and their spread."""
    out = np.empty(len(scores))
    for i in range(len(scores)):
        out[i] = scores[i] + t * X[i, column]
    return out, query_spread(out, indptr)


@kernel
def query_spreads(X: Floats, indptr: Ints) -> Floats:
    """``query_spread`` of every column: a row of sums, a row of counts."""
    d = X.shape[1]
    out, low, high = np.zeros((2, d)), np.empty(d), np.empty(d)
    for q in range(len(indptr) - 1):
        low[:], high[:] = X[indptr[q]], X[indptr[q]]
        for i in range(indptr[q], indptr[q + 1]):
            row = X[i]
            for j in range(d):
                low[j], high[j] = min(low[j], row[j]), max(high[j], row[j])
        for j in range(d):
            if high[j] > low[j]:
                out[0, j] += np.log(high[j] - low[j])
                out[1, j] += 1.0
    return out


@kernel
def first_missing(X: Floats) -> int:
    """The place of the first NaN, counted along the rows; -1 if there is none."""
    n, d = X.shape
    for i in range(n):
        row, missing = X[i], 0
        for j in range(d):
            missing += row[j] != row[j]
        if missing > 0:
            for j in range(d):
                if row[j] != row[j]:
                    return int(i * d + j)
    return -1


@kernel
def first_infinite(X: Floats) -> int:
    """The place of the first infinite value, counted along the rows; -1 if there is none."""
    n, d = X.shape
    for i in range(n):
        row, infinite = X[i], 0
        for j in range(d):
            infinite += abs(row[j]) == np.inf
        if infinite > 0:
            for j in range(d):
                if abs(row[j]) == np.inf:
                    return int(i * d + j)
    return -1


@kernel
def query_columns(weight: Floats, X: Floats, indptr: Ints) -> Floats:
    """Of every query the sum of its rows times their weights, in the order of the rows."""
    out = np.zeros((len(indptr) - 1, X.shape[1]))
    for q in range(len(out)):
        sums = out[q]
        for i in range(indptr[q], indptr[q + 1]):
            w, row = weight[i], X[i]
            for j in range(len(sums)):
                sums[j] += w * row[j]
    return out
