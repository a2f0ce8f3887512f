"""Slow and obvious readers of text files, written from docs/data.md. Each returns None for what must be refused."""

from __future__ import annotations

import gzip
import lzma
import math
import re
import zlib
from typing import NamedTuple

import numpy as np

MOST_FEATURES = 100_000
_NUMBER = re.compile(rb"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
_LARGEST = float(np.finfo(np.float32).max)
_LONGEST_INDEX = 8  # digits


class Refused(Exception):
    """The file must be refused."""


class Row(NamedTuple):
    """A document of LETOR text."""

    label: float
    query: str
    values: dict[int, np.float32]
    document: str


def unpack(data: bytes) -> bytes:
    """Return the text of a file that may be compressed, without a byte order mark."""
    try:
        if data.startswith(b"\x1f\x8b"):
            data = gzip.decompress(data)
        elif data.startswith(b"\xfd7zXZ\0"):
            data = lzma.decompress(data)
    except (EOFError, OSError, zlib.error, lzma.LZMAError):
        raise Refused from None
    return data.removeprefix(b"\xef\xbb\xbf")


def read_number(word: bytes) -> float:
    """Return the value of a decimal number in ASCII, which may be infinite."""
    if not _NUMBER.fullmatch(word):
        raise Refused
    return float(word)


def read_id(word: bytes) -> str:
    """Return an id, which is text in UTF-8 without NUL."""
    try:
        name = word.decode("utf-8")
    except UnicodeDecodeError:
        raise Refused from None
    if "\0" in name:
        raise Refused
    return name


def read_letor(data: bytes, most: int = MOST_FEATURES) -> list[Row] | None:
    """Read ``label qid:ID index:value ... #docid = ID``, a document per line."""
    try:
        rows = [row for line in unpack(data).split(b"\n") if (row := _letor_row(line, most)) is not None]
    except Refused:
        return None
    return rows or None


def _letor_row(line: bytes, most: int) -> Row | None:
    body, _, comment = line.partition(b"#")
    if b"\r" in comment.rstrip(b"\r"):
        raise Refused
    words = [word for word in re.split(rb"[ \t\r]", body) if word]
    if not words:
        return None
    label = read_number(words[0])
    if not math.isfinite(label) or len(words) < 2 or not words[1].startswith(b"qid:") or words[1] == b"qid:":
        raise Refused
    return Row(label, read_id(words[1][4:]), _letor_values(words[2:], most), read_id(_docid(comment)))


def _letor_values(words: list[bytes], most: int) -> dict[int, np.float32]:
    values: dict[int, np.float32] = {}
    last = 0
    for word in words:
        index, colon, text = word.partition(b":")
        if not colon or not re.fullmatch(rb"[0-9]+", index) or len(index) > _LONGEST_INDEX:
            raise Refused
        if not last < int(index) <= most:
            raise Refused
        last = int(index)
        if text.lower() == b"nan":  # a missing value
            values[last] = np.float32(np.nan)
            continue
        with np.errstate(over="ignore"):
            values[last] = np.float32("nan" if text.lower() == b"nan" else read_number(text))
        if np.isinf(values[last]):
            raise Refused
    return values


def _docid(comment: bytes) -> bytes:
    words = re.fullmatch(rb"[ \t]*(?:docid[ \t]*=[ \t]*)?([^ \t\r]*).*", comment, re.DOTALL)
    assert words is not None
    return words[1]


def read_trec(data: bytes, fields: int, value: int, least: float) -> dict[str, dict[str, float]] | None:
    """Read TREC lines of so many fields: the query is the first, the document the third."""
    table: dict[str, dict[str, float]] = {}
    try:
        text = unpack(data)
        read_id(text)  # all of it is UTF-8 without NUL, also what is ignored
        for line in text.split(b"\n"):
            words = [word for word in re.split(rb"[ \t\r\v\f]", line) if word]
            if not words:
                continue
            if len(words) != fields:
                return None
            documents, document = table.setdefault(read_id(words[0]), {}), read_id(words[2])
            found = read_number(words[value])
            if document in documents or not abs(found) <= _LARGEST:
                return None
            documents[document] = max(found, least)
    except Refused:
        return None
    return table or None


def read_scores(data: bytes, n_docs: int) -> list[float] | None:
    """Read one finite number per line."""
    try:
        lines = [line.strip(b" \t\r\v\f") for line in unpack(data).split(b"\n")]
        scores = [read_number(line) for line in lines if line]
    except Refused:
        return None
    return scores if len(scores) == n_docs and all(map(math.isfinite, scores)) else None
