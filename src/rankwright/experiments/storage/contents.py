"""The contents of a store, read whole and checked: what is intact, and what is damaged."""

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
    content_checksum,
    fold_checksum,
    row_checksum,
    total_checksum,
)

# what SQLite raises for a damaged file; a message with damaged text cannot be decoded
DAMAGE = (sqlite3.Error, UnicodeDecodeError)
_MOST_ROWS = 1_000_000  # that are looked for one by one where a table cannot be read as a whole

Trial = dict[str, Any]  # a row of the table trials, by column


class StoredFold(NamedTuple):
    """The test queries of a fold, a row each: qid, n_docs, n_pairs, weight; and the text of its documents' table."""

    digest: str
    documents: str | None
    queries: list[tuple[Any, ...]]


class StoredResult(NamedTuple):
    """What is kept of a chosen trial: its values by measure and query, the texts and checksums of its artefacts."""

    method: str
    fold: int
    seed: int
    values: Mapping[str, Floats]
    artefacts: Mapping[str, tuple[int, str | None]]  # the text of a model is None where it was not read


@dataclass(frozen=True, slots=True)
class Contents:
    """Everything in a store that is intact, and a line for everything that is not."""

    meta: dict[str, Any] = field(default_factory=dict)
    methods: dict[str, str] = field(default_factory=dict)
    folds: dict[int, StoredFold] = field(default_factory=dict)
    trials: dict[int, Trial] = field(default_factory=dict)
    chosen: dict[int, StoredResult] = field(default_factory=dict)  # by trial
    lost: set[tuple[str, int, int]] = field(default_factory=set)  # method, fold, seed: the chosen trial is damaged
    damage: list[str] = field(default_factory=list)

    @property
    def is_empty(self) -> bool:
        """Whether nothing at all is intact."""
        return not (self.meta or self.methods or self.folds or self.trials or self.chosen)


def read_contents(connection: sqlite3.Connection, *, models: bool) -> Contents:
    """Read and check everything; damage is noted and raises nothing. ``models`` says whether to read models, too."""
    reader, found = _Reader(connection), Contents()
    sums: list[int] = []
    for key, value, checksum in reader.checked(found, "meta", "key, value", "rowid"):
        found.meta[key] = json.loads(value)
        sums += [checksum] if key != TOTAL else []
    for name, definition, checksum in reader.checked(found, "methods", "name, definition", "rowid"):
        found.methods[name] = definition
        sums.append(checksum)
    for *row, checksum in reader.checked(found, "trials", ", ".join(TRIAL_COLUMNS), "rowid"):
        found.trials[row[0]] = dict(zip(TRIAL_COLUMNS, row, strict=True))
        sums.append(checksum)
    sums += _read_folds(reader, found) + _read_chosen(reader, found, models)
    if not found.damage and found.meta.get(TOTAL) != total_checksum(sums):
        found.damage.append("rows are missing")
    return found


def check_total(connection: sqlite3.Connection) -> bool:
    """Return whether no row is missing; raise what SQLite raises."""
    sums = [row[0] for table in SUMMED for row in connection.execute(f"SELECT checksum FROM {table} NOT INDEXED")]
    rows = connection.execute("SELECT value, checksum FROM meta NOT INDEXED WHERE key = ?", (TOTAL,)).fetchall()
    if len(rows) != 1 or not all(isinstance(value, int) for value in sums):
        return False
    [(value, checksum)] = rows
    expected = str(total_checksum([*sums, -checksum]))
    return bool(value == expected and checksum == _checksum_of("meta", (TOTAL, value)))


def _read_folds(reader: _Reader, found: Contents) -> list[int]:
    rows = list(reader.rows(found, "folds", "fold, digest, documents, checksum", "rowid", reader.ids()))
    queries: dict[int, list[tuple[Any, ...]]] = {}
    columns = "fold, query, qid, n_docs, n_pairs, weight"
    for fold, query, *row in reader.rows(found, "queries", columns, "fold", [row[0] for row in rows]):
        if query == len(queries.setdefault(fold, [])):
            queries[fold].append(tuple(row))
        else:
            queries[fold] = [()]  # which no checksum fits
    sums = []
    for fold, digest, documents, checksum in rows:
        own = queries.get(fold, [])
        if checksum == _try(fold_checksum, fold, digest, documents, own):
            found.folds[fold] = StoredFold(digest, documents, own)
            sums.append(checksum)
        else:
            found.damage.append(f"the queries of fold {fold}")
    return sums


