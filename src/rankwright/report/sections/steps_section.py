"""Section on the step functions of methods with stumps."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from rankwright.analysis.feature_effects import describe_trend
from rankwright.analysis.results import Table
from rankwright.basics.array_types import Floats
from rankwright.basics.number_texts import DIGITS
from rankwright.report.blocks import Cell, Chart, Column, Grid, Row
from rankwright.report.chosen_runs import select_rows, split_by_method, split_runs
from rankwright.report.notation import format_count
from rankwright.report.sections import base
from rankwright.report.sections.base import INTERNALS, Content, ReportSection, make_choice
from rankwright.report.summary import Summary

MOST_PANELS = 8
_MARGIN = 0.08  # the margin beyond the thresholds, as a share of the width of a panel
_UNEVEN = 20.0  # an axis is logarithmic where largest / median threshold exceeds this
_MEAN, _SINGLE = "mean over folds", "single folds"


class Function(NamedTuple):
    """The step function that one run, which is a fold and a seed, learned for a feature."""

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


class LearnedSteps(NamedTuple):
    """The step functions that several runs learned for one feature; a run that does not use it counts as 0 in means."""

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


def _make_content(summary: Summary) -> Content:
    """Make the lead and the blocks of section "Step functions" of the report."""
    methods = split_by_method(summary.results, "steps")
    charts = [
        (method, _draw_chart(method, collect_step_functions(_select_first_seeds(table))))
        for method, table in methods.items()
    ]
    lead = (
        "Each feature adds the value of a step function to the score of a method with stumps. A step on which "
        "the folds agree has been confirmed by other queries. Where the folds differ, the step may be chance, "
        "or similar features replaced each other. A large range says that a feature changes scores, not that it "
        "improves rankings. Steps at the far ends may rest on few documents. If a method scales features within "
        "each query, the chart shows scaled features."
    )
    return Content(lead, [make_choice("Method", charts), _make_grid(methods)])


def collect_step_functions(table: Table) -> list[LearnedSteps]:
    """Return the step functions of each feature that a method uses, the feature with the largest mean range first."""
    runs, found = split_runs(table), dict[str, list[Function]]()
    for run in runs:
        for feature in dict.fromkeys(run["feature"].tolist()):
            found.setdefault(feature, []).append(_make_function(select_rows(run, run["feature"] == feature)))
    made = [LearnedSteps(feature, functions, len(runs)) for feature, functions in found.items()]
    return sorted(made, key=lambda feature: -feature.range)


def _make_function(own: Table) -> Function:
    """Make the step function of a feature from its rows of one run."""
    single = (own[name][0] for name in ("missing", "range", "stumps"))
    return Function(int(own["fold"][0]), own["from"][1:].astype(float), own["value"].astype(float), *single)


def _select_first_seeds(table: Table) -> Table:
    """Return the rows of the first seed of each fold."""
    first = {fold: table["seed"][table["fold"] == fold].min() for fold in np.unique(table["fold"]).tolist()}
    return select_rows(table, table["seed"] == np.array([first[fold] for fold in table["fold"].tolist()]))


def _draw_chart(method: str, features: Sequence[LearnedSteps]) -> Chart:
    """Draw the step functions of the features with the largest ranges, a panel for each."""
    shown = features[:MOST_PANELS]
    layout = base.make_layout([feature.feature for feature in shown], "value of the feature", "adds to the score")
    data = []
    for panel, feature in enumerate(shown):
        axis = _choose_axis(feature.thresholds)
        layout[f"xaxis{base.find_axis_suffix(panel)}"] |= axis.layout
        data += _make_traces(method, feature, axis, panel)
    what = (
        f"the {format_count(len(shown), 'feature')} of the largest range" if len(features) > 1 else "its only feature"
    )
    folds = "Thin: single folds; thick: their mean, in which a fold that does not use a feature counts as 0. "
    caption = (
        f"{method}: step functions of {what}. {folds if shown[0].n_runs > 1 else ''}Each starts at 0 on the left, as "
        "only differences matter. All panels have the same height; each has a width of its own."
    )
    return Chart(data, layout, caption, base.compute_height(len(shown)))


class _PanelAxis(NamedTuple):
    """The horizontal axis of a panel: its range, and Plotly's layout of it, which may be logarithmic."""

    low: float
    high: float
    layout: dict[str, Any]


