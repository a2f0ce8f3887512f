"""Section on profiles: the measure as a function of one weight."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankwright.analysis.results import Table
from rankwright.basics.array_types import Floats
from rankwright.basics.number_texts import DIGITS, format_number
from rankwright.report.blocks import Block, Chart, Column, Grid, Row
from rankwright.report.chosen_runs import select_rows, split_by_method, split_runs
from rankwright.report.sections import base
from rankwright.report.sections.base import INTERNALS, Content, ReportSection, find_training_measure, make_choice
from rankwright.report.summary import Summary

MOST_CHARTS = 20  # the most charts of a page: each may take 90 kilobytes
_PARTS = {"train": "training", "valid": "validation", "test": "test"}
_COLOURS = {"train": "var(--ink)", "valid": "var(--method-4)", "test": "var(--worse)"}


class ProfileLine(NamedTuple):
    """The measure as a function of one feature's weight, the others fixed: its values at several effects."""

    feature: str
    effect: float
    at: Floats
    values: Mapping[str, Floats]  # by part

    def chosen(self, part: str) -> float:
        """Return the measure at the weight that was chosen."""
        return self._nearest(part, self.effect)

    def change(self, part: str) -> Floats:
        """Return how much more the measure would be than at the weight that was chosen."""
        return self.values[part] - self.chosen(part)

    def lost(self, part: str) -> float:
        """Return how much less the measure would be if the weight were 0."""
        return self.chosen(part) - self._nearest(part, 0.0)

    def missed(self, part: str) -> float:
        """Return how much more the measure would be at the best place."""
        return float(np.max(self.change(part)))

    def _nearest(self, part: str, effect: float) -> float:
        return float(self.values[part][np.argmin(np.abs(self.at - effect))])


