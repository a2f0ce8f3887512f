"""Queries as files of plain arrays."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from rankwright.data import Queries
from rankwright.errors import InputError
from rankwright.files import write_atomic_binary


def save_queries(queries: Queries, path: Path) -> None:
    """Save queries as plain arrays."""
    arrays: dict[str, Any] = {"X": queries.X, "y": queries.y, "indptr": queries.indptr, "qid": _texts(queries.qid)}
    if queries.docid is not None:
        arrays["docid"] = _texts(queries.docid)
    if queries.weight is not None:
        arrays["weight"] = queries.weight
    if queries.features is not None:
        arrays["features"] = np.array(queries.features, dtype=str)
    with write_atomic_binary(path) as file:
        np.savez(file, **arrays)


def load_queries(path: Path) -> Queries:
    """Load queries saved by :func:`save_queries`; runs no code."""
    try:
        with np.load(path, allow_pickle=False) as arrays:
            found = {name: arrays[name] for name in arrays.files}
    except (ValueError, EOFError, zipfile.BadZipFile, AttributeError):
        raise InputError(f"{path}: damaged; expected queries that an experiment saved") from None
    features = tuple(found.pop("features").tolist()) if "features" in found else None
    return Queries(**found, features=features)


def _texts(ids: np.ndarray) -> np.ndarray:
    return ids if ids.dtype.kind in "iu" else ids.astype(str)
