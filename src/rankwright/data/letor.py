"""LETOR and SVMlight ranking text: ``label qid:ID index:value ... #docid = ID``, a document per line."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankwright.basics import progress
from rankwright.basics.array_types import Floats, Ints
from rankwright.basics.errors import InputError, shown
from rankwright.basics.files import BYTE_ORDER_MARK, StrPath, is_plain, open_binary, skip_byte_order_mark, write_atomic
from rankwright.data.ids import WIDEST_ID, as_ids, check_tokens
from rankwright.data.queries import Queries, group_runs
from rankwright.kernels.data import letor_text as kernel
from rankwright.runtime.backends import Backend, resolve
from rankwright.runtime.memory import available_memory

BLOCK = 1 << 22
MOST_FEATURES = 100_000
_SMALL = 1 << 30  # bytes: a table of less is made without further questions
_MOST_GROWTH = 1_000  # a table is at most so many times as large as the text it is read from

_MESSAGES = {
    kernel.BAD_LABEL: "found {found} for a label; expected a finite number",
    kernel.NO_QID: "found {found}; expected qid:ID after the label",
    kernel.BAD_INDEX: "found {found}; expected index:value",
    kernel.ZERO_INDEX: "feature index 0; LETOR indices start at 1",
    kernel.ORDER: "feature index {found} after an equal or higher one; expected increasing indices",
    kernel.BAD_VALUE: "found {found} for a feature value; expected a finite number",
    kernel.BAD_BREAK: "found a carriage return inside a comment; expected a newline at the end of every line",
    kernel.TOO_MANY_ROWS: "the file changed while it was read",
    kernel.TOO_WIDE: "feature index {found}; expected at most {most} features",
}

Bytes = NDArray[np.uint8]
_thread = threading.local()


def read_letor(*paths: StrPath, n_features: int | None = None, backend: Backend | None = None) -> Queries:
    """Read LETOR or SVMlight ranking text, several files as one.

    Lines are ``label qid:ID index:value ... #docid = ID``. Labels are numbers, query ids any text without spaces
    (integers become integers), indices start at 1 and increase, absent features are 0. The document id is what follows
    ``docid =`` in the comment, or the comment's first word. Files may be gzip or xz. Rows of one query need not be
    adjacent; queries are in order of first appearance, and rows in the order of the lines. Every line is checked; the
    first bad one raises ``InputError`` with file and line.

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
    if n_features is not None and (not isinstance(n_features, (int, np.integer)) or n_features < 1):
        raise InputError(f"n_features={n_features!r}; expected a whole number of at least 1")
    files = [Path(path) for path in paths]
    in_place = hasattr(os, "preadv") and all(is_plain(file) for file in files)  # not every system reads at a place
    read = _read_plain if in_place else _read_streams
    parts, X, y = read(files, n_features, resolve(backend))
    empty = [str(file) for i, file in enumerate(files) if not any(part.file == i and part.rows for part in parts)]
    if empty:
        raise InputError(f"{empty[0]}: no documents; expected lines such as '2 qid:1 1:0.5 2:0'")
    return _group(parts, X, y)


class _Part(NamedTuple):
    """What is known of the documents of some whole lines, besides ``X`` and ``y``."""

    file: int
    rows: int
    lines: int
    starts: Ints  # the first row of each run of one qid
    qid: list[str]
    docid: NDArray[Any] | None
    highest: int  # the highest feature index
    widest: int  # the first line that has it


class _BadLine(NamedTuple):
    file: int
    line: int
    message: str


