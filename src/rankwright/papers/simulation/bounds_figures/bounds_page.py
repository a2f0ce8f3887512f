"""The charts and the page of the simulation of bounds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from rankwright.basics.array_types import Floats
from rankwright.basics.number_texts import MISSING, format_number
from rankwright.basics.version import __version__
from rankwright.measures import Measure
from rankwright.papers.simulation.bounds_figures.bounds_curves import (
    BASIC,
    NAMES,
    PAIRS,
    RANKS,
    SETS,
    STEPS,
    Sample,
    Samples,
    SyntheticSet,
    UpperBoundFacts,
    compute_type_one_curves,
    compute_type_two_curves,
    find_ranges,
)
from rankwright.papers.simulation.bounds_figures.bounds_tables import (
    format_percent,
    format_place,
    format_range,
    make_claims_grid,
)
from rankwright.report.blocks import Block, Chart, Choice, Column, Grid, Page, Row, Section, Text

_COLOURS = dict(zip(NAMES, ("var(--muted)", "var(--method-0)", "var(--method-1)", "var(--method-2)"), strict=True))
_DASHES = dict(zip(NAMES, ("solid", "solid", "solid", "dash"), strict=True))
_QUARTERS = {
    "tickvals": [0, 0.25, 0.5, 0.75, 1, 1.25, 1.5, 1.75, 2],
    "ticktext": ["0", "π/4", "π/2", "3π/4", "π", "5π/4", "3π/2", "7π/4", "2π"],
}
_DOTTED = {"color": "var(--muted)", "width": 1, "dash": "dot"}


def draw_figure_1() -> Chart:
    """Draw figure 1: the basic loss and its type one bounds against E, the measure's value."""
    table = compute_type_one_curves()
    names = {
        BASIC: "basic loss, 1 - E",
        "exponential": "exponential, exp(-E)",
        "logistic": "logistic, log₂(1 + exp(-E))",
    }
    data = [_make_trace(table["E"], table[key], name) for key, name in names.items()]
    return Chart(data, _label_axes("E", "loss"), "Figure 1: the basic loss of a query and type one bounds on it.", 380)


def draw_figure_2() -> Chart:
    """Draw figure 2: one term of the loss and its type two bounds against F(b) - F(c), a difference of two rankings."""
    x, *_ = table = compute_type_two_curves()
    data = [_make_trace(table[x], column, name) for name, column in table.items() if name != x]
    data[0]["line"] = {"shape": "vh"}  # the loss falls right after 0
    layout = _label_axes(x, "loss", {"range": [0, 2]})
    return Chart(data, layout, "Figure 2: one term of eq. (6), the step, and bounds on it.", 380)


def draw_figure(measure: Measure, each: SyntheticSet, sample: Sample) -> Choice:
    """Draw figure 3 or 4, the bounds in every direction, as two charts: losses up to 1.2, and all losses."""
    low = _draw_circle(measure, each, sample, {"range": [0, 1.2]}, "")
    whole = _draw_circle(measure, each, sample, {"type": "log"}, " A loss of 0 is not on the logarithmic axis.")
    return Choice("Losses", [("up to 1.2", low), ("all values", whole)])


def _draw_circle(measure: Measure, each: SyntheticSet, sample: Sample, y: Mapping[str, Any], more: str) -> Chart:
    """Draw the loss and its bounds in every direction, with the minima of the type two bounds."""
    theta, values, _ = sample.curves
    data = [
        _make_trace(theta / np.pi, column, name, line={"color": _COLOURS[name], "dash": _DASHES[name]})
        for name, column in values.items()
    ]
    data += [_mark_minimum(name, sample.facts[name]) for name in (PAIRS, RANKS)]
    quarter = {"type": "line", "x0": 0.25, "x1": 0.25, "yref": "paper", "y0": 0, "y1": 1, "line": _DOTTED}
    axes = _label_axes("θ", "loss", y)
    layout = axes | {"xaxis": axes["xaxis"] | {"range": [0, 2], **_QUARTERS}, "shapes": [quarter]}
    caption = (
        f"Figure {each.figure}: the loss 1 - E of {measure} and exponential bounds on it in every direction. Dots are "
        f"the minima of type two; the dotted line is π/4.{more}"
    )
    return Chart(data, layout, caption, 420)


