"""The base of every section of the report, and charts that several share: dots with ranges, panels side by side."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from rankwright.analysis.results import Table
from rankwright.report.blocks import Block, Chart, Choice, Section
from rankwright.report.summary import Summary

INTERNALS = "Method internals"  # the part of the page with what only some methods have


class Content(NamedTuple):
    """The content of a section of the report: a lead of a sentence or two, and blocks."""

    lead: str
    blocks: Sequence[Block]


@dataclass(frozen=True, slots=True)
class ReportSection:
    """A section of the report, which appears if the results have the tables that it needs and it has content.

    Parameters
    ----------
    title : str
        Its heading, and its entry in the navigation.
    needs : tuple of str
        The tables of the results that must be there and not empty.
    content : callable
        Takes the summary of the results; returns what the section says, or None if that is nothing.
    part : str
        The part of the page that it belongs to, such as ``INTERNALS``; its sections are folded at first.
    """

    title: str
    needs: tuple[str, ...]
    content: Callable[[Summary], Content | None]
    part: str = ""

    def build(self, summary: Summary) -> Section | None:
        """Return the section for these results, or None where it does not appear."""
        if not all(summary.has(name) for name in self.needs):
            return None
        content = self.content(summary)
        return None if content is None else Section(self.title, content.lead, content.blocks, self.part)


def make_choice(label: str, options: Sequence[tuple[str, Block]]) -> Block:
    """Return a block that lets the reader choose among named blocks; if there is only one, return that block."""
    return Choice(label, options) if len(options) > 1 else options[0][1]


class TrainingMeasure(NamedTuple):
    """The names of the measure that methods were trained on, for an axis and a caption; a note if methods differ."""

    axis: str
    name: str
    more: str = ""


def find_training_measure(summary: Summary, methods: Mapping[str, Table]) -> TrainingMeasure:
    """Return the names of the measure that these methods were trained on, for axes and captions."""
    names = {m: str(table["measure"][0]) if "measure" in table else summary.decisive for m, table in methods.items()}
    heads = {m: summary.labels.get(name, name) for m, name in names.items()}
    if len(set(names.values())) <= 1:
        head = next(iter(heads.values()), summary.decisive)
        return TrainingMeasure(head, head)
    listed = ", ".join(f"{m}: {head}" for m, head in heads.items())
    explained = f" Each method has the measure that it trains on ({listed}): compare the shapes, not the heights."
    return TrainingMeasure("own measure", "Each method's own measure", explained)


WIDE = 2  # panels side by side
_PANEL, _REST = 150, 40  # pixels for each row of panels, and for the names below
_BETWEEN = 50  # pixels between rows: ticks, and the name of the next panel
_LONGEST = 18  # the most characters of a feature's name


def compute_height(n: int) -> int:
    """Return the height in pixels of a chart with n panels."""
    return _REST + _PANEL * _count_rows(n)


def find_axis_suffix(panel: int) -> str:
    """Return the suffix of Plotly's axis names for a panel: none for the first, then 2, 3 and so on."""
    return "" if panel == 0 else str(panel + 1)


def name_axes(panel: int) -> dict[str, str]:
    """Return Plotly's names of the two axes of a panel, for the traces drawn in it."""
    return {"xaxis": f"x{find_axis_suffix(panel)}", "yaxis": f"y{find_axis_suffix(panel)}"}


def make_layout(names: list[str], x: str, y: str) -> dict[str, Any]:
    """Make Plotly's layout of a panel for each name; ``x`` and ``y`` are the titles of the axes."""
    n = len(names)
    made: dict[str, Any] = {"annotations": [_make_title(name, panel) for panel, name in enumerate(names)]}
    for panel in range(n):
        made |= _make_axes(panel, n, x)
    made[f"yaxis{find_axis_suffix(WIDE * ((_count_rows(n) - 1) // 2))}"]["title"] = {"text": y}
    return made


def name_feature(feature: str) -> str:
    """Return the name of a feature as the reader sees it; one known by its number only becomes "feature 7"."""
    return f"feature {feature}" if feature.isdecimal() else feature


def _count_rows(n: int) -> int:
    """Return the number of rows that n panels fill."""
    return -(-n // WIDE)


def _make_title(feature: str, panel: int) -> dict[str, Any]:
    """Return Plotly's annotation with a panel's name above its left corner."""
    corner = {"x": 0, "y": 1, "xanchor": "left", "yanchor": "bottom", "showarrow": False, "font": {"size": 12.5}}
    axes = {"xref": f"x{find_axis_suffix(panel)} domain", "yref": f"y{find_axis_suffix(panel)} domain"}
    return {"text": _shorten(name_feature(feature)), **corner, **axes}


def _shorten(name: str) -> str:
    """Return a name without its middle if it is long, since names mostly differ at their ends."""
    half = (_LONGEST - 1) // 2
    return name if len(name) <= _LONGEST else f"{name[: _LONGEST - 1 - half]}…{name[-half:]}"


def _make_axes(panel: int, n: int, title: str) -> dict[str, Any]:
    """Make Plotly's two axes of a panel; all panels share the range of y, and each has its own range of x."""
    wide = min(n, WIDE)  # a single panel has the whole width
    row, column = divmod(panel, wide)
    n_rows = _count_rows(n)
    between = _BETWEEN / (_PANEL * n_rows)
    top, bottom = 1 - row / n_rows - between / 2, 1 - (row + 1) / n_rows + between / 2
    x: dict[str, Any] = {
        "domain": [column / wide + 0.02 * (column > 0), (column + 1) / wide - 0.02 * (column < wide - 1)],
        "anchor": f"y{find_axis_suffix(panel)}",
        "nticks": 5,
        "title": {"text": title if panel + WIDE >= n else ""},
    }
    y = {"domain": [bottom, top], "anchor": f"x{find_axis_suffix(panel)}", "nticks": 5, "showticklabels": column == 0}
    return {
        f"xaxis{find_axis_suffix(panel)}": x,
        f"yaxis{find_axis_suffix(panel)}": y if panel == 0 else {**y, "matches": "y"},
    }


_ROW = 26  # pixels for each method
_AXES = 90  # and for the axis


class Dot(NamedTuple):
    """A dot of a chart: a method, its number, and the range around it."""

    method: str
    value: float
    low: float
    high: float


def make_dot_chart(dots: Sequence[Dot], axis: dict[str, Any], hover: str, caption: str) -> Chart:
    """Draw a dot with its range for each method, the first at the top; ``axis`` is Plotly's x axis."""
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
    layout = {"xaxis": axis, "yaxis": {"autorange": "reversed", "type": "category"}, "showlegend": False}
    return Chart(data, layout, caption, height=_AXES + _ROW * max(len(dots), 3))
