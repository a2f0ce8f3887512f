"""Blocks with rows: tables that the reader can sort, filter and copy, and comparisons of two methods query by query."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from rankwright.analysis.significance import EQUAL_WEIGHTS, QueryWeighting, count_wins
from rankwright.basics.array_types import Floats, Ints
from rankwright.basics.errors import InputError, quote
from rankwright.basics.number_texts import format_signed
from rankwright.report.notation import Json, Value, check_names, drop_none, to_plain


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a grid: its heading, and how its numbers are shown.

    Parameters
    ----------
    name : str
        Shown as the heading.
    digits : int, optional
        How many digits numbers have behind the point; ``None`` shows them as they are.
    title : str
        What the heading means, shown when the reader points at it.
    method : str, optional
        The column disappears when the reader hides this method.
    """

    name: str
    digits: int | None = None
    title: str = ""
    method: str | None = None

    def to_json(self) -> Json:
        """Return the attributes that are not the default."""
        return drop_none(name=self.name, digits=self.digits, title=self.title or None, method=self.method)


@dataclass(frozen=True, slots=True)
class Cell:
    """A cell of a grid with more than a value, such as a text to show instead, a mark or a tooltip.

    Parameters
    ----------
    value : number, str or None
        What the column is sorted by; None is missing, and comes last.
    text : str, optional
        Shown instead of the value.
    mark : str
        A sign behind the value: "▲" has the colour of what is better, "▼" of what is worse.
    title : str
        What the mark (or the cell) means, shown when the reader points at it.
    emphasis : {"", "best"}
    """

    value: Value
    text: str | None = None
    mark: str = ""
    title: str = ""
    emphasis: Literal["", "best"] = ""

    def to_json(self) -> Json:
        """Return the value and the attributes that are not the default."""
        extras = drop_none(
            text=self.text, mark=self.mark or None, title=self.title or None, emphasis=self.emphasis or None
        )
        return {"value": to_plain(self.value), **extras}


@dataclass(frozen=True, slots=True)
class Row:
    """A row of a grid: its cells, and the methods that it belongs to.

    Parameters
    ----------
    cells : sequence of cells, numbers, str or None
        One per column.
    methods : tuple of str
        The row disappears when the reader hides one of these; if it has one, it is marked with that method's colour.
        If all rows have two, which are then in the first two columns, these stay in sight.
    """

    cells: Sequence[Cell | Value]
    methods: tuple[str, ...] = ()

    def to_json(self) -> Json:
        """Return the cells, bare where they are values, and the methods."""
        cells = [cell.to_json() if isinstance(cell, Cell) else to_plain(cell) for cell in self.cells]
        return drop_none(cells=cells, methods=list(self.methods) or None)


@dataclass(frozen=True, slots=True)
class Grid:
    """A block with a table that the reader can sort by every column, filter and copy.

    Parameters
    ----------
    columns : sequence of Column
    rows : sequence of Row
    caption : str
        What the reader sees.
    note : str
        Below the table: what the marks mean.

    Examples
    --------
    >>> grid = Grid([Column("method"), Column("map", digits=4)], [Row(["AdaRank", 0.5])], "Means")
    >>> grid.to_json()["rows"]
    [{'cells': ['AdaRank', 0.5]}]
    """

    columns: Sequence[Column]
    rows: Sequence[Row]
    caption: str
    note: str = ""
    kind: ClassVar[str] = "grid"

    def __post_init__(self) -> None:
        for number, row in enumerate(self.rows):
            if len(row.cells) != len(self.columns):
                raise InputError(
                    f"row {number} of {quote(self.caption)} has {len(row.cells)} cells; "
                    f"there are {len(self.columns)} columns"
                )

    @property
    def mentioned(self) -> frozenset[str]:
        """The methods of the rows and of the columns."""
        columns = {column.method for column in self.columns if column.method is not None}
        return frozenset(columns.union(*(row.methods for row in self.rows)))

    def to_json(self) -> Json:
        """Return columns, rows, caption and note."""
        return {
            "kind": self.kind,
            "columns": [column.to_json() for column in self.columns],
            "rows": [row.to_json() for row in self.rows],
            "caption": self.caption,
            "note": self.note,
        }


_SCALE = 1_000_000  # the page has values as integers, in millionths


