"""The header of a data set on disk: a small JSON file that says which arrays there are, and is checked in full."""

from __future__ import annotations

import hashlib
import json
import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from rankwright.basics.errors import InputError, quote
from rankwright.basics.mapped_arrays import ArrayFile
from rankwright.data.categories import Categories
from rankwright.data.ids import WIDEST_ID

FILE, SUFFIX = "header.json", ".rwq"
_FORMAT, _VERSION = "rankwright queries", 1
_LARGEST = 1 << 28  # bytes of a header: names of features and categories
_IDS = r"<i8|<u8|<U([1-9]|[1-5]\d|6[0-4])"  # up to WIDEST_ID characters
assert WIDEST_ID == 64

# The types that each array may have, as a pattern, and the numbers that its shape consists of.
_ARRAYS: dict[str, tuple[str, tuple[str, ...]]] = {
    "X": ("<f4", ("documents", "features")),
    "y": ("<f8", ("documents",)),
    "indptr": ("<i8", ("queries + 1",)),
    "qid": (_IDS, ("queries",)),
    "qid_text": (r"\|u1", ("any",)),
    "qid_indptr": ("<i8", ("queries + 1",)),
    "docid": (_IDS, ("documents",)),
    "docid_text": (r"\|u1", ("any",)),
    "docid_indptr": ("<i8", ("documents + 1",)),
    "weight": ("<f8", ("queries",)),
    "doc_weight": ("<f8", ("documents",)),
    "source": ("<i8", ("documents",)),
    "unretrieved_y": ("<f8", ("any",)),
    "unretrieved_indptr": ("<i8", ("queries + 1",)),
    "position": ("<i8", ("documents",)),
    "clicks_indptr": ("<i8", ("documents + 1",)),
    "clicks_position": ("<i8", ("any",)),
    "clicks_n_shown": ("<f8", ("any",)),
    "clicks_n_clicked": ("<f8", ("any",)),
    "clicks_n_lists": ("<f8", ("queries",)),
    "clicks_examination": ("<f8", ("any",)),
}
ARRAY_FILES = tuple(f"{name}.npy" for name in _ARRAYS)
_TOGETHER = (
    *(("qid_text", "qid_indptr"), ("docid_text", "docid_indptr"), ("unretrieved_y", "unretrieved_indptr")),
    *(("clicks_indptr", name) for name in _ARRAYS if name.startswith("clicks_") and name != "clicks_indptr"),
)


@dataclass(frozen=True, slots=True)
class MappedHeader:
    """The header of a data set on disk: its arrays, its feature names and the values of categorical features."""

    arrays: dict[str, ArrayFile]
    features: tuple[str, ...] | None = None
    categories: Categories | None = None

    @property
    def digest(self) -> str:
        """A hash of the whole data set, as text: of the checksums of its arrays and of all names."""
        return hashlib.sha256(json.dumps(self._to_json()).encode()).hexdigest()

    def _to_json(self) -> dict[str, Any]:
        arrays = {
            name: {"dtype": each.dtype, "shape": list(each.shape), "sha256": each.sha256}
            for name, each in sorted(self.arrays.items())
        }
        return {"arrays": arrays, "features": self.features, "categories": self.categories}

    def write(self, folder: Path) -> None:
        """Write the header to its file in a folder, and wait until it is on the disk."""
        content = {"format": _FORMAT, "version": _VERSION, "sha256": self.digest, **self._to_json()}
        with (folder / FILE).open("w", encoding="utf-8") as file:
            json.dump(content, file, indent=1)
            file.flush()
            os.fsync(file.fileno())


def read_header(folder: Path) -> MappedHeader:
    """Return the checked header of a data set on disk; raise InputError if there is none or anything in it is wrong."""
    path = folder / FILE
    if not path.is_file():
        raise InputError(f"{folder}: no {FILE}; expected a folder that rankwright convert wrote")
    if path.stat().st_size > _LARGEST:
        raise InputError(f"{path}: more than {_LARGEST >> 20} MB; expected the header of converted data")
    try:
        content = json.loads(path.read_bytes())
        if not isinstance(content, dict) or content.get("format") != _FORMAT:
            raise ValueError(f"expected the format {_FORMAT!r}")
        if content.get("version") != _VERSION:
            found = quote(content.get("version"))
            raise ValueError(f"version {found}; this release reads version {_VERSION}: convert the data again")
        header = _parse(content)
        if header.digest != content.get("sha256"):
            raise ValueError("damaged: its content does not fit its checksum; convert the data again")
    except RecursionError:
        raise InputError(f"{path}: not a header of converted data: nested too deeply") from None
    except ValueError as error:  # also of JSON and of bytes that are not UTF-8
        raise InputError(f"{path}: not a header of converted data: {error}") from None
    return header


