"""Distributed queries: a data set whose labels are here, and whose features are on the workers of a cluster."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from operator import attrgetter
from types import MappingProxyType
from typing import Any, NoReturn, TypeVar, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankwright.basics.array_types import Floats, Ints
from rankwright.basics.errors import InputError
from rankwright.basics.files import StrPath
from rankwright.basics.optional_imports import require
from rankwright.data.categories import Categories, renumber
from rankwright.data.click_counts import ClickCounts
from rankwright.data.column_roles import ColumnRoles
from rankwright.data.dask_collections import compute_arrays, compute_frames
from rankwright.data.distributed_features import DistributedFeatures
from rankwright.data.distributed_parts import join_parts
from rankwright.data.distributed_reading import read_parts
from rankwright.data.grouping import as_weights, query_ranges
from rankwright.data.ids import ids_as_text
from rankwright.data.queries import Queries
from rankwright.runtime.backends import Shards, count_shards
from rankwright.runtime.dask_backend import Dask

T = TypeVar("T", bound=np.generic)


class DistributedQueries(Queries):
    """A data set whose features are on the workers of a Dask cluster, and never all at once on this machine.

    Make one with :meth:`read`, :meth:`from_frame`, :meth:`from_arrays` or :meth:`from_queries`. Grades, query ids and
    weights are here, some 20 bytes a document; features and document ids stay on the workers. Models,
    ``rankwright.evaluate`` and all rankers but networks take it as any other ``Queries``. Its rows are those of all
    partitions in order. A model has the bits that it would have if they had been read into one machine, except for
    some trees (``docs/clusters.md``). Partitions that a worker loses when it dies are read again.

    Examples
    --------
    >>> queries = DistributedQueries.read("s3://logs/2026-*/*.parquet", backend=rw.Dask(client))  # doctest: +SKIP
    """

    __slots__ = ("_shards",)

    _X: DistributedFeatures  # type: ignore[assignment]
    _shards: Shards[Queries] | None

    def __init__(self, *arguments: Any, **parts: Any) -> None:
        super().__init__(*arguments, **parts)
        object.__setattr__(self, "_shards", None)

    def __reduce__(self) -> NoReturn:
        raise InputError(
            f"{self!r}: features on the workers of {self.backend.address} cannot be pickled, copied or saved from "
            "here; read them here with collect(), or write files on the workers"
        )

    def __repr__(self) -> str:
        return f"Distributed{super().__repr__()}"

    @classmethod
    def read(
        cls,
        *paths: StrPath,
        backend: Dask | None = None,
        shuffle: bool = True,
        n_features: int | None = None,
        qid: str | None = None,
        label: str | None = None,
        docid: str | None = None,
        weight: str | None = None,
        doc_weight: str | None = None,
        ignore: Sequence[str] = (),
        features: Sequence[str] | None = None,
        categorical: Sequence[str] = (),
    ) -> DistributedQueries:
        """Read files on the workers, a partition each.

        Parameters
        ----------
        *paths : str or path
            Files, patterns such as ``part-*.txt``, folders of files, folders of converted data, or addresses that
            fsspec knows, such as ``s3://bucket/train/*.parquet``. The workers must see them.
        backend : Dask, optional
            The cluster; by default that of Dask's current client.
        shuffle : bool
            Whether rows of a query that are in several partitions are brought together; else they are an error.
        n_features, qid, label, docid, weight, doc_weight, ignore, features, categorical : optional
            As in ``rankwright.read``.
        """
        roles = ColumnRoles(
            qid=qid,
            label=label,
            docid=docid,
            weight=weight,
            doc_weight=doc_weight,
            ignore=ignore,
            features=features,
            categorical=categorical,
        )
        return read_on_workers(paths, roles, backend=backend, shuffle=shuffle, known={"n_features": n_features})

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
        backend: Dask | None = None,
        shuffle: bool = True,
    ) -> DistributedQueries:
        """Build from a Dask data frame, or a list of delayed data frames.

        Parameters
        ----------
        frame : dask.dataframe.DataFrame, or sequence of delayed data frames
            A row per document. A query may have rows in several partitions.
        qid, label, docid, weight, doc_weight, ignore, features, categorical : optional
            As in :meth:`Queries.from_frame`.
        backend : Dask, optional
            The cluster; by default that of Dask's current client.
        shuffle : bool
            Whether rows of a query that are in several partitions are brought together; else they are an error.
        """
        roles = ColumnRoles(
            qid=qid,
            label=label,
            docid=docid,
            weight=weight,
            doc_weight=doc_weight,
            ignore=ignore,
            features=features,
            categorical=categorical,
        )
        cluster = find_cluster(backend)
        return cls(**join_parts(cluster, *compute_frames(cluster, frame, roles), shuffle))

    @classmethod
    def from_arrays(
        cls,
        X: Any,
        y: Any,
        qid: Any = None,
        *,
        group: ArrayLike | None = None,
        docid: Any = None,
        weight: ArrayLike | None = None,
        doc_weight: Any = None,
        features: Sequence[str] | None = None,
        categories: Categories | None = None,
        position: ArrayLike | None = None,
        clicks: ClickCounts | None = None,
        backend: Dask | None = None,
        shuffle: bool = True,
    ) -> DistributedQueries:
        """Build from Dask arrays, whose chunks of rows are the partitions.

        Parameters
        ----------
        X : dask.array.Array of shape (n_docs, n_features)
            Features.
        y : dask.array.Array of shape (n_docs,), or None
            Relevance grades.
        qid : dask.array.Array of shape (n_docs,)
            A query id per row, in any order.
        docid, doc_weight : dask.array.Array of shape (n_docs,), optional
            Document ids and weights.
        weight : array-like of shape (n_queries,), optional
            Query weights, in order of the queries' first appearance.
        features, categories, position, clicks : optional
            As in :meth:`Queries.from_arrays`.
        backend : Dask, optional
            The cluster; by default that of Dask's current client.
        shuffle : bool
            Whether rows of a query that are in several partitions are brought together; else they are an error.
        """
        if group is not None or qid is None:
            raise InputError("DistributedQueries.from_arrays takes no group=; pass qid=, a query id per row")
        cluster = find_cluster(backend)
        given = {"X": X, "y": y, "qid": qid, "docid": docid, "doc_weight": doc_weight}
        options = {"features": None if features is None else tuple(features), "categories": categories}
        own = join_parts(cluster, *compute_arrays(cluster, given, options), shuffle)
        made = cls(**own | {"weight": as_weights(weight, len(own["qid"]))})
        return cast(DistributedQueries, made.replace(position=position, clicks=clicks))

    @classmethod
    def from_queries(cls, queries: Queries, backend: Dask | None = None) -> DistributedQueries:
        """Send a data set of this machine to the workers."""
        cluster, grouped = find_cluster(backend), queries.grouped()
        parts = grouped.shards(count_shards(grouped.n_docs))
        about = [part.n_docs for part in parts], grouped.n_features, grouped._docid is not None
        features = DistributedFeatures(cluster, cluster.distribute(parts), *about)
        return cls(**queries._parts() | {"X": features, "docid": None})

    @property
    def backend(self) -> Dask:
        """The cluster that has the features."""
        return self._X.backend

    @property
    def X(self) -> Floats:
        """The features, which are not on this machine: it has their shape, and raises InputError for their values."""
        return cast(Floats, self._X if self._source is None else self._X[self.restore(np.arange(self.n_docs))])

    @property
    def has_docid(self) -> bool:
        """Whether the documents have ids."""
        return self._X.has_docid

    @property
    def docid(self) -> NDArray[Any] | None:
        """The document id of each row, fetched from the workers, if they are known."""
        return self.restore(self._X.read_docid()) if self._X.has_docid else None

    @property
    def doc_names(self) -> NDArray[Any]:
        """The document id of each row, or where there are none its number in the caller's order, from 1."""
        names = self.docid
        return np.arange(1, self.n_docs + 1) if names is None else names

    @property
    def docid_ranks(self) -> Ints:
        """The place of each document id among all of them, sorted as texts, by row of ``grouped()``."""
        if self._docid_ranks is None:
            if not self._X.has_docid:
                raise InputError("ties=docid needs document ids; these queries have none")
            ranks = np.unique(ids_as_text(self._X.read_docid()), return_inverse=True)[1]
            object.__setattr__(self, "_docid_ranks", ranks)
        assert self._docid_ranks is not None
        return self._docid_ranks

    def _read_docid(self) -> NDArray[Any] | None:
        """Return the document id of each grouped row, fetched from the workers, if they are known."""
        return self._X.read_docid() if self._X.has_docid else None

    def _with_parts(self, **parts: Any) -> Queries:
        """Return the same queries with other arguments of the constructor; with features that are here, all is here."""
        own = self._parts() | parts
        if isinstance(own["X"], np.ndarray):
            return Queries(**own | {"docid": self._read_docid()})
        return DistributedQueries(**own)

    def replace(self, **parts: Any) -> Queries:
        """Return the same documents with other parts, as :meth:`Queries.replace` does."""
        if "docid" in parts:
            bare = self._with_parts(X=self._X.without_docid())
            return bare.replace(**{name: value for name, value in parts.items() if name != "docid"})
        return super().replace(**parts)

    def with_categories(self, categories: Categories | None, where: str) -> Queries:
        """Return the same documents with the numbers that their categories have among these; others are missing."""
        if self.categories == categories:
            return self
        return self.map_X(partial(_renumber, categories=categories, where=where))._with_parts(categories=categories)

    def compute_scores(self, scorer: Callable[[Floats], NDArray[T]]) -> NDArray[T]:
        """Return the score of each row by a function of the features, which is called on the workers."""
        return self.restore(self._X.compute_by_row(scorer))

    def read_rows(self, rows: Any) -> Floats:
        """Return the features of the rows of these numbers, which are fetched from the workers."""
        return self._X[self.restore(np.arange(self.n_docs))[rows]].read()

    def collect(self) -> Queries:
        """Return the same data set with its features on this machine."""
        return Queries(**self._parts() | {"X": self._X.read(), "docid": self._read_docid()})

    def map_X(self, fn: Callable[[Queries], Floats], backend: Any = None) -> Queries:
        """Return the same documents with the features that a function of whole queries, grouped, makes of them."""
        shards = self.backend.apply(_replace_X, self._group().make_shards(), fn)
        n_features = self.backend.gather(attrgetter("n_features"), shards)[0]
        sizes = [int(self._indptr[stop] - self._indptr[start]) for start, stop in self._list_ranges()]
        X = DistributedFeatures(self.backend, shards, sizes, n_features, self._X.has_docid)
        return self._with_parts(X=X)

    def _group(self) -> DistributedQueries:
        """Return the same queries with their rows grouped."""
        return cast(DistributedQueries, self.grouped())

    def make_shards(self) -> Shards[Queries]:
        """Return the shards of grouped queries, which are cut where those of a data set in memory are."""
        with self._X.lock:
            if self._shards is None:
                bare = Queries(**self._parts() | {"X": np.empty((self.n_docs, 0), np.float32)})
                labels = []
                for start, stop in self._list_ranges():
                    own = bare.slice(start, stop)._parts()
                    labels.append({name: own[name] for name in own if name not in ("X", "docid", "source")})
                object.__setattr__(self, "_shards", self._X.make_shards(labels))
            assert self._shards is not None
            return self._shards

    def _list_ranges(self) -> list[tuple[int, int]]:
        """Return the first and the last query of each shard."""
        return query_ranges(self._indptr, count_shards(self.n_docs))

    def shards(self, n: int) -> NoReturn:
        """Raise InputError: only the cluster that has the features can make shards of them."""
        raise InputError(f"these queries are on the workers of {self.backend}; expected that backend, or None")


