"""JSON lines: an object per line, whose keys are the columns."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Iterator
from fnmatch import fnmatchcase
from itertools import islice
from typing import Any

from rankwright.basics.errors import InputError, quote
from rankwright.basics.files import StrPath
from rankwright.basics.optional_imports import require
from rankwright.data.table_columns import TableColumns
from rankwright.data.table_files import TableFile, cut_tables
from rankwright.data.table_texts import count_lines, open_text, read_head

_BLOCK = 1 << 22
_NO_OBJECT = re.compile(rb"(?m)^[ \t\r]*[^{ \t\r\n]|\}[ \t\r]*null")  # pyarrow crashes on null in place of an object


class JsonLinesFile(TableFile):
    """A text file with a JSON object per line; a key that an object lacks is missing in its row."""

    def __init__(self, path: StrPath) -> None:
        super().__init__(path)
        self.text_size = self.path.stat().st_size
        pa = require("pyarrow")
        from pyarrow import json as arrow_json

        self._json = arrow_json
        head = read_head(path)
        if not head.strip():
            raise InputError(f"{path}: empty; expected a JSON object per line")
        schema = self._parse(head, None, 1).schema
        dates = [pa.string() if pa.types.is_temporal(type_) else type_ for type_ in schema.types]
        self._schema = pa.schema(list(zip(schema.names, dates, strict=True)))
        self.kinds = self.name_kinds(self._schema)

    def count_lines(self) -> int | None:
        """Return the number of lines, each of which is a row."""
        return count_lines(self.path)

    def read(self, columns: TableColumns) -> Iterator[Any]:
        """Yield the tables of blocks of lines."""
        return self.read_blocks(columns)

    def read_blocks(self, columns: TableColumns) -> Iterator[Any]:
        """Yield the tables of blocks of lines."""
        pa = require("pyarrow")
        types = dict.fromkeys(columns.features, pa.float32()) | dict.fromkeys(columns.numbers, pa.float64())
        for name in columns.names:
            known = self._schema.field(name).type
            if name in columns.ids or name in columns.categorical:
                types[name] = pa.string() if pa.types.is_null(known) else known
            elif pa.types.is_boolean(known):
                types[name] = known
        schema = pa.schema([(name, types[name]) for name in columns.names])
        line = 1
        for block in self._read_lines():
            table = self._parse(block, schema, line)
            self._check_keys(table, columns)
            yield from cut_tables([table], columns)
            line += block.count(b"\n")

    def _parse(self, block: bytes, schema: Any, line: int) -> Any:
        """Return lines, the first of which has this number, as a table; raise InputError if one is bad."""
        pa = require("pyarrow")
        options = {
            "read_options": self._json.ReadOptions(block_size=len(block) + 1),
            "parse_options": self._json.ParseOptions(explicit_schema=schema),
        }
        try:
            block.decode("utf-8")  # pyarrow does not look
            if _NO_OBJECT.search(block) and _find_bad_line(block, schema, line):
                raise pa.ArrowInvalid
            table = self._json.read_json(pa.BufferReader(block), **options)
            n_lines = block.count(b"\n")
            if table.num_rows != n_lines:  # a last line may have no end, and pyarrow takes objects over several lines
                n_lines = sum(1 for text in block.split(b"\n") if text.strip())
            if table.num_rows != n_lines:
                raise pa.ArrowInvalid(f"{table.num_rows} JSON objects on {n_lines} lines; expected one per line")
            return table
        except UnicodeDecodeError as error:
            place = line + block.count(b"\n", 0, error.start)
            raise InputError(f"{self.path}:{place}: not UTF-8; save the file in UTF-8") from None
        except pa.ArrowInvalid as error:
            found, problem = _find_bad_line(block, schema, line) or ("", str(error))
            raise InputError(f"{self.path}{found}: {problem}") from None

    def _check_keys(self, table: Any, columns: TableColumns) -> None:
        """Raise InputError if rows have a key that the first ones lack and that is not left out."""
        for name in table.schema.names:
            if name not in self.kinds and not any(fnmatchcase(name, pattern) for pattern in columns.left_out):
                raise InputError(
                    f"{self.path}: the first rows lack the key {name!r}, which later ones have; expected every column "
                    "in the first row, null where it is missing. Or choose columns with features= (--features)"
                )

    def _read_lines(self) -> Iterator[bytes]:
        """Yield blocks of whole lines that are not all blank."""
        with open_text(self.path) as stream:
            rest = b""
            while more := stream.read(_BLOCK):
                end = more.rfind(b"\n") + 1
                if end and (rest + more[:end]).strip():
                    yield rest + more[:end]
                    rest = more[end:]
                else:
                    rest += more
            if rest.strip():
                yield rest

    def locate(self, row: int) -> str:
        """Return the file and the line of a row, counted from 0."""
        with open_text(self.path) as stream:
            filled = (line for line, text in enumerate(io.BufferedReader(stream), 1) if text.strip())
            return f"{self.path}:{next(islice(filled, row, None), None)}"


def _find_bad_line(block: bytes, schema: Any, first: int) -> tuple[str, str] | None:
    """Return the place and the problem of the first line that is no JSON object of these columns."""
    seen: dict[str, type] = {}
    for line, text in enumerate(block.split(b"\n"), first):
        if not text.strip():
            continue
        try:
            found = json.loads(text)
        except ValueError as error:
            return f":{line}", f"no JSON: {error}; expected a JSON object on each line"
        if not isinstance(found, dict):
            return f":{line}", f'{quote(found)}; expected a JSON object, such as {{"qid": 1, "label": 0}}'
        for name, value in found.items():
            kind = float if isinstance(value, int | float) and not isinstance(value, bool) else type(value)
            if schema is not None and name in schema.names:
                expected = _python_type(schema.field(name).type)
            else:
                expected = seen.setdefault(name, kind) if value is not None else kind
            if value is not None and kind is not expected:
                names = {str: "text", float: "a number", bool: "true or false"}
                wanted = names.get(expected, expected.__name__)
                return f":{line}", f"the key {name!r} has {quote(value)}; expected {wanted} as in the first rows"
    return None


def _python_type(type_: Any) -> type:
    """Return the Python type of the values of an Arrow type."""
    types = require("pyarrow").types
    return bool if types.is_boolean(type_) else str if types.is_string(type_) else float
