"""The page of the simulation of smoothing."""

from __future__ import annotations

from importlib.metadata import version

import numpy as np

from rankwright.report.blocks import Column, Grid, Page, Row, Section, Text
from rankwright.report.notation import count, number, signed
from rankwright.simulation.smoothing.annealing import CHOSEN
from rankwright.simulation.smoothing.charts import figure_1, figure_2, named
from rankwright.simulation.smoothing.findings import Found
from rankwright.simulation.smoothing.lines import SIGMAS, STEPS, TRUE
from rankwright.simulation.smoothing.tables import raised, span


def make_page(found: Found) -> Page:
    """Claims and the two figures."""
    chosen = ", ".join(f"{fold.chosen:g}" for fold in found.folds)
    facts = [
        ("Measure", str(found.measure)),
        ("Queries", found.data),
        ("Folds", f"{len(found.folds)}"),
        ("Chosen alpha by fold", chosen),
        ("Seed", f"{found.seed}"),
    ]
    sections = [
        Section("Claims and findings", _CLAIMS, [_claims(found), Text(_READING)]),
        Section("Figure 1: smoothing", _FIGURE_1, [figure_1(found), _lines(found)]),
        Section("Figure 2: annealing", _FIGURE_2, [figure_2(found), _annealing(found)]),
    ]
    subtitle = "A measure made smooth, less and less: figures 1 and 2 of Chapelle and Wu, recomputed"
    return Page("Smoothing", subtitle, facts, (), sections, f"Rankwright {version('rankwright')}")


_CLAIMS = (
    "The paper, section 4.4.2: “when sigma is small, the objective function is highly non-smooth and almost impossible to "
    "optimize. On the other hand, when sigma is large, the objective function is smooth but rather different from the "
    "target one. [...] The training NDCG improves while sigma decreases (which is expected) but the test NDCG saturates "
    "(and even slightly deteriorates) for small sigma.”"
)
_READING = """
The smooth measure takes, for each position, a mean of the gains of documents whose scores are near the one that is
there. sigma is in squares of scores, so what counts as small depends on how long w* is: a smaller alpha lets it grow, and has
the effect of less smoothing.

As sigma falls the smooth measure tends to the measure itself, but for documents with equal scores: the smooth measure takes
the mean of their gains, the measure as it is trained on the worst order.
"""
_FIGURE_1 = (
    "The training queries of fold 1, along lines through w*, the solution of SmoothRank with the chosen alpha. w_rand is "
    "Gaussian with unit variance on each component, in units of the scaled weights. A wide line ends where w_rand "
    "outweighs w* 20 times, a close one where it does twice."
)
_FIGURE_2 = (
    "sigma is halved from one minimisation to the next, each of which starts from the weights before; test queries are "
    "never used to choose. The vertical axis shows train and test closely; the smooth measure may begin below it."
)


def _claims(found: Found) -> Grid:
    mean = [view for view in found.lines if view.queries == "mean"]
    own = found.annealing_facts[CHOSEN]
    largest, last = SIGMAS[0], SIGMAS[-1]

    def maxima(sigma: float) -> str:
        return span([found.line_facts[view][sigma].maxima for view in mean])

    def distance(sigma: float) -> str:
        return number(float(np.mean([found.line_facts[view][sigma].distance for view in mean])))

    rows = [
        Row(["small sigma: not smooth", f"{maxima(2.0**-6)} local maxima on a line at {raised(2.0**-6)}, {maxima(last)} at "
             f"{raised(last)}, {maxima(TRUE)} of the measure"]),
        Row(["large sigma: smooth", f"{maxima(largest)} local maxima at {raised(largest)}"]),
        Row(["large sigma: another function", f"{distance(largest)} from the measure at {raised(largest)}, "
             f"{distance(2.0**-6)} at {raised(2.0**-6)}"]),
        Row(["train rises as sigma falls", f"{number(own.train_first)} to {number(own.train_last)}; after {own.rises} of "
             f"{own.halvings} halvings"]),
        Row(["test saturates", f"{number(own.test_first)} at first, {number(own.test_best)} at best, at "
             f"{raised(own.best_sigma)}, {number(own.test_last)} at last ({signed(own.test_last - own.test_best)})"]),
    ]  # fmt: skip
    note = (
        f"Lines: {count(len(mean), 'line')} of {STEPS + 1} points. Annealing: the chosen alpha, means over the folds."
    )
    return Grid([Column("claim"), Column("found")], rows, "The paper's claims, and what was found", note)


def _lines(found: Found) -> Grid:
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
    jumps = span([len(line.profile.times) for line in found.lines.values()])
    return Grid(columns, rows, "Each curve of figure 1", f"sigma = 0 is the measure itself: {jumps} jumps on a line.")


def _annealing(found: Found) -> Grid:
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