def read_on_workers(
    paths: Sequence[StrPath],
    roles: ColumnRoles,
    *,
    backend: Dask | None = None,
    shuffle: bool = True,
    known: Mapping[str, Any] = MappingProxyType({}),
) -> DistributedQueries:
    """Read files on the workers as ``DistributedQueries.read`` does; ``known`` are options of ``open_source``."""
    cluster = find_cluster(backend)
    parts, names = read_parts(cluster, paths, roles, known)
    return DistributedQueries(**join_parts(cluster, parts, names, shuffle))


def find_cluster(backend: Dask | None) -> Dask:
    """Return a backend, by default that of Dask's current client; raise InputError if there is none."""
    if isinstance(backend, Dask):
        return backend.connect()
    if backend is not None:
        raise InputError(f"backend={backend!r}; expected rw.Dask(address or client), whose workers have the data")
    try:
        return Dask(require("distributed").default_client())
    except ValueError:
        raise InputError("no Dask client is connected; pass backend=rw.Dask(address)") from None


def _renumber(part: Queries, categories: Categories | None, where: str) -> Floats:
    """Return the features of a part with the numbers of other categories."""
    return renumber(part.X, part.categories, categories, part.features, where)


def _replace_X(part: Queries, fn: Callable[[Queries], Floats]) -> Queries:
    """Return a part with the features that a function makes of it."""
    return part._with_parts(X=fn(part))
