"""Sections on groups: pairs of documents by their grades, and queries by their number of such pairs."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from rankwright.analysis.results import Table
from rankwright.analysis.significance import QueryWeighting
from rankwright.basics.array_types import Floats, Ints
from rankwright.report.blocks import Block, Chart
from rankwright.report.chosen_runs import select_on_all_folds
from rankwright.report.notation import format_count
from rankwright.report.sections.base import Content, ReportSection, make_choice
from rankwright.report.summary import Summary

MOST_BINS = 8  # the most closed bins; one more, open, has the largest values
_TAIL = 0.95  # the least share of queries in closed bins
_STEPS = (1, 2, 5)


class Groups(NamedTuple):
    """The groups of queries by their number of document pairs: the groups' names, and the group of each query."""

    names: list[str]
    of_query: Ints


def _make_content(summary: Summary) -> Content | None:
    """Make the lead and the blocks of section "Query groups"; return None if there is nothing to show."""
    groups = group(np.asarray(summary.table("queries")["n_pairs"]))
    if len(np.unique(groups.of_query)) < 2:
        return None
    charts = [(summary.labels[name], _draw_means(summary, name, groups)) for name in _choose_measures(summary)]
    filled = [(label, chart) for label, chart in charts if chart.data]
    blocks: list[Block] = [make_choice("Measure", filled)] if filled else []
    lead = (
        "A method that learns from pairs gives most weight to queries with many pairs of documents of different "
        "grades. Does it do well on these only?"
    )
    return Content(lead, [_draw_sizes(groups), *blocks])


def _choose_measures(summary: Summary) -> list[str]:
    """Return the measures that the section shows: the deciding one, and MAP if it was computed."""
    return [name for name in summary.measures if name == summary.results.measure or summary.labels[name] == "map"]


