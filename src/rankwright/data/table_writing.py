"""Writing of data sets as tables that every reader of tables takes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from rankwright.basics.errors import InputError
from rankwright.basics.files import StrPath, write_atomic_binary
from rankwright.basics.optional_imports import require
from rankwright.data.feature_numbers import name_features
from rankwright.data.queries import Queries

FORMATS = (".csv", ".parquet")


def write_table(queries: Queries, path: StrPath) -> None:
    """Write a data set as CSV or Parquet, by the name of the file: qid, docid, label and the features; whole or not.

    Query weights, document weights, positions and clicks are not written; ``write_queries`` keeps those that it can.
    """
    pa = require("pyarrow")
    columns: dict[str, Any] = {"qid": _make_column(queries.row_qid)}
    if queries.docid is not None:
        columns["docid"] = _make_column(np.asarray(queries.docid))
    if queries.has_grades:
        columns["label"] = pa.array(queries.y)
    X = queries.X
    for number, name in enumerate(name_features(queries.features, queries.n_features)):
        if name in columns:
            raise InputError(
                f"a feature is called {name!r}, as a column of {path} that is none; rename it, or write .rwq"
            )
        columns[name] = _make_feature(X[:, number], None if queries.categories is None else queries.categories[number])
    with write_atomic_binary(path) as file:
        if Path(path).suffix == ".parquet":
            from pyarrow import parquet

            parquet.write_table(pa.table(columns), file)
        else:
            from pyarrow import csv as arrow_csv

            arrow_csv.write_csv(pa.table(columns), file)


def _make_column(ids: Any) -> Any:
    """Return ids as an Arrow array of integers or of texts."""
    pa = require("pyarrow")
    return pa.array(ids) if ids.dtype.kind in "iu" else pa.array([str(each) for each in ids.tolist()])


def _make_feature(values: Any, categories: Any) -> Any:
    """Return a feature as an Arrow array, a missing value as null, a category as its text."""
    pa = require("pyarrow")
    missing = np.isnan(values)
    if categories is None:
        return pa.array(np.ascontiguousarray(values), mask=missing)
    codes = np.where(missing, 0, values).astype(np.int32)
    return pa.DictionaryArray.from_arrays(pa.array(codes, mask=missing), pa.array(list(categories))).cast(pa.string())
