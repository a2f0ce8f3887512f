"""Judgments in CSV and lists, and feature logs of search engines."""

from __future__ import annotations

import json
import math
import re
from random import Random
from typing import Any

import numpy as np

from fuzz import references
from fuzz.cases import UNDECIDED, Kind
from fuzz.mutation import maybe, mutate_bytes, number, wrap_text
from fuzz.trees import change_value, dump
from rankwright import Queries, read_judgments, read_log

_QUERIES = ("rambo", "rocky ii", "1", "2", "\u6f22\u5b57", "#tag", "a=b", "-3")
_HEADERS = (("query", "docid", "rating"), ("grade", "keywords", "docId"), ("Query Text", "Title", "Doc ID", "Rating"))
_COLUMNS = {"qid": 0, "queryid": 0, "query": 1, "querytext": 1, "keywords": 1}
_COLUMNS |= dict.fromkeys(("docid", "documentid", "doc", "document"), 2)
_COLUMNS |= dict.fromkeys(("rating", "grade", "label", "relevance", "judgment", "judgement"), 3)
_BLANKS = b" \t\r\v\f"
_LARGEST = float(np.finfo(np.float32).max)


class JudgmentFiles(Kind):
    """Judgments in CSV, in lists, or in qrels."""

    name = "judgments"

    def make(self, rng: Random) -> bytes:
        """Make a few lines, most of them good."""
        bad = rng.choice((0.0, 0.0, 0.0, 0.03))
        rows = [
            (rng.choice(_QUERIES), rng.choice("abc") if maybe(rng, 0.1) else f"d{i}", number(rng, bad))
            for i in range(rng.choice((1, 2, 3, 8)))
        ]
        make = rng.choice((self._make_csv, self._make_csv, self._make_list, self._make_qrels))
        data = "\n".join([*rng.choice(((), (), ("# words",), ("",))), *make(rng, rows)]).encode() + b"\n"
        if maybe(rng, 0.3):
            data = mutate_bytes(rng, data)
        return wrap_text(rng, data)

    def _make_csv(self, rng: Random, rows: list[tuple[str, str, str]]) -> list[str]:
        header, delimiter = rng.choice(_HEADERS), rng.choice(",,,\t;")
        values = [{1: query, 2: document, 3: "" if maybe(rng, 0.05) else grade} for query, document, grade in rows]
        names = [_COLUMNS.get(name.replace(" ", "").lower()) for name in header]
        return [
            delimiter.join(line) for line in (header, *([row.get(name or 0, "t") for name in names] for row in values))
        ]

    def _make_list(self, rng: Random, rows: list[tuple[str, str, str]]) -> list[str]:
        features, words = rng.choice(("", "", " 1:0.5 2:3")), rng.choice(("", " rambo", " First Blood"))
        heads = ["# qid:1: rambo*1", "#"] if maybe(rng, 0.5) else []
        ids = [query.replace(" ", "").strip("#") for query, _, _ in rows]
        lines = [f"{row[2]} qid:{query}{features} # {row[1]}{words}" for query, row in zip(ids, rows, strict=True)]
        return heads + lines

    def _make_qrels(self, rng: Random, rows: list[tuple[str, str, str]]) -> list[str]:
        return [f"{query.replace(' ', '_')} 0 {document} {grade}" for query, document, grade in rows]

    def reference(self, data: bytes) -> Any:
        """Read it the obvious way; what has quotes or odd line ends may be read or refused."""
        try:
            text = references.unpack(data)
        except references.Refused:
            return None
        lines = [(line.strip(_BLANKS + b"\n"), line) for line in text.split(b"\n")]
        content = [(i, line) for i, (line, _) in enumerate(lines) if line and not line.startswith(b"#")]
        if not content:
            return None
        first = content[0][1]
        if re.match(rb"[^ \t\r\v\f]+[ \t\r\v\f]+qid:[^ \t\r\v\f#]", first):
            return _make_table([_read_list_line(line) for _, line in content], text)
        columns = _find_columns(first)
        if columns is None:
            words = [word for word in re.split(rb"[ \t\r\v\f]", first) if word]
            return references.read_trec(text, 4, 3, 0.0) if len(words) == 4 else None
        if b'"' in text or re.search(rb"\r[^\n]", text) or any(b"\r" in line for _, line in lines[: content[0][0]]):
            return UNDECIDED
        return _read_csv([raw for _, raw in lines[content[0][0] :]], columns, text)

    def read(self, data: bytes) -> dict[str, dict[str, float]]:
        """Read it with the library."""
        return read_judgments(self.write(data))

    def difference(self, expected: dict[str, dict[str, float]], found: dict[str, dict[str, float]]) -> str:
        """Compare the tables."""
        return "" if expected == found else "the table"


