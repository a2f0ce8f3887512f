"""The scan of all rows, block by block: summaries of the columns, and a hash of each row."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rankwright.analysis.inspection.document_sample import DocumentSample
from rankwright.basics.array_types import Floats, Ints
from rankwright.data.grouping import query_ranges
from rankwright.data.queries import Categories, Queries
from rankwright.kernels.data.column_summaries import ColumnSummaries, summarise_columns
from rankwright.kernels.data.row_keys import compute_row_keys
from rankwright.runtime.backends import Backend

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
    parts = query_ranges(queries.indptr, max(queries.n_docs * queries.n_features // _PART, 1))

    def scan(part: tuple[int, int]) -> tuple[ColumnSummaries, Ints]:
        start, stop = (int(queries.indptr[q]) for q in part)
        indptr = queries.indptr[part[0] : part[1] + 1] - start
        return _scan_block(np.asarray(queries.X)[start:stop], indptr, start)

    found = backend.each(scan, parts)
    columns = _add_summaries([columns for columns, _ in found])
    return RowScan(queries.n_docs, len(queries), columns, np.concatenate([keys for _, keys in found]))


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

    def compute(part: tuple[int, int]) -> Ints:
        block = np.array(queries.X[slice(*part)], dtype=np.float32)
        for column, table in tables.items():
            codes = block[:, column]
            present = ~np.isnan(codes)
            codes[present] = table[codes[present].astype(np.int64)]
        return compute_feature_keys(block)

    step = max(_PART // queries.n_features, 1)
    starts = range(0, queries.n_docs, step)
    return np.concatenate(backend.each(compute, [(start, min(start + step, queries.n_docs)) for start in starts]))


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
