"""The interface of simulations: their data, their findings, and the files that hold these."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from rankwright.analysis.results import Table
from rankwright.basics.files import StrPath, check_apart, check_writable, write_atomic
from rankwright.data.folds import Fold
from rankwright.measures import Measure
from rankwright.report.blocks import Page
from rankwright.report.page import render_page


@dataclass(frozen=True, slots=True, eq=False)
class Findings:
    """The findings of a simulation: tables, a page, and a short text for a terminal.

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
    """A record of the folds that a simulation runs on, and the name of their data set."""

    name: str
    folds: Sequence[Fold]


@dataclass(frozen=True, slots=True)
class Simulation:
    """A simulation of a paper that can be run again: its description, its measure, and the functions that run it.

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


class WrittenFindings(NamedTuple):
    """A record of a simulation's findings, and the path of the page that was written."""

    findings: Findings
    page: Path


def write_findings(
    find: Callable[[], Findings], folder: StrPath, name: str, inputs: Iterable[StrPath] = ()
) -> WrittenFindings:
    """Compute findings, and write ``name.html`` and a CSV file for each table; raise if that would replace an input.

    Nothing is computed if the folder cannot be written to.
    """
    folder = Path(folder)
    check_apart({"the page or a table": [folder, folder / f"{name}.html", *folder.glob("*.csv")]}, inputs)
    folder.mkdir(parents=True, exist_ok=True)
    page = folder / f"{name}.html"
    check_writable(page)
    findings = find()
    texts = {folder / f"{name}.csv": format_csv_text(table) for name, table in findings.tables.items()}
    texts[page] = render_page(findings.page)
    for path, text in texts.items():
        with write_atomic(path) as file:
            file.write(text)
    return WrittenFindings(findings, page)


def format_csv_text(table: Table) -> str:
    r"""Return a table as CSV text: numbers with all digits, and empty cells for NaN.

    >>> import numpy as np
    >>> format_csv_text({"set": np.array(["a", "b"]), "value": np.array([0.5, np.nan])})
    'set,value\na,0.5\nb,\n'
    """
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(table)
    # only NaN differs from itself
    columns = [["" if value != value else value for value in column.tolist()] for column in table.values()]
    writer.writerows(zip(*columns, strict=True))
    return buffer.getvalue()