def group(n_pairs: Ints) -> Groups:
    """Group queries by their number of document pairs, into about 5 to 9 groups with round bounds.

    >>> group(np.array([*range(99), 10_000])).names
    ['0-20', '20-40', '40-60', '60-80', '80-100', '100+']
    """
    width = _choose_width(n_pairs)
    n_bins = int(np.quantile(n_pairs, _TAIL) // width) + 1
    of_query = np.minimum(n_pairs // width, n_bins)
    names = [f"{_shorten_number(i * width)}-{_shorten_number((i + 1) * width)}" for i in range(int(of_query.max()) + 1)]
    if n_pairs.max() >= (n_bins + 1) * width:
        names[n_bins] = f"{_shorten_number(n_bins * width)}+"
    return Groups(names, of_query)


def _choose_width(n_pairs: Ints) -> int:
    """Return the smallest round width of groups for which most queries fit into the allowed number of groups."""
    bulk, scale = np.quantile(n_pairs, _TAIL), 1
    while True:
        for step in _STEPS:
            if bulk // (step * scale) < MOST_BINS:
                return step * scale
        scale *= 10


def _shorten_number(value: int) -> str:
    """Return a number as short text: 2000 becomes "2k"."""
    return f"{value / 1000:g}k" if value >= 1000 else f"{value}"


def _draw_sizes(groups: Groups) -> Chart:
    """Draw the number of queries in each group."""
    sizes = np.bincount(groups.of_query, minlength=len(groups.names))
    data = [{"type": "bar", "x": groups.names, "y": sizes, "marker": {"color": "var(--accent)"}, "name": "queries"}]
    layout = {"xaxis": _make_axis(), "yaxis": {"title": {"text": "queries"}}, "bargap": 0.3}
    caption = (
        "The number of test queries by the number of their document pairs of different grades. The upper bound "
        "of a group belongs to the next one."
    )
    return Chart(data, layout, caption, height=260)


def _draw_means(summary: Summary, measure: str, groups: Groups) -> Chart:
    """Draw the mean of a measure in each group, a line for each method."""
    label = summary.labels[measure]
    complete = ~np.isnan(summary.results.means(measure))
    rows = zip(summary.methods, summary.values[measure], complete, strict=True)
    weighting = summary.results.weighting
    sizes = np.bincount(groups.of_query, minlength=len(groups.names))
    names = [f"{name} ({format_count(int(n), 'query')})" for name, n in zip(groups.names, sizes, strict=True)]
    data = [
        {
            "type": "scatter",
            "mode": "lines+markers",
            "x": names,
            "y": group_means(values, groups, weighting),
            "method": method,
        }
        for method, values, known in rows
        if known
    ]
    layout = {"xaxis": _make_axis(), "yaxis": {"title": {"text": f"{label}, mean of the group"}}}
    return Chart(
        data,
        layout,
        f"{label} by group of queries: the mean over the queries of a group, weighted as in the means.",
        height=400,
    )


def _make_axis() -> dict[str, Any]:
    """Return Plotly's x axis with the groups of queries."""
    return {"title": {"text": "document pairs of a query"}, "type": "category"}


def group_means(values: Floats, groups: Groups, weighting: QueryWeighting) -> Floats:
    """Return the weighted mean of the queries' values in each group; NaN for a group without values."""
    counted = weighting.counted(values, values)
    factors, of_query = np.broadcast_to(weighting.factors(counted), int(counted.sum())), groups.of_query[counted]
    weight = np.bincount(of_query, weights=factors, minlength=len(groups.names))
    total = np.bincount(of_query, weights=factors * values[counted], minlength=len(groups.names))
    means: Floats = np.divide(total, weight, out=np.full(len(weight), np.nan), where=weight > 0)
    return means


GROUPS = ReportSection("Query groups", ("queries", "values"), _make_content)


Pair = tuple[float, float]  # the higher grade, the lower

_LETOR: dict[Pair, str] = {(2, 0): "d-n", (2, 1): "d-p", (1, 0): "p-n"}
_LETOR_NOTE = " d: definitely relevant (2), p: possibly relevant (1), n: not relevant (0)."


def _show_grades(summary: Summary) -> Content | None:
    """Make the lead and the blocks of section "Pairs of grades"; return None if there is nothing to show."""
    methods = select_on_all_folds(summary.results, "pairs")
    pairs = list_grade_pairs(methods.values())
    if not pairs:
        return None
    letor = set(pairs) == set(_LETOR)
    names = [_LETOR[pair] if letor else f"{pair[0]:g}-{pair[1]:g}" for pair in pairs]
    shares = {method: compute_accuracies(table, pairs) for method, table in methods.items()}
    data = [{"type": "bar", "x": names, "y": y, "method": method} for method, y in shares.items()]
    layout = {
        "barmode": "group",
        "xaxis": {"title": {"text": "grades of the two documents"}, "type": "category"},
        "yaxis": {
            "title": {"text": "pairs in the right order (chance: 50%)"},
            "tickformat": ".0%",
            "range": _choose_range([*shares.values()]),
        },
    }
    caption = (
        "The share of document pairs of two grades that a method puts in the right order, over all test queries; a tie "
        f"counts one half.{_LETOR_NOTE if letor else ''}"
    )
    lead = "Which mistakes does a method make? Confusing the best with the worst documents costs most."
    return Content(lead, [Chart(data, layout, caption, height=420)])


def list_grade_pairs(tables: Iterable[Table]) -> list[Pair]:
    """Return the pairs of grades that occur in the tables: those with the highest grade first."""
    found = {
        (float(high), float(low))
        for table in tables
        for high, low, total in zip(table["high"], table["low"], table["total"], strict=True)
        if total > 0
    }
    return sorted(found, key=lambda pair: (-pair[0], pair[1]))


def compute_accuracies(table: Table, pairs: list[Pair]) -> Floats:
    """Return for each pair of grades the share of document pairs in the right order; a tie counts half; NaN if none."""
    shares = np.full(len(pairs), np.nan)
    for i, (high, low) in enumerate(pairs):
        chosen = (table["high"] == high) & (table["low"] == low)
        total = table["total"][chosen].sum()
        if total > 0:
            shares[i] = (table["right"][chosen].sum() + table["tied"][chosen].sum() / 2) / total
    return shares


def _choose_range(shares: list[Floats]) -> list[float]:
    """Return the range of the chart's axis: from one half, which is chance, unless a method is below it."""
    lowest, highest = np.nanmin(shares), np.nanmax(shares)
    return [0.5 if lowest > 0.5 else 0.0, min(1.0, float(highest) + 0.05)]


GRADES = ReportSection("Pairs of grades", ("pairs",), _show_grades)
