"""The papers' simulations, recomputed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from rankwright.basics.errors import InputError, suggest
from rankwright.basics.files import StrPath
from rankwright.data.folds import Folds, read_folds
from rankwright.measures import Measure, parse_measure
from rankwright.papers.simulation.base import Findings, FoldData, Simulation, WrittenFindings, write_findings
from rankwright.papers.simulation.bounds_figures import BOUNDS
from rankwright.papers.simulation.smoothing import SMOOTHING

__all__ = ["SIMULATIONS", "Findings", "Simulation", "WrittenFindings", "simulate"]

SIMULATIONS: Mapping[str, Simulation] = {"bounds": BOUNDS, "smoothing": SMOOTHING}  # by name: add one here


def simulate(
    name: str, folder: StrPath, *, measure: str | Measure | None = None, seed: int = 0, data: StrPath | None = None
) -> WrittenFindings:
    """Run the simulation of this name, and write its page and its tables as files into a folder.

    Parameters
    ----------
    name : str
        One of ``SIMULATIONS``.
    folder : path
        Made if it does not exist. Every file appears whole or not at all, the page last.
    measure : str or Measure, optional
        Any built-in measure; by default the simulation's own.
    seed : int
        Of the made-up data, and of whatever else is drawn.
    data : path, optional
        A folder of folds to use instead of made-up data, as ``read_folds`` reads it; for simulations that can.
    """
    if name not in SIMULATIONS:
        raise InputError(f"unknown simulation {name!r}; {suggest(name, SIMULATIONS)}")
    simulation = SIMULATIONS[name]
    wanted = parse_measure(simulation.measure if measure is None else measure)
    if data is not None and simulation.run_on is None:
        takers = ", ".join(other for other, each in SIMULATIONS.items() if each.run_on is not None)
        raise InputError(f"{name} is about data of its own, and takes no folds; {takers} does")
    folds = None if data is None else read_folds(data)
    inputs = [] if folds is None else [path for fold in folds.files for part in fold for path in part]
    return write_findings(_bind_simulation(simulation, wanted, seed, data, folds), folder, name, inputs)


def _bind_simulation(
    simulation: Simulation, measure: Measure, seed: int, data: StrPath | None, folds: Folds | None
) -> Callable[[], Findings]:
    """Return a function without arguments that runs the simulation: on the folds, if there are any."""
    run_on = simulation.run_on
    if data is None or folds is None or run_on is None:
        return lambda: simulation.run(measure, seed)
    source = FoldData(Path(data).resolve().name, folds)
    return lambda: run_on(measure, seed, source)
