"""The store: an experiment's results in one SQLite file, a transaction per finished trial.

Whatever happens to the process, the file holds whole trials. Of trials that compete (one method, fold and seed) only
the best so far keeps its test values, model and artefacts: they are replaced in the transaction that brings a better
one, so what is in the file at the end does not depend on the order in which trials finished, or on interruptions.
One process writes at a time; any number may read.
"""

from __future__ import annotations

import base64
import json
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np

from rankwright.errors import InputError
from rankwright.experiments.trials import Finished, Key, Standing, Tested, standing
from rankwright.feature_numbers import columns_to_numbers
from rankwright.results import Table

FILE, LOCK = "results.sqlite", "results.lock"
FORMAT, VERSION = "rankwright-experiment", 1
_LONG = 100  # a column of more numbers than this is stored as bytes
_PATIENCE = 600.0  # seconds to wait for another program that reads

_SCHEMA = f"""
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL);
INSERT INTO meta VALUES ('format', '"{FORMAT}"'), ('version', '{VERSION}');
CREATE TABLE methods (name TEXT PRIMARY KEY, definition TEXT NOT NULL);
CREATE TABLE folds (fold INTEGER PRIMARY KEY, digest TEXT NOT NULL, documents TEXT);
CREATE TABLE queries (
  fold INTEGER NOT NULL REFERENCES folds, query INTEGER NOT NULL, qid TEXT NOT NULL, n_docs INTEGER NOT NULL,
  n_pairs INTEGER NOT NULL, weight REAL NOT NULL, PRIMARY KEY (fold, query)) WITHOUT ROWID;
CREATE TABLE trials (
  trial INTEGER PRIMARY KEY, method TEXT NOT NULL, fold INTEGER NOT NULL, seed INTEGER NOT NULL,
  candidate INTEGER NOT NULL, params TEXT NOT NULL, status TEXT NOT NULL, valid REAL, seconds REAL,
  predict_seconds REAL, memory_start REAL, memory_peak REAL, error TEXT NOT NULL DEFAULT '',
  UNIQUE (method, fold, seed, candidate));
CREATE TABLE chosen (
  method TEXT NOT NULL, fold INTEGER NOT NULL, seed INTEGER NOT NULL, trial INTEGER NOT NULL REFERENCES trials,
  model TEXT NOT NULL, PRIMARY KEY (method, fold, seed));
CREATE TABLE per_query (
  trial INTEGER NOT NULL REFERENCES trials, query INTEGER NOT NULL, measure TEXT NOT NULL, value REAL,
  PRIMARY KEY (trial, measure, query)) WITHOUT ROWID;
CREATE TABLE artefacts (
  trial INTEGER NOT NULL REFERENCES trials, name TEXT NOT NULL, content TEXT NOT NULL,
  PRIMARY KEY (trial, name)) WITHOUT ROWID;
CREATE VIEW results AS
  SELECT c.method, c.fold, c.seed, q.qid, p.measure, p.value
  FROM chosen c JOIN per_query p USING (trial) JOIN queries q ON q.fold = c.fold AND q.query = p.query;
"""
_TRIAL = (
    "INSERT OR REPLACE INTO trials (trial, method, fold, seed, candidate, params, status, valid, seconds, "
    "predict_seconds, memory_start, memory_peak, error) VALUES "
    "((SELECT trial FROM trials WHERE method = ? AND fold = ? AND seed = ? AND candidate = ?),"
    " ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
)


