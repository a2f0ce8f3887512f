"""Parsing LETOR text: label, qid, features, comment, a document per line."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankwright.kernels.jit import Floats, Ints, count_trailing_zeros, inner_kernel, kernel, load_byte, load_word

Bytes = NDArray[np.uint8]

# The reasons why parse_block may stop; letor.py turns each into a sentence.
OK, BAD_LABEL, NO_QID, BAD_INDEX, ZERO_INDEX, ORDER, BAD_VALUE, TOO_WIDE, TOO_MANY_HARD, TOO_MANY_ROWS, BAD_BREAK = (
    range(11)
)

_POWERS = np.array([float(f"1e{e}") for e in range(309)])
_MOST_DIGITS = 18  # of a mantissa that fits an int64
_TOO_LARGE = 10**9
_LARGEST_EXPONENT = 10**15  # more than any text has digits
_EXACT = 1 << 53  # integers up to here, and powers of ten up to 22, are exact in float64
_TAB, _NEWLINE, _RETURN, _SPACE, _HASH, _PLUS, _MINUS, _POINT = 9, 10, 13, 32, 35, 43, 45, 46
_ZERO, _COLON, _EQUALS = 48, 58, 61
_TEN64, _EXACT64 = np.uint64(10), np.uint64(_EXACT)
_TENS = np.array([10**e for e in range(9)], dtype=np.uint64)
_ZEROS, _NEWLINES, _RETURNS, _ABOVE_NINE, _HIGH_BITS, _LOWEST_BITS, _LOW, _WEIGHT_LOW, _WEIGHT_HIGH = (
    np.uint64(word)
    for word in (
        0x3030303030303030,
        0x0A0A0A0A0A0A0A0A,
        0x0D0D0D0D0D0D0D0D,
        0x7676767676767676,
        0x8080808080808080,
        0x0101010101010101,
        0x000000FF000000FF,
        0x000F424000000064,
        0x0000271000000001,
    )
)
PADDING = 8  # newlines after the text, so that whole words can be read
_QID = np.frombuffer(b"qid:", dtype=np.uint8)
_DOCID = np.frombuffer(b"docid", dtype=np.uint8)


@kernel
def count_newlines(text: Bytes) -> int:
    """Return the number of newlines in a text, given as an array of bytes."""
    count = 0
    for i in range(len(text)):
        count += text[i] == _NEWLINE
    return count


@inner_kernel
def _ends_token(c: int) -> bool:
    """Return whether a character ends a token: a blank, a tab, a line end or the # of a comment."""
    return c == _SPACE or c == _NEWLINE or c == _TAB or c == _RETURN or c == _HASH


@inner_kernel
def _skip_blanks(text: Bytes, i: int) -> int:
    """Return the index of the first character from ``i`` on that is neither a blank nor a tab."""
    while load_byte(text, i) == _SPACE or load_byte(text, i) == _TAB:
        i += 1
    return i


@inner_kernel
def _find_comment_end(text: Bytes, i: int) -> int:
    """Return the index at which the comment at ``i`` ends: of a newline, or of a carriage return inside the line.

    A byte of a word is 0 where the word less its lowest bits borrows into its highest bit.
    """
    while True:
        feeds, returns = load_word(text, i) ^ _NEWLINES, load_word(text, i) ^ _RETURNS
        zero = (((feeds - _LOWEST_BITS) & ~feeds) | ((returns - _LOWEST_BITS) & ~returns)) & _HIGH_BITS
        if zero == np.uint64(0):
            i += 8
            continue
        i += int(count_trailing_zeros(zero) >> 3)
        end = i
        while load_byte(text, end) == _RETURN:
            end += 1
        return end if load_byte(text, end) == _NEWLINE else i


@inner_kernel
def _find_token_end(text: Bytes, i: int) -> int:
    """Return the index at which the token at ``i`` ends."""
    while not _ends_token(load_byte(text, i)):
        i += 1
    return i


