"""Keys of documents and queries by their content, for an order that does not depend on the order of the rows."""

from __future__ import annotations

import numpy as np

from rankwright.kernels.jit import Ints, inlined, kernel
from rankwright.kernels.measures.sorting import max_query_size, merge_sort

_SEED = np.uint64(0x9E3779B97F4A7C15)
_ODD = np.uint64(0xBF58476D1CE4E5B9)
_HALF, _SHIFT = np.uint64(32), np.uint64(29)
_SIGN, _INFINITE, _MISSING = np.uint32(0x80000000), np.uint32(0x7F800000), np.uint32(0x7FC00000)


@inlined
def _extend_key(key: np.uint64, bits: np.uint64) -> np.uint64:
    """Return the hash key of a sequence, given the key of all but its last element and the bits of that one."""
    mixed = key ^ bits
    mixed = (mixed ^ (mixed >> _HALF)) * _ODD  # a product carries upwards only, and simple numbers have high bits alone
    return (mixed ^ (mixed >> _SHIFT)) + _SEED


@inlined
def _unify_bits(bits: np.uint32) -> np.uint64:
    """Return the bits of a float32 such that all missing values have the same bits, and so do 0 and -0."""
    size = bits & ~_SIGN
    if size == np.uint32(0):
        return np.uint64(0)
    return np.uint64(_MISSING if size > _INFINITE else bits)


@kernel
def compute_row_keys(bits: Ints, y: Ints) -> Ints:
    """Return a hash key of 64 bits for each row, made of its grade and features: equal rows have equal keys.

    Rows that differ almost surely have different keys.
    ``bits`` are those of float32 features as uint32, ``y`` those of float64 grades as uint64. All missing values are
    equal, and so are 0 and -0. Four sequences side by side, which do not wait for each other.
    """
    n, d = bits.shape
    out = np.empty(n, np.uint64)
    for i in range(n):
        k0, k1, k2, k3 = _extend_key(_SEED, y[i]), _SEED, _SEED, _SEED
        for j in range(0, d - 3, 4):
            k0 = _extend_key(k0, _unify_bits(bits[i, j]))
            k1 = _extend_key(k1, _unify_bits(bits[i, j + 1]))
            k2 = _extend_key(k2, _unify_bits(bits[i, j + 2]))
            k3 = _extend_key(k3, _unify_bits(bits[i, j + 3]))
        for j in range(d - d % 4, d):
            k0 = _extend_key(k0, _unify_bits(bits[i, j]))
        out[i] = _extend_key(_extend_key(_extend_key(k0, k1), k2), k3)
    return out


@kernel
def compute_query_keys(keys: Ints, weight: Ints, indptr: Ints) -> Ints:
    """Return a hash key for each query, made of its weight and of the keys of its rows, in their order."""
    out = np.empty(len(weight), np.uint64)
    for q in range(len(weight)):
        key = _extend_key(_SEED, weight[q])
        for i in range(indptr[q], indptr[q + 1]):
            key = _extend_key(key, keys[i])
        out[q] = key
    return out


@kernel
def sort_within_queries(keys: Ints, indptr: Ints) -> Ints:
    """Return the row numbers grouped by query, and sorted within each query by ascending hash key."""
    out, longest = np.empty(len(keys), np.int64), max_query_size(indptr)
    own, own2, rows2 = np.empty(longest, np.uint64), np.empty(longest, np.uint64), np.empty(longest, np.int64)
    for q in range(len(indptr) - 1):
        a, b = indptr[q], indptr[q + 1]
        for i in range(a, b):
            own[i - a], out[i] = ~keys[i], i
        merge_sort(own, out[a:b], own2, rows2, b - a)
    return out
