"""Tables that the reader can sort, filter and copy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

from rankwright.basics.errors import InputError, quote
from rankwright.report.json_values import Json, Value, drop_none, to_plain


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
