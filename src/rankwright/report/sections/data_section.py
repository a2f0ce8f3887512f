"""Section on the data: sizes, grades and missing values of the parts of all folds."""

from __future__ import annotations

import json

import numpy as np

from rankwright.analysis.results import Table
from rankwright.report.blocks import Cell, Column, Grid, Row
from rankwright.report.chosen_runs import select_rows
from rankwright.report.notation import Value, format_count
from rankwright.report.sections.base import Content, ReportSection
from rankwright.report.summary import Summary


def _make_content(summary: Summary) -> Content:
    """Make the lead and the blocks of the section."""
    table = summary.table("data")
    n_folds = len(np.unique(table["fold"]))
    columns = [
        Column("queries of"),
        Column("queries"),
        Column("documents"),
        Column("per query", title="documents of a query: the median, and in brackets the fewest and the most"),
        Column("missing", title="share of the values of all features"),
        Column("without relevant", title="queries without a document of a grade above 0, which no method can win"),
        Column("grades", title="the share of the documents that have each grade"),
    ]
    parts = dict.fromkeys(table["part"].tolist())
    rows = [_make_row(part, select_rows(table, table["part"] == part)) for part in parts]
    n_features = int(table["features"].max())
    what = f"{format_count(n_folds, 'fold')} with {format_count(n_features, 'feature')}"
    lead = f"{what}. Figures are {_ACROSS[n_folds > 1]}."
    return Content(lead, [Grid(columns, rows, "The data of training, validation and test.", _NOTE)])


_ACROSS = {False: "of that fold", True: "means over the folds, and in brackets the range"}
_NOTE = "rankwright inspect says more about a data set, and finds what may be wrong with it."


def _make_row(part: str, table: Table) -> Row:
    """Make the row of one part of all folds."""
    cells: list[Cell | Value] = [part]
    cells += [_format_range(table[name]) for name in ("queries", "documents")]
    median = float(np.mean(table["median"]))
    per_query = f"{median:g} [{table['fewest'].min():g}, {table['most'].max():g}]"
    share = float(table["missing"].sum() / max((table["documents"] * table["features"]).sum(), 1))
    cells += [Cell(median, per_query), Cell(share, f"{share:.1%}" if share else "none")]
    return Row([*cells, _format_range(table["irrelevant"]), _format_grades(table["grades"].tolist())])


def _format_range(values: np.ndarray) -> Cell:
    """Return a cell with the mean of whole numbers over the folds, and their range if they differ."""
    mean, low, high = float(np.mean(values)), int(values.min()), int(values.max())
    return Cell(mean, f"{mean:,.0f}" if low == high else f"{mean:,.0f} [{low:,}, {high:,}]")


def _format_grades(texts: list[str]) -> str:
    """Return the shares of the grades over all folds as text, the lowest first."""
    counts: dict[str, int] = {}
    for text in texts:
        found = json.loads(text)
        if found is None:
            return "many"
        for grade, n in found.items():
            counts[grade] = counts.get(grade, 0) + n
    total = max(sum(counts.values()), 1)
    return ", ".join(
        f"{grade}: {n / total:.1%}" for grade, n in sorted(counts.items(), key=lambda item: float(item[0]))
    )


DATA = ReportSection("What are the data?", ("data",), _make_content)
