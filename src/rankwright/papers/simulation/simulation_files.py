"""Files of a simulation: its findings, written into a folder."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple

from rankwright.analysis.results import Table
from rankwright.basics.files import StrPath, check_apart, check_writable, write_atomic
from rankwright.papers.simulation.base import Findings
from rankwright.report.page import render_page


class WrittenFindings(NamedTuple):
    """The findings of a simulation, and the path of their page."""

    findings: Findings
    page: Path


def write_findings(
    find: Callable[[], Findings], folder: StrPath, name: str, inputs: Iterable[StrPath] = ()
) -> WrittenFindings:
    """Write ``name.html``, and a CSV file for each table, but over none of the ``inputs``.

    Nothing is computed if the folder cannot be written to.
    """
    folder = Path(folder)
    check_apart({"the page or a table": [folder, folder / f"{name}.html", *folder.glob("*.csv")]}, inputs)
    folder.mkdir(parents=True, exist_ok=True)
    page = folder / f"{name}.html"
    check_writable(page)
    findings = find()
    texts = {folder / f"{name}.csv": csv_text(table) for name, table in findings.tables.items()}
    texts[page] = render_page(findings.page)
    for path, text in texts.items():
        with write_atomic(path) as file:
            file.write(text)
    return WrittenFindings(findings, page)


def csv_text(table: Table) -> str:
    r"""Return a table as CSV: numbers in full, nothing where they are missing.

    >>> import numpy as np
    >>> csv_text({"set": np.array(["a", "b"]), "value": np.array([0.5, np.nan])})
    'set,value\na,0.5\nb,\n'
    """
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(table)
    columns = [[_cell(value) for value in column.tolist()] for column in table.values()]
    writer.writerows(zip(*columns, strict=True))
    return buffer.getvalue()


def _cell(value: Any) -> Any:
    return "" if value != value else value  # only NaN differs from itself
