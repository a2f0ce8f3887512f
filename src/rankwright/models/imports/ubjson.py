"""UBJSON, the binary JSON that XGBoost writes: a strict reader of what such files hold."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np

from rankwright.basics.errors import InputError

_INTEGERS = {b"i": ">i1", b"U": ">u1", b"I": ">i2", b"l": ">i4", b"L": ">i8"}
_TYPES = {**_INTEGERS, b"d": ">f4", b"D": ">f8"}
_CONSTANTS = {b"T": True, b"F": False, b"Z": None}
_MAX_DEPTH = 64  # of lists and objects inside each other


class _Damage(Exception):
    """The error of a file that is not UBJSON."""


def parse_ubjson(data: bytes, library: str) -> dict[str, Any]:
    """Return the object in a UBJSON file; lists of numbers of one type are arrays. Raise InputError if it is damaged.

    >>> parse_ubjson(b"{U" + bytes([1]) + b"aT}", "XGBoost")
    {'a': True}
    """
    reader = _Reader(data)
    try:
        found = reader.read_value(reader.take(1), 0)
    except (_Damage, struct.error, UnicodeDecodeError):
        found = None
    if not isinstance(found, dict) or data[reader.at :].strip(b"\x00N"):
        raise InputError(f"a damaged {library} model: not whole UBJSON near byte {reader.at}; save it again as JSON")
    return found


class _Reader:
    """A reader of UBJSON values, one after another."""

    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0

    def take(self, n: int) -> bytes:
        """Return the next bytes; raise if there are fewer."""
        if not 0 <= n <= len(self.data) - self.at:
            raise _Damage
        self.at += n
        return self.data[self.at - n : self.at]

    def read_value(self, mark: bytes, depth: int) -> Any:
        """Return the value that follows a mark of its type."""
        if depth > _MAX_DEPTH:
            raise _Damage
        if mark in _TYPES:
            return self.read_numbers(mark, 1)[0].item()
        if mark in _CONSTANTS:
            return _CONSTANTS[mark]
        if mark == b"S":
            return self.take(self.read_length()).decode("utf-8")
        if mark == b"C":
            return self.take(1).decode("ascii")
        if mark == b"[":
            return self.read_list(depth)
        if mark == b"{":
            return self.read_object(depth)
        raise _Damage

    def read_length(self) -> int:
        """Return a length: a whole number that is 0 or more."""
        mark = self.take(1)
        if mark not in _INTEGERS:
            raise _Damage
        return int(self.read_numbers(mark, 1)[0])

    def read_numbers(self, mark: bytes, n: int) -> Any:
        """Return numbers of one type as an array."""
        kind = np.dtype(_TYPES[mark])
        return np.frombuffer(self.take(n * kind.itemsize), kind).astype(kind.newbyteorder("="))

    def read_list(self, depth: int) -> Any:
        """Return a list; an array where the type of its numbers is declared."""
        mark = self.take(1)
        if mark == b"$":
            kind = self.take(1)
            if kind not in _TYPES or self.take(1) != b"#":
                raise _Damage
            return self.read_numbers(kind, self.read_length())
        if mark == b"#":
            return [self.read_value(self.take(1), depth + 1) for _ in range(self.read_length())]
        found = []
        while mark != b"]":
            found.append(self.read_value(mark, depth + 1))
            mark = self.take(1)
        return found

    def read_object(self, depth: int) -> dict[str, Any]:
        """Return an object whose names are texts with their lengths."""
        found: dict[str, Any] = {}
        while self.data[self.at : self.at + 1] != b"}":
            name = self.take(self.read_length()).decode("utf-8")
            if name in found:
                raise _Damage
            found[name] = self.read_value(self.take(1), depth + 1)
        self.at += 1
        return found