def _choose_axis(thresholds: Floats) -> _PanelAxis:
    """Choose an axis around all thresholds: logarithmic if they are positive and a few are far away."""
    low, high = float(thresholds[0]), float(thresholds[-1])
    if low > 0 and high > _UNEVEN * float(np.median(thresholds)):
        margin = (high / low) ** _MARGIN
        return _PanelAxis(low / margin, high * margin, {"type": "log", "exponentformat": "power"})
    margin = _MARGIN * (high - low) or abs(high) or 1.0
    return _PanelAxis(low - margin, high + margin, {})


def _make_traces(method: str, feature: LearnedSteps, axis: _PanelAxis, panel: int) -> list[dict[str, Any]]:
    """Return Plotly's traces of a feature: its step function on each fold, and their mean."""
    name = base.name_feature(feature.feature)
    several = feature.n_runs > 1
    thin = {"shape": "hv", "width": 1 if several else 2, "dash": "solid"}
    own = [
        {
            "name": _SINGLE if several else method,
            "meta": f"{name}, fold {function.fold}",
            "line": thin,
            "opacity": 0.55 if several else 1.0,
            "hovertemplate": f"fold {function.fold}: %{{y:.4f}} above %{{x:.4g}}",
            **_make_line(function.thresholds, function.values, axis),
        }
        for function in feature.functions
    ]
    if several:
        places = feature.thresholds
        values = np.append(0.0, feature.mean(places))
        thick = {"shape": "hv", "width": 2.2, "color": "var(--ink)", "dash": "solid"}
        hover = "mean: %{y:.4f} above %{x:.4g}"
        line = _make_line(places, values, axis)
        own.append({"name": _MEAN, "meta": f"{name}, mean", "line": thick, "hovertemplate": hover, **line})
    return [{"type": "scatter", "mode": "lines", "method": method, **base.name_axes(panel), **trace} for trace in own]


def _make_line(thresholds: Floats, values: Floats, axis: _PanelAxis) -> dict[str, list[float]]:
    """Return the points of a step function as Plotly's x and y: one where each step begins, one at the right end."""
    x = [axis.low, *thresholds.tolist(), axis.high]
    y = [*values.tolist(), values[-1]]
    return {"x": [float(f"{at:.6g}") for at in x], "y": [round(float(value), 5) for value in y]}


def _make_grid(methods: Mapping[str, Table]) -> Grid:
    """Make the table of the features that each method uses, with the range of their step functions."""
    features = {method: collect_step_functions(table) for method, table in methods.items()}
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
        Row([method, *_list_cells(feature, found[0].range, lacks)], (method,))
        for method, found in features.items()
        for feature in found
    ]
    note = (
        "Used: the number of models that use the feature. The range is the largest change of a score by the "
        "feature, whatever the others are. Mostly rises: its falls are at most a tenth of all its changes. "
        "rankwright.explain has the table of a single model."
    )
    return Grid(columns, body, "The largest effect of each feature, and its direction.", note)


def _list_cells(feature: LearnedSteps, largest: float, lacks: bool) -> list[Any]:
    """Return the cells of a feature's row, after the method."""
    functions, n = feature.functions, feature.n_runs
    stumps = sum(function.stumps for function in functions) / n
    share = feature.range / largest if largest > 0 else 0.0
    used = Cell(len(functions), f"{len(functions)} of {n}")
    missing = [float(np.mean([function.missing for function in functions]))] if lacks else []
    return [feature.feature, used, feature.range, share, stumps, _describe_trends(functions), *missing]


def _describe_trends(functions: Sequence[Function]) -> str:
    """Say whether the step functions rise or fall: the most frequent first, with counts if they differ."""
    ways = Counter(describe_trend(function.values) for function in functions).most_common()
    return ways[0][0] if len(ways) == 1 else ", ".join(f"{way} {n}" for way, n in ways)


STEPS = ReportSection("Step functions", ("steps",), _make_content, INTERNALS)
