"""Data sets on disk, opened without being read: features stay in their file and are mapped into memory."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankwright.basics import progress
from rankwright.basics.array_types import Ints
from rankwright.basics.errors import InputError
from rankwright.basics.files import StrPath
from rankwright.basics.mapped_arrays import check_array, open_array
from rankwright.data.categories import Categories
from rankwright.data.click_counts import CLICK_ARRAYS, ClickCounts, check_positions
from rankwright.data.feature_selection import FeatureSelection
from rankwright.data.grouping import as_doc_weights, as_grades, as_matrix, as_weights
from rankwright.data.joined_ids import JoinedIds
from rankwright.data.mapped_header import FILE, MappedHeader, read_header
from rankwright.data.queries import Queries
from rankwright.data.row_sources import RowBlock, RowSource, join_blocks
from rankwright.data.unretrieved import Unretrieved
from rankwright.runtime.backends import Backend

_MAPPED = ("X", "docid", "docid_text", "docid_indptr")  # the arrays that may be large; all others are read
_BLOCK = 1 << 24  # bytes of features in a block of rows


class MappedSource(RowSource):
    """The documents of data sets on disk.

    Parameters
    ----------
    paths : sequence of path
        The folders.
    n_features : int, optional
        The number of features, where those of the folders have no names: missing ones are 0, more are an error.
    features : sequence of str, optional
        The features that are wanted, where those of the folders have names.
    categories : tuple, optional
        The values of categorical features that are known; others are missing values.
    owner : str
        What has these features, for messages.
    """

    def __init__(
        self,
        paths: Sequence[StrPath],
        n_features: int | None = None,
        features: Sequence[str] | None = None,
        categories: Categories | None = None,
        owner: str = "the model",
    ) -> None:
        self.paths = [Path(path) for path in paths]
        self._sets = [_open_parts(path) for path in self.paths]
        first, width = self._sets[0], max(each["X"].shape[1] for each in self._sets)
        for path, each in zip(self.paths, self._sets, strict=True):
            if (each["features"], each["categories"]) != (first["features"], first["categories"]):
                raise InputError(f"{path}: other features or categories than {self.paths[0]}; expected the same")
            for name, meaning in (("y", "grades"), ("weight", "query weights"), ("doc_weight", "document weights")):
                if (each[name] is None) != (first[name] is None):
                    has, lacks = (self.paths[0], path) if each[name] is None else (path, self.paths[0])
                    raise InputError(f"{has} has {meaning}, {lacks} has none; expected the same in each folder")
            for name, what in (("clicks", "clicks"), ("position", "positions")):
                if each[name] is not None and len(paths) > 1:
                    raise InputError(f"{path}: has {what} of its documents; expected it to be read alone")
            if each["unretrieved"] is not None and len(paths) > 1:
                raise InputError(f"{path}: has judged documents that no run found; expected it to be read alone")
        if len(paths) > 1 and first["features"] is None:
            n_features = n_features or width  # as in LETOR text, whose files need not mention the last features
        self._selections = [
            FeatureSelection(each["X"].shape[1], each["features"], each["categories"], str(path))
            for path, each in zip(self.paths, self._sets, strict=True)
        ]
        for selection in self._selections:
            selection.choose(n_features, features, categories, owner)
        self.features, self.categories = self._selections[0].features, self._selections[0].categories
        self.clicks = _restore_clicks(first)
        self.unretrieved, self.has_grades = first["unretrieved"], first["y"] is not None

    def read(self, backend: Backend | None = None) -> Queries:
        """Return one data set as it is on disk, and several as one that is in memory."""
        if len(self._sets) > 1:
            return join_blocks(self.read_blocks()).replace(features=self.features, categories=self.categories)
        chosen = {"X": self._selections[0].apply(self._sets[0]["X"])}
        return Queries(**self._sets[0] | chosen | {"features": self.features, "categories": self.categories})

    def read_blocks(self) -> Iterator[RowBlock]:
        """Yield the documents in blocks, in the order that they had before they were written."""
        for parts, selection in zip(self._sets, self._selections, strict=True):
            n, width = parts["X"].shape
            step = max(1, _BLOCK // (4 * width))
            places = None if parts["source"] is None else np.argsort(parts["source"])
            for at in progress.track(range(-(-n // step)), "reading", -(-n // step)):
                rows: Any = slice(at * step, min((at + 1) * step, n))
                block = _take_block(parts, rows if places is None else places[rows])
                yield block._replace(X=selection.apply(block.X))


def _take_block(parts: dict[str, Any], rows: Any) -> RowBlock:
    """Return these rows of a data set, given as the arguments of ``Queries``."""
    numbers = np.arange(rows.start, rows.stop) if isinstance(rows, slice) else rows
    query = np.searchsorted(parts["indptr"], numbers, side="right") - 1
    y, docid, doc_weight = (None if parts[name] is None else parts[name][rows] for name in ("y", "docid", "doc_weight"))
    weight = None if parts["weight"] is None else parts["weight"][query]
    docid = None if docid is None else np.asarray(docid)
    return RowBlock(parts["X"][rows], y, parts["qid"][query], docid, weight, doc_weight)


def verify_checksums(path: StrPath) -> None:
    """Read all files of a data set on disk, and raise InputError if one of them is not what was written.

    Opening a data set checks its header and the sizes of its files, but reads neither features nor document ids.

    Parameters
    ----------
    path : str or path
        The folder of the data set.
    """
    folder = Path(path)
    header, parts = read_header(folder), _open_parts(folder)
    for name, array in progress.track(sorted(header.arrays.items()), "checking", len(header.arrays)):
        check_array(folder / f"{name}.npy", array)
    as_matrix(parts["X"])  # an infinite feature
    for start in range(0, len(parts["X"]), _BLOCK >> 8) if parts["docid"] is not None else ():
        np.asarray(parts["docid"][start : start + (_BLOCK >> 8)]).tolist()  # an id that is no text


def _open_parts(folder: Path) -> dict[str, Any]:
    """Return the arguments of ``Queries`` of a data set on disk, of which features and document ids are mapped.

    The header and the sizes of all files are checked, and the content of everything else. No code is run.
    """
    header = read_header(folder)
    found: dict[str, Any] = {name: _open_array(folder, name, header) for name in header.arrays}
    found |= {name: None for name in ("y", "docid", "weight", "doc_weight", "source", "position") if name not in found}
    clicks = {name: found.pop(f"clicks_{name}") for name in CLICK_ARRAYS if f"clicks_{name}" in found}
    try:
        found["clicks"] = ClickCounts(**clicks) if clicks else None
    except InputError as error:
        raise InputError(f"{folder}: the files of clicks were damaged: {error}") from None
    for name in ("qid", "docid"):
        if f"{name}_text" in found:
            found[name] = JoinedIds(found.pop(f"{name}_text"), found.pop(f"{name}_indptr"))
    others = [found.pop(f"unretrieved_{name}", None) for name in Unretrieved._fields]
    found["unretrieved"] = None if others[0] is None else Unretrieved(*others)
    found["qid"] = np.asarray(found["qid"])
    return found | {"features": header.features, "categories": header.categories}


def _open_array(folder: Path, name: str, header: MappedHeader) -> NDArray[Any]:
    """Return one array of a data set on disk: mapped if it may be large, else read and checked."""
    path, arrays = folder / f"{name}.npy", header.arrays
    try:
        array = open_array(path, arrays[name], mapped=name in _MAPPED)
    except FileNotFoundError:
        raise InputError(f"{path}: missing; expected the array that {FILE} describes") from None
    sizes = {
        "indptr": arrays["X"].shape[0],
        **{f"{each}_indptr": arrays[f"{each}_text"].shape[0] for each in ("qid", "docid") if f"{each}_text" in arrays},
        **({"unretrieved_indptr": arrays["unretrieved_y"].shape[0]} if "unretrieved_y" in arrays else {}),
    }
    if "clicks_position" in arrays:
        sizes["clicks_indptr"] = arrays["clicks_position"].shape[0]
    try:
        if name == "position":
            check_positions(array, len(array))
        elif name in ("y", "unretrieved_y"):
            as_grades(array, len(array))
        elif name in ("weight", "doc_weight"):
            (as_weights if name == "weight" else as_doc_weights)(array, len(array))
        elif name in sizes:
            _check_places(array, sizes[name], least=int(name == "indptr"))
        elif name == "source":
            _check_permutation(array)
        elif name == "qid" and array.dtype.kind == "U" and array.view(np.uint32).max() > sys.maxunicode:
            raise InputError("expected texts")
    except InputError as error:
        raise InputError(f"{path}: the file was damaged: {error}") from None
    return array


def _restore_clicks(parts: dict[str, Any]) -> ClickCounts | None:
    """Return the clicks of a data set, given as the arguments of ``Queries``, in the caller's order of the rows."""
    clicks: ClickCounts | None = parts["clicks"]
    if clicks is None or parts["source"] is None:
        return clicks
    return clicks.take(np.argsort(parts["source"]), slice(None))


def _check_places(places: Ints, last: int, least: int) -> None:
    """Raise InputError if places do not go from 0 to ``last`` in steps of at least ``least``."""
    if places[0] != 0 or places[-1] != last or np.diff(places).min(initial=least) < least:
        raise InputError(f"expected places from 0 to {last}")


def _check_permutation(places: Ints) -> None:
    """Raise InputError if an array does not have each number from 0 to its length once."""
    seen = np.zeros(len(places), bool)
    inside = places.min() >= 0 and places.max() < len(places)
    if inside:
        seen[places] = True
    if not seen.all():
        raise InputError(f"expected the places of {len(places)} rows")
