"""Keys of documents and queries by their content, so that they can be put into an order that no row order changes."""

from __future__ import annotations

import numpy as np

from rankwright.kernels.jit import Floats, Ints, inlined, kernel

_SEED = np.uint64(0x9E3779B97F4A7C15)
_ODD = np.uint64(0xBF58476D1CE4E5B9)
_MISSING = np.uint64(0x7FF8000000000000)
_HALF, _SHIFT = np.uint64(32), np.uint64(29)


@inlined
def _mix(key: np.uint64, bits: np.uint64) -> np.uint64:
    """Return the key of a sequence with one more element."""
    mixed = key ^ bits
    mixed = (mixed ^ (mixed >> _HALF)) * _ODD  # a product carries upwards only, and simple numbers have high bits alone
    return (mixed ^ (mixed >> _SHIFT)) + _SEED


@inlined
def _bits(x: float, cell: Floats, bits: Ints) -> np.uint64:
    """Return the bits of a number, with one for all missing values and one for 0 and -0."""
    cell[0] = x + 0.0
    return bits[0] if x == x else _MISSING


@kernel
def row_keys(X: Floats, y: Floats) -> Ints:
    """Return a key of 64 bits for each row: equal for equal grades and features, and otherwise almost surely not.

    All missing values are equal, and so are 0 and -0. Four sequences side by side, which do not wait for each other.
    """
    n, d = X.shape
    out, cell = np.empty(n, np.uint64), np.empty(1)
    bits = cell.view(np.uint64)
    for i in range(n):
        k0, k1, k2, k3 = _mix(_SEED, _bits(y[i], cell, bits)), _SEED, _SEED, _SEED
        for j in range(0, d - 3, 4):
            k0 = _mix(k0, _bits(np.float64(X[i, j]), cell, bits))
            k1 = _mix(k1, _bits(np.float64(X[i, j + 1]), cell, bits))
            k2 = _mix(k2, _bits(np.float64(X[i, j + 2]), cell, bits))
            k3 = _mix(k3, _bits(np.float64(X[i, j + 3]), cell, bits))
        for j in range(d - d % 4, d):
            k0 = _mix(k0, _bits(np.float64(X[i, j]), cell, bits))
        out[i] = _mix(_mix(_mix(k0, k1), k2), k3)
    return out


@kernel
def query_keys(keys: Ints, weight: Floats, indptr: Ints) -> Ints:
    """Return a key for each query, by its weight and by the keys of its rows, which are in order."""
    out, cell = np.empty(len(weight), np.uint64), np.empty(1)
    bits = cell.view(np.uint64)
    for q in range(len(weight)):
        cell[0] = weight[q]
        key = _mix(_SEED, bits[0])
        for i in range(indptr[q], indptr[q + 1]):
            key = _mix(key, keys[i])
        out[q] = key
    return out


@kernel
def order_in_queries(keys: Ints, indptr: Ints) -> Ints:
    """Return the rows of each query by ascending key."""
    out = np.empty(len(keys), np.int64)
    for q in range(len(indptr) - 1):
        a, b = indptr[q], indptr[q + 1]
        out[a:b] = a + np.argsort(keys[a:b], kind="mergesort")
    return out
