"""Documents that can never rank among the first k, whatever the weights."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rankwright.kernels.jit import Floats, Ints, kernel
from rankwright.kernels.measures.sorting import max_query_size

Bools = NDArray[np.bool_]


@kernel
def mark_top_candidates(
    X: Floats, y: Floats, order: Ints, indptr: Ints, k: int, start: int, stop: int, keep: Bools
) -> None:
    """Mark the documents that some weights >= 0 of a linear scorer may rank among a query's first ``k``.

    Only the queries ``start`` to ``stop`` are looked at.
    Document j precedes i for all weights if no feature of it is smaller and either all are larger or its grade is not
    larger (of equal scores the lower grade comes first; documents equal in all of this keep the order of ``order``).
    A document that k others precede is never among the first k. ``order`` holds the rows of each query by descending
    sum of the features, then ascending grade, so that every document comes after those that precede it; and only marked
    documents need to be counted, because the first k of those that precede it are marked.
    """
    n_features = X.shape[1]
    kept = np.empty(max_query_size(indptr[start : stop + 1]), order.dtype)
    for q in range(start, stop):
        n_kept = 0
        for at in range(indptr[q], indptr[q + 1]):
            i, before = order[at], 0
            for c in range(n_kept):
                j = kept[c]
                above = 0
                for f in range(n_features):
                    if X[j, f] > X[i, f]:
                        above += 1
                    elif X[j, f] < X[i, f]:
                        above = -n_features
                        break
                if above == n_features or (above >= 0 and y[j] <= y[i]):
                    before += 1
                    if before == k:
                        break
            if before < k:
                kept[n_kept] = i
                n_kept += 1
                keep[i] = True
