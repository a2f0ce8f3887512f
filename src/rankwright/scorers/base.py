"""The base class of every scorer, and checks of the numbers of a saved one."""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from rankwright.basics.array_types import Floats
from rankwright.basics.errors import InputError, quote

if TYPE_CHECKING:
    from rankwright.scorers.linear import Linear
    from rankwright.scorers.stump_sum import Steps
    from rankwright.scorers.tree_sum import Trees


class Scorer(ABC):
    """A function from the features of documents to scores; a larger score is ranked earlier."""

    __slots__ = ()
    kind: ClassVar[str]  # in a saved model

    @property
    def allow_nan(self) -> bool:
        """Whether it can score documents with missing features."""
        return False

    @property
    def linear(self) -> Linear | None:
        """The equal scorer that has a weight for each feature, or None."""
        return None

    @property
    def steps(self) -> Steps | None:
        """The step function of each feature if the score is a sum of them, else None."""
        return None

    @property
    def trees(self) -> Trees | None:
        """The equal scorer that is a sum of trees, or None."""
        return None

    def slice_terms(self, start: int, stop: int) -> Scorer | None:
        """Return the sum of the terms ``start`` to ``stop``, in the order of training; None if it is no such sum."""
        return None

    @property
    def categorical(self) -> frozenset[int]:
        """The features that a tree splits by category."""
        return frozenset()

    @abstractmethod
    def __call__(self, X: Floats) -> Floats:
        """Return a float64 score for each row, which depends on that row alone."""

    @abstractmethod
    def accepts(self, n_features: int) -> bool:
        """Return whether it can score documents with this many features."""

    @abstractmethod
    def to_json(self) -> dict[str, Any]:
        """Return the scorer as JSON values, without its kind."""


def parse_number(value: Any) -> float:
    """Return a saved scorer's number as a float; raise InputError if it is not a finite number."""
    if type(value) not in (int, float) or not abs(value) <= sys.float_info.max:
        raise InputError(f"{quote(value)} in place of a weight; expected a finite number")
    return float(value)


def parse_numbers(values: Any) -> Floats:
    """Return a saved scorer's list of numbers as an array; raise InputError if it is not such a list."""
    return np.array([parse_number(value) for value in check_list(values)], dtype=np.float64)


def check_list(values: Any) -> list[Any]:
    """Return the value if it is a list; raise InputError for anything else, even an empty text."""
    if type(values) is not list:
        raise InputError(f"{quote(values)} in place of a list of numbers")
    return values
