"""Published figures beside ours."""

from __future__ import annotations

import json
from dataclasses import dataclass
from math import isnan, nan

from rankwright.basics.aligned_tables import Entry, TextTable
from rankwright.basics.number_texts import DIGITS, format_number, format_signed
from rankwright.report.blocks import Block, Cell, Column, Grid, Row, Text
from rankwright.report.notation import Value
from rankwright.report.sections.base import Content, ReportSection
from rankwright.report.summary import Summary

FAR = 0.01  # a larger difference needs an explanation

CAPTION = "Published figures and ours: the difference, and the standard error of ours over the test queries."


@dataclass(frozen=True, slots=True)
class FigureComparison:
    """A published figure beside ours; ours is NaN if the method was not run or the measure not computed."""

    method: str
    measure: str
    published: float
    ours: float
    error: float
    lowest: float
    source: str
    note: str
    by_fold: tuple[float, ...] = ()  # the published figures of the folds

    @property
    def difference(self) -> float:
        """The difference of our figure and the published one."""
        return self.ours - self.published

    @property
    def far(self) -> bool:
        """Whether the difference asks for an explanation."""
        return abs(self.difference) > FAR

    @property
    def reached(self) -> bool:
        """Whether ours is where it must be; true where nothing is said."""
        return not self.ours < self.lowest


def match_published(summary: Summary) -> list[FigureComparison]:
    """Return each published figure of the experiment's spec beside our own figure."""
    table = summary.table("published")
    found = []
    for row in range(len(table.get("method", ()))):
        method, measure = str(table["method"][row]), str(table["measure"][row])
        ours = error = nan
        if method in summary.methods and measure in summary.measures:
            at = summary.methods.index(method)
            ours, error = float(summary.results.means(measure)[at]), float(summary.results.errors(measure)[at])
        value, lowest = float(table["value"][row]), float(table["lowest"][row])
        source, note = str(table["source"][row]), str(table["note"][row])
        folds = tuple(json.loads(table["by_fold"][row])) if "by_fold" in table else ()
        found.append(FigureComparison(method, measure, value, ours, error, lowest, source, note, folds))
    return found


def make_published_table(summary: Summary) -> TextTable:
    """Make the table of the published figures beside ours."""
    rows = []
    for figure in match_published(summary):
        missing = isnan(figure.ours)
        rows.append(
            [
                Entry(figure.method, figure.method),
                Entry(label_measure(summary, figure.measure), label_measure(summary, figure.measure)),
                Entry(figure.published, format_number(figure.published)),
                Entry(figure.ours, "" if missing else format_number(figure.ours)),
                Entry(figure.difference, "" if missing else format_signed(figure.difference)),
                Entry(figure.error, "" if missing else format_number(figure.error)),
                Entry(figure.source, figure.source),
            ]
        )
    header = ["method", "measure", "published", "ours", "difference", "standard error", "source"]
    return TextTable(header, rows, CAPTION)


def make_fold_table(summary: Summary) -> TextTable | None:
    """Make the table of published figures of single folds, each above ours; return None if none are published."""
    rows = []
    for figure in match_published(summary):
        if len(figure.by_fold) == len(summary.results.folds) and not isnan(figure.ours):
            ours = summary.results.fold_means(figure.measure)[summary.methods.index(figure.method)].tolist()
            for who, values in (("published", figure.by_fold), ("ours", ours)):
                entries = [Entry(text, text) for text in (figure.method, label_measure(summary, figure.measure), who)]
                rows.append([*entries, *(Entry(value, format_number(value)) for value in values)])
    if not rows:
        return None
    header = ["method", "measure", "whose", *(f"fold {fold}" for fold in summary.results.folds)]
    return TextTable(header, rows, "Published figures of single folds and ours.")


def list_notes(summary: Summary) -> list[str]:
    """Return the explanations of those of our figures that are far from the published ones."""
    return [
        f"{figure.method}, {label_measure(summary, figure.measure)} ({format_signed(figure.difference)}): {figure.note}"
        for figure in match_published(summary)
        if figure.far and figure.note
    ]


def label_measure(summary: Summary, measure: str) -> str:
    """Return the short label of a measure, or its full name if the experiment did not compute it."""
    return summary.labels.get(measure, measure)


def _make_content(summary: Summary) -> Content | None:
    """Make the lead and the blocks of the section; return None if there is nothing to show."""
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


PUBLISHED = ReportSection("Do published figures agree?", ("published",), _make_content)
