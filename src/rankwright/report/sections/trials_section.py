"""Sections on trials: the candidates that were tried and chosen, and the time and memory of each method."""

from __future__ import annotations

from collections import Counter

import numpy as np

from rankwright.analysis.results import Table
from rankwright.basics.array_types import Floats
from rankwright.report.blocks import Block, Cell, Column, Grid, Row, Text
from rankwright.report.chosen_runs import select_rows, split_by_method
from rankwright.report.notation import DIGITS, format_count, format_parameters
from rankwright.report.sections.base import Content, Dot, ReportSection, make_dot_chart
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
    means = [_mean_of_known(np.asarray(trial["valid"], dtype=np.float64)) for trial in trials]
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


_MEGABYTE = 1e6


def _show_costs(summary: Summary) -> Content | None:
    """Make the lead and the blocks of section "Time and memory"; return None if there is nothing to show."""
    tables = split_by_method(summary.results, "trials")
    methods = {
        m: done for m, table in tables.items() if len((done := select_rows(table, table["status"] == "done"))["method"])
    }
    if not methods:
        return None
    fitted = {m: table for m, table in methods.items() if not np.isnan(table["seconds"]).all()}  # not fixed models
    dots = [Dot(method, *_mean_and_range(table["seconds"])) for method, table in fitted.items()]
    axis = {"title": {"text": "seconds to fit, log scale"}, "type": "log"}
    caption = "Seconds to fit one candidate on one fold: the mean, from the fastest to the slowest trial."
    chart = make_dot_chart(sorted(dots, key=lambda dot: dot.value), axis, "%{y}: %{x:.3g} s", caption)
    blocks: list[Block] = [_make_costs_grid(methods), *([chart] if dots else [])]
    lead = (
        "The time and memory of each method, over the finished trials. Times are those of this run: compare "
        "them with each other only."
    )
    return Content(lead, blocks)


def _make_costs_grid(methods: dict[str, Table]) -> Grid:
    """Make the table of the time and memory of each method's trials."""
    columns = [
        Column("method"),
        Column("trials", title="candidates by folds by seeds"),
        Column("fit, s", 2, title="mean seconds to fit"),
        Column("chosen fit, s", 2, title="mean seconds to fit the candidates that were chosen"),
        Column("all fits, s", 1, title="seconds to fit all candidates on all folds and seeds"),
        Column("predict, ms", 1, title="mean milliseconds to score the test queries of a fold"),
        Column("peak memory, MB", 0, title="the largest peak of the process in a trial"),
        Column("growth, MB", 0, title="the largest growth of the process in a trial, from its start to its peak"),
    ]
    body = [Row([method, *_compute_cells(table)], (method,)) for method, table in methods.items()]
    return Grid(columns, body, "Time and memory of the trials.")


def _compute_cells(table: Table) -> list[float]:
    """Return the cells of a method's row: its number of trials, its times, and its memory."""
    peak = np.asarray(table["memory_peak"], dtype=np.float64)
    return [
        len(table["seconds"]),
        _mean_of_known(table["seconds"]),
        _mean_of_known(table["seconds"][table["chosen"]]),
        float(np.nansum(table["seconds"])),
        1e3 * _mean_of_known(table["predict_seconds"]),
        _mean_and_range(peak)[2] / _MEGABYTE,
        _mean_and_range(peak - table["memory_start"])[2] / _MEGABYTE,
    ]


def _mean_of_known(values: Floats) -> float:
    """Return the mean of the values that are not NaN, or NaN if there are none."""
    return _mean_and_range(values)[0]


def _mean_and_range(values: Floats) -> tuple[float, float, float]:
    """Return the mean, the lowest and the highest of the values that are not NaN; NaN if there are none."""
    known = values[~np.isnan(values)]
    return (float(known.mean()), float(known.min()), float(known.max())) if len(known) else (np.nan, np.nan, np.nan)


COSTS = ReportSection("Time and memory", ("trials",), _show_costs)
