"""Groups of queries by their number of document pairs, and charts of the measure in each group."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from rankwright.analysis.significance import QueryWeighting
from rankwright.basics.array_types import Floats, Ints
from rankwright.report.blocks import Block, Chart
from rankwright.report.notation import format_count
from rankwright.report.summary import Summary

MOST_BINS = 8  # the most closed bins; one more, open, has the largest values
_TAIL = 0.95  # the least share of queries in closed bins
_STEPS = (1, 2, 5)


class Groups(NamedTuple):
    """The groups of queries by their number of document pairs: the groups' names, and the group of each query."""

    names: list[str]
    of_query: Ints


def draw_group_means(summary: Summary) -> list[tuple[str, Block]]:
    """Return charts of the measure by the number of document pairs of a query, by name; none if all are alike."""
    groups = group(np.asarray(summary.table("queries")["n_pairs"]))
    if len(np.unique(groups.of_query)) < 2:
        return []
    charts = [
        (f"{summary.labels[name]} by pairs", _draw_means(summary, name, groups)) for name in _choose_measures(summary)
    ]
    return [(label, chart) for label, chart in charts if chart.data]


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
        f"{label} by group of queries: the mean over the queries of a group, weighted as in the means. A method that "
        "learns from pairs gives most weight to queries with many pairs of different grades. The upper bound of a "
        "group belongs to the next one.",
        height=320,
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
