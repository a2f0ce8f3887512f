"""Tables as text: Markdown, CSV, LaTeX, and aligned columns for a terminal."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Sequence
from dataclasses import asdict
from math import isnan
from typing import Any

from rankwright.analysis.results import Results
from rankwright.analysis.significance.comparison_table import tabulate_comparisons
from rankwright.basics.aligned_tables import Entry, TextTable, format_aligned
from rankwright.basics.errors import make_printable
from rankwright.basics.number_texts import format_number
from rankwright.report.summary import BELOW, Summary

_MARKDOWN_SPECIAL = re.compile(r"[\\`*_|<>\[\]&~$]|^[#+-](?=\s)|(?<=^\d)[.)](?=\s)")
_MINUS = "\N{MINUS SIGN}"
_LATEX_SPECIAL = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "$": r"\$",
    "&": r"\&",
    "%": r"\%",
    "#": r"\#",
    "_": r"\_",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': "''",
    "\N{EN DASH}": "--",
    _MINUS: "$-$",
    "∞": r"$\infty$",
    "▼": r"$\downarrow$",
    "▲": r"$\uparrow$",
}


def format_markdown(table: TextTable) -> str:
    """Format a table as GitHub's Markdown: the best in bold, the caption above and the note below."""
    lines = [
        _format_markdown_row([_escape_markdown(name) for name in table.header]),
        _format_markdown_row(["---:" if numeric else ":---" for numeric in table.numeric]),
        *(_format_markdown_row([_format_markdown_entry(entry) for entry in row]) for row in table.rows),
    ]
    return (
        "\n\n".join(filter(None, [_escape_markdown(table.caption), "\n".join(lines), _escape_markdown(table.note)]))
        + "\n"
    )


def format_csv(table: TextTable) -> str:
    """Format a table as CSV: header and full values, empty where missing; no marks, caption or note."""
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(table.header)
    writer.writerows([_make_csv_value(entry.value) for entry in row] for row in table.rows)
    return buffer.getvalue()


def format_latex(table: TextTable) -> str:
    r"""Format a table as LaTeX for ``\usepackage{booktabs}``: the best in bold, the note below the table."""
    note = [rf"\par\smallskip{{\footnotesize {_escape_latex(table.note)}}}"] if table.note else []
    lines = [
        r"\begin{table}",
        r"\centering",
        rf"\caption{{{_escape_latex(table.caption)}}}",
        rf"\begin{{tabular}}{{{''.join('r' if numeric else 'l' for numeric in table.numeric)}}}",
        r"\toprule",
        _format_latex_row([_escape_latex(name) for name in table.header]),
        r"\midrule",
        *(_format_latex_row([_format_latex_entry(entry) for entry in row]) for row in table.rows),
        r"\bottomrule",
        r"\end{tabular}",
        *note,
        r"\end{table}",
    ]
    return "\n".join(lines) + "\n"


def make_results_table(summary: Summary) -> TextTable:
    """Make the table of each method's means under every measure, the deciding one's interval, and the mean rank."""
    decisive, *others = (summary.labels[name] for name in summary.measures)
    rows = []
    for m, method in enumerate(summary.methods):
        figures = (summary.figures[name][m] for name in summary.measures)
        first, *rest = (Entry(f.mean, format_number(f.mean), f.best, BELOW if f.below else "") for f in figures)
        ends = [Entry(end, format_number(end)) for end in (summary.spreads[m].low, summary.spreads[m].high)]
        rank = float(summary.mean_ranks[m])
        rows.append([_make_name_entry(method), first, *ends, *rest, Entry(rank, format_number(rank, 2))])
    means = "means of the fold means on test queries" if len(summary.results.folds) > 1 else "means over the queries"
    caption = f"{summary.results.name}: {means}, with the 95% bootstrap interval of {decisive}. {summary.options}"
    if summary.results.unfinished:
        caption = f"{caption.strip()} ({summary.results.unfinished.capitalize()}.)"
    if summary.results.fixed:
        caption = f"{caption.strip()} ({summary.results.caution}.)"
    note = summary.below_note
    if len(summary.methods) > 1:
        note = f"{note} The mean rank is that over all measures, 1 for the best.".strip()
    return TextTable(["method", decisive, "low", "high", *others, "mean rank"], rows, caption.strip(), note)


