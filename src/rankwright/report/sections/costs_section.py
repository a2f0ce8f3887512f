"""Section on the time and memory of each method."""

from __future__ import annotations

import numpy as np

from rankwright.analysis.results import Table
from rankwright.basics.array_types import Floats
from rankwright.report.blocks import Block, Column, Grid, Row
from rankwright.report.chosen_runs import select_rows, split_by_method
from rankwright.report.sections.base import Content, ReportSection
from rankwright.report.sections.panels import Dot, make_dot_chart
from rankwright.report.summary import Summary

_MEGABYTE = 1e6


def _make_content(summary: Summary) -> Content | None:
    """Make the lead and the blocks of section "Time and memory"; return None if there is nothing to show."""
    tables = split_by_method(summary.results, "trials")
    methods = {
        m: done for m, table in tables.items() if len((done := select_rows(table, table["status"] == "done"))["method"])
    }
    if not methods:
        return None
    dots = [Dot(method, *_mean_and_range(table["seconds"])) for method, table in methods.items()]
    axis = {"title": {"text": "seconds to fit, log scale"}, "type": "log"}
    caption = "Seconds to fit one candidate on one fold: the mean, from the fastest to the slowest trial."
    blocks: list[Block] = [
        _make_grid(methods),
        make_dot_chart(sorted(dots, key=lambda dot: dot.value), axis, "%{y}: %{x:.3g} s", caption),
    ]
    lead = (
        "The time and memory of each method, over the finished trials. Times are those of this run: compare "
        "them with each other only."
    )
    return Content(lead, blocks)


def _make_grid(methods: dict[str, Table]) -> Grid:
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
        _largest_known(peak) / _MEGABYTE,
        _largest_known(peak - table["memory_start"]) / _MEGABYTE,
    ]


def _drop_nan(values: Floats) -> Floats:
    """Return the values that are not NaN."""
    return values[~np.isnan(values)]


def _mean_of_known(values: Floats) -> float:
    """Return the mean of the values that are not NaN, or NaN if there are none."""
    known = _drop_nan(values)
    return float(known.mean()) if len(known) else float("nan")


def _largest_known(values: Floats) -> float:
    """Return the largest of the values that are not NaN, or NaN if there are none."""
    known = _drop_nan(values)
    return float(known.max()) if len(known) else float("nan")


def _mean_and_range(values: Floats) -> tuple[float, float, float]:
    """Return the mean, the lowest and the highest of the values that are not NaN."""
    known = _drop_nan(values)
    return (float(known.mean()), float(known.min()), float(known.max())) if len(known) else (np.nan, np.nan, np.nan)


COSTS = ReportSection("Time and memory", ("trials",), _make_content)
