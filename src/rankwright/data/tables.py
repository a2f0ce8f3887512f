"""Tables: CSV, Parquet, Arrow and JSON lines as sources of rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from rankwright.basics import progress
from rankwright.basics.array_types import Floats
from rankwright.basics.errors import InputError, NoDocumentsError
from rankwright.data.column_roles import ColumnRoles
from rankwright.data.queries import Categories, Queries
from rankwright.data.row_sources import RowBlock, RowSource, join_blocks
from rankwright.data.table_columns import TableColumns, check_same_columns, choose_columns, log_choice, suggest_column
from rankwright.data.table_files import TableFile
from rankwright.data.table_sizes import explain_lack_of_memory
from rankwright.data.table_values import BadCellError, collect_values, make_block
from rankwright.runtime.backends import Backend, Serial, resolve
from rankwright.runtime.process_limits import read_available_memory

_MAX_GROWTH = 8  # bytes of memory per byte of text: an empty cell takes one byte, and twice four in memory


class TableSource(RowSource):
    """The documents in one or several files of tables, a row each.

    Parameters
    ----------
    files : sequence of TableFile
        The files; their columns may be in different orders.
    roles : ColumnRoles
        The columns that have a role.
    features : sequence of str, optional
        The names of the features that a model or other documents have; by default those that ``roles`` says.
    categories : tuple, optional
        For each of ``features`` None or its values in the model, if it is categorical; other values are missing.
    owner : str
        What has these features, for messages.
    """

    def __init__(
        self,
        files: Sequence[TableFile],
        roles: ColumnRoles,
        features: Sequence[str] | None = None,
        categories: Categories | None = None,
        owner: str = "the model",
    ) -> None:
        self.files = files
        if features is not None:
            roles = _ask_for_features(files, roles, features, categories, owner)
        self.columns = _choose_same_columns(files, roles)
        self.features, self.has_grades = self.columns.features, self.columns.label is not None
        if features is None and self.columns.categorical:
            categories = self._collect_categories()
        self.categories = categories
        numbered = zip(self.features, categories or (), strict=False)
        self._numbers = {name: {v: i for i, v in enumerate(values)} for name, values in numbered if values is not None}
        if odd := self.columns.categorical - self._numbers.keys():
            where = f"{files[0].name}: the column {min(odd)!r}"
            raise InputError(f"{where} is categorical; {owner} has numbers. Write it as numbers")

    def _collect_categories(self) -> Categories:
        """Read the categorical columns of all files and return their values in the order of their texts."""
        chosen = tuple(name for name in self.columns.features if name in self.columns.categorical)
        columns = self.columns._replace(label=None, docid=None, weight=None, doc_weight=None, features=chosen)
        values: dict[str, set[str]] = {name: set() for name in chosen}
        for file in self.files:
            for table in file.read_blocks(columns):
                for name in chosen:
                    values[name] |= collect_values(table, name)
        return tuple(tuple(sorted(values[name])) if name in values else None for name in self.columns.features)

    def read(self, backend: Backend | None = None) -> Queries:
        """Read all files as one data set."""
        workers = resolve(backend)
        tables = self._load_unsized_files()
        sizes = [
            file.n_rows or 0 if found is None else sum(table.num_rows for table in found)
            for file, found in zip(self.files, tables, strict=True)
        ]
        X = np.empty((sum(sizes), len(self.columns.features)), np.float32)
        blocks, start = [], 0
        for i, file in enumerate(progress.track(self.files, "reading", len(self.files))):
            first = start
            for table in tables[i] or file.read(self.columns):
                part = X[start : start + table.num_rows]
                blocks.append(self._make_block(file, table, start - first, part, workers))
                start += table.num_rows
            if start - first != sizes[i]:
                raise InputError(f"{file.name}: damaged: {start - first} rows; expected {sizes[i]}, as it says itself")
            if start == first:
                raise NoDocumentsError(f"{file.name}: no rows; expected at least one document")
            tables[i] = None
        return join_blocks(blocks, X, self.features, self.categories)

    def _load_unsized_files(self) -> list[list[Any] | None]:
        """Return the tables of files that do not say their number of rows; raise InputError if all are too large.

        They are too large if the features of all files do not fit into the memory, as far as the rows are known before
        a file is read; or while it is read, where they are not.
        """
        free = read_available_memory()
        rows = sum(file.n_rows or 0 for file in self.files)
        self._check_memory(self.files[0], rows, free)
        tables: list[list[Any] | None] = []
        for file in self.files:
            if file.n_rows is not None:
                tables.append(None)
                continue
            if free is not None and _MAX_GROWTH * file.text_size > free:
                self._check_memory(file, rows + (file.count_lines() or 0), free)
            found = []
            for table in file.read(self.columns):
                found.append(table)
                rows += table.num_rows
                self._check_memory(file, rows, free)
            tables.append(found)
        return tables

    def _check_memory(self, file: TableFile, rows: int, free: int | None) -> None:
        """Raise InputError if so many rows do not fit into the memory that was free before reading."""
        if problem := explain_lack_of_memory(rows, len(self.columns.features), free):
            raise InputError(f"{file.name}: {problem}")

    def read_blocks(self) -> Iterator[RowBlock]:
        """Yield the rows of all files in blocks."""
        for file in self.files:
            row = 0
            for table in file.read_blocks(self.columns):
                X = np.empty((table.num_rows, len(self.columns.features)), np.float32)
                yield self._make_block(file, table, row, X, Serial())
                row += len(X)
            if file.n_rows is not None and row != file.n_rows:
                raise InputError(f"{file.name}: damaged: {row} rows; expected {file.n_rows}, as it says itself")
            if row == 0:
                raise NoDocumentsError(f"{file.name}: no rows; expected at least one document")

    def _make_block(self, file: TableFile, table: Any, row: int, X: Floats, backend: Backend) -> RowBlock:
        """Convert rows of a file, which begin at ``row``; raise InputError with the place of a bad value."""
        try:
            return make_block(table, self.columns, self._numbers, X, backend, typed=file.has_types)
        except BadCellError as error:
            raise InputError(f"{file.locate(row + error.row)}: {error.problem}") from None


def _ask_for_features(
    files: Sequence[TableFile], roles: ColumnRoles, features: Sequence[str], categories: Categories | None, owner: str
) -> ColumnRoles:
    """Return the roles for the features of a model or of other documents; raise InputError if a file lacks one."""
    for file in files:
        missing = [name for name in features if name not in file.kinds]
        if missing:
            hint = suggest_column(missing[0], list(file.kinds))
            raise InputError(f"{file.name}: no column {missing[0]!r}, a feature of {owner}; {hint}")
    known = categories or (None,) * len(features)
    return roles.with_features(features, [name for name, values in zip(features, known, strict=True) if values])


def _choose_same_columns(files: Sequence[TableFile], roles: ColumnRoles) -> TableColumns:
    """Return the columns of all files by role; raise InputError if they differ."""
    first = files[0]
    columns = choose_columns(first.kinds, roles, first.name)
    for file in files[1:]:
        check_same_columns(columns, choose_columns(file.kinds, roles, file.name), file.name, first.name)
        for name in columns.ids if first.has_types else ():
            ours, theirs = first.kinds[name], file.kinds[name]
            if (ours.kind == "number") != (theirs.kind == "number"):
                found = f"the column {name!r} is {theirs.name}, and {ours.name} in {first.name}"
                raise InputError(f'{file.name}: {found}; expected ids of one kind, because 1 and "1" are not the same')
    log_choice(columns, roles, first.name)
    return columns
