"""Tables, read at once and in blocks: what all kinds share, and CSV."""

from __future__ import annotations

import math
import re
import zlib
from abc import abstractmethod
from collections.abc import Iterable
from random import Random
from typing import Any, NamedTuple

import numpy as np

from fuzz import references
from fuzz.cases import UNDECIDED, Kind
from fuzz.mutation import maybe, mutate_bytes, number, wrap_text
from rankwright import InputError, Queries
from rankwright.data import json_lines
from rankwright.data.column_roles import ColumnRoles
from rankwright.data.reading import open_source
from rankwright.data.row_sources import join_blocks
from rankwright.runtime.backends import Serial

_IDS = ("1", "2", "17", "-3", "007", "q1", "na\u00efve", "\u6f22\u5b57", "1e5", "NA", "nan", "true", "9" * 25)
FEATURES = ("a", "b")
NAMES = {"qid", "label", "docid", *FEATURES}
_LARGEST = float(np.finfo(np.float32).max)
_MISSING = {"", "NA", "NaN", "nan", "null", "NULL", "N/A"}
_NUMBER = re.compile(r"-?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?", re.ASCII)


class Document(NamedTuple):
    """A row of a table."""

    query: str
    label: float
    document: str
    values: tuple[float, ...]


class Undecidable(Exception):
    """The reference does not know what to expect."""


class Table(Kind):
    """A table with the columns qid, label, docid, a and b."""

    ending: str

    def make_rows(self, rng: Random, bad: float) -> list[dict[str, str]]:
        """Make the rows as texts, most of them good."""
        ids = rng.choice((("1", "2", "17"), _IDS))
        rows = [
            {"qid": rng.choice(ids), "label": str(rng.randrange(5)) if maybe(rng, 0.8) else number(rng, bad)}
            | {"docid": f"d{i}" if maybe(rng, 0.9) else rng.choice(_IDS)}
            | {name: "" if maybe(rng, 0.05) else number(rng, bad) for name in FEATURES}
            for i in range(rng.choice((1, 2, 3, 8)))
        ]
        names = rng.sample(sorted(NAMES), len(NAMES))
        if maybe(rng, 0.3):
            names.remove("docid")
        return [{name: row[name] for name in names} for row in rows]

    @abstractmethod
    def read_rows(self, data: bytes) -> Iterable[Document]:
        """Yield the rows; raise Refused or Undecidable."""

    def reference(self, data: bytes) -> Any:
        """Read it the obvious way."""
        try:
            return list(self.read_rows(data)) or None
        except references.Refused:
            return None
        except Undecidable:
            return UNDECIDED

    def read(self, data: bytes) -> Queries:
        """Read it with the library, at once and in blocks, which have to agree."""
        json_lines._BLOCK = (1 << 22, 100)[zlib.crc32(data) % 2]
        path = self.write(data, f"table.{self.ending}")
        try:
            found = open_source([path], ColumnRoles()).read(Serial())
        except InputError:
            _check_refused(path)
            raise
        source = open_source([path], ColumnRoles())
        same = join_blocks(source.read_blocks(), None, source.features, source.categories)
        for name in ("X", "y", "row_qid", "docid") if found.has_grades else ("X", "row_qid", "docid"):
            one, other = getattr(found, name), getattr(same, name)
            if (one is None) != (other is None) or (one is not None and not _are_same(one, other)):
                raise AssertionError(f"{name} of blocks")
        return found

    def difference(self, expected: list[Document], found: Queries) -> str:
        """Compare row by row, in the order of the file."""
        if found.n_docs != len(expected) or set(found.features or ()) != set(FEATURES):
            return "the number of rows or features"
        X = found.X[:, [list(found.features or ()).index(name) for name in FEATURES]]
        for at, row in enumerate(expected):
            values = np.array(row.values, np.float32)
            if not np.array_equal(np.isnan(X[at]), np.isnan(values)):
                return "a missing value"
            if (np.abs(X[at] - values) > np.abs(np.spacing(values))).any():  # text is rounded once or twice
                return "a value"
            if found.y[at] != row.label:
                return "a label"
            if str(found.row_qid[at]) != row.query:
                return "a query id"
            if ("" if found.docid is None else str(found.docid[at])) != row.document:
                return "a document id"
        return ""