class Store:
    """The results of an experiment in a folder. ``Store.opened`` writes, ``Store.reading`` reads."""

    def __init__(self, connection: sqlite3.Connection, path: Path) -> None:
        self._connection = connection
        self.path = path

    @classmethod
    @contextmanager
    def opened(cls, folder: Path) -> Iterator[Store]:
        """Open for writing, and create if there is none; refuse if another process is writing."""
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except FileExistsError:
            raise InputError(f"{folder}: not a folder; expected one for the results") from None
        path = folder / FILE
        with _locked(folder), _connected(path) as connection:
            store = cls(connection, path)
            with _explained(path, "cannot be written"):
                connection.execute("PRAGMA journal_mode = TRUNCATE")
                connection.execute("PRAGMA synchronous = FULL")
                connection.execute("PRAGMA foreign_keys = ON")
                if not connection.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone():
                    connection.executescript(f"BEGIN IMMEDIATE; {_SCHEMA} COMMIT;")
            store._check_format()
            yield store

    @classmethod
    @contextmanager
    def reading(cls, folder: Path) -> Iterator[Store]:
        """Open for reading."""
        path = folder / FILE
        if not path.is_file():
            raise InputError(f"{folder}: no results; expected the folder of an experiment, with {FILE}")
        # not read-only: a journal that a killed process left has to be rolled back
        with _connected(path) as connection:
            store = cls(connection, path)
            store._check_format()
            with _explained(path, "cannot be read"):
                connection.execute("BEGIN")  # what is read is of one moment, whatever is written meanwhile
            yield store

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """All or nothing."""
        with _explained(self.path, _KEPT):
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield
                self._connection.execute("COMMIT")
            except BaseException:
                with suppress(sqlite3.Error):
                    self._connection.execute("ROLLBACK")
                raise

    def write_meta(self, key: str, value: Any) -> None:
        """Write down something about the experiment as a whole; inside a transaction."""
        self._connection.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (key, json.dumps(value)))

    def meta(self, key: str) -> Any:
        """What was written down, or None."""
        row = self.rows("SELECT value FROM meta WHERE key = ?", (key,))
        try:
            return json.loads(row[0][0]) if row else None
        except ValueError:
            raise InputError(f"{self.path}: damaged: {key} is not JSON") from None

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
            self._connection.execute("DELETE FROM trials WHERE method = ?", (name,))
        self._connection.execute("INSERT OR REPLACE INTO methods VALUES (?, ?)", (name, text))

    def finished(self) -> set[Key]:
        """The trials that need not be run again."""
        rows = self.rows("SELECT method, fold, seed, candidate FROM trials WHERE status = 'done'")
        return {Key(*row) for row in rows}

    def best(self) -> dict[tuple[str, int, int], Standing]:
        """The best of every group so far."""
        rows = self.rows(
            "SELECT t.method, t.fold, t.seed, t.candidate, t.valid FROM chosen JOIN trials t USING (trial)"
        )
        return {Key(*row[:4]).group: standing(Key(*row[:4]), row[4]) for row in rows}

    def digests(self) -> dict[int, str]:
        """The digest of each fold's data."""
        return dict(self.rows("SELECT fold, digest FROM folds"))

    def add(self, key: Key, params: Mapping[str, Any], found: Finished, measures: tuple[str, ...]) -> None:
        """Keep a finished trial, in one transaction."""
        with self.transaction():
            self._describe(key.fold, found)
            numbers = (found.valid, found.seconds, found.predict_seconds, found.memory_start, found.memory_peak)
            trial = self._insert(key, params, "done", numbers, "")
            before = self.best().get(key.group)
            if found.tested is not None and (before is None or standing(key, found.valid) > before):
                self._choose(trial, key, found.tested, measures)

    def fail(self, key: Key, params: Mapping[str, Any], error: str) -> None:
        """Keep note of a trial that failed; it will be tried again."""
        with self.transaction():
            self._insert(key, params, "failed", (None,) * 5, error)

    def _insert(self, key: Key, params: Mapping[str, Any], status: str, numbers: tuple[Any, ...], error: str) -> int:
        values = (*key, *key, json.dumps(columns_to_numbers(params)), status, *map(_number, numbers), error)
        return int(self._connection.execute(_TRIAL, values).lastrowid or 0)

    def _describe(self, fold: int, found: Finished) -> None:
        known = self.digests().get(fold)
        if known is not None:
            if known != found.digest:
                raise InputError(f"{self.path.parent}: the data of fold {fold} changed since the experiment began")
            return
        assert found.described is not None
        documents = found.described.documents
        content = None if documents is None else encode(documents)
        self._connection.execute("INSERT INTO folds VALUES (?, ?, ?)", (fold, found.digest, content))
        table = found.described.queries
        rows = zip(*(table[name].tolist() for name in ("qid", "n_docs", "n_pairs", "weight")), strict=True)
        self._connection.executemany(
            "INSERT INTO queries VALUES (?, ?, ?, ?, ?, ?)", [(fold, i, *row) for i, row in enumerate(rows)]
        )

    def _choose(self, trial: int, key: Key, tested: Tested, measures: tuple[str, ...]) -> None:
        """Put a trial in the place of the best so far."""
        execute, many = self._connection.execute, self._connection.executemany
        for (loser,) in self.rows("SELECT trial FROM chosen WHERE method = ? AND fold = ? AND seed = ?", key.group):
            execute("DELETE FROM per_query WHERE trial = ?", (loser,))
            execute("DELETE FROM artefacts WHERE trial = ?", (loser,))
        execute("INSERT OR REPLACE INTO chosen VALUES (?, ?, ?, ?, ?)", (*key.group, trial, tested.model))
        for measure, values in zip(measures, tested.values, strict=True):
            rows = [(trial, i, measure, _number(value)) for i, value in enumerate(values.tolist())]
            many("INSERT INTO per_query VALUES (?, ?, ?, ?)", rows)
        many(
            "INSERT INTO artefacts VALUES (?, ?, ?)",
            [(trial, name, encode(table)) for name, table in tested.artefacts.items()],
        )

    def rows(self, query: str, parameters: tuple[Any, ...] = ()) -> list[Any]:
        """The rows of a query."""
        with _explained(self.path, "cannot be read"):
            return self._connection.execute(query, parameters).fetchall()

    def _check_format(self) -> None:
        if not self.rows("SELECT 1 FROM sqlite_master LIMIT 1"):
            raise InputError(f"{self.path.parent}: the experiment has not begun")
        if not self.rows("SELECT 1 FROM sqlite_master WHERE name = 'meta'") or self.meta("format") != FORMAT:
            raise InputError(f"{self.path}: not the results of an experiment")
        if self.meta("version") != VERSION:
            raise InputError(f"{self.path}: version {self.meta('version')}; this release reads version {VERSION}")


