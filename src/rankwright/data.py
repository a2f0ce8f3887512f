"""Queries: documents grouped by query, the one representation everything inside works on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankwright.errors import InputError

Floats = NDArray[np.floating[Any]]
Ints = NDArray[np.integer[Any]]


@dataclass(frozen=True, slots=True, eq=False)
class Queries:
    """Judged documents, grouped by query: the rows of a query are adjacent.

    Make one with :meth:`from_arrays`, :meth:`from_frame` or ``rankwright.read_letor``; they validate, convert
    and group (stably: queries in order of first appearance, documents in the caller's order).

    Parameters
    ----------
    X : array of shape (n_docs, n_features), float32
        Features; NaN means missing, infinity is refused.
    y : array of shape (n_docs,)
        Relevance grades.
    indptr : array of shape (n_queries + 1,)
        Query ``i`` owns the rows ``indptr[i]`` to ``indptr[i + 1]``.
    qid : array of shape (n_queries,)
        The caller's query ids.
    docid : array of shape (n_docs,), optional
        The caller's document ids.
    weight : array of shape (n_queries,), optional
        Query weights, used by every mean and every objective.
    features : tuple of str, optional
        Feature names.
    source : array of shape (n_docs,), optional
        Each row's place in the caller's order; ``None`` if unchanged.

    Examples
    --------
    >>> queries = Queries.from_arrays([[1.0], [2.0], [3.0]], [0, 1, 2], qid=["b", "a", "b"])
    >>> queries
    Queries(2 queries, 3 documents, 1 feature)
    >>> queries.qid.tolist(), queries.y.tolist()
    (['b', 'a'], [0.0, 2.0, 1.0])
    >>> queries.restore(queries.y).tolist()
    [0.0, 1.0, 2.0]
    """

    X: Floats
    y: Floats
    indptr: Ints
    qid: NDArray[Any]
    docid: NDArray[Any] | None = None
    weight: Floats | None = None
    features: tuple[str, ...] | None = None
    source: Ints | None = None

    @classmethod
    def from_arrays(
        cls,
        X: Any,
        y: ArrayLike,
        qid: ArrayLike | None = None,
        *,
        group: ArrayLike | None = None,
        docid: ArrayLike | None = None,
        weight: ArrayLike | None = None,
        features: Sequence[str] | None = None,
    ) -> Queries:
        """Build from arrays, data frames or a scipy sparse matrix.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_docs, n_features)
            Features. Column names of a data frame become ``features``.
        y : array-like of shape (n_docs,)
            Relevance grades: finite numbers, larger is better.
        qid : array-like of shape (n_docs,), optional
            A query id per row: integers or strings, in any order.
        group : array-like of shape (n_queries,), optional
            Instead of ``qid``: the number of consecutive rows of each query.
        docid : array-like of shape (n_docs,), optional
            Document ids.
        weight : array-like of shape (n_queries,), optional
            Query weights, in order of the queries' first appearance.
        features : sequence of str, optional
            Feature names.
        """
        if features is None and hasattr(X, "columns"):
            features = [str(name) for name in X.columns]
        matrix = as_matrix(X)
        grades = _as_grades(y, len(matrix))
        ids, indptr, order = _group(qid, group, len(matrix))
        docs = None if docid is None else _column(docid, len(matrix), "docid")
        if order is not None:
            matrix, grades = matrix[order], grades[order]
            docs = None if docs is None else docs[order]
        names = None if features is None else tuple(str(name) for name in features)
        if names is not None and len(names) != matrix.shape[1]:
            raise InputError(f"{len(names)} feature names; X has {matrix.shape[1]} columns")
        return cls(matrix, grades, indptr, ids, docs, _as_weight(weight, len(ids)), names, order)

    @classmethod
    def from_frame(cls, frame: Any, *, label: str, qid: str, docid: str | None = None) -> Queries:
        """Build from a pandas or polars data frame; every column not named here is a feature.

        Examples
        --------
        >>> import pandas as pd
        >>> frame = pd.DataFrame({"q": ["a", "a"], "grade": [1, 0], "bm25": [7.5, 2.0]})
        >>> Queries.from_frame(frame, label="grade", qid="q").features
        ('bm25',)
        """
        columns = list(frame.columns)
        for name in (label, qid, *([docid] if docid else [])):
            if name not in columns:
                raise InputError(f"no column {name!r}; the frame has {', '.join(map(str, columns))}")
        features = [name for name in columns if name not in (label, qid, docid)]
        if not features:
            raise InputError("no feature column; expected one besides the label and the query id")
        return cls.from_arrays(
            frame[features],
            frame[label],
            frame[qid],
            docid=frame[docid] if docid else None,
            features=features,
        )

    def __len__(self) -> int:
        return len(self.indptr) - 1

    def __repr__(self) -> str:
        def count(number: int, noun: str, plural: str) -> str:
            return f"{number} {noun if number == 1 else plural}"

        queries = count(len(self), "query", "queries")
        documents = count(self.n_docs, "document", "documents")
        return f"Queries({queries}, {documents}, {count(self.n_features, 'feature', 'features')})"

    def __iter__(self) -> Iterator[slice]:
        """The slice of rows of each query."""
        return (slice(int(a), int(b)) for a, b in pairwise(self.indptr))

    @property
    def n_docs(self) -> int:
        """The number of documents."""
        return len(self.y)

    @property
    def n_features(self) -> int:
        """The number of features."""
        return int(self.X.shape[1])

    @property
    def sizes(self) -> Ints:
        """The number of documents of each query."""
        return np.diff(self.indptr)

    @property
    def row_qid(self) -> NDArray[Any]:
        """The query id of each row."""
        return np.repeat(self.qid, self.sizes)

    @property
    def query_weight(self) -> Floats:
        """The weight of each query; ones where none were given."""
        return np.ones(len(self)) if self.weight is None else self.weight

    @property
    def rows_of_caller(self) -> Ints:
        """The place of each row in the caller's order."""
        return np.arange(self.n_docs) if self.source is None else self.source

    def ranked(self, scores: Floats) -> Iterator[Ints]:
        """For each query its rows by descending score, ties in row order."""
        for rows in self:
            yield rows.start + np.argsort(-scores[rows], kind="stable")

    def with_X(self, X: Floats) -> Queries:
        """The same documents with other features of the same number and names."""
        return replace(self, X=X)

    def take(self, queries: ArrayLike) -> Queries:
        """The queries at these positions, in this order."""
        at = np.arange(len(self))[np.asarray(queries)]
        sizes = self.sizes[at]
        indptr = np.concatenate([[0], np.cumsum(sizes)])
        rows = np.repeat(self.indptr[at] - indptr[:-1], sizes) + np.arange(indptr[-1])
        return Queries(
            self.X[rows],
            self.y[rows],
            indptr,
            self.qid[at],
            None if self.docid is None else self.docid[rows],
            None if self.weight is None else self.weight[at],
            self.features,
        )

    def slice(self, start: int, stop: int) -> Queries:
        """The adjacent queries ``start`` to ``stop``, sharing memory."""
        rows = slice(int(self.indptr[start]), int(self.indptr[stop]))
        return Queries(
            self.X[rows],
            self.y[rows],
            self.indptr[start : stop + 1] - self.indptr[start],
            self.qid[start:stop],
            None if self.docid is None else self.docid[rows],
            None if self.weight is None else self.weight[start:stop],
            self.features,
        )

    def shards(self, n: int) -> list[Queries]:
        """At most ``n`` parts of whole queries, sharing memory, of about equal numbers of documents."""
        return [self.slice(start, stop) for start, stop in query_ranges(self.indptr, n)]

    def restore(self, values: Floats) -> Floats:
        """Put one value per row back into the caller's order."""
        if self.source is None:
            return values
        restored = np.empty_like(values)
        restored[self.source] = values
        return restored