@dataclass(frozen=True, slots=True, eq=False)
class DuelDocuments:
    """The documents of one query: their ids, their grades, and the rank that each method gives them.

    Parameters
    ----------
    ids : sequence of str
    grades : array of shape (n_docs,)
    ranks : array of shape (n_methods, n_docs)
        Counted from 1; 0 where a method has no ranking.
    """

    ids: Sequence[str]
    grades: Floats
    ranks: Ints

    def __post_init__(self) -> None:
        if np.shape(self.grades) != (len(self.ids),) or np.shape(self.ranks)[1:] != (len(self.ids),):
            raise InputError(
                f"grades of shape {np.shape(self.grades)} and ranks of shape {np.shape(self.ranks)} for "
                f"{len(self.ids)} documents; expected (n_docs,) and (n_methods, n_docs)"
            )

    def to_json(self) -> Json:
        """Return ids, grades and a list of ranks for each method."""
        return {"ids": list(self.ids), "grades": to_plain(self.grades), "ranks": to_plain(self.ranks)}


@dataclass(frozen=True, slots=True, eq=False)
class DuelQuery:
    """A query of a duel, with its name and fold; it may come without its documents, to keep the page small."""

    qid: str
    fold: str
    n_docs: int
    documents: DuelDocuments | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Duel:
    """A block that compares any two methods: wins and losses query by query, down to the documents.

    Parameters
    ----------
    methods : tuple of str
    measures : tuple of str
        Higher is better in all of them.
    queries : sequence of DuelQuery
    values : array of shape (n_measures, n_methods, n_queries)
        NaN where there is none. Values travel in millionths, and the page shows four digits; means and counts of wins
        are of the values in full.
    caption : str
        What the reader sees.
    without_documents : str
        Shown for a query without documents: why.
    start : (str, str), optional
        The two methods that the reader sees first; the first two where there is none.
    weighting : QueryWeighting
        How the queries count in the mean of a difference; all alike where nothing is said.
    """

    methods: tuple[str, ...]
    measures: tuple[str, ...]
    queries: Sequence[DuelQuery]
    values: Floats
    caption: str
    without_documents: str = "The documents of this query are not on this page."
    start: tuple[str, str] | None = None
    weighting: QueryWeighting = EQUAL_WEIGHTS
    kind: ClassVar[str] = "duel"

    def __post_init__(self) -> None:
        check_names(self.methods, "method of a duel")
        check_names(self.measures, "measure of a duel")
        expected = (len(self.measures), len(self.methods), len(self.queries))
        if np.shape(self.values) != expected:
            raise InputError(
                f"values of shape {np.shape(self.values)}; expected (measures, methods, queries) = {expected}"
            )
        if self.start is not None:
            _check_start(self.start, self.methods)
        for query in self.queries:
            if query.documents is not None and len(query.documents.ranks) != len(self.methods):
                raise InputError(
                    f"query {quote(query.qid)} has ranks by {len(query.documents.ranks)} methods; "
                    f"expected {len(self.methods)}"
                )

    @property
    def mentioned(self) -> frozenset[str]:
        """The methods that can be compared."""
        return frozenset(self.methods)

    def to_json(self) -> Json:
        """Return queries by column; values by measure and method, in whole numbers of 1 / ``scale``.

        ``tallies`` has, by measure and two methods, the second's wins, ties, losses, and its mean difference as text.
        """
        scaled = np.round(np.asarray(self.values, dtype=np.float64) * _SCALE)
        documents = [query.documents.to_json() if query.documents else None for query in self.queries]
        return {
            "kind": self.kind,
            "methods": list(self.methods),
            "measures": list(self.measures),
            "qid": [str(query.qid) for query in self.queries],
            "fold": [str(query.fold) for query in self.queries],
            "n_docs": [int(query.n_docs) for query in self.queries],
            "scale": _SCALE,
            "values": to_plain(scaled),
            "tallies": [[self._tallies(own, row) for row in range(len(own))] for own in self.values],
            "documents": documents,
            "caption": self.caption,
            "without_documents": self.without_documents,
            "start": self._start(),
        }

    def _tallies(self, values: Floats, one: int) -> list[list[int | str]]:
        """Return wins, ties, losses and mean difference of one method against every other under a measure."""
        found = [count_wins(values[one], other, self.weighting) for other in values]
        return [[each.wins, each.ties, each.losses, format_signed(each.difference)] for each in found]

    def _start(self) -> list[int]:
        """Return where the first pair stands among the methods; a method alone meets itself."""
        if self.start is None:
            return [0, min(1, len(self.methods) - 1)]
        return [self.methods.index(name) for name in self.start]


def _check_start(start: tuple[str, str], methods: tuple[str, ...]) -> None:
    """Raise InputError unless the duel starts with two different methods of its own."""
    if len(start) != 2 or start[0] == start[1]:
        raise InputError(f"a duel that starts with {quote(start)}; expected two different methods")
    for name in start:
        if name not in methods:
            raise InputError(f"a duel that starts with {quote(name)}, which is none of its methods")