def _read_plain(files: list[Path], n_features: int | None, backend: Backend) -> tuple[list[_Part], Floats, Floats]:
    """Count the lines of every block, make room for all, and parse each block into its place."""
    with ExitStack() as stack:
        handles = [stack.enter_context(file.open("rb")) for file in files]
        spans = [(i, *span) for i, handle in enumerate(handles) for span in _spans(handle)]

        def load(span: tuple[int, int, int]) -> Bytes:
            return _load(handles[span[0]], *span[1:])

        counts = backend.each(lambda span: _count_lines(load(span)), spans)
        places = np.concatenate([[0], np.cumsum(counts, dtype=np.int64)])
        size = sum(end - start for _, start, end in spans)
        width = n_features or _guess_width(handles[0])
        if problem := _explain_no_room(int(places[-1]), width, size, n_features):
            if n_features:
                raise InputError(f"{files[0]}: n_features={n_features} makes {problem}")
            width = 1  # what the first line says may be wrong: the highest index is found, and named
        while True:
            X, y = np.zeros((places[-1], width), np.float32), np.empty(places[-1])

            def parse(k: int, X: Floats = X, y: Floats = y, places: Ints = places) -> _Part | _BadLine:
                rows = slice(places[k], places[k + 1])
                return _parse(spans[k][0], load(spans[k]), X[rows], y[rows], n_features)

            results = progress.track(backend.map(parse, range(len(spans))), "reading", len(spans))
            parts = _checked(results, files)
            highest = max((part.highest for part in parts), default=1)
            if n_features or highest == width:
                break
            width, places = highest, np.cumsum([0, *(part.rows for part in parts)], dtype=np.int64)
            if problem := _explain_no_room(int(places[-1]), width, size):
                raise _too_large(parts, files, problem)
    total = sum(part.rows for part in parts)
    if total < len(y):  # blank lines and ends of files: close the gaps
        keep = np.concatenate([p + np.arange(part.rows) for p, part in zip(places[:-1], parts, strict=True)])
        X, y = X[keep], y[keep]
    return parts, X, y


def _read_streams(files: list[Path], n_features: int | None, backend: Backend) -> tuple[list[_Part], Floats, Floats]:
    """Decompress piece by piece, parse the pieces as they come, and put them together at the end."""
    tables: list[tuple[Floats, Floats]] = []
    parts: list[_Part] = []

    def parse(piece: tuple[int, Bytes]) -> tuple[_Part | _BadLine, Floats, Floats, int]:
        file, text = piece
        rows, width = _count_lines(text), n_features or 64
        width = 1 if _explain_no_room(rows, width, len(text), n_features) else width
        while True:
            X, y = np.zeros((rows, width), np.float32), np.empty(rows)
            part = _parse(file, text, X, y, n_features)
            if isinstance(part, _BadLine) or part.highest <= width:
                return part, X, y, len(text)
            rows, width = part.rows, part.highest
            if _explain_no_room(rows, width, len(text), n_features):
                return part, X[:0], y, len(text)  # all pieces together are refused, and the highest index is named

    def results() -> Iterator[_Part | _BadLine]:
        pieces = ((i, piece) for i, file in enumerate(files) for piece in _stream(file))
        rows, highest, size = 0, n_features or 1, 0
        for part, X, y, length in backend.map(parse, pieces):
            if isinstance(part, _Part):
                rows, highest, size = rows + part.rows, max(highest, part.highest), size + length
                parts.append(part)
                if problem := _explain_no_room(rows, highest, size, n_features):
                    if n_features:
                        raise InputError(f"{files[0]}: n_features={n_features} makes {problem}")
                    raise _too_large(parts, files, problem)
                tables.append((X[: part.rows, : max(part.highest, 1)].copy(), y[: part.rows]))
            yield part

    _checked(results(), files)
    sizes = [part.rows for part in parts]
    starts = np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)])
    X = np.zeros((starts[-1], n_features or max((part.highest for part in parts), default=1)), np.float32)
    y = np.concatenate([table[1] for table in tables]) if tables else np.empty(0)
    for at in starts[-2::-1]:  # from the back, giving memory back
        part_X, _ = tables.pop()
        X[at : at + len(part_X), : part_X.shape[1]] = part_X
    return parts, X, y


def _explain_no_room(rows: int, width: int, size: int, n_features: int | None = None) -> str | None:
    """Say why a table of so many rows and features is not made of ``size`` bytes of text; None if it can be."""
    needed = 4 * rows * width
    if needed <= _SMALL:
        return None
    table = f"a table of {rows} documents x {width} features: {needed / 1e9:.1f} GB"
    free = available_memory()
    if free is not None and 2 * needed > free:  # rows are regrouped into a second one
        free_now = f"{free / 1e9:.1f} GB of memory are free"
        return f"{table}, and twice that while it is read; {free_now}. Use fewer documents or features"
    if n_features is None and needed > _MOST_GROWTH * size:
        return f"{table} from {size / 1e6:.1f} MB of text. Renumber the features, or say n_features={width} in Python"
    return None


