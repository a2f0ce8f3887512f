"""Sections on features: the weights of linear methods, and the importance of features in trees."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankwright.analysis.results import Table
from rankwright.basics.array_types import Floats
from rankwright.basics.number_texts import DIGITS
from rankwright.report.blocks import Block, Cell, Chart, Column, Grid, Row
from rankwright.report.chosen_runs import compute_fold_means, select_on_all_folds
from rankwright.report.sections.base import INTERNALS, Content, ReportSection, make_choice
from rankwright.report.summary import Summary

MOST_FEATURES = 12
_ROW, _REST = 20, 130  # pixels for each feature, and for the axes


class Effects(NamedTuple):
    """A number for each feature of a method, such as its weight: the mean over folds, and the standard deviation."""

    features: NDArray[Any]
    mean: Floats
    spread: Floats

    def scaled(self, factor: float) -> Effects:
        """Return the effects times a factor."""
        return Effects(self.features, self.mean * factor, self.spread * factor)


def compute_effects(table: Table, column: str) -> Effects:
    """Compute each feature's mean and deviation of a column over folds; a feature absent from a fold counts as 0."""
    features, means = compute_fold_means(table, "feature", column)
    known = np.nan_to_num(means)
    return Effects(features, known.mean(axis=1), known.std(axis=1))


def rank_features(methods: Mapping[str, Effects]) -> list[str]:
    """Return the features with the largest absolute numbers in any method, the largest first."""
    largest: dict[str, float] = {}
    for effects in methods.values():
        for feature, size in zip(effects.features.tolist(), np.abs(effects.mean).tolist(), strict=True):
            largest[feature] = max(largest.get(feature, 0.0), size)
    return sorted(largest, key=lambda feature: -largest[feature])[:MOST_FEATURES]


def make_feature_map(
    methods: Mapping[str, Effects], colours: Mapping[str, Any], caption: str, digits: int = 2
) -> Chart:
    """Draw a heat map of features by methods; each method is a trace of its own, so that the reader can hide it.

    ``colours`` are Plotly's ``cmin``, ``cmax`` and ``colorscale``; {} in the caption is the number of features.
    """
    features = rank_features(methods)
    data = [
        {
            "type": "heatmap",
            "x": [method],
            "xtype": "scaled",  # Plotly misplaces a single column on a category axis
            "x0": number,
            "dx": 1,
            "y": features,
            "z": _list_numbers(effects, features),
            "coloraxis": "coloraxis",
            "hovertemplate": f"%{{y}}: %{{z:.{digits}f}}",
            "method": method,
        }
        for number, (method, effects) in enumerate(methods.items())
    ]
    layout = {
        "coloraxis": {**colours, "colorbar": {"thickness": 10, "outlinewidth": 0}},
        "xaxis": {
            "type": "linear",
            "tickvals": [*range(len(methods))],
            "ticktext": [*methods],
            "showgrid": False,
            "zeroline": False,
            "side": "top",
        },
        "yaxis": {"type": "category", "showgrid": False, "autorange": "reversed", "title": {"text": "feature"}},
    }
    return Chart(data, layout, caption.format(len(features)), height=_REST + _ROW * len(features))


def _list_numbers(effects: Effects, features: list[str]) -> list[list[float | None]]:
    """Return a method's number for each of these features, as a heat map's column; None if it has none."""
    known = dict(zip(effects.features.tolist(), effects.mean.tolist(), strict=True))
    return [[known.get(name)] for name in features]


def make_feature_bars(method: str, effects: Effects, axis: str, caption: str) -> Chart:
    """Draw bars of the largest numbers of a method's features, with their deviation between folds."""
    n = max(min(MOST_FEATURES, np.count_nonzero(effects.mean)), 1)
    order = np.argsort(-np.abs(effects.mean), kind="stable")[:n]
    data = [
        {
            "type": "bar",
            "orientation": "h",
            "x": effects.mean[order],
            "y": effects.features[order],
            "error_x": {"type": "data", "array": effects.spread[order], "thickness": 1, "width": 0},
            "method": method,
        }
    ]
    layout = {"xaxis": {"title": {"text": axis}}, "yaxis": {"type": "category", "autorange": "reversed"}}
    return Chart(data, layout, caption, height=_REST + _ROW * len(order))


