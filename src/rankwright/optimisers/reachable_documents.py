"""Documents that a weighted sum of scores can bring to the top."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rankwright.basics.array_types import Floats, Ints
from rankwright.data.grouping import query_ranges
from rankwright.kernels.measures.sorting import sort_rows
from rankwright.kernels.optimisers.dominance import mark_top_candidates
from rankwright.kernels.scorers.linear_scores import compute_linear_scores
from rankwright.runtime.backends import Backend, count_shards


def find_reachable_documents(X: Floats, y: Floats, indptr: Ints, k: int, backend: Backend) -> NDArray[np.bool_]:
    """Return a mask that drops documents that no nonnegative weights can rank among the first k of their query.

    A document is dropped if k others precede it for all weights: none of their scores is lower, and either all are
    higher or their grade is not.
    """
    order, keep = np.arange(len(y)), np.zeros(len(y), dtype=bool)
    sums = compute_linear_scores(X, np.ones(X.shape[1]), 0.0)

    def work(part: tuple[int, int]) -> None:
        sort_rows(sums, y, indptr, *part, order)
        mark_top_candidates(X, y, order, indptr, k, *part, keep)

    backend.each(work, query_ranges(indptr, count_shards(len(y))))
    return keep
