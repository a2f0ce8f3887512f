"""The papers' protocols as specs, and their figures beside ours.

The specs are the TOML files beside this one. A ranker is added to a spec as a method; the published figures that wait
for it are there already.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.resources import as_file, files
from pathlib import Path

from rankwright.analysis.results import Results
from rankwright.analysis.significance import winning_number
from rankwright.basics.errors import InputError, suggest
from rankwright.basics.files import StrPath
from rankwright.experiments import Experiment, read_experiment
from rankwright.experiments.data_sources import FoldFolder
from rankwright.report.notation import format_number, format_p, format_signed
from rankwright.report.sections.published_section import list_notes, make_fold_table, make_published_table
from rankwright.report.summary import Summary
from rankwright.report.text_tables import Entry, TextTable, format_aligned, format_markdown

NAMES = ("ohsumed", "ohsumed-2.0", "mq2008")


def make_reproductions(names: Sequence[str], data: StrPath) -> dict[str, Experiment]:
    """Return the experiments of published protocols by name; ``data`` holds a folder of each one's data set.

    If there is but one, ``data`` may be that folder.
    """
    wanted = dict.fromkeys(names)
    return {name: _read_protocol(name, Path(data), [Path(data)] if len(wanted) == 1 else []) for name in wanted}


def _read_protocol(name: str, data: Path, elsewhere: list[Path]) -> Experiment:
    """Read a protocol's spec, and return its experiment on the folds in ``data`` or in a folder of ``elsewhere``."""
    if name not in NAMES:
        raise InputError(f"unknown reproduction {name!r}; {suggest(name, NAMES)}")
    with as_file(files(__package__) / f"{name}.toml") as path:
        experiment = read_experiment(path)
    assert isinstance(experiment.data, FoldFolder)
    data_set = Path(experiment.data.folds).name
    for folder in (data / data_set, *elsewhere):
        if folder.is_dir() and (any(folder.glob("[Ff]old1")) or any(folder.glob("S1.txt*"))):
            return experiment.with_data(FoldFolder(str(folder.resolve())))
    raise InputError(
        f"{data}: no folds of {data_set}; expected a folder {data_set} there, with Fold1, ... or S1.txt, ..."
    )


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


_SHOWN = {"MAP": "map", "NDCG@1": "ndcg@1", "NDCG@3": "ndcg@3", "NDCG@5": "ndcg@5", "NDCG@10": "ndcg@10"}


def _read_means(results: Results, start: str) -> dict[str, float]:
    """Return each method's mean under the first measure of this name, whatever the measure's options."""
    measure = next(m for m in results.measures if m.partition("(")[0] == start)
    return dict(zip(results.methods, results.means(measure).tolist(), strict=True))


def tabulate_means(results: Results) -> TextTable:
    """Make the table of each method's means on the test queries, under MAP and NDCG at several cut-offs."""
    columns = [_read_means(results, start) for start in _SHOWN.values()]
    rows = [[Entry(m, m), *(Entry(c[m], format_number(c[m])) for c in columns)] for m in results.methods]
    return TextTable(["method", *_SHOWN], rows, "All methods: means of the fold means on test queries.")


def tabulate_winning_numbers(results: Mapping[str, Results]) -> TextTable:
    """Make the table of LETOR's winning numbers: in how many comparisons over the data sets each method wins."""
    columns = [
        winning_number({n: _read_means(found, start) for n, found in results.items()}) for start in _SHOWN.values()
    ]
    rows = []
    for method, counted in columns[0].items():
        wins = [Entry(column[method].wins, str(column[method].wins)) for column in columns]
        rows.append([Entry(method, method), *wins, Entry(counted.comparisons, str(counted.comparisons))])
    caption = f"Winning numbers over {len(results)} data sets: of how many comparisons with other methods each wins."
    return TextTable(["method", *_SHOWN, "comparisons"], rows, caption)


def format_text(results: Results) -> str:
    """Return the tables of one reproduction for a terminal: published figures beside ours, all means, the t-tests."""
    summary = Summary(results)
    tests = tabulate_t_tests(summary, find_ndcg_at_one(results))
    parts = [
        results.name,
        format_aligned(make_published_table(summary)),
        *list_notes(summary),
        format_aligned(tabulate_means(results)),
        format_aligned(tests),
    ]
    return "\n\n".join(parts)


def find_ndcg_at_one(results: Results) -> str:
    """Return the full name of the NDCG@1 of a reproduction, the measure of the papers' t-tests."""
    return next(measure for measure in results.measures if measure.startswith("ndcg@1("))


def format_page(results: Mapping[str, Results], commands: Sequence[str]) -> str:
    """Return the page of all reproductions as Markdown text; ``commands`` are those that made it."""
    parts = [_OPENING, "```\n" + "\n".join(commands) + "\n```"]
    for name, found in results.items():
        summary = Summary(found)
        trials = found.tables["trials"]
        parts += [f"## {found.name}", format_markdown(make_published_table(summary)).strip()]
        parts += [f"- {note}" for note in list_notes(summary)]
        folds = make_fold_table(summary)
        parts += [] if folds is None else [format_markdown(folds).strip()]
        parts += [format_markdown(tabulate_means(found)).strip()]
        parts += [format_markdown(tabulate_t_tests(summary, find_ndcg_at_one(found))).strip()]
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

Published figures beside ours, under one protocol: LETOR's five folds and LETOR's definitions. Every parameter, and
every number of rounds, is chosen on validation queries. Figures are means of the five folds' means on test queries. The
standard error says how far our mean would move on other queries. On the same queries, two trainings of one method
should agree more closely, and a difference beyond 0.01 is explained. Rows without a figure of ours have no
ranker yet.

This page is written by the command itself:"""
