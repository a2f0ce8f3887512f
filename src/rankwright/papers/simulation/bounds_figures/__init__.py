"""The simulation of bounds of Xu et al., section 4: figures 1 to 4 recomputed over several seeds."""

from __future__ import annotations

from rankwright.measures import Measure
from rankwright.papers.simulation.base import Findings, Simulation
from rankwright.papers.simulation.bounds_figures.bounds_curves import draw_samples
from rankwright.papers.simulation.bounds_figures.bounds_page import make_page
from rankwright.papers.simulation.bounds_figures.bounds_tables import format_text, make_tables


def _run_bounds(measure: Measure, seed: int) -> Findings:
    """Compute the findings of the simulation of bounds, for a measure and a first seed."""
    found = draw_samples(measure, seed)
    return Findings(make_tables(found), make_page(measure, found), format_text(measure, found))


BOUNDS = Simulation("upper bounds on 1 - measure (Xu et al., figures 1 to 4)", "map", _run_bounds)
