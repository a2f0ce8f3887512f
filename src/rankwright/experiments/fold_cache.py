"""The folds that threads read last, which the next trials reuse, and digests of their data."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable, Hashable
from typing import Any

import numpy as np

from rankwright.data.click_counts import CLICK_ARRAYS
from rankwright.data.folds import Fold
from rankwright.data.queries import Queries
from rankwright.experiments.data_sources import FoldSource


class _CacheEntry:
    """An entry of a cache: a key, the value that is read once for it, and a lock."""

    def __init__(self, key: Hashable) -> None:
        self.key, self.lock, self.value = key, threading.Lock(), None


class _ThreadCache:
    """A cache of the last value that each thread read; threads that ask for the same key share it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._by_thread: dict[int, _CacheEntry] = {}

    def get(self, key: Hashable, read: Callable[[], Any]) -> Any:
        """Return the value under a key; call ``read`` if no thread has it."""
        with self._lock:
            found = next((entry for entry in self._by_thread.values() if entry.key == key), None)
            entry = found or _CacheEntry(key)
            self._by_thread[threading.get_ident()] = entry
        with entry.lock:
            if entry.value is None:
                entry.value = read()
            return entry.value

    def clear(self) -> None:
        """Free all values."""
        with self._lock:
            self._by_thread.clear()


_folds, _queries = _ThreadCache(), _ThreadCache()


def read_fold(source: FoldSource, index: int, run: str) -> tuple[Fold, str]:
    """Return a fold of a source and a digest of its data; within one run, a fold in memory is not read again."""

    def read() -> tuple[Fold, str]:
        fold = source.read_fold(index, lambda read_queries: _queries.get((source, run), read_queries))
        return fold, digest_fold(fold)

    found: tuple[Fold, str] = _folds.get((source, index, run), read)
    return found


def clear_folds() -> None:
    """Free the memory of all folds in the cache."""
    _folds.clear()
    _queries.clear()


def digest_fold(fold: Fold) -> str:
    """Return a digest of a fold's training, validation and test data."""
    digest = hashlib.blake2b(digest_size=16)
    for part in fold:
        _update_digest(digest, part.grouped())
    return digest.hexdigest()


def _update_digest(digest: Any, part: Queries) -> None:
    """Add the data of one part of a fold to a digest."""
    for array in (part.X, part.y, part.indptr, part.query_weight, part.doc_weight, *(part.unretrieved or ())):
        if array is not None:
            digest.update(np.ascontiguousarray(array))  # reads the bytes without copying them
    if part.position is not None:
        digest.update(np.ascontiguousarray(part.position))
    if part.clicks is not None:
        for name in CLICK_ARRAYS:
            digest.update(np.ascontiguousarray(getattr(part.clicks, name)))
    digest.update(str(part.categories or "").encode())
    for names in (part.qid.tolist(), [] if part.docid is None else part.docid.tolist(), part.features or ()):
        digest.update("\n".join(map(str, names)).encode())
