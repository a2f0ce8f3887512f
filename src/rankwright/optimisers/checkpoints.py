"""Checkpoints of training: the state as arrays in a file, written whole or not at all."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from rankwright.basics.array_files import digest_arrays, read_arrays, write_arrays
from rankwright.basics.errors import InputError
from rankwright.basics.files import StrPath
from rankwright.data.queries import Queries

_NOTES = "notes"
_CHECKSUM = "checksum"


class Checkpoint:
    """A file with the state of one training run: arrays and JSON, so that loading it runs no code.

    Parameters
    ----------
    path : path or None
        The file; None writes nothing.
    run : mapping
        JSON values that identify the run.
    """

    def __init__(self, path: StrPath | None, run: Mapping[str, Any]) -> None:
        self.path = None if path is None else Path(path)
        self.run = json.loads(json.dumps(dict(run)))

    def save(self, arrays: Mapping[str, Any], notes: Mapping[str, Any]) -> None:
        """Write the file, or replace it."""
        if self.path is None:
            return
        content = {_NOTES: np.array(json.dumps({"run": self.run, **notes})), **arrays}
        write_arrays(self.path, {_CHECKSUM: np.array(digest_arrays(content)), **content})

    def load(self) -> tuple[dict[str, Any], dict[str, Any]] | None:
        """Return the arrays and notes that were saved last; None if nothing was."""
        if self.path is None or not self.path.exists():
            return None
        expected = "a checkpoint of training: remove it, or name another file"
        arrays: dict[str, Any] = read_arrays(self.path, expected)
        checksum = arrays.pop(_CHECKSUM, None)
        if str(checksum) != digest_arrays(arrays):
            raise InputError(f"{self.path}: damaged: its content does not fit its checksum; expected {expected}")
        try:
            notes = json.loads(str(arrays.pop(_NOTES)))
            run = dict(notes.pop("run"))
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            raise InputError(f"{self.path}: damaged: its notes cannot be read; expected {expected}") from None
        differ = [name for name in {**self.run, **run} if self.run.get(name) != run.get(name)]
        if differ:
            raise InputError(
                f"{self.path}: a checkpoint of another run (other {', '.join(differ)}); remove it, or name another file"
            )
        return arrays, notes


def digest_queries(queries: Queries) -> str:
    """Return a short hash of the features, grades, query bounds and weights of a data set."""
    found = hashlib.blake2b(digest_size=16)
    for array in (queries.X, queries.y, queries.indptr, queries.query_weight, queries.doc_weight):
        if array is not None:
            found.update(np.ascontiguousarray(array).data)
    return found.hexdigest()