def _read_chosen(reader: _Reader, found: Contents, models: bool) -> list[int]:
    sums, rows = [], []
    for *row, checksum in reader.checked(found, "chosen", "method, fold, seed, trial, content", "rowid"):
        rows.append(row)
        sums.append(checksum)
    trials = [row[3] for row in rows]
    values: dict[int, dict[str, list[Any]]] = {trial: {} for trial in trials}
    for trial, query, measure, value in reader.rows(
        found, "per_query", "trial, query, measure, value", "trial", trials
    ):
        if trial in values:
            column = values[trial].setdefault(measure, [])
            column.append(value if query == len(column) else "in another order")
    artefacts: dict[int, dict[str, tuple[int, Any]]] = {trial: {} for trial in trials}
    content = "content" if models else f"CASE WHEN name <> '{MODEL}' THEN content END"
    for trial, name, checksum, text in reader.rows(
        found, "artefacts", f"trial, name, checksum, {content}", "trial", trials
    ):
        unread = name == MODEL and not models
        if trial in artefacts and (unread or checksum == _checksum_of("artefacts", (trial, name, text))):
            artefacts[trial][name] = (checksum, text)
    for method, fold, seed, trial, content_sum in rows:
        arrays, own = _arrays(values[trial]), artefacts[trial]
        checksums = {name: checksum for name, (checksum, _) in own.items()}
        whole = arrays is not None and content_sum == _try(content_checksum, trial, arrays, checksums)
        if whole and arrays is not None and trial in found.trials:
            found.chosen[trial] = StoredResult(method, fold, seed, arrays, own)
        else:
            found.lost.add((method, fold, seed))
            found.damage.append(f"the test values of {method}, fold {fold}, seed {seed}")
            found.trials.pop(trial, None)
    return sums


def _arrays(values: Mapping[str, list[Any]]) -> dict[str, Floats] | None:
    """Return columns as arrays, NULL as NaN; None where they hold something else than numbers."""
    try:
        return {name: np.array(column, dtype=np.float64) for name, column in values.items()}
    except (TypeError, ValueError):
        return None


def _checksum_of(table: str, values: Iterable[Any]) -> int | None:
    return _try(row_checksum, table, *values)


def _try(function: Any, *arguments: Any) -> int | None:
    """Return a checksum; None for values that no row that was written has, such as bytes."""
    try:
        return int(function(*arguments))
    except (TypeError, ValueError):
        return None


class _Reader:
    """Reads tables as a whole or, where that fails, row by row."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def ids(self) -> range:
        """Return the row numbers that a table of this file may have."""
        try:
            [n_pages] = self._connection.execute("PRAGMA page_count").fetchone()
        except DAMAGE:
            n_pages = _MOST_ROWS
        return range(min(n_pages * 100, _MOST_ROWS))

    def rows(self, found: Contents, table: str, columns: str, key: str, keys: Iterable[Any]) -> Iterator[Any]:
        """Yield rows; where the table cannot be read as a whole, those that are found by their keys."""
        query = f"SELECT {columns} FROM {table}"
        try:
            order = "" if key == "rowid" else " ORDER BY " + _ORDER[table]
            yield from self._connection.execute(f"{query} NOT INDEXED{order}").fetchall()
            return
        except DAMAGE:
            found.damage.append(f"the table {table}")
        order = "" if key == "rowid" else " ORDER BY " + _ORDER[table]
        for value in keys:
            try:
                rows = self._connection.execute(f"{query} WHERE {key} = ?{order}", (value,)).fetchall()
            except (*DAMAGE, OverflowError):
                continue
            yield from rows

    def checked(self, found: Contents, table: str, columns: str, key: str) -> Iterator[Any]:
        """Yield the rows whose checksum, the last column, is right."""
        for row in self.rows(found, table, f"{columns}, checksum", key, self.ids()):
            if row[-1] == _checksum_of(table, row[:-1]):
                yield row
            else:
                found.damage.append(f"a row of {table}")


_ORDER = {"queries": "fold, query", "per_query": "trial, measure, query", "artefacts": "trial, name"}
