"""Training that can be interrupted: its state as arrays in a file, written whole or not at all."""

from __future__ import annotations

import hashlib
import json
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from rankwright.data import Queries
from rankwright.errors import InputError
from rankwright.files import StrPath, write_atomic_binary

_NOTES = "notes"
_DAMAGED = (
    ValueError,
    KeyError,
    OSError,
    EOFError,
    TypeError,
    AttributeError,
    RecursionError,
    zlib.error,
    zipfile.BadZipFile,
    NotImplementedError,
)


class Checkpoint:
    """A file with the state of one training run. It holds arrays and JSON, and loading it runs no code.

    Parameters
    ----------
    path : path or None
        Where; None keeps nothing.
    run : mapping
        What makes it this run and no other, as JSON values.
    """

    def __init__(self, path: StrPath | None, run: Mapping[str, Any]) -> None:
        self.path = None if path is None else Path(path)
        self.run = json.loads(json.dumps(dict(run)))

    def save(self, arrays: Mapping[str, Any], notes: Mapping[str, Any]) -> None:
        """Replace what is there."""
        if self.path is None:
            return
        text = json.dumps({"run": self.run, **notes})
        with write_atomic_binary(self.path) as file:
            np.savez(file, allow_pickle=False, **{_NOTES: np.array(text), **arrays})

    def load(self) -> tuple[dict[str, Any], dict[str, Any]] | None:
        """What was saved last, if anything was."""
        if self.path is None or not self.path.exists():
            return None
        try:
            with self.path.open("rb") as opened, np.load(opened, allow_pickle=False) as file:
                arrays = {name: file[name] for name in file.files}
            notes = json.loads(str(arrays.pop(_NOTES)))
            run = dict(notes.pop("run"))
        except _DAMAGED:
            raise InputError(f"{self.path}: not a checkpoint of training; remove it, or name another file") from None
        differ = [name for name in {**self.run, **run} if self.run.get(name) != run.get(name)]
        if differ:
            raise InputError(
                f"{self.path}: a checkpoint of another run (other {', '.join(differ)}); remove it, or name another file"
            )
        return arrays, notes


def digest(queries: Queries) -> str:
    """A short text that tells data apart."""
    found = hashlib.blake2b(digest_size=16)
    for array in (queries.X, queries.y, queries.indptr, queries.query_weight):
        found.update(np.ascontiguousarray(array).data)
    return found.hexdigest()
