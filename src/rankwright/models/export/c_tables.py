"""Numbers and texts as tables of a C program."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

_LINE = 110  # characters


def format_table(kind: str, name: str, values: Sequence[Any] | Any) -> str:
    """Return the definition of a constant array; numbers have enough digits to be exact.

    >>> print(format_table("static const float", "weights", np.array([0.5, 0.1], np.float32)))
    static const float weights[2] = {
        0.5f, 0.1f
    };
    """
    return f"{kind} {name}[{len(values)}] = {{\n{_break_lines(map(format_value, values))}\n}};"


def format_value(value: Any) -> str:
    """Return a number, a text or a tuple of these as C writes them.

    >>> format_value(("bm25", 1, 0.25, np.float32(0.1)))
    '{"bm25", 1, 0.25, 0.1f}'
    """
    if isinstance(value, tuple):
        return f"{{{', '.join(map(format_value, value))}}}"
    if isinstance(value, str):
        return _quote_text(value)
    if isinstance(value, np.float32):
        return f"{value!s}f"
    return repr(float(value)) if isinstance(value, (float, np.floating)) else str(int(value))


def _quote_text(text: str) -> str:
    """Return a text as a C string; bytes that are not plain ASCII are octal numbers of three digits."""
    plain = set(range(0x20, 0x7F)) - set(b'"\\?')  # two question marks begin a trigraph
    return '"' + "".join(chr(byte) if byte in plain else f"\\{byte:03o}" for byte in text.encode()) + '"'


def _break_lines(words: Iterable[str]) -> str:
    """Return words with commas between them, broken into indented lines."""
    lines, line = [], "   "
    for word in words:
        if len(line) + len(word) > _LINE and line.strip():
            lines.append(line)
            line = "   "
        line += f" {word},"
    return "\n".join([*lines, line])[:-1]
