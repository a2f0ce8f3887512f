"""Writing a store: an experiment's results in one SQLite file, a transaction per finished trial.

The file always holds whole trials, even if the process is killed. Of the trials of one method, fold and seed only the
best so far keeps its test values, model and tables: the transaction that adds a better one replaces them. The final
contents therefore do not depend on the order in which trials finish, or on interruptions. One process writes at a
time; any number may read. Every row has a checksum, so that damage is noticed.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Self

import numpy as np

from rankwright.basics.array_types import Floats
from rankwright.basics.errors import InputError
from rankwright.data.feature_numbers import convert_columns_to_numbers
from rankwright.experiments.storage.contents import StoreContents, StoredFold, StoredResult, Trial
from rankwright.experiments.storage.damage import make_damage_error
from rankwright.experiments.storage.locking import open_connection, translate_errors, wait_for
from rankwright.experiments.storage.schema import (
    FORMAT,
    MODEL,
    PAGE,
    QUERY_COLUMNS,
    SCHEMA,
    TOTAL,
    VERSION,
    as_number,
    checksum_content,
    checksum_fold,
    checksum_row,
    encode_table,
    sum_checksums,
)
from rankwright.experiments.storage.store_reader import StoreReader
from rankwright.experiments.trials import FoldQueries, Preference, TestedModel, TrialKey, TrialResult

_OF_KEY = "method = ? AND fold = ? AND seed = ? AND candidate = ?"


class StoreWriter(StoreReader):
    """The store of an experiment's results, open for reading and writing; :meth:`open` opens or creates one."""

    def __init__(self, connection: sqlite3.Connection, path: Path) -> None:
        super().__init__(connection, path)
        self._total = 0  # of all checksums

    @classmethod
    @contextmanager
    def open(cls, path: Path) -> Iterator[Self]:
        """Open a store for writing, or create it; raise DamagedStoreError if it is damaged."""
        with open_connection(path) as connection:
            store = cls(connection, path)
            with store._translate_damage("cannot be written"):
                wait_for(path, lambda: connection.execute("PRAGMA journal_mode = TRUNCATE"))
                connection.execute("PRAGMA synchronous = FULL")
                connection.execute("PRAGMA foreign_keys = ON")
                if not store._has_tables():
                    store._create()
                store._check_format()
                if connection.execute("PRAGMA integrity_check(1)").fetchone() != ("ok",):
                    raise make_damage_error(path)
            store._total = store.read_contents(models=True).meta[TOTAL]
            yield store

    def _create(self) -> None:
        self._connection.execute(f"PRAGMA page_size = {PAGE}")
        self._connection.executescript(f"BEGIN IMMEDIATE; {SCHEMA}")
        for key, value in (("format", FORMAT), ("version", VERSION)):
            self.write_meta(key, value)
        self._write_total()
        self._connection.execute("COMMIT")

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Write everything that is written inside, or nothing."""
        total = self._total
        with translate_errors(self.path, "every trial that finished before is kept"):
            wait_for(self.path, lambda: self._connection.execute("BEGIN IMMEDIATE"))
            try:
                yield
                self._write_total()
                wait_for(self.path, lambda: self._connection.execute("COMMIT"))
            except BaseException:
                self._total = total
                with suppress(sqlite3.Error):
                    self._connection.execute("ROLLBACK")
                raise

    def _write_total(self) -> None:
        value = json.dumps(self._total)
        row = (TOTAL, value, checksum_row("meta", TOTAL, value))
        self._connection.execute("INSERT OR REPLACE INTO meta VALUES (?, ?, ?)", row)

    def _insert(self, table: str, *values: Any, checksum: int | None = None) -> None:
        """Insert a row and its checksum, which is the last column."""
        checksum = checksum_row(table, *values) if checksum is None else checksum
        self._insert_rows(table, [(*values, checksum)])
        self._total = sum_checksums((self._total, checksum))

    def _insert_rows(self, table: str, rows: list[tuple[Any, ...]]) -> None:
        if rows:
            marks = ", ".join("?" * len(rows[0]))
            self._connection.executemany(f"INSERT INTO {table} VALUES ({marks})", rows)

    def _delete(self, table: str, where: str, values: tuple[Any, ...]) -> None:
        """Delete rows and subtract their checksums from the total."""
        sums = [row[0] for row in self.select(f"SELECT checksum FROM {table} WHERE {where}", values)]
        self._connection.execute(f"DELETE FROM {table} WHERE {where}", values)
        self._total = sum_checksums((self._total, -sum(sums)))

    def write_meta(self, key: str, value: Any) -> None:
        """Write a fact about the experiment as a whole; call it inside a transaction."""
        self._delete("meta", "key = ?", (key,))
        self._insert("meta", key, json.dumps(value))

    def read_meta(self, key: str) -> Any:
        """Return a fact about the experiment, or None."""
        row = self.select("SELECT value FROM meta WHERE key = ?", (key,))
        return json.loads(row[0][0]) if row else None

    def check_method(self, name: str, definition: Any) -> None:
        """Raise InputError if the method of this name was defined otherwise when it was run."""
        text = json.dumps(definition, sort_keys=True)
        before = self.select("SELECT definition FROM methods WHERE name = ?", (name,))
        if before and before[0][0] != text and any(key.method == name for key in self.read_finished_trials()):
            raise InputError(
                f"{self.path.parent}: the method {name!r} was {before[0][0]} and is now {text}: give it another name, "
                "or choose another folder"
            )

    def write_method(self, name: str, definition: Any) -> None:
        """Write a method and delete the failed trials of another one of that name; call it inside a transaction."""
        text = json.dumps(definition, sort_keys=True)
        if self.select("SELECT 1 FROM methods WHERE name = ? AND definition <> ?", (name, text)):
            self._delete("trials", "method = ?", (name,))
        self._delete("methods", "name = ?", (name,))
        self._insert("methods", name, text)

    def read_finished_trials(self) -> dict[TrialKey, int]:
        """Return the trials that need not be run again, each with the checksum of its task."""
        rows = self.select("SELECT method, fold, seed, candidate, task_checksum FROM trials WHERE status = 'done'")
        return {TrialKey(*row[:4]): row[4] for row in rows}

    def read_best(self) -> dict[tuple[str, int, int], Preference]:
        """Return how good the best trial so far is, by method, fold and seed."""
        rows = self.select(
            "SELECT t.method, t.fold, t.seed, t.candidate, t.valid FROM chosen JOIN trials t USING (trial)"
        )
        return {(key := TrialKey(*row[:4])).group: key.make_preference(row[4]) for row in rows}

    def read_digests(self) -> dict[int, str]:
        """Return the digest of the data of each fold that has finished trials."""
        return dict(self.select("SELECT DISTINCT fold, digest FROM trials WHERE status = 'done'"))

    def read_described_folds(self) -> set[int]:
        """Return the folds whose queries are in the store."""
        return {row[0] for row in self.select("SELECT fold FROM folds")}

    def add_result(
        self, key: TrialKey, params: Mapping[str, Any], task: int, result: TrialResult, measures: tuple[str, ...]
    ) -> None:
        """Write a finished trial, in one transaction; ``task`` is the checksum of its task."""
        with self.transaction():
            self._check_digest(key.fold, result.digest)
            if result.queries is not None and key.fold not in self.read_described_folds():
                self.write_fold_queries(key.fold, result.digest, result.queries)
            numbers = (result.valid, result.seconds, result.predict_seconds, result.memory_start, result.memory_peak)
            rest = (result.digest, *map(as_number, numbers), "", result.warnings)
            trial = self._insert_trial(key, params, "done", task, rest)
            best = self.read_best().get(key.group)
            if result.tested is not None and (best is None or key.make_preference(result.valid) > best):
                self._choose(trial, key, result.tested, measures)

    def add_failure(self, key: TrialKey, params: Mapping[str, Any], task: int, error: str) -> None:
        """Write a trial that failed, which the next run will run again."""
        with self.transaction():
            self._insert_trial(key, params, "failed", task, ("", *(None,) * 5, error, ""))

    def delete_trials(self, keys: Iterable[TrialKey]) -> None:
        """Delete trials, so that they are run again; call it inside a transaction."""
        for key in keys:
            for (trial,) in self.select(f"SELECT trial FROM trials WHERE {_OF_KEY}", tuple(key)):
                self._unchoose(trial)
                self._delete("trials", "trial = ?", (trial,))

    def _insert_trial(
        self, key: TrialKey, params: Mapping[str, Any], status: str, task: int, rest: tuple[Any, ...]
    ) -> int:
        known = self.select(f"SELECT trial FROM trials WHERE {_OF_KEY}", tuple(key))
        self._delete("trials", _OF_KEY, tuple(key))  # one that failed
        [(unused,)] = self.select("SELECT coalesce(max(trial), 0) + 1 FROM trials")
        trial: int = known[0][0] if known else unused
        self._insert("trials", trial, *key, json.dumps(convert_columns_to_numbers(params)), status, task, *rest)
        return trial

    def _check_digest(self, fold: int, digest: str) -> None:
        for (known,) in self.select("SELECT digest FROM folds WHERE fold = ?", (fold,)):
            if known != digest:
                raise InputError(f"{self.path.parent}: the data of fold {fold} changed since the experiment began")

    def write_fold_queries(self, fold: int, digest: str, described: FoldQueries) -> None:
        """Write the test queries of a fold; call it inside a transaction."""
        documents = None if described.documents is None else encode_table(described.documents)
        columns = (described.queries[name].tolist() for name in QUERY_COLUMNS)
        rows = list(zip(*columns, strict=True))
        self._write_fold(fold, StoredFold(digest, documents, encode_table(described.data), rows))

    def _write_fold(self, fold: int, content: StoredFold) -> None:
        texts = (content.digest, content.documents, content.data)
        self._insert("folds", fold, *texts, checksum=checksum_fold(fold, *content))
        self._insert_rows("queries", [(fold, i, *row) for i, row in enumerate(content.queries)])

    def _choose(self, trial: int, key: TrialKey, tested: TestedModel, measures: tuple[str, ...]) -> None:
        """Replace the best trial so far by this one."""
        for (previous,) in self.select(
            "SELECT trial FROM chosen WHERE method = ? AND fold = ? AND seed = ?", key.group
        ):
            self._unchoose(previous)
        texts = {MODEL: tested.model} | {name: encode_table(table) for name, table in tested.tables.items()}
        artefacts = {name: (checksum_row("artefacts", trial, name, text), text) for name, text in texts.items()}
        values = {name: _as_stored(row) for name, row in zip(measures, tested.values, strict=True)}
        self._write_result(trial, StoredResult(*key.group, values, artefacts))

    def _unchoose(self, trial: int) -> None:
        for table in ("per_query", "artefacts"):
            self._connection.execute(f"DELETE FROM {table} WHERE trial = ?", (trial,))
        self._delete("chosen", "trial = ?", (trial,))

    def _write_result(self, trial: int, result: StoredResult) -> None:
        checksums = {name: checksum for name, (checksum, _) in result.artefacts.items()}
        content = checksum_content(trial, result.values, checksums)
        self._insert("chosen", result.method, result.fold, result.seed, trial, content)
        for measure, values in result.values.items():
            numbers = [as_number(value) for value in values] if np.isnan(values).any() else values.tolist()
            self._insert_rows("per_query", [(trial, i, measure, value) for i, value in enumerate(numbers)])
        rows = [(trial, name, text, checksum) for name, (checksum, text) in result.artefacts.items()]
        self._insert_rows("artefacts", rows)

    def copy_contents(self, found: StoreContents, trials: Mapping[int, Trial]) -> None:
        """Write the contents of another store, with these of its trials, into this empty one."""
        with self.transaction():
            for key, value in found.meta.items():
                if key != TOTAL:
                    self.write_meta(key, value)
            for name, definition in found.methods.items():
                self._insert("methods", name, definition)
            for fold, content in found.folds.items():
                self._write_fold(fold, content)
            for row in trials.values():
                self._insert("trials", *row.values())
            for trial, result in found.chosen.items():
                self._write_result(trial, result)


def _as_stored(values: Floats) -> Floats:
    """Return test values as they will be read back from the store: with one kind of NaN, and 0 for -0."""
    return np.where(np.isnan(values), np.nan, values) + 0.0
