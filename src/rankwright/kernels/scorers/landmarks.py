"""Kernel functions of rows and landmarks, as in kernel machines; a row's values do not depend on the other rows.

Landmarks are the columns of their array, so that loops are vectorised over them and no sum is reordered.
"""

from __future__ import annotations

import numpy as np

from rankwright.kernels.jit import Floats, inlined, kernel
from rankwright.kernels.objectives.exponentials import exp

RBF, LAPLACIAN, POLY, SIGMOID, LINEAR = range(5)
_FAR = 708.0  # our ``exp`` is not 0 below -708


@inlined
def _fill_kernel(out: Floats, x: Floats, landmarks: Floats, kind: int, gamma: float, coef0: float, degree: int) -> None:
    """Write the values of a kernel function, such as RBF, of the row ``x`` and each landmark to ``out``."""
    d, n = landmarks.shape
    out[:] = 0.0
    for j in range(d):
        v, z = x[j], landmarks[j]
        if kind == RBF:
            for i in range(n):
                out[i] += (v - z[i]) * (v - z[i])
        elif kind == LAPLACIAN:
            for i in range(n):
                out[i] += abs(v - z[i])
        else:
            for i in range(n):
                out[i] += v * z[i]
    if kind == RBF or kind == LAPLACIAN:
        for i in range(n):
            t = gamma * out[i]
            e = exp(-t)
            out[i] = e if t < _FAR else (0.0 if t >= _FAR else t)  # NaN stays NaN
    elif kind == POLY:
        for i in range(n):
            base, power = gamma * out[i] + coef0, 1.0
            for _ in range(degree):
                power *= base
            out[i] = power
    elif kind == SIGMOID:
        for i in range(n):
            t = gamma * out[i] + coef0
            e = exp(-2.0 * abs(t))  # tanh of |t| is (1 - e) / (1 + e), and e is never large
            out[i] = np.copysign((1.0 - e) / (1.0 + e), t) if t == t else t


@kernel
def compute_kernel_scores(
    X: Floats,
    mean: Floats,
    factor: Floats,
    landmarks: Floats,
    kind: int,
    gamma: float,
    coef0: float,
    degree: int,
    dual: Floats,
    intercept: float,
) -> Floats:
    """Return the scores of a kernel machine: for each row, ``intercept`` plus ``dual`` times kernel values.

    The kernel is that of (x - mean) factor and each landmark; it is summed in four fixed partial sums.
    """
    n, whole = len(dual), len(dual) - len(dual) % 4
    out, x, k = np.empty(len(X)), np.empty(len(mean)), np.empty(n)
    for row in range(len(X)):
        for j in range(len(mean)):
            x[j] = (X[row, j] - mean[j]) * factor[j]
        _fill_kernel(k, x, landmarks, kind, gamma, coef0, degree)
        s0, s1, s2, s3 = 0.0, 0.0, 0.0, 0.0
        for i in range(0, whole, 4):
            s0 += dual[i] * k[i]
            s1 += dual[i + 1] * k[i + 1]
            s2 += dual[i + 2] * k[i + 2]
            s3 += dual[i + 3] * k[i + 3]
        for i in range(whole, n):
            s0 += dual[i] * k[i]
        out[row] = ((s0 + s1) + (s2 + s3)) + intercept
    return out


@kernel
def compute_kernel_features(
    X: Floats,
    mean: Floats,
    factor: Floats,
    landmarks: Floats,
    kind: int,
    gamma: float,
    coef0: float,
    degree: int,
    projection: Floats,
    offset: Floats,
) -> Floats:
    """Return the Nystroem or kernel PCA features of each row: ``offset`` + kernel values times ``projection``.

    The kernel is that of (x - mean) factor and each landmark.
    """
    n, m = projection.shape
    out, x, k = np.empty((len(X), m)), np.empty(len(mean)), np.empty(n)
    for row in range(len(X)):
        for j in range(len(mean)):
            x[j] = (X[row, j] - mean[j]) * factor[j]
        _fill_kernel(k, x, landmarks, kind, gamma, coef0, degree)
        sums = out[row]
        for a in range(m):
            sums[a] = offset[a]
        for i in range(n):
            c, own = k[i], projection[i]
            for a in range(m):
                sums[a] += c * own[a]
    return out
