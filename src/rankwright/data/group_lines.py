"""Lines of label-first text: ``label index:value ...`` with indices from 0, or columns separated by commas or tabs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

import numpy as np
from numpy.typing import NDArray

from rankwright.basics.array_types import Floats
from rankwright.basics.errors import InputError, quote
from rankwright.basics.files import skip_byte_order_mark
from rankwright.basics.optional_imports import require
from rankwright.data.letor_blocks import BadLine, count_lines, parse_block
from rankwright.data.table_texts import open_text
from rankwright.kernels.data import letor_text as kernel

_BLOCK = 1 << 22
_MISSING = ("", "NA", "na", "nan", "NaN", "NAN", "null", "NULL", "none", "None")


class _Piece(NamedTuple):
    """A piece of a file: whole lines, and the number of lines before them."""

    text: bytes
    before: int


class LabelFirstText(ABC):
    """A file of documents that begin with their label.

    Attributes
    ----------
    n_rows : int
        The number of documents.
    width : int
        The number of features.
    indices : str
        What is said about the order of the features.
    """

    n_rows: int
    width: int
    indices: str

    def __init__(self, path: Path) -> None:
        self.path = path

    @abstractmethod
    def choose_features(
        self, width: int, n_features: int | None, features: Sequence[str] | None, zero_based: bool
    ) -> tuple[tuple[str, ...] | None, list[int]]:
        """Return the names of the features to read, if they have any, and their columns."""

    @abstractmethod
    def read_blocks(self, columns: Sequence[int]) -> Iterator[tuple[Floats, Floats, NDArray[Any] | None]]:
        """Yield the features in some columns, the labels and the document ids of some rows at a time."""

    def _read_pieces(self) -> Iterator[_Piece]:
        """Yield the text in pieces of whole lines."""
        before, rest = 0, b""
        with open_text(self.path) as stream:
            start = True
            while more := stream.read(_BLOCK):
                more = skip_byte_order_mark(more) if start else more
                start = False
                end = more.rfind(b"\n") + 1
                if end:
                    text = rest + more[:end]
                    yield _Piece(text, before)
                    before += text.count(b"\n")
                rest = more[end:] if end else rest + more
            if rest:
                yield _Piece(rest, before)


class SparseText(LabelFirstText):
    """A file of lines ``label index:value ...``, whose indices count from 0 and name the features."""

    indices = "features called by their indices, from 0 as in LightGBM and XGBoost"

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.n_rows = self.width = 0
        for piece in self._read_pieces():
            _, y, _, highest = self._parse(piece, 1)
            self.n_rows, self.width = self.n_rows + len(y), max(self.width, highest)

    def choose_features(
        self, width: int, n_features: int | None, features: Sequence[str] | None, zero_based: bool
    ) -> tuple[tuple[str, ...] | None, list[int]]:
        """Return the features by their indices; those of a model without names are called 1, 2, ... ."""
        if features is None:
            if zero_based and n_features is not None and width > n_features + 1:
                raise InputError(f"{self.path}: indices up to {width - 1}; the model has {n_features} features")
            first = 0 if n_features is None or (zero_based and width <= n_features) else 1
            columns = list(range(first, first + (n_features or width)))
            return (tuple(map(str, columns)) if n_features is None else None), columns
        for name in features:
            if not (name.isascii() and name.isdecimal() and str(int(name)) == name and int(name) < width):
                found = f"no feature {quote(name)}; there are the indices 0 to {width - 1}"
                raise InputError(f"{self.path}: {found}. A feature of such text is called by its index")
        return tuple(features), [int(name) for name in features]

    def read_blocks(self, columns: Sequence[int]) -> Iterator[tuple[Floats, Floats, NDArray[Any] | None]]:
        """Yield the rows of a few megabytes of text at a time; absent features are 0."""
        width = max(columns) + 1
        in_order = list(columns) == list(range(width))
        for piece in self._read_pieces():
            X, y, docid, _ = self._parse(piece, width)
            if len(y):
                yield (X if in_order else np.ascontiguousarray(X[:, list(columns)])), y, docid

    def _parse(self, piece: _Piece, width: int) -> tuple[Floats, Floats, NDArray[Any] | None, int]:
        """Return the features, labels and document ids of a piece, and how many features it has."""
        text = np.frombuffer(piece.text + b"\n" * kernel.PADDING, np.uint8)
        rows = count_lines(text)
        X, y = np.zeros((rows, width), np.float32), np.empty(rows)
        part = parse_block(0, text, X, y, None, 0)
        if isinstance(part, BadLine):
            raise InputError(f"{self.path}:{piece.before + part.line}: {part.message}")
        return X[: part.rows], y[: part.rows], part.docid, part.highest


class DenseText(LabelFirstText):
    """A file of columns of numbers without a header, separated by commas or tabs; the first column is the label."""

    indices = "labels in the first column, features in the others"

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.n_rows = self.width = 0
        for piece in self._read_pieces():
            lines = [line for line in piece.text.split(b"\n") if line.strip()]
            if lines and not self.width:
                self._separator = "\t" if b"\t" in lines[0] else ","
                self.width = lines[0].count(self._separator.encode())
            self.n_rows += len(lines)

    def choose_features(
        self, width: int, n_features: int | None, features: Sequence[str] | None, zero_based: bool
    ) -> tuple[tuple[str, ...] | None, list[int]]:
        """Return all columns, which have no names; raise InputError if there should be another number of them."""
        expected = n_features or (width if features is None else len(features))
        if self.width != expected or width != expected:
            raise InputError(f"{self.path}: {self.width} features after the label; expected {expected}")
        return None, list(range(width))

    def read_blocks(self, columns: Sequence[int]) -> Iterator[tuple[Floats, Floats, NDArray[Any] | None]]:
        """Yield the rows of a few megabytes of text at a time; empty cells, NA and nan are missing."""
        pa = require("pyarrow")
        from pyarrow import csv as arrow_csv

        names = [str(column) for column in range(self.width + 1)]
        options = {
            "read_options": arrow_csv.ReadOptions(column_names=names, block_size=max(_BLOCK * 4, 1 << 24)),
            "parse_options": arrow_csv.ParseOptions(delimiter=self._separator),
            "convert_options": arrow_csv.ConvertOptions(
                column_types=dict.fromkeys(names, pa.float64()), null_values=list(_MISSING)
            ),
        }
        for piece in self._read_pieces():
            if not piece.text.strip():
                continue
            try:
                table = arrow_csv.read_csv(pa.BufferReader(piece.text), **options)
            except pa.ArrowInvalid:
                self._raise_bad_cell(piece)
            y, *values = (column.to_numpy() for column in table.columns)
            with np.errstate(over="ignore"):
                X = np.stack(values, axis=1).astype(np.float32)
            if not np.isfinite(y).all() or np.isinf(X).any():
                self._raise_bad_cell(piece)
            yield X, y, None

    def _raise_bad_cell(self, piece: _Piece) -> NoReturn:
        """Raise InputError for the first cell of a piece that is wrong, with its line and column."""
        for number, line in enumerate(piece.text.decode("utf-8", "backslashreplace").split("\n"), piece.before + 1):
            cells = [cell.strip() for cell in line.split(self._separator)]
            if line.strip() and len(cells) != self.width + 1:
                raise InputError(f"{self.path}:{number}: {len(cells)} columns; expected {self.width + 1}")
            for column, cell in enumerate(cells if line.strip() else [], 1):
                if not _is_finite(cell) and (column == 1 or cell not in _MISSING):
                    expected = "a finite number" + (" as label" if column == 1 else ", or nan if it is missing")
                    raise InputError(
                        f"{self.path}:{number}: found {quote(cell)} in column {column}; expected {expected}"
                    )
        raise InputError(f"{self.path}:{piece.before + 1}: not a table of numbers")


def _is_finite(cell: str) -> bool:
    """Return whether a cell is a number that float32 can hold."""
    try:
        with np.errstate(over="ignore"):
            return bool(np.isfinite(np.float32(float(cell))))
    except ValueError:
        return False


LINE_FORMATS: Mapping[str, Callable[[Path], LabelFirstText]] = {"sparse": SparseText, "dense": DenseText}
