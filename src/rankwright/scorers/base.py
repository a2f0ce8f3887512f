"""What every scorer can do, and what numbers of a saved one must be."""

from __future__ import annotations

import sys
from typing import Any, ClassVar, Protocol

import numpy as np

from rankwright.basics.array_types import Floats
from rankwright.basics.errors import InputError, quote


class Scorer(Protocol):
    """Scores documents from their features; larger is ranked earlier."""

    kind: ClassVar[str]

    @property
    def allow_nan(self) -> bool:
        """Whether it can score documents that lack features."""
        ...

    def __call__(self, X: Floats) -> Floats:
        """A float64 score per row, which depends on that row alone."""
        ...

    def accepts(self, n_features: int) -> bool:
        """Whether it can score documents with this many features."""
        ...

    def to_json(self) -> dict[str, Any]:
        """The scorer as JSON values, without its kind."""
        ...


def number(value: Any) -> float:
    """Return a number of a saved scorer, or raise if it is none."""
    if type(value) not in (int, float) or not abs(value) <= sys.float_info.max:
        raise InputError(f"{quote(value)} in place of a weight; expected a finite number")
    return float(value)


def numbers(values: Any) -> Floats:
    """Return a list of numbers of a saved scorer, or raise if it is none."""
    return np.array([number(value) for value in as_list(values)], dtype=np.float64)


def as_list(values: Any) -> list[Any]:
    """Return a list; an empty text or object would pass for an empty one."""
    if type(values) is not list:
        raise InputError(f"{quote(values)} in place of a list of numbers")
    return values
