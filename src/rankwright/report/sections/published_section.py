"""Section on published figures beside ours."""

from __future__ import annotations

from math import isnan

from rankwright.report.blocks import Block, Cell, Column, Grid, Row, Text
from rankwright.report.json_values import Value
from rankwright.report.notation import DIGITS, format_number, format_signed
from rankwright.report.published_tables import (
    CAPTION,
    FAR,
    FigureComparison,
    label_measure,
    list_notes,
    make_fold_table,
    match_published,
)
from rankwright.report.sections.base import Content, ReportSection
from rankwright.report.summary import Summary


def _make_content(summary: Summary) -> Content | None:
    """Make the lead and the blocks of section "Published figures"; return None if there is nothing to show."""
    columns = [
        Column("method"),
        Column("measure"),
        Column("published", DIGITS),
        Column("ours", DIGITS),
        Column("difference", DIGITS, title="ours less the published figure"),
        Column("standard error", DIGITS, title="of ours, over the test queries"),
        Column("source"),
    ]
    rows = [_make_row(summary, figure) for figure in match_published(summary)]
    lead = (
        "Figures that others report on the same folds. The standard error says how far our mean would move on "
        "other queries. On the same queries, two trainings of one method should agree more closely, within "
        f"about {FAR}."
    )
    blocks: list[Block] = [Grid(columns, rows, CAPTION)]
    blocks.extend(Text(note, "note") for note in list_notes(summary))
    folds = make_fold_table(summary)
    if folds is not None:
        names = [Column(name, DIGITS if name.startswith("fold") else None) for name in folds.header]
        blocks.append(Grid(names, [Row([e.value for e in row]) for row in folds.rows], folds.caption))
    return Content(lead, blocks)


def _make_row(summary: Summary, figure: FigureComparison) -> Row:
    """Make the row of a published figure beside ours."""
    measured = not isnan(figure.ours)
    ours = Cell(figure.ours if measured else None, format_number(figure.ours))
    difference = Cell(figure.difference if measured else None, format_signed(figure.difference))
    error = Cell(figure.error if measured else None, format_number(figure.error))
    name = label_measure(summary, figure.measure)
    cells: list[Cell | Value] = [figure.method, name, figure.published, ours, difference, error, figure.source]
    return Row(cells, (figure.method,) if figure.method in summary.methods else ())


PUBLISHED = ReportSection("Published figures", ("published",), _make_content)
