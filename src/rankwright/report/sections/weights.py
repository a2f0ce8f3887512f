"""Feature weights: what the linear methods look at."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankwright.data import Floats
from rankwright.report.blocks import Block, Chart
from rankwright.report.runs import fold_means, on_all_folds
from rankwright.report.sections.base import Content, ReportSection, choice
from rankwright.report.summary import Summary
from rankwright.results import Table

MOST_FEATURES = 25
_COLOURS = [[0, "var(--worse)"], [0.5, "var(--paper)"], [1, "var(--better)"]]
_ROW, _REST = 20, 130  # pixels for each feature, and for the axes


class Effects(NamedTuple):
    """The features of a method, the mean of their effects over the folds, and the standard deviation of these."""

    features: NDArray[Any]
    mean: Floats
    spread: Floats


def _content(summary: Summary) -> Content | None:
    methods = {method: effects_of(table) for method, table in on_all_folds(summary.results, "weights").items()}
    if not methods:
        return None
    bars: list[tuple[str, Block]] = [(method, _bars(method, effects)) for method, effects in methods.items()]
    options = [("all methods", _map(methods)), *bars] if len(bars) > 1 else bars
    lead = (
        "What a linear method looks at. The effect of a feature is its weight times its standard deviation in "
        "training: how far a typical change of the feature moves the score."
    )
    return Content(lead, [choice("Method", options)])


def effects_of(table: Table) -> Effects:
    """The effects of a method's features; a feature without a weight on some fold has no effect there."""
    features, means = fold_means(table, "feature", "effect")
    known = np.nan_to_num(means)
    return Effects(features, known.mean(axis=1), known.std(axis=1))


def relative(effects: Effects) -> Floats:
    """Effects in shares of the largest: methods score on scales of their own."""
    largest = np.abs(effects.mean).max(initial=0.0)
    return effects.mean / largest if largest > 0 else effects.mean


def leading(methods: Mapping[str, Effects]) -> list[str]:
    """The features of the largest relative effect in any method, the largest first."""
    largest: dict[str, float] = {}
    for effects in methods.values():
        for feature, share in zip(effects.features.tolist(), np.abs(relative(effects)).tolist(), strict=True):
            largest[feature] = max(largest.get(feature, 0.0), share)
    return sorted(largest, key=lambda feature: -largest[feature])[:MOST_FEATURES]


def _map(methods: Mapping[str, Effects]) -> Chart:
    """A column for each method: a trace of its own, so that the reader can hide it."""
    features = leading(methods)
    data = [
        {
            "type": "heatmap",
            "x": [method],
            "xtype": "scaled",  # Plotly misplaces single columns on an axis of categories
            "x0": number,
            "dx": 1,
            "y": features,
            "z": _column(effects, features),
            "coloraxis": "coloraxis",
            "hovertemplate": "%{y}: %{z:.2f}",
            "method": method,
        }
        for number, (method, effects) in enumerate(methods.items())
    ]
    layout = {
        "coloraxis": {"cmin": -1, "cmax": 1, "colorscale": _COLOURS, "colorbar": {"thickness": 10, "outlinewidth": 0}},
        "xaxis": {
            "type": "linear",
            "tickvals": [*range(len(methods))],
            "ticktext": [*methods],
            "showgrid": False,
            "zeroline": False,
            "side": "top",
        },
        "yaxis": {"type": "category", "showgrid": False, "autorange": "reversed"},
    }
    caption = (
        f"The {len(features)} features of the largest effect in any method: the mean over the folds, in shares of the "
        "method's largest. Where it is positive, a larger value of the feature raises the score."
    )
    return Chart(data, layout, caption, height=_REST + _ROW * len(features))


def _column(effects: Effects, features: list[str]) -> list[list[float | None]]:
    shares = dict(zip(effects.features.tolist(), relative(effects).tolist(), strict=True))
    return [[shares.get(name)] for name in features]


def _bars(method: str, effects: Effects) -> Chart:
    order = np.argsort(-np.abs(effects.mean), kind="stable")[
        : max(min(MOST_FEATURES, np.count_nonzero(effects.mean)), 1)
    ]
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
    layout = {
        "xaxis": {"title": {"text": "effect: weight times standard deviation of the feature"}},
        "yaxis": {"type": "category", "autorange": "reversed"},
    }
    caption = (
        f"{method}: the features of the largest effect, mean over the folds, with the standard deviation between folds."
    )
    return Chart(data, layout, caption, height=_REST + _ROW * len(order))


WEIGHTS = ReportSection("Feature weights", ("weights",), _content)
