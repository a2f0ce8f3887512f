"""The papers' protocols as specs, and their figures beside ours.

The specs are the TOML files beside this one (``protocols.py`` reads them). A ranker is added to a spec as a method; the
published figures that wait for it are there already.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rankwright.analysis.results import Results
from rankwright.analysis.significance import winning_number
from rankwright.basics.aligned_tables import Entry, TextTable, format_aligned
from rankwright.basics.number_texts import format_number, format_p, format_signed
from rankwright.papers.reproduction.protocols import NAMES, make_reproductions
from rankwright.report.sections.published_section import list_notes, make_fold_table, make_published_table
from rankwright.report.summary import Summary
from rankwright.report.text_tables import format_markdown

__all__ = ["NAMES", "format_page", "format_text", "make_reproductions", "tabulate_winning_numbers"]


def tabulate_t_tests(summary: Summary, measure: str) -> TextTable:
    """Make the table of paired t-tests of every two methods under a measure, as in the papers."""
    rows = [
        [
            Entry(found.first, found.first),
            Entry(found.second, found.second),
            Entry(found.difference, format_signed(found.difference)),
            Entry(found.p.t, format_p(found.p.t)),
            Entry(found.adjusted.t, format_p(found.adjusted.t)),
        ]
        for found in summary.comparisons[measure]
    ]
    caption = f"Paired t-tests on {measure}: the second method minus the first."
    return TextTable(["first", "second", "difference", "p", "p after Holm"], rows, caption)


_SHOWN = {
    "MAP": "map",
    "NDCG@1": "ndcg@1",
    "NDCG@3": "ndcg@3",
    "NDCG@5": "ndcg@5",
    "NDCG@10": "ndcg@10",
    "ERR": "err",
}


def _find_measure(results: Results, start: str) -> str | None:
    """Return the full name of the first measure of this name, whatever its options; None if there is none."""
    return next((measure for measure in results.measures if measure.partition("(")[0] == start), None)


def _read_means(results: Results, measure: str) -> dict[str, float]:
    """Return each method's mean under a measure."""
    return dict(zip(results.methods, results.means(measure).tolist(), strict=True))


def tabulate_means(results: Results) -> TextTable:
    """Make the table of each method's means on the test queries, under MAP, NDCG at several cut-offs and ERR."""
    shown = {header: measure for header, start in _SHOWN.items() if (measure := _find_measure(results, start))}
    columns = [_read_means(results, measure) for measure in shown.values()]
    rows = [[Entry(m, m), *(Entry(c[m], format_number(c[m])) for c in columns)] for m in results.methods]
    named = ", ".join(shown.values())
    return TextTable(["method", *shown], rows, f"All methods: means of the fold means on test queries ({named}).")


def tabulate_winning_numbers(results: Mapping[str, Results]) -> TextTable:
    """Make the table of LETOR's winning numbers: in how many comparisons over the data sets each method wins."""
    columns, headers = [], []
    for header, start in _SHOWN.items():
        measures = {name: _find_measure(found, start) for name, found in results.items()}
        if None not in measures.values():  # every data set has it
            columns.append(winning_number({n: _read_means(results[n], m) for n, m in measures.items() if m}))
            headers.append(header)
    rows = []
    for method, counted in columns[0].items():
        wins = [Entry(column[method].wins, str(column[method].wins)) for column in columns]
        rows.append([Entry(method, method), *wins, Entry(counted.comparisons, str(counted.comparisons))])
    caption = f"Winning numbers over {len(results)} data sets: of how many comparisons with other methods each wins."
    return TextTable(["method", *headers, "comparisons"], rows, caption)


def format_text(results: Results) -> str:
    """Return the tables of one reproduction for a terminal: published figures beside ours, all means, the t-tests."""
    summary = Summary(results)
    tests = tabulate_t_tests(summary, find_ndcg_at_one(results))
    published = make_published_table(summary)
    parts = [
        results.name,
        *([format_aligned(published)] if published.rows else []),
        *list_notes(summary),
        format_aligned(tabulate_means(results)),
        *([format_aligned(tests)] if tests.rows else []),
    ]
    return "\n\n".join(parts)


def find_ndcg_at_one(results: Results) -> str:
    """Return the full name of the NDCG@1 of a reproduction, the measure of the papers' t-tests."""
    return next(measure for measure in results.measures if measure.partition("(")[0] == "ndcg@1")


def format_page(results: Mapping[str, Results], commands: Sequence[str]) -> str:
    """Return the page of all reproductions as Markdown text; ``commands`` are those that made it."""
    parts = [_OPENING, "```\n" + "\n".join(commands) + "\n```"]
    for name, found in results.items():
        summary = Summary(found)
        trials = found.tables["trials"]
        published, tests = make_published_table(summary), tabulate_t_tests(summary, find_ndcg_at_one(found))
        parts += [f"## {found.name}", *([format_markdown(published).strip()] if published.rows else [])]
        parts += [f"- {note}" for note in list_notes(summary)]
        folds = make_fold_table(summary)
        parts += [] if folds is None else [format_markdown(folds).strip()]
        parts += [format_markdown(tabulate_means(found)).strip()]
        parts += [format_markdown(tests).strip()] if tests.rows else []
        parts += [_CLAIM] * (name == "ohsumed-2.0")
        parts += [f"{len(trials['method'])} trials, {trials['seconds'].sum():.1f} s of training in all."]
    if len(results) > 1:
        parts += ["## Winning numbers", format_markdown(tabulate_winning_numbers(results)).strip()]
    return "\n\n".join(parts) + "\n"


_CLAIM = (
    "Xu et al. (section 6.1) test the same way on these data: the direct methods (AdaRank, PermuRank, SVM-map) are "
    "significantly better than Ranking SVM and RankBoost (p < 0.05), and do not differ significantly among themselves. "
    "On 106 queries the standard error of a difference in NDCG@1 is about 0.03, so that a difference must reach about "
    "0.06 to be significant."
)
_OPENING = """# Reproduction

Published figures beside ours, under one protocol: the folds and the definitions of each data set's own benchmark. Every
parameter, and every number of rounds, is chosen on validation queries. Figures are means of the folds' means on test
queries. The standard error says how far our mean would move on other queries. On the same queries, two trainings of
one method should agree more closely, and a difference beyond 0.01 is explained. Rows without a figure of ours have no
ranker yet.

This page is written by the command itself:"""
