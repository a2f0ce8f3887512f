"""Charts that several sections share: dots with ranges, and small panels side by side."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from rankwright.report.blocks import Chart

WIDE = 2  # panels side by side
_PANEL, _REST = 150, 40  # pixels for each row of panels, and for the names below
_BETWEEN = 50  # pixels between rows: ticks, and the name of the next panel
_LONGEST = 18  # the most characters of a feature's name


def chart_height(n: int) -> int:
    """Return the pixels of a chart of n panels."""
    return _REST + _PANEL * _n_rows(n)


def axis_suffix(panel: int) -> str:
    """Return the number in the names of a panel's axes: Plotly's first have none."""
    return "" if panel == 0 else str(panel + 1)


def trace_axes(panel: int) -> dict[str, str]:
    """Return where a trace belongs."""
    return {"xaxis": f"x{axis_suffix(panel)}", "yaxis": f"y{axis_suffix(panel)}"}


def make_layout(names: list[str], x: str, y: str) -> dict[str, Any]:
    """Return the layout of a panel for each feature, with what is along the axes."""
    n = len(names)
    made: dict[str, Any] = {"annotations": [_title(name, panel) for panel, name in enumerate(names)]}
    for panel in range(n):
        made |= _axes(panel, n, x)
    made[f"yaxis{axis_suffix(WIDE * ((_n_rows(n) - 1) // 2))}"]["title"] = {"text": y}
    return made


def name_feature(feature: str) -> str:
    """Return a feature without a name is known by its number."""
    return f"feature {feature}" if feature.isdecimal() else feature


def _n_rows(n: int) -> int:
    return -(-n // WIDE)


def _title(feature: str, panel: int) -> dict[str, Any]:
    corner = {"x": 0, "y": 1, "xanchor": "left", "yanchor": "bottom", "showarrow": False, "font": {"size": 12.5}}
    axes = {"xref": f"x{axis_suffix(panel)} domain", "yref": f"y{axis_suffix(panel)} domain"}
    return {"text": _short(name_feature(feature)), **corner, **axes}


def _short(name: str) -> str:
    """Return a long name without its middle: names mostly differ at an end."""
    half = (_LONGEST - 1) // 2
    return name if len(name) <= _LONGEST else f"{name[: _LONGEST - 1 - half]}…{name[-half:]}"


def _axes(panel: int, n: int, title: str) -> dict[str, Any]:
    """Return the axes of a panel: all have the same heights, with ticks at the left; each has its own width."""
    row, column = divmod(panel, WIDE)
    n_rows = _n_rows(n)
    between = _BETWEEN / (_PANEL * n_rows)
    top, bottom = 1 - row / n_rows - between / 2, 1 - (row + 1) / n_rows + between / 2
    x: dict[str, Any] = {
        "domain": [column / WIDE + 0.02 * (column > 0), (column + 1) / WIDE - 0.02 * (column < WIDE - 1)],
        "anchor": f"y{axis_suffix(panel)}",
        "nticks": 5,
        "title": {"text": title if panel + WIDE >= n else ""},
    }
    y = {"domain": [bottom, top], "anchor": f"x{axis_suffix(panel)}", "nticks": 5, "showticklabels": column == 0}
    return {f"xaxis{axis_suffix(panel)}": x, f"yaxis{axis_suffix(panel)}": y if panel == 0 else {**y, "matches": "y"}}


_ROW = 26  # pixels for each method
_AXES = 90  # and for the axis


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
    return Chart(data, layout, caption, height=_AXES + _ROW * max(len(dots), 3))
