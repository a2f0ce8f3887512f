"""The scan of all rows, block by block: summaries of the columns, and a hash of each row."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import accumulate
from operator import attrgetter

import numpy as np

from rankwright.analysis.inspection.document_sample import DocumentSample
from rankwright.basics.array_types import Floats, Ints
from rankwright.data.grouping import query_ranges
from rankwright.data.queries import Categories, Queries
from rankwright.kernels.data.column_summaries import ColumnSummaries, summarise_columns
from rankwright.kernels.data.row_keys import compute_row_keys
from rankwright.runtime.backends import Backend, choose_nearest

_PART = 1 << 22  # values that are read at a time by each thread: 16 MiB


@dataclass(frozen=True, slots=True, eq=False)
class RowScan:
    """The result of one pass over the rows: summaries of the columns and, by row, a hash of the features."""

    n_docs: int
    n_queries: int
    columns: ColumnSummaries
    row_keys: Ints


def scan_rows(queries: Queries, backend: Backend) -> RowScan:
    """Return the scan of all rows of grouped queries, which may be a mapped file that is larger than memory."""
    near = choose_nearest(queries, backend)
    shards = near.scatter(queries)
    sizes = near.gather(attrgetter("n_docs"), shards)
    found = near.gather(_scan_part, shards, near.distribute(list(accumulate(sizes, initial=0))[:-1]))
    columns = _add_summaries([columns for columns, _ in found])
    return RowScan(queries.n_docs, len(queries), columns, np.concatenate([keys for _, keys in found]))


def _scan_part(queries: Queries, first_row: int) -> tuple[ColumnSummaries, Ints]:
    """Return the summaries and the hashes of the rows of a part, which begins at a row of the data set."""
    found = []
    for start, stop in query_ranges(queries.indptr, max(queries.n_docs * queries.n_features // _PART, 1)):
        rows = slice(int(queries.indptr[start]), int(queries.indptr[stop]))
        indptr = queries.indptr[start : stop + 1] - rows.start
        found.append(_scan_block(np.asarray(queries.X)[rows], indptr, first_row + rows.start))
    return _add_summaries([columns for columns, _ in found]), np.concatenate([keys for _, keys in found])


def scan_sample(sample: DocumentSample) -> RowScan:
    """Return the scan of the sampled rows."""
    rows = np.ascontiguousarray(sample.columns.T)
    columns, keys = _scan_block(rows, sample.indptr, 0)
    return RowScan(len(rows), len(sample.queries), _add_summaries([columns]), keys)


def compute_recoded_keys(queries: Queries, categories: Categories, backend: Backend) -> Ints:
    """Return the hashes of rows whose categories are numbered as in ``categories``; values not there come after."""
    tables = {}
    for column, (known, own) in enumerate(zip(categories, queries.categories or (), strict=True)):
        if known is not None and own is not None:
            numbers = {value: number for number, value in enumerate(dict.fromkeys((*known, *own)))}
            tables[column] = np.array([numbers[value] for value in own], np.float32)

    near = choose_nearest(queries, backend)
    keys: Ints = near.concat(_compute_part_keys, near.scatter(queries), tables)
    return keys


def _compute_part_keys(queries: Queries, tables: Mapping[int, Floats]) -> Ints:
    """Return the hashes of the rows of a part whose categories have other numbers: those in the tables, by column."""
    found, step = [], max(_PART // queries.n_features, 1)
    for start in range(0, queries.n_docs, step):
        block = np.array(queries.X[start : start + step], dtype=np.float32)
        for column, table in tables.items():
            codes = block[:, column]
            present = ~np.isnan(codes)
            codes[present] = table[codes[present].astype(np.int64)]
        found.append(compute_feature_keys(block))
    return np.concatenate(found)


def compute_feature_keys(X: Floats) -> Ints:
    """Return a hash of the features of each row: equal rows have equal hashes."""
    rows = np.ascontiguousarray(X, dtype=np.float32)
    keys: Ints = compute_row_keys(rows.view(np.uint32), np.zeros(len(rows), np.uint64))
    return keys


def _scan_block(X: Floats, indptr: Ints, first_row: int) -> tuple[ColumnSummaries, Ints]:
    """Return the summaries and the hashes of rows of whole queries."""
    rows = np.ascontiguousarray(X, dtype=np.float32)
    return summarise_columns(rows, rows.view(np.uint32), indptr, first_row), compute_feature_keys(rows)


def _add_summaries(parts: list[ColumnSummaries]) -> ColumnSummaries:
    """Return the summaries of all rows, given those of blocks of rows."""

    def add(name: str) -> Ints:
        total: Ints = np.sum([getattr(part, name) for part in parts], axis=0, dtype=np.int64)
        return total

    return ColumnSummaries(
        add("missing"),
        add("zeros"),
        add("fractions"),
        np.min([part.low for part in parts], axis=0),
        np.max([part.high for part in parts], axis=0),
        add("varying"),
        np.sum([part.keys for part in parts], axis=0, dtype=np.uint64),
    )
