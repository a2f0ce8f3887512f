"""Notation of the report: numbers, p-values and parameters as text, and values of a page as JSON."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from math import isfinite, isinf, isnan
from typing import Any

from rankwright.basics.errors import InputError, quote

MISSING = "\N{EN DASH}"
DIGITS = 4  # of a measure, behind the point


def format_number(value: float, digits: int = DIGITS) -> str:
    """Return a number as text with ``digits`` decimals, or a dash if it is NaN.

    >>> format_number(0.12345), format_number(float("nan")), format_number(float("-inf"))
    ('0.1235', '–', '-∞')
    """
    if isnan(value):
        return MISSING
    if isinf(value):
        return "∞" if value > 0 else "-∞"
    return f"{value:.{digits}f}"


def format_signed(value: float, digits: int = DIGITS) -> str:
    """Return a number as text with its sign, + or -; a number that rounds to zero has no sign.

    >>> format_signed(0.25, 2), format_signed(-0.25, 2), format_signed(-0.001, 2)
    ('+0.25', '-0.25', '0.00')
    """
    if not isfinite(value):
        return format_number(value)
    text = f"{value:+.{digits}f}"
    return text[1:] if float(text) == 0 else text


def format_interval(low: float, high: float, digits: int = DIGITS) -> str:
    """Return an interval as text, such as [0.10, 0.25], or a dash if an end is NaN.

    >>> format_interval(0.1, 0.25, 2), format_interval(float("nan"), float("nan"))
    ('[0.10, 0.25]', '–')
    """
    return MISSING if isnan(low) or isnan(high) else f"[{format_number(low, digits)}, {format_number(high, digits)}]"


def format_p(p: float) -> str:
    """Return a p-value as text: three decimals, four near 0.05, or "<0.001".

    >>> format_p(0.0214), format_p(0.0497), format_p(0.00002), format_p(0.9999), format_p(float("nan"))
    ('0.021', '0.0497', '<0.001', '1.000', '–')
    """
    return "<0.001" if p < 0.001 else format_number(p, 4 if 0.0495 <= p < 0.0505 else 3)


def format_p_equals(p: float) -> str:
    """Return a p-value as text for a sentence, such as "p = 0.021" or "p < 0.001".

    >>> format_p_equals(0.0214), format_p_equals(0.00002)
    ('p = 0.021', 'p < 0.001')
    """
    return f"p {format_p(p).replace('<', '< ')}" if p < 0.001 else f"p = {format_p(p)}"


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