_KEPT = "every trial that finished before is kept"


@contextmanager
def _explained(path: Path, then: str) -> Iterator[None]:
    """Turn the database's errors into ones that say where, and what then."""
    try:
        yield
    except sqlite3.Error as error:
        what = f"{error} (another program has it open)" if "locked" in str(error) else str(error)
        raise InputError(f"{path}: {what}; {then}") from None


@contextmanager
def _connected(path: Path) -> Iterator[sqlite3.Connection]:
    with _explained(path, "cannot be opened"):
        connection = sqlite3.connect(path, timeout=_PATIENCE, isolation_level=None)
    try:
        yield connection
    finally:
        connection.close()


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Hold the folder's lock: an open transaction on an empty database, which the system ends with the process."""
    path = folder / LOCK
    with _connected(path) as connection:
        try:
            connection.execute("PRAGMA busy_timeout = 0")
            connection.execute("BEGIN EXCLUSIVE")
        except sqlite3.Error as error:
            if "locked" in str(error):
                raise InputError(f"{folder}: another process is running this experiment") from None
            raise InputError(f"{path}: {error}; cannot be written") from None
        yield


def _number(value: Any) -> Any:
    """NaN as NULL."""
    return None if value is None or value != value else value


def encode(table: Table) -> str:
    """A table as JSON text: a list for each column, NaN as null; of a long one of numbers the bytes, in base64."""
    return json.dumps({name: _plain(np.asarray(column)) for name, column in table.items()})


def _plain(column: np.ndarray) -> Any:
    if column.dtype.kind in "fi" and len(column) > _LONG:
        bytes_ = column.astype(column.dtype.newbyteorder("<")).tobytes()
        return {"dtype": column.dtype.newbyteorder("<").str, "base64": base64.b64encode(bytes_).decode()}
    values: list[Any] = column.tolist()
    missing = column.dtype.kind == "f" and bool(np.isnan(column).any())
    return [_number(value) for value in values] if missing else values


def decode(text: str) -> dict[str, np.ndarray]:
    """The table of a JSON text; null becomes NaN."""
    return {name: _column(values) for name, values in json.loads(text).items()}


def _column(values: Any) -> np.ndarray:
    if isinstance(values, dict):
        return np.frombuffer(base64.b64decode(values["base64"]), dtype=np.dtype(values["dtype"]))
    first = next((value for value in values if value is not None), None)
    if isinstance(first, str):
        return np.array(["" if value is None else value for value in values], dtype=object)
    return np.array([np.nan if value is None else value for value in values] if None in values else values)
