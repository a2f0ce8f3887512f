"""Categorical features: their values as texts, and the numbers of these values in a matrix of features."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from rankwright.basics.array_types import Floats, Ints
from rankwright.basics.errors import InputError, quote
from rankwright.data.feature_numbers import name_features

Categories = tuple[tuple[str, ...] | None, ...]
MAX_VALUES = 1 << 24  # of a categorical feature: float32 has every whole number up to here
_SHOWN = 3  # values in an error
_TEXT = ("object", "str", "string", "String", "Utf8")  # types of columns of data frames


def check_categories(categories: Any, X: Floats, features: tuple[str, ...] | None) -> Categories | None:
    """Return categories as tuples, or None if no feature has any; raise InputError unless ``X`` has their numbers."""
    if categories is None:
        return None
    if isinstance(categories, str) or len(categories) != X.shape[1]:
        raise InputError(f"categories={quote(categories)}; expected one entry for each of {X.shape[1]} features")
    names = name_features(features, X.shape[1])
    found = tuple(None if values is None else as_values(values, name) for values, name in zip(categories, names))
    for column, values in enumerate(found):
        if values is not None:
            _check_numbers(X[:, column], len(values), names[column])
    return found if list_categorical(found) else None


def as_values(values: Sequence[Any], name: str) -> tuple[str, ...]:
    """Return the values of a categorical feature as texts; raise InputError if two are the same text or too many.

    >>> as_values([1, 2, True], "size")
    ('1', '2', 'true')
    """
    if len(values) > MAX_VALUES:
        raise InputError(
            f"feature {name} has {len(values):,} categories; expected at most {MAX_VALUES:,}. Leave it out, or join "
            "rare values"
        )
    texts = tuple(value if isinstance(value, str) else _to_text(value) for value in values)
    if len(set(texts)) < len(texts):
        twice = next(text for text in texts if texts.count(text) > 1)
        raise InputError(f"feature {name} has the category {quote(twice)} twice; expected values that differ as texts")
    return texts


def list_categorical(categories: Categories | None) -> list[int]:
    """Return the columns of the categorical features."""
    return [] if categories is None else [i for i, values in enumerate(categories) if values is not None]


def join_categories(known: Categories | None, found: Categories | None) -> Categories | None:
    """Return the known categories of each feature, with the values found beside them at the end.

    >>> join_categories((("a", "b"), None), (("c", "b"), None))
    (('a', 'b', 'c'), None)
    """
    if known is None or found is None:
        return found
    return tuple(
        new if old is None or new is None else old + tuple(sorted(set(new) - set(old), key=new.index))
        for old, new in zip(known, found, strict=True)
    )


def renumber(
    X: Floats,
    found: Categories | None,
    expected: Categories | None,
    features: tuple[str, ...] | None,
    where: str,
) -> Floats:
    """Return features with the numbers of the expected categories in place of those found; others are missing.

    Raise InputError, which says ``where`` they are expected, if a feature is categorical in one and not in the other.
    ``X`` itself comes back where the numbers are the same.
    """
    if found == expected:
        return X
    names, out = name_features(features, X.shape[1]), X
    nothing = (None,) * X.shape[1]
    for column, (own, wanted) in enumerate(zip(found or nothing, expected or nothing, strict=True)):
        if own is None and wanted is None:
            continue
        if own is None or wanted is None:
            _refuse_kind(names[column], own, wanted, where)
        if own == wanted[: len(own)]:
            continue
        out = X.copy() if out is X else out
        out[:, column] = _map_numbers(X[:, column], own, wanted)
    return out


def _map_numbers(column: Floats, own: tuple[str, ...], wanted: tuple[str, ...]) -> Floats:
    """Return the numbers that the values of a column have among the wanted ones; NaN for those without one."""
    number = {value: i for i, value in enumerate(wanted)}
    table = np.array([*(number.get(value, np.nan) for value in own), np.nan], dtype=np.float32)
    at: Ints = np.where(np.isnan(column), len(own), column).astype(np.int64)
    mapped: Floats = table[at]
    return mapped


def _refuse_kind(name: str, own: tuple[str, ...] | None, wanted: tuple[str, ...] | None, where: str) -> None:
    """Raise InputError for a feature that is categorical here and not there, or the other way round."""
    if wanted is None:
        assert own is not None
        raise InputError(f"feature {name} has categories here ({_show(own)}); {where} numbers in its place")
    raise InputError(
        f"feature {name} has numbers here; {where} categories in its place ({_show(wanted)}). Read it as a categorical "
        "column (categorical=, or --categorical on the command line), or give a data frame with a column of categories"
    )


def encode_frame(frame: Any, names: Sequence[str] | None = None) -> tuple[Any, Categories | None]:
    """Return a pandas or polars data frame with numbers in its columns of categories, and the categories.

    Whatever is not a data frame, or has no such column, comes back as it is. Raise InputError for a column of texts;
    ``names`` are those of the features that are expected, if they are known.
    """
    if not hasattr(frame, "columns") or not hasattr(frame, "dtypes"):
        return frame, None
    kinds = [str(kind) for kind in frame.dtypes]
    for column, (name, kind) in enumerate(zip(frame.columns, kinds, strict=True)):
        if kind in _TEXT and _has_text(frame.iloc[:, column] if hasattr(frame, "iloc") else frame[name]):
            if names is not None and name not in names:
                raise InputError(
                    f"column {quote(name)} has texts, and is none of the {len(names)} features of the fit. Choose "
                    "columns by name: frame[list(ranker.feature_names_in_)]"
                )
            raise InputError(
                f"column {quote(name)} has texts; expected numbers. Leave it out, or make it one of categories "
                f"(frame.astype({{{name!r}: 'category'}}) in pandas)"
            )
    wanted = [i for i, kind in enumerate(kinds) if kind == "category" or kind.startswith(("Categorical", "Enum"))]
    if not wanted:
        return frame, None
    categories: list[tuple[str, ...] | None] = [None] * len(kinds)
    encode = _encode_pandas if hasattr(frame, "iloc") else _encode_polars
    for column in wanted:
        frame, categories[column] = encode(frame, column)
    return frame, tuple(categories)


def _encode_pandas(frame: Any, column: int) -> tuple[Any, tuple[str, ...]]:
    """Return a pandas data frame with the numbers of a column's categories in their place, and the categories."""
    own = frame.iloc[:, column]
    numbers = own.cat.codes.to_numpy().astype(np.float32)
    changed = frame.copy(deep=False)
    changed.isetitem(column, np.where(numbers < 0, np.float32(np.nan), numbers))
    return changed, as_values(own.cat.categories.tolist(), str(frame.columns[column]))


