"""Ids of queries and documents: numbers or texts, of any length, that cannot be taken for one another."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankwright.basics.errors import InputError, quote

WIDEST_ID = 64  # longer ids are kept as Python's strings, not in an array of fixed width
_MISSING = "{name}[{row}] is missing; expected an id in every row"


def validate_ids(values: ArrayLike, n_docs: int, name: str) -> NDArray[Any]:
    """Return ids as an array; raise InputError if one is missing, their number is wrong, or two have the same text."""
    column = np.asarray(values)
    if column.shape != (n_docs,):
        raise InputError(f"{name} has shape {column.shape}; X has {n_docs} rows")
    if column.dtype.kind in "USO":  # as the caller has them: an array of fixed width loses NULs at the end
        if isinstance(values, list | tuple):
            return _as_texts(list(values), name)
        is_narrow = column.dtype.kind == "U" and column.dtype.itemsize <= 4 * WIDEST_ID
        return column if is_narrow else _as_texts(column.tolist(), name)
    absent: Any = False
    if column.dtype.kind == "f":
        absent = ~np.isfinite(column)
    elif column.dtype.kind in "mM":
        absent = np.isnat(column)
    if np.any(absent):
        raise InputError(_MISSING.format(name=name, row=int(np.argmax(absent))))
    return column


def _as_texts(values: list[Any], name: str) -> NDArray[Any]:
    """Return ids of any type as texts; raise InputError if one is missing or two different ids have the same text."""
    if set(map(type, values)) == {str} and not any("\0" in text for text in values):
        return as_ids(values)
    known: dict[str, Any] = {}
    texts = []
    for row, value in enumerate(values):
        if _is_missing(value):
            raise InputError(_MISSING.format(name=name, row=row))
        text = value.decode("utf-8", "backslashreplace") if isinstance(value, bytes) else str(value)
        first = known.setdefault(text, value)
        if first is not value and (isinstance(first, str) != isinstance(value, str) or first != value):
            raise InputError(
                f"{name} has {quote(first)} and {quote(value)}, which are one text; expected ids of one kind"
            )
        if "\0" in text:
            raise InputError(f"{name}[{row}] is {quote(text)}; expected an id without a NUL character")
        texts.append(text)
    return as_ids(texts)


def _is_missing(value: Any) -> bool:
    """Return whether an id is None, NaN or ``pandas.NA``."""
    try:
        return value is None or bool(value != value)  # NaN is not itself
    except TypeError:  # pandas.NA is neither equal nor unequal
        return True


def as_ids(texts: Sequence[str]) -> NDArray[Any]:
    """Return texts as an array: of fixed width if all are short, else of Python strings."""
    widest = max(map(len, texts), default=0)
    if widest <= WIDEST_ID:
        return np.array(texts, dtype=f"U{max(widest, 1)}")
    ids = np.empty(len(texts), dtype=object)
    ids[:] = texts
    return ids


def parse_integer_ids(texts: Sequence[str]) -> NDArray[Any]:
    """Return ids as integers if each is written as an integer, else as texts.

    >>> parse_integer_ids(["7", "12"]).tolist(), parse_integer_ids(["007", "12"]).tolist()
    ([7, 12], ['007', '12'])
    """
    try:
        numbers = np.array([int(text) for text in texts], dtype=np.int64)
    except (ValueError, OverflowError):
        return as_ids(texts)
    return numbers if [str(number) for number in numbers] == list(texts) else as_ids(texts)


def join_ids(parts: Iterable[NDArray[Any]]) -> NDArray[Any]:
    """Return the ids of several blocks of text files as one array: integers if those of each block are, else texts.

    >>> join_ids([np.array([7]), np.array(["a"])]).tolist()
    ['7', 'a']
    """
    arrays = [array for array in parts if len(array)]
    if len({array.dtype.kind in "iu" for array in arrays}) == 2:
        arrays = [ids_as_text(array) for array in arrays]
    return np.concatenate(arrays) if arrays else np.empty(0, np.int64)


def ids_as_text(ids: NDArray[Any]) -> NDArray[Any]:
    """Return ids as strings: of fixed width if all are short, else as Python objects."""
    return ids if ids.dtype.kind == "U" else as_ids([str(value) for value in ids.tolist()])


_OTHER_IDS = "Use ids without them, from another column (qid=, docid=) or made by you; .rwq and scores take any id"


def check_tokens(ids: NDArray[Any], what: str) -> None:
    """Raise InputError if an id cannot be written to a text file: if it is empty or has spaces or ``#``."""
    for token in ids.tolist():
        text = str(token)
        if not text or text.split() != [text] or "#" in text:
            raise InputError(
                f"the {what} id {text!r} cannot be written: it is empty or has spaces or '#'. {_OTHER_IDS}"
            )
