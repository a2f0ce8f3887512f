"""Section on selection: the candidates that were tried, the measure by each parameter, and what was chosen."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from typing import Any

import numpy as np

from rankwright.analysis.results import Table
from rankwright.basics.array_types import Floats
from rankwright.basics.number_texts import DIGITS
from rankwright.report.blocks import Block, Cell, Chart, Column, Grid, Row, Text
from rankwright.report.chosen_runs import select_rows, split_by_method
from rankwright.report.notation import format_count, format_parameters
from rankwright.report.sections import base
from rankwright.report.sections.base import Content, ReportSection, make_choice
from rankwright.report.summary import Summary

MOST_FAILURES = 10  # shown one by one
MOST_PANELS = 6  # parameters of a method in one chart
_LEAST_HEIGHT = 260
_WIDE = 20.0  # an axis is logarithmic where the largest value is at least so many times the smallest


def _make_content(summary: Summary) -> Content | None:
    """Make the lead and the blocks of the section; return None if there is nothing to show."""
    methods = split_by_method(summary.results, "trials")
    several = {m: table for m, table in methods.items() if len(np.unique(table["candidate"])) > 1}
    blocks: list[Block] = [*_list_failures(summary), *_list_warnings(summary)]
    if several:
        grid: tuple[str, Block] = ("all candidates", _make_grid(summary, several))
        blocks.append(make_choice("Show", [*_draw_parameters(summary, several), grid]))
    if not blocks:
        return None
    lead = (
        f"The candidates that were tried. For every fold and seed, the one with the best {summary.decisive} on "
        "the validation queries was chosen."
    )
    return Content(lead, blocks)


def _draw_parameters(summary: Summary, methods: Mapping[str, Table]) -> list[tuple[str, Block]]:
    """Return a list with the named charts of the validation measure by parameter; empty if no parameter varies."""
    charts = [(method, _draw_panels(summary, method, table)) for method, table in methods.items()]
    drawn: list[tuple[str, Block]] = [(method, chart) for method, chart in charts if chart is not None]
    return [("each parameter", make_choice("Method", drawn))] if drawn else []


def _draw_panels(summary: Summary, method: str, table: Table) -> Chart | None:
    """Draw the validation measure of a method's candidates, a panel for each parameter with several values."""
    candidates = [select_rows(table, table["candidate"] == number) for number in np.unique(table["candidate"])]
    means = [_mean_of_known(np.asarray(each["valid"], dtype=np.float64)) for each in candidates]
    params = [json.loads(str(each["params"][0])) for each in candidates]
    chosen = [bool(each["chosen"].any()) for each in candidates]
    known = [(own, mean, picked) for own, mean, picked in zip(params, means, chosen, strict=True) if np.isfinite(mean)]
    names = dict.fromkeys(name for own, *_ in known for name in own)
    varied = [name for name in names if len({_as_key(own.get(name)) for own, *_ in known}) > 1][:MOST_PANELS]
    if not varied:
        return None
    layout = base.make_layout(varied, "value of the parameter", f"validation {summary.decisive}")
    data: list[dict[str, Any]] = []
    for panel, name in enumerate(varied):
        axis, places = _place_values([own.get(name) for own, *_ in known])
        layout[f"xaxis{base.find_axis_suffix(panel)}"] |= axis
        data += _make_points(method, name, places, known, panel)
    what = "each parameter" if len(varied) > 1 else varied[0]
    caption = (
        f"{method}: mean validation {summary.decisive} of every candidate by {what}; the line joins the best of each "
        "value. Filled: chosen on some fold. A best value at the end of its range asks for a wider one; a flat line "
        "says that the parameter hardly matters."
    )
    return Chart(data, layout, caption, max(base.compute_height(len(varied)), _LEAST_HEIGHT))


def _make_points(
    method: str, name: str, places: list[Any], known: list[tuple[dict[str, Any], float, bool]], panel: int
) -> list[dict[str, Any]]:
    """Return Plotly's traces of a panel: a line along the best candidates of each value, and a point for each."""
    best: dict[Any, float] = {}
    for place, (_, mean, _) in zip(places, known, strict=True):
        best[place] = max(best.get(place, -np.inf), mean)
    ordered = sorted(best) if all(not isinstance(place, str) for place in best) else [*best]
    about = {"type": "scatter", "method": method, "meta": name, **base.name_axes(panel)}
    points = {
        "mode": "markers",
        "x": places,
        "y": [mean for _, mean, _ in known],
        "customdata": [format_parameters(json.dumps(own)) for own, *_ in known],
        "marker": {"size": 7, "symbol": ["circle" if picked else "circle-open" for *_, picked in known]},
        "hovertemplate": "%{customdata}<br>%{y:.4f}<extra></extra>",
    }
    line = {"mode": "lines", "x": ordered, "y": [best[place] for place in ordered], "hoverinfo": "skip"}
    return [{**about, **line}, {**about, **points}]


def _place_values(values: list[Any]) -> tuple[dict[str, Any], list[Any]]:
    """Return Plotly's axis for the values of a parameter, and where each value stands on it.

    Numbers stand on a line, logarithmic where they are positive and far apart; all else is text.
    """
    if not all(isinstance(value, (int, float)) and not isinstance(value, bool) for value in values):
        texts = [_as_key(value) for value in values]
        return {"type": "category", "categoryorder": "array", "categoryarray": [*dict.fromkeys(texts)]}, texts
    if min(values) > 0 and max(values) >= _WIDE * min(values):
        return {"type": "log", "exponentformat": "power"}, values
    return {}, values


def _as_key(value: Any) -> str:
    """Return the value of a parameter as text; a parameter that a candidate lacks has its default."""
    return "default" if value is None else value if isinstance(value, str) else json.dumps(value)


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
    body = [row for name in summary.ranked if name in methods for row in _make_rows(name, methods[name])]
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


def _mean_of_known(values: Floats) -> float:
    """Return the mean of the values that are not NaN, or NaN if there are none."""
    known = values[~np.isnan(values)]
    return float(known.mean()) if len(known) else float("nan")


SELECTION = ReportSection("Which parameters were best?", ("trials",), _make_content)
