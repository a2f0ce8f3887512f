"""What every scorer can do, and what numbers of a saved one must be."""

from __future__ import annotations

import math
from typing import Any, ClassVar, Protocol

from rankwright.data import Floats
from rankwright.errors import InputError


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

    def takes(self, n_features: int) -> bool:
        """Whether it can score documents with this many features."""
        ...

    def to_json(self) -> dict[str, Any]:
        """The scorer as JSON values, without its kind."""
        ...


def number(value: Any) -> float:
    """A number of a saved scorer."""
    if type(value) not in (int, float) or not math.isfinite(value):
        raise InputError(f"{value!r} in place of a weight; expected a finite number")
    return float(value)
