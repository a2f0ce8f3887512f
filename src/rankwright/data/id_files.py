"""Ids of rows that are appended to files block by block: numbers, short texts or texts of any length."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankwright.basics.mapped_arrays import ArrayFile, ArrayWriter, map_values
from rankwright.data.ids import ids_as_text
from rankwright.data.joined_ids import JoinedIds
from rankwright.data.row_files import RowFile, RunOrder

_PIECE = 1 << 16  # ids that are joined or decoded at a time
_SHORT, _JOINED = "<U", "joined"


class IdFiles:
    """The files of one column of ids, of the narrowest kind that holds all of them.

    Numbers and texts of at most ``WIDEST_ID`` characters are one array. Where one text is longer, all are joined bytes
    and the places of each. Ids of another kind make those before them be written again.
    """

    def __init__(self, folder: Path, name: str) -> None:
        self._folder, self._name = folder, name
        self._kind = ""
        self._files: RowFile | _JoinedFiles | None = None
        self.has_ids = False

    def append(self, ids: NDArray[Any] | None, rows: int) -> None:
        """Append the ids of so many rows; None for rows without ids, which are empty texts if other rows have ids."""
        self.has_ids = self.has_ids or ids is not None
        values = np.zeros(rows, "U1") if ids is None else ids if ids.dtype.kind in "iu" else ids_as_text(ids)
        kind = {"i": "<i8", "u": "<u8", "U": _SHORT}.get(values.dtype.kind, _JOINED)
        if self._kind not in ("", kind):
            kind = _JOINED if _JOINED in (kind, self._kind) else _SHORT
        if kind != self._kind:
            earlier = self._take_pieces() if self._kind else iter(())
            self._kind = kind
            self._files = self._open_files()
            for piece in earlier:
                self._write(piece)
        self._write(values)

    def finish(self, order: RunOrder | None) -> dict[str, ArrayFile]:
        """Complete the files, with the rows in another order if one is given, and return what they hold, by name."""
        assert self._files is not None
        if isinstance(self._files, _JoinedFiles):
            return self._files.finish(order)
        if not self.has_ids:
            self._files.close()
            (self._folder / f"{self._name}.npy").unlink()
            return {}
        dtype = np.dtype(f"<U{self._files.width}" if self._kind == _SHORT else self._kind)
        return {self._name: self._files.finish(order, dtype, (self._files.rows,))}

    def close(self) -> None:
        """Close the files, complete or not."""
        if self._files is not None:
            self._files.close()

    def _open_files(self) -> RowFile | _JoinedFiles:
        """Return empty files of the present kind."""
        if self._kind == _JOINED:
            return _JoinedFiles(self._folder, self._name)
        return RowFile(self._folder, self._name, "<u4" if self._kind == _SHORT else self._kind)

    def _write(self, values: NDArray[Any]) -> None:
        """Append ids in the form of the present kind."""
        assert self._files is not None
        if self._kind == _SHORT:
            texts = np.ascontiguousarray(ids_as_text(values))
            values = texts.astype(texts.dtype.newbyteorder("<")).view("<u4").reshape(len(texts), -1)
        self._files.append(values)

    def _take_pieces(self) -> Iterator[NDArray[Any]]:
        """Return the ids that were appended, in pieces; they are written again as another kind."""
        assert isinstance(self._files, RowFile)  # joined texts are the widest kind
        is_short, width = self._kind == _SHORT, self._files.width
        pieces = self._files.take_pieces()
        return (piece.view(f"<U{width}").ravel() if is_short else piece.ravel() for piece in pieces)


class _JoinedFiles:
    """The files of ids as joined bytes and their places."""

    def __init__(self, folder: Path, name: str) -> None:
        self._paths = [folder / f"{name}_{part}.npy" for part in ("text", "indptr")]
        self._text, self._indptr = (ArrayWriter(path) for path in self._paths)
        self._indptr.append(np.zeros(1, np.int64))
        self._rows = self._size = 0

    def append(self, ids: NDArray[Any]) -> None:
        """Append ids of any kind."""
        joined = JoinedIds.join(ids)
        self._text.append(joined.text)
        self._indptr.append(joined.indptr[1:] + self._size)
        self._rows, self._size = self._rows + len(joined), self._size + len(joined.text)

    def finish(self, order: RunOrder | None) -> dict[str, ArrayFile]:
        """Complete the files, with the rows in another order if one is given."""
        if order is not None:
            self._reorder(order)
        text = self._text.finish(np.dtype("u1"), (self._size,))
        indptr = self._indptr.finish(np.dtype("<i8"), (self._rows + 1,))
        return {self._paths[0].stem: text, self._paths[1].stem: indptr}

    def _reorder(self, order: RunOrder) -> None:
        """Write the ids again in another order."""
        self.close()
        taken = [path.rename(path.with_suffix(".taken")) for path in self._paths]
        ids = JoinedIds(map_values(taken[0], np.dtype("u1")), map_values(taken[1], np.dtype("<i8")))
        self._text, self._indptr = (ArrayWriter(path) for path in self._paths)
        self._indptr.append(np.zeros(1, np.int64))
        self._rows = self._size = 0
        for rows in order.read_pieces(_PIECE):
            self.append(np.asarray(ids[rows]))
        for path in taken:
            path.unlink()

    def close(self) -> None:
        """Close the files, complete or not."""
        for writer in (self._text, self._indptr):
            with writer:
                pass
