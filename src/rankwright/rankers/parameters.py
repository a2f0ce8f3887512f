"""What parameters of rankers may be."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

from rankwright.errors import InputError

_LARGEST = sys.float_info.max


def check_whole(name: str, value: Any, least: int) -> int:
    """A parameter that must be a whole number."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < least:
        raise InputError(f"{name}={value!r}; expected a whole number of at least {least}")
    return int(value)


def check_number(name: str, value: Any, least: float) -> float:
    """A parameter that must be a finite number."""
    value = value.item() if isinstance(value, np.generic) else value
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if not is_number or not abs(value) <= _LARGEST or value < least:
        huge = isinstance(value, int) and abs(value) > _LARGEST  # and too long to be told
        shown = "a number of hundreds of digits" if huge else repr(value)
        raise InputError(f"{name}={shown}; expected a finite number of at least {least:g}")
    return float(value)


def check_among(name: str, value: Any, known: Sequence[Any]) -> None:
    """A parameter that must be one of a few values."""
    plain_value = value.item() if isinstance(value, np.generic) else value
    if not any(type(plain_value) is type(each) and plain_value == each for each in known):
        raise InputError(f"{name}={value!r}; expected {' or '.join(map(repr, known))}")


def check_bins(value: Any) -> int | None:
    """The most bins of a feature; None for as many as there are values."""
    return None if value is None else check_whole("bins", value, least=2)