def is_mapped(path: Path) -> bool:
    """Return whether a path is a folder that holds a data set on disk, or is called so."""
    return path.is_dir() and (path.suffix == SUFFIX or (path / FILE).is_file())


def _parse(content: dict[str, Any]) -> MappedHeader:
    """Return the header in parsed JSON; raise ValueError if a part of it is not what it must be."""
    if content.keys() != {"format", "version", "sha256", "arrays", "features", "categories"}:
        raise ValueError("unknown or missing entries")
    arrays = _parse_arrays(content["arrays"])
    width = arrays["X"].shape[1]
    features, categories = content["features"], content["categories"]
    if features is not None and not (_are_texts(features) and len(features) == width):
        raise ValueError(f"features are not the names of {width} columns")
    if categories is not None:
        listed = isinstance(categories, list) and len(categories) == width
        if not listed or not all(each is None or _are_texts(each) for each in categories):
            raise ValueError(f"categories are not the values of {width} columns")
        categories = tuple(None if each is None else tuple(each) for each in categories)
    return MappedHeader(arrays, None if features is None else tuple(features), cast(Categories | None, categories))


def _are_texts(values: Any) -> bool:
    """Return whether a value of JSON is a list of texts."""
    return isinstance(values, list) and all(isinstance(value, str) for value in values)


def _parse_arrays(content: Any) -> dict[str, ArrayFile]:
    """Return the descriptions of arrays in parsed JSON; raise ValueError if they are not those of one data set."""
    if not isinstance(content, dict) or not content.keys() <= _ARRAYS.keys():
        raise ValueError(f"arrays are none of {', '.join(_ARRAYS)}")
    arrays = {name: _parse_array(name, value) for name, value in content.items()}
    missing = [name for name in ("X", "indptr") if name not in arrays]
    missing += [pair[0] for pair in _TOGETHER if (pair[0] in arrays) != (pair[1] in arrays)]
    missing += ["qid"] if ("qid" in arrays) == ("qid_text" in arrays) else []
    if missing or ("docid" in arrays and "docid_text" in arrays):
        raise ValueError(f"no array {missing[0]}" if missing else "two arrays of document ids")
    (documents, features), queries = arrays["X"].shape, arrays["indptr"].shape[0] - 1
    if min(documents, features, queries) < 1:
        raise ValueError("no queries, documents or features")
    sizes = {"documents": documents, "features": features, "queries": queries}
    sizes |= {"documents + 1": documents + 1, "queries + 1": queries + 1}
    for name, each in arrays.items():
        expected = tuple(sizes.get(of, size) for of, size in zip(_ARRAYS[name][1], each.shape, strict=True))
        if each.shape != expected:
            raise ValueError(f"{name} has shape {each.shape}; expected {expected}")
    return arrays


def _parse_array(name: str, content: Any) -> ArrayFile:
    """Return the description of one array in parsed JSON."""
    kinds, sizes = _ARRAYS[name]
    if not isinstance(content, dict) or content.keys() != {"dtype", "shape", "sha256"}:
        raise ValueError(f"{name} is not described by dtype, shape and sha256")
    dtype, shape, digest = content["dtype"], content["shape"], content["sha256"]
    if not isinstance(dtype, str) or not re.fullmatch(kinds, dtype):
        raise ValueError(f"{name} has the type {quote(dtype)}")
    if not isinstance(shape, list) or len(shape) != len(sizes):
        raise ValueError(f"{name} has the shape {quote(shape)}; expected {len(sizes)} numbers")
    if not all(type(size) is int and 0 <= size < 1 << 62 for size in shape):
        raise ValueError(f"{name} has the shape {quote(shape)}; expected whole numbers")
    if not isinstance(digest, str) or not re.fullmatch("[0-9a-f]{64}", digest):
        raise ValueError(f"{name} has no checksum")
    return ArrayFile(dtype, tuple(shape), digest)
