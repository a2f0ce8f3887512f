"""Plotly figures of values by query, and the making of every figure of ``rw.plot``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

import numpy as np

from rankwright.basics.array_types import Floats
from rankwright.basics.errors import InputError, make_printable
from rankwright.basics.optional_imports import require

GREY, BLUE, RED = "#7f7f7f", "#1f77b4", "#d62728"
_BIN = 0.05  # the width of the bars of measures from 0 to 1
_EQUAL = 1e-12  # values of a measure that differ by no more are equal


def draw_histogram(name: str, method: str, values: Floats, mean: float) -> Any:
    """Draw how many queries have which value of a measure, and the mean."""
    known = values[~np.isnan(values)]
    if not len(known):
        raise InputError(f"{name}: no query has a value; expected at least one")
    bars: dict[str, Any] = {"type": "histogram", "x": known.tolist(), "marker": {"color": BLUE}}
    if known.min() >= 0.0 and known.max() <= 1.0:
        bars["xbins"] = {"start": 0.0, "end": 1.0 + _BIN, "size": _BIN}
    of = f" of {make_printable(method)}" if method else ""
    figure = make_figure([bars], f"{name}{of} by query", name, "queries", f"{len(known):,} queries, mean {mean:.4f}")
    return figure.add_vline(x=mean, line={"color": RED, "dash": "dash"}, annotation_text="mean")


def draw_pairs(name: str, ids: list[Any], values: Mapping[str, Floats]) -> Any:
    """Draw each query as a point: its value of one method, and of the other."""
    (first, x), (second, y) = values.items()
    both = ~(np.isnan(x) | np.isnan(y))
    x, y = x[both], y[both]
    if not len(x):
        raise InputError(f"{name}: no query has values of both methods; expected at least one")
    wins, losses = int((y > x + _EQUAL).sum()), int((y < x - _EQUAL).sum())
    ends = [float(min(x.min(), y.min())), float(max(x.max(), y.max()))]
    points: dict[str, Any] = {"type": "scatter", "mode": "markers", "x": x.tolist(), "y": y.tolist(), "name": "queries"}
    points["text"] = [make_printable(str(each)) for each, is_shown in zip(ids, both, strict=True) if is_shown]
    points["hovertemplate"] = "query %{text}: %{x:.4f}, %{y:.4f}<extra></extra>"
    points["marker"] = {"color": BLUE, "opacity": 0.6}
    line: dict[str, Any] = {"type": "scatter", "mode": "lines", "x": ends, "y": ends, "name": "equal"}
    line["line"] = {"color": GREY, "dash": "dash"}
    first, second = make_printable(first), make_printable(second)
    detail = f"{second} is better on {wins:,} of {len(x):,} queries and worse on {losses:,}"
    figure = make_figure([line, points], f"{name} by query", f"{name} of {first}", f"{name} of {second}", detail)
    return figure.update_layout(showlegend=False)


def make_figure(data: Sequence[Mapping[str, Any]], title: str, x: str, y: str, detail: str = "") -> Any:
    """Return a figure with a title, a line below it and titles of its axes; markup in names is shown as it is."""
    below = f"<br><sub>{escape(make_printable(detail))}</sub>" if detail else ""
    layout = {
        "title": {"text": escape(make_printable(title)) + below},
        "xaxis": {"title": {"text": escape(make_printable(x))}},
        "yaxis": {"title": {"text": escape(make_printable(y))}},
    }
    require("plotly")
    from plotly.graph_objects import Figure

    return Figure(data=[_escape_texts(trace) for trace in data], layout=layout)


def _escape_texts(trace: Mapping[str, Any]) -> dict[str, Any]:
    """Return a trace whose names show markup as it is."""
    escaped = dict(trace)
    for key in ("name", "text", "y"):
        value = escaped.get(key)
        if isinstance(value, str):
            escaped[key] = escape(value)
        elif isinstance(value, list):
            escaped[key] = [escape(each) if isinstance(each, str) else each for each in value]
    return escaped
