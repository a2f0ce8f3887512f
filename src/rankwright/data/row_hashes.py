"""Hashes of rows by their content: the order of training rows, and a memory of training queries."""

from __future__ import annotations

from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from rankwright.basics.array_types import Floats, Ints
from rankwright.basics.errors import SplitQueryWarning, warn
from rankwright.data.grouping import query_ranges
from rankwright.data.queries import Queries
from rankwright.kernels.data.row_keys import compute_query_keys, compute_row_keys, sort_within_queries
from rankwright.runtime.backends import Backend, count_shards

LARGEST = 1 << 28  # bytes of features: more are not copied, and are trained on in the caller's order


def sort_by_content(queries: Queries, backend: Backend) -> Queries:
    """Return queries and their documents in an order that depends only on grades, features and weights.

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
    ranges = query_ranges(queries.indptr, count_shards(queries.n_docs))
    parts = backend.each(lambda part: _sort_part(queries, *part), ranges)
    within, keys = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
    order = np.argsort(keys, kind="stable")
    sizes = queries.sizes[order]
    starts = np.cumsum(sizes) - sizes
    rows = within[np.repeat(queries.indptr[order] - starts, sizes) + np.arange(queries.n_docs)]
    return queries if np.array_equal(rows, np.arange(queries.n_docs)) else queries.reorder(rows, order)


def _sort_part(queries: Queries, start: int, stop: int) -> tuple[Ints, Ints]:
    """Return the rows of the queries from ``start`` to ``stop``, sorted within each query, and a hash per query."""
    part = queries.slice(start, stop)
    features = np.ascontiguousarray(part.X, dtype=np.float32).view(np.uint32)
    labels = _view_bits(part.y)
    if part.doc_weight is not None:
        labels = labels ^ (_view_bits(part.doc_weight) * _ODD)
    keys = compute_row_keys(features, labels)
    rows = sort_within_queries(keys, part.indptr)
    return queries.indptr[start] + rows, compute_query_keys(keys[rows], _view_bits(part.query_weight), part.indptr)


def _view_bits(numbers: Floats) -> Ints:
    """Return the 64 bits of each number as an integer, the same for 0 and -0."""
    return (np.asarray(numbers, dtype=np.float64) + 0.0).view(np.uint64)


_COLUMNS, _SAMPLED = 4, 1_000  # features that tell documents apart, and documents that show which of them vary
_ODD = np.uint64(0x9E3779B97F4A7C15)
_SHIFT = np.uint64(29)


class SeenQueries(NamedTuple):
    """A memory of training queries: the id of each, its number of documents, and a hash of these.

    A test query that has the id of a training query but other documents is a query that was cut apart, as ``KFold``
    does, or another query under the same id. Ids that merely number the queries of a data set (0, 1, 2, ... or
    1, 2, 3, ... in training and in test) say nothing: two files that are numbered so share ids by chance. They count
    only if both have the same number of queries and the test set at most half the documents, as after a split into
    three parts or more. What goes unnoticed: a split into two halves of queries so numbered.
    """

    qid: NDArray[Any]
    sizes: Ints
    hashes: NDArray[np.uint64]
    columns: Ints  # the features that the hashes are made of

    @classmethod
    def of(cls, queries: Queries) -> Self:
        """Return what is remembered of these queries: an id and two numbers each."""
        grouped = queries.grouped()
        columns = _choose_varying_columns(grouped.X)
        return cls(queries.qid, queries.sizes, _hash_queries(grouped, columns), columns)

    def warn_if_split(self, test: Queries) -> None:
        """Warn if test queries have ids of training queries, but other documents."""
        seen: dict[Any, list[int]] = {}
        for at, query in enumerate(self.qid.tolist()):
            seen.setdefault(query, []).append(at)
        shared = [(at, seen[query]) for at, query in enumerate(test.qid.tolist()) if query in seen]
        if not shared or self._shares_numbers_only(test):
            return
        sizes, hashes = test.sizes, _hash_queries(test.grouped(), self.columns)
        other = [
            at
            for at, places in shared
            if not any(self.sizes[k] == sizes[at] and self.hashes[k] == hashes[at] for k in places)
        ]
        if other:
            warn(
                f"{len(other)} of {len(test)} test queries (such as {test.qid[other[0]]!s:.40}) have the id of a "
                "training query but other documents. If a split cut them apart (KFold does), the result is wrong: "
                "split by rw.QueryKFold. If they are other queries, give them other ids",
                SplitQueryWarning,
            )

    def _shares_numbers_only(self, test: Queries) -> bool:
        """Return whether ids only number the queries of each set, and nothing else hints at a split."""
        if not (_is_numbering(self.qid) and _is_numbering(test.qid)):
            return False
        return len(self.qid) != len(test) or 2 * test.n_docs > int(self.sizes.sum())


def _is_numbering(qid: NDArray[Any]) -> bool:
    """Return whether query ids just count the queries: 0, 1, 2, ... or 1, 2, 3, ..., as numbers or as texts."""
    first = str(qid[0])
    return first in ("0", "1") and [str(query) for query in qid.tolist()] == [
        str(number) for number in range(int(first), int(first) + len(qid))
    ]


def _choose_varying_columns(X: Floats) -> Ints:
    """Return a few columns of ``X`` that differ between documents, or any columns if none differs."""
    sample = X[:: max(len(X) // _SAMPLED, 1)]
    varying = np.flatnonzero((sample != sample[0]).any(axis=0))
    columns = varying if len(varying) else np.arange(X.shape[1])
    return np.unique(columns[np.linspace(0, len(columns) - 1, _COLUMNS).round().astype(np.int64)])


def _hash_queries(queries: Queries, columns: Ints) -> NDArray[np.uint64]:
    """Return a hash of each query, made of the given columns of its documents; their order does not matter."""
    rows = np.zeros(queries.n_docs, dtype=np.uint64)
    for column in columns:
        values = queries.X[:, column] + np.float32(0.0)  # which makes 0.0 of -0.0
        rows ^= values.astype(np.float32, copy=False).view(np.uint32)
        rows *= _ODD
        rows ^= rows >> _SHIFT
    hashes: NDArray[np.uint64] = np.add.reduceat(rows, queries.indptr[:-1])
    return hashes
