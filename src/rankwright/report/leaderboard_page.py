"""The page of an automatic search: the leaderboard, what time brought, the blend, and the data."""

from __future__ import annotations

import datetime
import platform
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from rankwright.analysis.inspection.query_facts import MOST_GRADES, QueryFacts, describe_queries
from rankwright.basics.array_types import Floats, Ints
from rankwright.basics.files import StrPath, write_atomic
from rankwright.basics.number_texts import DIGITS, format_interval, format_number
from rankwright.basics.version import __version__
from rankwright.data.queries import Queries
from rankwright.report.blocks import Block, Cell, Column, Grid, Page, Row, Section, Text
from rankwright.report.inspection_page import draw_grades
from rankwright.report.leaderboard_charts import draw_candidates, draw_times, draw_weights
from rankwright.report.leaderboard_text import (
    BLEND,
    NESTED,
    VARIANT_NOTE,
    describe_blend,
    format_leaderboard_csv,
    format_stop_reason,
    format_weight,
    get_leaderboard,
    name_candidates,
)
from rankwright.report.notation import format_count
from rankwright.report.page import render_page

if TYPE_CHECKING:
    from rankwright.rankers import AutoRanker


def write_leaderboard(
    ranker: AutoRanker,
    folder: StrPath,
    train: Queries,
    valid: Queries | None = None,
    *,
    command: str = "",
    seconds: float | None = None,
    date: datetime.date | None = None,
) -> Path:
    """Write ``leaderboard.csv`` and ``report.html`` for a fitted ``AutoRanker``; return the path of the page.

    Parameters
    ----------
    ranker : AutoRanker
        A fitted one.
    folder : path
        Made if it does not exist.
    train, valid : Queries
        The queries that it was fitted to, for the facts on the data.
    command : str
        What was run, for the page.
    seconds : float, optional
        How long the search took.
    date : datetime.date, optional
        Stands at the foot of the page. Without it the same search gives the same bytes on any day.
    """
    page, table = list_leaderboard_files(folder)
    text = render_page(make_leaderboard_page(ranker, train, valid, command=command, seconds=seconds, date=date))
    page.parent.mkdir(parents=True, exist_ok=True)
    for path, content in ((table, format_leaderboard_csv(ranker)), (page, text)):
        with write_atomic(path) as file:
            file.write(content)
    return page


def list_leaderboard_files(folder: StrPath) -> list[Path]:
    """Return the files that ``write_leaderboard`` writes into a folder, the page first."""
    return [Path(folder) / "report.html", Path(folder) / "leaderboard.csv"]


def make_leaderboard_page(
    ranker: AutoRanker,
    train: Queries,
    valid: Queries | None = None,
    *,
    command: str = "",
    seconds: float | None = None,
    date: datetime.date | None = None,
) -> Page:
    """Return the page of an automatic search; the parameters are those of ``write_leaderboard``."""
    rows = get_leaderboard(ranker)
    n_in = sum(row["weight"] > 0.0 for row in rows)
    estimate = ranker.estimate_
    sets = {"training": train} | ({} if valid is None else {"validation": valid})
    facts = [
        (f"{ranker.measure} of the blend", format_number(estimate.mean)),
        ("95% interval", format_interval(estimate.low, estimate.high)),
        ("Candidates", f"{len(rows):,}"),
        ("In the blend", f"{n_in:,}"),
        ("Fits", f"{sum(row['n_fits'] for row in rows):,}"),
        *([] if seconds is None else [("Time", format_duration(seconds))]),
    ]
    sections = [
        Section("Leaderboard", f"{describe_blend(ranker)}.", _make_board_blocks(ranker)),
        Section("Weights", _describe_weights(ranker), [draw_weights(rows)]),
        Section("Time", "What each candidate reached, and the time of all its fits.", [draw_times(ranker)]),
        Section("Data", _describe_sets(sets), _make_data_blocks(sets)),
        Section("How it was made", "What to run to do it again.", _make_origin_blocks(ranker, command)),
    ]
    footer = f"Rankwright {__version__}" + (f", {date.isoformat()}" if date else "")
    return Page("Automatic ranking", f"The best blend for {ranker.measure}", facts, (), sections, footer)


def format_duration(seconds: float) -> str:
    """Return a time as text, such as "12.3 s" or "9 min 58 s".

    >>> format_duration(12.34), format_duration(598.2), format_duration(7325)
    ('12.3 s', '9 min 58 s', '2 h 2 min')
    """
    if seconds < 59.95:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"


def _make_board_blocks(ranker: AutoRanker) -> list[Block]:
    """Return the table of the candidates, and the chart of their measures."""
    endings = filter(None, map(format_stop_reason, ranker.fit_warnings_))
    notes = [Text(f"{text[0].upper()}{text[1:]}.", "note") for text in endings]
    return [*notes, _make_grid(ranker), draw_candidates(ranker)]


