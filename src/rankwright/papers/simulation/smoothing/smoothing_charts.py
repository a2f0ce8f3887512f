"""The charts of the simulation of smoothing."""

from __future__ import annotations

from typing import Any

from rankwright.papers.simulation.smoothing.smoothing_data import (
    CHOSEN,
    SIGMAS,
    TRUE,
    Annealing,
    LineView,
    SmoothedLine,
)
from rankwright.papers.simulation.smoothing.smoothing_facts import SmoothingFindings
from rankwright.papers.simulation.smoothing.smoothing_tables import format_sigma
from rankwright.report.blocks import Chart, Choice

_COLOURS = [f"var(--method-{i})" for i in (3, 0, 4, 2, 5, 1, 7)]  # from cold to warm, as smoothing falls
_DOTTED = {"color": "var(--muted)", "width": 1, "dash": "dot"}


def draw_figure_1(found: SmoothingFindings) -> Choice:
    """Draw figure 1: the measure and its smooth forms along each line of weights, a chart for each view."""
    return Choice(
        "Line", [(name_view(view), _draw_line_chart(found, view, line)) for view, line in found.lines.items()]
    )


def name_view(view: LineView) -> str:
    """Return the name of a view of figure 1, as the page shows it."""
    queries = "" if view.queries == "mean" else ", one query"
    return f"direction {view.direction}{queries}, {view.range}"


def _draw_line_chart(found: SmoothingFindings, view: LineView, line: SmoothedLine) -> Chart:
    """Draw the measure and its smooth forms along one line of weights."""
    data: list[dict[str, Any]] = [
        _make_trace(line.t, line.values[sigma], f"sigma = {format_sigma(sigma)}", {"color": colour})
        for sigma, colour in zip(SIGMAS, _COLOURS, strict=True)
    ]
    true = {"color": "var(--ink)", "width": 1, "shape": "hvh"}
    data.append(_make_trace(line.t, line.values[TRUE], f"{found.measure} itself", true))
    axes = _label_axes("t, in w* + t w_rand", str(found.measure))
    layout = axes | {"shapes": [{"type": "line", "x0": 0, "x1": 0, "yref": "paper", "y0": 0, "y1": 1, "line": _DOTTED}]}
    all_queries, one = f"mean of {found.n_train} training queries", "the training query with most relevant documents"
    queries = all_queries if view.queries == "mean" else one
    ties = f" Scores tie in {found.n_tied} of {found.n_train} queries, which lowers the measure itself."
    caption = (
        f"Figure 1: the smooth measure along random direction {view.direction}, {queries}. The dotted line is "
        f"SmoothRank's solution w*.{ties if found.n_tied else ''}"
    )
    return Chart(data, layout, caption, 460)


def draw_figure_2(found: SmoothingFindings) -> Choice:
    """Draw figure 2: the measure while the smoothing falls, a chart for each strength alpha of the penalty."""
    options = [(_name_alpha(name), _draw_annealing(found, name, each)) for name, each in found.annealings.items()]
    return Choice("alpha", options)


def _name_alpha(name: str) -> str:
    """Return the name of an alpha, or of the choice in each fold, as the page shows it."""
    return "chosen in each fold" if name == CHOSEN else name.removeprefix("alpha ")


def _draw_annealing(found: SmoothingFindings, name: str, each: Annealing) -> Chart:
    """Draw the measure on training and test queries while sigma falls, for one alpha."""
    sigma = each.sigma[1:]
    train, test = {"color": "var(--method-0)"}, {"color": "var(--method-1)"}
    data: list[dict[str, Any]] = [
        _make_trace(sigma, each.train[1:], "train", train, "lines+markers"),
        _make_trace(sigma, each.test[1:], "test", test, "lines+markers"),
        _make_trace(sigma, each.smooth[1:], "smooth measure, train", {"color": "var(--method-2)", "dash": "dash"}),
        _make_trace(sigma[[0, -1]], each.train[[0, 0]], "train, start", train | {"width": 1, "dash": "dot"}),
        _make_trace(sigma[[0, -1]], each.test[[0, 0]], "test, start", test | {"width": 1, "dash": "dot"}),
    ]
    ticks = {"tickvals": sigma[::2], "ticktext": [format_sigma(float(each)) for each in sigma[::2]]}
    axes = _label_axes("sigma, halved from left to right", str(found.measure))
    low = float(min(each.train.min(), each.test.min()))
    high = float(max(each.train.max(), each.test.max()))
    room = 0.25 * (high - low) or 0.01
    layout = axes | {
        "xaxis": axes["xaxis"] | {"type": "log", "autorange": "reversed", **ticks},
        "yaxis": axes["yaxis"] | {"range": [low - room, high + room]},
    }
    caption = (
        f"Figure 2: {found.measure} during the annealing, mean of {len(found.folds)} folds, alpha {_name_alpha(name)}. "
        f"Dotted: the regression it starts from."
    )
    return Chart(data, layout, caption, 420)


def _make_trace(x: Any, y: Any, name: str, line: dict[str, Any], mode: str = "lines") -> dict[str, Any]:
    """Return Plotly's trace of a line or of points."""
    return {"type": "scatter", "mode": mode, "x": x, "y": y, "name": name, "line": line}


def _label_axes(x: str, y: str) -> dict[str, Any]:
    """Return Plotly's layout of two axes with these titles."""
    return {"xaxis": {"title": {"text": x}}, "yaxis": {"title": {"text": y}}}
