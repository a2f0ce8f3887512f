"""Reading a store: an experiment's results in one SQLite file."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Self

from rankwright.basics.errors import InputError
from rankwright.experiments.storage.contents import DAMAGE, StoreContents, check_total, read_contents
from rankwright.experiments.storage.damage import has_schema, make_damage_error
from rankwright.experiments.storage.locking import is_damage, open_connection, translate_errors, wait_for
from rankwright.experiments.storage.schema import FILE, FORMAT, MODEL, VERSION, checksum_row

_CANNOT_READ = "cannot be read"


class StoreReader:
    """The store of an experiment's results, open for reading; :meth:`open` opens one."""

    def __init__(self, connection: sqlite3.Connection, path: Path) -> None:
        self._connection = connection
        self.path = path

    @classmethod
    @contextmanager
    def open(cls, path: Path) -> Iterator[Self]:
        """Open a store for reading, in one transaction: what other processes write meanwhile is not seen."""
        if not path.is_file():
            raise InputError(f"{path.parent}: no results; expected the folder of an experiment, with {FILE}")
        # not read-only: a journal that a killed process left has to be rolled back
        with open_connection(path) as connection:
            store = cls(connection, path)
            with store._translate_damage(_CANNOT_READ):
                connection.execute("BEGIN")
                wait_for(path, store._has_tables)
                store._check_format()
            yield store

    def _has_tables(self) -> bool:
        return self._connection.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone() is not None

    def _check_format(self) -> None:
        if not self._has_tables():
            raise InputError(f"{self.path.parent}: the experiment has not begun")
        if has_schema(self._connection):
            return
        with suppress(sqlite3.Error):
            meta = dict(self._connection.execute("SELECT key, value FROM meta"))
            version = str(meta.get("version"))
            if meta.get("format") == json.dumps(FORMAT) and version.isdecimal() and int(version) != VERSION:
                raise InputError(
                    f"{self.path}: version {version}; this release reads version {VERSION}: choose another folder, or "
                    "use the release that wrote it"
                )
        raise make_damage_error(self.path)

    @contextmanager
    def _translate_damage(self, consequence: str) -> Iterator[None]:
        """Raise DamagedStoreError for errors that mean damage, and InputError for other errors of SQLite."""
        try:
            yield
        except DAMAGE as error:
            if is_damage(error):
                raise make_damage_error(self.path) from None
            with translate_errors(self.path, consequence):
                raise

    def read_contents(self, *, models: bool = False) -> StoreContents:
        """Read everything, models only if ``models``; raise DamagedStoreError if anything is damaged."""
        with self._translate_damage(_CANNOT_READ):
            found = read_contents(self._connection, models=models)
        if found.damage:
            raise make_damage_error(self.path)
        return found

    def read_chosen_trials(self) -> dict[tuple[str, int, int], int]:
        """Return the number of the chosen trial by method, fold and seed."""
        with self._translate_damage(_CANNOT_READ):
            rows = self._connection.execute("SELECT * FROM chosen NOT INDEXED ORDER BY trial").fetchall()
            intact = check_total(self._connection) and all(row[-1] == checksum_row("chosen", *row[:-1]) for row in rows)
        if not intact:
            raise make_damage_error(self.path)
        return {(method, fold, seed): trial for method, fold, seed, trial, *_ in rows}

    def read_model(self, trial: int) -> str:
        """Return the text of a chosen trial's model."""
        with self._translate_damage(_CANNOT_READ):
            row = self._connection.execute(
                "SELECT content, checksum FROM artefacts WHERE trial = ? AND name = ?", (trial, MODEL)
            ).fetchone()
        if row is None or row[1] != checksum_row("artefacts", trial, MODEL, row[0]):
            raise make_damage_error(self.path)
        return str(row[0])

    def select(self, query: str, parameters: tuple[Any, ...] = ()) -> list[Any]:
        """Return the rows of a query in SQL."""
        with translate_errors(self.path, _CANNOT_READ):
            return self._connection.execute(query, parameters).fetchall()
