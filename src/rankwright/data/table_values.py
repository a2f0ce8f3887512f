"""Values of a table's columns as arrays: features in float32, ids, grades and weights; NaN for a missing feature."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankwright.basics.array_types import Floats
from rankwright.basics.errors import quote
from rankwright.basics.optional_imports import require
from rankwright.data.ids import as_ids, join_ids, parse_integer_ids
from rankwright.data.row_sources import RowBlock
from rankwright.data.table_columns import TableColumns
from rankwright.data.table_files import describe_type
from rankwright.runtime.backends import Backend

_CACHED = 1 << 19  # values of rows that are copied column by column while they stay in the cache
MAX_CATEGORIES = 1 << 24  # float32 tells so many whole numbers apart

CategoryNumbers = Mapping[str, Mapping[str, int]]  # of each categorical column: the number of each value


class BadCellError(Exception):
    """The exception for a value that cannot be used; whoever knows the file makes it an InputError."""

    def __init__(self, row: int, problem: str) -> None:
        super().__init__(problem)
        self.row, self.problem = row, problem


def make_block(
    table: Any, columns: TableColumns, numbers: CategoryNumbers, X: Floats, backend: Backend, *, typed: bool
) -> RowBlock:
    """Convert an Arrow table; the features are written into ``X``.

    Parameters
    ----------
    table : pyarrow.Table
        The rows, with all columns that are read.
    columns : TableColumns
        The columns by role.
    numbers : mapping
        The number of each value of each categorical column.
    X : array of shape (n_rows, n_features), float32
        The memory for the features.
    backend : Backend
        Where columns are copied.
    typed : bool
        Whether ids have types; those of text files are integers where each is written as one.

    Raises
    ------
    BadCellError
        If a value is infinite, or an id, a grade or a weight is missing.
    """
    qid = _read_ids(table[columns.qid], columns.qid, typed=typed)
    docid = None if columns.docid is None else _read_ids(table[columns.docid], columns.docid, typed=typed)
    y = None if columns.label is None else _read_numbers(table[columns.label], columns.label)
    weight = None if columns.weight is None else _read_weights(table[columns.weight], columns.weight)
    doc_weight = None if columns.doc_weight is None else _read_weights(table[columns.doc_weight], columns.doc_weight)
    _fill_features(table, columns, numbers, X, backend)
    return RowBlock(X, y, qid, docid, weight, doc_weight)


def collect_values(table: Any, name: str) -> set[str]:
    """Return the values of a categorical column as texts; missing and empty ones are left out."""
    return {text for chunk in table[name].chunks for text in encode_texts(chunk)[1] if text is not None and text != ""}


def _fill_features(table: Any, columns: TableColumns, numbers: CategoryNumbers, X: Floats, backend: Backend) -> None:
    """Write the features of all rows into ``X``, some rows at a time; raise BadCellError if one is infinite."""
    from rankwright.kernels.scorers.linear_scores import find_first_infinite  # with Numba, which takes long to import

    chosen = table.select(list(columns.features))
    batches = chosen.to_batches(max_chunksize=max(1, _CACHED // len(columns.features)))
    starts = np.cumsum([0, *(batch.num_rows for batch in batches)])
    converters = [_make_converter(chosen.schema.field(name).type, numbers.get(name)) for name in columns.features]

    def fill(i: int) -> BadCellError | None:
        part = X[starts[i] : starts[i + 1]]
        with np.errstate(over="ignore"):
            for column, values in enumerate(batches[i].columns):
                part[:, column] = converters[column](values)
        place = find_first_infinite(part) if part.size else -1
        if place < 0:
            return None
        problem = f"the column {columns.features[place % part.shape[1]]!r} is infinite or too large for float32"
        row = int(starts[i]) + place // part.shape[1]
        return BadCellError(row, f"{problem}; expected a finite number, or nothing for a missing value")

    for error in backend.each(fill, range(len(batches))):
        if error is not None:
            raise error


def _make_converter(type_: Any, numbers: Mapping[str, int] | None) -> Callable[[Any], NDArray[Any]]:
    """Return a function that makes an array of an Arrow array of a feature, NaN where a value is missing."""
    pa = require("pyarrow")
    if numbers is not None:
        return partial(_number_categories, numbers=numbers)
    is_plain = pa.types.is_integer(type_) or pa.types.is_float32(type_) or pa.types.is_float64(type_)

    def convert(values: Any) -> NDArray[Any]:
        if not is_plain or values.null_count:
            values = values.cast(pa.float32(), safe=False)
        array: NDArray[Any] = values.to_numpy(zero_copy_only=False)
        return array

    return convert


def _number_categories(values: Any, numbers: Mapping[str, int]) -> NDArray[Any]:
    """Return the numbers of the values of a categorical column; NaN for missing ones."""
    codes, texts = encode_texts(values)
    lookup = np.array([numbers.get(text or "", np.nan) for text in [*texts, None]], np.float32)
    found: NDArray[Any] = lookup[codes]
    return found


def encode_texts(values: Any) -> tuple[NDArray[Any], list[str | None]]:
    """Return for each row the place of its value, -1 if it is missing, and the values that occur as texts.

    Raises
    ------
    BadCellError
        If a number is not whole.
    """
    pa = require("pyarrow")
    if not pa.types.is_dictionary(values.type):
        if pa.types.is_string_view(values.type) or pa.types.is_binary_view(values.type):
            values = values.cast(pa.large_binary())  # views cannot be encoded
        values = values.dictionary_encode()
    codes = values.indices.cast("int64").fill_null(-1).to_numpy(zero_copy_only=False)
    used, codes = np.unique(codes, return_inverse=True)
    if len(used) and used[0] == -1:
        used, codes = used[1:], codes - 1
    dictionary = values.dictionary.to_pylist()
    found = [dictionary[i] for i in used.tolist()]
    texts = [_make_text(value) for value in found]
    for i, value in enumerate(found):
        if texts[i] is None and value is not None and value == value:
            raise BadCellError(int(np.argmax(codes == i)), f"{quote(value)}; expected whole numbers or text")
    return codes, texts


def _make_text(value: Any) -> str | None:
    """Return an id or a category as a text, a whole number as that of an integer; None for any other value."""
    if isinstance(value, str):
        return value
    if isinstance(value, bytes):
        return value.decode("utf-8", "backslashreplace")
    if isinstance(value, bool):
        return str(value).lower()
    is_whole = value is not None and value - value == 0 and value == int(value)
    return str(int(value)) if is_whole else None


def _read_ids(column: Any, name: str, *, typed: bool) -> NDArray[Any]:
    """Return the ids of all rows; raise BadCellError if one is missing."""
    pa = require("pyarrow")
    if pa.types.is_integer(column.type) and not column.null_count:
        array: NDArray[Any] = column.to_numpy()
        return array
    as_integers = not typed or describe_type(column.type).kind == "number"
    parts, start = [], 0
    for chunk in column.chunks:
        codes, texts = encode_texts(chunk)
        missing = np.array([not text for text in [*texts, None]])[codes]
        if missing.any():
            raise BadCellError(start + int(np.argmax(missing)), f"no {name!r}; expected an id in every row")
        known = [text or "" for text in texts]
        parts.append((parse_integer_ids(known) if as_integers else as_ids(known))[codes])
        start += len(chunk)
    return join_ids(parts)


def _read_numbers(column: Any, name: str) -> Floats:
    """Return the numbers of all rows; raise BadCellError if one is missing or infinite."""
    pa = require("pyarrow")
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    numbers = column.cast(pa.float64(), safe=False).to_numpy()
    bad = ~np.isfinite(numbers)
    if bad.any():
        row = int(np.argmax(bad))
        found = "no value" if np.isnan(numbers[row]) else f"{numbers[row]}"
        raise BadCellError(row, f"the column {name!r} has {found}; expected a finite number in every row")
    return np.array(numbers)


def _read_weights(column: Any, name: str) -> Floats:
    """Return the weights of all rows; raise BadCellError if one is missing, infinite or negative."""
    weights = _read_numbers(column, name)
    if (weights < 0).any():
        row = int(np.argmax(weights < 0))
        raise BadCellError(row, f"the weight {name!r} is {quote(float(weights[row]))}; expected at least 0")
    return weights
