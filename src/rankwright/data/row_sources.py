"""Row sources: documents in files of any format, read at once or in blocks of rows."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankwright.basics.array_types import Floats
from rankwright.basics.errors import InputError
from rankwright.data.grouping import group_rows
from rankwright.data.ids import as_ids, ids_as_text
from rankwright.data.queries import Categories, Queries
from rankwright.runtime.backends import Backend


class RowBlock(NamedTuple):
    """A block of consecutive rows of a data set, in the order of the file; a query may begin or end elsewhere."""

    X: Floats
    y: Floats | None
    qid: NDArray[Any]  # the query id of each row
    docid: NDArray[Any] | None = None
    weight: Floats | None = None  # the weight of each row's query
    doc_weight: Floats | None = None

    def without_features(self) -> RowBlock:
        """Return the block without its features, whose memory can then be freed."""
        return self._replace(X=np.empty((len(self.X), 0), np.float32))


class RowSource(ABC):
    """The documents in one or several files of one format.

    Parameters
    ----------
    features : tuple of str, optional
        The names of the features, if the format has names.
    categories : tuple, optional
        For each feature None or, where it is categorical, its values. Where a format does not list them beforehand they
        are complete only after the last block.
    """

    features: tuple[str, ...] | None = None
    categories: Categories | None = None

    @abstractmethod
    def read(self, backend: Backend | None = None) -> Queries:
        """Read all documents."""

    @abstractmethod
    def read_blocks(self) -> Iterator[RowBlock]:
        """Yield all documents in blocks of bounded size, in the order of the files; all have the same features."""

    def count_queries(self, most: int) -> int:
        """Return the number of queries, or ``most`` if there are at least so many; read no more than that takes."""
        found: set[Any] = set()
        for block in self.read_blocks():
            found.update(block.qid.tolist())
            if len(found) >= most:
                return most
        return len(found)


def join_blocks(blocks: Iterable[RowBlock]) -> Queries:
    """Return the documents of all blocks as one data set; blocks without features make a data set without them."""
    parts = list(blocks)
    if not parts:
        raise InputError("no documents; expected at least one")
    ids, indptr, order = group_rows(_join_ids([part.qid for part in parts]), None, sum(len(p.X) for p in parts))
    columns: dict[str, Any] = {"X": np.concatenate([part.X for part in parts])}
    for name in ("y", "weight", "doc_weight"):
        values = [getattr(part, name) for part in parts]
        columns[name] = None if values[0] is None else np.concatenate(values)
    docid = None
    if any(part.docid is not None for part in parts):
        docid = _join_ids([np.full(len(p.X), "") if p.docid is None else p.docid for p in parts])
    columns["docid"] = docid
    if order is not None:
        columns = {name: None if values is None else values[order] for name, values in columns.items()}
    row_weight = columns.pop("weight")
    weight = None if row_weight is None else row_weight[indptr[:-1]]
    if weight is not None and (row_weight != np.repeat(weight, np.diff(indptr))).any():
        at = int(np.argmax(row_weight != np.repeat(weight, np.diff(indptr))))
        query = ids[int(np.searchsorted(indptr, at, side="right")) - 1]
        raise InputError(
            f"query {query} has different weights; expected one weight per query. Weights of documents are doc_weight "
            "(--doc-weight)"
        )
    return Queries(indptr=indptr, qid=ids, source=order, weight=weight, **columns)


def _join_ids(parts: Sequence[NDArray[Any]]) -> NDArray[Any]:
    """Return the ids of all parts; as texts, if some parts have numbers and others have texts."""
    if len({part.dtype.kind for part in parts}) == 1 and parts[0].dtype.kind != "O":
        return np.concatenate(parts)
    return as_ids([name for part in parts for name in ids_as_text(part).tolist()])
