"""Scorers of raw features: a weighted sum of all, or one of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from rankwright.basics.array_types import Floats
from rankwright.basics.errors import InputError, quote
from rankwright.kernels.scorers.linear_scores import compute_linear_scores
from rankwright.scorers.base import Scorer, parse_number, parse_numbers


@dataclass(frozen=True, slots=True, eq=False)
class Linear(Scorer):
    """A scorer that is a weighted sum of raw features, plus an intercept.

    >>> Linear(np.array([2.0, -1.0]), 0.5)(np.array([[1.0, 3.0]], dtype=np.float32)).tolist()
    [-0.5]
    """

    kind: ClassVar[str] = "linear"
    coef: Floats
    intercept: float = 0.0

    @property
    def linear(self) -> Linear:
        """The scorer itself: it has a weight for each feature."""
        return self

    def __call__(self, X: Floats) -> Floats:
        """Return the weighted sums."""
        if not self.accepts(X.shape[1]):
            raise InputError(f"{X.shape[1]} features; there are {len(self.coef)} weights")
        return compute_linear_scores(X, self.coef, self.intercept)

    def accepts(self, n_features: int) -> bool:
        """Return whether there is a weight for each feature."""
        return len(self.coef) == n_features

    def to_json(self) -> dict[str, Any]:
        """Return weights and intercept."""
        return {"coef": self.coef.tolist(), "intercept": self.intercept}

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> Linear:
        """Read what ``to_json`` wrote."""
        return cls(parse_numbers(values["coef"]), parse_number(values["intercept"]))


@dataclass(frozen=True, slots=True)
class Feature(Scorer):
    """A scorer that is the value of one feature, or its negative.

    >>> Feature(1, -1)(np.array([[1.0, 3.0]], dtype=np.float32)).tolist()
    [-3.0]
    """

    kind: ClassVar[str] = "feature"
    index: int
    sign: int = 1

    def __call__(self, X: Floats) -> Floats:
        """Return the values of the feature times the sign."""
        return self.sign * X[:, self.index].astype(np.float64)

    def accepts(self, n_features: int) -> bool:
        """Return whether there is such a feature."""
        return 0 <= self.index < n_features

    def to_json(self) -> dict[str, Any]:
        """Return index and sign."""
        return {"index": self.index, "sign": self.sign}

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> Feature:
        """Read what ``to_json`` wrote."""
        index, sign = values["index"], values["sign"]
        if type(index) is not int or type(sign) is not int or sign not in (1, -1):
            raise InputError(f"index {quote(index)} with sign {quote(sign)}; expected a column, from 0, and 1 or -1")
        return cls(index, int(sign))
