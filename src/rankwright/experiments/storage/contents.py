"""The contents of a store, read and checked: the intact rows, and a list of damages."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from rankwright.basics.array_types import Floats
from rankwright.experiments.storage.schema import (
    MODEL,
    SUMMED,
    TOTAL,
    TRIAL_COLUMNS,
    checksum_content,
    checksum_fold,
    checksum_row,
    sum_checksums,
)

# the errors of SQLite for a damaged file; UnicodeDecodeError where its message quotes damaged text
DAMAGE = (sqlite3.Error, UnicodeDecodeError)
_MOST_ROWS = 1_000_000  # that are searched one by one if a table cannot be read as a whole

Trial = dict[str, Any]  # a row of the table trials, by column


class StoredFold(NamedTuple):
    """The stored test queries of a fold, a row each (qid, n_docs, n_pairs, weight); its documents and facts as text."""

    digest: str
    documents: str | None
    data: str
    queries: list[tuple[Any, ...]]


class StoredResult(NamedTuple):
    """The stored result of a chosen trial: its test values by measure and query, its model and its tables."""

    method: str
    fold: int
    seed: int
    values: Mapping[str, Floats]
    artefacts: Mapping[str, tuple[int, str | None]]  # the text of a model is None where it was not read


@dataclass(frozen=True, slots=True)
class StoreContents:
    """The intact contents of an experiment's store, and a description of everything that is damaged."""

    meta: dict[str, Any] = field(default_factory=dict)
    methods: dict[str, str] = field(default_factory=dict)
    folds: dict[int, StoredFold] = field(default_factory=dict)
    trials: dict[int, Trial] = field(default_factory=dict)
    chosen: dict[int, StoredResult] = field(default_factory=dict)  # by trial
    lost: set[tuple[str, int, int]] = field(default_factory=set)  # method, fold, seed: the chosen trial is damaged
    damage: list[str] = field(default_factory=list)

    @property
    def is_empty(self) -> bool:
        """Whether nothing is intact."""
        return not (self.meta or self.methods or self.folds or self.trials or self.chosen)


def read_contents(connection: sqlite3.Connection, *, models: bool) -> StoreContents:
    """Read and check a whole store, with models if ``models``, and return what is intact and what is damaged."""
    found = StoreContents()
    reader = _TableReader(connection, found.damage)
    sums: list[int] = []
    for key, value, checksum in reader.read_checked("meta"):
        found.meta[key] = json.loads(value)
        sums += [checksum] if key != TOTAL else []
    for name, definition, checksum in reader.read_checked("methods"):
        found.methods[name] = definition
        sums.append(checksum)
    for *row, checksum in reader.read_checked("trials"):
        found.trials[row[0]] = dict(zip(TRIAL_COLUMNS, row, strict=True))
        sums.append(checksum)
    sums += _read_folds(reader, found) + _read_chosen(reader, found, models)
    if not found.damage and found.meta.get(TOTAL) != sum_checksums(sums):
        found.damage.append("rows are missing")
    return found


def check_total(connection: sqlite3.Connection) -> bool:
    """Return whether the store has all its rows, by the sum of their checksums; errors of SQLite are raised."""
    sums = [row[0] for table in SUMMED for row in connection.execute(f"SELECT checksum FROM {table} NOT INDEXED")]
    rows = connection.execute("SELECT value, checksum FROM meta NOT INDEXED WHERE key = ?", (TOTAL,)).fetchall()
    if len(rows) != 1 or not all(isinstance(value, int) for value in sums):
        return False
    [(value, checksum)] = rows
    expected = str(sum_checksums([*sums, -checksum]))
    return bool(value == expected and checksum == _try_checksum(checksum_row, "meta", TOTAL, value))


def _read_folds(reader: _TableReader, found: StoreContents) -> list[int]:
    """Add the intact folds of a store to ``found``, and the damaged ones to its damage; return the checksums."""
    rows = list(reader.read_rows("folds", reader.list_ids()))
    queries: dict[int, list[tuple[Any, ...]]] = {}
    for fold, query, *row in reader.read_rows("queries", [row[0] for row in rows]):
        if query == len(queries.setdefault(fold, [])):
            queries[fold].append(tuple(row))
        else:
            queries[fold] = [()]  # which fits no checksum
    sums = []
    for fold, digest, documents, data, checksum in rows:
        own = queries.get(fold, [])
        if checksum == _try_checksum(checksum_fold, fold, digest, documents, data, own):
            found.folds[fold] = StoredFold(digest, documents, data, own)
            sums.append(checksum)
        else:
            found.damage.append(f"the queries of fold {fold}")
    return sums


