"""JSON files: one value, or JSON lines, read a value at a time."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, NoReturn

from rankwright.basics.errors import InputError, quote
from rankwright.basics.files import StrPath, open_binary, skip_byte_order_mark


def read_json_values(path: StrPath) -> Iterator[tuple[int, Any]]:
    """Yield the values of a JSON file and the lines where they begin: a value per line, or one for the whole file.

    If the first line is a value of its own the file is read line by line, and no more than a line of it is in memory.
    """
    with open_binary(path) as file:
        lines = enumerate(file, 1)
        number, first = next(((n, line) for n, line in lines if skip_byte_order_mark(line).strip()), (1, b""))
        if not first:
            raise InputError(f"{path}: empty; expected JSON")
        first = skip_byte_order_mark(first) if number == 1 else first
        try:
            value = _parse(first)
        except ValueError:  # a value that goes on in the next lines
            yield number, _parse_or_raise(path, number, first + file.read())
            return
        yield number, value
        for number, line in lines:
            if line.strip():
                yield number, _parse_or_raise(path, number, line)


def _parse(text: bytes) -> Any:
    """Return the value of JSON text; raise ValueError if it is not JSON, not UTF-8 or too deep."""
    try:
        return json.loads(text.decode("utf-8").rstrip())
    except RecursionError:
        raise ValueError("nested too deeply") from None


def _parse_or_raise(path: StrPath, line: int, text: bytes) -> Any:
    """Return the value of JSON text that begins at a line; raise InputError with the place of what is wrong."""
    try:
        return _parse(text)
    except json.JSONDecodeError as error:
        _raise_not_json(path, line + error.lineno - 1, f"{error.msg} at column {error.colno}")
    except UnicodeDecodeError as error:
        line += text.count(b"\n", 0, error.start)
        raise InputError(f"{path}:{line}: not UTF-8; convert the file to UTF-8") from None
    except ValueError as error:
        _raise_not_json(path, line, str(error))


def _raise_not_json(path: StrPath, line: int, problem: str) -> NoReturn:
    """Raise InputError for text that is not JSON."""
    raise InputError(f"{path}:{line}: not JSON: {problem}; expected one value, or one on each line") from None


def describe_json(value: Any) -> str:
    """Return a short description of a JSON value for an error message.

    >>> describe_json({"took": 1, "hits": []}), describe_json([1, 2]), describe_json("x")
    ("an object with 'took, hits'", 'a list of 2', "'x'")
    """
    if isinstance(value, Mapping):
        return f"an object with {quote(', '.join(map(str, value)))}" if value else "an empty object"
    return f"a list of {len(value)}" if isinstance(value, list) else quote(value)