def _are_same(one: Any, other: Any) -> bool:
    """Return whether two arrays are the same, bit by bit or as ids."""
    return bool(one.tobytes() == other.tobytes() if one.dtype.kind == "f" else one.tolist() == other.tolist())


def _check_refused(path: Any) -> None:
    """Raise AssertionError if blocks can be read where the whole cannot."""
    try:
        source = open_source([path], ColumnRoles())
        join_blocks(source.read_blocks(), None, source.features, source.categories)
    except InputError:
        return
    raise AssertionError("blocks are read, and the whole is not")


def check_range(value: float) -> float:
    """Return a number; refuse one that float32 does not hold."""
    if abs(value) > _LARGEST:
        raise references.Refused
    return value


class Csv(Table):
    """Cells with separators."""

    name = "csv"
    ending = "csv"

    def make(self, rng: Random) -> bytes:
        """Make a header and a few lines."""
        bad, separator = rng.choice((0.0, 0.0, 0.0, 0.05)), rng.choice(",,,;\t|")
        rows = self.make_rows(rng, bad)
        ending = rng.choice(("\n", "\n", "\r\n"))
        quoted = '"{}"' if maybe(rng, 0.1) else "{}"
        lines = [separator.join(map(quoted.format, cells)) for cells in (rows[0], *(row.values() for row in rows))]
        if maybe(rng, bad):
            lines.insert(rng.randrange(len(lines)), rng.choice(("", ",", lines[0], "x", "1,2,3,4,5,6")))
        data = ending.join([*lines, ""]).encode()
        data = mutate_bytes(rng, data) if maybe(rng, 0.3) else data
        return wrap_text(rng, data)

    def read_rows(self, data: bytes) -> Iterable[Document]:
        """Yield the rows of text without quotes and with the usual line ends."""
        text = references.unpack(data).replace(b"\r\n", b"\n")
        try:
            decoded = text.decode("utf-8")
        except UnicodeDecodeError:
            raise references.Refused from None
        if any(character in decoded for character in '"\r\0') or decoded.startswith(("{", "\ufeff")):
            raise Undecidable
        lines = [line for line in decoded.split("\n") if line]
        if not lines:
            raise references.Refused
        separator = max(",\t;|", key=lines[0].count)
        names = lines[0].split(separator)
        if not NAMES - {"docid"} <= set(names) <= NAMES or len(set(names)) < len(names) or decoded[0] == "\n":
            raise Undecidable
        rows = [line.split(separator) for line in lines[1:]]
        if any(len(row) != len(names) for row in rows):
            raise references.Refused
        columns = {name: [row[i] for row in rows] for i, name in enumerate(names)}
        for name in ("label", *FEATURES):
            if any(not _NUMBER.fullmatch(cell) and cell not in _MISSING for cell in columns[name]):
                self._refuse(columns[name])
        for i in range(len(rows)):
            cells = {name: column[i] for name, column in columns.items()}
            if not cells["qid"] or not cells.get("docid", "x") or cells["label"] in _MISSING:
                raise references.Refused
            values = tuple(math.nan if cells[f] in _MISSING else check_range(float(cells[f])) for f in FEATURES)
            label = float(cells["label"])
            if not math.isfinite(label):
                raise references.Refused
            yield Document(cells["qid"], label, cells.get("docid", ""), values)

    def _refuse(self, cells: list[str]) -> None:
        """Raise Refused for a column that is none of numbers, Undecidable where it may be."""
        odd = [cell for cell in cells if not _NUMBER.fullmatch(cell) and cell not in _MISSING]
        lenient = (cell for cell in odd if cell != cell.strip() or cell.startswith("+") or not cell.isascii())
        known = {"true", "false", "#n/a", "#na", "n/a", "-nan", "nan", "na", "null"}
        if any(lenient) or any(cell.lower() in known or "nan" in cell.lower() for cell in odd):
            raise Undecidable
        raise references.Refused
