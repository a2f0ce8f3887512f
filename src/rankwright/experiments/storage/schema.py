"""The tables of a store, the checksums that show damage, and the JSON text of its cells."""

from __future__ import annotations

import base64
import hashlib
import json
import sqlite3
from collections.abc import Iterable, Mapping
from contextlib import closing
from typing import Any

import numpy as np

from rankwright.analysis.results import Table
from rankwright.basics.array_types import Floats

FILE, LOCK = "results.sqlite", "results.lock"
FORMAT, VERSION = "rankwright-experiment", 4
PAGE = 4096  # bytes
_LONG = 1000  # characters
MODEL = "model"  # the name of the artefact with the model's text
TOTAL = "total"  # the row of meta with the sum of checksums

SCHEMA = """
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL, checksum INTEGER NOT NULL);
CREATE TABLE methods (name TEXT PRIMARY KEY, definition TEXT NOT NULL, checksum INTEGER NOT NULL);
CREATE TABLE folds (
  fold INTEGER PRIMARY KEY, digest TEXT NOT NULL, documents TEXT, data TEXT NOT NULL, checksum INTEGER NOT NULL);
CREATE TABLE queries (
  fold INTEGER NOT NULL REFERENCES folds, query INTEGER NOT NULL, qid TEXT NOT NULL, n_docs INTEGER NOT NULL,
  n_pairs INTEGER NOT NULL, weight REAL NOT NULL, PRIMARY KEY (fold, query)) WITHOUT ROWID;
CREATE TABLE trials (
  trial INTEGER PRIMARY KEY, method TEXT NOT NULL, fold INTEGER NOT NULL, seed INTEGER NOT NULL,
  candidate INTEGER NOT NULL, params TEXT NOT NULL, status TEXT NOT NULL, task_checksum INTEGER NOT NULL,
  digest TEXT NOT NULL, valid REAL, seconds REAL, predict_seconds REAL, memory_start REAL, memory_peak REAL,
  error TEXT NOT NULL, warnings TEXT NOT NULL, checksum INTEGER NOT NULL, UNIQUE (method, fold, seed, candidate));
CREATE TABLE chosen (
  method TEXT NOT NULL, fold INTEGER NOT NULL, seed INTEGER NOT NULL, trial INTEGER NOT NULL REFERENCES trials,
  content_checksum INTEGER NOT NULL, checksum INTEGER NOT NULL, PRIMARY KEY (method, fold, seed));
CREATE TABLE per_query (
  trial INTEGER NOT NULL REFERENCES trials, query INTEGER NOT NULL, measure TEXT NOT NULL, value REAL,
  PRIMARY KEY (trial, measure, query)) WITHOUT ROWID;
CREATE TABLE artefacts (
  trial INTEGER NOT NULL REFERENCES trials, name TEXT NOT NULL, content TEXT NOT NULL, checksum INTEGER NOT NULL,
  PRIMARY KEY (trial, name)) WITHOUT ROWID;
CREATE VIEW results AS
  SELECT c.method, c.fold, c.seed, q.qid, p.measure, p.value
  FROM chosen c JOIN per_query p USING (trial) JOIN queries q ON q.fold = c.fold AND q.query = p.query;
CREATE VIEW models AS
  SELECT c.method, c.fold, c.seed, a.content AS model FROM chosen c JOIN artefacts a USING (trial)
  WHERE a.name = 'model';
"""
SUMMED = ("meta", "methods", "folds", "trials", "chosen")  # the tables whose checksums are in the total


def _list_columns(table: str) -> tuple[str, ...]:
    """Return the names of the columns of a table of the store."""
    with closing(sqlite3.connect(":memory:")) as fresh:
        fresh.executescript(SCHEMA)
        return tuple(row[1] for row in fresh.execute(f"PRAGMA table_info({table})"))


TRIAL_COLUMNS = _list_columns("trials")[:-1]  # without the checksum
QUERY_COLUMNS = _list_columns("queries")[2:]  # without the fold and the query's number


def checksum_row(table: str, *values: Any) -> int:
    """Return the checksum of a table's row, which holds texts, numbers and None."""
    return _compute_checksum(table, *values)


def checksum_fold(fold: int, digest: str, documents: str | None, data: str, queries: Iterable[Iterable[Any]]) -> int:
    """Return the checksum of a stored fold; a row of ``queries`` is (qid, n_docs, n_pairs, weight)."""
    return _compute_checksum("folds", fold, digest, documents, data, [list(row) for row in queries])


def checksum_content(trial: int, values: Mapping[str, Floats], artefacts: Mapping[str, int]) -> int:
    """Return the checksum of a chosen trial's test values and of the checksums of its model and tables."""
    measures = sorted(values)
    arrays = (np.ascontiguousarray(values[name], dtype="<f8").tobytes() for name in measures)
    return _compute_checksum("content", trial, measures, sorted(artefacts.items()), arrays=arrays)


def sum_checksums(checksums: Iterable[int]) -> int:
    """Return the sum of checksums as a 64-bit integer, to which rows can be added and from which they can be taken."""
    return _as_signed(sum(checksums))


def _compute_checksum(*values: Any, arrays: Iterable[bytes] = ()) -> int:
    """Return the 64-bit checksum of some values, and of arrays as bytes."""
    short = [_digest_text(value) if isinstance(value, str) and len(value) > _LONG else value for value in values]
    digest = hashlib.blake2b(json.dumps(short).encode(), digest_size=8)
    for array in arrays:
        digest.update(len(array).to_bytes(8, "little") + array)
    return _as_signed(int.from_bytes(digest.digest(), "little"))


def _digest_text(text: str) -> list[str]:
    """Return the digest of a long text, in a list, to stand for the text in a checksum."""
    return [hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()]


def _as_signed(number: int) -> int:
    """Return the lowest 64 bits of an integer as a signed one, which SQLite can store."""
    return (number + 2**63) % 2**64 - 2**63


_LONG_COLUMN = 100  # a column of more numbers than this is stored as bytes


def as_number(value: Any) -> float | None:
    """Return a number that SQLite and JSON can hold: None for NaN, and 0 for -0."""
    return None if value is None or value != value else float(value) + 0.0


def encode_table(table: Table) -> str:
    """Return a table as JSON text: a list for each column, NaN as null; long columns of numbers in base64."""
    return json.dumps({name: _encode_column(np.asarray(column)) for name, column in table.items()})


def _encode_column(column: np.ndarray) -> Any:
    """Return a column of a table as a value that JSON can hold."""
    if column.dtype.kind in "fi" and len(column) > _LONG_COLUMN:
        bytes_ = column.astype(column.dtype.newbyteorder("<")).tobytes()
        return {"dtype": column.dtype.newbyteorder("<").str, "base64": base64.b64encode(bytes_).decode()}
    values: list[Any] = column.tolist()
    missing = column.dtype.kind == "f" and bool(np.isnan(column).any())
    return [None if value != value else value for value in values] if missing else values


def decode_table(text: str) -> dict[str, np.ndarray]:
    """Return the table that a JSON text holds, with NaN for null."""
    return {name: _decode_column(values) for name, values in json.loads(text).items()}


def _decode_column(values: Any) -> np.ndarray:
    """Return a column of a table from its value in JSON."""
    if isinstance(values, dict):
        return np.frombuffer(base64.b64decode(values["base64"]), dtype=np.dtype(values["dtype"]))
    first = next((value for value in values if value is not None), None)
    if isinstance(first, str):
        return np.array(["" if value is None else value for value in values], dtype=object)
    return np.array([np.nan if value is None else value for value in values] if None in values else values)
