"""Damage at random: to bytes, to words and to whole files."""

from __future__ import annotations

import gzip
import lzma
from collections.abc import Callable, Sequence
from random import Random

Change = Callable[[Random, bytes], bytes]

_BYTES = [
    b"\0",
    b"\t",
    b"\n",
    b"\r",
    b"\r\n",
    b"\v",
    b"\f",
    b"\x1b",
    b"\x1c",
    b"\x1f",
    b" ",
    b'"',
    b"#",
    b"'",
    b",",
    b"-",
]
_BYTES += [
    b".",
    b"0",
    b"1",
    b"9",
    b":",
    b";",
    b"=",
    b"[",
    b"\\",
    b"]",
    b"_",
    b"e",
    b"{",
    b"}",
    b"\x7f",
    b"\x80",
    b"\xff",
]
_BYTES += ["\x85\u00a0\u2003\u2028\u202e\u0663\uff11\u00bd\ufeff\U0001f600"[i].encode() for i in range(10)]
_BYTES += [b"\xc3", b"\xed\xa0\x80", b"\xf0\x9f", b"nan", b"inf", b"1e400", b"9" * 30]

NUMBERS = (
    *("0", "1", "-1", "+1", "2.5", ".5", "5.", "1e5", "1E-5", "00", "007", "-0", "0.1", "1e-45", "7e-46", "3.4e38"),
    *("16777217", "1.00000005960464477539", "0.500000029802322387695", "1" * 19, "9" * 40, "0." + "3" * 40, "1e-400"),
)
NO_NUMBERS = (
    *("", ".", "-", "+", "e5", "1e", "1e+", "--1", "+-1", "1_000", "1e5_0", "0x10", "1,5", "1.2.3", "nan", "-inf", "x"),
    *(
        "infinity",
        "1e400",
        "1e39",
        "9" * 400,
        "\u0663",
        "\uff11",
        "\u00bd",
        "1\u00a0",
        "\x1c1",
        "1\0",
        "1f",
        "1d5",
        "\u22121",
    ),
)
EXTREME = (
    *(0, 1, -1, 2, 127, 128, 255, 256, 2**15, 2**16, 2**31 - 1, 2**31, -(2**31) - 1, 2**32, 2**53, 2**53 + 1),
    *(2**63 - 1, 2**63, -(2**63) - 1, 10**30, 10**400),
)


def maybe(rng: Random, share: float) -> bool:
    """Return True in this share of cases."""
    return rng.random() < share


def number(rng: Random, bad: float) -> str:
    """Return the text of a number, or with the probability ``bad`` of what is none."""
    if maybe(rng, bad):
        return rng.choice(NO_NUMBERS)
    return rng.choice(NUMBERS) if maybe(rng, 0.3) else repr(round(rng.gauss(0, 3), rng.randrange(7)))


def mutate_bytes(rng: Random, data: bytes) -> bytes:
    """Change a few bytes, or pieces of them."""
    for _ in range(rng.choice((1, 1, 1, 2, 4))):
        data = rng.choice(_CHANGES)(rng, data)
    return data


def _flip(rng: Random, data: bytes) -> bytes:
    if not data:
        return data
    at = rng.randrange(len(data))
    return data[:at] + bytes([data[at] ^ (1 << rng.randrange(8))]) + data[at + 1 :]


def _insert(rng: Random, data: bytes) -> bytes:
    at = rng.randrange(len(data) + 1)
    return data[:at] + rng.choice(_BYTES) + data[at:]


def _overwrite(rng: Random, data: bytes) -> bytes:
    at, new = rng.randrange(len(data) + 1), rng.choice(_BYTES)
    return data[:at] + new + data[at + len(new) :]


def _cut_out(rng: Random, data: bytes) -> bytes:
    a, b = _span(rng, data)
    return data[:a] + data[b:]


def _repeat(rng: Random, data: bytes) -> bytes:
    a, b = _span(rng, data)
    return data[:b] + data[a:b] * rng.choice((1, 1, 2, 9)) + data[b:]


def _move(rng: Random, data: bytes) -> bytes:
    a, b = _span(rng, data)
    rest = data[:a] + data[b:]
    at = rng.randrange(len(rest) + 1)
    return rest[:at] + data[a:b] + rest[at:]


def _truncate(rng: Random, data: bytes) -> bytes:
    return data[: rng.randrange(len(data) + 1)]


def _swap_lines(rng: Random, data: bytes) -> bytes:
    lines = data.split(b"\n")
    i, j = rng.randrange(len(lines)), rng.randrange(len(lines))
    lines[i], lines[j] = lines[j], lines[i]
    return b"\n".join(lines)


def _swap_words(rng: Random, data: bytes) -> bytes:
    words = data.split(b" ")
    i, j = rng.randrange(len(words)), rng.randrange(len(words))
    words[i], words[j] = words[j], words[i]
    return b" ".join(words)


def _span(rng: Random, data: bytes) -> tuple[int, int]:
    a = rng.randrange(len(data) + 1)
    return a, min(a + rng.choice((1, 1, 2, 4, 8, 32, 128)), len(data))


_CHANGES: tuple[Change, ...] = (
    _flip,
    _insert,
    _overwrite,
    _cut_out,
    _repeat,
    _move,
    _truncate,
    _swap_lines,
    _swap_words,
)


def wrap_text(rng: Random, data: bytes) -> bytes:
    """Write text as another program might: with other line ends, in another encoding, or compressed."""
    if maybe(rng, 0.9):
        return data
    data = rng.choice(_WRITTEN)(data)
    return mutate_bytes(rng, data) if maybe(rng, 0.3) else data


def _recode(encoding: str) -> Callable[[bytes], bytes]:
    return lambda data: data.decode("latin-1").encode(encoding)


_WRITTEN: Sequence[Callable[[bytes], bytes]] = (
    lambda data: b"\xef\xbb\xbf" + data,
    lambda data: data.replace(b"\n", b"\r\n"),
    lambda data: data.replace(b"\n", b"\r"),
    lambda data: data.rstrip(b"\n"),
    lambda data: data + b"\n" * 40,
    _recode("utf-16"),
    _recode("utf-32-le"),
    lambda data: gzip.compress(data, 1, mtime=0),
    lambda data: gzip.compress(data, 1, mtime=0)[:-5],
    lambda data: gzip.compress(data, 1, mtime=0) * 2,
    lambda data: lzma.compress(data, preset=0),
    lambda data: lzma.compress(data, preset=0)[:-9],
)
