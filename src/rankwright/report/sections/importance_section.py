"""Section on feature importance in trees."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from rankwright.analysis.results import Table
from rankwright.report.blocks import Block, Cell, Column, Grid, Row
from rankwright.report.chosen_runs import select_on_all_folds
from rankwright.report.notation import DIGITS
from rankwright.report.sections.base import Content, ReportSection, make_choice
from rankwright.report.sections.features import Effects, compute_effects, make_feature_bars, make_feature_map
from rankwright.report.summary import Summary

MOST_ROWS = 100  # the most features of a method in the table
_COLOURS = {"cmin": 0, "colorscale": [[0, "var(--paper)"], [1, "var(--better)"]]}


def _make_content(summary: Summary) -> Content | None:
    """Make the lead and the blocks of section "Feature importance"; return None if there is nothing to show."""
    tables = select_on_all_folds(summary.results, "importance")
    if not tables:
        return None
    methods = {method: compute_effects(table, "gain") for method, table in tables.items()}
    about = "the features of the largest share of the gain, mean over the folds, with the standard deviation between"
    bars: list[tuple[str, Block]] = [
        (m, make_feature_bars(m, effects, "share of the gain of all splits", f"{m}: {about} folds."))
        for m, effects in methods.items()
    ]
    caption = "The {} features of the largest share of the gain in any method: the mean over the folds."
    colours = {**_COLOURS, "cmax": max(float(effects.mean.max()) for effects in methods.values())}
    options = [("all methods", make_feature_map(methods, colours, caption)), *bars] if len(bars) > 1 else bars
    lead = (
        "The features that the trees of a method split on. The gain of a split is its reduction of the loss "
        "that the tree was fitted to. It describes the fit, not the measure, and not the direction in which "
        "scores change. Similar features share their gain by chance: where the folds differ much, one may have "
        "replaced another."
    )
    return Content(lead, [make_choice("Method", options), _make_grid(tables, methods)])


def _make_grid(tables: Mapping[str, Table], methods: Mapping[str, Effects]) -> Grid:
    """Make the table of the importance of each feature in each method's trees."""
    columns = [
        Column("method"),
        Column("feature"),
        Column("used", title="in how many folds and seeds"),
        Column("gain", DIGITS, title="share of the gain of all splits, mean over the folds; 0 where it is not used"),
        Column("sd", DIGITS, title="standard deviation of that between folds"),
        Column("splits", 1, title="on this feature, mean over folds and seeds"),
    ]
    body = [row for method, table in tables.items() for row in _make_rows(method, table, methods[method])]
    note = "Used: the number of models that use the feature. rankwright.explain has the table of a single model."
    return Grid(columns, body, "How much of the gain each feature has.", note)


def _make_rows(method: str, table: Table, effects: Effects) -> list[Row]:
    """Return a row for each feature that a method's trees use, the one with the largest gain first."""
    made = []
    for i in np.argsort(-effects.mean, kind="stable")[:MOST_ROWS].tolist():
        splits = table["splits"][table["feature"] == effects.features[i]]
        n = int((splits > 0).sum())
        if n == 0:
            continue
        used = Cell(n, f"{n} of {len(splits)}")
        figures = float(effects.mean[i]), float(effects.spread[i]), float(splits.mean())
        made.append(Row([method, str(effects.features[i]), used, *figures], (method,)))
    return made


IMPORTANCE = ReportSection("Feature importance", ("importance",), _make_content)
