"""Section on the step functions of methods with stumps."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from rankwright.analysis.feature_effects import describe_trend
from rankwright.analysis.results import Table
from rankwright.basics.array_types import Floats
from rankwright.report.blocks import Cell, Chart, Column, Grid, Row
from rankwright.report.chosen_runs import rows_by_method, select_rows, split_runs
from rankwright.report.notation import DIGITS, format_count
from rankwright.report.sections import panels
from rankwright.report.sections.base import Content, ReportSection, make_choice
from rankwright.report.summary import Summary

MOST_PANELS = 8
_MARGIN = 0.08  # the margin beyond the thresholds, as a share of the width of a panel
_UNEVEN = 20.0  # an axis is logarithmic where largest / median threshold exceeds this
_MEAN, _SINGLE = "mean over folds", "single folds"


class Function(NamedTuple):
    """The step function of a feature on one run, which is a fold and a seed."""

    fold: int
    thresholds: Floats
    values: Floats
    missing: float  # the value where the feature is missing; NaN where the model does not allow that
    range: float
    stumps: int

    def __call__(self, x: Floats) -> Floats:
        """Return the values just above some places."""
        above: Floats = self.values[np.searchsorted(self.thresholds, x, side="right")]
        return above


class Learned(NamedTuple):
    """The step functions of a feature in several runs; runs that do not use it add nothing to the means."""

    feature: str
    functions: Sequence[Function]
    n_runs: int

    @property
    def range(self) -> float:
        """The mean range."""
        return sum(function.range for function in self.functions) / self.n_runs

    @property
    def thresholds(self) -> Floats:
        """The thresholds of all functions."""
        return np.unique(np.concatenate([function.thresholds for function in self.functions]))

    def mean(self, x: Floats) -> Floats:
        """Return the mean of the functions just above some places."""
        total: Floats = np.sum([function(x) for function in self.functions], axis=0)
        return total / self.n_runs


def _content(summary: Summary) -> Content:
    methods = rows_by_method(summary.results, "steps")
    charts = [(method, _chart(method, learned(_first_seeds(table)))) for method, table in methods.items()]
    lead = (
        "Each feature adds the value of a step function to the score of a method with stumps. A step on which "
        "the folds agree has been confirmed by other queries. Where the folds differ, the step may be chance, "
        "or similar features replaced each other. A large range says that a feature changes scores, not that it "
        "improves rankings. Steps at the far ends may rest on few documents. If a method scales features within "
        "each query, the chart shows scaled features."
    )
    return Content(lead, [make_choice("Method", charts), _grid(methods)])


def learned(table: Table) -> list[Learned]:
    """Return the step functions of a method's features, the one with the largest mean range first."""
    runs, found = split_runs(table), dict[str, list[Function]]()
    for run in runs:
        for feature in dict.fromkeys(run["feature"].tolist()):
            found.setdefault(feature, []).append(_function(select_rows(run, run["feature"] == feature)))
    made = [Learned(feature, functions, len(runs)) for feature, functions in found.items()]
    return sorted(made, key=lambda feature: -feature.range)


def _function(own: Table) -> Function:
    single = (own[name][0] for name in ("missing", "range", "stumps"))
    return Function(int(own["fold"][0]), own["from"][1:].astype(float), own["value"].astype(float), *single)


def _first_seeds(table: Table) -> Table:
    """Return the rows of the first seed of each fold."""
    first = {fold: table["seed"][table["fold"] == fold].min() for fold in np.unique(table["fold"]).tolist()}
    return select_rows(table, table["seed"] == np.array([first[fold] for fold in table["fold"].tolist()]))


def _chart(method: str, features: Sequence[Learned]) -> Chart:
    shown = features[:MOST_PANELS]
    layout = panels.make_layout([feature.feature for feature in shown], "value of the feature", "adds to the score")
    data = []
    for panel, feature in enumerate(shown):
        axis = _axis(feature.thresholds)
        layout[f"xaxis{panels.axis_suffix(panel)}"] |= axis.layout
        data += _traces(method, feature, axis, panel)
    what = (
        f"the {format_count(len(shown), 'feature')} of the largest range" if len(features) > 1 else "its only feature"
    )
    folds = "Thin: single folds; thick: their mean, in which a fold that does not use a feature counts as 0. "
    caption = (
        f"{method}: step functions of {what}. {folds if shown[0].n_runs > 1 else ''}Each starts at 0 on the left, as "
        "only differences matter. All panels have the same height; each has a width of its own."
    )
    return Chart(data, layout, caption, panels.chart_height(len(shown)))


