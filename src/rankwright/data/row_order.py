"""An order of queries and documents by their content, in which training does not depend on the caller's order."""

from __future__ import annotations

import numpy as np

from rankwright.basics.array_types import Floats, Ints
from rankwright.data.grouping import query_ranges
from rankwright.data.queries import Queries
from rankwright.kernels.data.row_keys import order_in_queries, query_keys, row_keys
from rankwright.runtime.backends import Backend, n_shards

LARGEST = 1 << 28  # bytes of features: more are not copied, and are trained on in the caller's order


def sort_by_content(queries: Queries, backend: Backend) -> Queries:
    """Return grouped queries in an order that is a function of their grades, features and weights alone.

    Queries, and the documents of each, are sorted by a hash of what training sees of them: not by their ids. Equal ones
    need no order. Features of more than ``LARGEST`` bytes come back as they are: sorting needs a copy of them.

    >>> from rankwright.runtime.backends import Serial
    >>> one = Queries.from_arrays([[1.0], [2.0], [3.0]], [0, 1, 2], qid=["b", "a", "b"])
    >>> other = Queries.from_arrays([[2.0], [3.0], [1.0]], [1, 2, 0], qid=[7, 5, 5])
    >>> first, second = (sort_by_content(each.grouped(), Serial()) for each in (one, other))
    >>> first.X.tolist() == second.X.tolist(), first.indptr.tolist() == second.indptr.tolist()
    (True, True)
    """
    if queries.X.nbytes > LARGEST:
        return queries
    ranges = query_ranges(queries.indptr, n_shards(queries.n_docs))
    parts = backend.each(lambda part: _sorted_part(queries, *part), ranges)
    within, keys = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
    order = np.argsort(keys, kind="stable")
    sizes = queries.sizes[order]
    starts = np.cumsum(sizes) - sizes
    rows = within[np.repeat(queries.indptr[order] - starts, sizes) + np.arange(queries.n_docs)]
    return queries if np.array_equal(rows, np.arange(queries.n_docs)) else queries.reorder(rows, order)


def _sorted_part(queries: Queries, start: int, stop: int) -> tuple[Ints, Ints]:
    """Return the rows of some queries in order, and a key of each query."""
    part = queries.slice(start, stop)
    features = np.ascontiguousarray(part.X, dtype=np.float32).view(np.uint32)
    keys = row_keys(features, _bits(part.y))
    rows = order_in_queries(keys, part.indptr)
    return queries.indptr[start] + rows, query_keys(keys[rows], _bits(part.query_weight), part.indptr)


def _bits(numbers: Floats) -> Ints:
    """Return the bits of numbers, with one pattern for 0 and -0."""
    return (np.asarray(numbers, dtype=np.float64) + 0.0).view(np.uint64)
