"""Ids of any length in two arrays: their joined bytes, and where each of them begins and ends."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankwright.basics.array_types import Ints
from rankwright.basics.errors import InputError


class JoinedIds:
    """An array of texts that are decoded when they are used, for ids too long for an array of fixed width.

    Parameters
    ----------
    text : array of uint8
        The texts in UTF-8, one after another.
    indptr : array of shape (n + 1,)
        Text ``i`` is at ``indptr[i]`` to ``indptr[i + 1]``.

    Examples
    --------
    >>> ids = JoinedIds(np.frombuffer(b"abcde", np.uint8), np.array([0, 2, 5]))
    >>> len(ids), ids[1:][[0]].tolist(), np.asarray(ids).tolist()
    (2, ['cde'], ['ab', 'cde'])
    """

    __slots__ = ("_decoded", "indptr", "text")

    def __init__(self, text: NDArray[np.uint8], indptr: Ints) -> None:
        self.text, self.indptr = text, indptr
        self._decoded: NDArray[Any] | None = None

    @classmethod
    def join(cls, ids: NDArray[Any]) -> JoinedIds:
        """Return texts in the joined form."""
        texts = [str(value).encode() for value in ids.tolist()]
        lengths = np.fromiter(map(len, texts), np.int64, len(texts))
        return cls(np.frombuffer(b"".join(texts), np.uint8), np.concatenate([[0], np.cumsum(lengths)]))

    def __len__(self) -> int:
        return len(self.indptr) - 1

    def __getitem__(self, rows: Any) -> JoinedIds | NDArray[Any]:
        """Return these texts: for a slice, in the joined form and sharing memory, else as an array of strings."""
        if isinstance(rows, slice) and rows.step in (None, 1):
            start, stop, _ = rows.indices(len(self))
            return JoinedIds(self.text, self.indptr[start : max(start, stop) + 1])
        return self._decode(np.arange(len(self))[rows])

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        if self._decoded is None:
            self._decoded = self._decode(np.arange(len(self)))
        return self._decoded.copy() if copy else self._decoded

    def _decode(self, places: Ints) -> NDArray[Any]:
        """Return the texts at these places as an array of strings."""
        starts, ends = self.indptr[places].tolist(), self.indptr[places + 1].tolist()
        ids = np.empty(len(places), dtype=object)
        try:
            ids[:] = [self.text[a:b].tobytes().decode() for a, b in zip(starts, ends, strict=True)]
        except UnicodeDecodeError:
            raise InputError("an id in the joined bytes of ids is not UTF-8; the file was damaged") from None
        return ids
