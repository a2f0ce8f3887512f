"""What a simulation is, and what it leaves behind."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from rankwright.measures import Measure
from rankwright.report.blocks import Page
from rankwright.results import Table


@dataclass(frozen=True, slots=True, eq=False)
class Findings:
    """What a simulation found.

    Parameters
    ----------
    tables : mapping of str to table
        Each becomes a CSV file of its name.
    page : Page
        Charts, and the facts beside what the paper says.
    told : str
        The short of it, for a terminal.
    """

    tables: Mapping[str, Table]
    page: Page
    told: str


@dataclass(frozen=True, slots=True)
class Simulation:
    """A simulation of a paper, recomputed.

    Parameters
    ----------
    summary : str
        What it is, in one line.
    measure : str
        The measure if none is asked for.
    run : callable
        Takes a measure and a seed; returns what was found. The same arguments give the same findings.
    """

    summary: str
    measure: str
    run: Callable[[Measure, int], Findings]
