"""A sample of documents by whole queries, on which an inspection computes what is too slow for all of them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rankwright.basics.array_types import Floats, Ints
from rankwright.data.queries import Queries

_MOST_VALUES = 1 << 24  # of a sample: 64 MiB
_FEWEST_DOCS = 1_000
_BLOCK = 4_096  # rows that are copied at a time
_SHARE = 20  # of documents on a cluster, of which no more than one such part is fetched
_FEWEST_QUERIES = 20  # that a sample has room for, however long they are


@dataclass(frozen=True, slots=True, eq=False)
class DocumentSample:
    """A sample of documents: those of some queries, of very long queries a part.

    Parameters
    ----------
    columns : array of shape (n_features, n), float32
        The features, a row for each.
    y : array of shape (n,), or None
        The grades.
    indptr : array
        The offsets of the sampled queries.
    queries, rows : arrays
        Their numbers in the data set, and the numbers of the rows there, in the order of ``grouped()``.
    is_all : bool
        Whether these are all documents.
    """

    columns: Floats
    y: Floats | None
    indptr: Ints
    queries: Ints
    rows: Ints
    is_all: bool

    @property
    def n_docs(self) -> int:
        """The number of documents in the sample."""
        return len(self.rows)

    @property
    def query_of_row(self) -> Ints:
        """The number of each document's query within the sample."""
        return np.repeat(np.arange(len(self.queries)), np.diff(self.indptr))


def draw_sample(queries: Queries, max_docs: int) -> DocumentSample:
    """Return at most about ``max_docs`` documents of queries drawn at random, always the same ones; all if they fit.

    ``queries`` are grouped. Very wide data, and those on a cluster, have smaller samples, which fit into memory.
    """
    most = min(max_docs, max(_MOST_VALUES // queries.n_features, _FEWEST_DOCS))
    if queries.backend is not None:
        most = min(most, max(queries.n_docs // _SHARE, _FEWEST_DOCS))
    sizes = queries.sizes
    if queries.n_docs <= most:
        chosen, rows, indptr = np.arange(len(queries)), np.arange(queries.n_docs), queries.indptr
    else:
        rng = np.random.default_rng(0)
        most_of_query = max(most // min(len(queries), _FEWEST_QUERIES), 1)
        order = rng.permutation(len(queries))
        total = np.cumsum(np.minimum(sizes[order], most_of_query))
        chosen = np.sort(order[: max(int(np.searchsorted(total, most, side="right")), 1)])
        parts = [_draw_rows(int(queries.indptr[q]), int(sizes[q]), most_of_query, rng) for q in chosen]
        rows = np.concatenate(parts)
        indptr = np.concatenate([[0], np.cumsum([len(part) for part in parts])])
    columns = np.empty((queries.n_features, len(rows)), np.float32)
    for start in range(0, len(rows), _BLOCK):
        columns[:, start : start + _BLOCK] = queries.read_rows(rows[start : start + _BLOCK]).T
    y = queries.y[rows] if queries.has_grades else None
    return DocumentSample(columns, y, indptr, chosen, rows, len(rows) == queries.n_docs)


def _draw_rows(first: int, size: int, most: int, rng: np.random.Generator) -> Ints:
    """Return the rows of a query, at most ``most`` of them drawn at random, in their order."""
    if size <= most:
        return np.arange(first, first + size)
    return first + np.sort(rng.choice(size, most, replace=False))
