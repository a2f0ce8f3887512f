"""Hashes of rows by their content: the order of training rows, and a memory of training queries."""

from __future__ import annotations

from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from rankwright.basics.array_types import Floats, Ints
from rankwright.basics.errors import SplitQueryWarning, warn
from rankwright.data.click_counts import ClickCounts
from rankwright.data.queries import Queries
from rankwright.kernels.data.row_keys import compute_query_keys, compute_row_keys, sort_within_queries
from rankwright.runtime.backends import Backend, Serial, choose_nearest

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
    parts = _sort_parts(queries, backend)
    before = np.cumsum([0, *(len(rows) for rows, _ in parts)])
    within = np.concatenate([first + rows for first, (rows, _) in zip(before, parts, strict=False)])
    keys = np.concatenate([own for _, own in parts])
    order = np.argsort(keys, kind="stable")
    sizes = queries.sizes[order]
    starts = np.cumsum(sizes) - sizes
    rows = within[np.repeat(queries.indptr[order] - starts, sizes) + np.arange(queries.n_docs)]
    return queries if np.array_equal(rows, np.arange(queries.n_docs)) else queries.reorder(rows, order)


def find_repeated_queries(queries: Queries, others: Queries, backend: Backend) -> NDArray[np.bool_]:
    """Return which of the other queries have the same documents, features and grades as one of the queries."""
    found: NDArray[np.bool_] = np.isin(_hash_whole_queries(others, backend), _hash_whole_queries(queries, backend))
    return found


def find_first_copies(queries: Queries, backend: Backend) -> Ints:
    """Return for each query the position of the first one with the same documents, features and grades.

    >>> from rankwright.runtime.backends import Serial
    >>> made = Queries.from_arrays([[1.0], [2.0], [1.0]], [0, 1, 0], qid=["a", "b", "c"])
    >>> find_first_copies(made, Serial()).tolist()
    [0, 1, 0]
    """
    _, first, inverse = np.unique(_hash_whole_queries(queries, backend), return_index=True, return_inverse=True)
    return first[inverse]


def _hash_whole_queries(queries: Queries, backend: Backend) -> Ints:
    """Return a hash of each query, made of all features and grades of its documents, without weights."""
    bare = queries.replace(weight=None, doc_weight=None, position=None, clicks=None)
    return np.concatenate([keys for _, keys in _sort_parts(bare, backend)])


def _sort_parts(queries: Queries, backend: Backend) -> list[tuple[Ints, Ints]]:
    """Return for each part of the queries its rows, sorted within each query, and a hash per query."""
    near = choose_nearest(queries, backend)
    return near.gather(_sort_part, near.scatter(queries))


def _sort_part(part: Queries) -> tuple[Ints, Ints]:
    """Return the rows of some queries, sorted within each query, and a hash per query."""
    features = np.ascontiguousarray(part.X, dtype=np.float32).view(np.uint32)
    labels = _view_bits(part.y)
    if part.doc_weight is not None:
        labels = labels ^ (_view_bits(part.doc_weight) * _ODD)
    if part.position is not None:
        labels = labels * _ODD + part.position.astype(np.uint64)
    if part.clicks is not None:
        labels = labels * _ODD + _hash_clicks(part.clicks)
    keys = compute_row_keys(features, labels)
    rows = sort_within_queries(keys, part.indptr)
    return rows, compute_query_keys(keys[rows], _view_bits(part.query_weight), part.indptr)


def _hash_clicks(clicks: ClickCounts) -> NDArray[np.uint64]:
    """Return a hash of the cells of each document; their order does not matter."""
    cells = clicks.position.astype(np.uint64)
    for counts in (clicks.n_shown, clicks.n_clicked):
        cells = (cells * _ODD) ^ (_view_bits(counts).astype(np.uint64) >> _SHIFT)
    before: NDArray[np.uint64] = np.concatenate([np.zeros(1, np.uint64), np.cumsum(cells * _ODD)])
    return before[clicks.indptr[1:]] - before[clicks.indptr[:-1]]


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
        sample = grouped.read_rows(np.arange(0, grouped.n_docs, max(grouped.n_docs // _SAMPLED, 1)))
        columns = _choose_varying_columns(sample)
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


def _choose_varying_columns(sample: Floats) -> Ints:
    """Return a few columns that differ between documents of a sample, or any columns if none differs."""
    varying = np.flatnonzero((sample != sample[0]).any(axis=0))
    columns = varying if len(varying) else np.arange(sample.shape[1])
    return np.unique(columns[np.linspace(0, len(columns) - 1, _COLUMNS).round().astype(np.int64)])


def _hash_queries(queries: Queries, columns: Ints) -> NDArray[np.uint64]:
    """Return a hash of each query, made of the given columns of its documents; their order does not matter."""
    near = choose_nearest(queries, Serial())
    hashes: NDArray[np.uint64] = near.concat(_hash_part, near.scatter(queries), columns)
    return hashes


def _hash_part(queries: Queries, columns: Ints) -> NDArray[np.uint64]:
    """Return a hash of each of these queries."""
    rows = np.zeros(queries.n_docs, dtype=np.uint64)
    for column in columns:
        values = queries.X[:, column] + np.float32(0.0)  # which makes 0.0 of -0.0
        rows ^= values.astype(np.float32, copy=False).view(np.uint32)
        rows *= _ODD
        rows ^= rows >> _SHIFT
    hashes: NDArray[np.uint64] = np.add.reduceat(rows, queries.indptr[:-1])
    return hashes
