"""The charts and the page of the simulation of smoothing."""

from __future__ import annotations

from typing import Any

import numpy as np

from rankwright.basics.number_texts import format_number, format_signed
from rankwright.basics.version import __version__
from rankwright.papers.simulation.smoothing.smoothing_data import (
    CHOSEN,
    SIGMAS,
    STEPS,
    TRUE,
    Annealing,
    LineView,
    SmoothedLine,
)
from rankwright.papers.simulation.smoothing.smoothing_facts import AnnealingFacts, SmoothingFindings
from rankwright.papers.simulation.smoothing.smoothing_tables import format_sigma, format_span
from rankwright.report.blocks import Chart, Choice, Column, Grid, Page, Row, Section, Text
from rankwright.report.notation import format_count

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


def make_page(found: SmoothingFindings) -> Page:
    """Make the page of the simulation of smoothing: the paper's claims and the two figures."""
    chosen = ", ".join(f"{fold.chosen:g}" for fold in found.folds)
    facts = [
        ("Measure", str(found.measure)),
        ("Queries", found.data),
        ("Folds", f"{len(found.folds)}"),
        ("Chosen alpha by fold", chosen),
        ("Seed", f"{found.seed}"),
    ]
    sections = [
        Section("Claims and findings", _CLAIMS, [make_claims_grid(found), Text(_READING)]),
        Section("Figure 1: smoothing", _FIGURE_1, [draw_figure_1(found), _make_line_grid(found)]),
        Section("Figure 2: annealing", _FIGURE_2, [draw_figure_2(found), _make_annealing_grid(found)]),
    ]
    subtitle = "A measure made smooth, less and less: figures 1 and 2 of Chapelle and Wu, recomputed"
    return Page("Smoothing", subtitle, facts, (), sections, f"Rankwright {__version__}")


_CLAIMS = (
    "The paper, section 4.4.2: “when sigma is small, the objective function is highly non-smooth and almost impossible "
    "to optimize. On the other hand, when sigma is large, the objective function is smooth but rather different from "
    "the target one. [...] The training NDCG improves while sigma decreases (which is expected) but the test NDCG "
    "saturates (and even slightly deteriorates) for small sigma.”"
)
_READING = """
The smooth measure replaces the document at a position by a mean of documents with scores near its score (for average
precision it makes ranks soft). The amount of smoothing of a sigma depends on the scores, and so on the length of w*. A
smaller alpha allows a longer w*, which acts like less smoothing.

As sigma falls the smooth measure tends to the measure itself, except for documents with equal scores: it takes the mean
over their orders, but the measure, as in training, takes their worst order.
"""
_FIGURE_1 = (
    "The training queries of fold 1, along lines through w*, the solution of SmoothRank with the chosen alpha. w_rand "
    "is Gaussian with unit variance on each component, in units of the scaled weights. A wide line ends where w_rand "
    "is 20 times as large as w*, a close one where it is twice as large."
)
_FIGURE_2 = (
    "From one minimisation to the next sigma is halved, and each starts from the weights before. Test queries choose "
    "nothing. The vertical axis is close to train and test; the smooth measure may begin below it."
)


def _make_line_grid(found: SmoothingFindings) -> Grid:
    """Make the table of the facts about each curve of figure 1."""
    columns = [
        Column("line"),
        Column("sigma"),
        Column("local maxima", title=f"Ends left out. Among {STEPS + 1} points; of the measure itself, all of them"),
        Column("distance", 4, "From the measure itself, in the mean over the line"),
        Column("highest at t", title="Where on the line it is highest"),
        Column("measure there", 4, "The measure itself at that t"),
    ]
    rows = [
        Row(
            [
                name_view(view),
                format_sigma(sigma),
                own.maxima,
                own.distance,
                float(f"{own.highest_at:.3g}"),
                own.measure_there,
            ]
        )
        for view, by_sigma in found.line_facts.items()
        for sigma, own in by_sigma.items()
    ]
    jumps = format_span([len(line.profile.times) for line in found.lines.values()])
    return Grid(columns, rows, "Each curve of figure 1", f"sigma = 0 is the measure itself: {jumps} jumps on a line.")


