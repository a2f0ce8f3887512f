"""LETOR and SVMlight ranking text: ``label qid:ID index:value ... #docid = ID``, a document per line."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankwright import progress
from rankwright.backends import Backend, resolve
from rankwright.data import Floats, InputError, Ints, Queries, group_runs
from rankwright.files import StrPath, is_compressed, open_binary, write_atomic
from rankwright.kernels import text as kernel

BLOCK = 1 << 22
MOST_FEATURES = 100_000
_WIDEST_DOCID = 64  # longer ids are kept as Python strings, not in a table of fixed width

_MESSAGES = {
    kernel.BAD_LABEL: "found {found} for a label; expected a number",
    kernel.NO_QID: "found {found}; expected qid:ID after the label",
    kernel.BAD_INDEX: "found {found}; expected index:value",
    kernel.ZERO_INDEX: "feature index 0; LETOR indices start at 1",
    kernel.ORDER: "feature index {found} after an equal or higher one; expected increasing indices",
    kernel.BAD_VALUE: "found {found} for a feature value; expected a finite number",
}


def read_letor(
    *paths: StrPath, n_features: int | None = None, backend: Backend | None = None
) -> Queries:
    """Read LETOR or SVMlight ranking text, several files as one.

    Lines are ``label qid:ID index:value ... #docid = ID``. Labels are numbers, query ids any text without spaces (integers
    become integers), indices start at 1 and increase, absent features are 0. The document id is what follows ``docid =`` in
    the comment, or the comment's first word. Files may be gzip or xz. Rows of one query need not be adjacent: they are
    regrouped, queries in order of first appearance and documents in file order (``Queries.source`` remembers the
    lines; ``restore`` undoes it). Every line is checked; the first bad one raises ``InputError`` with file and line.

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
    """
    if not paths:
        raise InputError("read_letor needs at least one file")
    blocks: list[_Block] = []
    for path in paths:
        before = len(blocks)
        blocks.extend(_read_blocks(Path(path), n_features, resolve(backend)))
        if len(blocks) == before:
            raise InputError(f"{path}: no documents; expected lines such as '2 qid:1 1:0.5 2:0'")
    return _join(blocks, n_features)


class _Block(NamedTuple):
    """The documents of some whole lines."""

    X: Floats
    y: Floats
    starts: Ints  # the first row of each run of one qid
    qid: list[str]
    docid: NDArray[Any] | None
    lines: int


class _BadLine(NamedTuple):
    line: int
    message: str


def _read_blocks(path: Path, n_features: int | None, backend: Backend) -> Iterator[_Block]:
    """Parse a file block by block, in order; the first bad line raises."""
    width = n_features or 64

    def parse(block: tuple[int, int] | bytes) -> _Block | _BadLine:
        data = block if isinstance(block, bytes) else os.pread(file.fileno(), block[1] - block[0], block[0])
        return _parse(np.frombuffer(data, dtype=np.uint8), width, n_features)

    lines = 0
    with open_binary(path) as file:
        pieces, total = _stream(file, path) if is_compressed(path) else _spans(file)
        for block in progress.track(backend.map(parse, pieces), f"reading {path.name}", total):
            if isinstance(block, _BadLine):
                raise InputError(f"{path}:{lines + block.line}: {block.message}")
            lines += block.lines
            width = max(width, block.X.shape[1])
            if len(block.y):
                yield block


def _spans(file: Any) -> tuple[Iterator[tuple[int, int]], int]:
    """Cut a plain file at newlines into (start, end) of about ``BLOCK`` bytes."""
    size = os.fstat(file.fileno()).st_size

    def cut() -> Iterator[tuple[int, int]]:
        start = 0
        while start < size:
            end = min(start + BLOCK, size)
            while end < size:
                ahead = os.pread(file.fileno(), 1 << 14, end)
                newline = ahead.find(b"\n")
                end += len(ahead) if newline < 0 else newline + 1
                if newline >= 0:
                    break
            yield start, end
            start = end

    return cut(), size // BLOCK + 1


def _stream(file: Any, path: Path) -> tuple[Iterator[bytes], int]:
    """Cut a compressed file at newlines into pieces of about ``BLOCK`` bytes."""

    def cut() -> Iterator[bytes]:
        rest = b""
        try:
            while piece := file.read(BLOCK):
                whole = piece.rfind(b"\n") + 1
                if whole:
                    yield rest + piece[:whole]
                    rest = piece[whole:]
                else:
                    rest += piece
        except (EOFError, OSError, ValueError) as error:
            raise InputError(f"{path}: the compressed file is damaged or cut off: {error}") from None
        if rest:
            yield rest

    return cut(), path.stat().st_size * 4 // BLOCK + 1


def _parse(text: NDArray[np.uint8], width: int, n_features: int | None) -> _Block | _BadLine:
    """Parse whole lines; wider rows or more hard numbers than expected mean another try with more room."""
    rows = kernel.count_newlines(text) + 1
    y, runs, docs = np.empty(rows), np.empty((rows, 3), np.int64), np.empty((rows, 2), np.int64)
    hard = np.empty((256, 4), np.int64)
    while True:
        X = np.zeros((rows, width), np.float32)
        status, n, lines, n_runs, n_hard, highest, start, end = kernel.parse_block(text, X, y, runs, docs, hard)
        if status == kernel.TOO_WIDE:
            if n_features is not None:
                return _BadLine(lines, f"feature index {highest}; expected at most {n_features} features")
            if highest > MOST_FEATURES:
                return _BadLine(lines, f"feature index {highest}; at most {MOST_FEATURES} are supported")
            width = max(int(highest), min(2 * width, MOST_FEATURES))
        elif status == kernel.TOO_MANY_HARD:
            hard = np.empty((8 * len(hard), 4), np.int64)
        else:
            break
    if status != kernel.OK:
        found = repr(_shorten(_decode(text[start:end])))
        return _BadLine(lines, _MESSAGES[status].format(found=found if end > start else "the end of the line"))
    for row, column, a, b in hard[:n_hard]:
        with np.errstate(over="ignore"):
            value = float(_decode(text[a:b]))
            (X[row] if column >= 0 else y[row : row + 1])[max(column, 0)] = value
        if not np.isfinite(np.float32(X[row, column]) if column >= 0 else value):
            line = 1 + kernel.count_newlines(text[:a])
            return _BadLine(line, f"found {_decode(text[a:b])!r}; it is too large")
    qid = [_decode(text[a:b]) for _, a, b in runs[:n_runs]]
    used = X[:n, : n_features or max(int(highest), 1)]
    return _Block(used, y[:n], runs[:n_runs, 0].copy(), qid, _docids(text, docs[:n]), int(lines))


def _docids(text: NDArray[np.uint8], spans: Ints) -> NDArray[Any] | None:
    widths = spans[:, 1] - spans[:, 0]
    widest = int(widths.max(initial=0))
    if widest == 0:
        return None
    if widest <= _WIDEST_DOCID:
        table = np.zeros((len(spans), widest), np.uint32)
        if kernel.copy_tokens(text, spans, len(spans), table):
            return table.view(f"U{widest}").ravel()
    return np.array([_decode(text[a:b]) for a, b in spans], dtype=object if widest > _WIDEST_DOCID else None)


def _join(blocks: list[_Block], n_features: int | None) -> Queries:
    """Put the blocks together, giving back the memory of each as it is copied."""
    d = n_features or max(block.X.shape[1] for block in blocks)
    sizes = [len(block.y) for block in blocks]
    n, starts = sum(sizes), np.concatenate([[0], np.cumsum(sizes)])
    run_starts = np.concatenate([block.starts + at for block, at in zip(blocks, starts[:-1], strict=True)])
    qid = _as_ids([token for block in blocks for token in block.qid])
    docid = None
    if any(block.docid is not None for block in blocks):
        docid = np.concatenate([np.full(len(b.y), "") if b.docid is None else b.docid for b in blocks])
    y = np.concatenate([block.y for block in blocks])
    X = np.empty((n, d), np.float32)
    for i, at in enumerate(starts[:-1]):
        part, blocks[i] = blocks[i].X, blocks[i]._replace(X=np.empty((0, 0), np.float32))
        X[at : at + len(part), : part.shape[1]] = part
        X[at : at + len(part), part.shape[1] :] = 0.0
    new = np.concatenate([[True], qid[1:] != qid[:-1]])  # a query may go on in the next block
    ids, indptr, order = group_runs(run_starts[new], qid[new], n)
    if order is not None:
        X, y, docid = X[order], y[order], None if docid is None else docid[order]
    return Queries(X, y, indptr, ids, docid, source=order)


def _as_ids(tokens: list[str]) -> NDArray[Any]:
    """Query ids as integers if every one is written as an integer, else as text."""
    try:
        numbers = np.array([int(token) for token in tokens], dtype=np.int64)
    except (ValueError, OverflowError):
        return np.array(tokens)
    return numbers if [str(number) for number in numbers] == tokens else np.array(tokens)


def _decode(token: NDArray[np.uint8]) -> str:
    return token.tobytes().decode("utf-8", errors="backslashreplace")


def _shorten(token: str) -> str:
    return token if len(token) <= 40 else token[:37] + "..."


def write_letor(queries: Queries, path: StrPath) -> None:
    """Write LETOR text (``.gz`` and ``.xz`` names are compressed), whole or not at all.

    Every feature is written, in the shortest form that reads back as the same float32.
    """
    if np.isnan(queries.X).any():
        raise InputError("X contains NaN; LETOR text has no way to write a missing value")
    for name, ids in (("query", queries.qid), ("document", queries.docid)):
        for token in () if ids is None else ids:
            if not str(token) or str(token).split() != [str(token)] or "#" in str(token):
                raise InputError(f"the {name} id {str(token)!r} cannot be written: it is empty or has spaces or '#'")
    heads = [f"{index}:" for index in range(1, queries.n_features + 1)]
    with write_atomic(path) as file:
        for query, rows in zip(queries.qid, queries, strict=True):
            for row in range(rows.start, rows.stop):
                values = " ".join(head + _short(value) for head, value in zip(heads, queries.X[row], strict=True))
                tail = "" if queries.docid is None else f" #docid = {queries.docid[row]}"
                file.write(f"{_short(queries.y[row])} qid:{query} {values}{tail}\n")


def _short(value: Any) -> str:
    text = str(value)
    return text.removesuffix(".0")
