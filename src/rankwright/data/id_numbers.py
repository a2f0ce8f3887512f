"""Numbers of ids: each different id of a column gets a number when it is first seen, block by block."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankwright.basics.array_types import Ints
from rankwright.basics.errors import InputError
from rankwright.basics.optional_imports import require
from rankwright.data.ids import as_ids, parse_integer_ids
from rankwright.data.table_values import encode_texts

_MIXED = np.uint64(0x9E3779B97F4A7C15)


class IdNumbers:
    """The numbers of the ids of one column, from 0 in the order in which they are first seen.

    Parameters
    ----------
    name : str
        The column, for messages.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self._numbers: dict[Any, int] = {}
        self._are_integers: bool | None = None

    def __len__(self) -> int:
        return len(self._numbers)

    def find(self, text: str) -> int:
        """Return the number of an id that is a text."""
        self._are_integers = False
        return self._numbers.setdefault(text, len(self._numbers))

    def encode(self, column: Any) -> Ints:
        """Return the number of the id in each row of an Arrow column; -1 where it is missing or empty."""
        pa = require("pyarrow")
        if pa.types.is_integer(column.type):
            self._check_kind(are_integers=True)
            is_known = None if not column.null_count else ~column.is_null().to_numpy(zero_copy_only=False)
            values = column.fill_null(0).to_numpy() if is_known is not None else column.to_numpy()
            unique, row = np.unique(values, return_inverse=True)
            numbers = self._number(unique.tolist())[row]
            return numbers if is_known is None else np.where(is_known, numbers, -1)
        self._check_kind(are_integers=False)
        chunks = [self._encode_chunk(chunk) for chunk in column.chunks]
        return np.concatenate(chunks) if chunks else np.empty(0, np.int64)

    def _encode_chunk(self, chunk: Any) -> Ints:
        """Return the numbers of the texts of an Arrow array."""
        codes, texts = encode_dictionary(chunk)
        numbers = self._number([text or None for text in texts])
        return np.append(numbers, -1)[codes]

    def _number(self, ids: list[Any]) -> Ints:
        """Return the numbers of different ids; -1 for None."""
        numbers, known = self._numbers, self._numbers.get
        found = [-1 if each is None else known(each, -2) for each in ids]
        for i, number in enumerate(found):
            if number == -2:
                found[i] = numbers.setdefault(ids[i], len(numbers))
        return np.array(found, np.int64)

    def _check_kind(self, *, are_integers: bool) -> None:
        """Raise InputError if ids are integers in one file and texts in another."""
        if self._are_integers is None:
            self._are_integers = are_integers
        elif self._are_integers != are_integers:
            raise InputError(
                f"the column {self.name!r} has numbers in one file and texts in another; expected ids of one kind"
            )

    def list_ids(self, *, parse: bool) -> NDArray[Any]:
        """Return the ids in the order of their numbers; with ``parse`` texts are integers if each is written as one."""
        ids = list(self._numbers)
        if self._are_integers:
            return np.array(ids, np.int64)
        return parse_integer_ids(ids) if parse else as_ids(ids)


def encode_dictionary(chunk: Any) -> tuple[Ints, list[str | None]]:
    """Return for each row of an Arrow array the place of its text, -1 if it is missing, and the texts."""
    pa = require("pyarrow")
    types = pa.types
    if types.is_string(chunk.type) or types.is_large_string(chunk.type):
        chunk = chunk.dictionary_encode()
    is_text = types.is_dictionary(chunk.type) and (
        types.is_string(chunk.type.value_type) or types.is_large_string(chunk.type.value_type)
    )
    if is_text and len(chunk.dictionary) <= 2 * len(chunk):
        codes = chunk.indices.cast("int64").fill_null(-1).to_numpy(zero_copy_only=False)
        return codes, chunk.dictionary.to_pylist()
    return encode_texts(chunk)


def hash_column(column: Any) -> NDArray[np.uint64]:
    """Return a 64-bit hash of each value of an Arrow column, 0 where it is missing; equal only for equal values."""
    pa = require("pyarrow")
    if pa.types.is_temporal(column.type):
        column = column.cast("int32" if pa.types.is_date32(column.type) else "int64")
    if pa.types.is_integer(column.type) or pa.types.is_floating(column.type):
        is_float = pa.types.is_floating(column.type)
        values = column.cast("float64" if is_float else "int64", safe=False).fill_null(0).to_numpy()
        bits = mix_bits(np.ascontiguousarray(values).view(np.uint64))
        is_missing = column.is_null(nan_is_null=True).to_numpy() if column.null_count or is_float else None
        return bits if is_missing is None else np.where(is_missing, np.uint64(0), bits)
    parts = []
    for chunk in column.chunks:
        codes, texts = encode_dictionary(chunk)
        hashes = np.fromiter((hash(text) if text else 0 for text in [*texts, None]), np.int64, len(texts) + 1)
        parts.append(np.where(hashes == 0, np.uint64(0), mix_bits(hashes.view(np.uint64)))[codes])
    return np.concatenate(parts) if parts else np.empty(0, np.uint64)


def mix_bits(values: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return a one-to-one mixture of the bits of each number, which looks random and is never 0 for small ones."""
    bits = values + _MIXED
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        bits = (bits ^ (bits >> np.uint64(shift))) * np.uint64(factor)
    return np.asarray(bits ^ (bits >> np.uint64(31)))
