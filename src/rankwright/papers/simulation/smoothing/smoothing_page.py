"""The page of the simulation of smoothing."""

from __future__ import annotations

import numpy as np

from rankwright.basics.version import __version__
from rankwright.papers.simulation.smoothing.smoothing_charts import draw_figure_1, draw_figure_2, name_view
from rankwright.papers.simulation.smoothing.smoothing_data import CHOSEN, SIGMAS, STEPS, TRUE
from rankwright.papers.simulation.smoothing.smoothing_facts import AnnealingFacts, SmoothingFindings
from rankwright.papers.simulation.smoothing.smoothing_tables import format_sigma, format_span
from rankwright.report.blocks import Column, Grid, Page, Row, Section, Text
from rankwright.report.notation import format_count, format_number, format_signed


def make_page(found: SmoothingFindings) -> Page:
    """Make the page of the simulation of smoothing: the paper's claims and the two figures."""
    chosen = ", ".join(f"{fold.chosen:g}" for fold in found.folds)
    facts = [
        ("Measure", str(found.measure)),
        ("Queries", found.data),
        ("Folds", f"{len(found.folds)}"),
        ("StumpChoice alpha by fold", chosen),
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
