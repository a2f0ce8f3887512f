"""Blocks of LETOR text: whole lines, parsed into arrays that have room for them."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankwright.basics.array_types import Floats, Ints
from rankwright.basics.errors import quote
from rankwright.data.ids import WIDEST_ID, as_ids
from rankwright.kernels.data import letor_text as kernel

MAX_FEATURES = 100_000
Bytes = NDArray[np.uint8]

# Istella's files have the largest double where a value is missing; in 15 digits it is too large for a double.
_LARGEST_DOUBLE = re.compile(rb"\+?1\.7976\d*[eE]\+?308")

_MESSAGES = {
    kernel.BAD_LABEL: "found {found} for a label; expected a finite number, as in the LETOR line "
    "'2 qid:1 1:0.5 2:0', or a table (CSV, Parquet, Arrow, JSON lines)",
    kernel.NO_QID: "found {found}; expected qid:ID after the label, or a file of query sizes (NAME.query, NAME.group); "
    "TREC runs and qrels are for --run and --qrels (in Python read_trec)",
    kernel.BAD_INDEX: "found {found}; expected index:value",
    kernel.ZERO_INDEX: "feature index 0; LETOR indices start at 1. Add 1 to each (scikit-learn: zero_based=False)",
    kernel.ORDER: "feature index {found} after an equal or higher one; expected increasing indices",
    kernel.BAD_VALUE: "found {found} for a feature value; expected a finite number, or nan if it is missing",
    kernel.BAD_BREAK: "found a carriage return inside a comment; expected a newline at the end of every line",
    kernel.TOO_MANY_ROWS: "the file changed while it was read",
    kernel.TOO_WIDE: "feature index {found}; expected at most {most} features",
}


class LetorPart(NamedTuple):
    """A record of a parsed block of LETOR lines: its query ids, document ids and counts, but not ``X`` and ``y``."""

    file: int
    rows: int
    lines: int
    starts: Ints  # the first row of each run of one qid
    qid: list[str]
    docid: NDArray[Any] | None
    highest: int  # the highest feature index, counted from 1
    widest: int  # the first line that has it


class BadLine(NamedTuple):
    """A record of a line that cannot be read: its file, its number in the block, and the error message."""

    file: int
    line: int
    message: str


def count_lines(text: Bytes) -> int:
    """Return the number of lines in a padded block of text."""
    unfinished = len(text) > kernel.PADDING and text[-kernel.PADDING - 1] != ord("\n")
    return int(kernel.count_newlines(text)) - kernel.PADDING + unfinished


def parse_block(
    file: int, text: Bytes, X: Floats, y: Floats, n_features: int | None, lowest: int = 1
) -> LetorPart | BadLine:
    """Parse a block of LETOR lines into ``X`` and ``y``, and return its other facts, or its first bad line.

    Feature indices count from ``lowest``; lines that count from 0 have no query ids.
    """
    runs, docs = np.empty((len(y), 3), np.int64), np.empty((len(y), 2), np.int64)
    hard, most = np.empty((4096, 4), np.int64), n_features or MAX_FEATURES
    while True:
        result = kernel.parse_block(text, X, y, runs, docs, hard, most, lowest)
        status, n, lines, n_runs, n_hard, highest, widest, start, end = result
        if status != kernel.TOO_MANY_HARD:
            break
        hard = np.empty((8 * len(hard), 4), np.int64)
    bad = _round_numbers(text, hard[:n_hard], X, y)  # all of them stand before what the status complains about
    if bad is not None:
        place, token, reason = bad
        line = 1 + int(kernel.count_newlines(text[:place]))
        return BadLine(file, line, _MESSAGES[reason].format(found=quote(token)))
    if status != kernel.OK:
        found = quote(_decode_for_message(text[start:end])) if end > start else "nothing"
        return BadLine(file, int(lines), _MESSAGES[status].format(found=found, most=most))
    try:
        qid = [_decode_id(text, a, b) for _, a, b in runs[:n_runs]]
        docid = _decode_docids(text, docs[:n])
    except _BadId as error:
        return BadLine(file, 1 + int(kernel.count_newlines(text[: error.place])), str(error))
    starts = runs[:n_runs, 0].copy()
    return LetorPart(file, int(n), int(lines), starts, qid, docid, max(int(highest), 1), int(widest))


def _round_numbers(text: Bytes, hard: Ints, X: Floats, y: Floats) -> tuple[int, str, int] | None:
    """Round the numbers that the kernel left, each (row, column or -1 for the label, start, end), into ``X`` and ``y``.

    Return the place, the text and the kind of the first one that is not finite; None if all are.
    """
    known: dict[bytes, Any] = {}  # features: the mark of a missing value may occur in every line
    value: Any
    for row, column, a, b in hard.tolist():
        token = text[a:b].tobytes()
        if column < 0:
            value = y[row] = float(token)
        elif token not in known:
            with np.errstate(over="ignore"):
                value = known[token] = np.float32(np.nan if _LARGEST_DOUBLE.fullmatch(token) else float(token))
        else:
            value = known[token]
        if np.isinf(value):
            return a, token.decode(), kernel.BAD_VALUE if column >= 0 else kernel.BAD_LABEL
        if 0 <= column < X.shape[1]:
            X[row, column] = value
    return None


def _decode_docids(text: Bytes, spans: Ints) -> NDArray[Any] | None:
    """Return the document ids at the given spans of the text, or None if no line has one."""
    widths = spans[:, 1] - spans[:, 0]
    widest = int(widths.max(initial=0))
    if widest == 0:
        return None
    if widest <= WIDEST_ID:
        table = np.zeros((len(spans), widest), np.uint32)
        if kernel.copy_tokens(text, spans, len(spans), table):
            return table.view(f"U{widest}").ravel()
    return as_ids([_decode_id(text, a, b) for a, b in spans])


class _BadId(Exception):
    """An error for an id that is not valid text; ``place`` is where the id begins in its block."""

    def __init__(self, place: int, message: str) -> None:
        super().__init__(message)
        self.place = place


def _decode_id(text: Bytes, start: int, end: int) -> str:
    """Return the id from ``start`` to ``end`` of a block as text; raise _BadId if it is not UTF-8 or has a NUL."""
    token = text[start:end]
    try:
        name = token.tobytes().decode("utf-8")
    except UnicodeDecodeError:
        raise _BadId(
            start, f"the id {quote(_decode_for_message(token))} is not UTF-8; convert the file to UTF-8"
        ) from None
    if "\0" in name:
        raise _BadId(start, f"the id {quote(name)} has a NUL byte; expected text")
    return name


def _decode_for_message(token: Bytes) -> str:
    """Return bytes as text for an error message, with escapes for what is not UTF-8."""
    return token.tobytes().decode("utf-8", errors="backslashreplace")