def _read_list_line(line: bytes) -> tuple[bytes, bytes, bytes] | None:
    """Return the query, document and grade of a line of a judgment list."""
    body, _, comment = line.partition(b"#")
    words = [word for word in re.split(rb"[ \t\r\v\f]", body) if word]
    if (
        len(words) < 2
        or not words[1].startswith(b"qid:")
        or words[1] == b"qid:"
        or any(b":" not in w for w in words[2:])
    ):
        return None
    comment = re.sub(rb"^[ \t\r\v\f]*(docid[ \t\r\v\f]*=[ \t\r\v\f]*)?", b"", comment)
    document = re.split(rb"[ \t\r\v\f]", comment)[0]
    return (words[1][4:], document, words[0]) if document else None


def _find_columns(header: bytes) -> tuple[bytes, list[int | None]] | None:
    """Return the delimiter of a CSV file and what each column is."""
    for delimiter in (b",", b"\t", b";"):
        cells = header.decode("utf-8", "backslashreplace").split(delimiter.decode())
        roles = [_COLUMNS.get(re.sub(r"[ \t\r\v\f_-]", "", cell).lower()) for cell in cells]
        if 2 in roles and 3 in roles and (0 in roles or 1 in roles):
            return delimiter, roles
    return None


def _read_csv(lines: list[bytes], columns: tuple[bytes, list[int | None]], text: bytes) -> Any:
    """Return the grades of a CSV file without quotes."""
    delimiter, roles = columns
    if any(roles.count(role) > 1 for role in range(4)):
        return None
    query, document, grade = roles.index(0 if 0 in roles else 1), roles.index(2), roles.index(3)
    rows: list[tuple[bytes, bytes, bytes] | None] = []
    for line in lines[1:]:
        cells = [cell.strip(_BLANKS) for cell in line.split(delimiter)]
        if not any(cells):
            continue
        cells += [b""] * (len(roles) - len(cells))
        rows.append(
            None if len(cells) > len(roles) or not cells[query] else (cells[query], cells[document], cells[grade])
        )
    rated = [row for row in rows if row is None or (row[1] and row[2])]
    return _make_table(rated, text) if rated else None


def _make_table(rows: list[tuple[bytes, bytes, bytes] | None], text: bytes) -> dict[str, dict[str, float]] | None:
    """Return grades by query and document; None if a row is wrong."""
    table: dict[str, dict[str, float]] = {}
    try:
        references.read_id(text)
        for row in rows:
            if row is None:
                return None
            documents, document = table.setdefault(references.read_id(row[0]), {}), references.read_id(row[1])
            value = references.read_number(row[2])
            if document in documents or not abs(value) <= _LARGEST:
                return None
            documents[document] = max(value, 0.0)
    except references.Refused:
        return None
    return table


