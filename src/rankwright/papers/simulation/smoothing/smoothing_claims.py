"""What the paper says about figures 1 and 2, beside what was found."""

from __future__ import annotations

import numpy as np

from rankwright.papers.simulation.smoothing.annealing import CHOSEN
from rankwright.papers.simulation.smoothing.smoothing_facts import AnnealingFacts
from rankwright.papers.simulation.smoothing.smoothing_findings import Found
from rankwright.papers.simulation.smoothing.smoothing_lines import SIGMAS, STEPS, TRUE
from rankwright.papers.simulation.smoothing.smoothing_tables import raised, span
from rankwright.report.grid_blocks import Column, Grid, Row
from rankwright.report.notation import count, number, signed

_FIRST, _END, _LEAST = SIGMAS[0], SIGMAS[-2], SIGMAS[-1]  # annealing goes from the first to the second


def claims_grid(found: Found) -> Grid:
    """Return a row for each claim."""
    rows = [Row([claim, answer]) for claim, answer in (_about_lines(found) | _about_annealing(found)).items()]
    note = (
        f"Local maxima among {STEPS + 1} points, of the measure itself all of them. Annealing: the chosen alpha, mean "
        f"of {count(len(found.folds), 'fold')}."
    )
    return Grid([Column("claim"), Column("found")], rows, "The paper's claims, and what was found", note)


def _about_lines(found: Found) -> dict[str, str]:
    facts = [by_sigma for view, by_sigma in found.line_facts.items() if view.queries == "mean"]

    def maxima(sigma: float) -> str:
        return span([own[sigma].maxima for own in facts])

    def distance(sigma: float) -> str:
        return number(float(np.mean([own[sigma].distance for own in facts])))

    return {
        "small sigma: not smooth": (
            f"local maxima on a line: {maxima(_END)} at {raised(_END)}, {maxima(_LEAST)} at {raised(_LEAST)}, "
            f"{maxima(TRUE)} of the measure"
        ),
        "large sigma: smooth": f"local maxima on a line: {maxima(_FIRST)} at {raised(_FIRST)}",
        "large sigma: another function": (
            f"distance from the measure: {distance(_FIRST)} at {raised(_FIRST)}, {distance(_END)} at {raised(_END)}"
        ),
    }


def _about_annealing(found: Found) -> dict[str, str]:
    own: AnnealingFacts = found.annealing_facts[CHOSEN]
    return {
        "train rises as sigma falls": (
            f"{number(own.train_first)} to {number(own.train_last)}; after {own.rises} of {own.halvings} halvings; "
            f"first within 0.001 of its best at {raised(own.train_near)}"
        ),
        "test saturates": (
            f"{number(own.test_first)} to {number(own.test_last)}; first within 0.001 of its best at "
            f"{raised(own.test_near)}"
        ),
        "test deteriorates at last": (
            f"{signed(own.test_last - own.test_best)} against its best, which is at {raised(own.best_sigma)}"
        ),
    }
