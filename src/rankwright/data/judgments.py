"""Judgments of documents: TREC qrels, tables in CSV such as Quepid's exports, and judgment lists."""

from __future__ import annotations

import csv
import io
import logging
import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from rankwright.basics.errors import InputError, make_printable, quote
from rankwright.basics.files import StrPath, open_binary, parse_decimals, skip_byte_order_mark
from rankwright.data.trec import LARGEST, TrecTable, check_text, parse_qrels

# names of columns, in lower case and without spaces, hyphens and underscores
_COLUMN_NAMES = {
    "qid": ("qid", "queryid"),
    "query": ("query", "querytext", "keywords"),
    "document": ("docid", "documentid", "doc", "document"),
    "grade": ("rating", "grade", "label", "relevance", "judgment", "judgement"),
}
_DELIMITERS = ",\t;"
_BLANKS = " \t\r\n\v\f"  # any other character may be part of an id
_EXPECTED = (
    "expected qrels (qid iteration docid grade), a judgment list (grade qid:ID # docid), or CSV whose first line names "
    "its columns: query, docid, rating"
)
_LIST_LINE = re.compile(r"(\S+)\s+qid:([^\s#]+)([^#]*)(?:#\s*(?:docid\s*=\s*)?(\S*)\s*(.*))?", re.ASCII)
_KEYWORDS_LINE = re.compile(r"#\s*qid:(\S+?):\s*(.*)", re.ASCII)
_KEYWORDS_WEIGHT = re.compile(r"\s*\*\s*([0-9]+(?:\.[0-9]+)?)$", re.ASCII)  # the weight of a query behind its keywords


@dataclass(frozen=True, slots=True)
class Judgments:
    """The judgments of a file: grades by query and document, and the keywords of its queries if it has them.

    Parameters
    ----------
    grades : dict
        The grade of each judged document, by query id and document id; negative grades are 0.
    keywords : dict
        The words that were searched for, by query id.
    n_unrated : int
        The number of rows without a rating, which are left out.
    weights : dict
        The weights of queries other than 1, by query id.
    """

    grades: TrecTable
    keywords: Mapping[str, str] = field(default_factory=dict)
    n_unrated: int = 0
    weights: Mapping[str, float] = field(default_factory=dict)


class _Judgment(NamedTuple):
    """A line of a file of judgments."""

    line: int
    query: str
    document: str
    grade: str
    text: str = ""  # keywords, or whatever the line says of the document


def read_judgments(path: StrPath) -> TrecTable:
    """Read a file of judgments and return grades by query and document, negative ones as 0.

    The format is recognised by the content:

    - TREC qrels, ``qid iteration docid grade``;
    - CSV with commas, tabs or semicolons, whose first line names a column of queries (``query``, ``qid``, ``query_id``,
      ``Query Text``, ``keywords``), of documents (``docid``, ``doc_id``, ``Doc ID``) and of grades (``rating``,
      ``grade``, ``label``, ``relevance``); rows without a rating are left out;
    - a judgment list, ``grade qid:ID # docid``, where features before ``#`` are ignored. The log says if it has
      weights of queries (``# qid:1: rambo *2``), which :func:`rankwright.read_log` keeps.

    Parameters
    ----------
    path : str or path
        The file.
    """
    judgments = load_judgments(path)
    if judgments.weights:
        query, weight = next(iter(judgments.weights.items()))
        found = (
            f"{path}: the weights of queries, such as {weight:g} of {quote(query)}, are left out; read_log keeps them"
        )
        logging.getLogger("rankwright").info("%s", make_printable(found))
    return judgments.grades


def load_judgments(path: StrPath) -> Judgments:
    """Read a file of judgments in any format, with the keywords of its queries."""
    with open_binary(path) as file:
        data = skip_byte_order_mark(file.read())
    number, first = next(_content_lines(io.BytesIO(data)), (1, ""))
    if not first:
        raise InputError(f"{path}: no judgment; {_EXPECTED}")
    columns = None
    if not _LIST_LINE.match(first):
        columns = _find_columns(path, number, first)
        if columns is None and len(re.split(r"\s+", first, flags=re.ASCII)) == 4:
            return Judgments(parse_qrels(io.BytesIO(data), path))
    check_text(path, data)
    if columns is not None:
        return _read_csv(path, data.decode("utf-8"), number, columns)
    if _LIST_LINE.match(first):
        return _read_list(path, data)
    raise InputError(f"{path}:{number}: found {quote(first)}; {_EXPECTED}")


def _content_lines(lines: Iterable[bytes]) -> Iterator[tuple[int, str]]:
    """Yield the lines that are neither blank nor comments, with their numbers from 1."""
    for number, line in enumerate(lines, 1):
        stripped = line.strip()
        if stripped and not stripped.startswith(b"#"):
            yield number, stripped.decode("utf-8", errors="backslashreplace")


