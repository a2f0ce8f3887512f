"""Small tables as aligned columns of text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rankwright.basics.errors import make_printable


@dataclass(frozen=True, slots=True)
class Entry:
    """A cell of a text table: its value, its text, whether it is the best of its column, and a mark behind it.

    Parameters
    ----------
    value : number or str
        What CSV has, in full; NaN is missing.
    text : str
        What people read.
    best : bool
    mark : str
        A sign that the table's note explains, such as "▼".
    """

    value: float | int | str
    text: str
    best: bool = False
    mark: str = ""


@dataclass(frozen=True, slots=True)
class TextTable:
    """A small table with header, rows, caption and note; columns of numbers are aligned to the right.

    Parameters
    ----------
    header : sequence of str
    rows : sequence of sequences of Entry
    caption : str
        What the reader sees.
    note : str
        What the marks mean.

    Examples
    --------
    >>> table = TextTable(["method", "map"], [[Entry("A", "A"), Entry(0.5, "0.50", best=True)]], "Means.")
    >>> print(format_aligned(table))
    Means.
    <BLANKLINE>
    method    map
    A       0.50*
    <BLANKLINE>
    * the best of its column.
    """

    header: Sequence[str]
    rows: Sequence[Sequence[Entry]]
    caption: str
    note: str = ""

    @property
    def numeric(self) -> list[bool]:
        """A flag per column: whether it holds numbers only."""
        columns = [[row[i] for row in self.rows] for i in range(len(self.header))]
        return [all(not isinstance(entry.value, str) for entry in column) for column in columns]


def format_aligned(table: TextTable) -> str:
    """Return a table as aligned columns for a terminal; the best of a column has a star."""
    columns = [
        _align(name, [row[i] for row in table.rows], numeric)
        for i, (name, numeric) in enumerate(zip(table.header, table.numeric, strict=True))
    ]
    lines = "\n".join("  ".join(cells).rstrip() for cells in zip(*columns, strict=True))
    best = "* the best of its column." if any(entry.best for row in table.rows for entry in row) else ""
    return "\n\n".join(filter(None, [make_printable(table.caption), lines, " ".join(filter(None, [best, table.note]))]))


def _align(name: str, entries: Sequence[Entry], numeric: bool) -> list[str]:
    """Return a column's heading and cells padded to one width; marks are padded too, so that digits align."""
    signs = [("*" if entry.best else "") + entry.mark for entry in entries]
    room = max(map(len, signs), default=0)
    cells = [
        make_printable(name),
        *(make_printable(entry.text) + sign.ljust(room) for entry, sign in zip(entries, signs, strict=True)),
    ]
    width = max(map(len, cells))
    return [cell.rjust(width) if numeric else cell.ljust(width) for cell in cells]