def make_comparison_table(summary: Summary) -> TextTable:
    """Make the table that compares every two methods under the deciding measure."""
    caption = (
        f"{summary.results.name}: {summary.decisive} of the second method minus that of the first, paired by query."
    )
    return tabulate_comparisons(summary.comparisons.get(summary.results.measure, []), caption)


FORMATS: dict[str, Callable[[TextTable], str]] = {
    "md": format_markdown,
    "csv": format_csv,
    "tex": format_latex,
}  # by the ending of a file


def _make_name_entry(method: str) -> Entry:
    """Make the entry of a method's name."""
    return Entry(method, method)


def _format_markdown_row(cells: Sequence[str]) -> str:
    """Return a row of cells as Markdown."""
    return f"| {' | '.join(cells)} |"


def _format_markdown_entry(entry: Entry) -> str:
    """Return an entry as Markdown: the best in bold, the mark behind it."""
    shown = _escape_markdown(entry.text)
    return (f"**{shown}**" if entry.best else shown) + _escape_markdown(entry.mark)


def _escape_markdown(words: str) -> str:
    """Return a text on one line, with Markdown's special characters escaped."""
    return _MARKDOWN_SPECIAL.sub(lambda found: "\\" + found[0], make_printable(" ".join(words.split())))


def _make_csv_value(value: float | int | str) -> float | int | str:
    """Return a value for CSV: empty if it is NaN; a text that a spreadsheet would run as a formula is quoted."""
    if isinstance(value, str):  # a spreadsheet would read such a text as a formula
        value = make_printable(value, keep="\n")
        return f"'{value}" if value.startswith(("=", "+", "-", "@", "\t", "\r")) else value
    return "" if isnan(value) else value


def _format_latex_row(cells: Sequence[str]) -> str:
    """Return a row of cells as LaTeX."""
    row = " & ".join(cells)
    return ("{}" if row.startswith(("[", "*")) else "") + row + r" \\"  # or "[" becomes an argument of \\


def _format_latex_entry(entry: Entry) -> str:
    """Return an entry as LaTeX: the best in bold, the mark raised behind it."""
    shown = _escape_latex(entry.text if isinstance(entry.value, str) else entry.text.replace("-", _MINUS))
    mark = rf"\textsuperscript{{{_escape_latex(entry.mark)}}}" if entry.mark else ""
    return (rf"\textbf{{{shown}}}" if entry.best else shown) + mark


def _escape_latex(words: str) -> str:
    """Return a text on one line, with LaTeX's special characters escaped."""
    return "".join(_LATEX_SPECIAL.get(letter, letter) for letter in make_printable(" ".join(words.split())))


def format_results(results: Results) -> str:
    """Return the table of every method under every measure, as aligned columns for a terminal."""
    return format_aligned(make_results_table(Summary(results)))


def format_comparisons(results: Results) -> str:
    """Return the comparisons of every two methods under the deciding measure, as aligned columns for a terminal."""
    return format_aligned(make_comparison_table(Summary(results)))


def make_results_json(results: Results) -> dict[str, Any]:
    """Return the methods' means and their comparisons as a dictionary that can be written as JSON."""
    comparisons = Summary(results).comparisons.get(results.measure, [])
    plain = [asdict(found) | {"p": found.p._asdict(), "adjusted": found.adjusted._asdict()} for found in comparisons]
    means = {
        method: {measure: float(results.means(measure)[i]) for measure in results.measures}
        for i, method in enumerate(results.methods)
    }
    return {
        "measure": results.measure,
        "queries": len(results.tables["queries"]["qid"]),
        "means": means,
        "tests": plain,
    }
