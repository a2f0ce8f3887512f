"""Queries: judged documents by query, the one data set that every function takes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import Any, ClassVar, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankwright.basics.array_types import Floats, Ints
from rankwright.basics.errors import InputError
from rankwright.data.categories import Categories as Categories
from rankwright.data.categories import check_categories, encode_frame, renumber
from rankwright.data.click_counts import ClickCounts, check_clicks, check_positions
from rankwright.data.grouping import as_doc_weights, as_grades, as_matrix, as_weights, group_rows, query_ranges
from rankwright.data.ids import ids_as_text, validate_ids
from rankwright.data.joined_ids import JoinedIds
from rankwright.data.unretrieved import Unretrieved, join_by_query

T = TypeVar("T", bound=np.generic)


class Queries:
    """A data set of documents, mostly judged ones, grouped by query.

    Make one with :meth:`from_arrays`, :meth:`from_frame` or ``rankwright.read``, which validate and convert. The
    rows of a query need not be adjacent. Whatever has a value per row (``X``, ``y``, ``docid``, ``row_qid``, scores
    that go into or come out of a function) is in the caller's order; whatever has a value per query is in the order
    in which the queries first appear. A ``Queries`` cannot be changed.

    Parameters
    ----------
    X : array of shape (n_docs, n_features), float32
        Features; NaN means missing, infinity is refused. The constructor takes rows of which those of a query are
        adjacent.
    y : array of shape (n_docs,), or None
        Relevance grades; None for documents that are only to be scored.
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
        The place of each of these rows in the caller's order; None where that is their own order.
    unretrieved : Unretrieved, optional
        Judged documents that cannot be ranked, because no run found them. They count in what a measure divides by: the
        ideal ranking, the number of relevant documents. None where every judged document is a row.
    doc_weight : array of shape (n_docs,), optional
        Document weights, for objectives that are sums over documents or over pairs of them.
    categories : tuple, optional
        For each feature None or, where it is categorical, the tuple of its values: ``X`` has the numbers of these
        values from 0 up, and NaN for a missing one. None where no feature is categorical.
    position : array of shape (n_docs,), optional
        The position at which each document was shown to users, from 1.
    clicks : ClickCounts, optional
        Impressions and clicks of each document by position, for measures from clicks such as ``dcg@10(clicks=ips)``.

    Examples
    --------
    >>> queries = Queries.from_arrays([[1.0], [2.0], [3.0]], [0, 1, 2], qid=["b", "a", "b"])
    >>> queries
    Queries(2 queries, 3 documents, 1 feature)
    >>> queries.qid.tolist(), queries.y.tolist()
    (['b', 'a'], [0.0, 1.0, 2.0])
    >>> queries.grouped().y.tolist(), queries.grouped().indptr.tolist()
    ([0.0, 2.0, 1.0], [0, 2, 3])
    """

    backend: ClassVar[Any] = None  # that keeps the features; None where they are in the memory of this machine

    __slots__ = (
        *("_X", "_clicks", "_doc_weight", "_docid", "_docid_ranks", "_grouped", "_indptr", "_position"),
        *("_source", "_y"),
        *("categories", "features", "qid", "unretrieved", "weight", "__weakref__"),
    )

    qid: NDArray[Any]
    weight: Floats | None
    features: tuple[str, ...] | None
    unretrieved: Unretrieved | None
    categories: Categories | None
    _X: Floats
    _y: Floats | None
    _doc_weight: Floats | None
    _position: Ints | None
    _clicks: ClickCounts | None
    _indptr: Ints
    _docid: NDArray[Any] | JoinedIds | None
    _source: Ints | None
    _grouped: Queries | None
    _docid_ranks: Ints | None

    def __init__(
        self,
        X: Floats,
        y: Floats | None,
        indptr: Ints,
        qid: NDArray[Any],
        docid: NDArray[Any] | JoinedIds | None = None,
        weight: Floats | None = None,
        features: tuple[str, ...] | None = None,
        source: Ints | None = None,
        unretrieved: Unretrieved | None = None,
        doc_weight: Floats | None = None,
        categories: Categories | None = None,
        position: Ints | None = None,
        clicks: ClickCounts | None = None,
    ) -> None:
        own: dict[str, Any] = {"_X": X, "_y": y, "_indptr": indptr, "qid": qid, "_docid": docid, "weight": weight}
        own |= {"features": features, "_source": source, "unretrieved": unretrieved}
        own |= {"_doc_weight": doc_weight, "categories": categories, "_position": position, "_clicks": clicks}
        own |= {"_grouped": None, "_docid_ranks": None}
        for name, value in own.items():
            object.__setattr__(self, name, value)

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"{name} cannot be set: a Queries cannot be changed; make another")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"{name} cannot be deleted: a Queries cannot be changed; make another")

    def __reduce__(self) -> tuple[Any, ...]:
        return Queries, tuple(self._parts().values())

    def _parts(self) -> dict[str, Any]:
        """Return the arguments of the constructor that make this again."""
        return {
            "X": self._X,
            "y": self._y,
            "indptr": self._indptr,
            "qid": self.qid,
            "docid": self._docid,
            "weight": self.weight,
            "features": self.features,
            "source": self._source,
            "unretrieved": self.unretrieved,
            "doc_weight": self._doc_weight,
            "categories": self.categories,
            "position": self._position,
            "clicks": self._clicks,
        }

    def _with_parts(self, **parts: Any) -> Queries:
        """Return the same queries with other arguments of the constructor."""
        return Queries(**self._parts() | parts)

    @classmethod
    def from_arrays(
        cls,
        X: Any,
        y: ArrayLike | None,
        qid: ArrayLike | None = None,
        *,
        group: ArrayLike | None = None,
        docid: ArrayLike | None = None,
        weight: ArrayLike | None = None,
        doc_weight: ArrayLike | None = None,
        features: Sequence[str] | None = None,
        categories: Categories | None = None,
        position: ArrayLike | None = None,
        clicks: ClickCounts | None = None,
    ) -> Queries:
        """Build from arrays, data frames or a scipy sparse matrix.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_docs, n_features)
            Features. Column names of a data frame become ``features``, and its columns of categories (pandas'
            ``category``, polars' ``Categorical`` and ``Enum``) categorical features.
        y : array-like of shape (n_docs,), or None
            Relevance grades: finite numbers, larger is better. None if the documents are only to be scored.
        qid : array-like of shape (n_docs,), optional
            A query id per row: integers or strings, in any order.
        group : array-like of shape (n_queries,), optional
            Instead of ``qid``: the number of consecutive rows of each query.
        docid : array-like of shape (n_docs,), optional
            Document ids.
        weight : array-like of shape (n_queries,), optional
            Query weights, in order of the queries' first appearance.
        doc_weight : array-like of shape (n_docs,), optional
            Document weights.
        features : sequence of str, optional
            Feature names.
        categories : tuple, optional
            For each feature None or, where it is categorical, its values; ``X`` has their numbers from 0 up.
        position : array-like of shape (n_docs,), optional
            The position at which each document was shown to users, from 1.
        clicks : ClickCounts, optional
            Impressions and clicks of each row, in the order of the rows, and the lists shown for each query.
        """
        if features is None and hasattr(X, "columns"):
            features = [str(name) for name in X.columns]
        X, of_frame = encode_frame(X)
        matrix = as_matrix(X)
        grades = None if y is None else as_grades(y, len(matrix))
        doc_weights = as_doc_weights(doc_weight, len(matrix))
        positions = check_positions(position, len(matrix))
        ids, indptr, order = group_rows(qid, group, len(matrix))
        docs = None if docid is None else validate_ids(docid, len(matrix), "docid")
        counts = check_clicks(clicks, len(matrix), len(ids))
        if order is not None:
            matrix = matrix[order]
            grades, docs, doc_weights = (
                None if values is None else values[order] for values in (grades, docs, doc_weights)
            )
            positions = None if positions is None else positions[order]
            counts = None if counts is None else counts.take(order, slice(None))
        names = None if features is None else tuple(str(name) for name in features)
        if names is not None and len(names) != matrix.shape[1]:
            raise InputError(f"{len(names)} feature names; X has {matrix.shape[1]} columns")
        categories = check_categories(of_frame if categories is None else categories, matrix, names)
        weights = as_weights(weight, len(ids))
        others: dict[str, Any] = {"doc_weight": doc_weights, "categories": categories}
        others |= {"position": positions, "clicks": counts}
        return cls(matrix, grades, indptr, ids, docs, weights, names, order, **others)

    @classmethod
    def from_frame(
        cls,
        frame: Any,
        *,
        qid: str | None = None,
        label: str | None = None,
        docid: str | None = None,
        weight: str | None = None,
        doc_weight: str | None = None,
        ignore: Sequence[str] = (),
        features: Sequence[str] | None = None,
        categorical: Sequence[str] = (),
    ) -> Queries:
        """Build from a data frame of pandas or polars, or from an Arrow table.

        Columns have the roles, the usual names and the checks that they have in files. Categories of pandas and polars
        are categorical features. Without a column of grades the documents can only be scored.

        Parameters
        ----------
        frame : data frame
            A row per document.
        qid, label, docid, weight, doc_weight : str, optional
            The columns with the query ids, grades, document ids, query weights and document weights; by default the
            first three are found by their usual names, such as query_id, relevance and docid.
        ignore : sequence of str
            Columns to leave out: names, or patterns such as ``*_text``.
        features : sequence of str, optional
            Columns that are features: names, or patterns; by default every other column.
        categorical : sequence of str
            Features whose values are categories.

        Examples
        --------
        >>> import pandas as pd
        >>> frame = pd.DataFrame({"q": ["a", "a"], "grade": [1, 0], "bm25": [7.5, 2.0]})
        >>> Queries.from_frame(frame, qid="q").features
        ('bm25',)
        """
        from rankwright.data.column_roles import ColumnRoles
        from rankwright.data.frames import read_frame  # it imports this module

        single = {"qid": qid, "label": label, "docid": docid, "weight": weight, "doc_weight": doc_weight}
        lists = {"ignore": ignore, "features": features, "categorical": categorical}
        named: dict[str, Any] = {role: None if name is None else str(name) for role, name in single.items()}
        for role, names in lists.items():  # the names of a frame's columns may be numbers
            named[role] = names if names is None or isinstance(names, str) else tuple(map(str, names))
        return read_frame(frame, ColumnRoles(**named))

    def __len__(self) -> int:
        return len(self._indptr) - 1

    def __repr__(self) -> str:
        def count(number: int, noun: str, plural: str) -> str:
            return f"{number} {noun if number == 1 else plural}"

        queries = count(len(self), "query", "queries")
        documents = count(self.n_docs, "document", "documents")
        return f"Queries({queries}, {documents}, {count(self.n_features, 'feature', 'features')})"

    def __iter__(self) -> Iterator[slice]:
        """Return the slices of rows of the queries, which must be adjacent."""
        return (slice(int(a), int(b)) for a, b in pairwise(self.indptr))

    @property
    def X(self) -> Floats:
        """The features of each row; a copy where the rows of a query are not adjacent."""
        return self.restore(self._X)

    @property
    def y(self) -> Floats:
        """The relevance grade of each row; raises InputError if the documents have none."""
        return self.restore(self._grades)

    @property
    def _grades(self) -> Floats:
        """The relevance grades by row of ``grouped()``."""
        if self._y is None:
            raise InputError(
                "these documents have no grades: they can be scored, not trained on or evaluated. Name the column of "
                "grades (label=, or --label on the command line)"
            )
        return self._y

    @property
    def has_grades(self) -> bool:
        """Whether the documents have relevance grades."""
        return self._y is not None

    @property
    def doc_weight(self) -> Floats | None:
        """The weight of each row, if documents are weighted."""
        return None if self._doc_weight is None else self.restore(self._doc_weight)

    @property
    def position(self) -> Ints | None:
        """The position at which each row was shown, from 1, if positions are known."""
        return None if self._position is None else self.restore(self._position)

    @property
    def clicks(self) -> ClickCounts | None:
        """The impressions and clicks of each row, if they are known."""
        if self._clicks is None or self._source is None:
            return self._clicks
        return self._clicks.take(self.restore(np.arange(self.n_docs)), slice(None))

    @property
    def row_weight(self) -> Floats:
        """The weight of each row of ``grouped()``: that of its query times that of the document."""
        weight = np.repeat(self.query_weight, self.sizes)
        return weight if self._doc_weight is None else weight * self._doc_weight

    @property
    def docid(self) -> NDArray[Any] | None:
        """The document id of each row, if they are known."""
        return None if self._docid is None else self.restore(np.asarray(self._docid))

    @property
    def row_qid(self) -> NDArray[Any]:
        """The query id of each row."""
        return self.restore(np.repeat(self.qid, self.sizes))

    @property
    def indptr(self) -> Ints:
        """The offsets of the queries: query ``i`` owns the rows ``indptr[i]`` to ``indptr[i + 1]``.

        Rows of which those of a query are not adjacent have none: ``grouped().indptr`` is that of the grouped ones.
        """
        if self._source is not None:
            raise InputError("the rows of a query are not adjacent; use queries.grouped(), whose rows are")
        return self._indptr

    @property
    def n_docs(self) -> int:
        """The number of documents."""
        return len(self._X)

    @property
    def n_features(self) -> int:
        """The number of features."""
        return int(self._X.shape[1])

    @property
    def sizes(self) -> Ints:
        """The number of documents of each query."""
        return np.diff(self._indptr)

    @property
    def query_weight(self) -> Floats:
        """The weight of each query; ones where none were given."""
        return np.ones(len(self)) if self.weight is None else self.weight

    @property
    def doc_names(self) -> NDArray[Any]:
        """The document id of each row, or where there are none its number in the caller's order, from 1."""
        return np.arange(1, self.n_docs + 1) if self._docid is None else self.restore(np.asarray(self._docid))

    def grouped(self) -> Queries:
        """Return the same queries with their rows grouped: those of a query adjacent, in the caller's order.

        It shares memory with this one, and is this one where the rows are adjacent already. ``group`` puts values by
        row into its order, ``restore`` back into the caller's.
        """
        if self._source is None:
            return self
        if self._grouped is None:
            object.__setattr__(self, "_grouped", self._with_parts(source=None))
        assert self._grouped is not None
        return self._grouped

    def group(self, values: NDArray[T]) -> NDArray[T]:
        """Return values by row, given in the caller's order, in the order of the rows of ``grouped()``."""
        return values if self._source is None else values[self._source]

    def restore(self, values: NDArray[T]) -> NDArray[T]:
        """Return values by row, given in the order of the rows of ``grouped()``, in the caller's order."""
        if self._source is None:
            return values
        restored = np.empty_like(values)
        restored[self._source] = values
        return restored

    def compute_scores(self, scorer: Callable[[Floats], NDArray[T]]) -> NDArray[T]:
        """Return the score of each row by a function of the features."""
        return self.restore(scorer(self._X))

    def read_rows(self, rows: Any) -> Floats:
        """Return the features of the rows of these numbers."""
        places: Ints = self.restore(np.arange(self.n_docs))[np.asarray(rows)]
        return self._X[places]

    def map_X(self, fn: Callable[[Queries], Floats], backend: Any = None) -> Queries:
        """Return the same documents with the features that a function of whole queries, grouped, makes of them.

        It is called with all queries, or with a backend on the parts that this cuts them into.
        """
        own = self.grouped()
        X = fn(own) if backend is None else backend.concat(fn, backend.scatter(own))
        return self._sharing_ranks(self._with_parts(X=X), slice(None))

    def group_scores(self, scores: ArrayLike) -> Floats:
        """Check that there is a score per row and return them as ``group`` does."""
        found = np.asarray(scores, dtype=np.float64)
        if found.shape != (self.n_docs,):
            raise InputError(f"scores have shape {found.shape}; there are {self.n_docs} documents")
        if np.isnan(found).any():
            raise InputError(f"score {int(np.argmax(np.isnan(found)))} is NaN; expected numbers")
        return self.group(found)

    def ranked(self, scores: ArrayLike) -> Iterator[Ints]:
        """Yield for each query the numbers of its rows by descending score, ties in the caller's order."""
        grouped = self.group_scores(scores)
        for start, stop in pairwise(self._indptr.tolist()):
            rows = start + np.argsort(-grouped[start:stop], kind="stable")
            yield rows if self._source is None else self._source[rows]

    def with_X(self, X: Floats) -> Queries:
        """Return the same documents with other features of the same number and names."""
        return self.replace(X=X)

    def replace(self, **parts: Any) -> Queries:
        """Return the same documents with other ``X``, ``y``, weights, ``features``, ``unretrieved`` or no ``docid``.

        So can ``position`` and ``clicks`` be replaced. Rows are in the caller's order.
        """
        by_row = [name for name in ("X", "y", "doc_weight", "position") if parts.get(name) is not None]
        if "position" in parts:
            parts["position"] = check_positions(parts["position"], self.n_docs)
        given: dict[str, Any] = {name: self.group(each) if name in by_row else each for name, each in parts.items()}
        clicks = check_clicks(parts.get("clicks"), self.n_docs, len(self))
        if clicks is not None and self._source is not None:
            given["clicks"] = clicks.take(self._source, slice(None))
        other = self._with_parts(**given)
        return other if "docid" in parts else self._sharing_ranks(other, slice(None))

    def with_categories(self, categories: Categories | None, where: str) -> Queries:
        """Return the same documents with the numbers that their categories have among these; others are missing.

        Raise InputError if a feature is categorical here and not there, or the other way round; ``where`` says who
        expects it.
        """
        if self.categories == categories:
            return self
        X = renumber(self._X, self.categories, categories, self.features, where)
        return self._sharing_ranks(self._with_parts(X=X, categories=categories), slice(None))

    def take(self, queries: ArrayLike) -> Queries:
        """Return the queries at these positions, in this order, the rows of each adjacent."""
        chosen = np.asarray(queries)
        if chosen.size == 0 or (chosen.dtype == bool and not chosen.any()):
            raise InputError("no query is left; expected the positions of at least one")
        try:
            at = np.arange(len(self))[chosen]
        except IndexError as error:
            raise InputError(f"{error}; there are {len(self)} queries") from None
        sizes = self.sizes[at]
        indptr = np.concatenate([[0], np.cumsum(sizes)])
        rows = np.repeat(self._indptr[at] - indptr[:-1], sizes) + np.arange(indptr[-1])
        return self._part(rows, indptr, at)

    def reorder(self, rows: Ints, queries: Ints) -> Queries:
        """Return all queries in another order; ``rows`` are their rows of ``grouped()``, those of each adjacent."""
        return self._part(rows, np.concatenate([[0], np.cumsum(self.sizes[queries])]), queries)

    def reorder_labels(self, rows: Ints) -> Queries:
        """Return the grades and clicks of rows that are sorted anew within each query, without features and ids."""
        clicks = None if self._clicks is None else self._clicks.take(rows, slice(None))
        return self.replace(X=self._X[:, :0], y=self._grades[rows], docid=None, position=None, clicks=clicks)

    def slice(self, start: int, stop: int) -> Queries:
        """Return the queries ``start`` to ``stop``, whose rows must be adjacent, sharing memory."""
        indptr = self.indptr
        rows = slice(int(indptr[start]), int(indptr[stop]))
        return self._part(rows, indptr[start : stop + 1] - indptr[start], slice(start, stop))

    def _part(self, rows: Any, indptr: Ints, at: Any) -> Queries:
        """Return these grouped rows of these queries."""
        unretrieved = self.unretrieved
        if unretrieved is not None:
            unretrieved = unretrieved.take(np.arange(len(self))[at])
        part = self._with_parts(
            X=self._X[rows],
            y=None if self._y is None else self._y[rows],
            indptr=indptr,
            qid=self.qid[at],
            docid=None if self._docid is None else self._docid[rows],
            weight=None if self.weight is None else self.weight[at],
            source=None,
            unretrieved=unretrieved,
            doc_weight=None if self._doc_weight is None else self._doc_weight[rows],
            position=None if self._position is None else self._position[rows],
            clicks=None if self._clicks is None else self._clicks.take(rows, at),
        )
        return self._sharing_ranks(part, rows)

    def keep_retrieved(self, retrieved: NDArray[np.bool_]) -> Queries:
        """Return the same queries when only some documents were found, a flag per row; each query keeps one at least.

        The grades of the others move to ``unretrieved``.
        """
        kept = self.group(retrieved)
        before = np.concatenate([[0], np.cumsum(kept)])
        indptr = before[self._indptr]
        if (np.diff(indptr) == 0).any():
            raise InputError("a query without a document cannot be ranked; expected at least one of each query")
        left = Unretrieved(self._grades[~kept], self._indptr - indptr)
        if self.unretrieved is not None:
            left = Unretrieved(*join_by_query(left, self.unretrieved)[:2])
        return self._part(kept, indptr, slice(None)).replace(unretrieved=left if len(left.y) else None)

    def with_unretrieved(self) -> tuple[Queries, NDArray[np.bool_] | None]:
        """Return the grades of all judged documents as queries without features, and which of them are rows.

        Where every judged document is a row these are the queries themselves, grouped, and None.
        """
        if self.unretrieved is None:
            return self.grouped(), None
        y, indptr, is_row = join_by_query((self._grades, self._indptr), self.unretrieved)
        return Queries(np.empty((len(y), 0), np.float32), y, indptr, self.qid, weight=self.weight), is_row

    @property
    def max_grade(self) -> float:
        """The highest grade of a judged document."""
        highest = float(self._grades.max())
        return highest if self.unretrieved is None else float(np.max(self.unretrieved.y, initial=highest))

    @property
    def docid_ranks(self) -> Ints:
        """The place of each document id among all of them, sorted as texts, by row of ``grouped()``."""
        if self._docid_ranks is None:
            if self._docid is None:
                raise InputError("ties=docid needs document ids; these queries have none")
            ranks = np.unique(ids_as_text(np.asarray(self._docid)), return_inverse=True)[1]
            object.__setattr__(self, "_docid_ranks", ranks)
        assert self._docid_ranks is not None
        return self._docid_ranks

    def _sharing_ranks(self, part: Queries, rows: Any) -> Queries:
        """Let a part of these queries have the ranks of document ids that are known."""
        if self._docid_ranks is not None:
            object.__setattr__(part, "_docid_ranks", self._docid_ranks[rows])
        return part

    def shards(self, n: int) -> list[Queries]:
        """Return at most ``n`` parts of whole queries, sharing memory, of about equal numbers of documents."""
        return [self.slice(start, stop) for start, stop in query_ranges(self.indptr, n)]