@inner_kernel
def _parse_eight_digits(text: Bytes, i: int) -> tuple[Any, int]:
    """Return the number written at ``i`` in at most eight digits, and how many digits it has, without a branch.

    Eight bytes are one word: '0' is subtracted from each, the first byte that is no digit is found by its high bit, the
    rest is shifted out, and neighbouring digits, pairs and fours are added up.
    """
    word = load_word(text, i) ^ _ZEROS
    other = ((word + _ABOVE_NINE) | word) & _HIGH_BITS
    count: int = count_trailing_zeros(other) >> 3
    word = (word << np.uint64(8)) << np.uint64(56 - 8 * count) if count < 8 else word
    word = word * _TEN64 + (word >> np.uint64(8))
    fours = (word & _LOW) * _WEIGHT_LOW + ((word >> np.uint64(16)) & _LOW) * _WEIGHT_HIGH
    return fours >> np.uint64(32) if count > 0 else np.uint64(0), count


@inner_kernel
def _parse_hard_number(text: Bytes, i: int) -> tuple[float, int, bool]:
    """Parse a number as ``_parse_number`` does, if it has an exponent or more digits than an int64 holds."""
    start, negative = i, load_byte(text, i) == _MINUS
    if load_byte(text, i) == _MINUS or load_byte(text, i) == _PLUS:
        i += 1
    mantissa, digits, power, seen, after_point = 0, 0, 0, False, False
    while True:
        c = load_byte(text, i) - _ZERO
        if 0 <= c <= 9:
            seen = True
            if digits < _MOST_DIGITS:
                mantissa = mantissa * 10 + c
                power -= after_point
            else:
                power += not after_point
            digits += mantissa > 0
        elif load_byte(text, i) == _POINT and not after_point:
            after_point = True
        else:
            break
        i += 1
    if not seen:
        return 0.0, start, True
    if load_byte(text, i) == 101 or load_byte(text, i) == 69:  # e, E
        i += 1
        sign, exponent = (-1 if load_byte(text, i) == _MINUS else 1), 0
        if load_byte(text, i) == _MINUS or load_byte(text, i) == _PLUS:
            i += 1
        first = i
        while _ZERO <= load_byte(text, i) < _COLON:
            exponent = min(exponent * 10 + load_byte(text, i) - _ZERO, _LARGEST_EXPONENT)
            i += 1
        if i == first:
            return 0.0, start, True
        power += sign * exponent
    value = float(mantissa)
    exact = mantissa == 0 or (digits <= _MOST_DIGITS and mantissa <= _EXACT and -22 <= power <= 22)
    if mantissa > 0:
        if power < -290 or power > 290:
            return np.nan, i, False
        value = value / _POWERS[-power] if power < 0 else value * _POWERS[power]
    return (-value if negative else value), i, exact


@inner_kernel
def _parse_number(text: Bytes, i: int) -> tuple[float, int, bool]:
    """Return the decimal number at ``i``, where it ends (``i`` if there is no number), and whether it is exact.

    Exact means correctly rounded: the mantissa is at most 2^53 and the power of ten at most 22 (Clinger's fast
    path). Otherwise the relative error is below 2^-50, or the value is NaN where it may overflow.
    """
    start, negative = i, load_byte(text, i) == _MINUS
    i += negative | (load_byte(text, i) == _PLUS)
    mantissa, digits = _parse_eight_digits(text, i)
    i += digits
    decimals = 0
    if load_byte(text, i) == _POINT:
        i += 1
        fraction, decimals = _parse_eight_digits(text, i)
        mantissa = mantissa * _TENS[decimals] + fraction
        i += decimals
        if decimals == 8:
            fraction, more = _parse_eight_digits(text, i)
            mantissa = mantissa * _TENS[more] + fraction
            i += more
            decimals += more
        digits += decimals
    if digits > _MOST_DIGITS or not _ends_token(load_byte(text, i)):
        return _parse_hard_number(text, start)
    if digits == 0:
        return 0.0, start, True
    value = float(np.int64(mantissa)) / _POWERS[decimals]
    return (-value if negative else value), i, bool(mantissa <= _EXACT64)


