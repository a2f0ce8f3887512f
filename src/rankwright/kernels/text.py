"""Parsing LETOR text: label, qid, features, comment, a document per line."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankwright.kernels.jit import kernel

Floats = NDArray[np.floating[Any]]
Ints = NDArray[np.integer[Any]]
Bytes = NDArray[np.uint8]

# What parse_block may stop at; letor.py turns each into a sentence.
OK, BAD_LABEL, NO_QID, BAD_INDEX, ZERO_INDEX, ORDER, BAD_VALUE, TOO_WIDE, TOO_MANY_HARD = range(9)

_POWERS = np.array([float(f"1e{e}") for e in range(309)])
_MOST_DIGITS = 18  # of a mantissa that fits an int64
_EXACT = 1 << 53  # integers up to here, and powers of ten up to 22, are exact in float64
_TAB, _NEWLINE, _RETURN, _SPACE, _HASH, _PLUS, _MINUS, _POINT = 9, 10, 13, 32, 35, 43, 45, 46
_ZERO, _COLON = 48, 58


@kernel
def count_newlines(text: Bytes) -> int:
    """The number of newlines."""
    count = 0
    for i in range(len(text)):
        count += text[i] == _NEWLINE
    return count


@kernel
def _ends_token(c: int) -> bool:
    return c == _SPACE or c == _NEWLINE or c == _TAB or c == _RETURN or c == _HASH


@kernel
def token_end(text: Bytes, i: int) -> int:
    """Where the token that starts at ``i`` ends."""
    while i < len(text) and not _ends_token(text[i]):
        i += 1
    return i


@kernel
def parse_number(text: Bytes, i: int) -> tuple[float, int, bool]:
    """Read a decimal number: its value, where it ends (``i`` itself if there is none), whether it is exact.

    Exact means correctly rounded: the mantissa is at most 2^53 and the power of ten at most 22 (Clinger's fast
    path). Otherwise the relative error is below 2^-50.
    """
    n, start = len(text), i
    negative = False
    if i < n and (text[i] == _MINUS or text[i] == _PLUS):
        negative = text[i] == _MINUS
        i += 1
    mantissa, digits, power, seen = 0, 0, 0, False
    while i < n:
        c = np.int64(text[i]) - _ZERO
        if c < 0 or c > 9:
            break
        seen = True
        if digits < _MOST_DIGITS:
            mantissa = mantissa * 10 + c
            digits += mantissa > 0
        else:
            power += 1
            digits += 1
        i += 1
    if i < n and text[i] == _POINT:
        i += 1
        while i < n:
            c = np.int64(text[i]) - _ZERO
            if c < 0 or c > 9:
                break
            seen = True
            if digits < _MOST_DIGITS:
                mantissa = mantissa * 10 + c
                digits += mantissa > 0
                power -= 1
            else:
                digits += 1
            i += 1
    if not seen:
        return 0.0, start, True
    if i < n and (text[i] == 101 or text[i] == 69):  # e, E
        j, sign, exponent = i + 1, 1, 0
        if j < n and (text[j] == _MINUS or text[j] == _PLUS):
            sign = -1 if text[j] == _MINUS else 1
            j += 1
        first = j
        while j < n and _ZERO <= text[j] < _COLON:
            exponent = min(exponent * 10 + np.int64(text[j]) - _ZERO, 100000)
            j += 1
        if j == first:
            return 0.0, start, True
        power += sign * exponent
        i = j
    value = float(mantissa)
    exact = digits <= _MOST_DIGITS and mantissa <= _EXACT and -22 <= power <= 22
    if mantissa == 0:
        exact = True
    elif power < -290 or power > 290:
        return np.nan, i, False
    elif power < 0:
        value /= _POWERS[-power]
    else:
        value *= _POWERS[power]
    return (-value if negative else value), i, exact


@kernel
def _same_token(text: Bytes, a: int, b: int, length: int) -> bool:
    for i in range(length):
        if text[a + i] != text[b + i]:
            return False
    return True


@kernel
def _find_docid(text: Bytes, i: int) -> tuple[int, int]:
    """The document id in a comment that starts at ``i``: after 'docid =', or else the first word."""
    n = len(text)
    while i < n and (text[i] == _HASH or text[i] == _SPACE or text[i] == _TAB):
        i += 1
    # d o c i d
    if (
        i + 5 < n
        and text[i] == 100
        and text[i + 1] == 111
        and text[i + 2] == 99
        and text[i + 3] == 105
        and text[i + 4] == 100
    ):
        j = i + 5
        while j < n and (text[j] == _SPACE or text[j] == _TAB):
            j += 1
        if j < n and text[j] == 61:  # =
            i = j + 1
            while i < n and (text[i] == _SPACE or text[i] == _TAB):
                i += 1
    start = i
    while i < n and text[i] != _SPACE and text[i] != _TAB and text[i] != _NEWLINE and text[i] != _RETURN:
        i += 1
    return start, i


@kernel
def parse_block(
    text: Bytes, X: Floats, y: Floats, runs: Ints, docs: Ints, hard: Ints
) -> tuple[int, int, int, int, int, int, int, int]:
    """Parse whole lines of LETOR text into ``X`` (zeroed) and ``y``.

    ``runs`` gets (row, start, end) of the qid of every run of rows with one qid, ``docs`` the (start, end) of every row's
    document id, ``hard`` (row, column or -1 for the label, start, end) of the numbers whose rounding to float32 (for labels:
    float64) is in doubt. Returns (status, rows, lines, runs, hard numbers, highest index, start, end): the last
    two are the text that ``status`` complains about.
    """
    n, width = len(text), X.shape[1]
    i, row, line, n_runs, n_hard, highest = 0, 0, 0, 0, 0, 0
    qid_start, qid_end = 0, -1
    while i < n:
        line += 1
        while i < n and (text[i] == _SPACE or text[i] == _TAB):
            i += 1
        if i >= n or text[i] == _NEWLINE or text[i] == _RETURN or text[i] == _HASH:
            while i < n and text[i] != _NEWLINE:
                i += 1
            i += 1
            continue
        # the label
        value, end, exact = parse_number(text, i)
        if end == i or (end < n and not _ends_token(text[end])):
            return BAD_LABEL, row, line, n_runs, n_hard, highest, i, token_end(text, i)
        if not exact:
            if n_hard == len(hard):
                return TOO_MANY_HARD, row, line, n_runs, n_hard, highest, i, end
            hard[n_hard, 0], hard[n_hard, 1], hard[n_hard, 2], hard[n_hard, 3] = row, -1, i, end
            n_hard += 1
        y[row] = value
        i = end
        # qid:
        while i < n and (text[i] == _SPACE or text[i] == _TAB):
            i += 1
        if not (
            i + 4 < n
            and text[i] == 113
            and text[i + 1] == 105
            and text[i + 2] == 100
            and text[i + 3] == _COLON
            and not _ends_token(text[i + 4])
        ):
            return NO_QID, row, line, n_runs, n_hard, highest, i, token_end(text, i)
        start = i + 4
        i = token_end(text, start)
        if i - start != qid_end - qid_start or not _same_token(text, start, qid_start, i - start):
            runs[n_runs, 0], runs[n_runs, 1], runs[n_runs, 2] = row, start, i
            n_runs += 1
        qid_start, qid_end = start, i
        # features
        last = 0
        docs[row, 0] = docs[row, 1] = 0
        while True:
            while i < n and (text[i] == _SPACE or text[i] == _TAB):
                i += 1
            if i >= n or text[i] == _NEWLINE:
                break
            if text[i] == _HASH:
                docs[row, 0], docs[row, 1] = _find_docid(text, i)
                while i < n and text[i] != _NEWLINE:
                    i += 1
                break
            if text[i] == _RETURN:
                i += 1
                continue
            start, index = i, 0
            while i < n and _ZERO <= text[i] < _COLON and i - start < 18:
                index = index * 10 + np.int64(text[i]) - _ZERO
                i += 1
            if i == start or i >= n or text[i] != _COLON:
                return BAD_INDEX, row, line, n_runs, n_hard, highest, start, token_end(text, start)
            if index <= last:
                status = ZERO_INDEX if index == 0 else ORDER
                return status, row, line, n_runs, n_hard, highest, start, i
            last = index
            if index > width:
                return TOO_WIDE, row, line, n_runs, n_hard, index, start, i
            value, end, exact = parse_number(text, i + 1)
            if end == i + 1 or (end < n and not _ends_token(text[end])):
                return BAD_VALUE, row, line, n_runs, n_hard, highest, i + 1, token_end(text, i + 1)
            rounded = np.float32(value)
            X[row, index - 1] = rounded
            # np.float32(float(text)) is certain if both ends of the error interval round to it
            if not exact and not (np.float32(value * (1 - 2e-15)) == rounded == np.float32(value * (1 + 2e-15))):
                if n_hard == len(hard):
                    return TOO_MANY_HARD, row, line, n_runs, n_hard, highest, start, end
                hard[n_hard, 0], hard[n_hard, 1], hard[n_hard, 2], hard[n_hard, 3] = row, index - 1, i + 1, end
                n_hard += 1
            elif np.isinf(rounded):
                return BAD_VALUE, row, line, n_runs, n_hard, highest, i + 1, end
            i = end
        highest = max(highest, last)
        row += 1
        i += 1
    return OK, row, line, n_runs, n_hard, highest, 0, 0


@kernel
def copy_tokens(text: Bytes, spans: Ints, rows: int, out: NDArray[np.uint32]) -> bool:
    """Write the ASCII text of every span into a row of ``out``, as numpy stores str; False if not ASCII."""
    for row in range(rows):
        start = spans[row, 0]
        for i in range(spans[row, 1] - start):
            if text[start + i] > 127:
                return False
            out[row, i] = text[start + i]
    return True
