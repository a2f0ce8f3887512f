"""Section on costs: the quality of each method against its time, and the time and memory of its trials."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from rankwright.analysis.results import Results, Table
from rankwright.basics.array_types import Floats
from rankwright.basics.number_texts import format_number
from rankwright.report.blocks import Block, Chart, Column, Grid, Row
from rankwright.report.chosen_runs import select_rows, split_by_method
from rankwright.report.sections.base import Content, ReportSection, make_choice
from rankwright.report.summary import Summary

_MEGABYTE = 1e6
_DIFFERENT = 1.1  # memory is shown where the largest is at least so many times the smallest

Methods = Mapping[str, Table]


def _make_content(summary: Summary) -> Content | None:
    """Make the lead and the blocks of the section; return None if no trial has finished."""
    methods = select_finished(summary.results)
    if not methods:
        return None
    costs = compute_costs(methods)
    charts = [(name, _draw_quality(summary, axis, values)) for name, (axis, values) in costs.items()]
    drawn: list[tuple[str, Block]] = [(name, chart) for name, chart in charts if chart is not None]
    lead = "Times are those of this run, on this machine: compare them with each other only."
    blocks: list[Block] = [make_choice("Cost of", drawn)] if drawn else []
    return Content(lead, [*blocks, _make_grid(methods)])


def select_finished(results: Results) -> Methods:
    """Return the finished trials of each method that has any."""
    tables = split_by_method(results, "trials")
    done = {method: select_rows(table, table["status"] == "done") for method, table in tables.items()}
    return {method: table for method, table in done.items() if len(table["method"])}


def compute_costs(methods: Methods) -> dict[str, tuple[str, dict[str, float]]]:
    """Return each kind of cost: the title of its axis, and the cost of each method, NaN where nothing is known."""
    scoring = _compute_means(methods, "predict_seconds", 1e3)
    return {
        "training one model": ("seconds to train one model", _compute_means(methods, "seconds", 1.0)),
        "training all candidates": ("seconds to train all candidates", _compute_sums(methods)),
        "scoring": ("milliseconds to score the test queries of a fold", scoring),
    }


def _compute_means(methods: Methods, column: str, factor: float) -> dict[str, float]:
    """Return the mean of a column over each method's trials, times a factor; NaN where nothing is known."""
    return {method: factor * _mean_of_known(table[column]) for method, table in methods.items()}


def _compute_sums(methods: Methods) -> dict[str, float]:
    """Return the seconds that each method trained in all; NaN where nothing is known."""
    seconds = {method: table["seconds"] for method, table in methods.items()}
    return {method: float(np.nansum(s)) if np.isfinite(s).any() else np.nan for method, s in seconds.items()}


def _draw_quality(summary: Summary, axis: str, costs: Mapping[str, float]) -> Chart | None:
    """Draw the mean of each method against its cost, and a line along those that no cheaper one equals."""
    means = dict(zip(summary.methods, summary.results.means().tolist(), strict=True))
    spreads = dict(zip(summary.methods, summary.spreads, strict=True))
    shown = {m: cost for m, cost in costs.items() if cost > 0 and np.isfinite(means[m])}
    if len(shown) < 2:
        return None
    steps = find_frontier({m: (cost, means[m]) for m, cost in shown.items()})
    reached = [*steps, steps[-1]]  # beyond the best method a higher cost brings nothing
    line = {"shape": "hv", "color": "var(--strong-line)", "width": 1.5, "dash": "solid"}
    data: list[dict[str, object]] = [
        {
            "type": "scatter",
            "mode": "lines",
            "name": "the best for the cost",
            "x": [*(shown[m] for m in steps), max(shown.values())],
            "y": [means[m] for m in reached],
            "line": line,
            "hoverinfo": "skip",
        }
    ]
    for method in summary.methods:
        if method not in shown:
            continue
        mean, spread = means[method], spreads[method]
        ends = {"array": [spread.high - mean], "arrayminus": [mean - spread.low]}
        about = f"{axis} %{{x:.3g}}<br>{summary.decisive} %{{y:.4f}}"
        data.append(
            {
                "type": "scatter",
                "mode": "markers",
                "x": [shown[method]],
                "y": [mean],
                "error_y": {"type": "data", "symmetric": False, **ends, "thickness": 1, "width": 0},
                "marker": {"size": 11},
                "method": method,
                "hovertemplate": about,
            }
        )
    layout = {
        "xaxis": {"title": {"text": f"{axis}, log scale"}, **choose_ticks([*shown.values()])},
        "yaxis": {"title": {"text": summary.decisive}},
    }
    caption = (
        f"{summary.decisive} on test queries, with its 95% interval, against {axis}. The line joins the methods that "
        "no cheaper one equals."
    )
    return Chart(data, layout, caption, height=300)


