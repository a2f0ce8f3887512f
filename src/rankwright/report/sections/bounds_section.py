"""Section on bounds: the loss on training queries, and the bounds that methods minimise."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from rankwright.analysis.results import Table
from rankwright.basics.number_texts import DIGITS
from rankwright.report.blocks import Block, Chart, Column, Grid, Row
from rankwright.report.chosen_runs import select_on_all_folds, select_rows, split_by_method
from rankwright.report.sections.base import INTERNALS, Content, ReportSection, TrainingMeasure, find_training_measure
from rankwright.report.summary import Summary

_ROW, _REST = 30, 110  # pixels for each method, and for the axis and its title
_WIDE = 8.0  # an axis is logarithmic where largest / smallest value exceeds this
_SYMBOLS = {
    "loss": "circle",
    "objective": "diamond",
    "type one, exponential": "cross",
    "type two, margin, at its best scale": "square-open",
}
_LOSS, _OWN, _ONE, _TWO = _SYMBOLS


class LossBound(NamedTuple):
    """A bound on a method's training loss: the values of both, as means over folds and seeds."""

    bound: str
    measure: str
    own: bool
    loss: float
    value: float
    least: float  # at the best scale of the scores; NaN where there is none
    factor: float
    exact: float


Methods = Mapping[str, Sequence[LossBound]]


def _make_content(summary: Summary) -> Content | None:
    """Make the lead and the blocks of section "Bounds"; return None if there is nothing to show."""
    methods = {method: average_bounds(table) for method, table in split_by_method(summary.results, "bounds").items()}
    complete = select_on_all_folds(summary.results, "bounds")
    trained_on = find_training_measure(summary, complete)
    lead = (
        "The loss is 1 - E, where E is the measure divided by its highest value on the query. Most methods "
        "minimise a bound above the loss. All values are of the training queries; the gap is the bound less the "
        "loss. A bound may be far above the loss and still lead to a good ranking: compare methods by their "
        "test results. Where the bound is low and the measure is bad, the bound is to blame. "
        "rankwright.diagnose says more about a single model."
    )
    shown = {method: methods[method] for method in complete}
    chart = _draw_chart(shown, trained_on)
    blocks: list[Block] = [chart] if chart is not None else []
    return Content(lead, [*blocks, _make_grid(summary, methods)])


def average_bounds(table: Table) -> list[LossBound]:
    """Return the bounds on a method's training loss, as means over its runs; those on its own measure first."""
    found = []
    for bound, measure in dict.fromkeys(zip(table["bound"].tolist(), table["measure"].tolist(), strict=True)):
        of = select_rows(table, (table["bound"] == bound) & (table["measure"] == measure))
        loss, value, least, exact = (float(np.mean(of[name])) for name in ("loss", "value", "least", "exact"))
        factor = float(np.median(of["factor"]))  # the median, as factors differ by powers of ten
        found.append(LossBound(str(bound), str(measure), bool(of["own"][0]), loss, value, least, factor, exact))
    return found


def _draw_chart(methods: Methods, trained_on: TrainingMeasure) -> Chart | None:
    """Draw the training loss of each method and the bounds on it, a row of marks for each; None without bounds."""
    marked = {
        method: _select_marked_bounds([bound for bound in bounds if bound.measure == bounds[0].measure])
        for method, bounds in methods.items()
    }
    used = {name for marks in marked.values() for name in marks}
    if not used:
        return None
    empty = {"type": "scatter", "mode": "markers", "x": [], "y": []}  # puts a bound's symbol into the legend
    data: list[dict[str, Any]] = [
        {**empty, "name": name, "marker": {"symbol": symbol, "color": "var(--ink)", "size": 9}}
        for name, symbol in _SYMBOLS.items()
        if name in {_LOSS, *used}
    ]
    values: list[float] = []
    for method, bounds in methods.items():
        marks = {_LOSS: bounds[0].loss, **marked[method]}
        values += marks.values()
        data += [_make_mark(method, name, value) for name, value in marks.items()]
    layout = {
        "xaxis": {"title": {"text": f"loss of {trained_on.axis}, and bounds on it"}, **_choose_axis(values)},
        "yaxis": {"type": "category", "autorange": "reversed"},
    }
    caption = (
        f"{trained_on.name}: the loss on training queries and bounds on it, mean over folds and seeds. The "
        f"objective of a method is shown where it bounds the same measure; the table has all.{trained_on.more}"
    )
    return Chart(data, layout, caption, height=_REST + _ROW * max(len(methods), 3))