def _mark_minimum(name: str, own: UpperBoundFacts) -> dict[str, Any]:
    """Return Plotly's trace of a dot at the minimum of a bound."""
    marker = {"color": _COLOURS[name], "size": 9, "symbol": "circle"}
    return _make_trace(
        [own.start % 2.0], [own.minimum], f"minimum of {name}", "markers", marker=marker, showlegend=False
    )


def draw_points(each: SyntheticSet, sample: Sample) -> Chart:
    """Draw the documents of a data set, and the directions of the linear models that are best for them."""
    X, y = sample.documents
    kinds = ((1, "relevant", "var(--ink)", "circle"), (0, "irrelevant", "var(--muted)", "diamond-open"))
    data = [
        _make_trace(X[y == grade, 0], X[y == grade, 1], name, "markers", marker={"color": colour, "symbol": symbol})
        for grade, name, colour, symbol in kinds
    ]
    least = f"minimum of {PAIRS}, {format_number(sample.facts[PAIRS].start, 3)} π"
    directions = {"π/4": (0.25, "var(--muted)", "dot"), least: (sample.facts[PAIRS].start, _COLOURS[PAIRS], "solid")}
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
        data.append(_make_trace(x, y, name, line={"color": colour, "dash": dash}))
    square = {"range": [-reach, reach], "constrain": "domain"}
    axes = _label_axes("first feature", "second feature", {**square, "scaleanchor": "x"})
    layout = axes | {"xaxis": {**axes["xaxis"], **square, "constraintoward": "left"}}
    return Chart(data, layout, f"The documents of set {each.number}, and directions of w.", 420)


def _make_trace(
    x: Floats | Sequence[float], y: Floats | Sequence[float], name: str, mode: str = "lines", **more: Any
) -> dict[str, Any]:
    """Return Plotly's trace of a line or of points."""
    return {"type": "scatter", "mode": mode, "x": x, "y": y, "name": name, **more}


