"""Charts of a number for each feature: a map of all methods, and bars of one with the spread between folds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankwright.analysis.results import Table
from rankwright.basics.array_types import Floats
from rankwright.report.blocks import Chart
from rankwright.report.chosen_runs import compute_fold_means

MOST_FEATURES = 25
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


def make_feature_map(methods: Mapping[str, Effects], colours: Mapping[str, Any], caption: str) -> Chart:
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
            "hovertemplate": "%{y}: %{z:.2f}",
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
        "yaxis": {"type": "category", "showgrid": False, "autorange": "reversed"},
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
    layout = {
        "xaxis": {"title": {"text": axis}},
        "yaxis": {"type": "category", "autorange": "reversed"},
    }
    return Chart(data, layout, caption, height=_REST + _ROW * len(order))