def _make_content(summary: Summary) -> Content | None:
    """Make the lead and the blocks of section "Along each weight"; return None if there is nothing to show."""
    methods = split_by_method(summary.results, "profiles")
    if not methods:
        return None
    n_folds = max(MOST_CHARTS // len(methods), 1)
    charts = [(method, _draw_folds(summary, method, table, n_folds)) for method, table in methods.items()]
    lead = (
        "For methods that search along one weight at a time: the measure as one weight changes and the others "
        "stay. Where a curve hardly falls, the weight hardly matters. A narrow peak may be chance. Where "
        "validation or test queries peak elsewhere, the weight suits the training queries only."
    )
    return Content(lead, [make_choice("Method", charts), _make_grid(summary, methods)])


def list_lines(run: Table) -> list[ProfileLine]:
    """Return the profile of each weight of a run, the weight with the largest effect first."""
    found = []
    for feature in dict.fromkeys(run["feature"].tolist()):
        own = select_rows(run, run["feature"] == feature)
        values = {part: np.asarray(own[part], dtype=np.float64) for part in _PARTS}
        found.append(
            ProfileLine(str(feature), float(own["effect"][0]), np.asarray(own["at"], dtype=np.float64), values)
        )
    return sorted(found, key=lambda line: -abs(line.effect))


def _draw_folds(summary: Summary, method: str, table: Table, n_folds: int) -> Block:
    """Draw the profiles of the first seed of each of the first folds, among which the reader chooses."""
    measure = find_training_measure(summary, {method: table}).axis
    first = {int(run["fold"][0]): run for run in reversed(split_runs(table))}
    charts = [
        (f"fold {fold}", _draw_chart(list_lines(first[fold]), measure, f"{method}, fold {fold}"))
        for fold in sorted(first)[:n_folds]
    ]
    return make_choice("Fold", charts)


def _draw_chart(lines: Sequence[ProfileLine], measure: str, where: str) -> Chart:
    """Draw the profiles of a run's weights, a panel for each."""
    layout = base.make_layout([line.feature for line in lines], "effect", f"change of {measure}")
    layout["shapes"] = [_mark_weight(line, panel) for panel, line in enumerate(lines)]
    layout["yaxis"] |= {"range": choose_heights(lines)}
    levels = ", ".join(
        f"{format_number(lines[0].chosen(part))} on {name} queries"
        for part, name in _PARTS.items()
        if _has_values(lines[0], part)
    )
    n = len(lines)
    weights = "the weight that is not 0" if n == 1 else f"the {n} weights of the largest effect, one by one"
    caption = (
        f"{where}: how {measure} changes along {weights}; it is {levels}. From left to right, the "
        "effect of the feature: its weight times its standard deviation in training, in units of the score, each panel "
        "with a range of its own. The dotted line is the weight that was chosen; at 0 the feature is not used. A curve "
        "that leaves its panel falls further."
    )
    data = [trace for panel, line in enumerate(lines) for trace in _make_traces(line, panel)]
    return Chart(data, layout, caption, base.compute_height(len(lines)))


def _has_values(line: ProfileLine, part: str) -> bool:
    """Return whether the profile has the measure on these queries, such as the test queries, everywhere."""
    return bool(np.isfinite(line.values[part]).all())


def choose_heights(lines: Sequence[ProfileLine]) -> list[float]:
    """Return the vertical range of the panels: it holds all rises, and falls as deep as those of most panels."""
    changes = [[line.change(part) for part in _PARTS if _has_values(line, part)] for line in lines]
    rise = max(float(np.max(change)) for panel in changes for change in panel)
    fall = float(np.median([-min(float(np.min(change)) for change in panel) for panel in changes]))
    reach = max(fall, rise, 1e-4)
    return [-1.25 * reach, 1.25 * max(rise, reach / 4)]


def _make_traces(line: ProfileLine, panel: int) -> list[dict[str, Any]]:
    """Return Plotly's traces of a weight's profile: on training, validation and test queries, if known."""
    return [_make_trace(line, part, panel) for part in _PARTS if _has_values(line, part)]


def _make_trace(line: ProfileLine, part: str, panel: int) -> dict[str, Any]:
    """Return Plotly's trace of a weight's profile on one part of the queries, such as the test queries."""
    at = np.round(line.at, 4 - int(np.floor(np.log10(np.ptp(line.at)))))  # as many digits as can be seen
    change = np.round(line.change(part), 5)
    kept = find_turns(change)
    return {
        "type": "scatter",
        "mode": "lines",
        "x": at[kept],
        "y": change[kept],
        "name": _PARTS[part],
        "meta": f"{base.name_feature(line.feature)}, {_PARTS[part]}",
        "line": {"shape": "hvh", "width": 1.3, "color": _COLOURS[part], "dash": "solid"},
        "hovertemplate": "effect %{x:.4g}<br>%{y:+.4f}",
        **base.name_axes(panel),
    }


def find_turns(values: Floats) -> NDArray[np.bool_]:
    """Return a mask of the points that a line of steps needs: its ends, and those beside a step.

    >>> find_turns(np.array([1.0, 1.0, 1.0, 2.0, 2.0])).tolist()
    [True, False, True, True, True]
    """
    same = values[1:] == values[:-1]
    kept = np.ones(len(values), dtype=bool)
    kept[1:-1] = ~(same[1:] & same[:-1])
    return kept


def _mark_weight(line: ProfileLine, panel: int) -> dict[str, Any]:
    """Return Plotly's dotted vertical line at the weight that training chose."""
    axes = {"xref": f"x{base.find_axis_suffix(panel)}", "yref": f"y{base.find_axis_suffix(panel)} domain"}
    stroke = {"color": "var(--muted)", "width": 1.5, "dash": "dot"}
    return {"type": "line", "x0": line.effect, "x1": line.effect, "y0": 0, "y1": 1, **axes, "line": stroke}


def _make_grid(summary: Summary, methods: Mapping[str, Table]) -> Grid:
    """Make the table of what each weight is worth: the loss at weight 0, and the gain at the best weight."""
    lost = "the loss of the measure if the weight were 0"
    missed = "the gain of the measure at the best of the places shown"
    columns = [
        Column("method"),
        Column("feature"),
        Column("runs", title="folds and seeds in which its effect is among the largest: the means are over these"),
        Column("effect", 3, title="weight times standard deviation in training, in shares of the largest of the run"),
        *(Column(f"lost, {part}", DIGITS, title=f"{name} queries: {lost}") for part, name in _PARTS.items()),
        *(Column(f"missed, {part}", DIGITS, title=f"{_PARTS[part]} queries: {missed}") for part in ("valid", "test")),
    ]
    body = [row for method, table in methods.items() for row in _make_rows(method, table)]
    trained_on = find_training_measure(summary, methods)
    caption = f"The contribution of each weight: {trained_on.axis}, mean over folds and seeds."
    note = (
        f"Lost: {lost}, while the others stay. Missed: {missed}, which is known only afterwards. Where it is "
        f"large, the weight that training chose suits the training queries only.{trained_on.more}"
    )
    return Grid(columns, body, caption, note)


def _make_rows(method: str, table: Table) -> list[Row]:
    """Return a row for each feature of a method, the one whose weight is worth most in training first."""
    found: dict[str, list[list[float]]] = {}
    for run in split_runs(table):
        lines = list_lines(run)
        for line in lines:
            lost, missed = [line.lost(part) for part in _PARTS], [line.missed(part) for part in ("valid", "test")]
            found.setdefault(line.feature, []).append([line.effect / abs(lines[0].effect), *lost, *missed])
    means = {feature: np.mean(figures, axis=0).tolist() for feature, figures in found.items()}
    ordered = sorted(means, key=lambda feature: -means[feature][1])
    return [Row([method, feature, len(found[feature]), *means[feature]], (method,)) for feature in ordered]


PROFILES = ReportSection("Along each weight", ("profiles",), _make_content, INTERNALS)
