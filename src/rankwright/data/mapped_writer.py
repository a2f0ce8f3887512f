"""Data sets on disk: folders of arrays that are written block by block, whole or not at all."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankwright.basics.array_types import Floats, Ints
from rankwright.basics.errors import InputError
from rankwright.basics.files import StrPath, check_apart, check_folder_output, write_folder_atomic
from rankwright.basics.mapped_arrays import ArrayFile, ArrayWriter, write_array
from rankwright.data.click_counts import CLICK_ARRAYS
from rankwright.data.grouping import find_runs, fold_query_weights, number_queries
from rankwright.data.id_files import IdFiles
from rankwright.data.ids import join_ids
from rankwright.data.mapped_header import ARRAY_FILES, FILE, SUFFIX, MappedHeader, is_mapped
from rankwright.data.queries import Queries
from rankwright.data.row_files import RowFile, RunOrder
from rankwright.data.row_sources import RowBlock, RowSource

_ROWS = 1 << 14  # rows of a data set in memory that are written at a time
_PIECE = 1 << 18  # places of rows that are written at a time


def check_target(name: str, path: StrPath, inputs: Iterable[StrPath | None]) -> None:
    """Raise an error if a data set cannot be written to a folder, or if it would replace anything but another one.

    ``name`` is what an error calls the folder by, ``inputs`` are the files and folders that are read.
    """
    target = Path(path)
    if target.suffix != SUFFIX:
        raise InputError(f"{name} {path}: expected a name that ends in {SUFFIX}")
    read = [path for path in inputs if path is not None]
    check_apart({name: [target, *(target / each for each in (FILE, *ARRAY_FILES))]}, read)
    check_folder_output(name, target, read)
    if os.path.lexists(target) and not (is_mapped(target) and ((target / FILE).is_file() or not any(target.iterdir()))):
        raise InputError(f"{name} {path}: exists, and is no converted data; choose another, or delete it")


def write_queries(queries: Queries, path: StrPath) -> None:
    """Write a data set to a folder of arrays on disk, which :func:`read` opens without reading it.

    The folder is written whole or not at all, and replaces another one of its kind.

    Parameters
    ----------
    queries : Queries
        The data set.
    path : str or path
        The folder to write; its name ends in ``.rwq``.
    """
    check_target("path", path, [])
    grouped = queries.grouped()
    with write_folder_atomic(path) as folder:
        rows = _RowFiles(folder)
        try:
            for part in grouped.shards(grouped.n_docs // _ROWS + 1):
                y = part.y if part.has_grades else None
                rows.append(part.X, y, part.docid, part.doc_weight)
            arrays = rows.finish(None)
        finally:
            rows.close()
        arrays |= _write_ids(folder, "qid", queries.qid)
        others: dict[str, Any] = {"indptr": grouped.indptr, "weight": queries.weight}
        if grouped is not queries:
            others["source"] = queries.group(np.arange(queries.n_docs))
        if grouped.clicks is not None:
            others |= {f"clicks_{name}": getattr(grouped.clicks, name) for name in CLICK_ARRAYS}
        others["position"] = grouped.position
        if queries.unretrieved is not None:
            others |= {f"unretrieved_{name}": each for name, each in queries.unretrieved._asdict().items()}
        for name, values in others.items():
            if values is not None:
                kind = np.dtype("<i8" if values.dtype.kind in "iu" else "<f8")
                arrays[name] = write_array(folder / f"{name}.npy", values.astype(kind, copy=False))
        MappedHeader(arrays, queries.features, queries.categories).write(folder)


def write_source(source: RowSource, path: StrPath) -> None:
    """Write the documents of a source to a folder of arrays on disk, block by block.

    Memory holds a few blocks, and some numbers for each run of consecutive rows of one query.
    """
    with write_folder_atomic(path) as folder:
        rows, runs = _RowFiles(folder), _QueryRuns()
        try:
            for block in source.read_blocks():
                runs.append(block, rows.rows)
                rows.append(block.X, block.y, block.docid, block.doc_weight)
            if not rows.rows:
                raise InputError("no documents; expected at least one")
            qid, indptr, weight, order = runs.finish(rows.rows)
            arrays = rows.finish(order)
        finally:
            rows.close()
        arrays |= _write_ids(folder, "qid", qid)
        arrays["indptr"] = write_array(folder / "indptr.npy", indptr)
        if weight is not None:
            arrays["weight"] = write_array(folder / "weight.npy", weight)
        if order is not None:
            arrays["source"] = _write_order(folder / "source.npy", order, rows.rows)
        MappedHeader(arrays, source.features, source.categories).write(folder)


class _RowFiles:
    """The files of all values by row: features, grades, document ids and document weights."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._files = {"X": RowFile(folder, "X", np.float32)}
        self._docid = IdFiles(folder, "docid")

    @property
    def rows(self) -> int:
        """The number of rows that were appended."""
        return self._files["X"].rows

    def append(self, X: Floats, y: Floats | None, docid: NDArray[Any] | None, doc_weight: Floats | None) -> None:
        """Append rows; either all rows have grades and weights or none."""
        given = {"y": y, "doc_weight": doc_weight}
        if self.rows == 0:
            self._files |= {name: RowFile(self._folder, name, np.float64) for name in given if given[name] is not None}
        if (given.keys() - {name for name in given if given[name] is None}) != self._files.keys() - {"X"}:
            raise InputError("some documents have grades or weights and others have none; expected all or none")
        self._docid.append(docid, len(X))
        for name, values in given.items():
            if values is not None:
                self._files[name].append(values)
        self._files["X"].append(X)

    def finish(self, order: RunOrder | None) -> dict[str, ArrayFile]:
        """Complete the files, with the rows in another order if one is given, and return what they hold, by name."""
        finished = self._docid.finish(order)
        for name, file in self._files.items():
            kind, shape = ("<f4", (file.rows, file.width)) if name == "X" else ("<f8", (file.rows,))
            finished[name] = file.finish(order, np.dtype(kind), shape)
        return finished

    def close(self) -> None:
        """Close all files, complete or not."""
        for file in self._files.values():
            file.close()
        self._docid.close()


