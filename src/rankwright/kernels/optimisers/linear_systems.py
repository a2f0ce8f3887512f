"""Small linear systems with the same bits everywhere, and without BLAS threads that wait for each other."""

from __future__ import annotations

import numpy as np

from rankwright.kernels.jit import Floats, kernel


@kernel
def factorise_shifted(matrix: Floats, strength: float) -> Floats:
    """Return the upper triangular Cholesky factor U of the identity plus ``strength`` times a matrix.

    U'U is that sum; the matrix is positive semidefinite.
    The matrix is positive semidefinite.
    Every pivot is at least 1; if rounding makes it smaller, it is set to 1.
    """
    d = len(matrix)
    U = np.zeros((d, d))
    for i in range(d):
        for j in range(i, d):
            U[i, j] = strength * matrix[i, j]
        U[i, i] += 1.0
    for k in range(d):
        pivot = np.sqrt(max(U[k, k], 1.0))
        row = U[k]
        for j in range(k + 1, d):
            row[j] /= pivot
        row[k] = pivot
        for i in range(k + 1, d):
            factor, target, source = row[i], U[i, i:], row[i:]
            if factor != 0.0:
                for j in range(len(target)):
                    target[j] -= factor * source[j]
    return U


@kernel
def solve_factorised(U: Floats, r: Floats) -> Floats:
    """Return the solution z of the linear system U'U z = r, given the Cholesky factor U."""
    d, z = len(r), np.empty(len(r))
    for k in range(d):
        z[k] = r[k]
    for k in range(d):
        z[k] /= U[k, k]
        rest, row = z[k + 1 :], U[k, k + 1 :]
        for j in range(len(rest)):
            rest[j] -= z[k] * row[j]
    for k in range(d - 1, -1, -1):
        total = z[k]
        for j in range(k + 1, d):
            total -= U[k, j] * z[j]
        z[k] = total / U[k, k]
    return z
