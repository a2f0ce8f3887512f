"""Recognition of the format of a data file, by its content and then by its name."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path

from rankwright.basics.errors import InputError
from rankwright.basics.files import skip_byte_order_mark
from rankwright.data.csv_files import CsvFile
from rankwright.data.json_lines import JsonLinesFile
from rankwright.data.table_files import ArrowFile, ParquetFile, TableFile
from rankwright.data.table_texts import read_head

LETOR = "LETOR text"
TABLE_FILES: Mapping[str, Callable[[Path], TableFile]] = {
    "Parquet": ParquetFile,
    "Arrow": ArrowFile,
    "CSV": CsvFile,
    "JSON lines": JsonLinesFile,
}
_NAMES = {
    **dict.fromkeys(("parquet", "pq", "parq"), "Parquet"),
    **dict.fromkeys(("arrow", "arrows", "feather", "ipc"), "Arrow"),
    **dict.fromkeys(("csv", "tsv", "tab"), "CSV"),
    **dict.fromkeys(("jsonl", "ndjson"), "JSON lines"),
}
_SIGNATURES = {b"PAR1": "Parquet", b"ARROW1": "Arrow", b"\xff\xff\xff\xff": "Arrow"}
_OTHERS = {
    b"FEA1": "Feather of version 1; write it again as version 2",
    b"PK\x03\x04": "a zip archive or an Excel workbook; save the table as CSV or Parquet",
    b"SQLite format 3": "an SQLite database; save the table as CSV or Parquet",
    b"\x89HDF": "an HDF5 file; save the table as CSV or Parquet",
    b"\x93NUMPY": "a NumPy array; in Python, use Queries.from_arrays",
    b"ORC": "an ORC file; save the table as Parquet",
    b"\xff\xfe": "text in UTF-16; save it as UTF-8",
    b"\xfe\xff": "text in UTF-16; save it as UTF-8",
}
_LETOR_LINE = re.compile(rb"\s*[^\s,;]+\s+(qid|\d+):\S")


def recognise_format(path: Path) -> str:
    """Return the format of a data file: LETOR text or a key of ``TABLE_FILES``; raise InputError if it is another.

    A pipe, which can be read once only, is taken for LETOR text, and its content checked when it is read.
    """
    if not path.is_file():
        return LETOR
    with path.open("rb") as file:
        by_start = _recognise_start(path, file.read(16))
    by_name = find_format_by_name(path)
    if by_start is None and by_name in ("Parquet", "Arrow"):
        raise InputError(f"{path}: not {by_name}, which its name says; rename it if it has another format")
    return by_start or _recognise_text(read_head(path), by_name)


def check_pipe(path: Path, start: bytes) -> None:
    """Raise InputError if a pipe, whose first bytes are given, has a table and not LETOR text."""
    found = _recognise_start(path, start) or _recognise_text(start, None)
    if found != LETOR:
        raise InputError(f"{path}: {found}; expected LETOR text from a pipe. Save a table to a file, and name the file")


def _recognise_start(path: Path, start: bytes) -> str | None:
    """Return the format that the first bytes of a file say; None if it is text, InputError if it is no data file."""
    for signature, problem in _OTHERS.items():
        if start.startswith(signature):
            raise InputError(f"{path}: {problem}")
    return next((name for signature, name in _SIGNATURES.items() if start.startswith(signature)), None)


def find_format_by_name(path: Path) -> str | None:
    """Return the format of tables that a file's name says; None if it says none.

    >>> find_format_by_name(Path("train.csv.gz"))
    'CSV'
    """
    endings = path.name.lower().split(".")[1:]
    return next((_NAMES[ending] for ending in reversed(endings[-2:]) if ending in _NAMES), None)


def _recognise_text(head: bytes, by_name: str | None) -> str:
    """Return the format of text by its first line with content."""
    lines = skip_byte_order_mark(head).splitlines()
    line = next((line for line in lines if line.strip() and not line.startswith(b"#")), b"")
    if _LETOR_LINE.match(line):
        return LETOR
    if line.lstrip().startswith(b"{"):
        return "JSON lines"
    if by_name is not None:
        return by_name
    return "CSV" if re.search(rb"[,\t;|]", line) else LETOR