class _QueryRuns:
    """The runs of consecutive rows of one query: their first rows, query ids and query weights."""

    def __init__(self) -> None:
        self._starts: list[Ints] = []
        self._qid: list[NDArray[Any]] = []
        self._weight: list[Floats] = []

    def append(self, block: RowBlock, row: int) -> None:
        """Take the runs of a block, whose first row has this number."""
        starts = find_runs(block.qid)
        if block.weight is not None:  # a query with several weights is found when its runs are put together
            starts = np.union1d(starts, find_runs(block.weight))
            self._weight.append(block.weight[starts])
        self._starts.append(starts + row)
        self._qid.append(block.qid[starts])

    def finish(self, rows: int) -> tuple[NDArray[Any], Ints, Floats | None, RunOrder | None]:
        """Return the query ids, their ``indptr`` and weights, and the order that makes the rows of a query adjacent."""
        starts, ids = np.concatenate(self._starts), join_ids(self._qid)
        qid, query = number_queries(ids)
        sizes = np.diff(starts, append=rows)
        indptr = np.concatenate([[0], np.cumsum(np.bincount(query, sizes))]).astype(np.int64)
        runs = np.argsort(query, kind="stable")
        weight = None
        if self._weight:
            n_runs = np.concatenate([[0], np.cumsum(np.bincount(query))])
            weight = fold_query_weights(np.concatenate(self._weight)[runs], n_runs, qid)
        is_grouped = bool((np.diff(query) >= 0).all())  # a query may go on in the next block
        return qid, indptr, weight, None if is_grouped else RunOrder(starts[runs], sizes[runs])


def _write_ids(folder: Path, name: str, ids: NDArray[Any]) -> dict[str, ArrayFile]:
    """Write the ids of queries and return the files that hold them, by name."""
    files = IdFiles(folder, name)
    try:
        files.append(ids, len(ids))
        return files.finish(None)
    finally:
        files.close()


def _write_order(path: Path, order: RunOrder, rows: int) -> ArrayFile:
    """Write the place of each row before it was put into order."""
    with ArrayWriter(path) as writer:
        for piece in order.read_pieces(_PIECE):
            writer.append(piece)
        return writer.finish(np.dtype("<i8"), (rows,))