class Logs(Kind):
    """Lines of responses of Elasticsearch or Solr, with a query id beside each."""

    name = "log"

    def make(self, rng: Random) -> bytes:
        """Make a few responses, most of the time damaged in one place."""
        is_solr = maybe(rng, 0.4)
        lines: list[Any] = [self._make_line(rng, i, is_solr) for i in range(rng.choice((1, 2, 3)))]
        for _ in range(rng.choice((0, 0, 1, 1, 2))):
            change_value(rng, lines)
        data = "\n".join(dump(line, rng) for line in lines).encode("utf-8", errors="replace") + b"\n"
        if maybe(rng, 0.15):
            data = mutate_bytes(rng, data)
        return wrap_text(rng, data) if maybe(rng, 0.2) else data

    def _make_line(self, rng: Random, i: int, is_solr: bool) -> dict[str, Any]:
        hits: list[dict[str, Any]] = []
        for document in range(rng.choice((1, 2, 4))):
            features = [(name, round(rng.gauss(0, 3), 3)) for name in ("title", "body", "age")]
            if is_solr:
                kept = [f"{name}={value}" for name, value in features if not maybe(rng, 0.1)]
                hits.append({"id": f"d{document}", "[features]": ",".join(kept)})
            else:
                entry = [{"name": n} | ({} if maybe(rng, 0.1) else {"value": value}) for n, value in features]
                hits.append({"_id": f"d{document}", "fields": {"_ltrlog": [{"main": entry}]}})
        response: dict[str, Any] = {"response": {"docs": hits}} if is_solr else {"took": 1, "hits": {"hits": hits}}
        return {"qid": f"q{i}", "response": response}

    def reference(self, data: bytes) -> Any:
        """Read lines of the plain shape; whatever has another shape may be read or refused."""
        try:
            text = references.unpack(data).decode("utf-8")
            lines = [json.loads(line) for line in text.split("\n") if line.strip(" \t\r\n\v\f")]
        except (references.Refused, UnicodeDecodeError):
            return None
        except (ValueError, RecursionError):
            return UNDECIDED  # perhaps one value on several lines
        if not lines:
            return None
        try:
            return _read_lines(lines)
        except (TypeError, KeyError, IndexError, ValueError, AttributeError):
            return UNDECIDED

    def read(self, data: bytes) -> Queries:
        """Read it with the library."""
        return read_log(self.write(data, "log.jsonl"))

    def difference(self, expected: dict[tuple[str, str], dict[str, float]], found: Queries) -> str:
        """Compare the features of each document; those that it lacks are missing."""
        ids = list(zip(found.row_qid.tolist(), found.docid.tolist() if found.docid is not None else [], strict=True))
        if ids != list(expected):
            return "the documents"
        for row, features in zip(found.X, expected.values(), strict=True):
            wanted = [np.float32(features.get(name, math.nan)) for name in found.features or ()]
            if np.array(wanted).tobytes() != row.tobytes() or not set(features) <= set(found.features or ()):
                return "a feature"
        return ""


def _read_lines(lines: list[Any]) -> Any:
    """Return features by query and document of lines of the plain shape; raise an error if they have another."""
    table: dict[tuple[str, str], dict[str, float]] = {}
    is_solr = "response" in lines[0]["response"]
    sets = set()
    for line in lines:
        query, response = line["qid"], line["response"]
        _require(type(query) is str and query and set(line) == {"qid", "response"} and "error" not in response)
        _require("responses" not in response and ("response" in response) == is_solr)
        hits = response["response"]["docs"] if is_solr else response["hits"]["hits"]
        _require(type(hits) is list)
        for hit in hits:
            document = hit["id" if is_solr else "_id"]
            _require(type(document) is str and document and "\0" not in query + document)
            (query + document).encode("utf-8")
            features = _read_solr(hit["[features]"]) if is_solr else _read_plugin(hit["fields"]["_ltrlog"])
            if features is None:
                return None
            sets.add(frozenset(features))
            _require((query, document) not in table)
            table[query, document] = features
    _require(bool(table) and any(sets))
    return None if len(sets) > 1 and not is_solr else table


def _require(condition: Any) -> None:
    """Raise ValueError if the lines do not have the plain shape."""
    if not condition:
        raise ValueError


def _read_plugin(logs: Any) -> dict[str, float] | None:
    """Return the features of a log of the plugin; None if one is wrong."""
    [[entry]] = [list(log.values()) for log in logs]
    features: dict[str, float] = {}
    for feature in entry:
        name, value = feature["name"], feature.get("value")
        _require(type(name) is str and name != "extra_logging" and type(logs) is type(entry) is list)
        value = math.nan if value is None or value == "NaN" else value
        if name in features or type(value) not in (int, float) or abs(value) > _LARGEST:
            return None
        features[name] = float(value)
    return features


def _read_solr(text: Any) -> dict[str, float] | None:
    """Return the features of a text of Solr; None if one is wrong."""
    _require(type(text) is str)
    features: dict[str, float] = {}
    for part in text.split(",") if text else []:
        found = re.fullmatch(r"(.+)=([^=]*)", part, re.DOTALL)
        if not found or found[1] in features:
            return None
        try:
            value = math.nan if found[2] == "NaN" else references.read_number(found[2].encode("utf-8", "replace"))
        except references.Refused:
            return None
        if abs(value) > _LARGEST:
            return None
        features[found[1]] = value
    return features
