"""Features that lie on the workers of a cluster: rows of parts of data sets, by number."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, NoReturn, TypeVar

import numpy as np
from numpy.typing import NDArray

from rankwright.basics.array_types import Floats, Ints
from rankwright.basics.errors import InputError
from rankwright.data.ids import join_ids
from rankwright.data.queries import Queries
from rankwright.runtime.backends import Shards
from rankwright.runtime.dask_backend import Dask
from rankwright.runtime.dask_exchange import NewPart

T = TypeVar("T", bound=np.generic)
Rows = slice | Ints  # of a part


class DistributedRows(NamedTuple):
    """A choice of rows of a part: its number, the rows there, and their places among all that are chosen."""

    part: int
    rows: Rows
    places: Rows


@dataclass(frozen=True, slots=True, eq=False)
class RowLayout:
    """The places of rows in parts. It never changes, so that threads can use it while others make new parts.

    Parameters
    ----------
    parts : Shards of Queries
        The parts that have the rows; None in place of one without documents.
    ends : array of shape (n_parts + 1,)
        The number of documents before each part, and that of all.
    rows : array, optional
        The numbers of the rows among those of all grouped parts; None for all of them, in order.
    """

    parts: Shards[Queries | None]
    ends: Ints
    rows: Ints | None

    def __len__(self) -> int:
        return int(self.ends[-1]) if self.rows is None else len(self.rows)

    def choose(self, rows: Any) -> RowLayout:
        """Return the layout of some of the rows."""
        if self.rows is None and isinstance(rows, slice):
            return RowLayout(self.parts, self.ends, np.arange(*rows.indices(len(self))))
        return RowLayout(self.parts, self.ends, (np.arange(len(self)) if self.rows is None else self.rows)[rows])

    def list_all(self) -> list[DistributedRows]:
        """Return where all rows are; each part once."""
        return list(self.locate(0, len(self)))

    def locate(self, start: int, stop: int) -> Iterator[DistributedRows]:
        """Yield where the rows ``start`` to ``stop`` are, by part."""
        if self.rows is None:
            first, last = np.searchsorted(self.ends, [start, stop - 1], side="right") - 1
            for part in range(int(first), int(last) + 1):
                a, b = max(start, int(self.ends[part])), min(stop, int(self.ends[part + 1]))
                if a < b:
                    offset = int(self.ends[part])
                    yield DistributedRows(part, slice(a - offset, b - offset), slice(a - start, b - start))
            return
        rows = self.rows[start:stop]
        parts = np.searchsorted(self.ends, rows, side="right") - 1
        order = np.argsort(parts, kind="stable")
        cuts = np.flatnonzero(np.diff(parts[order])) + 1
        for places in np.split(order, cuts) if len(order) else ():
            part = int(parts[places[0]])
            yield DistributedRows(part, _compress(rows[places] - self.ends[part]), _compress(places))


class DistributedFeatures:
    """The features of documents whose rows lie on the workers of a cluster; it stands for a matrix in ``Queries``.

    It has the shape of the matrix, and yields that of other rows. Its values stay where they are.

    Parameters
    ----------
    backend : Dask
        The cluster.
    parts : Shards of Queries
        The parts that have the rows; None in place of one without documents.
    sizes : array of shape (n_parts,)
        The number of documents of each part.
    n_features : int
        The number of features.
    has_docid : bool
        Whether the documents have ids.
    rows : array, optional
        The numbers of the rows among those of all grouped parts; None for all of them, in order.
    """

    dtype = np.dtype(np.float32)
    ndim = 2

    def __init__(
        self,
        backend: Dask,
        parts: Shards[Queries | None],
        sizes: Sequence[int] | Ints,
        n_features: int,
        has_docid: bool,
        rows: Ints | None = None,
    ) -> None:
        self.backend, self.n_features, self.has_docid = backend, n_features, has_docid
        self._layout = RowLayout(parts, np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64), rows)
        self.lock = threading.RLock()  # of whoever makes shards

    def __len__(self) -> int:
        return len(self._layout)

    @property
    def shape(self) -> tuple[int, int]:
        """The number of documents, and the number of features."""
        return len(self), self.n_features

    @property
    def nbytes(self) -> int:
        """The size of the values in bytes."""
        return self.dtype.itemsize * len(self) * self.n_features

    @property
    def size(self) -> int:
        """The number of values."""
        return len(self) * self.n_features

    def __getitem__(self, rows: Any) -> DistributedFeatures:
        """Return these rows; raise InputError for columns."""
        if isinstance(rows, tuple) or np.ndim(rows) != (0 if isinstance(rows, slice) else 1):
            self._refuse()
        return self._replace_layout(self._layout.choose(rows), self.has_docid)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NoReturn:
        self._refuse()

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("__"):
            raise AttributeError(name)
        self._refuse()

    def __reduce__(self) -> NoReturn:
        self._refuse()

    def _refuse(self) -> NoReturn:
        """Raise InputError: the values are not here."""
        raise InputError(
            f"the features of {len(self):,} documents are on the workers of {self.backend.address}, and were asked for "
            "on this machine. Read some rows with queries.read_rows(rows), or all with queries.collect()"
        )

    def without_docid(self) -> DistributedFeatures:
        """Return the same rows without ids of documents."""
        return self._replace_layout(self._layout, has_docid=False)

    def _replace_layout(self, layout: RowLayout, has_docid: bool) -> DistributedFeatures:
        sizes = np.diff(layout.ends)
        return DistributedFeatures(self.backend, layout.parts, sizes, self.n_features, has_docid, layout.rows)

    def compute_by_row(self, fn: Callable[..., NDArray[T]], *columns: NDArray[Any]) -> NDArray[T]:
        """Return a value for each row: what a function returns for features and for columns of values of the rows."""
        layout = self._layout
        found = layout.list_all()
        wanted: list[list[Any]] = [[] for _ in range(len(layout.ends) - 1)]
        for each in found:
            wanted[each.part] = [each.rows, *(column[each.places] for column in columns)]
        results = self.backend.gather(_compute_part, layout.parts, self.backend.distribute(wanted), fn)
        return self._restore_order(found, results)

    def read(self) -> Floats:
        """Return the values."""
        return np.asarray(self.compute_by_row(_copy_rows), dtype=np.float32).reshape(self.shape)

    def read_docid(self) -> NDArray[Any]:
        """Return the id of each document."""
        layout = self._layout
        found = layout.list_all()
        wanted: list[Any] = [None] * (len(layout.ends) - 1)
        for each in found:
            wanted[each.part] = each.rows
        results = self.backend.gather(_get_docid, layout.parts, self.backend.distribute(wanted))
        joined = join_ids([results[each.part] for each in found])
        order = np.concatenate([np.arange(len(self))[each.places] for each in found])
        ids = np.empty_like(joined)
        ids[order] = joined
        return ids

    def make_shards(self, labels: Sequence[dict[str, Any]]) -> Shards[Queries]:
        """Return consecutive rows as shards, each with these arguments of ``Queries``; from now on they are the parts.

        The parts that they are made of are freed, unless other queries have rows there.
        """
        ends = np.cumsum([0, *(own["indptr"][-1] for own in labels)], dtype=np.int64)
        with self.lock:  # the next one takes the rows from the new parts, so that the old ones are freed
            layout = self._layout
            plan = []
            for start, stop, own in zip(ends.tolist(), ends[1:].tolist(), labels, strict=False):
                found = list(layout.locate(start, stop))
                pieces = [(each.part, (each.rows, self.has_docid)) for each in found]
                plan.append(NewPart(pieces, ([each.places for each in found], self.n_features, own)))
            shards: Shards[Any] = self.backend.exchange(_take_rows, _join_rows, layout.parts, plan)
            self.backend.wait(shards)
            self._layout = RowLayout(shards, ends, None)
        return shards

    def _restore_order(self, found: Sequence[DistributedRows], results: Sequence[NDArray[T] | None]) -> NDArray[T]:
        """Return the results for the rows of parts in the order of these rows."""
        first = next(result for result in results if result is not None)
        out = np.empty((len(self), *first.shape[1:]), first.dtype)
        for each in found:
            out[each.places] = results[each.part]
        return out


def _compress(rows: Ints) -> Rows:
    """Return row numbers as a slice if they are consecutive."""
    first, last = int(rows[0]), int(rows[-1])
    if last - first + 1 == len(rows) and (np.diff(rows) == 1).all():
        return slice(first, last + 1)
    return rows


def _get_rows(part: Queries, rows: Rows) -> Floats:
    """Return rows of a part: its own memory where they are consecutive, and the very array where they are all."""
    X = part.grouped()._X
    return X if isinstance(rows, slice) and rows == slice(0, len(X)) else X[rows]


def _compute_part(part: Queries, wanted: Sequence[Any], fn: Callable[..., Any]) -> Any:
    """Return what a function returns for the features of rows and their values; None for a part without such rows."""
    if not wanted:
        return None
    rows, *columns = wanted
    return fn(_get_rows(part, rows), *columns)


def _copy_rows(X: Floats) -> Floats:
    """Return the features of rows as they are."""
    return np.ascontiguousarray(X)


def _get_docid(part: Queries, rows: Rows | None) -> NDArray[Any]:
    """Return the ids of rows of a part; empty ones where it has none."""
    if rows is None:
        return np.empty(0, np.int64)
    docid = part.grouped()._docid
    return np.full(len(_get_rows(part, rows)), "") if docid is None else np.asarray(docid)[rows]


def _take_rows(part: Queries, wanted: tuple[Rows, bool]) -> tuple[Floats, Any, bool]:
    """Return the features and the ids of rows of a part, and whether they are all its rows."""
    rows, has_docid = wanted
    X = _get_rows(part, rows)
    return X, _get_docid(part, rows) if has_docid else None, X is part.grouped()._X


def _join_rows(
    pieces: Sequence[tuple[Floats, Any, bool]], argument: tuple[Sequence[Rows], int, dict[str, Any]]
) -> Queries:
    """Return a shard of the rows of several parts, at their places, and of its labels."""
    places, n_features, labels = argument
    n = int(labels["indptr"][-1])
    X, docid, is_whole = pieces[0]
    if not (is_whole and len(pieces) == 1 and isinstance(places[0], slice) and X.flags.writeable):
        X = np.empty((n, n_features), np.float32)
        for at, (rows, _, _) in zip(places, pieces, strict=True):
            X[at] = rows
        if docid is not None:
            joined = join_ids([ids for _, ids, _ in pieces])
            docid = np.empty_like(joined)
            docid[np.concatenate([np.arange(n)[at] for at in places])] = joined
    return Queries(X=X, docid=docid, **labels)
