"""CSV and TSV: a header and a row per line."""

from __future__ import annotations

import csv
import io
import mmap
import re
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from typing import Any

from rankwright.basics.errors import InputError, quote
from rankwright.basics.files import StrPath, skip_byte_order_mark
from rankwright.basics.optional_imports import require
from rankwright.data.table_columns import ColumnKind, TableColumns, logger
from rankwright.data.table_files import TableFile, cut_tables, name_columns
from rankwright.data.table_texts import count_lines, find_codec, open_text, read_head

_HEAD = 1 << 18  # bytes that the kinds of columns are guessed from
_LARGE = 1 << 26  # bytes of a compressed file, of which nobody knows how large its table is
_SEPARATORS = ",\t;|"
_NUMBER = ColumnKind("number", "number")


class CsvFile(TableFile):
    """A text file with a header and a row per line, separated by commas, tabs, semicolons or bars.

    Only an empty cell is a missing id or category: NA may be an id. Of numbers, NA, NaN and null are missing too.
    """

    has_types = False

    def __init__(self, path: StrPath) -> None:
        super().__init__(path)
        self.text_size = self.path.stat().st_size
        require("pyarrow")
        from pyarrow import csv as arrow_csv

        self._csv = arrow_csv
        head = read_head(path, _HEAD)
        self._separator, self._header = self._parse_header(head)
        self._newlines = _has_quotes(path)
        self._booleans: set[str] = set()
        self.kinds = self._guess_kinds(head)

    def _parse_header(self, head: bytes) -> tuple[str, list[str]]:
        """Return the separator and the names of the columns; raise InputError if the first line has none."""
        try:
            text = skip_byte_order_mark(head).decode("utf-8")
        except UnicodeDecodeError as error:
            line = head.count(b"\n", 0, error.start) + 1
            raise InputError(f"{self.path}:{line}: not UTF-8; save the file in UTF-8") from None
        separator = guess_separator(text, self.path.name)
        reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator)
        names = next((record for record in reader if record), [])
        if not names:
            raise InputError(f"{self.path}: empty; expected a line with the names of the columns, then rows")
        if all(_is_number(name) for name in names):
            raise InputError(f"{self.path}:1: numbers; expected the names of the columns in the first line")
        name_columns(names, names, self.name)
        if "" in names[1:]:
            raise InputError(f"{self.path}:1: column {names.index('', 1) + 1} has no name; expected a name for each")
        return separator, names

    def _guess_kinds(self, head: bytes) -> dict[str, ColumnKind]:
        """Return the kinds of the columns, by the first rows."""
        pa = require("pyarrow")
        serial = self._csv.ReadOptions(use_threads=False)  # a process that ends while Arrow starts threads may abort
        with self._explain(None):
            table = self._csv.read_csv(pa.BufferReader(head), read_options=serial, parse_options=self._parse_options())
        kinds = {}
        for name, column in zip(self._header, table.columns, strict=True):
            tests = (pa.types.is_integer, pa.types.is_floating, pa.types.is_boolean, pa.types.is_null)
            if pa.types.is_boolean(column.type):
                self._booleans.add(name)
            if any(test(column.type) for test in tests):
                kinds[name] = _NUMBER
            else:
                kinds[name] = self._describe_texts(name, column.to_pylist())
        if "" in kinds:
            logger.info("%s: left out the first column, which has no name: an index", self.path)
            del kinds[""]
        return kinds

    def _describe_texts(self, name: str, cells: list[Any]) -> ColumnKind:
        """Return the kind of a column of texts, with the line of the first one if most of the cells are numbers."""
        filled = [(row, str(cell)) for row, cell in enumerate(cells) if str(cell or "").strip() not in _MISSING]
        texts = [row for row, cell in filled if not _is_number(cell)]
        found, stray, n_numbers = quote(str(cells[texts[0]]) if texts else ""), "", len(filled) - len(texts)
        if texts and n_numbers > len(texts):
            stray = f"{self.locate(texts[0])}: the column {name!r} has {found}; expected a number"
            stray += f", as {n_numbers:,} of the first {len(cells):,} rows have"
        return ColumnKind("text", f"text such as {found}", stray=stray)

    def _parse_options(self) -> Any:
        """Return pyarrow's options of how text is cut into cells."""
        return self._csv.ParseOptions(delimiter=self._separator, newlines_in_values=self._newlines)

    def _make_options(self, columns: TableColumns) -> dict[str, Any]:
        """Return pyarrow's options; types are never guessed, or those of blocks could differ."""
        pa = require("pyarrow")
        text = pa.dictionary(pa.int32(), pa.string())
        types = dict.fromkeys(columns.features, pa.float32()) | dict.fromkeys(columns.numbers, pa.float64())
        types |= {name: pa.bool_() for name in types if name in self._booleans}
        types |= dict.fromkeys((*columns.categorical, *columns.ids), text)
        names = list(columns.names)
        convert = self._csv.ConvertOptions(column_types={name: types[name] for name in names}, include_columns=names)
        return {"parse_options": self._parse_options(), "convert_options": convert}

    @contextmanager
    def _open(self) -> Iterator[Any]:
        """Open the file for pyarrow, which reads a plain file best by itself."""
        if find_codec(self.path) is None:
            with require("pyarrow").OSFile(str(self.path)) as file:
                yield file
        else:
            with open_text(self.path) as stream:
                yield stream

    def count_lines(self) -> int | None:
        """Return the number of lines, if each is a row."""
        return None if self._newlines else count_lines(self.path)

    def read(self, columns: TableColumns) -> Iterator[Any]:
        """Yield the whole file as one table, parsed in parallel; a large compressed one in blocks of lines."""
        if find_codec(self.path) is not None and self.path.stat().st_size > _LARGE:
            yield from self.read_blocks(columns)
            return
        with self._explain(columns), self._open() as stream:
            table = self._csv.read_csv(stream, **self._make_options(columns))
        yield table

    def read_blocks(self, columns: TableColumns) -> Iterator[Any]:
        """Yield blocks of lines."""
        with self._explain(columns), self._open() as stream:
            yield from cut_tables(self._csv.open_csv(stream, **self._make_options(columns)), columns)

    @contextmanager
    def _explain(self, columns: TableColumns | None) -> Iterator[None]:
        """Turn an error of pyarrow into an InputError with the line and the column."""
        pa = require("pyarrow")
        try:
            yield
        except pa.ArrowInvalid as error:
            row = self._find_bad_row(columns)
            if row is None:
                if "Empty" in str(error):
                    raise InputError(f"{self.path}: no rows; expected at least one document") from None
                raise InputError(f"{self.path}: {error}") from None
            place, record = self._read_record(row)
            raise InputError(f"{place}: {self._describe_problem(record, columns) or error}") from None

    def _find_bad_row(self, columns: TableColumns | None) -> int | None:
        """Return the first row, counted from 0, that pyarrow does not take; None if it says none."""
        pa = require("pyarrow")
        options = {"parse_options": self._parse_options()} if columns is None else self._make_options(columns)
        try:
            with self._open() as stream:
                serial = self._csv.ReadOptions(use_threads=False)
                for _ in self._csv.open_csv(stream, read_options=serial, **options):
                    pass
        except pa.ArrowInvalid as error:
            found = re.search(r"Row #(\d+)", str(error))
            return None if found is None else int(found[1]) - 2
        return None

    def _describe_problem(self, record: list[str], columns: TableColumns | None) -> str | None:
        """Return what is wrong with a row; None if nothing is."""
        if len(record) != len(self._header):
            return f"{len(record)} cells; expected {len(self._header)}, as in the header"
        cells = dict(zip(self._header, record, strict=True))
        if columns is None:
            return None
        for name in columns.names:
            if "\ufffd" in cells[name]:
                return f"the column {name!r} is not UTF-8; save the file in UTF-8"
            is_plain = name in columns.numbers or (name in columns.features and name not in columns.categorical)
            if is_plain and not _is_number(cells[name]):
                expected = "true or false, as in the first rows" if name in self._booleans else "a number"
                comma = " with a decimal point" if re.fullmatch(r"\s*[+-]?\d+,\d+\s*", cells[name]) else ""
                return f"the column {name!r} has {quote(cells[name])}; expected {expected}{comma}"
        return None

    def _read_record(self, row: int) -> tuple[str, list[str]]:
        """Return the place and the cells of a row, counted from 0."""
        with open_text(self.path) as stream:
            text = io.TextIOWrapper(io.BufferedReader(stream), "utf-8", "replace", newline="")
            records = csv.reader(text, delimiter=self._separator)
            filled = (record for record in records if record)
            record = next(islice(filled, row + 1, None), [])
            return f"{self.path}:{records.line_num}", record

    def locate(self, row: int) -> str:
        """Return the file and the line of a row, counted from 0."""
        return self._read_record(row)[0]


def guess_separator(header: str, name: str) -> str:
    """Return the separator of the cells: a tab in files called .tsv or .tab, else the most frequent one of the header.

    >>> guess_separator("qid;label;bm25", "train.csv")
    ';'
    """
    if any(part in ("tsv", "tab") for part in name.lower().split(".")[1:]):
        return "\t"
    line = re.sub('"[^"]*"', "", header.lstrip("\r\n")).partition("\n")[0]
    return max(_SEPARATORS, key=line.count)


def _has_quotes(path: StrPath) -> bool:
    """Return whether a cell may have a line break, which takes longer to parse: quotes are found, or not looked for."""
    if find_codec(path) is not None:
        return True
    with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as text:  # noqa: PTH123
        return text.find(b'"', text.find(b"\n") + 1) >= 0  # names are often quoted, and then nothing else is


def _is_number(cell: str) -> bool:
    """Return whether a cell is a number, or missing."""
    if cell.strip() in _MISSING:
        return True
    try:
        float(cell)
    except ValueError:
        return False
    return True


_MISSING = {"", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN", "N/A", "NA"}
_MISSING |= {"NULL", "NaN", "n/a", "nan", "null"}
