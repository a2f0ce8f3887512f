"""Group files: label-first text as LightGBM and XGBoost read it, with the sizes of the queries in a file beside it."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np

from rankwright.basics.array_types import Floats, Ints
from rankwright.basics.errors import IgnoredFileWarning, InputError, make_printable, quote, warn
from rankwright.basics.files import parse_decimals, skip_byte_order_mark
from rankwright.data.group_lines import LINE_FORMATS, LabelFirstText
from rankwright.data.queries import Queries
from rankwright.data.row_sources import RowBlock, RowSource, join_blocks
from rankwright.data.table_texts import read_head
from rankwright.runtime.backends import Backend

_SIZES = (".query", ".group")
_IGNORED = {".init": "initial scores", ".position": "positions", ".base_margin": "initial scores"}
_NUMBER = rb"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?"
_SPARSE_LINE = re.compile(rb"\s*" + _NUMBER + rb"(\s+\d+:\S+)*\s*(#.*)?$")
_DENSE_LINE = re.compile(rb"\s*" + _NUMBER + rb"\s*[,\t]\s*([-+.\w]*\s*[,\t]\s*)*[-+.\w]*\s*$")
_logger = logging.getLogger("rankwright")


class _GroupFile(NamedTuple):
    """A file of label-first text with the facts that files beside it have."""

    text: LabelFirstText
    sizes: Ints  # the number of documents of each query
    weight: Floats | None  # of each query
    doc_weight: Floats | None


def find_group_file(path: Path) -> Path | None:
    """Return the file of query sizes beside a file of label-first text, ``NAME.query`` or ``NAME.group``, if any.

    Where the text has query ids or a header, such a file has no meaning: a warning says that it is ignored.
    """
    found = [_find_beside(path, suffix) for suffix in _SIZES]
    known = [file for file in found if file is not None]
    if not known:
        return None
    if len(known) > 1 and read_sizes(known[0]).tolist() != read_sizes(known[1]).tolist():
        raise InputError(f"{known[0]} and {known[1]} differ; expected the sizes of the queries in one of them")
    if _find_line_format(path) is None:
        warn(
            f"{known[0]} is ignored: {path} has query ids or a header of its own. Remove them to use the file",
            IgnoredFileWarning,
        )
        return None
    return known[0]


def check_all_groups(paths: Sequence[Path], groups: Sequence[Path | None]) -> list[Path]:
    """Return the files of query sizes; raise InputError if one of the files has none."""
    for path, group in zip(paths, groups, strict=True):
        if group is None:
            raise InputError(f"{path}: no file of query sizes ({path.name}.query), which the other files have")
    return [group for group in groups if group is not None]


def list_files_beside(path: Path) -> list[Path]:
    """Return the files of query sizes and weights beside a file."""
    found = [_find_beside(path, suffix) for suffix in (*_SIZES, ".weight")]
    return [file for file in found if file is not None]


def _find_beside(path: Path, suffix: str) -> Path | None:
    """Return the file with a suffix beside a file; the name of a compressed file counts without its last part too."""
    names = [path.name] + ([path.stem] if path.suffix in (".gz", ".xz", ".zst") else [])
    files = (path.with_name(name + suffix) for name in names)
    return next((file for file in files if file.is_file()), None)


def _find_line_format(path: Path) -> str | None:
    """Return how the lines of a label-first text are written; None if they have query ids or a header."""
    lines = skip_byte_order_mark(read_head(path)).splitlines()
    line = next((line for line in lines if line.strip() and not line.startswith(b"#")), b"")
    if _SPARSE_LINE.match(line):
        return "sparse"
    return "dense" if _DENSE_LINE.match(line) else None


def read_sizes(path: Path) -> Ints:
    """Read a file of query sizes, one per line; raise InputError for the first line that is none."""
    sizes = []
    for number, line in _read_numbered_lines(path):
        if not (line.isascii() and line.isdecimal() and 0 < int(line) < 1 << 40):
            raise InputError(f"{path}:{number}: found {quote(line)}; expected the size of a query, at least 1")
        sizes.append(int(line))
    if not sizes:
        raise InputError(f"{path}: empty; expected the size of a query per line")
    return np.array(sizes, np.int64)


def _read_weights(path: Path, sizes: Ints) -> tuple[Floats | None, Floats | None]:
    """Read a file of weights; return those of queries (XGBoost) and those of documents (LightGBM), one of them None."""
    weights = []
    for number, line in _read_numbered_lines(path):
        try:
            [value] = parse_decimals([line])
        except ValueError:
            value = np.nan
        if not 0 <= value < np.inf:
            raise InputError(f"{path}:{number}: found {quote(line)}; expected a weight of at least 0")
        weights.append(value)
    if len(weights) == len(sizes):
        return np.array(weights), None
    if len(weights) == sizes.sum():
        return None, np.array(weights)
    counts = f"{len(sizes)} (one per query) or {sizes.sum()} (one per document)"
    raise InputError(f"{path}: {len(weights)} weights; expected {counts}")


def _read_numbered_lines(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the lines of a small file that are not blank, with their numbers."""
    text = skip_byte_order_mark(path.read_bytes()).decode("utf-8", "backslashreplace")
    for number, line in enumerate(text.splitlines(), 1):
        if line.strip():
            yield number, line.strip()


