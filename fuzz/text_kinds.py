"""Text files with a row per document: LETOR, TREC judgments and runs, scores."""

from __future__ import annotations

import zlib
from abc import abstractmethod
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

from fuzz import references
from fuzz.cases import Kind
from fuzz.mutation import maybe, mutate_bytes, number, wrap_text
from rankwright import Queries, read_letor, read_qrels, read_run
from rankwright.data import letor_files, trec
from rankwright.data.score_files import read_scores
from rankwright.runtime.backends import Serial

_IDS = (
    "1",
    "2",
    "17",
    "-3",
    "007",
    "+1",
    "q1",
    "a",
    "A",
    "na\u00efve",
    "\u6f22\u5b57",
    "a.b-c_d",
    "1e5",
    "nan",
    "9" * 25,
)
_ODD_IDS = (
    "",
    "\0",
    "a\0",
    "\x1b[2J",
    "\x1c",
    "\u00a0",
    "\u202e",
    "x" * 200,
    "qid:1",
    "#",
    "=",
    ":",
    "\ufeff",
    "\x7f",
    '"',
)
_BAD_BYTES = (b"\xff", b"\xe4", b"\xed\xa0\x80", b"a\xc3")


def _id(rng: Random) -> bytes:
    if maybe(rng, 0.01):
        return rng.choice(_BAD_BYTES)
    return rng.choice(_ODD_IDS if maybe(rng, 0.03) else _IDS).encode()


def _blank(rng: Random, odd: float) -> bytes:
    if not maybe(rng, odd):
        return b" "
    return rng.choice(
        (b"  ", b"\t", b"\r", b"\v", b"\f", b"\x1c", b"\x85", "\u00a0".encode(), "\u2003".encode(), b"", b" \t ")
    )


def _block(data: bytes, usual: int) -> int:
    """Return how many bytes are read at a time: few for some files, the same for the same file."""
    return (usual, 16, 40, 100)[zlib.crc32(data) % 4]


def _finished(rng: Random, lines: list[bytes]) -> bytes:
    for _ in range(rng.choice((0, 0, 0, 1, 2))):
        lines.insert(rng.randrange(len(lines) + 1), rng.choice((b"", b" \t", b"\r", b"# words", b"#", b"\0", *lines)))
    data = b"\n".join(lines) + b"\n"
    if maybe(rng, 0.4):
        data = mutate_bytes(rng, data)
    return wrap_text(rng, data)


class Letor(Kind):
    """LETOR text."""

    name = "letor"

    def make(self, rng: Random) -> bytes:
        """Make a few lines, most of them good."""
        bad = rng.choice((0.0, 0.0, 0.0, 0.02))
        return _finished(rng, [self._line(rng, bad) for _ in range(rng.choice((1, 2, 3, 5, 12)))])

    def _line(self, rng: Random, bad: float) -> bytes:
        words = [number(rng, bad).encode() if maybe(rng, 0.3) else b"%d" % rng.randrange(5), b"qid:" + _id(rng)]
        index = 0
        for _ in range(rng.choice((0, 1, 3, 6))):
            index += rng.choice((1, 1, 1, 2, 30)) if not maybe(rng, bad) else rng.choice((0, -1, 10**5, 10**8))
            text = str(index).zfill(rng.choice((1, 1, 1, 8, 9)) if maybe(rng, 0.03) else 1)
            words.append(f"{text}:{number(rng, bad)}".encode())
        if maybe(rng, bad):
            words.insert(
                rng.randrange(len(words) + 1), rng.choice((b"qid:1", b"1:1", b":", b"1:", b"x:1", b"1 :1", b"-1:1"))
            )
        line = b"".join(word + _blank(rng, bad) for word in words)
        return line + self._comment(rng) if maybe(rng, 0.5) else line

    def _comment(self, rng: Random) -> bytes:
        key = rng.choice(
            (b"#docid = ", b"#docid=", b"# docid =\t", b"#", b"# ", b"#docid ", b"#docid = docid = ", b"#=")
        )
        return key + _id(rng) + rng.choice((b"", b"", b" inc = 1 prob = 0.5", b"\r", b" \rx", b"#2", b"\t"))

    def reference(self, data: bytes) -> list[references.Row] | None:
        """Read it the obvious way."""
        return references.read_letor(data, self._n_features(data) or references.MOST_FEATURES)

    def read(self, data: bytes) -> Queries:
        """Read it with the library, in blocks of some size."""
        letor_files.BLOCK = _block(data, usual=1 << 22)
        self._told = self._n_features(data)
        return read_letor(self.write(data), n_features=self._told, backend=Serial())

    def _n_features(self, data: bytes) -> int | None:
        """Return the number of features that the reader is told; the same for the same file."""
        return 40 if zlib.crc32(data) % 5 == 0 else None

    def difference(self, expected: list[references.Row], found: Queries) -> str:
        """Compare row by row, in the order of the lines."""
        X, y, query, document = found.X, found.y, found.row_qid, found.docid
        if len(y) != len(expected):
            return "the number of rows"
        if X.shape[1] != (self._told or max(max(row.values, default=1) for row in expected)):
            return "the number of features"
        if np.count_nonzero(X) != sum(1 for row in expected for value in row.values.values() if value):
            return "the number of values"
        for at, row in enumerate(expected):
            if any(X[at, index - 1].tobytes() != value.tobytes() for index, value in row.values.items()):
                return "a value"
            if y[at] != row.label:
                return "a label"
            if str(query[at]) != row.query:
                return "a query id"
            if ("" if document is None else document[at]) != row.document:
                return "a document id"
        return ""


