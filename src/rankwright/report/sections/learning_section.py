"""Section on learning curves: the result of each round of training."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from rankwright.analysis.results import Table
from rankwright.basics.array_types import Floats
from rankwright.report.blocks import Block, Chart
from rankwright.report.chosen_runs import (
    drop_polishing,
    has_restarts,
    select_kept_climbs,
    select_rows,
    split_by_method,
)
from rankwright.report.sections.base import Content, ReportSection, find_training_measure, make_choice
from rankwright.report.sections.learning_lines import (
    choose_heights,
    compute_band,
    compute_mean_line,
    find_kept_round,
    is_uneven,
)
from rankwright.report.summary import Summary

_SELDOM = 0.5  # values recorded in a smaller share of the rounds have markers
_PARTS_EVALUATED = ("train", "valid")  # shown side by side; every other recorded column has a chart of its own
_KEYS = ("method", "fold", "seed", "restart", "round", "measure", "polish", "kept")
# Columns about the feature of a round have no meaningful mean; tree weights have a section of their own.
_OF_A_FEATURE = ("feature", "sign", "weight", "searched", "step", "threshold", "missing")
_MEAN = "mean over folds"
_OWN = ("loss", "objective", "gap")  # not comparable between methods
_STEEP = ("gap", "smoothing", "gain", "sigma")  # shown on a logarithmic axis: they fall by powers of ten
_WORDS = {
    "gap": "duality gap",
    "sigma": "smoothing sigma",
    "steps": "steps of the descent",
    "planes": "cutting planes",
    "perfect": "perfect working set",
    "imperfect": "imperfect working set",
    "alpha": "weight of the weak ranker",
    "r": "edge r of the stump",
    "z": "normaliser Z",
    "gain": "fall of the loss found by the search",
    "scanned": "features whose pairs were gone through",
    "tried": "stumps tried pair by pair",
}
_AXES = {
    **_WORDS,
    "perfect": "rankings of a query",
    "imperfect": "rankings of a query",
    "alpha": "size of alpha",
    "r": "size of r",
    "z": "Z",
    "gain": "fall of the loss",
    "scanned": "features",
    "tried": "stumps",
}
_EXPLAINED = {
    "gap": "Duality gap (an upper bound on the distance of the objective from its minimum)",
    "objective": "Objective (the loss with its penalty, which is minimised)",
    "sigma": "Smoothing sigma of the measure; every loss is that at the sigma of its round",
    "steps": "Steps of the descent",
    "planes": "Cutting planes that the model rests on",
    "perfect": "Rankings in the perfect working set of a query, in the mean,",
    "imperfect": "Rankings in the imperfect working set of a query, in the mean,",
    "smoothing": "Smoothing of the hinge",
    "alpha": "Weight (the size of alpha) of the weak ranker that was added",
    "r": "Edge of the stump (the size of r: the weight of the pairs that it orders one way minus that of the others)",
    "z": "Normaliser Z (the share of the loss that remains after the round)",
    "gain": "Fall of the loss found by the search",
    "scanned": "Features whose pairs the search looked at",
    "tried": "Stumps tried pair by pair in the search",
}
_TITLES = {
    ("train", "valid"): "{} on training (left) and validation queries (right)",
    ("train",): "{} on training queries",
    ("valid",): "{} on validation queries",
}


def _make_content(summary: Summary) -> Content | None:
    """Make the lead and the blocks of the section; return None if there is nothing to show."""
    histories = {
        m: drop_polishing(select_kept_climbs(table)) for m, table in split_by_method(summary.results, "history").items()
    }
    methods = {m: table for m, table in histories.items() if _count_rounds(table) > 1}
    found = [(name, _draw_folds(summary, methods, columns)) for name, columns in _choose_quantities(methods).items()]
    blocks = [(name, block) for name, block in found if block is not None]
    if not blocks:
        return None
    lead = (
        "The result of each round of training. Where validation falls while training still rises, a method "
        "overfits the training queries."
    )
    return Content(lead, [make_choice("Quantity", blocks)])


def _count_rounds(table: Table) -> int:
    """Return the number of distinct rounds in a training history."""
    return len(np.unique(table["round"]))


def _choose_quantities(methods: Mapping[str, Table]) -> dict[str, tuple[str, ...]]:
    """Return the columns of the histories that have numbers, by the name under which the reader chooses them."""
    recorded = [
        name
        for name in dict.fromkeys(name for table in methods.values() for name in table)
        if name not in (*_KEYS, *_OF_A_FEATURE)
        and any(name in table and np.ptp(_list_known(table[name])) > 0 for table in methods.values())
    ]
    evaluated = tuple(name for name in _PARTS_EVALUATED if name in recorded)
    others: dict[str, tuple[str, ...]] = {
        _WORDS.get(name, name): (name,) for name in recorded if name not in _PARTS_EVALUATED
    }
    return {"measure": evaluated, **others} if evaluated else others


def _list_known(values: Floats) -> Floats:
    """Return the values that are finite, or a single 0 if there are none."""
    known = np.asarray(values, dtype=np.float64)[np.isfinite(values)]
    return known if len(known) else np.zeros(1)


def _draw_folds(summary: Summary, methods: Mapping[str, Table], columns: tuple[str, ...]) -> Block | None:
    """Draw the learning curves of the mean over folds and of each fold; return None if there is nothing to draw."""
    folds = summary.results.folds
    complete = {m: table for m, table in methods.items() if np.isin(folds, table["fold"]).all()}
    parts = {_MEAN: complete} if len(folds) > 1 else {}
    for fold in folds:
        inside = {m: select_rows(table, table["fold"] == fold) for m, table in methods.items() if fold in table["fold"]}
        parts[f"fold {fold}"] = inside
    charts = [(name, _draw_curves(summary, part, columns, name)) for name, part in parts.items()]
    filled = [(name, chart) for name, chart in charts if chart.data]
    return make_choice("Fold", filled) if filled else None


def _draw_curves(summary: Summary, methods: Mapping[str, Table], columns: tuple[str, ...], where: str) -> Chart:
    """Draw the learning curves of all methods, for training and validation side by side."""
    lines = [
        (method, i, *line)
        for i, column in enumerate(columns)
        for method, table in methods.items()
        if len((line := compute_mean_line(table, column))[0]) > 0
    ]
    seldom = {(m, i) for m, i, *_ in lines if np.isfinite(methods[m][columns[i]]).mean() < _SELDOM}
    bands = [
        (method, i, band)
        for method, i, x, _ in lines
        if (band := compute_band(methods[method], columns[i], x)) is not None
    ]
    data = [_make_band(method, i, *band) for method, i, band in bands]
    data += [
        {
            "type": "scatter",
            "mode": "lines+markers" if (method, i) in seldom else "lines",
            "x": x,
            "y": y,
            "method": method,
            **_choose_panel(i),
        }
        for method, i, x, y in lines
    ]
    kept = [_make_kept_mark(method, i, x, y, find_kept_round(methods[method])) for method, i, x, y in lines]
    data += [mark for mark in kept if mark is not None]
    shown = dict.fromkeys(method for method, *_ in lines)
    name, value, more = columns[0], _AXES.get(columns[0], columns[0]), ""
    title = _TITLES.get(columns, _EXPLAINED.get(columns[0], value))
    if columns[0] in _OWN and len(shown) > 1:
        more = " Each method has its own: compare the shapes, not the heights."
    if columns[0] in _PARTS_EVALUATED:
        value, name, more = find_training_measure(summary, {m: methods[m] for m in shown})
    whose = f"{next(iter(shown))}: " if len(shown) == 1 else ""  # a single line has no legend
    unit, by = _name_units([has_restarts(methods[m]) for m in shown])
    caption = f"{whose}{title.format(name)} by {by}, {where}.{more}"
    if any(has_restarts(methods[m]) for m in shown):
        caption += " Of several starts, only the climb that was kept; its start is step 0."
    if seldom:
        caption += " Where it was recorded in some rounds only, these have markers."
    if any(mark is not None for mark in kept):
        caption += (
            f" The ring is the {unit} whose model was kept{', the median of the runs' if where == _MEAN else ''}."
        )
    if bands:
        caption += " The band is one standard error between runs, after each run's own level was taken out."
    if where == _MEAN:
        caption += " A run that stopped early keeps its last value."
    is_measure = columns[0] in _PARTS_EVALUATED
    heights = choose_heights([*(y for *_, y in lines), *(high for *_, (_, _, high) in bands)]) if is_measure else None
    if heights is not None and any(float(np.min(y)) < heights[0] for *_, y in lines):
        caption += f" The first {unit}s of some methods lie below the chart."
    steep = columns[0] in _STEEP or (columns[0] in _OWN and is_uneven([y for *_, y in lines]))
    layout = _make_layout(columns, value, unit, steep)
    if heights is not None:
        layout["yaxis"]["range"] = heights
    return Chart(data, layout, caption, height=320)


def _choose_panel(i: int) -> dict[str, str]:
    """Return Plotly's axes of the first or the second panel."""
    return {} if i == 0 else {"xaxis": "x2", "yaxis": "y2"}


