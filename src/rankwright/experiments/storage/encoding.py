"""The JSON text in which a store keeps the tables of documents and trials."""

from __future__ import annotations

import base64
import json
from typing import Any

import numpy as np

from rankwright.analysis.results import Table

_LONG = 100  # a column of more numbers than this is stored as bytes


def as_number(value: Any) -> float | None:
    """Return a number as SQLite and JSON can hold it: None for NaN, and 0 for -0, whose sign SQLite loses."""
    return None if value is None or value != value else float(value) + 0.0


def encode_table(table: Table) -> str:
    """Return a table as JSON text: a list for each column, NaN as null; long columns of numbers as bytes in base64."""
    return json.dumps({name: _encode_column(np.asarray(column)) for name, column in table.items()})


def _encode_column(column: np.ndarray) -> Any:
    if column.dtype.kind in "fi" and len(column) > _LONG:
        bytes_ = column.astype(column.dtype.newbyteorder("<")).tobytes()
        return {"dtype": column.dtype.newbyteorder("<").str, "base64": base64.b64encode(bytes_).decode()}
    values: list[Any] = column.tolist()
    missing = column.dtype.kind == "f" and bool(np.isnan(column).any())
    return [None if value != value else value for value in values] if missing else values


def decode_table(text: str) -> dict[str, np.ndarray]:
    """Return the table of a JSON text; null becomes NaN."""
    return {name: _decode_column(values) for name, values in json.loads(text).items()}


def _decode_column(values: Any) -> np.ndarray:
    if isinstance(values, dict):
        return np.frombuffer(base64.b64decode(values["base64"]), dtype=np.dtype(values["dtype"]))
    first = next((value for value in values if value is not None), None)
    if isinstance(first, str):
        return np.array(["" if value is None else value for value in values], dtype=object)
    return np.array([np.nan if value is None else value for value in values] if None in values else values)
