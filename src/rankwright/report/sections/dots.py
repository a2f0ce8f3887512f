"""A chart of one number per method, with the range around it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from rankwright.report.blocks import Chart

_ROW = 26  # pixels for each method
_REST = 90  # and for the axis


class Dot(NamedTuple):
    """A method's number and the range around it."""

    method: str
    value: float
    low: float
    high: float


def make_dot_chart(dots: Sequence[Dot], axis: dict[str, Any], hover: str, caption: str) -> Chart:
    """Return a dot with its range for each method, the first at the top; ``axis`` is Plotly's x axis."""
    data = [
        {
            "type": "scatter",
            "mode": "markers",
            "x": [dot.value],
            "y": [dot.method],
            "error_x": {
                "type": "data",
                "symmetric": False,
                "array": [dot.high - dot.value],
                "arrayminus": [dot.value - dot.low],
                "thickness": 1.5,
                "width": 0,
            },
            "marker": {"size": 9},
            "method": dot.method,
            "hovertemplate": f"{hover}<extra></extra>",
        }
        for dot in dots
    ]
    layout = {
        "xaxis": axis,
        "yaxis": {"autorange": "reversed", "type": "category"},
        "showlegend": False,
    }
    return Chart(data, layout, caption, height=_REST + _ROW * max(len(dots), 3))
