"""Rows of a click log by session: kept in parts, on disk where they are many, so that each session is in one part."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from numpy.typing import NDArray

RECORD = np.dtype(
    [
        ("session", np.uint64),  # a hash; clicks of bots are counted by it
        ("list", np.uint64),  # a hash of the session, the query and the time
        ("query", np.int32),  # -1 in a click whose impression is another record
        ("doc", np.int32),
        ("position", np.int32),
        ("ranker", np.int32),
        ("group", np.int32),
        ("clicked", np.int8),
    ]
)
_N_PARTS = 256
_IN_MEMORY = 1 << 21  # records, 82 MB


class RecordParts:
    """A store of records, in 256 parts by a hash, so that what has one hash is in one part; in files if there are many.

    Use it as a context, which deletes the files at its end.

    Parameters
    ----------
    key : "session" or "list"
        The hash by which records are put into parts.
    in_memory : int
        The number of records that are kept in memory at most.
    """

    def __init__(self, key: str, in_memory: int = _IN_MEMORY) -> None:
        self._key, self._in_memory = key, in_memory
        self._parts: list[list[NDArray[Any]]] = [[] for _ in range(_N_PARTS)]
        self._n_kept = 0
        self._folder: TemporaryDirectory[str] | None = None

    def __enter__(self) -> RecordParts:
        return self

    def __exit__(self, *error: object) -> None:
        if self._folder is not None:
            self._folder.cleanup()

    def add(self, records: NDArray[Any]) -> None:
        """Add records to the parts that they belong to."""
        part = (records[self._key] >> np.uint64(56)).astype(np.uint8)
        order = np.argsort(part, kind="stable")
        ends = np.cumsum(np.bincount(part, minlength=_N_PARTS))
        ordered = records[order]
        for number, (start, stop) in enumerate(zip([0, *ends[:-1]], ends, strict=True)):
            if start < stop:
                self._parts[number].append(ordered[start:stop])
        self._n_kept += len(records)
        if self._n_kept > self._in_memory:
            self._write()

    def _write(self) -> None:
        """Append the records in memory to the files of their parts."""
        if self._folder is None:
            self._folder = TemporaryDirectory(prefix="rankwright-clicks-")
        for number, records in enumerate(self._parts):
            if records:
                with Path(self._folder.name, str(number)).open("ab") as file:
                    file.write(np.concatenate(records).tobytes())
                records.clear()
        self._n_kept = 0

    def read(self) -> Iterator[NDArray[Any]]:
        """Yield the records of each part that has any, and forget them."""
        for number, records in enumerate(self._parts):
            path = None if self._folder is None else Path(self._folder.name, str(number))
            if path is not None and path.exists():
                records.insert(0, np.fromfile(path, RECORD))
                path.unlink()
            if records:
                yield np.concatenate(records)
                records.clear()
