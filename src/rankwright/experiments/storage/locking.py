"""Connections to SQLite files that other programs may lock, and the lock of an experiment's folder."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from rankwright.basics import progress
from rankwright.basics.errors import InputError, StoreWarning, warn
from rankwright.experiments.storage.schema import LOCK

T = TypeVar("T")

_ONE_TRY, _SILENT, _LONGEST = 0.25, 2.0, 60.0  # seconds to wait for another program: in one try, silently, in all
_NO_DAMAGE = {  # errors of the system or of other programs, not of the file's content
    sqlite3.SQLITE_BUSY,
    sqlite3.SQLITE_LOCKED,
    sqlite3.SQLITE_PERM,
    sqlite3.SQLITE_READONLY,
    sqlite3.SQLITE_IOERR,
    sqlite3.SQLITE_FULL,
    sqlite3.SQLITE_CANTOPEN,
    sqlite3.SQLITE_NOMEM,
    sqlite3.SQLITE_INTERRUPT,
}


def is_damage(error: BaseException) -> bool:
    """Return whether an error of SQLite means that the file's content is damaged."""
    return isinstance(error, UnicodeDecodeError) or (
        isinstance(error, sqlite3.Error) and _get_code(error) not in _NO_DAMAGE
    )


def _is_locked(error: sqlite3.Error) -> bool:
    """Return whether an error of SQLite means that another program has locked the file."""
    return _get_code(error) in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)


def _get_code(error: sqlite3.Error) -> int:
    """Return the primary error code of an error of SQLite; 0 if it has none."""
    return int(getattr(error, "sqlite_errorcode", 0)) & 0xFF


@contextmanager
def translate_errors(path: Path, consequence: str) -> Iterator[None]:
    """Raise InputError, with the path and the consequence, for errors of SQLite within this context."""
    try:
        yield
    except sqlite3.Error as error:
        what = f"{error} (another program has it open)" if _is_locked(error) else str(error)
        raise InputError(f"{path}: {what}; {consequence}") from None


@contextmanager
def open_connection(path: Path) -> Iterator[sqlite3.Connection]:
    """Open a SQLite file for this context, and close it at the end."""
    with translate_errors(path, "cannot be opened"):
        connection = sqlite3.connect(path, timeout=_ONE_TRY, isolation_level=None)
    try:
        yield connection
    finally:
        connection.close()


def wait_for(path: Path, call: Callable[[], T]) -> T:
    """Call a function and return its result; while another program locks the file, try again, for a minute."""
    start, waited, warned = time.monotonic(), 0.0, False
    what, total = f"waiting for {path}", int(_LONGEST)
    while True:
        try:
            return call()
        except sqlite3.Error as error:
            if not _is_locked(error) or waited >= _LONGEST:
                raise
        finally:
            if warned:
                progress.report(what, total, total)
        waited = time.monotonic() - start
        if waited >= _SILENT:
            if not warned:
                warn(f"{path}: another program has it open; waiting for it, {_LONGEST:g} s at most", StoreWarning)
            warned = True
            progress.report(what, min(int(waited), total - 1), total)


@contextmanager
def lock_folder(folder: Path) -> Iterator[None]:
    """Hold the lock of an experiment's folder within this context; raise InputError if another process holds it."""
    path = folder / LOCK
    with open_connection(path) as connection:
        try:
            connection.execute("PRAGMA busy_timeout = 0")
            connection.execute("BEGIN EXCLUSIVE")
        except (sqlite3.Error, UnicodeDecodeError) as error:
            if isinstance(error, sqlite3.Error) and _is_locked(error):
                raise InputError(f"{folder}: another process is running this experiment") from None
            raise InputError(f"{path}: {error}; remove it if no experiment is running in {folder}") from None
        yield
