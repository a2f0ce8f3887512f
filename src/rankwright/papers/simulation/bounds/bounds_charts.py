"""The charts of the simulation of bounds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from rankwright.basics.array_types import Floats
from rankwright.measures import Measure
from rankwright.papers.simulation.bounds.bounds_curves import (
    BASIC,
    NAMES,
    PAIRS,
    RANKS,
    SyntheticSet,
    type_one_curves,
    type_two_curves,
)
from rankwright.papers.simulation.bounds.bounds_facts import BoundFacts, Sample
from rankwright.report.blocks import Chart, Choice
from rankwright.report.notation import format_number

_COLOURS = dict(zip(NAMES, ("var(--muted)", "var(--method-0)", "var(--method-1)", "var(--method-2)"), strict=True))
_DASHES = dict(zip(NAMES, ("solid", "solid", "solid", "dash"), strict=True))
_QUARTERS = {
    "tickvals": [0, 0.25, 0.5, 0.75, 1, 1.25, 1.5, 1.75, 2],
    "ticktext": ["0", "π/4", "π/2", "3π/4", "π", "5π/4", "3π/2", "7π/4", "2π"],
}
_DOTTED = {"color": "var(--muted)", "width": 1, "dash": "dot"}


def figure_1() -> Chart:
    """Draw type one bounds against E."""
    table = type_one_curves()
    names = {
        BASIC: "basic loss, 1 - E",
        "exponential": "exponential, exp(-E)",
        "logistic": "logistic, log₂(1 + exp(-E))",
    }
    data = [_line(table["E"], table[key], name) for key, name in names.items()]
    return Chart(data, _axes("E", "loss"), "Figure 1: the basic loss of a query and type one bounds on it.", 380)


def figure_2() -> Chart:
    """Draw type two bounds against F(b) - F(c)."""
    x, *_ = table = type_two_curves()
    data = [_line(table[x], column, name) for name, column in table.items() if name != x]
    data[0]["line"] = {"shape": "vh"}  # the loss falls right after 0
    layout = _axes(x, "loss", {"range": [0, 2]})
    return Chart(data, layout, "Figure 2: one term of eq. (6), the step, and bounds on it.", 380)


def figure(measure: Measure, each: SyntheticSet, sample: Sample) -> Choice:
    """Draw figure 3 or 4, near the minima and as a whole: type two goes up to several hundred."""
    low = _circle(measure, each, sample, {"range": [0, 1.2]}, "")
    whole = _circle(measure, each, sample, {"type": "log"}, " A loss of 0 is not on the logarithmic axis.")
    return Choice("Losses", [("up to 1.2", low), ("all values", whole)])


def _circle(measure: Measure, each: SyntheticSet, sample: Sample, y: Mapping[str, Any], more: str) -> Chart:
    theta, values, _ = sample.curves
    data = [
        _line(theta / np.pi, column, name, line={"color": _COLOURS[name], "dash": _DASHES[name]})
        for name, column in values.items()
    ]
    data += [_minimum(name, sample.facts[name]) for name in (PAIRS, RANKS)]
    quarter = {"type": "line", "x0": 0.25, "x1": 0.25, "yref": "paper", "y0": 0, "y1": 1, "line": _DOTTED}
    axes = _axes("θ", "loss", y)
    layout = axes | {"xaxis": axes["xaxis"] | {"range": [0, 2], **_QUARTERS}, "shapes": [quarter]}
    caption = (
        f"Figure {each.figure}: the loss 1 - E of {measure} and exponential bounds on it in every direction. Dots are "
        f"the minima of type two; the dotted line is π/4.{more}"
    )
    return Chart(data, layout, caption, 420)


def _minimum(name: str, own: BoundFacts) -> dict[str, Any]:
    marker = {"color": _COLOURS[name], "size": 9, "symbol": "circle"}
    return _line([own.start % 2.0], [own.minimum], f"minimum of {name}", "markers", marker=marker, showlegend=False)


def points(each: SyntheticSet, sample: Sample) -> Chart:
    """Return the documents, and directions of w."""
    X, y = sample.documents
    kinds = ((1, "relevant", "var(--ink)", "circle"), (0, "irrelevant", "var(--muted)", "diamond-open"))
    data = [
        _line(X[y == grade, 0], X[y == grade, 1], name, "markers", marker={"color": colour, "symbol": symbol})
        for grade, name, colour, symbol in kinds
    ]
    least = f"minimum of {PAIRS}, {format_number(sample.facts[PAIRS].start, 3)} π"
    directions = {
        "π/4": (0.25, "var(--muted)", "dot"),
        least: (sample.facts[PAIRS].start, _COLOURS[PAIRS], "solid"),
    }
    if not np.isclose(each.fisher, 0.25):
        directions[f"best for the Gaussians, {format_number(each.fisher, 3)} π"] = (
            each.fisher,
            "var(--method-3)",
            "dash",
        )
    reach = 1.1 * float(np.abs(X).max())
    ends = np.array([-reach, reach])
    for name, (theta, colour, dash) in directions.items():
        x, y = ends * np.cos(np.pi * theta), ends * np.sin(np.pi * theta)
        data.append(_line(x, y, name, line={"color": colour, "dash": dash}))
    square = {"range": [-reach, reach], "constrain": "domain"}
    axes = _axes("first feature", "second feature", {**square, "scaleanchor": "x"})
    layout = axes | {"xaxis": {**axes["xaxis"], **square, "constraintoward": "left"}}
    return Chart(data, layout, f"The documents of set {each.number}, and directions of w.", 420)


def _line(
    x: Floats | Sequence[float], y: Floats | Sequence[float], name: str, mode: str = "lines", **more: Any
) -> dict[str, Any]:
    return {"type": "scatter", "mode": mode, "x": x, "y": y, "name": name, **more}


def _axes(x: str, y: str, y_axis: Mapping[str, Any] | None = None) -> dict[str, Any]:
    return {"xaxis": {"title": {"text": x}}, "yaxis": {"title": {"text": y}, **(y_axis or {"rangemode": "tozero"})}}
