"""Section on the time and memory of each method."""

from __future__ import annotations

import numpy as np

from rankwright.analysis.results import Table
from rankwright.basics.array_types import Floats
from rankwright.report.blocks import Block, Column, Grid, Row
from rankwright.report.chosen_runs import rows_by_method, select_rows
from rankwright.report.sections.base import Content, ReportSection
from rankwright.report.sections.panels import Dot, make_dot_chart
from rankwright.report.summary import Summary

_MEGABYTE = 1e6


def _content(summary: Summary) -> Content | None:
    tables = rows_by_method(summary.results, "trials")
    methods = {
        m: done for m, table in tables.items() if len((done := select_rows(table, table["status"] == "done"))["method"])
    }
    if not methods:
        return None
    dots = [Dot(method, *_middle_and_ends(table["seconds"])) for method, table in methods.items()]
    axis = {"title": {"text": "seconds to fit, log scale"}, "type": "log"}
    caption = "Seconds to fit one candidate on one fold: the mean, from the fastest to the slowest trial."
    blocks: list[Block] = [
        _grid(methods),
        make_dot_chart(sorted(dots, key=lambda dot: dot.value), axis, "%{y}: %{x:.3g} s", caption),
    ]
    lead = (
        "The time and memory of each method, over the finished trials. Times are those of this run: compare "
        "them with each other only."
    )
    return Content(lead, blocks)


def _grid(methods: dict[str, Table]) -> Grid:
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
    body = [Row([method, *_figures(table)], (method,)) for method, table in methods.items()]
    return Grid(columns, body, "Time and memory of the trials.")


def _figures(table: Table) -> list[float]:
    peak = np.asarray(table["memory_peak"], dtype=np.float64)
    return [
        len(table["seconds"]),
        _mean(table["seconds"]),
        _mean(table["seconds"][table["chosen"]]),
        float(np.nansum(table["seconds"])),
        1e3 * _mean(table["predict_seconds"]),
        _largest(peak) / _MEGABYTE,
        _largest(peak - table["memory_start"]) / _MEGABYTE,
    ]


def _known(values: Floats) -> Floats:
    return values[~np.isnan(values)]


def _mean(values: Floats) -> float:
    known = _known(values)
    return float(known.mean()) if len(known) else float("nan")


def _largest(values: Floats) -> float:
    known = _known(values)
    return float(known.max()) if len(known) else float("nan")


def _middle_and_ends(values: Floats) -> tuple[float, float, float]:
    known = _known(values)
    return (float(known.mean()), float(known.min()), float(known.max())) if len(known) else (np.nan, np.nan, np.nan)


COSTS = ReportSection("Time and memory", ("trials",), _content)
