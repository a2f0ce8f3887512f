"""The tables of the simulation of smoothing, and its facts for a terminal."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from rankwright.analysis.results import Table
from rankwright.basics.aligned_tables import Entry, TextTable, format_aligned
from rankwright.basics.number_texts import format_number
from rankwright.papers.simulation.smoothing.smoothing_data import ALPHAS, SIGMAS, STEPS, TRUE, Annealing, LineView
from rankwright.papers.simulation.smoothing.smoothing_facts import AnnealingFacts, LineFacts, SmoothingFindings
from rankwright.report.notation import format_count

_RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def format_power(sigma: float) -> str:
    """Return a sigma as text for files and terminals: a power of two such as 2^6, or 0 for the measure itself.

    >>> format_power(64.0), format_power(0.25), format_power(0.0)
    ('2^6', '2^-2', '0')
    """
    return f"2^{round(np.log2(sigma))}" if sigma > 0.0 else "0"


def format_sigma(sigma: float) -> str:
    """Return a sigma as text for a page: a power of two with a raised exponent, such as 2⁶.

    >>> format_sigma(64.0), format_sigma(0.25)
    ('2⁶', '2⁻²')
    """
    base, _, exponent = format_power(sigma).partition("^")
    return base + exponent.translate(_RAISED)


def make_tables(found: SmoothingFindings) -> dict[str, Table]:
    """Make all tables of the simulation by file name: the data of both figures, the folds, and the facts."""
    folds = [
        ((i + 1, alpha, alpha == fold.chosen), fold.by_alpha[alpha])
        for i, fold in enumerate(found.folds)
        for alpha in ALPHAS
    ]
    return {
        "figure1": _tabulate_lines(found),
        "figure2": _stack_annealings(("alpha",), [((name,), each) for name, each in found.annealings.items()]),
        "folds": _stack_annealings(("fold", "alpha", "chosen"), folds),
        "lines": _tabulate_line_facts(found),
        "annealing": _transpose_rows(
            ("alpha", *AnnealingFacts._fields), [(name, *facts) for name, facts in found.annealing_facts.items()]
        ),
    }


def _tabulate_lines(found: SmoothingFindings) -> Table:
    """Make a table with a row for each view and t, and a column for each sigma; the measure itself is the last."""
    lines = found.lines.values()
    columns = {
        field: np.repeat([getattr(view, field) for view in found.lines], [len(line.t) for line in lines])
        for field in LineView._fields
    }
    columns["t"] = np.concatenate([line.t for line in lines])
    for sigma in (*SIGMAS, TRUE):
        columns[f"sigma {format_power(sigma)}"] = np.concatenate([line.values[sigma] for line in lines])
    return columns


def _stack_annealings(names: Sequence[str], parts: Sequence[tuple[tuple[object, ...], Annealing]]) -> Table:
    """Make one table of several annealings; the columns ``names`` say which annealing a row belongs to."""
    sizes = [len(each.sigma) for _, each in parts]
    table = {name: np.repeat([labels[k] for labels, _ in parts], sizes) for k, name in enumerate(names)}
    columns = np.concatenate([np.array(each) for _, each in parts], axis=1)
    return table | dict(zip(Annealing._fields, columns, strict=True))


def _tabulate_line_facts(found: SmoothingFindings) -> Table:
    """Make a table with a row for each view and sigma; its columns are the facts about the line."""
    rows = [
        (*view, found.lines[view].t[-1], len(found.lines[view].profile.times), sigma, *facts)
        for view, by_sigma in found.line_facts.items()
        for sigma, facts in by_sigma.items()
    ]
    return _transpose_rows((*LineView._fields, "end", "jumps", "sigma", *LineFacts._fields), rows)


def _transpose_rows(names: Iterable[str], rows: Sequence[tuple[object, ...]]) -> Table:
    """Return rows as a table of columns with these names."""
    return {
        name.replace("_", " "): np.array(column) for name, column in zip(names, zip(*rows, strict=True), strict=True)
    }


def format_text(found: SmoothingFindings) -> str:
    """Format the findings of both figures as tables for a terminal."""
    return f"{_format_lines(found)}\n\n{_format_annealing(found)}"


def _format_lines(found: SmoothingFindings) -> str:
    """Return the facts about figure 1 as a table for a terminal."""
    header = ["sigma", "maxima, wide", "close", "one query", "distance, wide", "close"]
    wide, close = ([view for view in found.lines if view[::2] == ("mean", name)] for name in ("wide", "close"))
    [one] = [view for view in found.lines if view.queries != "mean" and view.range == "close"]
    rows = []
    for sigma in (*SIGMAS, TRUE):
        own = {view: by_sigma[sigma] for view, by_sigma in found.line_facts.items()}
        maxima = [format_span([own[view].maxima for view in views]) for views in (wide, close, [one])]
        distances = [format_number(float(np.mean([own[view].distance for view in views]))) for views in (wide, close)]
        rows.append([_as_entry(cell) for cell in (format_power(sigma), *maxima, *distances)])
    jumps = format_span([len(found.lines[view].profile.times) for view in wide])
    caption = (
        f"Figure 1: {found.measure} made smooth, along {format_count(len(wide), 'random line')} through "
        f"SmoothRank's w*; {found.data}, fold 1, {format_count(found.n_train, 'training query')}."
    )
    ties = (
        f" Scores tie in {found.n_tied} of {found.n_train} queries, where the measure takes the worst order and the "
        f"smooth one the mean."
    )
    note = (
        f"maxima: local ones among {STEPS + 1} points, t up to {found.lines[wide[0]].t[-1]:g} (wide) and "
        f"{found.lines[close[0]].t[-1]:g} (close, and one query). distance: mean from the measure itself. "
        f"sigma 0: the measure itself, with {jumps} jumps and every maximum.{ties if found.n_tied else ''}"
    )
    return format_aligned(TextTable(header, rows, caption, note))


def _format_annealing(found: SmoothingFindings) -> str:
    """Return the facts about figure 2 as a table for a terminal."""
    header = ["alpha", "train: start", "first sigma", "last sigma", "rises", "test: start", "first sigma", "best", "at",
              "last sigma", "near best"]  # fmt: skip
    rows = []
    for name, own in found.annealing_facts.items():
        train = map(format_number, (own.train_start, own.train_first, own.train_last))
        test = map(format_number, (own.test_start, own.test_first, own.test_best))
        rises = f"{own.rises} of {own.halvings}"
        cells = (
            name.removeprefix("alpha "),
            *train,
            rises,
            *test,
            format_power(own.best_sigma),
            format_number(own.test_last),
            format_power(own.test_near),
        )
        rows.append([_as_entry(cell) for cell in cells])
    sigma = next(iter(found.annealings.values())).sigma
    caption = (
        f"Figure 2: {found.measure} while sigma falls; {found.data}, means of {format_count(len(found.folds), 'fold')}."
    )
    note = (
        f"start: the regression. sigma from {format_power(sigma[1])} to {format_power(sigma[-1])}. "
        f"rises: halvings after which train is higher. near best: the first sigma within 0.001 of it. "
        f"chosen: the alpha that is best on validation "
        f"queries, in each fold."
    )
    return format_aligned(TextTable(header, rows, caption, note))


def format_span(values: Sequence[int]) -> str:
    """Format the lowest and the highest of some numbers as text, such as "3 to 7"; only one if they are equal.

    >>> format_span([3, 1200, 7]), format_span([2, 2])
    ('3 to 1,200', '2')
    """
    ends = f"{min(values):,}", f"{max(values):,}"
    return ends[0] if ends[0] == ends[1] else " to ".join(ends)


def _as_entry(words: str) -> Entry:
    """Return a text as an entry of a table."""
    return Entry(words, words)
