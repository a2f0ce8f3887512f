"""Judged documents that no run found: grades without rows."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankwright.basics.array_types import Floats, Ints


class Unretrieved(NamedTuple):
    """The grades of judged documents that no run found: they count in ideal rankings, but are never ranked.

    Parameters
    ----------
    y : array of shape (n_unretrieved,)
        Grades; those of a query are adjacent.
    indptr : array of shape (n_queries + 1,)
        Query ``i`` has the grades ``indptr[i]`` to ``indptr[i + 1]``, perhaps none.
    """

    y: Floats
    indptr: Ints

    def take(self, queries: Ints) -> Unretrieved:
        """Return the grades of the queries at these positions."""
        sizes = np.diff(self.indptr)[queries]
        indptr = np.concatenate([[0], np.cumsum(sizes)])
        return Unretrieved(self.y[np.repeat(self.indptr[queries] - indptr[:-1], sizes) + np.arange(indptr[-1])], indptr)


def join_by_query(rows: tuple[Floats, Ints], others: tuple[Floats, Ints]) -> tuple[Floats, Ints, NDArray[np.bool_]]:
    """Join two sets of values query by query; return the values, their ``indptr`` and which are of the first set."""
    (first, first_indptr), (second, second_indptr) = rows, others
    indptr = first_indptr + second_indptr
    sizes = np.stack([np.diff(first_indptr), np.diff(second_indptr)], axis=1)
    of_first: NDArray[np.bool_] = np.repeat(np.tile([True, False], len(sizes)), sizes.ravel())
    values = np.empty(len(of_first))
    values[of_first], values[~of_first] = first, second
    return values, indptr, of_first
