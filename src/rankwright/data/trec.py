"""TREC files: judgments (qrels) and runs."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from os import PathLike
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, NoReturn, overload

import numpy as np

from rankwright.basics.array_types import Floats
from rankwright.basics.errors import InputError, quote
from rankwright.basics.files import StrPath, open_binary, parse_decimals, skip_byte_order_mark, write_atomic
from rankwright.data.ids import check_tokens
from rankwright.data.queries import Queries

LARGEST = float(np.finfo(np.float32).max)  # features are float32
_BLOCK = 2**16  # bytes that are split at a time: their words stay in the cache
_LINE_END = "\0"  # a word of its own, so that splitting keeps the lines
_SPLIT_BY_TEXT = (b"\x1c", b"\x1d", b"\x1e", b"\x1f")  # bytes at which Python splits text, but not bytes

TrecTable = dict[str, dict[str, float]]  # grades or scores, by query id and document id
Table = Mapping[str, Mapping[str, float]]  # the same, to be read only


class _LineLayout(NamedTuple):
    """The layout of a line of a TREC file: its fields, and the places of query, document and value among them."""

    text: str
    query: int
    document: int
    value: int

    @property
    def width(self) -> int:
        return len(self.text.split())


_QRELS = _LineLayout("qid iteration docid grade", 0, 2, 3)
_RUN = _LineLayout("qid Q0 docid rank score tag", 0, 2, 4)


def read_qrels(path: StrPath) -> TrecTable:
    """Read a qrels file, ``qid iteration docid grade``: return grades by query and document, negative ones as 0.

    Parameters
    ----------
    path : str or path
        The file.
    """
    with open_binary(path) as file:
        return parse_qrels(file, path)


def parse_qrels(file: BinaryIO, path: StrPath) -> TrecTable:
    """Read qrels from an open file and return grades by query and document; messages name the path."""
    return _read_table(file, path, _QRELS, least=0.0)


def read_run(path: StrPath) -> TrecTable:
    """Read a run file, ``qid Q0 docid rank score tag``: return scores by query and document; ranks are ignored.

    Parameters
    ----------
    path : str or path
        The file.
    """
    with open_binary(path) as file:
        return _read_table(file, path, _RUN)


def run_names(runs: Sequence[StrPath]) -> list[str]:
    """Return a name for each run file: the file's name, or its whole path if two files have the same name."""
    names = [Path(run).name.removesuffix(".gz").removesuffix(".xz").removesuffix(".run") for run in runs]
    return names if len(set(names)) == len(names) else [str(run) for run in runs]


class _LineFields(NamedTuple):
    """The query, document and value of each of some adjacent lines of a TREC file, all as texts."""

    numbers: Sequence[int]  # of the lines, for messages
    queries: Sequence[str]
    documents: Sequence[str]
    values: Sequence[str]


def _read_table(file: BinaryIO, path: StrPath, layout: _LineLayout, least: float = -math.inf) -> TrecTable:
    """Read a TREC file and return its values by query and document; values below ``least`` become ``least``."""
    table: TrecTable = {}
    for columns in _read_blocks(file, path, layout):
        values = _parse_values(path, columns, layout, least)
        start = 0
        for query, group in groupby(columns.queries):
            part = slice(start, start + sum(1 for _ in group))
            known = table.setdefault(query, {})
            new = dict(zip(columns.documents[part], values[part], strict=True))
            if len(new) < part.stop - start or not known.keys().isdisjoint(new):
                _raise_repeated_document(path, columns, part, query, known)
            known.update(new)
            start = part.stop
    if not table:
        raise InputError(f"{path}: empty; expected lines '{layout.text}'")
    return table


def _read_blocks(file: BinaryIO, path: StrPath, layout: _LineLayout) -> Iterator[_LineFields]:
    """Yield the query, document and value fields of a TREC file, for some thousand lines at a time."""
    first = 1
    while block := file.read(_BLOCK):
        text = block + file.readline()
        text = skip_byte_order_mark(text) if first == 1 else text
        check_text(path, text, first)
        text = text if text.endswith(b"\n") else text + b"\n"
        yield _split_block(path, text, first, layout)
        first += text.count(b"\n")


def check_text(path: StrPath, text: bytes, first: int = 1) -> None:
    """Raise InputError if a block of text is not UTF-8, which could make two ids equal, or contains NUL."""
    place = text.find(b"\0")
    if place < 0 and not text.isascii():
        try:
            text.decode("utf-8")
        except UnicodeDecodeError as error:
            number = first + text.count(b"\n", 0, error.start)
            raise InputError(f"{path}:{number}: not UTF-8; convert the file to UTF-8") from None
    if place >= 0:
        number = first + text.count(b"\n", 0, place)
        raise InputError(f"{path}:{number}: found a NUL character; expected text")


def _split_block(path: StrPath, text: bytes, first: int, layout: _LineLayout) -> _LineFields:
    """Return the query, document and value fields of a block of lines."""
    lines, step = text.count(b"\n"), layout.width + 1
    words = _split_words(text.replace(b"\n", f" {_LINE_END} ".encode()))
    # every step-th word ends a line, and no other does: each line has as many fields as it should
    if len(words) == lines * step and words[step - 1 :: step].count(_LINE_END) == words.count(_LINE_END) == lines:
        numbers: Sequence[int] = range(first, first + lines)
    else:
        numbers, words = _split_lines(path, text, first, layout)
    return _LineFields(numbers, *(words[field::step] for field in (layout.query, layout.document, layout.value)))


