"""Tables whose values have types: JSON lines and Parquet."""

from __future__ import annotations

import io
import json
import math
import zlib
from collections.abc import Iterable
from random import Random
from typing import Any

import pyarrow as pa
from pyarrow import parquet

from fuzz import references
from fuzz.mutation import maybe, mutate_bytes, wrap_text
from fuzz.table_kinds import FEATURES, NAMES, Document, Table, Undecidable, check_range


class JsonLines(Table):
    """An object per line."""

    name = "jsonl"
    ending = "jsonl"

    def make(self, rng: Random) -> bytes:
        """Make a few lines."""
        bad = rng.choice((0.0, 0.0, 0.0, 0.05))
        as_number = maybe(rng, 0.5)
        lines = [self._make_line(rng, row, bad, as_number) for row in self.make_rows(rng, bad)]
        if maybe(rng, bad):
            lines.insert(rng.randrange(len(lines)), rng.choice(("", "{}", "[]", "1", '{"c": 1}', "null")))
        data = "\n".join([*lines, ""]).encode()
        data = mutate_bytes(rng, data) if maybe(rng, 0.3) else data
        return wrap_text(rng, data)

    def _make_line(self, rng: Random, row: dict[str, str], bad: float, as_number: bool) -> str:
        cells = []
        for name, text in row.items():
            is_text = name == "docid" or (name == "qid" and not as_number)
            value = json.dumps(text, ensure_ascii=maybe(rng, 0.5)) if is_text else text or "null"
            value = str(rng.randrange(9)) if name == "qid" and as_number else value
            value = rng.choice(('"x"', "true", "null", "[1]", '{"a": 1}', "1e400")) if maybe(rng, bad / 2) else value
            cells.append(f'"{name}": {value}')
        return "{" + ", ".join(cells) + "}"

    def read_rows(self, data: bytes) -> Iterable[Document]:
        """Yield the rows of plain JSON."""
        text = references.unpack(data)
        rows: list[dict[str, Any]] = []
        kinds: set[tuple[str, type]] = set()
        for line in text.split(b"\n"):
            if line.strip(b" \t\r"):
                row = self._parse(line)
                if not isinstance(row, dict):
                    raise Undecidable if rows else references.Refused
                kinds |= {(name, type(value)) for name, value in row.items() if value is not None}
                rows.append(row)
        if not rows:
            raise references.Refused
        names = {name for row in rows for name in row}
        if any(row.keys() != rows[0].keys() for row in rows) or not NAMES - {"docid"} <= names <= NAMES:
            raise Undecidable
        for name in FEATURES:
            if not {kind for each, kind in kinds if each == name} <= {int, float}:
                raise Undecidable if (name, bool) in kinds else references.Refused
        for name in ("qid", "docid", "label"):
            found = {kind for each, kind in kinds if each == name}
            if name == "label" and found != {int} and found != {float} and found != {int, float}:
                raise Undecidable if bool in found else references.Refused
            if name != "label" and found and found != {str} and found != {int}:
                raise Undecidable
        for row in rows:
            numbers = [row[name] for name in ("qid", "label", *FEATURES) if isinstance(row[name], int | float)]
            if any(isinstance(value, int) and abs(value) >= 2**53 for value in numbers):
                raise Undecidable
            if row["label"] is None or row["qid"] in (None, "") or row.get("docid", "x") in (None, ""):
                raise references.Refused
            values = tuple(math.nan if row[f] is None else check_range(float(row[f])) for f in FEATURES)
            if not math.isfinite(row["label"]):
                raise references.Refused
            yield Document(str(row["qid"]), float(row["label"]), str(row.get("docid", "")), values)

    def _parse(self, line: bytes) -> Any:
        """Return the value of a line of JSON; undecidable where parsers differ."""

        def check_names(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
            if len({name for name, _ in pairs}) < len(pairs):
                raise Undecidable
            return dict(pairs)

        def refuse(word: str) -> None:
            raise Undecidable

        try:
            return json.loads(line.decode("utf-8"), object_pairs_hook=check_names, parse_constant=refuse)
        except UnicodeDecodeError:
            raise Undecidable from None
        except ValueError:
            if any(byte < 32 or byte == 127 for byte in line.strip(b" \t\r")) or b"\\" in line or b"nf" in line:
                raise Undecidable from None  # control characters in texts
            raise references.Refused from None


class Parquet(Table):
    """Parquet as pyarrow writes it, some of it damaged."""

    name = "parquet"
    ending = "parquet"

    def make(self, rng: Random) -> bytes:
        """Make a table of some types, in row groups."""
        rows = self.make_rows(rng, 0.0)
        types = {"qid": rng.choice((pa.string(), pa.int64(), pa.large_string(), pa.int8()))}
        types |= {name: rng.choice((pa.float32(), pa.float64(), pa.int32())) for name in ("label", *FEATURES)}
        arrays = []
        for name in rows[0]:
            type_ = types.get(name, pa.string())
            if pa.types.is_integer(type_):
                values: list[Any] = [None if row[name] == "" else zlib.crc32(row[name].encode()) % 99 for row in rows]
            else:
                is_text = name in ("qid", "docid")
                values = [row[name] if is_text else float(row[name]) if row[name] else None for row in rows]
            arrays.append(pa.array(values, type_))
        stream = io.BytesIO()
        options = {"compression": rng.choice(("none", "snappy", "zstd")), "row_group_size": rng.choice((2, 100))}
        table = pa.table(dict(zip(rows[0], arrays, strict=True)))
        parquet.write_table(table, stream, write_page_checksum=maybe(rng, 0.3), **options)
        data = stream.getvalue()
        return mutate_bytes(rng, data) if maybe(rng, 0.3) else data

    def read_rows(self, data: bytes) -> Iterable[Document]:
        """Yield the rows as pyarrow reads them; what it cannot read may be refused."""
        try:
            table = parquet.read_table(io.BytesIO(data))
            rows, types = table.to_pylist(), dict(zip(table.schema.names, table.schema.types, strict=True))
        except Exception:
            raise Undecidable from None
        if parquet.read_metadata(io.BytesIO(data)).num_rows != len(rows):
            raise Undecidable
        if not data.startswith(b"PAR1") or not NAMES - {"docid"} <= set(types) <= NAMES or not rows:
            raise Undecidable
        if any(not (pa.types.is_floating(types[name]) or pa.types.is_int32(types[name])) for name in FEATURES):
            raise Undecidable
        if not isinstance(rows[0]["qid"], str | int) or not isinstance(rows[0]["label"], int | float):
            raise Undecidable
        for row in rows:
            label = math.nan if row["label"] is None else row["label"]
            if row["qid"] in (None, "") or row.get("docid", "x") in (None, "") or not math.isfinite(label):
                raise references.Refused
            values = tuple(math.nan if row[f] is None else check_range(float(row[f])) for f in FEATURES)
            yield Document(str(row["qid"]), float(label), str(row.get("docid", "")), values)