def _read_chosen(reader: _TableReader, found: StoreContents, models: bool) -> list[int]:
    """Add the intact chosen trials of a store to ``found``, the others to its damage; return the checksums."""
    rows = list(reader.read_checked("chosen"))
    trials = [row[3] for row in rows]
    values = _read_values(reader, trials)
    artefacts = _read_artefacts(reader, trials, models)
    for method, fold, seed, trial, content_checksum, _ in rows:
        arrays, own = _as_arrays(values[trial]), artefacts[trial]
        checksums = {name: checksum for name, (checksum, _) in own.items()}
        intact = arrays is not None and content_checksum == _try_checksum(checksum_content, trial, arrays, checksums)
        if intact and arrays is not None and trial in found.trials:
            found.chosen[trial] = StoredResult(method, fold, seed, arrays, own)
        else:
            found.lost.add((method, fold, seed))
            found.damage.append(f"the test values of {method}, fold {fold}, seed {seed}")
            found.trials.pop(trial, None)
    return [row[-1] for row in rows]


def _read_values(reader: _TableReader, trials: list[int]) -> dict[int, dict[str, list[Any]]]:
    """Return the test values of each trial, by measure, in the order of the queries."""
    values: dict[int, dict[str, list[Any]]] = {trial: {} for trial in trials}
    for trial, query, measure, value in reader.read_rows("per_query", trials):
        if trial in values:
            column = values[trial].setdefault(measure, [])
            column.append(value if query == len(column) else "in another order")
    return values


def _read_artefacts(
    reader: _TableReader, trials: list[int], models: bool
) -> dict[int, dict[str, tuple[int, str | None]]]:
    """Return the checksum and the text of each trial's model and tables, by trial and name."""
    artefacts: dict[int, dict[str, tuple[int, str | None]]] = {trial: {} for trial in trials}
    content = "content" if models else f"CASE WHEN name <> '{MODEL}' THEN content END"
    for trial, name, text, checksum in reader.read_rows("artefacts", trials, f"trial, name, {content}, checksum"):
        is_unread = name == MODEL and not models
        if trial in artefacts and (
            is_unread or checksum == _try_checksum(checksum_row, "artefacts", trial, name, text)
        ):
            artefacts[trial][name] = (checksum, text)
    return artefacts


def _as_arrays(values: Mapping[str, list[Any]]) -> dict[str, Floats] | None:
    """Return columns of numbers as arrays, with NaN for NULL; None if one holds anything but numbers."""
    try:
        return {name: np.array(column, dtype=np.float64) for name, column in values.items()}
    except (TypeError, ValueError):
        return None


def _try_checksum(function: Any, *arguments: Any) -> int | None:
    """Return the checksum that ``function`` computes; None for values that no intact row has, such as bytes."""
    try:
        return int(function(*arguments))
    except (TypeError, ValueError):
        return None


class _TableReader:
    """A reader of SQLite tables, row by row where a table is damaged, that adds to a list of damages."""

    def __init__(self, connection: sqlite3.Connection, damage: list[str]) -> None:
        self._connection, self._damage = connection, damage

    def list_ids(self) -> range:
        """Return the row numbers that a table of this file may have."""
        try:
            [n_pages] = self._connection.execute("PRAGMA page_count").fetchone()
        except DAMAGE:
            n_pages = _MOST_ROWS
        return range(min(n_pages * 100, _MOST_ROWS))

    def read_rows(self, table: str, keys: Iterable[Any], columns: str = "*") -> Iterator[Any]:
        """Yield rows; where the table cannot be read as a whole, those that are found by the keys."""
        query = f"SELECT {columns} FROM {table}"
        key, order = _ORDERS.get(table, ("rowid", ""))
        try:
            yield from self._connection.execute(f"{query} NOT INDEXED{order}").fetchall()
            return
        except DAMAGE:
            self._damage.append(f"the table {table}")
        for value in keys:
            try:
                rows = self._connection.execute(f"{query} WHERE {key} = ?{order}", (value,)).fetchall()
            except (*DAMAGE, OverflowError):
                continue
            yield from rows

    def read_checked(self, table: str) -> Iterator[Any]:
        """Yield the rows whose checksum, the last column, is right."""
        for row in self.read_rows(table, self.list_ids()):
            if row[-1] == _try_checksum(checksum_row, table, *row[:-1]):
                yield row
            else:
                self._damage.append(f"a row of {table}")


# The column by which rows are found, and the order in which they are read, of tables without row numbers.
_ORDERS = {
    "queries": ("fold", " ORDER BY fold, query"),
    "per_query": ("trial", " ORDER BY trial, measure, query"),
    "artefacts": ("trial", " ORDER BY trial, name"),
}
