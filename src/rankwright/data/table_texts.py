"""Text files of tables, plain or compressed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from rankwright.basics.errors import InputError
from rankwright.basics.files import StrPath, open_binary
from rankwright.basics.optional_imports import require

_CODECS = {b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "zstd"}


def find_codec(path: StrPath) -> str | None:
    """Return how a text file is compressed, by its content: "gzip", "zstd", "xz", or None if it is not."""
    with Path(path).open("rb") as file:
        start = file.read(6)
    if start == b"\xfd7zXZ\x00":
        return "xz"
    return next((codec for signature, codec in _CODECS.items() if start.startswith(signature)), None)


@contextmanager
def open_text(path: StrPath) -> Iterator[Any]:
    """Open a text file, decompressed, as a file that pyarrow reads; zstd needs pyarrow, the rest does not.

    Raises
    ------
    InputError
        If the compressed file is damaged or cut off.
    """
    codec = find_codec(path)
    if codec != "zstd":
        with open_binary(path) as stream:
            yield stream
        return
    pa = require("pyarrow")
    try:
        with pa.input_stream(str(path), compression=codec) as stream:
            yield stream
    except OSError as error:
        raise InputError(f"{path}: the compressed file is damaged or cut off: {error}") from None


def read_head(path: StrPath, size: int = 1 << 20) -> bytes:
    """Return the lines in the first ``size`` bytes of a text file, decompressed: at least two, if it has as many."""
    with open_text(path) as stream:
        head = b""
        while True:
            more: bytes = stream.read(size)
            head += more
            if not more:
                return head
            end = head.rfind(b"\n") + 1
            if head.count(b"\n", 0, end) > 1:
                return head[:end]


def count_lines(path: StrPath) -> int | None:
    """Return the number of lines of a text file; None if it is compressed."""
    if find_codec(path) is not None:
        return None
    with Path(path).open("rb") as file:
        return sum(piece.count(b"\n") for piece in iter(partial(file.read, 1 << 22), b""))
