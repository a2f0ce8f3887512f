"""The page of the simulation of smoothing."""

from __future__ import annotations

from rankwright.basics.version import __version__
from rankwright.papers.simulation.smoothing.smoothing_charts import figure_1, figure_2, named
from rankwright.papers.simulation.smoothing.smoothing_claims import claims_grid
from rankwright.papers.simulation.smoothing.smoothing_findings import SmoothingFindings
from rankwright.papers.simulation.smoothing.smoothing_lines import STEPS
from rankwright.papers.simulation.smoothing.smoothing_tables import format_span, raised
from rankwright.report.blocks import Column, Grid, Page, Row, Section, Text


def make_page(found: SmoothingFindings) -> Page:
    """Make the page: claims and the two figures."""
    chosen = ", ".join(f"{fold.chosen:g}" for fold in found.folds)
    facts = [
        ("Measure", str(found.measure)),
        ("Queries", found.data),
        ("Folds", f"{len(found.folds)}"),
        ("Chosen alpha by fold", chosen),
        ("Seed", f"{found.seed}"),
    ]
    sections = [
        Section("Claims and findings", _CLAIMS, [claims_grid(found), Text(_READING)]),
        Section("Figure 1: smoothing", _FIGURE_1, [figure_1(found), _lines(found)]),
        Section("Figure 2: annealing", _FIGURE_2, [figure_2(found), _annealing(found)]),
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
The smooth measure takes what is at a position as a mean of documents with scores near the one that is there (average
precision: it makes ranks soft). How much smoothing a sigma is depends on the scores, and so on how long w* is. A
smaller alpha lets it grow, which acts like less smoothing.

As sigma falls the smooth measure tends to the measure itself, but for documents with equal scores: it takes their mean,
where the measure, as in training, takes their worst order.
"""
_FIGURE_1 = (
    "The training queries of fold 1, along lines through w*, the solution of SmoothRank with the chosen alpha. w_rand "
    "is Gaussian with unit variance on each component, in units of the scaled weights. A wide line ends where w_rand "
    "outweighs w* 20 times, a close one where it does twice."
)
_FIGURE_2 = (
    "From one minimisation to the next sigma is halved, and each starts from the weights before. Test queries choose "
    "nothing. The vertical axis is close to train and test; the smooth measure may begin below it."
)


def _lines(found: SmoothingFindings) -> Grid:
    columns = [
        Column("line"),
        Column("sigma"),
        Column("local maxima", title=f"Ends left out. Among {STEPS + 1} points; of the measure itself, all of them"),
        Column("distance", 4, "From the measure itself, in the mean over the line"),
        Column("highest at t", title="Where on the line it is highest"),
        Column("measure there", 4, "The measure itself at that t"),
    ]
    rows = [
        Row([named(view), raised(sigma), own.maxima, own.distance, float(f"{own.highest_at:.3g}"), own.measure_there])
        for view, by_sigma in found.line_facts.items()
        for sigma, own in by_sigma.items()
    ]
    jumps = format_span([len(line.profile.times) for line in found.lines.values()])
    return Grid(columns, rows, "Each curve of figure 1", f"sigma = 0 is the measure itself: {jumps} jumps on a line.")


def _annealing(found: SmoothingFindings) -> Grid:
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
            f"{own.rises} of {own.halvings}", own.test_start, own.test_first, own.test_best, raised(own.best_sigma),
            own.test_last,
        ])
        for name, own in found.annealing_facts.items()
    ]  # fmt: skip
    note = "“chosen”: the alpha that is best on the validation queries at the last sigma, in each fold."
    return Grid(columns, rows, f"Fold means of {found.measure}", note)
