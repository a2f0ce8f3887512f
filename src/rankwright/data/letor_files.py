"""Files of LETOR text, read in pieces of whole lines."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import numpy as np

from rankwright.basics.errors import InputError
from rankwright.basics.files import BYTE_ORDER_MARK, open_binary, skip_byte_order_mark
from rankwright.data.file_formats import check_pipe
from rankwright.data.letor_blocks import MAX_FEATURES, Bytes
from rankwright.kernels.data import letor_text as kernel

BLOCK = 1 << 22

_thread = threading.local()


def cut_spans(file: IO[bytes]) -> Iterator[tuple[int, int]]:
    """Yield the start and the end of each block of whole lines, of about ``BLOCK`` bytes, in an uncompressed file."""
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


def load_block(file: IO[bytes], start: int, end: int) -> Bytes:
    """Read a file's bytes from ``start`` to ``end`` into this thread's buffer, with padding for the kernel."""
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


def guess_width(file: IO[bytes]) -> int:
    """Return the highest feature index of a file's first line, as a guess of the number of features."""
    tokens = os.pread(file.fileno(), 1 << 20, 0).partition(b"\n")[0].partition(b"#")[0].split()
    index = tokens[-1].partition(b":")[0] if tokens else b""
    known = index.isdigit() and len(index) < 10 and int(index) <= MAX_FEATURES
    return max(int(index), 1) if known else 1  # a bad index is reported when its line is parsed


def read_pieces(path: Path) -> Iterator[Bytes]:
    """Yield a file's text, decompressed, in padded pieces of whole lines of about ``BLOCK`` bytes."""
    padding = b"\n" * kernel.PADDING
    with open_binary(path) as file:
        rest = skip_byte_order_mark(file.read(len(BYTE_ORDER_MARK)))
        is_checked = path.is_file()  # a pipe is not: nobody could look into it before
        while True:
            piece = file.read(BLOCK)
            if not is_checked:
                check_pipe(path, rest + piece)
                is_checked = True
            whole = piece.rfind(b"\n") + 1
            if whole or (rest and not piece):
                yield np.frombuffer(rest + piece[:whole] + padding, np.uint8)
                rest = piece[whole:]
            else:
                rest += piece
            if not piece:
                return
