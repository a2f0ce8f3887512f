"""Files of a report: a page and tables, written into a folder."""

from __future__ import annotations

import datetime
from itertools import product
from pathlib import Path

from rankwright.analysis.results import Results
from rankwright.basics.errors import InputError
from rankwright.basics.files import StrPath, write_atomic
from rankwright.basics.version import __version__
from rankwright.report.blocks import Page
from rankwright.report.notation import format_count
from rankwright.report.page import render_page
from rankwright.report.sections import SECTIONS
from rankwright.report.summary import Summary
from rankwright.report.text_tables import FORMATS, make_comparison_table, make_results_table


def write_report(results: Results, folder: StrPath, *, date: datetime.date | None = None) -> Path:
    """Write ``report.html`` and ``tables/{results,comparisons}.{md,csv,tex}``; return the path of the page.

    Parameters
    ----------
    results : Results
        What an experiment found.
    folder : path
        Made if it does not exist.
    date : datetime.date, optional
        Stands at the foot of the page. Without it the same results give the same bytes on any day.
    """
    if not len(results.tables["queries"]["qid"]):
        raise InputError(f"{results.name}: no trial has finished yet; there is nothing to report")
    summary = Summary(results)
    folder = Path(folder)
    (folder / "tables").mkdir(parents=True, exist_ok=True)
    page, *tables = list_report_files(folder)
    made = (make_results_table(summary), make_comparison_table(summary))
    for path, (table, formatted) in zip(tables, product(made, FORMATS.values()), strict=True):
        _write_text(path, formatted(table))
    _write_text(page, render_page(make_page(summary, date)))
    return page


def list_report_files(folder: StrPath) -> list[Path]:
    """Return the files that ``write_report`` writes into a folder, the page first."""
    names = [f"{name}.{ending}" for name in ("results", "comparisons") for ending in FORMATS]
    return [Path(folder) / "report.html", *(Path(folder) / "tables" / name for name in names)]


def make_page(summary: Summary, date: datetime.date | None = None) -> Page:
    """Make the page of a report, with the sections that have something to show for these results."""
    sections = [section for entry in SECTIONS if (section := entry.build(summary)) is not None]
    footer = f"Rankwright {__version__}" + (f", {date.isoformat()}" if date else "")
    subtitle = f"{format_count(len(summary.methods), 'method')} on {format_count(len(summary.results.folds), 'fold')}"
    return Page(summary.results.name, subtitle, _list_facts(summary), summary.methods, sections, footer)


def _list_facts(summary: Summary) -> list[tuple[str, str]]:
    """Return the facts at the top of the page, such as the number of methods, as pairs of name and value."""
    queries, values = summary.table("queries"), summary.table("values")
    return [
        ("Methods", f"{len(summary.methods):,}"),
        ("Folds", f"{len(summary.results.folds):,}"),
        ("Seeds", f"{len(set(values['seed'].tolist())):,}"),
        ("Test queries", f"{len(queries['qid']):,}"),
        ("Documents", f"{int(queries['n_docs'].sum()):,}"),
        ("Selected by" if summary.has("trials") else "Decided by", summary.results.measure),
    ]


def _write_text(path: Path, content: str) -> None:
    """Write a text file as a whole: a failure leaves the former file."""
    with write_atomic(path) as file:
        file.write(content)
