"""Opening the store of an experiment for writing; a damaged store is replaced by its intact rows."""

from __future__ import annotations

import secrets
import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from itertools import count
from pathlib import Path

from rankwright.basics.errors import InputError, StoreWarning, warn
from rankwright.experiments.storage.damage import (
    DAMAGED_FILE,
    DamagedStoreError,
    choose_kept_trials,
    describe_damage,
    make_damage_error,
    read_damaged,
)
from rankwright.experiments.storage.locking import lock_folder
from rankwright.experiments.storage.schema import FILE
from rankwright.experiments.storage.store_writer import StoreWriter


@contextmanager
def open_store(folder: Path) -> Iterator[StoreWriter]:
    """Open the store of a folder for writing, or create one; raise InputError if another process is writing.

    The intact trials of a damaged store are kept; the damaged file is renamed, with a warning.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except FileExistsError:
        raise InputError(f"{folder}: not a folder; expected one for the results") from None
    path = folder / FILE
    with lock_folder(folder), ExitStack() as stack:
        try:
            store = stack.enter_context(StoreWriter.open(path))
        except DamagedStoreError:
            salvage(path)
            store = stack.enter_context(StoreWriter.open(path))
        yield store


def salvage(path: Path) -> None:
    """Rename a damaged store and write its intact rows to a new one; raise DamagedStoreError if there are none."""
    found = read_damaged(path)
    if found.is_empty:
        raise make_damage_error(path)
    trials = choose_kept_trials(found)
    aside = _find_unused_path(path.with_name(DAMAGED_FILE))
    shutil.copy2(path, aside)
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    try:
        with StoreWriter.open(temporary) as store:
            store.copy_contents(found, trials)
        journal = path.with_name(path.name + "-journal")
        if journal.exists() and journal.stat().st_size:  # left by a killed process; it belongs to the damaged file
            journal.replace(aside.with_name(aside.name + "-journal"))
        temporary.replace(path)
    finally:
        for name in (temporary, temporary.with_name(temporary.name + "-journal")):
            name.unlink(missing_ok=True)
    done = sum(trial["status"] == "done" for trial in trials.values())
    warn(
        f"{path}: was damaged ({describe_damage(found)}); {done} finished trials are intact and kept, the others are "
        f"run again; the damaged file is now {aside.name}",
        StoreWarning,
    )


def _find_unused_path(path: Path) -> Path:
    """Return this path if there is no such file, else the path with the first unused number added."""
    numbered = (path.with_name(f"{path.stem}-{i}{path.suffix}") for i in count(2))
    return path if not path.exists() else next(each for each in numbered if not each.exists())