def _read_list(path: StrPath, data: bytes) -> Judgments:
    """Read a judgment list; its keywords are those of the lines ``# qid:ID: keywords`` or of the comments."""
    keywords: dict[str, str] = {}
    weights: dict[str, float] = {}
    for line in io.BytesIO(data):
        header = _KEYWORDS_LINE.match(line.strip().decode("utf-8"))
        if header:
            weight = _KEYWORDS_WEIGHT.search(header[2])
            keywords[header[1]] = header[2][: weight.start() if weight else None].rstrip(_BLANKS)
            weights[header[1]] = float(weight[1]) if weight else 1.0
    found = list(_parse_list(path, data))
    texts: dict[str, set[str]] = {}
    for judgment in found:
        texts.setdefault(judgment.query, set()).add(judgment.text)
    for query, same in texts.items():
        if len(same) == 1 and query not in keywords:  # the words behind a document id: its title, or the keywords
            keywords[query] = next(iter(same))
    return Judgments(
        _make_table(path, found),
        {query: words for query, words in keywords.items() if words},
        weights={query: weight for query, weight in weights.items() if weight != 1.0},
    )


def _parse_list(path: StrPath, data: bytes) -> Iterator[_Judgment]:
    """Yield the lines of a judgment list."""
    for number, line in _content_lines(io.BytesIO(data)):
        found = _LIST_LINE.fullmatch(line)
        if not found or not all(b":" in word for word in found[3].encode().split()):
            raise InputError(f"{path}:{number}: found {quote(line)}; expected 'grade qid:ID # docid'")
        grade, query, _, document, words = found.groups()
        if not document:
            raise InputError(f"{path}:{number}: no document id after '#'; expected 'grade qid:ID # docid'")
        yield _Judgment(number, query, document, grade, words)


class _Columns(NamedTuple):
    """The delimiter of a CSV file, and the places of its columns."""

    delimiter: str
    query: int
    document: int
    grade: int
    keywords: int | None


def _find_columns(path: StrPath, line: int, header: str) -> _Columns | None:
    """Return the columns of judgments that the first line of a CSV file names; None if it does not name them."""
    for delimiter in _DELIMITERS:
        try:
            cells = next(csv.reader([header], delimiter=delimiter))
        except csv.Error:
            return None
        names = [re.sub(r"[\s_-]", "", cell, flags=re.ASCII).lower() for cell in cells]
        places = {role: [i for i, name in enumerate(names) if name in known] for role, known in _COLUMN_NAMES.items()}
        for role, found in places.items():
            if len(found) > 1 and places["document"] and places["grade"]:
                both = " and ".join(quote(names[i]) for i in found[:2])
                raise InputError(f"{path}:{line}: the columns {both} may both be the {role}; expected one of them")
        queries = places["qid"] + places["query"]
        if queries and places["document"] and places["grade"]:
            keywords = queries[1] if len(queries) == 2 else None
            return _Columns(delimiter, queries[0], places["document"][0], places["grade"][0], keywords)
    return None


def _read_csv(path: StrPath, text: str, first: int, columns: _Columns) -> Judgments:
    """Read the judgments of a CSV file whose line ``first`` names the columns."""
    n_unrated = 0
    judgments: list[_Judgment] = []
    for judgment in _parse_csv(path, text, first, columns):
        if judgment.document and judgment.grade:
            judgments.append(judgment)
        else:
            n_unrated += 1
    if not judgments:
        raise InputError(f"{path}: {n_unrated} rows, none with a document and a rating; expected at least one")
    keywords = {judgment.query: judgment.text for judgment in judgments} if columns.keywords is not None else {}
    return Judgments(_make_table(path, judgments), keywords, n_unrated)


def _parse_csv(path: StrPath, text: str, first: int, columns: _Columns) -> Iterator[_Judgment]:
    """Yield the rows of a CSV file; rows that end early have empty fields."""
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=columns.delimiter, strict=True)
    wanted = (columns.query, columns.document, columns.grade, columns.keywords)
    width = None
    end = 0
    try:
        for row in reader:
            line, end = end + 1, reader.line_num
            if line <= first or not any(cell.strip(_BLANKS) for cell in row):
                width = len(row) if line == first else width
                continue
            if width is not None and len(row) > width:
                raise InputError(f"{path}:{line}: {len(row)} fields; the first line names {width} columns")
            query, document, grade, keywords = (
                row[place].strip(_BLANKS) if place is not None and place < len(row) else "" for place in wanted
            )
            if not query:
                raise InputError(f"{path}:{line}: a row without a query; expected one in every row")
            yield _Judgment(line, query, document, grade, keywords)
    except csv.Error as error:
        raise InputError(f"{path}:{end + 1}: not CSV: {error}") from None


def _make_table(path: StrPath, judgments: Iterable[_Judgment]) -> TrecTable:
    """Return grades by query and document; raise InputError for a bad grade or a document judged twice."""
    table: TrecTable = {}
    for line, query, document, grade, _ in judgments:
        documents = table.setdefault(query, {})
        if document in documents:
            raise InputError(
                f"{path}:{line}: document {quote(document)} of query {quote(query)} a second time; "
                "expected one grade for each document, such as the mean of several raters"
            )
        try:
            value = float(parse_decimals([grade])[0])
        except ValueError:
            value = math.nan
        if not abs(value) <= LARGEST:
            raise InputError(f"{path}:{line}: found the grade {quote(grade)}; expected a number")
        documents[document] = max(value, 0.0)
    return table


def index_keywords(judgments: Judgments) -> dict[str, str]:
    """Return the id of each query by its keywords, without keywords that several queries have."""
    counts = Counter(judgments.keywords.values())
    return {words: query for query, words in judgments.keywords.items() if counts[words] == 1}
