"""The base class of a simulation, and of its results."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from rankwright.analysis.results import Table
from rankwright.data.folds import Fold
from rankwright.measures import Measure
from rankwright.report.blocks import Page


@dataclass(frozen=True, slots=True, eq=False)
class Findings:
    """The findings of a simulation: tables, a page, and text.

    Parameters
    ----------
    tables : mapping of str to table
        Each becomes a CSV file of its name.
    page : Page
        Charts, and the facts beside what the paper says.
    text : str
        A short text for a terminal.
    """

    tables: Mapping[str, Table]
    page: Page
    text: str


class FoldData(NamedTuple):
    """Folds, and what they are called."""

    name: str
    folds: Sequence[Fold]


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
        Takes a measure and a seed; returns what was found on made-up data. The same arguments give the same findings.
    run_on : callable, optional
        The same on folds; None where a simulation is about its own data.
    """

    summary: str
    measure: str
    run: Callable[[Measure, int], Findings]
    run_on: Callable[[Measure, int, FoldData], Findings] | None = None
