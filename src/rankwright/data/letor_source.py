"""LETOR text as a source of rows: read at once, or block by block in bounded memory."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from rankwright.basics import progress
from rankwright.basics.array_types import Floats
from rankwright.basics.errors import InputError
from rankwright.basics.files import StrPath, is_plain
from rankwright.data.ids import as_ids, parse_integer_ids
from rankwright.data.letor import check_n_features, make_empty_file_error, read_letor
from rankwright.data.letor_blocks import BadLine, Bytes, LetorPart, count_lines, parse_block
from rankwright.data.letor_files import cut_spans, guess_width, load_block, read_pieces
from rankwright.data.queries import Queries
from rankwright.data.row_sources import RowBlock, RowSource
from rankwright.data.table_sizes import explain_growth
from rankwright.kernels.data import letor_text as kernel
from rankwright.runtime.backends import Backend, resolve

_LARGEST_TABLE = 1 << 26  # bytes of a block of features; the text of a larger one is cut into halves

_Table = tuple[LetorPart | BadLine, Floats, Floats, int]  # a part, X, y and the number of bytes


class LetorSource(RowSource):
    """The documents in files of LETOR text."""

    def __init__(self, paths: Sequence[StrPath], n_features: int | None = None) -> None:
        check_n_features(n_features)
        self.paths, self.n_features = paths, n_features

    def read(self, backend: Backend | None = None) -> Queries:
        """Read all files as one data set."""
        return read_letor(*self.paths, n_features=self.n_features, backend=backend)

    def read_blocks(self) -> Iterator[RowBlock]:
        """Yield the documents of all files in blocks.

        Without ``n_features`` a block has as many features as the highest index so far, so that later ones may have
        more: the features that an earlier block lacks are 0.
        """
        files = [Path(path) for path in self.paths]
        with ExitStack() as stack:
            in_place = hasattr(os, "preadv") and all(is_plain(file) for file in files)
            if in_place:
                handles = [stack.enter_context(file.open("rb")) for file in files]
                spans = [(i, *span) for i, handle in enumerate(handles) for span in cut_spans(handle)]
                loads = ((i, partial(load_block, handles[i], start, end)) for i, start, end in spans)
                state = _StreamState(files, self.n_features or guess_width(handles[0]), self.n_features)
                tables = progress.track(resolve(None).map(state.parse, loads), "reading", len(spans))
            else:
                pieces = ((i, partial(_return, piece)) for i, file in enumerate(files) for piece in read_pieces(file))
                state = _StreamState(files, self.n_features or 64, self.n_features)
                tables = resolve(None).map(state.parse, pieces)
            for found in tables:
                for table in found:
                    if (block := state.take(*table)) is not None:
                        yield block
            state.check_empty_files()


def _return(text: Bytes) -> Bytes:
    """Return a piece of text that is in memory already."""
    return text


class _StreamState:
    """The state of reading files: the lines and documents of each so far, the highest index, the kind of query ids."""

    def __init__(self, files: Sequence[Path], width: int, n_features: int | None) -> None:
        self._files, self._n_features = files, n_features
        self._guess = width  # of the blocks that are parsed next
        self._width = n_features or 1
        self._lines, self._rows, self._size = [0] * len(files), [0] * len(files), 0
        self._has_texts = False

    def parse(self, piece: tuple[int, Any]) -> list[_Table]:
        """Parse a piece of a file, which is loaded by calling it, as one table or several."""
        file, load = piece
        return _parse_text(file, load(), self._guess, self._n_features)

    def take(self, part: LetorPart | BadLine, X: Floats, y: Floats, size: int) -> RowBlock | None:
        """Return the next block of rows, None if it has no rows; raise InputError if it has a bad line."""
        if isinstance(part, BadLine):
            raise InputError(f"{self._files[part.file]}:{self._lines[part.file] + part.line}: {part.message}")
        self._rows[part.file] += part.rows
        self._size += size
        if part.rows and part.highest > self._width:  # never with n_features: it would be a bad line
            self._width, self._guess = part.highest, max(part.highest, self._guess)
            if problem := explain_growth(sum(self._rows), self._width, self._size):
                line = self._lines[part.file] + part.widest
                raise InputError(f"{self._files[part.file]}:{line}: feature index {part.highest} makes {problem}")
        self._lines[part.file] += part.lines
        if part.rows == 0:
            return None
        X = X[: part.rows, : self._width]
        if X.shape[1] < self._width:
            X = np.pad(X, ((0, 0), (0, self._width - X.shape[1])))
        ids = as_ids(part.qid) if self._has_texts else parse_integer_ids(part.qid)
        self._has_texts = ids.dtype.kind not in "iu"
        row_qid = np.repeat(ids, np.diff(part.starts, append=part.rows))
        return RowBlock(X, y[: part.rows], row_qid, part.docid)

    def check_empty_files(self) -> None:
        """Raise InputError if a file has no documents."""
        for file, rows in zip(self._files, self._rows, strict=True):
            if rows == 0:
                raise make_empty_file_error(file)


def _parse_text(file: int, text: Bytes, width: int, n_features: int | None) -> list[_Table]:
    """Parse a padded piece of text into a table as wide as its highest index; halve it where that is too large."""
    rows = count_lines(text)
    if 4 * rows * width > _LARGEST_TABLE and rows > 1:
        middle = _find_line(text, (len(text) - kernel.PADDING) // 2)
        padding = np.full(kernel.PADDING, ord("\n"), np.uint8)
        halves = (np.concatenate([text[:middle], padding]), text[middle:])
        return [table for half in halves for table in _parse_text(file, half, width, n_features)]
    X, y = np.zeros((rows, width), np.float32), np.empty(rows)
    part = parse_block(file, text, X, y, n_features)
    if isinstance(part, BadLine) or part.highest <= width:
        return [(part, X, y, len(text) - kernel.PADDING)]
    return _parse_text(file, text, part.highest, n_features)


def _find_line(text: Bytes, place: int) -> int:
    """Return where the first line after a place begins, or if it is the last one, where the line at the place does."""
    after = bytes(text[place : len(text) - kernel.PADDING - 1]).find(b"\n")
    return place + after + 1 if after >= 0 else bytes(text[:place]).rfind(b"\n") + 1
