"""What the paper says about figures 1 and 2, beside what was found."""

from __future__ import annotations

import numpy as np

from rankwright.papers.simulation.smoothing.annealing import CHOSEN
from rankwright.papers.simulation.smoothing.smoothing_facts import AnnealingFacts
from rankwright.papers.simulation.smoothing.smoothing_findings import SmoothingFindings
from rankwright.papers.simulation.smoothing.smoothing_lines import SIGMAS, STEPS, TRUE
from rankwright.papers.simulation.smoothing.smoothing_tables import format_span, raised
from rankwright.report.grid_blocks import Column, Grid, Row
from rankwright.report.notation import format_count, format_number, format_signed

_FIRST, _END, _LEAST = SIGMAS[0], SIGMAS[-2], SIGMAS[-1]  # annealing goes from the first to the second


def claims_grid(found: SmoothingFindings) -> Grid:
    """Return a row for each claim."""
    rows = [Row([claim, answer]) for claim, answer in (_about_lines(found) | _about_annealing(found)).items()]
    note = (
        f"Local maxima among {STEPS + 1} points, of the measure itself all of them. Annealing: the chosen alpha, mean "
        f"of {format_count(len(found.folds), 'fold')}."
    )
    return Grid([Column("claim"), Column("found")], rows, "The paper's claims, and what was found", note)


def _about_lines(found: SmoothingFindings) -> dict[str, str]:
    facts = [by_sigma for view, by_sigma in found.line_facts.items() if view.queries == "mean"]

    def maxima(sigma: float) -> str:
        return format_span([own[sigma].maxima for own in facts])

    def distance(sigma: float) -> str:
        return format_number(float(np.mean([own[sigma].distance for own in facts])))

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


def _about_annealing(found: SmoothingFindings) -> dict[str, str]:
    own: AnnealingFacts = found.annealing_facts[CHOSEN]
    return {
        "train rises as sigma falls": (
            f"{format_number(own.train_first)} to {format_number(own.train_last)}; "
            f"after {own.rises} of {own.halvings} halvings; first within 0.001 of its best at {raised(own.train_near)}"
        ),
        "test saturates": (
            f"{format_number(own.test_first)} to {format_number(own.test_last)}; first within 0.001 of its best at "
            f"{raised(own.test_near)}"
        ),
        "test deteriorates at last": (
            f"{format_signed(own.test_last - own.test_best)} against its best, which is at {raised(own.best_sigma)}"
        ),
    }
