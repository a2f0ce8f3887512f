"""Section on queries: how the measure spreads over them, and which queries are hard for every method."""

from __future__ import annotations

import numpy as np

from rankwright.basics.array_types import Floats
from rankwright.basics.number_texts import DIGITS
from rankwright.report.blocks import Block, Cell, Chart, Column, Grid, Row
from rankwright.report.notation import Value
from rankwright.report.sections.base import Content, ReportSection, make_choice
from rankwright.report.sections.groups import draw_group_means
from rankwright.report.summary import Summary

MOST_HARD = 6  # queries in the table
_LEVELS = (0.05, 0.25, 0.5, 0.75, 0.95)
_ROW, _AXES = 30, 80  # pixels for each method, and for the axis


def _make_content(summary: Summary) -> Content | None:
    """Make the lead and the blocks of the section; return None if no method has values."""
    values = summary.values[summary.results.measure]
    spread = _draw_spread(summary, values)
    if spread is None:
        return None
    charts: list[tuple[str, Block]] = [("spread over queries", spread), *draw_group_means(summary)]
    hard = _make_hard_grid(summary, values)
    lead = (
        "A mean hides how different queries are. Where most queries are equal for all methods, the difference between "
        "two methods rests on a few of them."
    )
    return Content(lead, [make_choice("Chart", charts), *([hard] if hard else [])])


def _draw_spread(summary: Summary, values: Floats) -> Chart | None:
    """Draw a box with whiskers for each method: quantiles of the measure over the queries, the best method on top."""
    data = []
    for name in summary.ranked:
        own = values[summary.methods.index(name)]
        known = own[~np.isnan(own)]
        if not len(known):
            continue
        low, first, middle, third, high = np.quantile(known, _LEVELS).tolist()
        box = {"lowerfence": [low], "q1": [first], "median": [middle], "q3": [third], "upperfence": [high]}
        mean = {"mean": [float(known.mean())], "boxmean": True}
        data.append({"type": "box", "orientation": "h", "y": [name], "method": name, **box, **mean})
    if not data:
        return None
    layout = {
        "xaxis": {"title": {"text": f"{summary.decisive} of a query"}},
        "yaxis": {"type": "category", "autorange": "reversed"},
        "showlegend": False,
        "boxgap": 0.45,
    }
    caption = (
        f"{summary.decisive} over the test queries: the box holds the middle half of them, the whiskers 90%, the line "
        "is the median and the dashed line the mean."
    )
    return Chart(data, layout, caption, height=_AXES + _ROW * max(len(data), 3))


def _make_hard_grid(summary: Summary, values: Floats) -> Grid | None:
    """Make the table of the queries on which even the best method does worst; None with a single method or query."""
    queries = summary.table("queries")
    possible = ~np.isnan(values).all(axis=0) & (np.asarray(queries["n_pairs"]) > 0)
    compared = ~np.isnan(values).all(axis=1)
    if compared.sum() < 2 or possible.sum() < 2:
        return None
    best = np.max(values, axis=0, where=~np.isnan(values), initial=-np.inf)
    counts = np.maximum(np.sum(~np.isnan(values), axis=0), 1)
    mean = np.nansum(values, axis=0) / counts
    order = np.lexsort((mean, best))
    shown = order[possible[order]][:MOST_HARD].tolist()
    columns = [
        Column("query"),
        Column("fold"),
        Column("documents"),
        Column("pairs", title="pairs of documents of different grades"),
        Column("best", DIGITS, title=f"the highest {summary.decisive} of any method"),
        Column("mean", DIGITS, title=f"the mean {summary.decisive} of all methods"),
        Column("best methods", title="those that reach the highest value; none where that is 0"),
    ]
    rows = []
    for q in shown:
        winners = [name for name in summary.ranked if values[summary.methods.index(name), q] == best[q]]
        named = "none" if best[q] <= 0 else "all" if len(winners) == compared.sum() else ", ".join(winners)
        about: list[Cell | Value] = [
            str(queries["qid"][q]),
            int(queries["fold"][q]),
            int(queries["n_docs"][q]),
            int(queries["n_pairs"][q]),
        ]
        rows.append(Row([*about, float(best[q]), float(mean[q]), named]))
    n_zero = int(np.sum(possible & (best <= 0)))
    n_equal = int(np.sum(possible & (best <= best[shown[-1]])))
    some = f"{len(shown)} of the {n_equal:,}" if n_equal > len(shown) else f"The {len(shown)}"
    caption = f"{some} queries that are hardest for all methods: even the best of them does worst there."
    zero = (
        f"On {n_zero:,} of the {int(possible.sum()):,} queries with documents of different grades every method has "
        f"{summary.decisive} 0. "
        if n_zero
        else ""
    )
    pairs = "Pairs are those of documents of different grades. "
    note = f"{zero}{pairs}Look here for wrong judgments, and for features that are missing."
    return Grid(columns, rows, caption, note)


QUERIES = ReportSection("Which queries are hard?", ("queries", "values"), _make_content)
