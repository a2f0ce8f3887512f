"""Feature numbers: texts count features from 1, as LETOR does; Python counts columns from 0.

The command line, specs, saved models and reports name a feature by its name or its number. Rankers in Python take its
name or its column. What crosses that border is converted here, and nowhere else.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from rankwright.basics.errors import InputError, quote

# Parameters that hold a column, and those that hold lists of lists of columns.
COLUMN_PARAMETERS = ("feature",)
COLUMN_LISTS = ("interaction_constraints",)
_NESTED = ("lightgbm_params",)


class _NumberedNames(Sequence[str]):
    """A sequence of the names of features that have no names: "1", "2", ..., each made when it is asked for."""

    def __init__(self, n: int) -> None:
        self._numbers = range(1, n + 1)

    def __len__(self) -> int:
        return len(self._numbers)

    def __getitem__(self, index: Any) -> Any:
        found = self._numbers[index]
        return list(map(str, found)) if isinstance(found, range) else str(found)


def name_features(features: Sequence[str] | None, n_features: int) -> Sequence[str]:
    """Return the given names of features or, if there are none, their numbers from 1 as texts.

    >>> list(name_features(None, 3))
    ['1', '2', '3']
    """
    return _NumberedNames(n_features) if features is None else features


def check_feature(feature: Any, parameter: str) -> None:
    """Raise InputError if a parameter's value is neither a feature's name nor its column."""
    is_column = isinstance(feature, (int, np.integer)) and not isinstance(feature, bool) and feature >= 0
    if not isinstance(feature, str) and not is_column:
        expected = "the name of a feature, or its number (in Python its column, from 0)"
        raise InputError(f"{parameter}={quote(feature)}; expected {expected}")


def find_column(feature: Any, names: Sequence[str], parameter: str) -> int:
    """Return the column of the feature that a parameter gives by its name or by its column."""
    check_feature(feature, parameter)
    if isinstance(feature, str):
        if feature not in names:
            known = ", ".join(names[:20]) + (f" and {len(names) - 20} more" if len(names) > 20 else "")
            raise InputError(f"{parameter}: no feature is called {quote(feature)}; the names are: {known}")
        return names.index(feature)
    if feature >= len(names):
        at = f"feature {feature + 1} (in Python column {feature})"
        raise InputError(f"{parameter}: there is no {at}; the documents have {len(names)} features")
    return int(feature)


def find_column_lists(lists: Any, names: Sequence[str], parameter: str) -> list[list[int]]:
    """Return lists of columns for the lists of features that a parameter gives."""
    if not isinstance(lists, (list, tuple)) or not all(isinstance(each, (list, tuple)) for each in lists):
        raise InputError(f"{parameter}={quote(lists)}; expected lists of features in a list")
    return [[find_column(feature, names, parameter) for feature in each] for each in lists]


def convert_numbers_to_columns(params: Mapping[str, Any]) -> dict[str, Any]:
    """Return a ranker's parameters with features counted from 0, as in Python, given those counted from 1.

    >>> convert_numbers_to_columns({"feature": 25, "lightgbm_params": {"interaction_constraints": [[1, 2], ["bm25"]]}})
    {'feature': 24, 'lightgbm_params': {'interaction_constraints': [[0, 1], ['bm25']]}}
    """
    return {name: _convert_parameter(name, value, -1) for name, value in params.items()}


def convert_columns_to_numbers(params: Mapping[str, Any]) -> dict[str, Any]:
    """Return a ranker's parameters with features counted from 1, as in specs, given those counted from 0.

    >>> convert_columns_to_numbers({"feature": 24, "sign": 1})
    {'feature': 25, 'sign': 1}
    """
    return {name: _convert_parameter(name, value, 1) for name, value in params.items()}


def convert_grid(convert: Callable[[Mapping[str, Any]], dict[str, Any]], grid: Mapping[str, Any]) -> dict[str, Any]:
    """Return a grid, or the ranges of a random search, with every value converted by ``convert``.

    >>> convert_grid(convert_columns_to_numbers, {"feature": [0, "bm25"], "sign": [1, -1]})
    {'feature': [1, 'bm25'], 'sign': [1, -1]}
    >>> convert_grid(convert_numbers_to_columns, {"feature": {"int": [1, 45]}})
    {'feature': {'int': [0, 44]}}
    """

    def each(name: str, values: Any) -> Any:
        if isinstance(values, Mapping):
            return {kind: each(name, ends) for kind, ends in values.items()}
        return [convert({name: v})[name] for v in values] if isinstance(values, (list, tuple)) else values

    return {name: each(name, values) for name, values in grid.items()}


def _convert_parameter(name: str, value: Any, by: int) -> Any:
    """Return a parameter's value with ``by`` added to each number or column of a feature in it."""
    if name in _NESTED and isinstance(value, Mapping):
        return {key: _convert_parameter(key, item, by) for key, item in value.items()}
    if name in COLUMN_LISTS and isinstance(value, (list, tuple)):
        return [
            [_shift_number(name, item, by) for item in each] if isinstance(each, (list, tuple)) else each
            for each in value
        ]
    return _shift_number(name, value, by) if name in COLUMN_PARAMETERS else value


def _shift_number(name: str, value: Any, by: int) -> Any:
    """Return a feature's number plus ``by``; a name stays as it is."""
    if type(value) is not int:
        return value
    if value + by < 0:
        raise InputError(f"{name}={value}; expected the name of a feature, or its number, from 1")
    return value + by