def _encode_polars(frame: Any, column: int) -> tuple[Any, tuple[str, ...]]:
    """Return a polars data frame with the numbers of a column's categories in their place, and the categories."""
    name, texts = frame.columns[column], frame.to_series(column).cast(str).to_list()
    values = as_values(sorted({text for text in texts if text is not None}), name)
    number: dict[str | None, float] = {value: float(i) for i, value in enumerate(values)}
    own = type(frame.to_series(column))(name, np.array([number.get(text, np.nan) for text in texts], dtype=np.float32))
    return frame.with_columns(own), values


def _has_text(column: Any) -> bool:
    """Return whether a column of a data frame has a text."""
    return any(isinstance(value, str) for value in column.to_numpy())


def _check_numbers(column: Floats, n_values: int, name: str) -> None:
    """Raise InputError unless a column has whole numbers from 0 to ``n_values - 1``, or NaN."""
    with np.errstate(invalid="ignore"):
        wrong = ~np.isnan(column) & ~((column >= 0) & (column < n_values) & (column == np.floor(column)))
    if wrong.any():
        row = int(np.argmax(wrong))
        raise InputError(
            f"row {row}, feature {name}: {column[row]:g} in place of a category; expected whole numbers from 0 to "
            f"{n_values - 1}, the places of its values, or NaN for a missing one"
        )


def _to_text(value: Any) -> str:
    """Return a category that is not a text as one."""
    if isinstance(value, (bool, np.bool_)):
        return str(bool(value)).lower()
    if value is None or value != value:
        raise InputError(f"{value!r} as a category; expected a value, and NaN in X where it is missing")
    is_whole = isinstance(value, (float, np.floating)) and float(value).is_integer()
    return str(int(value)) if is_whole else str(value)


def _show(values: tuple[str, ...]) -> str:
    """Return a few categories for an error."""
    return ", ".join(map(quote, values[:_SHOWN])) + (", ..." if len(values) > _SHOWN else "")
