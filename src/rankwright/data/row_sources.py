"""Row sources: documents in files of any format, read at once or in blocks of rows."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankwright.basics.array_types import Floats
from rankwright.basics.errors import InputError
from rankwright.basics.files import StrPath
from rankwright.data.categories import Categories
from rankwright.data.click_counts import ClickCounts
from rankwright.data.grouping import as_doc_weights, fold_query_weights, group_rows
from rankwright.data.ids import join_ids
from rankwright.data.queries import Queries
from rankwright.data.unretrieved import Unretrieved
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
    unretrieved : Unretrieved, optional
        The grades of judged documents that no run found, by query in order of first appearance, if the format has them.
    clicks : ClickCounts, optional
        The impressions and clicks of all rows, if the format has them.
    has_grades : bool
        Whether the documents have relevance grades.
    """

    features: tuple[str, ...] | None = None
    unretrieved: Unretrieved | None = None
    clicks: ClickCounts | None = None
    categories: Categories | None = None
    has_grades: bool = True

    def check_grades(self, path: StrPath) -> None:
        """Raise InputError that names the file if the documents have no grades."""
        if not self.has_grades:
            raise InputError(
                f"{path}: no column of grades; expected one, such as 'label', to train or evaluate. Name it with "
                "label= (--label); for converted data, when they are converted"
            )

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


def join_blocks(
    blocks: Iterable[RowBlock],
    X: Floats | None = None,
    features: tuple[str, ...] | None = None,
    categories: Categories | None = None,
) -> Queries:
    """Return the documents of all blocks as one data set; blocks without features make a data set without them.

    Parameters
    ----------
    blocks : iterable of RowBlock
        The blocks, in the order of the rows.
    X : array of shape (n_docs, n_features), optional
        The features of all rows, where those of the blocks are parts of one array already.
    features, categories : tuple, optional
        The names of the features, and the values of those that are categorical.
    """
    parts = list(blocks)
    if not parts:
        raise InputError("no documents; expected at least one")
    columns: dict[str, Any] = {"X": np.concatenate([part.X for part in parts]) if X is None else X}
    ids, indptr, order = group_rows(join_ids([part.qid for part in parts]), None, len(columns["X"]))
    for name in ("y", "weight", "doc_weight"):
        values = [getattr(part, name) for part in parts]
        columns[name] = None if values[0] is None else np.concatenate(values)
    columns["docid"] = None
    if any(part.docid is not None for part in parts):
        columns["docid"] = join_ids([np.full(len(p.X), "") if p.docid is None else p.docid for p in parts])
    if order is not None:
        columns = {name: None if values is None else values[order] for name, values in columns.items()}
    columns["doc_weight"] = as_doc_weights(columns["doc_weight"], len(columns["X"]))
    if columns["weight"] is not None:
        columns["weight"] = fold_query_weights(columns["weight"], indptr, ids)
    return Queries(indptr=indptr, qid=ids, source=order, features=features, categories=categories, **columns)
