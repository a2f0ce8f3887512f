"""The store: an experiment's results in one SQLite file, a transaction per finished trial.

Whatever happens to the process, the file holds whole trials. Of trials that compete (one method, fold and seed) only
the best so far keeps its test values, model and artefacts: they are replaced in the transaction that brings a better
one, so what is in the file at the end does not depend on the order in which trials finished, or on interruptions.
One process writes at a time; any number may read. Everything has a checksum, so that damage is noticed.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np

from rankwright.basics.array_types import Floats
from rankwright.basics.errors import InputError
from rankwright.data.feature_numbers import columns_to_numbers
from rankwright.experiments.storage.contents import (
    DAMAGE,
    Contents,
    StoredFold,
    StoredResult,
    Trial,
    check_total,
    read_contents,
)
from rankwright.experiments.storage.damage import damaged_store, has_schema
from rankwright.experiments.storage.encoding import encode, number
from rankwright.experiments.storage.locking import connected, explained, is_damage, wait_for
from rankwright.experiments.storage.schema import (
    FILE,
    FORMAT,
    MODEL,
    PAGE,
    SCHEMA,
    TOTAL,
    TRIAL_COLUMNS,
    VERSION,
    content_checksum,
    fold_checksum,
    row_checksum,
    total_checksum,
)
from rankwright.experiments.trials import FoldQueries, Preference, TestedModel, TrialKey, TrialResult


class Store:
    """The results of an experiment. ``Store.writing`` and ``Store.reading`` open one."""

    def __init__(self, connection: sqlite3.Connection, path: Path) -> None:
        self._connection = connection
        self.path = path
        self._total = 0  # of all checksums

    @classmethod
    @contextmanager
    def writing(cls, path: Path) -> Iterator[Store]:
        """Open a file for writing, and create it if there is none; raise DamagedStore if it is damaged."""
        with connected(path) as connection:
            store = cls(connection, path)
            with store._checked("cannot be written"):
                wait_for(path, lambda: connection.execute("PRAGMA journal_mode = TRUNCATE"))
                connection.execute("PRAGMA synchronous = FULL")
                connection.execute("PRAGMA foreign_keys = ON")
                if not connection.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone():
                    store._create()
                store._check_format()
                if connection.execute("PRAGMA integrity_check(1)").fetchone() != ("ok",):
                    raise damaged_store(path)
            store._total = store.contents(models=True).meta[TOTAL]
            yield store

    @classmethod
    @contextmanager
    def reading(cls, folder: Path) -> Iterator[Store]:
        """Open the store of a folder for reading; what is read is of one moment, whatever is written meanwhile."""
        path = folder / FILE
        if not path.is_file():
            raise InputError(f"{folder}: no results; expected the folder of an experiment, with {FILE}")
        # not read-only: a journal that a killed process left has to be rolled back
        with connected(path) as connection:
            store = cls(connection, path)
            with store._checked("cannot be read"):
                connection.execute("BEGIN")
                wait_for(path, lambda: connection.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone())
                store._check_format()
            yield store

    def _create(self) -> None:
        self._connection.execute(f"PRAGMA page_size = {PAGE}")
        self._connection.executescript(f"BEGIN IMMEDIATE; {SCHEMA}")
        for key, value in (("format", FORMAT), ("version", VERSION)):
            self.write_meta(key, value)
        self._write_total()
        self._connection.execute("COMMIT")

    def _check_format(self) -> None:
        if not self._connection.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone():
            raise InputError(f"{self.path.parent}: the experiment has not begun")
        if has_schema(self._connection):
            return
        with suppress(sqlite3.Error):
            meta = dict(self._connection.execute("SELECT key, value FROM meta"))
            version = str(meta.get("version"))
            if meta.get("format") == json.dumps(FORMAT) and version.isdecimal() and int(version) != VERSION:
                raise InputError(
                    f"{self.path}: version {version}; this release reads version {VERSION}: choose another folder"
                )
        raise damaged_store(self.path)

    @contextmanager
    def _checked(self, then: str) -> Iterator[None]:
        """Raise DamagedStore for errors that mean damage, and InputError for others of the database."""
        try:
            yield
        except DAMAGE as error:
            if is_damage(error):
                raise damaged_store(self.path) from None
            with explained(self.path, then):
                raise

    def contents(self, *, models: bool = False) -> Contents:
        """Read everything; raise DamagedStore if anything is damaged."""
        with self._checked("cannot be read"):
            found = read_contents(self._connection, models=models)
        if found.damage:
            raise damaged_store(self.path)
        return found

    def chosen(self) -> dict[tuple[str, int, int], int]:
        """Return the chosen trial of every method, fold and seed that has one."""
        with self._checked("cannot be read"):
            rows = self._connection.execute(
                "SELECT method, fold, seed, trial, content, checksum FROM chosen NOT INDEXED ORDER BY trial"
            ).fetchall()
            intact = check_total(self._connection) and all(row[-1] == row_checksum("chosen", *row[:-1]) for row in rows)
        if not intact:
            raise damaged_store(self.path)
        return {(method, fold, seed): trial for method, fold, seed, trial, *_ in rows}

    def model(self, trial: int) -> str:
        """Return the text of a chosen trial's model."""
        with self._checked("cannot be read"):
            row = self._connection.execute(
                "SELECT checksum, content FROM artefacts WHERE trial = ? AND name = ?", (trial, MODEL)
            ).fetchone()
        if row is None or row[0] != row_checksum("artefacts", trial, MODEL, row[1]):
            raise damaged_store(self.path)
        return str(row[1])

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Write all or nothing of what is written inside."""
        total = self._total
        with explained(self.path, "every trial that finished before is kept"):
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
        row = (TOTAL, value, row_checksum("meta", TOTAL, value))
        self._connection.execute("INSERT OR REPLACE INTO meta VALUES (?, ?, ?)", row)

    def _insert(self, table: str, columns: Iterable[str], values: tuple[Any, ...], checksum: int | None = None) -> None:
        """Insert a row and its checksum."""
        checksum = row_checksum(table, *values) if checksum is None else checksum
        names = (*columns, "checksum")
        marks = ", ".join("?" * len(names))
        self._connection.execute(f"INSERT INTO {table} ({', '.join(names)}) VALUES ({marks})", (*values, checksum))
        self._total = total_checksum((self._total, checksum))

    def _delete(self, table: str, where: str, values: tuple[Any, ...]) -> None:
        """Delete rows."""
        sums = [row[0] for row in self.rows(f"SELECT checksum FROM {table} WHERE {where}", values)]
        self._connection.execute(f"DELETE FROM {table} WHERE {where}", values)
        self._total = total_checksum((self._total, -sum(sums)))

    def write_meta(self, key: str, value: Any) -> None:
        """Write down something about the experiment as a whole; inside a transaction."""
        self._delete("meta", "key = ?", (key,))
        self._insert("meta", ("key", "value"), (key, json.dumps(value)))

    def meta(self, key: str) -> Any:
        """Return what was written down, or None."""
        row = self.rows("SELECT value FROM meta WHERE key = ?", (key,))
        return json.loads(row[0][0]) if row else None

    def check_method(self, name: str, definition: Any) -> None:
        """Refuse a method that was another one when it was run."""
        text = json.dumps(definition, sort_keys=True)
        before = self.rows("SELECT definition FROM methods WHERE name = ?", (name,))
        if before and before[0][0] != text and any(key.method == name for key in self.finished()):
            raise InputError(
                f"{self.path.parent}: the method {name!r} was {before[0][0]} and is now {text}: give it another name, "
                "or choose another folder"
            )

    def write_method(self, name: str, definition: Any) -> None:
        """Write down a method; what failed of another one of that name is forgotten. Inside a transaction."""
        text = json.dumps(definition, sort_keys=True)
        if self.rows("SELECT 1 FROM methods WHERE name = ? AND definition <> ?", (name, text)):
            self._delete("trials", "method = ?", (name,))
        self._delete("methods", "name = ?", (name,))
        self._insert("methods", ("name", "definition"), (name, text))

    def finished(self) -> dict[TrialKey, int]:
        """Return the trials that need not be run again, each with the checksum of its task."""
        rows = self.rows("SELECT method, fold, seed, candidate, task FROM trials WHERE status = 'done'")
        return {TrialKey(*row[:4]): row[4] for row in rows}

    def best(self) -> dict[tuple[str, int, int], Preference]:
        """Return the best of every group so far."""
        rows = self.rows(
            "SELECT t.method, t.fold, t.seed, t.candidate, t.valid FROM chosen JOIN trials t USING (trial)"
        )
        return {TrialKey(*row[:4]).group: TrialKey(*row[:4]).preference(row[4]) for row in rows}

    def digests(self) -> dict[int, str]:
        """Return the digest of each fold's data that trials were run on."""
        return dict(self.rows("SELECT DISTINCT fold, digest FROM trials WHERE status = 'done'"))

    def described(self) -> set[int]:
        """Return the folds whose queries are known."""
        return {row[0] for row in self.rows("SELECT fold FROM folds")}

    def add(
        self, key: TrialKey, params: Mapping[str, Any], task: int, found: TrialResult, measures: tuple[str, ...]
    ) -> None:
        """Keep a finished trial, in one transaction."""
        with self.transaction():
            self._check_digest(key.fold, found.digest)
            if found.queries is not None and key.fold not in self.described():
                self.describe(key.fold, found.digest, found.queries)
            numbers = (found.valid, found.seconds, found.predict_seconds, found.memory_start, found.memory_peak)
            texts = (found.digest, *map(number, numbers), "", found.warnings)
            trial = self._add_trial(key, params, "done", task, texts)
            before = self.best().get(key.group)
            if found.tested is not None and (before is None or key.preference(found.valid) > before):
                self._choose(trial, key, found.tested, measures)

    def fail(self, key: TrialKey, params: Mapping[str, Any], task: int, error: str) -> None:
        """Keep note of a trial that failed; it will be tried again."""
        with self.transaction():
            self._add_trial(key, params, "failed", task, ("", *(None,) * 5, error, ""))

    def forget(self, keys: Iterable[TrialKey]) -> None:
        """Delete trials, so that they are run again; inside a transaction."""
        for key in keys:
            where = "method = ? AND fold = ? AND seed = ? AND candidate = ?"
            for (trial,) in self.rows(f"SELECT trial FROM trials WHERE {where}", tuple(key)):
                self._unchoose(trial)
                self._delete("trials", "trial = ?", (trial,))

    def _add_trial(
        self, key: TrialKey, params: Mapping[str, Any], status: str, task: int, rest: tuple[Any, ...]
    ) -> int:
        where = "method = ? AND fold = ? AND seed = ? AND candidate = ?"
        known = self.rows(f"SELECT trial FROM trials WHERE {where}", tuple(key))
        self._delete("trials", where, tuple(key))  # one that failed
        [(unused,)] = self.rows("SELECT coalesce(max(trial), 0) + 1 FROM trials")
        trial: int = known[0][0] if known else unused
        self._insert(
            "trials", TRIAL_COLUMNS, (trial, *key, json.dumps(columns_to_numbers(params)), status, task, *rest)
        )
        return trial

    def _check_digest(self, fold: int, digest: str) -> None:
        for (known,) in self.rows("SELECT digest FROM folds WHERE fold = ?", (fold,)):
            if known != digest:
                raise InputError(f"{self.path.parent}: the data of fold {fold} changed since the experiment began")

    def describe(self, fold: int, digest: str, described: FoldQueries) -> None:
        """Write down the queries of a fold; inside a transaction."""
        documents = None if described.documents is None else encode(described.documents)
        columns = (described.queries[name].tolist() for name in ("qid", "n_docs", "n_pairs", "weight"))
        self._write_fold(fold, StoredFold(digest, documents, list(zip(*columns, strict=True))))

    def _write_fold(self, fold: int, content: StoredFold) -> None:
        checksum = fold_checksum(fold, *content)
        self._insert("folds", ("fold", "digest", "documents"), (fold, content.digest, content.documents), checksum)
        rows = [(fold, i, *row) for i, row in enumerate(content.queries)]
        self._connection.executemany("INSERT INTO queries VALUES (?, ?, ?, ?, ?, ?)", rows)

    def _choose(self, trial: int, key: TrialKey, tested: TestedModel, measures: tuple[str, ...]) -> None:
        """Put a trial in the place of the best so far."""
        for (loser,) in self.rows("SELECT trial FROM chosen WHERE method = ? AND fold = ? AND seed = ?", key.group):
            self._unchoose(loser)
        texts = {MODEL: tested.model} | {name: encode(table) for name, table in tested.tables.items()}
        artefacts = {name: (row_checksum("artefacts", trial, name, text), text) for name, text in texts.items()}
        values = {name: _canonical(row) for name, row in zip(measures, tested.values, strict=True)}
        self._write_result(trial, StoredResult(*key.group, values, artefacts))

    def _unchoose(self, trial: int) -> None:
        for table in ("per_query", "artefacts"):
            self._connection.execute(f"DELETE FROM {table} WHERE trial = ?", (trial,))
        self._delete("chosen", "trial = ?", (trial,))

    def _write_result(self, trial: int, result: StoredResult) -> None:
        checksums = {name: checksum for name, (checksum, _) in result.artefacts.items()}
        content = content_checksum(trial, result.values, checksums)
        columns = ("method", "fold", "seed", "trial", "content")
        self._insert("chosen", columns, (result.method, result.fold, result.seed, trial, content))
        for measure, values in result.values.items():
            numbers = [number(value) for value in values] if np.isnan(values).any() else values.tolist()
            rows = [(trial, i, measure, value) for i, value in enumerate(numbers)]
            self._connection.executemany("INSERT INTO per_query VALUES (?, ?, ?, ?)", rows)
        artefacts = [(trial, name, checksum, text) for name, (checksum, text) in result.artefacts.items()]
        self._connection.executemany("INSERT INTO artefacts VALUES (?, ?, ?, ?)", artefacts)

    def copy(self, found: Contents, trials: Mapping[int, Trial]) -> None:
        """Write what was read from another store, and of its trials these, into this empty one."""
        with self.transaction():
            for key, value in found.meta.items():
                if key != TOTAL:
                    self.write_meta(key, value)
            for name, definition in found.methods.items():
                self._insert("methods", ("name", "definition"), (name, definition))
            for fold, content in found.folds.items():
                self._write_fold(fold, content)
            for row in trials.values():
                self._insert("trials", TRIAL_COLUMNS, tuple(row.values()))
            for trial, result in found.chosen.items():
                self._write_result(trial, result)

    def rows(self, query: str, parameters: tuple[Any, ...] = ()) -> list[Any]:
        """Return the rows of a query."""
        with explained(self.path, "cannot be read"):
            return self._connection.execute(query, parameters).fetchall()


def _canonical(values: Floats) -> Floats:
    """Return values as they come back from the file: one NaN, and no -0."""
    return np.where(np.isnan(values), np.nan, values) + 0.0
