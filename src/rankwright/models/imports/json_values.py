"""Values of other libraries' JSON model files: parsed and taken out with checks, so that damage is one line."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np

from rankwright.basics.errors import InputError, quote

_KINDS = {dict: "an object", list: "a list", str: "a text", int: "a whole number"}


def parse_object(data: bytes, library: str) -> dict[str, Any]:
    """Return the object in a JSON text; raise InputError if it is damaged."""
    try:
        found = json.loads(data.decode("utf-8"))
    except json.JSONDecodeError as error:
        raise InputError(f"not a whole {library} model: {error.msg} in line {error.lineno}; save it again") from None
    except UnicodeDecodeError:
        raise InputError(f"a {library} model that is not UTF-8; save it again") from None
    except (RecursionError, ValueError):  # a ValueError: a whole number with thousands of digits
        raise InputError(f"a damaged {library} model: its JSON cannot be read; save it again") from None
    if not isinstance(found, dict):
        raise InputError(f"a damaged {library} model: {quote(found)}; expected an object")
    return found


def get_value(values: Mapping[str, Any], name: str, kind: type) -> Any:
    """Return a value of an object of JSON by its name; raise InputError unless it is there and of this kind."""
    if name not in values:
        raise InputError(f"a damaged model: {name} is missing")
    if type(values[name]) is not kind:
        raise InputError(f"a damaged model: {name} is {quote(values[name])}; expected {_KINDS[kind]}")
    return values[name]


def get_integer(values: Mapping[str, Any], name: str, default: int | None = None) -> int:
    """Return a whole number that is 0 or more, which may be written as a text."""
    if default is not None and name not in values:
        return default
    found = values.get(name)
    text = found if isinstance(found, str) else str(found)
    if isinstance(found, bool) or not (text.isascii() and text.isdecimal() and len(text) < 12):
        raise InputError(f"a damaged model: {name} is {quote(found)}; expected a whole number")
    return int(text)


def get_numbers(values: Mapping[str, Any], name: str, kind: type[np.generic], n: int | None = None) -> Any:
    """Return a list of numbers as an array of this type; raise InputError unless there are ``n`` of them.

    An array, as binary files have them, is taken as it is.
    """
    found = values.get(name)
    is_whole = np.issubdtype(kind, np.integer)
    if isinstance(found, list):
        found = _make_array(found, is_whole)
    if not isinstance(found, np.ndarray) or (is_whole and found.dtype.kind not in "iu"):
        what = "whole numbers" if is_whole else "numbers"
        raise InputError(f"a damaged model: {name} is {quote(values.get(name))}; expected a list of {what}")
    if n is not None and len(found) != n:
        raise InputError(f"a damaged model: {len(found)} numbers as {name}; expected {n}")
    with np.errstate(over="ignore"):
        return found.astype(kind)


def _make_array(found: list[Any], is_whole: bool) -> Any:
    """Return numbers of JSON as an array; None if something else is among them."""
    if not set(map(type, found)) <= ({int, bool} if is_whole else {int, float}):
        return None
    try:
        return np.array(found, dtype=np.int64 if is_whole else np.float64)
    except OverflowError:
        return None


def check_finite(numbers: Any, name: str) -> None:
    """Raise InputError if one of these numbers is not finite."""
    if not np.isfinite(numbers).all():
        raise InputError(f"a damaged model: {name} has a number that is not finite")
