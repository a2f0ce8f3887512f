"""Comparison of data sets, to the bit."""

from __future__ import annotations

from typing import Any

import numpy as np

import rankwright as rw
from rankwright.data.click_counts import CLICK_ARRAYS


def list_parts(queries: rw.Queries) -> dict[str, Any]:
    """Everything that a data set has, by name."""
    grouped = queries.grouped()
    parts = {name: getattr(queries, name) for name in ("X", "qid", "docid", "weight", "doc_weight", "row_qid")}
    parts |= {"y": queries.y if queries.has_grades else None, "indptr": grouped.indptr, "grouped X": grouped.X}
    parts |= {"position": queries.position}
    if queries.clicks is not None:
        parts |= {f"clicks {name}": getattr(queries.clicks, name) for name in CLICK_ARRAYS}
    parts |= {"features": queries.features, "categories": queries.categories}
    unretrieved = queries.unretrieved or (None, None)
    return {**parts, "unretrieved y": unretrieved[0], "unretrieved indptr": unretrieved[1]}


def assert_same_queries(found: rw.Queries, expected: rw.Queries) -> None:
    """Assert that two data sets have the same bits; ids may be arrays of another width."""
    one, other = list_parts(found), list_parts(expected)
    for name, value in other.items():
        if not isinstance(value, np.ndarray):
            assert one[name] == value, name
        elif value.dtype.kind in "UO":
            assert one[name].tolist() == value.tolist(), name
        else:
            assert one[name].dtype == value.dtype, name
            assert one[name].shape == value.shape, name
            assert one[name].tobytes() == value.tobytes(), name