class _Axis(NamedTuple):
    """The range of a panel's axis, and whether it is logarithmic."""

    low: float
    high: float
    layout: dict[str, Any]


def _axis(thresholds: Floats) -> _Axis:
    """Choose an axis around all thresholds, logarithmic where they are positive and a few are far away."""
    low, high = float(thresholds[0]), float(thresholds[-1])
    if low > 0 and high > _UNEVEN * float(np.median(thresholds)):
        margin = (high / low) ** _MARGIN
        return _Axis(low / margin, high * margin, {"type": "log", "exponentformat": "power"})
    margin = _MARGIN * (high - low) or abs(high) or 1.0
    return _Axis(low - margin, high + margin, {})


def _traces(method: str, feature: Learned, axis: _Axis, panel: int) -> list[dict[str, Any]]:
    name = panels.name_feature(feature.feature)
    several = feature.n_runs > 1
    thin = {"shape": "hv", "width": 1 if several else 2, "dash": "solid"}
    own = [
        {
            "name": _SINGLE if several else method,
            "meta": f"{name}, fold {function.fold}",
            "line": thin,
            "opacity": 0.55 if several else 1.0,
            "hovertemplate": f"fold {function.fold}: %{{y:.4f}} above %{{x:.4g}}",
            **_line(function.thresholds, function.values, axis),
        }
        for function in feature.functions
    ]
    if several:
        places = feature.thresholds
        values = np.append(0.0, feature.mean(places))
        thick = {"shape": "hv", "width": 2.2, "color": "var(--ink)", "dash": "solid"}
        hover = "mean: %{y:.4f} above %{x:.4g}"
        line = _line(places, values, axis)
        own.append({"name": _MEAN, "meta": f"{name}, mean", "line": thick, "hovertemplate": hover, **line})
    return [
        {"type": "scatter", "mode": "lines", "method": method, **panels.trace_axes(panel), **trace} for trace in own
    ]


def _line(thresholds: Floats, values: Floats, axis: _Axis) -> dict[str, list[float]]:
    """Return a point where each step begins, and one at the right end; with as many digits as can be seen."""
    x = [axis.low, *thresholds.tolist(), axis.high]
    y = [*values.tolist(), values[-1]]
    return {"x": [float(f"{at:.6g}") for at in x], "y": [round(float(value), 5) for value in y]}


def _grid(methods: Mapping[str, Table]) -> Grid:
    features = {method: learned(table) for method, table in methods.items()}
    lacks = any(np.nan_to_num(table["missing"]).any() for table in methods.values())
    columns = [
        Column("method"),
        Column("feature"),
        Column("used", title="in how many folds and seeds"),
        Column(
            "range", DIGITS, title=("highest minus lowest value, mean over folds and seeds; 0 where it is not used")
        ),
        Column(
            "of largest", 2, title="the range in shares of the largest of the method, whose scores have their own scale"
        ),
        Column("stumps", 1, title="on this feature, mean over folds and seeds"),
        Column("values", title="their direction from left to right, and the number of folds and seeds"),
        *([Column("missing", DIGITS, title="the value where the feature is missing, mean where it is used")] * lacks),
    ]
    body = [
        Row([method, *_figures(feature, found[0].range, lacks)], (method,))
        for method, found in features.items()
        for feature in found
    ]
    note = (
        "Used: the number of models that use the feature. The range is the largest change of a score by the "
        "feature, whatever the others are. Mostly rises: its falls are at most a tenth of all its changes. "
        "rankwright.explain has the table of a single model."
    )
    return Grid(columns, body, "The largest effect of each feature, and its direction.", note)


def _figures(feature: Learned, largest: float, lacks: bool) -> list[Any]:
    functions, n = feature.functions, feature.n_runs
    stumps = sum(function.stumps for function in functions) / n
    share = feature.range / largest if largest > 0 else 0.0
    used = Cell(len(functions), f"{len(functions)} of {n}")
    missing = [float(np.mean([function.missing for function in functions]))] if lacks else []
    return [feature.feature, used, feature.range, share, stumps, _ways(functions), *missing]


def _ways(functions: Sequence[Function]) -> str:
    """Return which way functions go: the most frequent first, with numbers where they differ."""
    ways = Counter(describe_trend(function.values) for function in functions).most_common()
    return ways[0][0] if len(ways) == 1 else ", ".join(f"{way} {n}" for way, n in ways)


STEPS = ReportSection("Step functions", ("steps",), _content)
