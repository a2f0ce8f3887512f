"""Section on the weights of trees: as searched, and as clipped."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from rankwright.analysis.results import Table
from rankwright.basics.array_types import Floats
from rankwright.report.blocks import Chart, Column, Grid, Row
from rankwright.report.chosen_runs import select_rows, split_by_method, split_runs
from rankwright.report.sections import base
from rankwright.report.sections.base import INTERNALS, Content, ReportSection, make_choice
from rankwright.report.sections.learning_lines import MOST_POINTS, thin_numbers
from rankwright.report.summary import Summary

MOST_PANELS = 8  # most folds of a method in one chart
_USUAL = (2.0, 98.0)  # percentiles of the searched weights that a chart shows
_REACH = 3.0  # a chart extends at most this many times the height of the used weights, or they would be flat


class TreeWeights(NamedTuple):
    """The weights of a run's trees: as the search found them, and as clipped to the allowed range."""

    fold: int
    tree: Floats
    searched: Floats
    weight: Floats

    @property
    def share_raised(self) -> float:
        """The share of the trees whose searched weight is below the lowest allowed."""
        return float((self.weight > self.searched).mean())

    @property
    def share_lowered(self) -> float:
        """The share of the trees whose searched weight is above the highest allowed."""
        return float((self.weight < self.searched).mean())


def _make_content(summary: Summary) -> Content | None:
    """Make the lead and the blocks of section "Tree weights"; return None if there is nothing to show."""
    histories = {m: table for m, table in split_by_method(summary.results, "history").items() if "searched" in table}
    found = {method: list_tree_weights(table) for method, table in histories.items()}
    methods = {method: runs for method, runs in found.items() if runs}
    if not methods:
        return None
    lead = (
        "The weight of each tree: found by an exact search on the training measure, then clipped. Where the "
        "searched weight is above the highest allowed, a larger step would have gained more in that round. At "
        "0, leaving the tree out was best. Below 0, the reversed tree would have helped."
    )
    return Content(
        lead, [make_choice("Method", [(m, _draw_chart(m, runs)) for m, runs in methods.items()]), _make_grid(methods)]
    )


def list_tree_weights(table: Table) -> list[TreeWeights]:
    """Return the searched and the clipped weights of each run's trees."""
    searched = select_rows(table, np.isfinite(table["searched"]))
    return [
        TreeWeights(int(run["fold"][0]), *(run[name].astype(float) for name in ("round", "searched", "weight")))
        for run in (split_runs(searched) if len(searched["fold"]) else [])
    ]


def _draw_chart(method: str, runs: Sequence[TreeWeights]) -> Chart:
    """Draw the weights of a method's trees, a panel for the first seed of each fold."""
    first = {run.fold: run for run in reversed(runs)}
    shown = [first[fold] for fold in sorted(first)][:MOST_PANELS]
    layout = base.make_layout([f"fold {run.fold}" for run in shown], "tree", "weight")
    layout["yaxis"] |= {"range": choose_heights(shown)}
    data = [trace for panel, run in enumerate(shown) for trace in _make_traces(method, run, panel)]
    caption = f"{method}: the weight of each tree as searched (points) and as used (line)."
    if len(first) > len(shown):
        caption += f" The first {len(shown)} folds."
    if max(len(run.tree) for run in shown) > MOST_POINTS:
        caption += f" {MOST_POINTS} trees of each, evenly spread."
    low, high = choose_heights(shown)
    outside = np.mean(np.concatenate([(run.searched < low) | (run.searched > high) for run in shown]))
    if outside > 0:
        caption += f" {outside:.0%} of the searched weights lie outside." if outside > 0.01 else " A few lie outside."
    return Chart(data, layout, caption, base.compute_height(len(shown)))


def choose_heights(runs: Sequence[TreeWeights]) -> list[float]:
    """Return the vertical range of the panels: it holds all clipped weights, and most of the searched ones."""
    given = np.concatenate([run.weight for run in runs])
    least, most = min(float(given.min()), 0.0), max(float(given.max()), 0.0)
    low, high = np.percentile(np.concatenate([run.searched for run in runs]), _USUAL).tolist()
    low, high = np.clip((low, high), least - _REACH * (most - least), most + _REACH * (most - least)).tolist()
    low, high = min(low, least), max(high, most)
    margin = 0.06 * (high - low) or 0.1
    return [low - margin, high + margin]


def _make_traces(method: str, run: TreeWeights, panel: int) -> list[dict[str, Any]]:
    """Return Plotly's traces of a run's weights: points as searched, and a line as clipped."""
    some = thin_numbers(len(run.tree))
    own: list[dict[str, Any]] = [
        {
            "name": "searched",
            "mode": "markers",
            "y": run.searched[some],
            "marker": {"size": 4, "color": "var(--muted)", "symbol": "circle", "opacity": 0.7},
        },
        {"name": "given", "mode": "lines", "y": run.weight[some], "line": {"width": 1.5, "dash": "solid"}},
    ]
    about = {"type": "scatter", "method": method, "x": run.tree[some], **base.name_axes(panel)}
    hover = "tree %{x}: %{y:.3f}"
    return [{**about, "meta": f"fold {run.fold}, {each['name']}", "hovertemplate": hover, **each} for each in own]


def _make_grid(methods: Mapping[str, Sequence[TreeWeights]]) -> Grid:
    """Make the table of how many trees' weights each method clipped."""
    of_run = "mean over folds and seeds"
    columns = [
        Column("method"),
        Column("trees", 1, title=f"that were grown; {of_run}"),
        Column("raised", 2, title=f"share of the trees whose searched weight was below the lowest allowed; {of_run}"),
        Column("unclipped", 2, title=f"share of the trees that have the searched weight; {of_run}"),
        Column(
            "lowered", 2, title=(f"share of the trees whose searched weight was above the highest allowed; {of_run}")
        ),
        Column("not above 0", 2, title=f"share of the trees whose searched weight was at most 0; {of_run}"),
        Column("median searched", 3, title=f"weight; {of_run}"),
        Column("median given", 3, title=f"weight; {of_run}"),
    ]
    body = [Row([method, *_compute_cells(runs)], (method,)) for method, runs in methods.items()]
    note = (
        "Raised and lowered are the trees whose weight was clipped. All trees count, also those after the round "
        "that was kept."
    )
    return Grid(columns, body, "Weights of trees, as searched and as clipped.", note)


def _compute_cells(runs: Sequence[TreeWeights]) -> list[float]:
    """Return the cells of a method's row, as means over its runs."""
    found = [
        (
            len(run.tree),
            run.share_raised,
            1.0 - run.share_raised - run.share_lowered,
            run.share_lowered,
            float((run.searched <= 0.0).mean()),
            float(np.median(run.searched)),
            float(np.median(run.weight)),
        )
        for run in runs
    ]
    means: list[float] = np.mean(found, axis=0).tolist()
    return means


TREE_WEIGHTS = ReportSection("Tree weights", ("history",), _make_content, INTERNALS)
