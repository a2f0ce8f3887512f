"""What a store holds, to compare stores by."""

from __future__ import annotations

import sqlite3
from pathlib import Path

_WHAT = {
    "trials": "SELECT method, fold, seed, candidate, params, status, task_checksum, digest, valid, error, warnings FROM trials",
    "chosen": "SELECT c.method, c.fold, c.seed, t.candidate FROM chosen c JOIN trials t USING (trial)",
    "values": "SELECT * FROM results",
    "artefacts": "SELECT t.method, t.fold, t.seed, t.candidate, a.name, a.content FROM artefacts a JOIN trials t USING (trial)",
    "queries": "SELECT * FROM queries",
    "folds": "SELECT * FROM folds",
}


def contents(folder: Path) -> dict[str, list[tuple]]:
    """Everything but times, memory and the order in which trials came; duplicates would show."""
    connection = sqlite3.connect(folder / "results.sqlite")
    try:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        assert connection.execute("PRAGMA foreign_key_check").fetchall() == []
        return {name: sorted(connection.execute(query).fetchall(), key=repr) for name, query in _WHAT.items()}
    finally:
        connection.close()
