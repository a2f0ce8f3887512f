"""Files that only this library writes: checkpoints of training, saved data, and stores of results.

They have checksums. So a damaged one is refused, or what is read is what was written.
"""

from __future__ import annotations

import io
import sqlite3
import warnings
import zipfile
from abc import abstractmethod
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from random import Random
from typing import Any
from unittest import mock

import numpy as np

import rankwright as rw
from fuzz.cases import Kind, OrRefused
from fuzz.mutation import EXTREME, maybe, mutate_bytes
from rankwright.data.mapped_header import ARRAY_FILES
from rankwright.experiments.saved_queries import load_queries, save_queries
from rankwright.experiments.storage import contents
from rankwright.experiments.storage.schema import FILE
from rankwright.rankers.networks.epoch_training import Checkpoint

_SHAPES = ("()", "(0,)", "(-1,)", "(10**12,)", "(1000000000000,)", "(3, 1)", "(2, 2, 2)", "'x'", "(1.5,)", "(True,)")
_TYPES = ("<f4", "<f8", ">f8", "|O", "<U5", "<i8", "|b1", "<M8[s]", "x", "<f16", "|V8", "<U1000000000")


class _Written(Kind):
    """A file that the library wrote, damaged."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.original = self.write_original()
        self.content = self.read(self.original)

    @abstractmethod
    def write_original(self) -> bytes:
        """Write the file that is then damaged; always the same bytes."""

    def reference(self, data: bytes) -> Any:
        """Expect what was written, or that it is refused."""
        return self.content if data == self.original else OrRefused(self.content)


class _ArrayFile(_Written):
    """A zip file of arrays."""

    def make(self, rng: Random) -> bytes:
        """Damage its bytes, or its members, which get checksums of their own."""
        if maybe(rng, 0.01):
            return self.original
        if maybe(rng, 0.5):
            return mutate_bytes(rng, self.original)
        with zipfile.ZipFile(io.BytesIO(self.original)) as archive:
            members = [(info.filename, archive.read(info)) for info in archive.infolist()]
        for _ in range(rng.choice((1, 1, 2))):
            _damage_member(rng, members)
        return _zip(members, rng.choice((zipfile.ZIP_STORED, zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)))

    def difference(self, expected: Mapping[str, Any], found: Mapping[str, Any]) -> str:
        """Compare the arrays to the bit, and the rest."""
        if expected.keys() != found.keys():
            return "the names of arrays"
        return "" if all(_same(expected[name], found[name]) for name in expected) else "an array"


def _same(a: Any, b: Any) -> bool:
    if type(a) is not type(b):
        return False
    if not isinstance(a, np.ndarray):
        return bool(a == b)
    alike = a.dtype == b.dtype and a.shape == b.shape
    return bool(alike and (a.tolist() == b.tolist() or a.tobytes() == b.tobytes()))


def _zip(members: list[tuple[str, bytes]], compression: int) -> bytes:
    buffer = io.BytesIO()
    with warnings.catch_warnings(), zipfile.ZipFile(buffer, "w", compression) as archive:
        warnings.simplefilter("ignore")  # two members may have one name
        for name, data in members:
            archive.writestr(zipfile.ZipInfo(name), data, compression)
    return buffer.getvalue()


def _damage_member(rng: Random, members: list[tuple[str, bytes]]) -> None:
    if not members:
        return
    at = rng.randrange(len(members))
    name, data = members[at]
    change = rng.randrange(6)
    if change == 0:
        del members[at]
    elif change == 1:
        members.append((rng.choice(("other.npy", "", "../x.npy", name, "notes", "checksum.npy")), data))
    elif change == 2:
        members[at] = (name, members[rng.randrange(len(members))][1])
    elif change == 3:
        members[at] = (name, data.replace(b"'shape': ", b"'shape': " + rng.choice(_SHAPES).encode() + b" or ", 1))
    elif change == 4:
        header = f"{{'descr': '{rng.choice(_TYPES)}', 'fortran_order': False, 'shape': {rng.choice(_SHAPES)}, }}\n"
        members[at] = (name, b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header.encode() + data[-16:])
    else:
        members[at] = (name, mutate_bytes(rng, data))


class Checkpoints(_ArrayFile):
    """The state of a training run."""

    name = "checkpoint"

    def write_original(self) -> bytes:
        """Write arrays of several types, and notes."""
        rng = np.random.default_rng(0)
        arrays = {"w": rng.normal(size=5), "M": rng.normal(size=(2, 3)).astype(np.float32), "number": np.array(7)}
        self._checkpoint().save(arrays, {"history": [{"round": 0, "train": 0.5}], "text": "a"})
        return (self.folder / "checkpoint").read_bytes()

    def _checkpoint(self) -> Checkpoint:
        return Checkpoint(self.folder / "checkpoint", {"data": "digest", "seed": 3, "layers": [4, 2]})

    def read(self, data: bytes) -> dict[str, Any]:
        """Load the state."""
        self.write(data, "checkpoint")
        loaded = self._checkpoint().load()
        assert loaded is not None
        arrays, notes = loaded
        return {**arrays, "its notes": notes}


class SavedData(_ArrayFile):
    """Data sets on disk, such as an experiment keeps beside its results."""

    name = "data"

    def write_original(self) -> bytes:
        """Write a few queries with everything that queries may have."""
        queries = rw.Queries.from_arrays(
            [[1.0, 2.0], [3.0, np.nan], [0.5, 0.25]],
            [0, 1, 2],
            ["b", "a", "b"],
            docid=["x", "y", "z" * 300],
            weight=[1.0, 2.0],
            features=["bm25", "clicks"],
        )
        self._path = save_queries(queries, self.folder)
        return _zip([(path.name, path.read_bytes()) for path in sorted(self._path.iterdir())], zipfile.ZIP_STORED)

    def read(self, data: bytes) -> dict[str, Any]:
        """Load the queries from a folder with the members of the archive; its name is a digest of its content."""
        for path in self._path.iterdir():
            path.unlink()
        try:
            with zipfile.ZipFile(io.BytesIO(data)) as archive:
                members = {info.filename: archive.read(info) for info in archive.infolist()}
        except Exception:  # the archive is only how a case is one file
            raise rw.InputError("not an archive") from None
        for name in members.keys() & {"header.json", *ARRAY_FILES}:
            (self._path / name).write_bytes(members[name])
        found = load_queries(self._path)
        arrays = {"X": found.X, "y": found.y, "qid": found.qid, "docid": found.docid, "weight": found.weight}
        return {**arrays, "row_qid": found.row_qid, "features": found.features}


class Stores(_Written):
    """The results of an experiment in SQLite."""

    name = "store"
    warm_up = 5

    def write_original(self) -> bytes:
        """Run a small experiment whose trials take no time."""
        contents._MOST_ROWS = 100  # more than it has: a damaged table is searched row by row
        X = np.random.default_rng(0).normal(size=(36, 2))
        queries = rw.Queries.from_arrays(X, [0, 2, 1, 0] * 9, np.repeat(np.arange(9), 4))  # all queries have grades
        methods = [rw.Method("regression", grid={"alpha": [0.1, 10.0]}), rw.Method("singlefeature")]
        experiment = rw.Experiment(list(rw.split_folds(queries, 3, 0)), methods, "ndcg@5", ["map"])
        with (
            mock.patch("rankwright.experiments.trials.time.perf_counter", return_value=0.0),
            mock.patch("rankwright.experiments.trials._read_memory", return_value=0.0),
        ):
            rw.run_experiment(experiment, self.folder / "original", rw.Serial())
        return (self.folder / "original" / FILE).read_bytes()

    def make(self, rng: Random) -> bytes:
        """Damage its bytes, its pages or its rows."""
        if maybe(rng, 0.01):
            return self.original
        return rng.choice((self._damage_bytes, self._damage_bytes, self._damage_pages, self._damage_rows))(rng)

    def _damage_bytes(self, rng: Random) -> bytes:
        if maybe(rng, 0.5):
            return mutate_bytes(rng, self.original)
        size = rng.choice((100, 4096, len(self.original)))  # the head of the file more often than the rest
        return mutate_bytes(rng, self.original[:size]) + self.original[size:]

    def _damage_pages(self, rng: Random) -> bytes:
        size = int.from_bytes(self.original[16:18], "big")
        pages = [self.original[at : at + size] for at in range(0, len(self.original), size)]
        i, j = rng.randrange(len(pages)), rng.randrange(len(pages))
        pages[i] = rng.choice((pages[j], bytes(size), b"\xff" * size, b"", pages[i][::-1]))
        return b"".join(pages)

    def _damage_rows(self, rng: Random) -> bytes:
        path = self.write(self.original, "rows.sqlite")
        with closing(sqlite3.connect(path)) as connection:
            tables = [
                row[0]
                for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name")
            ]
            for _ in range(rng.choice((1, 1, 2))):
                _damage_table(rng, connection, rng.choice(tables))
            connection.commit()
        return path.read_bytes()

    def read(self, data: bytes) -> dict[str, Any]:
        """Read the results and a model."""
        folder = self.folder / "damaged"
        folder.mkdir(exist_ok=True)
        for path in folder.iterdir():
            path.unlink()
        (folder / FILE).write_bytes(data)
        results = rw.read_results(folder)
        model = rw.read_trial_model(folder, "Regression", fold=2)
        said = (results.name, results.measure, results.measures, results.methods, results.unfinished)
        tables = {f"{name}.{key}": column for name, table in results.tables.items() for key, column in table.items()}
        return {"said": said, "model": model.scorer.to_json(), **tables}

    def difference(self, expected: Mapping[str, Any], found: Mapping[str, Any]) -> str:
        """Compare all tables, and the model."""
        if expected.keys() != found.keys():
            return "the names of tables"
        for name, value in expected.items():
            same = (
                repr(list(value)) == repr(list(found[name])) if isinstance(value, np.ndarray) else value == found[name]
            )
            if not same:
                return name
        return ""


def _damage_table(rng: Random, connection: sqlite3.Connection, table: str) -> None:
    """Change, delete or repeat a row, or more than that."""
    columns = [row[1] for row in connection.execute(f"PRAGMA table_info({table})")]
    if not columns:  # it was dropped
        return
    column, n = rng.choice(columns), connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0]
    keys = [row[5] for row in connection.execute(f"PRAGMA table_info({table})")]
    key = " AND ".join(f"{name} IS ?" for name, part in zip(columns, keys, strict=True) if part) or "rowid IS ?"
    names = ", ".join(name for name, part in zip(columns, keys, strict=True) if part) or "rowid"
    row = connection.execute(f"SELECT {names} FROM {table} LIMIT 1 OFFSET ?", (rng.randrange(max(n, 1)),)).fetchone()
    value = rng.choice((None, "", "x", b"\xff\x00", 1.5, float("inf"), -1, 0, "[" * 500, "{}", '"a"', "1e999"))
    value = rng.choice([number for number in EXTREME if abs(number) < 2**63]) if maybe(rng, 0.2) else value
    statements = (
        (f"UPDATE {table} SET {column} = ? WHERE {key}", (value, *(row or ()))),
        (f"DELETE FROM {table} WHERE {key}", row),
        (f"INSERT INTO {table} SELECT * FROM {table} WHERE {key}", row),
        (
            f"UPDATE {table} SET {column} = (SELECT {column} FROM {table} LIMIT 1 OFFSET ?) WHERE {key}",
            (0, *(row or ())),
        ),
        rng.choice(((f"DELETE FROM {table}", ()), (f"DROP TABLE {table}", ()), (f"ALTER TABLE {table} ADD extra", ()))),
        rng.choice((("PRAGMA user_version = 7", ()), ("CREATE TABLE extra (a)", ()), ("VACUUM", ()), ("REINDEX", ()))),
    )
    statement, values = rng.choice(statements)
    if row is not None or "?" not in statement:
        try:
            connection.execute(statement, values)
        except sqlite3.Error:  # such as a second row with the same key
            connection.rollback()
