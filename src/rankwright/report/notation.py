"""Notation of the report: numbers, p-values and parameters as text, and values of a page as JSON."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from math import isfinite
from typing import Any

from rankwright.basics.errors import InputError, quote


def format_count(value: int, noun: str) -> str:
    """Return a number of things as text, such as "1 fold" or "2 queries".

    >>> format_count(1, "fold"), format_count(1200, "method"), format_count(2, "query")
    ('1 fold', '1,200 methods', '2 queries')
    """
    plural = noun if value == 1 else f"{noun.removesuffix('y')}ies" if noun.endswith("y") else f"{noun}s"
    return f"{value:,} {plural}"


def format_parameters(text: str) -> str:
    """Return the parameters of a trial, given as JSON, as text such as "alpha=0.1, scale=query".

    >>> format_parameters('{"alpha": 0.1, "scale": "query"}'), format_parameters("{}")
    ('alpha=0.1, scale=query', 'as by default')
    """
    values = json.loads(text)
    shown = (f"{name}={value if isinstance(value, str) else json.dumps(value)}" for name, value in values.items())
    return ", ".join(shown) or "as by default"


Json = dict[str, Any]
Value = float | int | str | None

_DIGITS = 7  # significant digits of a number on the page


def to_plain(value: Any) -> Any:
    """Convert a value for JSON: arrays to lists, numbers to seven digits, NaN and infinity to ``None``.

    >>> import numpy as np
    >>> to_plain({"x": np.array([1.0, np.nan]), "y": (1 / 3, np.int64(2), True, "a")})
    {'x': [1, None], 'y': [0.3333333, 2, True, 'a']}
    """
    if hasattr(value, "tolist"):
        value = value.tolist()
    if value is None or isinstance(value, str | bool | int):
        return value
    if isinstance(value, float):
        return _round_number(value)
    if isinstance(value, Mapping):
        return {str(key): to_plain(item) for key, item in value.items()}
    if isinstance(value, Iterable):
        return [to_plain(item) for item in value]
    raise InputError(f"{quote(value)} on a page; expected numbers, text, lists or mappings")


def _round_number(value: float) -> float | int | None:
    """Round a number to seven digits for JSON; return None if it is NaN or infinite."""
    if not isfinite(value):
        return None
    rounded = float(f"{value:.{_DIGITS}g}")
    return int(rounded) if rounded.is_integer() and abs(rounded) < 1e15 else rounded


def drop_none(**entries: Any) -> Json:
    """Return a dictionary of the arguments that are not None."""
    return {key: value for key, value in entries.items() if value is not None}


def check_names(names: Sequence[str], what: str) -> None:
    """Raise InputError if there are no names, or if a name appears twice."""
    if not names:
        raise InputError(f"no {what}; expected at least one")
    name, count = Counter(names).most_common(1)[0]
    if count > 1:
        raise InputError(f"{what} {quote(name)} appears {count} times; expected different names")
