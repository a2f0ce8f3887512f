"""LETOR and SVMlight ranking text: ``label qid:ID index:value ... #docid = ID``, a document per line."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np

from rankwright.basics import progress
from rankwright.basics.array_types import Floats, Ints
from rankwright.basics.errors import InputError, NoDocumentsError
from rankwright.basics.files import StrPath, is_plain, write_atomic
from rankwright.data.feature_numbers import name_features
from rankwright.data.grouping import group_runs
from rankwright.data.ids import check_tokens, parse_integer_ids
from rankwright.data.letor_blocks import BadLine, Bytes, LetorPart, count_lines, parse_block
from rankwright.data.letor_files import cut_spans, guess_width, load_block, read_pieces
from rankwright.data.queries import Queries
from rankwright.data.table_sizes import explain_growth, explain_lack_of_memory
from rankwright.runtime.backends import Backend, resolve

_Parsed = tuple[list[LetorPart], Floats, Floats]  # parts, X and y


def read_letor(*paths: StrPath, n_features: int | None = None, backend: Backend | None = None) -> Queries:
    """Read LETOR or SVMlight ranking files and return their documents as one data set.

    Lines are ``label qid:ID index:value ... #docid = ID``. Labels are numbers, query ids any text without spaces
    (integers become integers), indices start at 1 and increase, absent features are 0, ``nan`` is missing. The
    document id is what follows ``docid =`` in the comment, or the comment's first word. Files may be gzip or xz.
    Rows of one query need not be adjacent; queries are in order of first appearance, and rows in the order of the
    lines. Every line is checked; the first bad one raises ``InputError`` with file and line.

    Parameters
    ----------
    *paths : str or path
        One or more files; the same query id in two files is the same query.
    n_features : int, optional
        The number of features, where the files may not mention the last ones; higher indices are an error.
    backend : Serial, Threads or None
        Where to parse.

    Returns
    -------
    Queries
        The documents, in the order of the files.
    """
    if not paths:
        raise InputError("read_letor needs at least one file")
    check_n_features(n_features)
    files = [Path(path) for path in paths]
    in_place = hasattr(os, "preadv") and all(is_plain(file) for file in files)  # not every system reads at a place
    read = _read_plain if in_place else _read_streams
    parts, X, y = read(files, n_features, resolve(backend))
    for i, file in enumerate(files):
        if not any(part.file == i and part.rows for part in parts):
            raise make_empty_file_error(file)
    return _group_parts(parts, X, y)


def check_n_features(n_features: int | None) -> None:
    """Raise InputError if a number of features is given that is none."""
    if n_features is not None and (not isinstance(n_features, (int, np.integer)) or n_features < 1):
        raise InputError(f"n_features={n_features!r}; expected a whole number of at least 1")


def make_empty_file_error(file: Path) -> InputError:
    """Return the error for a file without documents."""
    return NoDocumentsError(f"{file}: no documents; expected lines such as '2 qid:1 1:0.5 2:0'")


def _read_plain(files: list[Path], n_features: int | None, backend: Backend) -> _Parsed:
    """Read uncompressed files into one table: count the lines of all blocks, then parse each into its rows."""
    with ExitStack() as stack:
        handles = [stack.enter_context(file.open("rb")) for file in files]
        spans = [(i, *span) for i, handle in enumerate(handles) for span in cut_spans(handle)]

        def load(span: tuple[int, int, int]) -> Bytes:
            return load_block(handles[span[0]], *span[1:])

        counts = backend.each(lambda span: count_lines(load(span)), spans)
        places = np.concatenate([[0], np.cumsum(counts, dtype=np.int64)])
        size = sum(end - start for _, start, end in spans)
        width = n_features or guess_width(handles[0])
        if problem := _explain_size(int(places[-1]), width, size, n_features):
            if n_features:
                raise InputError(f"{files[0]}: n_features={n_features} makes {problem}")
            width = 1  # what the first line says may be wrong: the highest index is found, and named
        while True:
            X, y = np.zeros((places[-1], width), np.float32), np.empty(places[-1])

            def parse(k: int, X: Floats = X, y: Floats = y, places: Ints = places) -> LetorPart | BadLine:
                rows = slice(places[k], places[k + 1])
                return parse_block(spans[k][0], load(spans[k]), X[rows], y[rows], n_features)

            results = progress.track(backend.map(parse, range(len(spans))), "reading", len(spans))
            parts = _collect_parts(results, files)
            highest = max((part.highest for part in parts), default=1)
            if n_features or highest == width:
                break
            width, places = highest, np.cumsum([0, *(part.rows for part in parts)], dtype=np.int64)
            if problem := _explain_size(int(places[-1]), width, size):
                raise _make_size_error(parts, files, problem)
    total = sum(part.rows for part in parts)
    if total < len(y):  # blank lines and ends of files: close the gaps
        keep = np.concatenate([p + np.arange(part.rows) for p, part in zip(places[:-1], parts, strict=True)])
        X, y = X[keep], y[keep]
    return parts, X, y


def _read_streams(
    files: list[Path], n_features: int | None, backend: Backend
) -> tuple[list[LetorPart], Floats, Floats]:
    """Read files, compressed or not, into one table: parse them piece by piece, then join the pieces."""
    tables: list[tuple[Floats, Floats]] = []
    parts: list[LetorPart] = []

    def parse(piece: tuple[int, Bytes]) -> tuple[LetorPart | BadLine, Floats, Floats, int]:
        file, text = piece
        rows, width = count_lines(text), n_features or 64
        width = 1 if _explain_size(rows, width, len(text), n_features) else width
        while True:
            X, y = np.zeros((rows, width), np.float32), np.empty(rows)
            part = parse_block(file, text, X, y, n_features)
            if isinstance(part, BadLine) or part.highest <= width:
                return part, X, y, len(text)
            rows, width = part.rows, part.highest
            if _explain_size(rows, width, len(text), n_features):
                return part, X[:0], y, len(text)  # all pieces together are refused, and the highest index is named

    def results() -> Iterator[LetorPart | BadLine]:
        pieces = ((i, piece) for i, file in enumerate(files) for piece in read_pieces(file))
        rows, highest, size = 0, n_features or 1, 0
        for part, X, y, length in backend.map(parse, pieces):
            if isinstance(part, LetorPart):
                rows, highest, size = rows + part.rows, max(highest, part.highest), size + length
                parts.append(part)
                if problem := _explain_size(rows, highest, size, n_features):
                    if n_features:
                        raise InputError(f"{files[0]}: n_features={n_features} makes {problem}")
                    raise _make_size_error(parts, files, problem)
                tables.append((X[: part.rows, : max(part.highest, 1)].copy(), y[: part.rows]))
            yield part

    _collect_parts(results(), files)
    sizes = [part.rows for part in parts]
    starts = np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)])
    X = np.zeros((starts[-1], n_features or max((part.highest for part in parts), default=1)), np.float32)
    y = np.concatenate([table[1] for table in tables]) if tables else np.empty(0)
    for at in starts[-2::-1]:  # from the back, giving memory back
        part_X, _ = tables.pop()
        X[at : at + len(part_X), : part_X.shape[1]] = part_X
    return parts, X, y


def _explain_size(rows: int, width: int, size: int, n_features: int | None = None) -> str | None:
    """Return why a table is too large for the memory or for its ``size`` bytes of text; None if it is not."""
    return (explain_growth(rows, width, size) if n_features is None else None) or explain_lack_of_memory(rows, width)


def _make_size_error(parts: list[LetorPart], files: list[Path], problem: str) -> InputError:
    """Return the error for a table that is too large; it names the line with the highest feature index."""
    at = max(range(len(parts)), key=lambda i: parts[i].highest)  # the first of equals
    part = parts[at]
    line = part.widest + sum(before.lines for before in parts[:at] if before.file == part.file)
    return InputError(f"{files[part.file]}:{line}: feature index {part.highest} makes {problem}")


def _collect_parts(results: Iterable[LetorPart | BadLine], files: list[Path]) -> list[LetorPart]:
    """Return the parsed parts as a list; raise InputError for the first bad line, with its number in the file."""
    parts: list[LetorPart] = []
    for result in results:
        if isinstance(result, BadLine):
            line = result.line + sum(part.lines for part in parts if part.file == result.file)
            raise InputError(f"{files[result.file]}:{line}: {result.message}")
        parts.append(result)
    return parts


def _group_parts(parts: list[LetorPart], X: Floats, y: Floats) -> Queries:
    """Return the parsed parts of all files as one data set, with the documents of each query adjacent."""
    places = np.concatenate([[0], np.cumsum([part.rows for part in parts], dtype=np.int64)])
    starts = np.concatenate([part.starts + at for part, at in zip(parts, places[:-1], strict=True)])
    qid = parse_integer_ids([token for part in parts for token in part.qid])
    docid = None
    if any(part.docid is not None for part in parts):
        docid = np.concatenate([np.full(p.rows, "") if p.docid is None else p.docid for p in parts])
    new = np.concatenate([[True], qid[1:] != qid[:-1]])  # a query may go on in the next part
    ids, indptr, order = group_runs(starts[new], qid[new], len(y))
    if order is not None:
        X, y, docid = X[order], y[order], None if docid is None else docid[order]
    return Queries(X, y, indptr, ids, docid, source=order)


def write_letor(queries: Queries, path: StrPath) -> None:
    """Write a data set as LETOR text, whole or not at all; names in ``.gz`` and ``.xz`` are compressed.

    Every feature is written, in the shortest form that reads back as the same float32; a missing one is ``nan``.
    What LETOR text cannot hold is an error: names of features, categories, weights. :func:`write_queries` keeps all.

    Parameters
    ----------
    queries : Queries
        The data set.
    path : str or path
        The file to write.
    """
    names = name_features(queries.features, queries.n_features)
    for name, categories in zip(names, queries.categories or (), strict=False):
        if categories is not None:
            raise InputError(f"feature {name} is categorical; LETOR text has numbers only. rw.write_queries keeps it")
    lost = {"weight": "query weights", "doc_weight": "document weights", "position": "positions", "clicks": "clicks"}
    lost["features"] = "names of features"
    for attribute, what in lost.items():
        if getattr(queries, attribute) is not None:
            raise InputError(
                f"the documents have {what}, and LETOR text has no place for them. Drop them with "
                f"queries.replace({attribute}=None), or keep everything with rw.write_queries(queries, 'data.rwq')"
            )
    if queries.unretrieved is not None:
        n = len(queries.unretrieved.y)
        raise InputError(
            f"{n} judged documents that no run found; LETOR text has documents with features only, and measures on it "
            "would be too high. Drop them with queries.replace(unretrieved=None)"
        )
    check_tokens(queries.qid, "query")
    if queries.docid is not None:
        check_tokens(queries.docid, "document")
    heads = [f"{index}:" for index in range(1, queries.n_features + 1)]
    tails = [""] * queries.n_docs if queries.docid is None else [f" #docid = {name}" for name in queries.docid]
    with write_atomic(path) as file:
        for X, y, query, tail in zip(queries.X, queries.y, queries.row_qid, tails, strict=True):
            values = " ".join(head + _format_number(value) for head, value in zip(heads, X, strict=True))
            file.write(f"{_format_number(y)} qid:{query} {values}{tail}\n")


def _format_number(value: Any) -> str:
    """Return a number as short text, a whole one without ".0"."""
    text = str(value)
    return text.removesuffix(".0")