def _split_words(text: bytes) -> list[str]:
    """Return the words of a text, split at ASCII white space only, because ids may have any other character."""
    if text.isascii() and not any(separator in text for separator in _SPLIT_BY_TEXT):
        return text.decode("ascii").split()
    words = text.split()
    return b"\n".join(words).decode("utf-8").split("\n") if words else []


def _split_lines(path: StrPath, text: bytes, first: int, layout: _LineLayout) -> tuple[list[int], list[str]]:
    """Return the line number of each record and all words, line by line; raise InputError for a line that is wrong."""
    numbers: list[int] = []
    words: list[str] = []
    for number, line in enumerate(text.split(b"\n"), first):
        fields = _split_words(line)
        if len(fields) == layout.width:
            numbers.append(number)
            words.extend((*fields, _LINE_END))
        elif fields:
            raise InputError(f"{path}:{number}: {len(fields)} fields; expected '{layout.text}'")
    return numbers, words


def _parse_values(path: StrPath, columns: _LineFields, layout: _LineLayout, least: float) -> list[float]:
    """Return the values of some lines as numbers; those below ``least`` become ``least``."""
    try:
        values = parse_decimals(columns.values)
    except ValueError:
        values = np.array([np.nan])
    if not (np.abs(values) <= LARGEST).all():
        _raise_bad_value(path, columns, layout)
    numbers: list[float] = np.maximum(values, least).tolist()
    return numbers


def _raise_bad_value(path: StrPath, columns: _LineFields, layout: _LineLayout) -> NoReturn:
    """Raise InputError for the first value that is not a number or is too large, with its line."""
    for number, text in zip(columns.numbers, columns.values, strict=True):
        try:
            [value] = parse_decimals([text])
        except ValueError:
            value = math.nan
        if not abs(value) <= LARGEST:
            raise InputError(f"{path}:{number}: found {quote(text)}; expected a number in '{layout.text}'")
    raise AssertionError("every value is a number")


def _raise_repeated_document(
    path: StrPath, columns: _LineFields, part: slice, query: str, known: Mapping[str, float]
) -> NoReturn:
    """Raise InputError for the first line whose document the query already has."""
    seen = set(known)
    for number, document in zip(columns.numbers[part], columns.documents[part], strict=True):
        if document in seen:
            raise InputError(f"{path}:{number}: document {document} of query {query} a second time")
        seen.add(document)
    raise AssertionError("every document is there once")


@overload
def write_run(queries: Queries, scores: Floats, path: StrPath, *, tag: str = "rankwright") -> None: ...
@overload
def write_run(queries: Mapping[Any, Mapping[Any, float]], scores: StrPath, *, tag: str = "rankwright") -> None: ...
def write_run(queries: Any, scores: Any, path: StrPath | None = None, *, tag: str = "rankwright") -> None:
    """Write a run file, ``qid Q0 docid rank score tag``: documents by descending score, ties in row order.

    ``write_run(queries, scores, path)`` takes one score per row, in the caller's order; documents without an id are
    named by their place in it, from 1. ``write_run(run, path)`` takes a run as ``read_run`` returns it; ties are in
    the order of trec_eval, the larger id first.

    Parameters
    ----------
    queries : Queries, or mapping of query id to mapping of document id to score
        The documents, or a run.
    scores : array of shape (n_docs,)
        A score for each row, in the caller's order; with a run, the file to write.
    path : str or path
        The file to write.
    tag : str
        The name of the run, the last field of each line.
    """
    if isinstance(queries, Mapping) and path is None:
        path = scores
        queries, scores = _list_rows(queries)
    if not isinstance(queries, Queries) or not isinstance(path, (str, PathLike)):
        found = ", ".join(type(each).__name__ for each in (queries, scores, path) if each is not None)
        raise InputError(f"write_run got {found}; expected (queries, scores, path), or (run, path) of a run in a dict")
    ranked, scores = list(queries.ranked(scores)), np.asarray(scores, dtype=np.float64)
    if not (np.abs(scores) <= LARGEST).all():
        row = int(np.argmin(np.abs(scores) <= LARGEST))
        raise InputError(f"score {row} is {scores[row]}; expected finite numbers, which tools read back")
    if not tag or tag.split() != [tag]:
        raise InputError(f"tag {tag!r}; expected one word")
    names = queries.doc_names
    check_tokens(queries.qid, "query")
    check_tokens(names, "document")
    if len(set(queries.qid.tolist())) < len(queries):
        raise InputError("two queries have one id, and a run has one list per id; expected each query once")
    with write_atomic(path) as file:
        for query, rows in zip(queries.qid, ranked, strict=True):
            if len(set(names[rows].tolist())) < len(rows):
                [(twice, _)] = Counter(names[rows].tolist()).most_common(1)
                raise InputError(
                    f"two documents of query {query} have the id {quote(twice)}; expected each document once. Keep one "
                    "row of it, or name another column of ids (docid=, --docid)"
                )
            for rank, row in enumerate(rows, 1):
                file.write(f"{query} Q0 {names[row]} {rank} {float(scores[row])!r} {tag}\n")


def _list_rows(run: Mapping[Any, Mapping[Any, float]]) -> tuple[Queries, Floats]:
    """Return the documents of a run as queries without features, and their scores."""
    rows = [
        (str(query), str(name), float(score))
        for query, documents in run.items()
        for name, score in sorted(documents.items(), key=lambda item: str(item[0]), reverse=True)
    ]
    if not rows:
        raise InputError("the run has no documents; expected a mapping of query id to mapping of document id to score")
    qid, docid, scores = zip(*rows, strict=True)
    return Queries.from_arrays(np.zeros((len(rows), 1)), None, qid, docid=docid), np.array(scores)