def _make_band(method: str, i: int, x: Floats, low: Floats, high: Floats) -> dict[str, Any]:
    """Return Plotly's trace of the area between two lines."""
    return {
        "type": "scatter",
        "mode": "lines",
        "x": np.concatenate([x, x[::-1]]),
        "y": np.concatenate([high, low[::-1]]),
        "fill": "toself",
        "line": {"width": 0},
        "hoverinfo": "skip",
        "showlegend": False,
        "method": method,
        **_choose_panel(i),
    }


def _make_kept_mark(method: str, i: int, x: Floats, y: Floats, kept: float | None) -> dict[str, Any] | None:
    """Return Plotly's trace of a ring at the round that was kept; None if it is not known."""
    if kept is None:
        return None
    return {
        "type": "scatter",
        "mode": "markers",
        "x": [kept],
        "y": [float(np.interp(kept, x, y))],
        "marker": {"size": 11, "symbol": "circle-open", "line": {"width": 2}},
        "hovertemplate": "kept: %{x:.0f}<br>%{y:.4f}",
        "showlegend": False,
        "meta": f"{method}, kept",
        "method": method,
        **_choose_panel(i),
    }


def _name_units(climbs: Sequence[bool]) -> tuple[str, str]:
    """Return the name of a training round, for the axis and for the caption: a round, or a step of a climb."""
    if not any(climbs):
        return "round", "round"
    return "step", "accepted step" if all(climbs) else "round or accepted step"


def _make_layout(columns: tuple[str, ...], value: str, unit: str, steep: bool) -> dict[str, Any]:
    """Make Plotly's layout of one panel, or of two for training and validation."""
    if len(columns) == 1:
        powers = {"type": "log", "exponentformat": "power"} if steep else {}
        return {"xaxis": {"title": {"text": unit}}, "yaxis": {"title": {"text": value}, **powers}}
    return {
        "xaxis": {"title": {"text": f"{unit} (training)"}, "domain": [0, 0.48]},
        "yaxis": {"title": {"text": value}},
        "xaxis2": {"title": {"text": f"{unit} (validation)"}, "domain": [0.52, 1], "anchor": "y2"},
        "yaxis2": {"matches": "y", "anchor": "x2", "showticklabels": False},
    }


LEARNING = ReportSection("How did training go?", ("history",), _make_content)