class _Trec(Kind):
    """Lines of fields."""

    def make(self, rng: Random) -> bytes:
        """Make a few lines, most of them good."""
        bad = rng.choice((0.0, 0.0, 0.0, 0.03))
        return _finished(rng, [self._line(rng, i, bad) for i in range(rng.choice((1, 2, 3, 5, 12)))])

    def _line(self, rng: Random, i: int, bad: float) -> bytes:
        document = _id(rng) if maybe(rng, 0.2) else b"d%d" % i
        words = self._fields(rng, document, number(rng, bad).encode())
        if maybe(rng, bad):
            words.insert(rng.randrange(len(words) + 1), rng.choice((b"x", b"\0", b"1")))
        if maybe(rng, bad):
            words.pop(rng.randrange(len(words)))
        return b"".join(word + _blank(rng, bad) for word in words)

    @abstractmethod
    def _fields(self, rng: Random, document: bytes, value: bytes) -> list[bytes]:
        """Return the words of a line about a document with this value."""

    def write(self, data: bytes, name: str = "file") -> Path:
        """Write the file, which will be read in blocks of some size."""
        trec._BLOCK = _block(data, usual=2**16)
        return super().write(data, name)

    def difference(self, expected: dict[str, dict[str, float]], found: Any) -> str:
        """Compare the tables, and the order of their queries and documents."""
        if expected != found:
            return "the table"
        order = [(query, list(documents)) for query, documents in found.items()]
        return "" if order == [(query, list(documents)) for query, documents in expected.items()] else "the order"


class Qrels(_Trec):
    """TREC judgments."""

    name = "qrels"

    def _fields(self, rng: Random, document: bytes, value: bytes) -> list[bytes]:
        return [_id(rng), b"0", document, value]

    def reference(self, data: bytes) -> dict[str, dict[str, float]] | None:
        """Read it the obvious way; grades below 0 count as 0."""
        return references.read_trec(data, fields=4, value=3, least=0.0)

    def read(self, data: bytes) -> dict[str, dict[str, float]]:
        """Read it with the library."""
        return read_qrels(self.write(data))


class Run(_Trec):
    """A TREC run."""

    name = "run"

    def _fields(self, rng: Random, document: bytes, value: bytes) -> list[bytes]:
        return [_id(rng), b"Q0", document, b"%d" % rng.randrange(9), value, b"tag"]

    def reference(self, data: bytes) -> dict[str, dict[str, float]] | None:
        """Read it the obvious way."""
        return references.read_trec(data, fields=6, value=4, least=-np.inf)

    def read(self, data: bytes) -> dict[str, dict[str, float]]:
        """Read it with the library."""
        return read_run(self.write(data))


class Scores(Kind):
    """A score per line."""

    name = "scores"
    _queries = Queries.from_arrays([[1.0]] * 4, [0, 1, 2, 0], ["b", "a", "b", "a"])

    def make(self, rng: Random) -> bytes:
        """Make four lines, or nearly so."""
        bad = rng.choice((0.0, 0.0, 0.03))
        lines = [number(rng, bad).encode() for _ in range(rng.choice((4, 4, 4, 4, 4, 3, 5, 0)))]
        return _finished(
            rng, [_blank(rng, bad).strip(b" ") + line + rng.choice((b"", b"", b" ", b"\r")) for line in lines]
        )

    def reference(self, data: bytes) -> list[float] | None:
        """Read it the obvious way."""
        return references.read_scores(data, self._queries.n_docs)

    def read(self, data: bytes) -> Any:
        """Read it with the library."""
        return read_scores(self.write(data), self._queries)

    def difference(self, expected: list[float], found: Any) -> str:
        """Compare the numbers, in the order of the lines."""
        return "" if found.tolist() == expected else "a score"