def _select_marked_bounds(bounds: Sequence[LossBound]) -> dict[str, float]:
    """Return the values of the bounds that the chart shows, by their name in its legend."""
    marks: dict[str, float] = {}
    for bound in bounds:
        if bound.own:
            marks[_OWN] = bound.value
        if bound.bound == "type one, exponential":
            marks[_ONE] = bound.value
        elif bound.bound == "type two, margin" and bound.factor > 0:  # at 0 all scores are equal: it says nothing
            marks[_TWO] = bound.least
    return marks


def _choose_axis(values: Sequence[float]) -> dict[str, Any]:
    """Return Plotly's axis for these values: logarithmic if all are positive and far apart."""
    positive = [value for value in values if value > 0]
    wide = len(positive) == len(values) and max(positive) > _WIDE * min(positive)
    return {"type": "log", "dtick": "D2"} if wide else {"rangemode": "tozero"}


def _make_mark(method: str, name: str, value: float) -> dict[str, Any]:
    """Return Plotly's trace of one mark: the loss of a method, or a bound on it."""
    return {
        "type": "scatter",
        "mode": "markers",
        "x": [value],
        "y": [method],
        "name": name,
        "meta": f"{method}, {name}",
        "method": method,
        "marker": {"symbol": _SYMBOLS[name], "size": 9, **({"line": {"width": 2}} if name == _TWO else {})},
        "hovertemplate": f"{name} %{{x:.4f}}<extra>%{{y}}</extra>",
        "showlegend": False,
    }


def _make_grid(summary: Summary, methods: Methods) -> Grid:
    """Make the table of each method's loss and the bounds on it."""
    columns = [
        Column("method"),
        Column("bound"),
        Column("of", title="the measure whose loss it bounds"),
        Column("minimised", title="whether the method minimises this bound, penalties apart"),
        Column("loss", DIGITS, title="1 - E on the training queries, mean over folds and seeds"),
        Column("value", DIGITS, title="of the bound, at the scores as they are"),
        Column("gap", DIGITS, title="the value above the loss"),
        Column("best scale", DIGITS, title="the bound when all scores are multiplied by the best factor"),
        Column("best gap", DIGITS, title="that above the loss"),
        Column("factor", 3, title="the best factor of the scores, median; 0 makes all scores equal"),
        Column("exact", 2, title="share of the queries on which the bound is exact; on others it may be larger"),
    ]
    body = [
        Row([method, *_list_cells(summary, bound)], (method,)) for method, found in methods.items() for bound in found
    ]
    note = (
        "Multiplying all scores by a positive number keeps the ranking but changes type two bounds. The best "
        "scale shows how low a bound can be for this ranking. A factor far from 1 means that the weights are "
        "too short or too long for the bound. A sum over many rankings is not exact: its value rests on the two "
        "most important rankings."
    )
    return Grid(columns, body, "Loss and bounds on the training queries.", note)


def _list_cells(summary: Summary, bound: LossBound) -> list[Any]:
    """Return the cells of a bound's row, after the method."""
    label = summary.labels.get(bound.measure, bound.measure)
    gaps = bound.value - bound.loss, bound.least, bound.least - bound.loss, bound.factor, bound.exact
    return [bound.bound, label, "yes" if bound.own else "", bound.loss, bound.value, *gaps]


BOUNDS = ReportSection("Bounds", ("bounds",), _make_content, INTERNALS)