@inner_kernel
def _have_same_bytes(text: Bytes, a: int, b: int, length: int) -> bool:
    """Return whether the ``length`` bytes of a text from ``a`` on are those from ``b`` on."""
    for i in range(length):
        if load_byte(text, a + i) != load_byte(text, b + i):
            return False
    return True


@inner_kernel
def _has_word_at(text: Bytes, i: int, word: Bytes) -> bool:
    """Return whether a text has this word at index ``i``."""
    for j in range(len(word)):
        if load_byte(text, i + j) != word[j]:  # the newline at the end stops it
            return False
    return True


@inner_kernel
def _find_docid(text: Bytes, i: int) -> tuple[int, int]:
    """Return the start and end of the document id in the comment at ``i``: after 'docid =', or the first word."""
    i = _skip_blanks(text, i + 1)
    if _has_word_at(text, i, _DOCID):
        j = _skip_blanks(text, i + len(_DOCID))
        if load_byte(text, j) == _EQUALS:
            i = _skip_blanks(text, j + 1)
    start = i
    while (
        load_byte(text, i) != _SPACE
        and load_byte(text, i) != _TAB
        and load_byte(text, i) != _NEWLINE
        and load_byte(text, i) != _RETURN
    ):
        i += 1
    return start, i


@inner_kernel
def _find_nan_end(text: Bytes, i: int) -> int:
    """Return the index at which the word nan, in any case, ends at ``i``; ``i`` itself if another word is there."""
    if load_byte(text, i) | 32 != 110 or load_byte(text, i + 1) | 32 != 97 or load_byte(text, i + 2) | 32 != 110:
        return i
    return i + 3 if _ends_token(load_byte(text, i + 3)) else i


