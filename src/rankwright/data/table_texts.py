"""Text files of tables: CSV and TSV, and JSON lines, plain or compressed."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any

from rankwright.basics.files import StrPath, open_binary
from rankwright.basics.optional_imports import require
from rankwright.data.table_columns import TableColumns, is_text
from rankwright.data.table_files import TableFile, cut_tables, name_columns

_HEAD = 1 << 20  # bytes that types are guessed from
_BLOCK = 1 << 22
_ZSTD = b"\x28\xb5\x2f\xfd"
_SEPARATORS = ",\t;|"


@contextmanager
def open_text(path: StrPath) -> Iterator[Any]:
    """Open a file for reading bytes, decompressed if its content is gzip, xz or zstd."""
    with Path(path).open("rb") as file:
        is_zstd = file.read(4) == _ZSTD
    if is_zstd:
        with require("pyarrow").input_stream(str(path), compression="zstd") as stream:
            yield stream
    else:
        with open_binary(path) as stream:
            yield stream


def read_head(path: StrPath) -> bytes:
    """Return the first lines of a text file, decompressed: at least two, if it has as many."""
    with open_text(path) as stream:
        head = b""
        while True:
            more: bytes = stream.read(_HEAD)
            head += more
            if not more:
                return head
            end = head.rfind(b"\n") + 1
            if head.count(b"\n", 0, end) > 1:
                return head[:end]


class CsvFile(TableFile):
    """A text file with a header and a row per line, separated by commas, tabs, semicolons or bars."""

    has_types = False

    def __init__(self, path: StrPath) -> None:
        super().__init__(path)
        pa = require("pyarrow")
        from pyarrow import csv as arrow_csv

        self._csv = arrow_csv
        head = read_head(path)
        header = head.removeprefix(b"\xef\xbb\xbf").decode("utf-8", "replace")
        self.separator = guess_separator(header, self.path.name)
        names = next(csv.reader(io.StringIO(header, newline=""), delimiter=self.separator), [])
        self._has_quotes = b'"' in head
        table = arrow_csv.read_csv(pa.BufferReader(head), parse_options=self._parse_options())
        types = [pa.string() if pa.types.is_temporal(type_) else type_ for type_ in table.schema.types]
        self.types = name_columns(names, types, str(path))

    def _parse_options(self) -> Any:
        """Return pyarrow's options of how text is cut into cells."""
        return self._csv.ParseOptions(delimiter=self.separator, newlines_in_values=self._has_quotes)

    def _convert_options(self, columns: TableColumns) -> Any:
        """Return pyarrow's options of the types of the columns: never guessed, or blocks could differ."""
        pa = require("pyarrow")
        text = pa.dictionary(pa.int32(), pa.string())
        types = dict.fromkeys(columns.names, pa.float32()) | dict.fromkeys(columns.numbers, pa.float64())
        types |= {name: pa.bool_() for name in columns.names if pa.types.is_boolean(self.types[name])}
        types |= dict.fromkeys(columns.categorical, text) | dict.fromkeys(columns.ids, text)
        if columns.docid is not None:
            types[columns.docid] = pa.string()
        return self._csv.ConvertOptions(column_types=types, include_columns=list(columns.names))

    def read(self, columns: TableColumns) -> Iterator[Any]:
        """Yield the whole file as one table, parsed in parallel."""
        options = {"parse_options": self._parse_options(), "convert_options": self._convert_options(columns)}
        with open_text(self.path) as stream:
            yield self._csv.read_csv(stream, **options)

    def read_blocks(self, columns: TableColumns) -> Iterator[Any]:
        """Yield blocks of lines."""
        options = {"parse_options": self._parse_options(), "convert_options": self._convert_options(columns)}
        with open_text(self.path) as stream:
            yield from cut_tables(self._csv.open_csv(stream, **options), columns)

    def locate(self, row: int) -> str:
        """Return the file and the line of a row, counted from 0."""
        with open_text(self.path) as stream:
            text = io.TextIOWrapper(stream, "utf-8", "replace", newline="")
            records = csv.reader(text, delimiter=self.separator)
            filled = (record for record in records if record)
            next(islice(filled, row + 1, None), None)
            return f"{self.path}:{records.line_num}"


class JsonLinesFile(TableFile):
    """A text file with a JSON object per line."""

    def __init__(self, path: StrPath) -> None:
        super().__init__(path)
        pa = require("pyarrow")
        from pyarrow import json

        self._json = json
        table = json.read_json(pa.BufferReader(read_head(path)))
        types = [pa.string() if pa.types.is_temporal(type_) else type_ for type_ in table.schema.types]
        self.types = name_columns(table.schema.names, types, str(path))

    def read(self, columns: TableColumns) -> Iterator[Any]:
        """Yield the tables of blocks of lines."""
        return self.read_blocks(columns)

    def read_blocks(self, columns: TableColumns) -> Iterator[Any]:
        """Yield the tables of blocks of lines."""
        pa = require("pyarrow")
        types = {name: pa.float32() for name in columns.features if name not in columns.categorical}
        types |= {name: self.types[name] for name in columns.names if name not in types or is_text(self.types[name])}
        types |= {name: pa.bool_() for name in columns.names if pa.types.is_boolean(self.types[name])}
        options = self._json.ParseOptions(explicit_schema=pa.schema(list(types.items())))
        for block in self._read_lines():
            table = self._json.read_json(pa.BufferReader(block), parse_options=options)
            yield from cut_tables([table], columns)

    def _read_lines(self) -> Iterator[bytes]:
        """Yield blocks of whole lines that are not all blank."""
        with open_text(self.path) as stream:
            rest = b""
            while more := stream.read(_BLOCK):
                end = more.rfind(b"\n") + 1
                if end and (rest + more[:end]).strip():
                    yield rest + more[:end]
                rest = more[end:] if end else rest + more
            if rest.strip():
                yield rest

    def locate(self, row: int) -> str:
        """Return the file and the line of a row, counted from 0."""
        with open_text(self.path) as stream:
            filled = (line for line, text in enumerate(io.BufferedReader(stream), 1) if text.strip())
            return f"{self.path}:{next(islice(filled, row, None), None)}"


def guess_separator(header: str, name: str) -> str:
    """Return the separator of the cells: a tab in files called .tsv or .tab, else the most frequent one of the header.

    >>> guess_separator("qid;label;bm25", "train.csv")
    ';'
    """
    if any(part in ("tsv", "tab") for part in name.lower().split(".")[1:]):
        return "\t"
    line = header.partition("\n")[0]
    return max(_SEPARATORS, key=line.count)
