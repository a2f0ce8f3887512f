"""Simulations: what the papers show on made-up data, recomputed."""

from __future__ import annotations

from collections.abc import Mapping

from rankwright.errors import InputError, suggest
from rankwright.files import StrPath
from rankwright.measures import Measure, parse
from rankwright.simulation.base import Findings, Simulation
from rankwright.simulation.bounds import BOUNDS
from rankwright.simulation.writing import Written, write_findings

__all__ = ["SIMULATIONS", "Findings", "Simulation", "Written", "simulate"]

SIMULATIONS: Mapping[str, Simulation] = {"bounds": BOUNDS}  # by name: add one here


def simulate(name: str, folder: StrPath, *, measure: str | Measure | None = None, seed: int = 0) -> Written:
    """Run a simulation, and write its tables and its page into a folder.

    Parameters
    ----------
    name : str
        One of ``SIMULATIONS``.
    folder : path
        Made if it does not exist. Every file appears whole or not at all, the page last.
    measure : str or Measure, optional
        Any built-in measure; by default the simulation's own.
    seed : int
        Of the made-up data.
    """
    if name not in SIMULATIONS:
        raise InputError(f"unknown simulation {name!r}; {suggest(name, SIMULATIONS)}")
    simulation = SIMULATIONS[name]
    wanted = parse(simulation.measure if measure is None else measure)
    return write_findings(lambda: simulation.run(wanted, seed), folder, name)