def _make_annealing_grid(found: SmoothingFindings) -> Grid:
    """Make the table of the facts about the annealing of each alpha."""
    columns = [
        Column("alpha"),
        Column("train, start", 4, "The regression"),
        Column("first sigma", 4),
        Column("last sigma", 4),
        Column("rises", title="Halvings of sigma after which the training measure is higher"),
        Column("test, start", 4, "The regression"),
        Column("test, first sigma", 4),
        Column("best", 4, "The highest at any sigma"),
        Column("at sigma", title="The sigma of the highest"),
        Column("test, last sigma", 4),
    ]
    rows = [
        Row([
            name.removeprefix("alpha "), own.train_start, own.train_first, own.train_last,
            f"{own.rises} of {own.halvings}", own.test_start, own.test_first, own.test_best,
            format_sigma(own.best_sigma), own.test_last,
        ])
        for name, own in found.annealing_facts.items()
    ]  # fmt: skip
    note = "“chosen”: the alpha that is best on the validation queries at the last sigma, in each fold."
    return Grid(columns, rows, f"Fold means of {found.measure}", note)


_FIRST, _END, _LEAST = SIGMAS[0], SIGMAS[-2], SIGMAS[-1]  # annealing goes from the first to the second


def make_claims_grid(found: SmoothingFindings) -> Grid:
    """Make the table of the paper's claims about smoothing, with what was found."""
    rows = [
        Row([claim, answer]) for claim, answer in (_check_line_claims(found) | _check_annealing_claims(found)).items()
    ]
    note = (
        f"Local maxima among {STEPS + 1} points, of the measure itself all of them. Annealing: the chosen alpha, mean "
        f"of {format_count(len(found.folds), 'fold')}."
    )
    return Grid([Column("claim"), Column("found")], rows, "The paper's claims, and what was found", note)


def _check_line_claims(found: SmoothingFindings) -> dict[str, str]:
    """Return the claims about figure 1, each with what was found."""
    facts = [by_sigma for view, by_sigma in found.line_facts.items() if view.queries == "mean"]

    def maxima(sigma: float) -> str:
        return format_span([own[sigma].maxima for own in facts])

    def distance(sigma: float) -> str:
        return format_number(float(np.mean([own[sigma].distance for own in facts])))

    return {
        "small sigma: not smooth": (
            f"local maxima on a line: {maxima(_END)} at {format_sigma(_END)}, "
            f"{maxima(_LEAST)} at {format_sigma(_LEAST)}, {maxima(TRUE)} of the measure"
        ),
        "large sigma: smooth": f"local maxima on a line: {maxima(_FIRST)} at {format_sigma(_FIRST)}",
        "large sigma: another function": (
            f"distance from the measure: {distance(_FIRST)} at {format_sigma(_FIRST)}, "
            f"{distance(_END)} at {format_sigma(_END)}"
        ),
    }


def _check_annealing_claims(found: SmoothingFindings) -> dict[str, str]:
    """Return the claims about figure 2, each with what was found."""
    own: AnnealingFacts = found.annealing_facts[CHOSEN]
    return {
        "train rises as sigma falls": (
            f"{format_number(own.train_first)} to {format_number(own.train_last)}; "
            f"after {own.rises} of {own.halvings} halvings; "
            f"first within 0.001 of its best at {format_sigma(own.train_near)}"
        ),
        "test saturates": (
            f"{format_number(own.test_first)} to {format_number(own.test_last)}; first within 0.001 of its best at "
            f"{format_sigma(own.test_near)}"
        ),
        "test deteriorates at last": (
            f"{format_signed(own.test_last - own.test_best)} against its best, "
            f"which is at {format_sigma(own.best_sigma)}"
        ),
    }
