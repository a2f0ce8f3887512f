"""Queries saved as files of plain arrays."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from rankwright.basics.array_files import digest_arrays, read_arrays, write_arrays
from rankwright.basics.errors import InputError
from rankwright.data.ids import as_ids, ids_as_text
from rankwright.data.queries import Queries
from rankwright.data.unretrieved import Unretrieved

_EXPECTED = "queries that an experiment saved"


def save_queries(queries: Queries, folder: Path) -> Path:
    """Save a data set in a folder, in a file named after the digest of its content, and return the file's path.

    A file that exists is written again only if it is damaged.
    """
    arrays = _to_arrays(queries)
    path = folder / f"{digest_arrays(arrays)}.npz"
    try:
        _read_checked(path)
    except (FileNotFoundError, InputError):
        write_arrays(path, arrays)
    return path


def _to_arrays(queries: Queries) -> dict[str, Any]:
    """Return a data set as arrays by name, with the rows of each query adjacent."""
    grouped = queries.grouped()
    arrays: dict[str, Any] = {"X": grouped.X, "y": grouped.y, "indptr": grouped.indptr}
    arrays |= _encode_ids("qid", queries.qid)
    if grouped.docid is not None:
        arrays |= _encode_ids("docid", grouped.docid)
    if grouped is not queries:
        arrays["source"] = queries.group(np.arange(queries.n_docs))
    if queries.weight is not None:
        arrays["weight"] = queries.weight
    if grouped.doc_weight is not None:
        arrays["doc_weight"] = grouped.doc_weight
    if queries.categories is not None:
        arrays["categories"] = np.frombuffer(json.dumps(queries.categories).encode(), np.uint8)
    if queries.unretrieved is not None:
        arrays |= {"unretrieved_y": queries.unretrieved.y, "unretrieved_indptr": queries.unretrieved.indptr}
    if queries.features is not None:
        arrays["features"] = np.array(queries.features, dtype=str)
    return arrays


def load_queries(path: Path) -> Queries:
    """Load a data set that :func:`save_queries` saved, without pickle; raise InputError if the file is damaged."""
    found: dict[str, Any] = _read_checked(path)
    features = tuple(found.pop("features").tolist()) if "features" in found else None
    for name in ("qid", "docid"):
        if f"{name}_ends" in found:
            text, ends = found.pop(f"{name}_text").tobytes(), found.pop(f"{name}_ends").tolist()
            found[name] = as_ids([text[a:b].decode() for a, b in pairwise([0, *ends])])
    if "categories" in found:
        listed = json.loads(found["categories"].tobytes())
        found["categories"] = tuple(None if values is None else tuple(values) for values in listed)
    others = [found.pop(f"unretrieved_{part}", None) for part in Unretrieved._fields]
    return Queries(**found, features=features, unretrieved=None if others[0] is None else Unretrieved(*others))


def _read_checked(path: Path) -> dict[str, Any]:
    """Return the arrays in a file; raise InputError if their digest is not the file's name."""
    arrays = read_arrays(path, _EXPECTED)
    if digest_arrays(arrays) != path.stem:
        raise InputError(f"{path}: damaged: its content does not fit its name; expected {_EXPECTED}")
    return arrays


def _encode_ids(name: str, ids: np.ndarray) -> dict[str, np.ndarray]:
    """Return ids as arrays that need no pickle: as they are or, if long, as joined bytes and the end of each."""
    ids = ids if ids.dtype.kind in "iu" else ids_as_text(ids)
    if ids.dtype != object:
        return {name: ids}
    texts = [text.encode() for text in ids.tolist()]
    ends = np.cumsum([len(text) for text in texts])
    return {f"{name}_text": np.frombuffer(b"".join(texts), np.uint8), f"{name}_ends": ends}
