"""The simulation of smoothing of Chapelle and Wu: figures 1 and 2 recomputed, on synthetic queries or on folds."""

from __future__ import annotations

from rankwright.data.folds import split_folds
from rankwright.data.synthetic import make_queries
from rankwright.measures import Measure
from rankwright.papers.simulation.base import Findings, FoldData, Simulation
from rankwright.papers.simulation.smoothing.smoothing_facts import find
from rankwright.papers.simulation.smoothing.smoothing_page import make_page
from rankwright.papers.simulation.smoothing.smoothing_tables import format_text, make_tables

N_QUERIES = 100


def _run_synthetic(measure: Measure, seed: int) -> Findings:
    """Compute the findings of the simulation of smoothing on synthetic queries."""
    queries = make_queries(N_QUERIES, noise=2.0, n_features=30, random_state=seed)
    return _run_on_folds(
        measure, seed, FoldData(f"{N_QUERIES} made-up queries", split_folds(queries, random_state=seed))
    )


def _run_on_folds(measure: Measure, seed: int, data: FoldData) -> Findings:
    """Compute the findings of the simulation of smoothing on the given folds."""
    found = find(measure, seed, data)
    return Findings(make_tables(found), make_page(found), format_text(found))


SMOOTHING = Simulation(
    "measures made smooth, and annealing (Chapelle and Wu, figures 1 and 2)", "ndcg@50", _run_synthetic, _run_on_folds
)