def as_matrix(X: Any) -> Floats:
    """Convert to a C-ordered float32 matrix; refuse what is not numeric, two-dimensional or is infinite."""
    if hasattr(X, "toarray"):
        X = X.toarray()
    try:
        with np.errstate(over="ignore"):
            matrix: Floats = np.require(X, dtype=np.float32, requirements=["C", "W"])
    except (TypeError, ValueError) as error:
        raise InputError(f"X is not a table of numbers: {error}") from None
    if matrix.ndim != 2:
        raise InputError(f"X has {matrix.ndim} dimension(s); expected 2 (documents x features)")
    if 0 in matrix.shape:
        raise InputError(f"X has {matrix.shape[0]} documents and {matrix.shape[1]} features; expected at least 1")
    from rankwright.kernels.linear import first_infinite  # with Numba, which takes long to import

    place = first_infinite(matrix)
    if place >= 0:
        row, column = divmod(place, matrix.shape[1])
        raise InputError(f"X[{row}, {column}] is infinite or too large for float32; expected finite numbers")
    return matrix


def query_ranges(indptr: Ints, n: int) -> list[tuple[int, int]]:
    """Cut queries into at most ``n`` adjacent ranges of about equal numbers of documents.

    >>> query_ranges(np.array([0, 5, 6, 7, 12]), 2)
    [(0, 2), (2, 4)]
    """
    if n == 1 or len(indptr) == 2:
        return [(0, len(indptr) - 1)]
    targets = np.linspace(0, indptr[-1], n + 1)[1:-1]
    cuts = np.unique(np.concatenate([[0], np.searchsorted(indptr, targets), [len(indptr) - 1]]))
    return [(int(a), int(b)) for a, b in pairwise(cuts)]