def _label_axes(x: str, y: str, y_axis: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Return Plotly's layout of two axes with these titles."""
    return {"xaxis": {"title": {"text": x}}, "yaxis": {"title": {"text": y}, **(y_axis or {"rangemode": "tozero"})}}


def make_page(measure: Measure, found: Samples) -> Page:
    """Make the page of the simulation of bounds: the paper's claims, the four figures, and ranges over the seeds."""
    seed, last = min(found), max(found)
    facts = [
        ("Measure E", str(measure)),
        ("Documents", "7 relevant, 14 irrelevant"),
        ("Directions", f"{STEPS}"),
        ("Seed of the figures", f"{seed}"),
        ("All seeds", f"{seed} to {last}"),
    ]
    sections = [
        Section("Claims and findings", _CLAIMS, [make_claims_grid(found), Text(_READING)]),
        Section("Figure 1: type one", _TYPE_ONE, [draw_figure_1()]),
        Section("Figure 2: type two", _TYPE_TWO, [draw_figure_2()]),
        *(_make_section(measure, each, found[seed][each.number - 1]) for each in SETS),
        Section("All seeds", _SEEDS.format(seed, last), [_make_seed_grid(found)]),
    ]
    subtitle = "Upper bounds on 1 - E: figures 1 to 4 of Xu et al., recomputed; every value is exact"
    return Page("Bounds", subtitle, facts, (), sections, f"Rankwright {__version__}")


_CLAIMS = (
    "The paper, section 4.3: “both the type one bound and type two bound are optimized when θ = π/4. The type two "
    "bound is tighter than the type one bound when the ranking model is close to its optimal. The results agree well "
    "with Theorem 3.”"
)
_READING = """
Type one depends on the ranking alone. It is flat wherever the ranking is perfect, so that it cannot point at one
direction. Type two also depends on the scores, and can.

The means of the two Gaussians differ most at π/4. They are separated best by the inverse of their covariance times
the difference of the means: on set 1 that is π/4 too, but on set 2 it is 0.049 π, and a minimum need not be at π/4.

Theorem 3 says that type two is below type one where condition (9) holds: every perfect ranking is ahead of every
imperfect one, in F, by at least the E of the model, which is 1 where the model ranks perfectly. But where two
neighbours change places, F changes by 2/98 of the difference of their scores (pair Φ; less with eq. (2)'s), which no w
of length 1 brings near 1. So where type two is below type one here, theorem 3 is not the reason.

The paper does not say which Φ its figures have. Under eq. (2) perfect rankings differ in F, and the bound, which
takes the worst of them, pays for the spread of scores inside a class.
"""
_TYPE_ONE = (
    "The loss of one query against its E, the measure divided by its highest value. The exponential is the tighter of "
    "the two bounds."
)
_TYPE_TWO = (
    "One term of the bounds: a perfect ranking b and an imperfect one c, with E(b) - E(c) = 0.5. None is the tightest "
    "everywhere. The two hinges, with x = F(b) - F(c): “hinge” is 0.5 [1-x]₊, “margin”, which SVM-map minimises, is "
    "[0.5-x]₊."
)
_SEEDS = "Both sets drawn with the seeds {} to {}: the lowest and the highest of each number."


def _make_section(measure: Measure, each: SyntheticSet, sample: Sample) -> Section:
    """Make the section of one data set: figure 3 or 4, the facts about its bounds, and the documents."""
    first, second = (format_number(variance, 1) for variance in each.variances)
    lead = (
        f"Gaussians around (1, 1) and (-1, -1); the features have the variances {first} and {second}, and no "
        f"correlation. The ranking model is w = (cos θ, sin θ)."
    )
    blocks: list[Block] = [draw_figure(measure, each, sample), _make_fact_grid(each, sample), draw_points(each, sample)]
    return Section(f"Figure {each.figure}: set {each.number}", lead, blocks)


def _make_fact_grid(each: SyntheticSet, sample: Sample) -> Grid:
    """Make the table of where each bound of figure 3 or 4 has its minimum."""
    columns = [
        Column("bound"),
        Column("minimum", 4),
        Column("at θ/π", title="Where it is least: a direction, or all from one to another"),
        Column("from π/4", 3, "How far that is from π/4, in π"),
        Column("at π/4", 4, "The bound at θ = π/4"),
        Column("basic loss there", 4, "The basic loss where the bound is least"),
        Column("below type one, θ/π", title="The directions nearest to π/4, and how much of the circle in all"),
    ]
    rows = [
        Row([name, own.minimum, format_place(own), own.distance, own.at_quarter, own.basic, _describe_below(own)])
        for name, own in sample.facts.items()
    ]
    return Grid(columns, rows, f"Where the curves of figure {each.figure} are least")


def _describe_below(own: UpperBoundFacts) -> str:
    """Say where a type two bound is below the type one bound, and on how much of the circle."""
    arc = f"{format_number(own.below_start, 3)} to {format_number(own.below_end, 3)} ({format_percent(own.below)})"
    return arc if own.below > 0.0 else "nowhere" if own.below == 0.0 else MISSING


def _make_seed_grid(found: Samples) -> Grid:
    """Make the table of the ranges of each bound's facts over the seeds."""
    columns = [
        Column("set"),
        Column("bound"),
        Column("minimum"),
        Column("from θ/π", title="The first direction in which the bound is least"),
        Column("to θ/π", title="The last"),
        Column("from π/4", title="How far these are from π/4, in π"),
        Column("below type one", title="On how much of the circle"),
    ]
    rows = [
        Row([each.number, name, *_format_ranges(*find_ranges(found, each.number, name))])
        for each in SETS
        for name in NAMES
    ]
    return Grid(columns, rows, "Ranges over the seeds", "seeds.csv has every seed, summary.csv every fact.")


def _format_ranges(low: UpperBoundFacts, high: UpperBoundFacts) -> list[str]:
    """Return the cells of a bound's row: the range of each fact over the seeds, as text."""
    pairs = [(low.minimum, high.minimum), (low.start, high.start), (low.end, high.end), (low.distance, high.distance)]
    return [*(format_range(*pair) for pair in pairs), format_range(low.below, high.below, format_percent)]
