"""Row sources: documents in files of any format, read at once or in blocks of rows."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any, NamedTuple

from numpy.typing import NDArray

from rankwright.basics.array_types import Floats
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
