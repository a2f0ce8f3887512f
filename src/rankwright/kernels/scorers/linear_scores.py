"""Linear scores and sums over rows; a row's score has the same bits whatever rows it comes with."""

from __future__ import annotations

import numpy as np

from rankwright.kernels.jit import Floats, Ints, inner_kernel, kernel


@kernel
def compute_linear_scores(X: Floats, coef: Floats, intercept: float) -> Floats:
    """Return linear scores ``X @ coef + intercept`` in float64, without a float64 copy of ``X``.

    Each row is summed in four fixed partial sums.
    """
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
def sum_weighted_columns(weight: Floats, values: Floats) -> Floats:
    """Return the weighted sum of the rows, ``weight @ values``, added up in the order of the rows."""
    out = np.zeros(values.shape[1])
    for i in range(len(weight)):
        w = weight[i]
        if w != 0.0:
            for j in range(values.shape[1]):
                out[j] += w * values[i, j]
    return out


ROWS_AT_ONCE = 4


@inner_kernel
def add_outer_products(c: Floats, z: Floats, out: Floats) -> None:
    """Add the weighted outer products c z z' of four vectors z, the upper triangle only, to ``out``.

    The sums are read and written a quarter as often as row by row; the slices let the compiler add several columns at
    once.
    """
    for a in range(z.shape[1]):
        c0, c1, c2, c3 = c[0] * z[0, a], c[1] * z[1, a], c[2] * z[2, a], c[3] * z[3, a]
        sums, z0, z1, z2, z3 = out[a, a:], z[0, a:], z[1, a:], z[2, a:], z[3, a:]
        for b in range(len(sums)):
            sums[b] += (c0 * z0[b] + c1 * z1[b]) + (c2 * z2[b] + c3 * z3[b])


@kernel
def compute_weighted_moments(X: Floats, mean: Floats, factor: Floats, weight: Floats, target: Floats) -> Floats:
    """Return the weighted second moments (upper triangle) of scaled features, a target and a constant 1.

    It is the sum of c z z', z = ((x - mean) factor, target, 1), c the weight, in the order of the rows.
    """
    n, d = X.shape
    out = np.zeros((d + 2, d + 2))
    z, c = np.zeros((ROWS_AT_ONCE, d + 2)), np.zeros(ROWS_AT_ONCE)
    for start in range(0, n, ROWS_AT_ONCE):
        for r in range(ROWS_AT_ONCE):
            i = min(start + r, n - 1)
            c[r] = weight[i] if start + r < n else 0.0
            for j in range(d):
                z[r, j] = (X[i, j] - mean[j]) * factor[j]
            z[r, d], z[r, d + 1] = target[i], 1.0
        add_outer_products(c, z, out)
    return out


@kernel
def add_column_moments(X: Floats, center: Floats, moments: Floats) -> None:
    """Add the rows of ``X`` to the moments of its columns, missing values left out.

    The rows of ``moments`` are the count, the sum, the sum of squares about ``center``, the minimum and the maximum of
    each column. Blocks of rows that are added one after another give the bits of all rows added at once.
    """
    # a copy of its own: threads that add to neighbouring columns would share a cache line
    own = np.empty((len(moments), len(center)))
    for k in range(len(own)):
        for j in range(len(center)):
            own[k, j] = moments[k, j]
    count, total, squares, low, high = own[0], own[1], own[2], own[3], own[4]
    for i in range(X.shape[0]):
        row = X[i]
        for j in range(len(center)):
            x = np.float64(row[j])
            if x == x:
                count[j] += 1.0
                total[j] += x
                squares[j] += (x - center[j]) * (x - center[j])
                low[j] = min(low[j], x)
                high[j] = max(high[j], x)
    for k in range(len(own)):
        for j in range(len(center)):
            moments[k, j] = own[k, j]


@kernel
def sum_log_range(values: Floats, indptr: Ints) -> Floats:
    """Return the sum over queries of the log of the range of their values, and how many have a range above 0.

    The geometric mean of the ranges measures the scale of values, robust to a few outliers.
    """
    out = np.zeros(2)
    for q in range(len(indptr) - 1):
        low, high = values[indptr[q]], values[indptr[q]]
        for i in range(indptr[q] + 1, indptr[q + 1]):
            low, high = min(low, values[i]), max(high, values[i])
        spread = high - low
        if spread > 0.0:
            out[0] += np.log(spread)
            out[1] += 1.0
    return out


@kernel
def move_scores(scores: Floats, X: Floats, column: int, t: float, indptr: Ints) -> tuple[Floats, Floats]:
    """Return the scores plus t times a column of ``X``, and ``sum_log_range`` of these new scores."""
    out = np.empty(len(scores))
    for i in range(len(scores)):
        out[i] = scores[i] + t * X[i, column]
    return out, sum_log_range(out, indptr)


@kernel
def sum_log_ranges(X: Floats, indptr: Ints) -> Floats:
    """Return ``sum_log_range`` of every column of ``X``: a row of sums, and a row of counts of queries."""
    d = X.shape[1]
    out, low, high = np.zeros((2, d)), np.empty(d), np.empty(d)
    for q in range(len(indptr) - 1):
        for j in range(d):
            low[j], high[j] = X[indptr[q], j], X[indptr[q], j]
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
def find_first_missing(X: Floats) -> int:
    """Return the index of the first NaN in ``X``, counted along the rows; -1 if there is no NaN."""
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
def find_first_infinite(X: Floats) -> int:
    """Return the index of the first infinite value in ``X``, counted along the rows; -1 if all are finite."""
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
def sum_query_columns(weight: Floats, X: Floats, indptr: Ints) -> Floats:
    """Return for each query the weighted sum of its rows of ``X``, added up in the order of the rows."""
    out = np.zeros((len(indptr) - 1, X.shape[1]))
    for q in range(len(out)):
        sums = out[q]
        for i in range(indptr[q], indptr[q + 1]):
            w, row = weight[i], X[i]
            for j in range(len(sums)):
                sums[j] += w * row[j]
    return out
