"""Click counts: how often each document was shown and clicked at each position, of the rows of a data set."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from rankwright.basics.array_types import Floats, Ints
from rankwright.basics.errors import InputError

CLICK_ARRAYS = ("indptr", "position", "n_shown", "n_clicked", "n_lists", "examination")


@dataclass(frozen=True, slots=True, eq=False)
class ClickCounts:
    """The impressions and clicks of each document by position, for the rows of a ``Queries``.

    A cell is a document at a position: it was shown there ``n_shown`` times, and in ``n_clicked`` of them it was
    clicked. ``rankwright.read_clicks`` makes these counts of a click log.

    Parameters
    ----------
    indptr : array of shape (n_docs + 1,)
        Document ``i`` owns the cells ``indptr[i]`` to ``indptr[i + 1]``, perhaps none.
    position : array of shape (n_cells,)
        The position of each cell, from 1.
    n_shown : array of shape (n_cells,)
        Impressions of the document at the position.
    n_clicked : array of shape (n_cells,)
        Those of them in which the document was clicked.
    n_lists : array of shape (n_queries,)
        Result lists that were shown for each query.
    examination : array of shape (n_positions,)
        The probability that a user looks at position 1, 2, and so on; or its ratio to that of position 1.

    Examples
    --------
    >>> counts = ClickCounts([0, 1, 3], [1, 2, 1], [90, 90, 10], [30, 6, 5], [100], [1.0, 0.5])
    >>> counts
    ClickCounts(2 documents, 190 impressions, 41 clicks)
    """

    indptr: Ints
    position: Ints
    n_shown: Floats
    n_clicked: Floats
    n_lists: Floats
    examination: Floats

    def __post_init__(self) -> None:
        for name in ("indptr", "position"):
            object.__setattr__(self, name, _convert_integers(getattr(self, name), name))
        for name in ("n_shown", "n_clicked", "n_lists", "examination"):
            object.__setattr__(self, name, _convert_counts(getattr(self, name), name))
        ends = self.indptr
        if len(ends) < 1 or ends[0] != 0 or (np.diff(ends) < 0).any():
            raise InputError("clicks: indptr does not rise from 0; expected the first cell of each document")
        for name in ("position", "n_shown", "n_clicked"):
            if len(getattr(self, name)) != ends[-1]:
                raise InputError(f"clicks: {len(getattr(self, name))} values of {name}; indptr has {ends[-1]} cells")
        if (self.position < 1).any():
            raise InputError(f"clicks: position {self.position.min()}; positions count from 1")
        if (self.n_clicked > self.n_shown).any():
            cell = int(np.argmax(self.n_clicked > self.n_shown))
            raise InputError(
                f"clicks: {self.n_clicked[cell]:g} clicks in {self.n_shown[cell]:g} impressions of a document; "
                "expected the number of impressions in which it was clicked"
            )

    def __repr__(self) -> str:
        shown, clicked = self.n_shown.sum(), self.n_clicked.sum()
        return f"ClickCounts({self.n_docs} documents, {shown:.0f} impressions, {clicked:.0f} clicks)"

    @property
    def n_docs(self) -> int:
        """The number of documents."""
        return len(self.indptr) - 1

    @property
    def cell_docs(self) -> Ints:
        """The document of each cell."""
        return np.repeat(np.arange(self.n_docs), np.diff(self.indptr))

    def sum_by_doc(self, cells: Floats) -> Floats:
        """Return the sum of a value per cell over the cells of each document; 0 for a document without cells."""
        return np.bincount(self.cell_docs, weights=cells, minlength=self.n_docs).astype(np.float64)

    def with_examination(self, examination: Any) -> ClickCounts:
        """Return the same counts with other probabilities that a position is looked at."""
        return replace(self, examination=examination)

    def take(self, rows: Any, queries: Any) -> ClickCounts:
        """Return the counts of these documents and these queries, given as numbers, flags or slices.

        >>> counts = ClickCounts([0, 1, 3], [1, 2, 1], [90, 90, 10], [30, 6, 5], [100], [1.0, 0.5])
        >>> counts.take([1], [0]).n_clicked.tolist()
        [6.0, 5.0]
        """
        if isinstance(rows, slice) and rows.step is None:
            ends = self.indptr[rows.start or 0 : None if rows.stop is None else rows.stop + 1]
            own = slice(int(ends[0]), int(ends[-1]))
            parts = self.position[own], self.n_shown[own], self.n_clicked[own]
            return ClickCounts(ends - ends[0], *parts, self.n_lists[queries], self.examination)
        chosen = np.arange(self.n_docs)[rows]
        sizes = np.diff(self.indptr)[chosen]
        indptr = np.concatenate([[0], np.cumsum(sizes)])
        cells = np.repeat(self.indptr[chosen] - indptr[:-1], sizes) + np.arange(indptr[-1])
        values = self.position[cells], self.n_shown[cells], self.n_clicked[cells]
        return ClickCounts(indptr, *values, self.n_lists[queries], self.examination)


def check_clicks(clicks: ClickCounts | None, n_docs: int, n_queries: int) -> ClickCounts | None:
    """Return click counts if they are of so many documents and queries; raise InputError otherwise."""
    if clicks is None:
        return None
    if not isinstance(clicks, ClickCounts):
        raise InputError(f"clicks={type(clicks).__name__}; expected ClickCounts, which rw.read_clicks makes of a log")
    if clicks.n_docs != n_docs:
        raise InputError(f"clicks are of {clicks.n_docs} documents; X has {n_docs} rows")
    if len(clicks.n_lists) != n_queries:
        raise InputError(f"clicks have n_lists of {len(clicks.n_lists)} queries; there are {n_queries} queries")
    return clicks


def check_positions(position: Any, n_docs: int) -> Ints | None:
    """Return the position at which each row was shown as integers; raise InputError if one is not from 1."""
    if position is None:
        return None
    positions = _convert_integers(position, "position")
    if positions.shape != (n_docs,):
        raise InputError(f"position has shape {positions.shape}; X has {n_docs} rows")
    if (positions < 1).any():
        raise InputError(f"position[{int(np.argmax(positions < 1))}] is {positions.min()}; positions count from 1")
    return positions


def join_clicks(parts: Sequence[ClickCounts | None]) -> ClickCounts | None:
    """Return the counts of several data sets as one; None if none has any."""
    known = [part for part in parts if part is not None]
    if not known:
        return None
    if len(known) < len(parts):
        raise InputError("some of the data sets have clicks and others have none; expected the same in each")
    first = known[0]
    if any(not np.array_equal(part.examination, first.examination) for part in known):
        raise InputError("the data sets have different examination probabilities; set them with with_examination()")
    ends = np.cumsum([0, *(part.indptr[-1] for part in known)])
    indptr = np.concatenate([[0], *(part.indptr[1:] + end for part, end in zip(known, ends, strict=False))])
    return ClickCounts(
        indptr,
        np.concatenate([part.position for part in known]),
        np.concatenate([part.n_shown for part in known]),
        np.concatenate([part.n_clicked for part in known]),
        np.concatenate([part.n_lists for part in known]),
        first.examination,
    )


def _convert_integers(values: Any, name: str) -> Ints:
    """Return whole numbers as an array; raise InputError for others."""
    found = np.asarray(values)
    if found.ndim != 1 or found.dtype.kind not in "iuf" or (found.dtype.kind == "f" and (found % 1 != 0).any()):
        raise InputError(f"{name}: expected a list of whole numbers")
    return found.astype(np.int64, copy=False)


def _convert_counts(values: Any, name: str) -> Floats:
    """Return finite numbers of at least 0 as an array; raise InputError for others."""
    try:
        found = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(f"clicks: {name} is not numeric") from None
    if found.ndim != 1 or not (np.isfinite(found).all() and (found >= 0).all()):
        raise InputError(f"clicks: {name} has a wrong value; expected a list of finite numbers of at least 0")
    return found