def _make_grid(ranker: AutoRanker) -> Grid:
    """Make the table of the blend and of the candidates, the highest weight first."""
    columns = [
        Column("candidate"),
        Column("weight", 3, "the share in the blend"),
        Column(str(ranker.measure), DIGITS, "the mean on queries that were held out"),
        Column("95% interval"),
        Column("seconds", 1, "of all fits"),
        Column("fits", title="folds that it was fitted without"),
        Column("parameters", title="that differ from the defaults of the ranker"),
    ]
    rows, blend = get_leaderboard(ranker), ranker.estimate_
    total, n_fits = sum(row["seconds"] for row in rows), sum(row["n_fits"] for row in rows)
    figure = Cell(blend.mean, format_number(blend.mean), emphasis="best", title=NESTED)
    first = Row([BLEND, Cell(1.0, "1.000"), figure, format_interval(blend.low, blend.high), total, n_fits, ""])
    others = [
        Row(
            [
                name,
                Cell(row["weight"], format_weight(row["weight"])),
                row["mean"],
                format_interval(row["low"], row["high"]),
                row["seconds"],
                row["n_fits"],
                row["candidate"],
            ]
        )
        for name, row in zip(name_candidates(rows), rows, strict=True)
    ]
    caption = "The blend and all candidates, sorted by their share in the blend."
    return Grid(columns, [first, *others], caption, VARIANT_NOTE)


def _describe_weights(ranker: AutoRanker) -> str:
    """Return a sentence on how far the weights are from equal ones."""
    if np.isnan(ranker.estimate_.mean):
        return "All members have equal weights: no query could be held out to choose others."
    if len(ranker.history_) == 1:
        return (
            "There was no time to search for weights: the members that are not significantly below the best one have "
            "equal weights."
        )
    if np.isinf(ranker.shrinkage_):
        return "The members that are not significantly below the best one have equal weights: others were not better."
    how = (
        f"under shrinkage to equal weights of strength {ranker.shrinkage_:g}"
        if ranker.shrinkage_
        else "without shrinkage"
    )
    return f"The weights maximise {ranker.measure} on held-out queries, {how}."


def _describe_sets(sets: Mapping[str, Queries]) -> str:
    """Return a sentence on the data."""
    n_queries, n_docs = (sum(values) for values in zip(*((len(each), each.n_docs) for each in sets.values())))
    joined = " Validation queries joined the training queries." if len(sets) > 1 else ""
    return f"{format_count(n_queries, 'query')} with {format_count(n_docs, 'document')}.{joined}"


def _make_data_blocks(sets: Mapping[str, Queries]) -> list[Block]:
    """Return the table of the facts on each set, and the chart of the grades."""
    facts = {name: describe_queries(queries) for name, queries in sets.items()}
    columns = [
        Column("set"),
        Column("queries"),
        Column("documents"),
        Column("documents of a query"),
        Column("features"),
    ]
    columns += [Column("missing values"), Column("grades"), Column("no relevant document", title="number of queries")]
    rows = [Row([name, *_list_facts(facts[name], queries)]) for name, queries in sets.items()]
    return [Grid(columns, rows, "The data."), *draw_grades(facts)]


def _count_missing(X: Floats) -> Ints:
    """Return the number of missing features of each row."""
    counts = np.zeros(len(X), np.int64)
    for at in range(X.shape[1]):
        counts += np.isnan(X[:, at])
    return counts


def _list_facts(facts: QueryFacts, queries: Queries) -> list[Cell | float | int | str | None]:
    """Return the facts on a set, in the order of the table's columns."""
    n_missing = int(queries.compute_scores(_count_missing).sum())
    share = n_missing / max(queries.n_docs * queries.n_features, 1)
    low, _, median, _, high = facts.size_quartiles
    n_grades = len(facts.grades)
    grades = ", ".join(f"{grade:g}" for grade in facts.grades) if n_grades <= MOST_GRADES else f"{n_grades:,} values"
    sizes = Cell(float(median), f"{low:g} to {high:g}, median {median:g}")
    missing = Cell(share, f"{share:.1%}")
    return [facts.n_queries, facts.n_docs, sizes, facts.n_features, missing, grades, int(facts.irrelevant.sum())]


def _make_origin_blocks(ranker: AutoRanker, command: str) -> list[Block]:
    """Return the table of the command, the parameters and the versions."""
    params = {name: value for name, value in ranker.get_params(deep=False).items() if name != "backend"}
    shown = ", ".join(f"{name}={str(value) if name == 'measure' else repr(value)}" for name, value in params.items())
    entries = [("command", command)] if command else []
    entries += [("parameters", shown), ("Rankwright", __version__), ("Python", platform.python_version())]
    entries += [(name, version(name)) for name in ("numpy", "numba", "lightgbm")]
    return [Grid([Column("what"), Column("value")], [Row(list(entry)) for entry in entries], "Command and versions.")]