def _too_large(parts: list[_Part], files: list[Path], problem: str) -> InputError:
    """The error that names the line with the highest feature index."""
    at = max(range(len(parts)), key=lambda i: parts[i].highest)  # the first of equals
    part = parts[at]
    line = part.widest + sum(before.lines for before in parts[:at] if before.file == part.file)
    return InputError(f"{files[part.file]}:{line}: feature index {part.highest} makes {problem}")


def _checked(results: Iterable[_Part | _BadLine], files: list[Path]) -> list[_Part]:
    """Collect the parts; the first bad line raises, with its number in its file."""
    parts: list[_Part] = []
    for result in results:
        if isinstance(result, _BadLine):
            line = result.line + sum(part.lines for part in parts if part.file == result.file)
            raise InputError(f"{files[result.file]}:{line}: {result.message}")
        parts.append(result)
    return parts


def _spans(file: IO[bytes]) -> Iterator[tuple[int, int]]:
    """Cut a plain file at newlines into (start, end) of about ``BLOCK`` bytes."""
    size = os.fstat(file.fileno()).st_size
    start = len(BYTE_ORDER_MARK) if os.pread(file.fileno(), 3, 0) == BYTE_ORDER_MARK else 0
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


def _load(file: IO[bytes], start: int, end: int) -> Bytes:
    """The bytes from start to end, and the padding that the kernel wants; the buffer is the thread's own."""
    needed = end - start + kernel.PADDING
    buffer: Bytes | None = getattr(_thread, "buffer", None)
    if buffer is None or len(buffer) < needed:
        buffer = _thread.buffer = np.empty(needed + BLOCK // 8, np.uint8)
    text = buffer[:needed]
    done = 0
    while done < end - start:
        got = os.preadv(file.fileno(), [text[done : end - start].data], start + done)
        if got == 0:
            raise InputError(f"{file.name}: the file became shorter while it was read")
        done += got
    text[end - start :] = ord("\n")
    return text


def _count_lines(text: Bytes) -> int:
    unfinished = len(text) > kernel.PADDING and text[-kernel.PADDING - 1] != ord("\n")
    return int(kernel.count_newlines(text)) - kernel.PADDING + unfinished


def _guess_width(file: IO[bytes]) -> int:
    """The highest feature index of the first line: right for dense files, a start for others."""
    tokens = os.pread(file.fileno(), 1 << 20, 0).partition(b"\n")[0].partition(b"#")[0].split()
    index = tokens[-1].partition(b":")[0] if tokens else b""
    known = index.isdigit() and len(index) < 10 and int(index) <= MOST_FEATURES
    return max(int(index), 1) if known else 1  # a bad index is reported when its line is parsed


def _stream(path: Path) -> Iterator[Bytes]:
    """Cut a file, compressed or not, at newlines into padded pieces of about ``BLOCK`` bytes."""
    padding = b"\n" * kernel.PADDING
    with open_binary(path) as file:
        rest = skip_byte_order_mark(file.read(len(BYTE_ORDER_MARK)))
        while True:
            piece = file.read(BLOCK)
            whole = piece.rfind(b"\n") + 1
            if whole or (rest and not piece):
                yield np.frombuffer(rest + piece[:whole] + padding, np.uint8)
                rest = piece[whole:]
            else:
                rest += piece
            if not piece:
                return


def _parse(file: int, text: Bytes, X: Floats, y: Floats, n_features: int | None) -> _Part | _BadLine:
    """Parse whole lines into ``X`` and ``y``, which have room for them."""
    runs, docs = np.empty((len(y), 3), np.int64), np.empty((len(y), 2), np.int64)
    hard, most = np.empty((256, 4), np.int64), n_features or MOST_FEATURES
    while True:
        result = kernel.parse_block(text, X, y, runs, docs, hard, most)
        status, n, lines, n_runs, n_hard, highest, widest, start, end = result
        if status != kernel.TOO_MANY_HARD:
            break
        hard = np.empty((8 * len(hard), 4), np.int64)
    for row, column, a, b in hard[:n_hard]:  # all of them stand before what the status complains about
        token = _decode(text[a:b])
        with np.errstate(over="ignore"):
            value = np.float32(token) if column >= 0 else float(token)
        if not np.isfinite(value):
            message = _MESSAGES[kernel.BAD_VALUE if column >= 0 else kernel.BAD_LABEL]
            line = 1 + int(kernel.count_newlines(text[:a]))
            return _BadLine(file, line, message.format(found=shown(token)))
        if column < 0:
            y[row] = value
        elif column < X.shape[1]:
            X[row, column] = value
    if status != kernel.OK:
        found = shown(_decode(text[start:end])) if end > start else "nothing"
        return _BadLine(file, int(lines), _MESSAGES[status].format(found=found, most=most))
    try:
        qid = [_decode_id(text, a, b) for _, a, b in runs[:n_runs]]
        docid = _docids(text, docs[:n])
    except _BadId as error:
        return _BadLine(file, 1 + int(kernel.count_newlines(text[: error.place])), str(error))
    starts = runs[:n_runs, 0].copy()
    return _Part(file, int(n), int(lines), starts, qid, docid, max(int(highest), 1), int(widest))


def _docids(text: Bytes, spans: Ints) -> NDArray[Any] | None:
    widths = spans[:, 1] - spans[:, 0]
    widest = int(widths.max(initial=0))
    if widest == 0:
        return None
    if widest <= WIDEST_ID:
        table = np.zeros((len(spans), widest), np.uint32)
        if kernel.copy_tokens(text, spans, len(spans), table):
            return table.view(f"U{widest}").ravel()
    return as_ids([_decode_id(text, a, b) for a, b in spans])


def _group(parts: list[_Part], X: Floats, y: Floats) -> Queries:
    """Make queries of the runs of rows with one query id."""
    places = np.concatenate([[0], np.cumsum([part.rows for part in parts], dtype=np.int64)])
    starts = np.concatenate([part.starts + at for part, at in zip(parts, places[:-1], strict=True)])
    qid = _as_ids([token for part in parts for token in part.qid])
    docid = None
    if any(part.docid is not None for part in parts):
        docid = np.concatenate([np.full(p.rows, "") if p.docid is None else p.docid for p in parts])
    new = np.concatenate([[True], qid[1:] != qid[:-1]])  # a query may go on in the next part
    ids, indptr, order = group_runs(starts[new], qid[new], len(y))
    if order is not None:
        X, y, docid = X[order], y[order], None if docid is None else docid[order]
    return Queries(X, y, indptr, ids, docid, source=order)


def _as_ids(tokens: list[str]) -> NDArray[Any]:
    """Query ids as integers if every one is written as an integer, else as text."""
    try:
        numbers = np.array([int(token) for token in tokens], dtype=np.int64)
    except (ValueError, OverflowError):
        return as_ids(tokens)
    return numbers if [str(number) for number in numbers] == tokens else as_ids(tokens)


class _BadId(Exception):
    """An id that is no text; ``place`` is where it begins."""

    def __init__(self, place: int, message: str) -> None:
        super().__init__(message)
        self.place = place


def _decode_id(text: Bytes, start: int, end: int) -> str:
    """Return an id as text; bytes that are none would make one id of two."""
    token = text[start:end]
    try:
        name = token.tobytes().decode("utf-8")
    except UnicodeDecodeError:
        raise _BadId(start, f"the id {shown(_decode(token))} is not UTF-8; convert the file to UTF-8") from None
    if "\0" in name:
        raise _BadId(start, f"the id {shown(name)} has a NUL byte; expected text")
    return name


def _decode(token: Bytes) -> str:
    """Return text for a message."""
    return token.tobytes().decode("utf-8", errors="backslashreplace")


def write_letor(queries: Queries, path: StrPath) -> None:
    """Write LETOR text (``.gz`` and ``.xz`` names are compressed), whole or not at all.

    Every feature is written, in the shortest form that reads back as the same float32.
    """
    if np.isnan(queries.X).any():
        raise InputError("X contains NaN; LETOR text has no way to write a missing value")
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
            values = " ".join(head + _short(value) for head, value in zip(heads, X, strict=True))
            file.write(f"{_short(y)} qid:{query} {values}{tail}\n")


def _short(value: Any) -> str:
    text = str(value)
    return text.removesuffix(".0")