def find_runs(qid: NDArray[Any]) -> Ints:
    """The first row of every run of equal neighbours."""
    return np.flatnonzero(np.concatenate([[True], qid[1:] != qid[:-1]]))


def group_runs(starts: Ints, ids: NDArray[Any], n_docs: int) -> tuple[NDArray[Any], Ints, Ints | None]:
    """Group runs of rows by id, in order of first appearance.

    Returns the ids of the queries, their ``indptr``, and the permutation of the rows that makes the rows of each
    query adjacent (``None`` if they are already).
    """
    unique, first, query = np.unique(ids, return_index=True, return_inverse=True)
    sizes = np.diff(np.append(starts, n_docs))
    if len(unique) == len(ids):
        return ids, np.append(starts, n_docs).astype(np.int64), None
    rank = np.empty(len(unique), dtype=np.int64)
    rank[np.argsort(first)] = np.arange(len(unique))
    row_query = np.repeat(rank[query], sizes)
    indptr = np.concatenate([[0], np.cumsum(np.bincount(row_query, minlength=len(unique)))])
    return ids[np.sort(first)], indptr.astype(np.int64), np.argsort(row_query, kind="stable")


def _group(qid: ArrayLike | None, group: ArrayLike | None, n_docs: int) -> tuple[NDArray[Any], Ints, Ints | None]:
    if (qid is None) == (group is None):
        raise InputError("expected either qid (an id per row) or group (the sizes of consecutive queries)")
    if qid is not None:
        ids = _column(qid, n_docs, "qid")
        starts = find_runs(ids)
        return group_runs(starts, ids[starts], n_docs)
    sizes = np.asarray(group)
    if sizes.ndim != 1 or sizes.dtype.kind not in "iu" or (sizes < 1).any() or sizes.sum() != n_docs:
        raise InputError(f"group must hold positive sizes that add up to the {n_docs} rows of X")
    return np.arange(len(sizes)), np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64), None


def _column(values: ArrayLike, n_docs: int, name: str) -> NDArray[Any]:
    column = np.asarray(values)
    if column.shape != (n_docs,):
        raise InputError(f"{name} has shape {column.shape}; X has {n_docs} rows")
    absent: Any = False
    if column.dtype == object:
        absent = [value is None or value != value for value in column]  # NaN is not itself
        column = np.array([str(value) for value in column])
    elif column.dtype.kind == "f":
        absent = ~np.isfinite(column)
    if np.any(absent):
        raise InputError(f"{name}[{int(np.argmax(absent))}] is missing; expected an id in every row")
    return column


def check_tokens(ids: NDArray[Any], what: str) -> None:
    """Refuse ids that a line of text cannot hold."""
    for token in ids.tolist():
        text = str(token)
        if not text or text.split() != [text] or "#" in text:
            raise InputError(f"the {what} id {text!r} cannot be written: it is empty or has spaces or '#'")


def _as_grades(y: ArrayLike, n_docs: int) -> Floats:
    try:
        grades = np.array(y, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(f"y is not numeric: {error}") from None
    if grades.shape != (n_docs,):
        raise InputError(f"y has shape {grades.shape}; X has {n_docs} rows")
    if not np.isfinite(grades).all():
        raise InputError(f"y[{int(np.argmin(np.isfinite(grades)))}] is NaN or infinite; expected a grade")
    return grades


def _as_weight(weight: ArrayLike | None, n_queries: int) -> Floats | None:
    if weight is None:
        return None
    weights = np.array(weight, dtype=np.float64)
    if weights.shape != (n_queries,):
        raise InputError(f"weight has shape {weights.shape}; there are {n_queries} queries")
    if not (np.isfinite(weights).all() and (weights >= 0).all() and weights.sum() > 0):
        raise InputError("weight must be finite, not negative and not all zero")
    return weights
