"""Damaged stores: reading their intact rows, and describing the damage."""

from __future__ import annotations

import shutil
import sqlite3
import tempfile
from collections import Counter
from contextlib import closing
from functools import lru_cache
from pathlib import Path

from rankwright.basics.errors import InputError
from rankwright.experiments.storage.contents import DAMAGE, StoreContents, Trial, read_contents
from rankwright.experiments.storage.schema import FILE, PAGE, SCHEMA

_FEWEST_PAGES = 32  # more than a store without trials has: no table may begin after the end of the file
DAMAGED_FILE = "results.damaged.sqlite"  # the name that a damaged file gets, with a number if it is taken


class DamagedStoreError(InputError):
    """The error for a damaged store of results; it says how many trials are intact and what to do."""


def make_damage_error(path: Path) -> DamagedStoreError:
    """Return the error for the damaged store at this path."""
    found = read_damaged(path)
    if found.is_empty:
        return DamagedStoreError(
            f"{path}: not the results of an experiment, or damaged throughout; move it away to start again"
        )
    done = sum(trial["status"] == "done" for trial in choose_kept_trials(found).values())
    planned = found.meta.get("n_trials")
    of = f" of {planned}" if isinstance(planned, int) else ""
    return DamagedStoreError(
        f"{path.parent}: {FILE} is damaged ({describe_damage(found)}); {done}{of} finished trials are intact. Run the "
        f"experiment again: it keeps them, runs the others again, and keeps the damaged file as {DAMAGED_FILE}"
    )


def describe_damage(found: StoreContents) -> str:
    """Return a short text that names the damaged parts of a store."""
    counts = Counter(found.damage)
    named = [f"{what} ({n} times)" if n > 1 else what for what, n in counts.most_common(3)]
    more = f" and {len(counts) - 3} more" if len(counts) > 3 else ""
    return ", ".join(named) + more or "its indexes"


def choose_kept_trials(found: StoreContents) -> dict[int, Trial]:
    """Return the trials of a damaged store that need not be run again.

    The best trial of each method, fold and seed is the chosen one. Where it has no test values, because the row that
    says which one is chosen is damaged, it has to be run again.
    """
    kept = dict(found.trials)
    competing: dict[tuple[str, int, int], list[Trial]] = {}
    for trial in kept.values():
        if trial["status"] == "done":
            competing.setdefault((trial["method"], trial["fold"], trial["seed"]), []).append(trial)
    tested = {(result.method, result.fold, result.seed) for result in found.chosen.values()} | found.lost
    for group, trials in competing.items():
        if group not in tested:
            best = max(trials, key=lambda trial: (trial["valid"], -trial["candidate"]))
            del kept[best["trial"]]
    return kept


def read_damaged(path: Path) -> StoreContents:
    """Return the intact contents of a damaged store, without changing its file."""
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / FILE
        found = _read_copy(path, copy)
        if found is None:
            _restore_first_page(copy)
            found = _read_file(copy) or StoreContents(damage=["the whole file"])
            found.damage.insert(0, "the head of the file")
        return found


def _read_copy(path: Path, copy: Path) -> StoreContents | None:
    """Copy a store and its journal, and return the intact contents of the copy; None if it is no store."""
    shutil.copyfile(path, copy)
    journal = path.with_name(path.name + "-journal")
    if journal.exists():
        shutil.copyfile(journal, copy.with_name(copy.name + "-journal"))
    return _read_file(copy)


def _read_file(path: Path) -> StoreContents | None:
    """Return the intact contents of a store's file; None if the file does not have the schema of a store."""
    try:
        with closing(sqlite3.connect(path)) as connection:
            return read_contents(connection, models=True) if has_schema(connection) else None
    except DAMAGE:
        return None


def has_schema(connection: sqlite3.Connection) -> bool:
    """Return whether a SQLite file has all tables of a store, and no others."""
    return _read_schema(connection) == _make_expected_schema()


@lru_cache(maxsize=1)
def _make_expected_schema() -> list[str]:
    """Return the schema that every store has."""
    with closing(sqlite3.connect(":memory:")) as fresh:
        fresh.executescript(SCHEMA)
        return _read_schema(fresh)


def _read_schema(connection: sqlite3.Connection) -> list[str]:
    """Return the schema of a SQLite file: its tables and indexes, sorted."""
    return sorted(map(repr, connection.execute("SELECT type, name, tbl_name, sql FROM sqlite_master")))


def _restore_first_page(path: Path) -> None:
    """Replace the damaged first page of a store's file, which says where tables begin, by that of a new store."""
    page = bytearray(_make_first_page())
    with path.open("r+b") as file:
        n_pages = max(path.stat().st_size // PAGE, _FEWEST_PAGES)
        file.truncate(n_pages * PAGE)
        page[28:32] = n_pages.to_bytes(4, "big")
        page[32:40] = bytes(8)  # no free pages
        page[92:96] = page[24:28]  # the number of pages is valid
        file.write(page)
    path.with_name(path.name + "-journal").unlink(missing_ok=True)


@lru_cache(maxsize=1)
def _make_first_page() -> bytes:
    """Return the bytes of the first page of a new store."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / FILE
        with closing(sqlite3.connect(path)) as connection:
            connection.executescript(f"PRAGMA page_size = {PAGE}; {SCHEMA}")
        return path.read_bytes()[:PAGE]
