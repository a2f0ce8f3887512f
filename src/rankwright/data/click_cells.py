"""Cells of a click log: impressions and clicks by query, document, position, ranker and shuffled group."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankwright.basics.array_types import Floats, Ints

_WIDEST_KEY = 1 << 62


class ClickCells(NamedTuple):
    """A table of impressions and clicks, an element of each array per cell; ids are numbers of its maker."""

    query: Ints
    doc: Ints
    position: Ints  # from 1
    ranker: Ints  # the number of the ranker that made the list; 0 where none is known
    group: Ints  # the number of the group of positions whose documents were in random order; 0 where none were
    n_shown: Ints
    n_clicked: Ints

    def take(self, rows: Ints) -> ClickCells:
        """Return the cells at these places."""
        return ClickCells(*(values[rows] for values in self))


def make_cells(
    query: Ints, doc: Ints, position: Ints, ranker: Ints | None, group: Ints | None, n_shown: Ints, n_clicked: Ints
) -> ClickCells:
    """Return cells of arrays, the ranker and the group being 0 where they are not known; equal keys may repeat."""
    zeros = np.zeros(len(query), np.int64)
    return ClickCells(
        query, doc, position, zeros if ranker is None else ranker, zeros if group is None else group, n_shown, n_clicked
    )


def join_cells(parts: Sequence[ClickCells]) -> ClickCells:
    """Return the cells of all parts, those of equal keys added up, in the order of their keys."""
    cells = ClickCells(*map(np.concatenate, zip(*parts, strict=True))) if len(parts) > 1 else parts[0]
    return add_up_cells(cells)


def add_up_cells(cells: ClickCells) -> ClickCells:
    """Return cells of which those of equal keys are added up, in the order of their keys.

    >>> one = np.ones(3, np.int64)
    >>> cells = make_cells(one, np.array([7, 5, 7]), one, None, None, one, np.array([1, 0, 0]))
    >>> added = add_up_cells(cells)
    >>> added.doc.tolist(), added.n_shown.tolist(), added.n_clicked.tolist()
    ([5, 7], [1, 2], [0, 1])
    """
    if not len(cells.query):
        return cells
    order, is_first = _sort_keys(cells[:5])
    starts = np.flatnonzero(is_first)
    first = order[starts]
    sums = (np.add.reduceat(values[order], starts) for values in (cells.n_shown, cells.n_clicked))
    return ClickCells(*(values[first] for values in cells[:5]), *sums)


def _sort_keys(columns: Sequence[Ints]) -> tuple[Ints, Ints]:
    """Return the stable order of rows by these columns, and which rows of that order begin a new key."""
    key, size = columns[0].astype(np.int64), int(columns[0].max()) + 1
    keys = [key]
    for column in columns[1:]:
        width = int(column.max()) + 1
        if size > _WIDEST_KEY // width:  # the numbers of all keys do not fit into one integer: sort by several
            keys.append(column.astype(np.int64))
            size = width
        else:
            keys[-1] = keys[-1] * width + column
            size *= width
    order = np.argsort(keys[0], kind="stable") if len(keys) == 1 else np.lexsort(keys[::-1])
    is_first = np.ones(len(order), bool)
    ordered = [each[order] for each in keys]
    is_first[1:] = np.logical_or.reduce([each[1:] != each[:-1] for each in ordered])
    return order, is_first


def sum_by(index: Ints, values: NDArray[Any], size: int) -> Floats:
    """Return the sums of values with the same index, for each index below ``size``."""
    return np.asarray(np.bincount(index, weights=values, minlength=size), dtype=np.float64)