class GroupSource(RowSource):
    """The documents in files of label-first text, with the sizes of their queries in files beside them.

    Queries are numbered from 1, over all files. A feature of ``label index:value`` text is called by its index, which
    counts from 0 as in LightGBM and XGBoost: nothing is ever shifted. Columns of separated text have no names.

    Parameters
    ----------
    paths : sequence of path
        The files.
    groups : sequence of path
        For each of them the file of query sizes.
    n_features : int, optional
        The number of features of a model without names: the features "1", "2", ... of text with indices.
    features : sequence of str, optional
        The features of a model, for text with indices.
    zero_based : bool
        Whether a model without names was trained on such text: its columns are the indices, from 0. Where the text has
        one index more than the model has columns, index 0 is left out: the model was trained on arrays without it.
    """

    def __init__(
        self,
        paths: Sequence[Path],
        groups: Sequence[Path],
        n_features: int | None,
        features: Sequence[str] | None,
        zero_based: bool = False,
    ) -> None:
        formats = [_find_line_format(path) or "sparse" for path in paths]
        texts = [LINE_FORMATS[name](path) for name, path in zip(formats, paths, strict=True)]
        self.files = [_open_group_file(text, group) for text, group in zip(texts, groups, strict=True)]
        for one, other in pairwise(self.files):
            if type(one.text) is not type(other.text):
                raise InputError(f"{one.text.path} and {other.text.path} are written differently; expected one format")
            if ((one.weight is None), (one.doc_weight is None)) != (other.weight is None, other.doc_weight is None):
                raise InputError(f"{one.text.path} and {other.text.path} do not both have weights of one kind")
        width = max(file.text.width for file in self.files)
        self.features, self._columns = texts[0].choose_features(width, n_features, features, zero_based)
        for file, group in zip(self.files, groups, strict=True):
            weights = "" if file.weight is None else ", query weights"
            weights = weights if file.doc_weight is None else ", document weights"
            _logger.info(
                "%s", make_printable(f"{file.text.path}: queries of {group.name}{weights}, {file.text.indices}")
            )

    def read(self, backend: Backend | None = None) -> Queries:
        """Read all files as one data set."""
        return join_blocks(self.read_blocks()).replace(features=self.features)

    def read_blocks(self) -> Iterator[RowBlock]:
        """Yield the documents of all files in blocks."""
        first_query = 0
        for file in self.files:
            ends = np.cumsum(file.sizes)
            row = 0
            for X, y, docid in file.text.read_blocks(self._columns):
                rows = np.arange(row, row + len(y))
                query = np.searchsorted(ends, rows, side="right")
                weight = None if file.weight is None else file.weight[query]
                doc_weight = None if file.doc_weight is None else file.doc_weight[rows]
                yield RowBlock(X, y, first_query + query + 1, docid, weight, doc_weight)
                row += len(y)
            first_query += len(ends)


def _open_group_file(text: LabelFirstText, group: Path) -> _GroupFile:
    """Return a file with the facts of the files beside it; raise InputError if their numbers do not fit."""
    sizes = read_sizes(group)
    if sizes.sum() != text.n_rows:
        raise InputError(f"{group}: the sizes add up to {sizes.sum()}; {text.path} has {text.n_rows} documents")
    for suffix, what in _IGNORED.items():
        if (other := _find_beside(text.path, suffix)) is not None:
            warn(f"{other} is ignored: {what} have no meaning here", IgnoredFileWarning)
    weights = _find_beside(text.path, ".weight")
    return _GroupFile(text, sizes, *((None, None) if weights is None else _read_weights(weights, sizes)))