def choose_method(methods: Mapping[str, Effects], shares: Chart, axis: str, what: str) -> Block:
    """Return the map of all methods and the bars of each, of which the reader sees one; without a map if there is one.

    ``what`` says what the features shown have the largest of, such as "effect".
    """
    about = f"the features of the largest {what}, mean over the folds, with the standard deviation between folds."
    bars: list[tuple[str, Block]] = [
        (m, make_feature_bars(m, each, axis, f"{m}: {about}")) for m, each in methods.items()
    ]
    return make_choice("Method", [("all methods", shares), *bars] if len(bars) > 1 else bars)


_WEIGHT_COLOURS = {
    "cmin": -1,
    "cmax": 1,
    "colorscale": [[0, "var(--worse)"], [0.5, "var(--paper)"], [1, "var(--better)"]],
}


def _show_weights(summary: Summary) -> Content | None:
    """Make the lead and the blocks of the section on feature weights; return None if there is nothing to show."""
    methods = {
        m: compute_effects(table, "effect") for m, table in select_on_all_folds(summary.results, "weights").items()
    }
    if not methods:
        return None
    caption = (
        "The {} features of the largest effect in any method: the mean over the folds, in shares of the method's "
        "largest. Where it is positive, a larger value of the feature raises the score."
    )
    shares = make_feature_map({m: scale_to_largest(each) for m, each in methods.items()}, _WEIGHT_COLOURS, caption)
    axis = "effect: weight times standard deviation of the feature"
    lead = (
        "The weights of linear methods. The effect of a feature is its weight times its standard deviation in "
        "training: how far a typical change of the feature moves the score."
    )
    return Content(lead, [choose_method(methods, shares, axis, "effect")])


def scale_to_largest(effects: Effects) -> Effects:
    """Return effects as shares of the method's largest, since the scores of methods have different scales."""
    largest = float(np.abs(effects.mean).max(initial=0.0))
    return effects.scaled(1.0 / largest) if largest > 0 else effects


WEIGHTS = ReportSection("Feature weights", ("weights",), _show_weights, INTERNALS)


MOST_ROWS = 20  # the most features of a method in the table
_GAIN_COLOURS = {"cmin": 0, "colorscale": [[0, "var(--paper)"], [1, "var(--better)"]]}


def _show_importance(summary: Summary) -> Content | None:
    """Make the lead and the blocks of the section on the gain of splits; return None if there is nothing to show."""
    tables = select_on_all_folds(summary.results, "importance")
    if not tables:
        return None
    methods = {method: compute_effects(table, "gain") for method, table in tables.items()}
    caption = "The {} features of the largest share of the gain in any method: the mean over the folds."
    colours = {**_GAIN_COLOURS, "cmax": max(float(effects.mean.max()) for effects in methods.values())}
    shares, axis = make_feature_map(methods, colours, caption), "share of the gain of all splits"
    lead = (
        "The features that the trees of a method split on. The gain of a split is its reduction of the loss "
        "that the tree was fitted to. It describes the fit, not the measure, and not the direction in which "
        "scores change. Similar features share their gain by chance: where the folds differ much, one may have "
        "replaced another."
    )
    return Content(
        lead, [choose_method(methods, shares, axis, "share of the gain"), _make_importance_grid(tables, methods)]
    )


def _make_importance_grid(tables: Mapping[str, Table], methods: Mapping[str, Effects]) -> Grid:
    """Make the table of the importance of each feature in each method's trees."""
    columns = [
        Column("method"),
        Column("feature"),
        Column("used", title="in how many folds and seeds"),
        Column("gain", DIGITS, title="share of the gain of all splits, mean over the folds; 0 where it is not used"),
        Column("sd", DIGITS, title="standard deviation of that between folds"),
        Column("splits", 1, title="on this feature, mean over folds and seeds"),
    ]
    body = [row for method, table in tables.items() for row in _make_importance_rows(method, table, methods[method])]
    note = "Used: the number of models that use the feature. rankwright.explain has the table of a single model."
    return Grid(columns, body, "How much of the gain each feature has.", note)


def _make_importance_rows(method: str, table: Table, effects: Effects) -> list[Row]:
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


IMPORTANCE = ReportSection("Gain of splits", ("importance",), _show_importance, INTERNALS)