@kernel
def parse_block(
    text: Bytes, X: Floats, y: Floats, runs: Ints, docs: Ints, hard: Ints, most: int, lowest: int
) -> tuple[int, int, int, int, int, int, int, int, int]:
    """Parse lines of LETOR text into features ``X``, all 0 at first, and grades ``y``; return how far it came.

    The text ends with a whole line and ``PADDING`` newlines more. Indices count from ``lowest``: 1 is LETOR's; with 0
    the lines have no query ids, as LightGBM and XGBoost write them, and are one run.
    ``runs`` gets (row, start, end) of the qid of every run of rows with one qid, ``docs`` the (start, end) of every
    row's document id, ``hard`` (row, column or -1 for the label, start, end) of the numbers whose rounding to float32
    (for labels: float64) is in doubt. Indices above the width of ``X`` are checked but not stored, those above
    ``most`` features are an error. Returns (status, rows, lines, runs, hard numbers, number of features, the first line
    with the last one, start, end): the last two are the text that ``status`` complains about.
    """
    n, width = len(text) - PADDING, X.shape[1]
    i, row, line, n_runs, n_hard, highest, widest = 0, 0, 0, 0, 0, 0, 0
    qid_start, qid_end = 0, -1
    while i < n:
        line += 1
        i = _skip_blanks(text, i)
        while load_byte(text, i) == _RETURN:
            i = _skip_blanks(text, i + 1)
        if load_byte(text, i) == _NEWLINE or load_byte(text, i) == _HASH:
            i = _find_comment_end(text, i)
            if load_byte(text, i) != _NEWLINE:
                return BAD_BREAK, row, line, n_runs, n_hard, highest, widest, i, i
            i += 1
            continue
        if row == len(y):  # the text is not the one whose lines were counted
            return TOO_MANY_ROWS, row, line, n_runs, n_hard, highest, widest, i, i
        value, end, exact = _parse_number(text, i)
        if end == i or not _ends_token(load_byte(text, end)):
            return BAD_LABEL, row, line, n_runs, n_hard, highest, widest, i, _find_token_end(text, i)
        if not exact:
            if n_hard == len(hard):
                return TOO_MANY_HARD, row, line, n_runs, n_hard, highest, widest, i, end
            hard[n_hard, 0], hard[n_hard, 1], hard[n_hard, 2], hard[n_hard, 3] = row, -1, i, end
            n_hard += 1
        y[row] = value
        i = _skip_blanks(text, end)
        while load_byte(text, i) == _RETURN:
            i = _skip_blanks(text, i + 1)
        start = i
        if lowest == 1:
            start += len(_QID)
            if not _has_word_at(text, i, _QID) or _ends_token(load_byte(text, start)):
                return NO_QID, row, line, n_runs, n_hard, highest, widest, i, _find_token_end(text, i)
            i = _find_token_end(text, start)
        if i - start != qid_end - qid_start or not _have_same_bytes(text, start, qid_start, i - start):
            runs[n_runs, 0], runs[n_runs, 1], runs[n_runs, 2] = row, start, i
            n_runs += 1
        qid_start, qid_end = start, i
        last = lowest - 1
        docs[row, 0] = docs[row, 1] = 0
        while True:
            i = _skip_blanks(text, i)
            start = i
            digits, count = _parse_eight_digits(text, i)
            index: Any = np.int64(digits)
            i += count
            while _ZERO <= load_byte(text, i) < _COLON:  # more than eight digits are too many whatever they are
                index = _TOO_LARGE
                i += 1
            if i == start:
                if load_byte(text, i) == _NEWLINE:
                    break
                if load_byte(text, i) == _HASH:
                    docs[row, 0], docs[row, 1] = _find_docid(text, i)
                    i = _find_comment_end(text, i)
                    if load_byte(text, i) != _NEWLINE:
                        return BAD_BREAK, row, line, n_runs, n_hard, highest, widest, i, i
                    break
                if load_byte(text, i) == _RETURN:
                    i += 1
                    continue
            if i == start or load_byte(text, i) != _COLON:
                return BAD_INDEX, row, line, n_runs, n_hard, highest, widest, start, _find_token_end(text, start)
            if index <= last:
                status = ZERO_INDEX if index < lowest else ORDER
                return status, row, line, n_runs, n_hard, highest, widest, start, i
            last = index
            if index - lowest >= most:
                return TOO_WIDE, row, line, n_runs, n_hard, index, line, start, i
            i += 1
            value, end, exact = _parse_number(text, i)
            if end == i:
                end = _find_nan_end(text, i)
                value = np.nan if end > i else value
            if end == i or not _ends_token(load_byte(text, end)):
                return BAD_VALUE, row, line, n_runs, n_hard, highest, widest, i, _find_token_end(text, i)
            rounded = np.float32(value)
            if index - lowest < width:  # else the caller sees the highest index and tries again with a wider X
                X[row, index - lowest] = rounded
            if not exact:
                # np.float32(float(text)) is certain if both ends of the error interval round to it
                low, high = np.float32(value * (1 - 2e-15)), np.float32(value * (1 + 2e-15))
                if not (low == rounded and high == rounded):
                    if n_hard == len(hard):
                        return TOO_MANY_HARD, row, line, n_runs, n_hard, highest, widest, start, end
                    hard[n_hard, 0], hard[n_hard, 1], hard[n_hard, 2], hard[n_hard, 3] = (
                        row,
                        index - lowest,
                        i,
                        end,
                    )
                    n_hard += 1
                    rounded = np.float32(0)
            if np.isinf(rounded):
                return BAD_VALUE, row, line, n_runs, n_hard, highest, widest, i, end
            i = end
        if last - lowest + 1 > highest:
            highest, widest = last - lowest + 1, line
        row += 1
        i += 1
    return OK, row, line, n_runs, n_hard, highest, widest, 0, 0


@kernel
def copy_tokens(text: Bytes, spans: Ints, rows: int, out: NDArray[np.uint32]) -> bool:
    """Copy each span of a text to a row of ``out``, as numpy stores str; return False if it cannot be copied.

    That is so if a span is not ASCII, or holds a NUL.
    """
    for row in range(rows):
        start = spans[row, 0]
        for i in range(spans[row, 1] - start):
            if text[start + i] > 127 or text[start + i] == 0:
                return False
            out[row, i] = text[start + i]
    return True
