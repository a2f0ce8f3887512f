"""Section on selection: the candidates that were tried and chosen."""

from __future__ import annotations

from collections import Counter

import numpy as np

from rankwright.analysis.results import Table
from rankwright.report.blocks import Block, Cell, Column, Grid, Row, Text
from rankwright.report.chosen_runs import select_rows, split_by_method
from rankwright.report.notation import DIGITS, format_count, format_parameters
from rankwright.report.sections.base import Content, ReportSection
from rankwright.report.summary import Summary

MOST_FAILURES = 10  # shown one by one


def _make_content(summary: Summary) -> Content | None:
    """Make the lead and the blocks of section "Selection"; return None if there is nothing to show."""
    methods = split_by_method(summary.results, "trials")
    several = {m: table for m, table in methods.items() if len(np.unique(table["candidate"])) > 1}
    blocks: list[Block] = [*_list_failures(summary), *_list_warnings(summary)]
    if several:
        blocks.append(_make_grid(summary, several))
    if not blocks:
        return None
    lead = (
        f"The candidates that were tried. For every fold and seed, the one with the best {summary.decisive} on "
        "the validation queries was chosen."
    )
    return Content(lead, blocks)


def _make_grid(summary: Summary, methods: dict[str, Table]) -> Grid:
    """Make the table of the candidates of each method, and how often each was chosen."""
    columns = [
        Column("method"),
        Column("parameters"),
        Column(f"validation {summary.decisive}", DIGITS, title="mean over the finished trials, by fold and seed"),
        Column("chosen", title="in so many of the folds and seeds"),
        Column("tried", title="in so many of the folds and seeds"),
        Column("failed", title="trials that ended in an error"),
    ]
    body = [row for method, table in methods.items() for row in _make_rows(method, table)]
    caption = (
        "Candidates, the best mean of each method emphasised. Each fold and seed makes its own choice, so "
        "another candidate may have been chosen there."
    )
    return Grid(columns, body, caption)


def _make_rows(method: str, table: Table) -> list[Row]:
    """Return a row for each candidate of a method: its parameters, and its mean on the validation queries."""
    trials = [select_rows(table, table["candidate"] == candidate) for candidate in np.unique(table["candidate"])]
    means = [_compute_mean_valid(trial) for trial in trials]
    best = np.nanmax(means, initial=-np.inf)
    return [
        Row(
            [
                method,
                format_parameters(str(trial["params"][0])),
                Cell(mean, emphasis="best" if mean == best else ""),
                int(trial["chosen"].sum()),
                len(trial["chosen"]),
                int((trial["status"] == "failed").sum()),
            ],
            (method,),
        )
        for trial, mean in zip(trials, means, strict=True)
    ]


def _compute_mean_valid(trial: Table) -> float:
    """Return the mean of the known validation measures, or NaN if there are none."""
    values = np.asarray(trial["valid"], dtype=np.float64)
    known = values[~np.isnan(values)]
    return float(known.mean()) if len(known) else float("nan")


def _list_failures(summary: Summary) -> list[Text]:
    """Return a list with one warning that names the failed trials; an empty list if none failed."""
    table = summary.table("trials")
    failed = np.flatnonzero(table["status"] == "failed")
    if not len(failed):
        return []
    lines = [
        f"{summary.methods[table['method'][i]]}, fold {table['fold'][i]}, seed {table['seed'][i]}, "
        f"{format_parameters(str(table['params'][i]))}: {table['error'][i]}"
        for i in failed[:MOST_FAILURES]
    ]
    rest = len(failed) - len(lines)
    more = [f"And {format_count(rest, 'more trial')}."] if rest else []
    return [Text("\n\n".join([f"{format_count(len(failed), 'trial')} failed:", *lines, *more]), level="warning")]


def _list_warnings(summary: Summary) -> list[Text]:
    """Return a list with a text of the commonest warnings and how many trials issued each; empty if there are none."""
    table = summary.table("trials")
    if "warnings" not in table:
        return []
    pairs = zip(table["method"].tolist(), table["warnings"].tolist(), strict=True)
    counts = Counter((method, text) for method, text in pairs if text)
    if not counts:
        return []
    shown = counts.most_common(MOST_FAILURES)
    lines = [f"{summary.methods[method]}, {format_count(n, 'trial')}: {text}" for (method, text), n in shown]
    rest = len(counts) - len(lines)
    more = [f"And {format_count(rest, 'more warning')}."] if rest else []
    said = f"{format_count(counts.total(), 'trial')} issued warnings:"
    return [Text("\n\n".join([said, *lines, *more]), level="warning")]


SELECTION = ReportSection("Selection", ("trials",), _make_content)
