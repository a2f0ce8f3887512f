"""HTML for notebooks: tables and text without scripts and colours, which follow the notebook's theme."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from math import isfinite

from rankwright.basics.errors import make_printable

Cell = str | int | float


class NotebookText:
    """A base of results that a notebook shows as the text that ``print`` shows."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        return f"<pre>{escape_html(str(self), keep=chr(10))}</pre>"


def format_html_table(title: str, header: Sequence[str], rows: Iterable[Sequence[Cell]], note: str = "") -> str:
    """Return a table as HTML: numbers with four decimals to the right, texts escaped and to the left.

    >>> print(format_html_table("Means <all>", ["measure", "mean"], [["map", 0.51234]]))
    <div><p><strong>Means &lt;all&gt;</strong></p>
    <table><thead><tr><th style="text-align: left">measure</th><th style="text-align: right">mean</th></tr></thead>
    <tbody>
    <tr><td style="text-align: left">map</td><td style="text-align: right">0.5123</td></tr>
    </tbody></table></div>
    """
    body = [list(row) for row in rows]
    sides = ["left" if any(isinstance(row[at], str) for row in body) else "right" for at in range(len(header))]
    lines = [f"<div><p><strong>{escape_html(title)}</strong></p>"]
    lines.append(f"<table><thead>{_format_row('th', header, sides)}</thead>" if any(header) else "<table>")
    lines += ["<tbody>", *(_format_row("td", list(map(_format_cell, row)), sides) for row in body), "</tbody></table>"]
    lines[-1] += f"<p>{escape_html(note)}</p></div>" if note else "</div>"
    return "\n".join(lines)


def escape_html(text: str, keep: str = "") -> str:
    """Return a text escaped for HTML; control characters are made visible, but for those in ``keep``."""
    return escape(make_printable(text, keep=keep))


def _format_row(tag: str, cells: Sequence[str], sides: Sequence[str]) -> str:
    """Return a row of a table as HTML."""
    parts = zip(cells, sides, strict=True)
    inside = "".join(f'<{tag} style="text-align: {side}">{escape_html(cell)}</{tag}>' for cell, side in parts)
    return f"<tr>{inside}</tr>"


def _format_cell(value: Cell) -> str:
    """Return a cell as text: a whole number with thousands separated, another with four decimals, a dash for NaN."""
    if isinstance(value, str):
        return value
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:.4f}" if isfinite(value) else "\N{EN DASH}"