def choose_ticks(values: list[float]) -> dict[str, object]:
    """Return Plotly's logarithmic axis for these values, with ticks at 1 and 3 times the powers of ten."""
    low, high = int(np.floor(np.log10(min(values)))) - 1, int(np.ceil(np.log10(max(values)))) + 1
    ticks = [factor * 10.0**power for power in range(low, high + 1) for factor in (1, 3)]
    return {"type": "log", "tickvals": ticks, "ticktext": [f"{tick:g}" for tick in ticks]}


def find_frontier(points: Mapping[str, tuple[float, float]]) -> list[str]:
    """Return the names whose quality no cheaper or equally cheap one reaches, the cheapest first.

    >>> find_frontier({"a": (1.0, 0.3), "b": (2.0, 0.2), "c": (3.0, 0.4)})
    ['a', 'c']
    """
    found: list[str] = []
    best = -np.inf
    for name in sorted(points, key=lambda name: (points[name][0], -points[name][1])):
        if points[name][1] > best:
            found.append(name)
            best = points[name][1]
    return found


def _make_grid(methods: Methods) -> Grid:
    """Make the table of the time and memory of each method's trials, the fastest first; equal memory is left out."""
    peaks = {m: _compute_highest(table["memory_peak"]) for m, table in methods.items()}
    growths = {m: _compute_highest(t["memory_peak"] - t["memory_start"]) for m, t in methods.items()}
    has_memory = _differ([*peaks.values()])
    columns = [
        Column("method"),
        Column("trials", title="candidates by folds by seeds"),
        Column("fit, s", 2, title="mean seconds to fit"),
        Column("chosen fit, s", 2, title="mean seconds to fit the candidates that were chosen"),
        Column("all fits, s", 1, title="seconds to fit all candidates on all folds and seeds"),
        Column("predict, ms", 1, title="mean milliseconds to score the test queries of a fold"),
    ]
    if has_memory:
        columns += [
            Column("peak memory, MB", 0, title="the largest peak of the process in a trial"),
            Column("growth, MB", 0, title="the largest growth of the process in a trial, from its start to its peak"),
        ]
    rows = []
    for method in sorted(methods, key=lambda m: np.nan_to_num(_mean_of_known(methods[m]["seconds"]), nan=-1.0)):
        memory = [peaks[method] / _MEGABYTE, growths[method] / _MEGABYTE] if has_memory else []
        rows.append(Row([method, *_compute_times(methods[method]), *memory], (method,)))
    known = [peak for peak in peaks.values() if not np.isnan(peak)]
    equal = (
        f"All methods have about the same peak memory, {format_number(max(known) / _MEGABYTE, 0)} MB." if known else ""
    )
    return Grid(columns, rows, "Time and memory of the trials.", "" if has_memory else equal)


def _differ(values: list[float]) -> bool:
    """Return whether the largest known value is well above the smallest."""
    known = [value for value in values if not np.isnan(value)]
    return len(known) > 1 and max(known) > _DIFFERENT * min(known)


def _compute_times(table: Table) -> list[float]:
    """Return the cells of a method's row: its number of trials, and its times."""
    return [
        len(table["seconds"]),
        _mean_of_known(table["seconds"]),
        _mean_of_known(table["seconds"][table["chosen"]]),
        float(np.nansum(table["seconds"])),
        1e3 * _mean_of_known(table["predict_seconds"]),
    ]


def _mean_of_known(values: Floats) -> float:
    """Return the mean of the values that are not NaN, or NaN if there are none."""
    known = values[~np.isnan(values)]
    return float(known.mean()) if len(known) else float("nan")


def _compute_highest(values: Floats) -> float:
    """Return the highest of the values that are not NaN, or NaN if there are none."""
    known = values[~np.isnan(values)]
    return float(known.max()) if len(known) else float("nan")


COSTS = ReportSection("What does it cost?", ("trials",), _make_content)
