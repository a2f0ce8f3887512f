"""Values by row that are appended to files block by block, and put into another order without being in memory."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankwright.basics.array_types import Ints
from rankwright.basics.mapped_arrays import ArrayFile, ArrayWriter, map_values

_PIECE = 1 << 23  # bytes of values that are put into order at a time


class RunOrder(NamedTuple):
    """An order of rows, as runs of consecutive rows: the first row of each run and its number of rows."""

    starts: Ints
    sizes: Ints

    def read_pieces(self, rows: int) -> Iterator[Ints]:
        """Yield the numbers of the rows in this order, at most ``rows`` of them at a time."""
        ends = np.cumsum(self.sizes)
        for start in range(0, int(ends[-1]), rows):
            stop = min(start + rows, int(ends[-1]))
            first, last = np.searchsorted(ends, [start, stop - 1], side="right")
            runs = slice(first, last + 1)
            numbers = np.repeat(self.starts[runs] - ends[runs] + self.sizes[runs], self.sizes[runs])
            skipped = start - int(ends[first] - self.sizes[first])
            yield (numbers + np.arange(ends[first] - self.sizes[first], ends[last]))[skipped:][: stop - start]


class _Segment(NamedTuple):
    """A part of a file whose rows have one width: its first row, and the place where its values begin."""

    row: int
    place: int
    width: int


class RowFile:
    """A file of rows whose width may grow: at the end all rows have the largest width, padded with zeros.

    Parameters
    ----------
    folder : path
        The folder to write to.
    name : str
        The name of the array; its file is called so.
    dtype : type
        The type of the values.
    """

    def __init__(self, folder: Path, name: str, dtype: Any) -> None:
        self._path, self._dtype = folder / f"{name}.npy", np.dtype(dtype)
        self._writer = ArrayWriter(self._path)
        self._segments: list[_Segment] = []
        self.rows = self._size = self.width = 0

    def append(self, values: NDArray[Any]) -> None:
        """Append rows: a matrix, or a value for each row."""
        matrix = values.reshape(len(values), -1) if values.size else values.reshape(len(values), 0)
        if not self._segments or self._segments[-1].width != matrix.shape[1]:
            self._segments.append(_Segment(self.rows, self._size, matrix.shape[1]))
        self._writer.append(matrix.astype(self._dtype, copy=False))
        self.rows, self._size = self.rows + len(matrix), self._size + matrix.size
        self.width = max(self.width, matrix.shape[1])

    def finish(self, order: RunOrder | None, dtype: np.dtype[Any], shape: tuple[int, ...]) -> ArrayFile:
        """Complete the file, with the rows in another order if one is given, and return what it holds.

        ``dtype`` and ``shape`` are those under which it is read: texts are written as the numbers of their characters.
        """
        if order is None and all(segment.width == self.width for segment in self._segments):
            return self._writer.finish(dtype, shape)
        pieces = self.take_pieces(order)
        with ArrayWriter(self._path) as writer:
            for piece in pieces:
                writer.append(piece)
            return writer.finish(dtype, shape)

    def take_pieces(self, order: RunOrder | None = None) -> Iterator[NDArray[Any]]:
        """Take the file away, and return its rows in pieces, all of the largest width; nothing can be appended to it.

        Another file can be written in its place while the pieces are read.
        """
        self.close()
        taken = self._path.with_suffix(".taken")
        self._path.rename(taken)
        return self._read_pieces(taken, order)

    def close(self) -> None:
        """Close the file, complete or not."""
        with self._writer:
            pass

    def _read_pieces(self, path: Path, order: RunOrder | None) -> Iterator[NDArray[Any]]:
        """Yield rows of the largest width, in an order or as they were appended, and delete the file."""
        if order is None:
            order = RunOrder(np.zeros(1, np.int64), np.array([self.rows]))
        values = map_values(path, self._dtype)
        ends = [segment.row for segment in self._segments[1:]] + [self.rows]
        tables = [
            values[each.place : each.place + (end - each.row) * each.width].reshape(end - each.row, each.width)
            for each, end in zip(self._segments, ends, strict=True)
        ]
        firsts = np.array([each.row for each in self._segments])
        for rows in order.read_pieces(max(1, _PIECE // (self._dtype.itemsize * max(self.width, 1)))):
            if len(tables) == 1:
                yield tables[0][rows]
                continue
            piece = np.zeros((len(rows), self.width), self._dtype)
            owners = np.searchsorted(firsts, rows, side="right") - 1
            for at in np.unique(owners).tolist():
                own = owners == at
                piece[own, : tables[at].shape[1]] = tables[at][rows[own] - firsts[at]]
            yield piece
        path.unlink()
