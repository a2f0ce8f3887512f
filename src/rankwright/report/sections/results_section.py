"""Section on results: every method under every measure."""

from __future__ import annotations

from math import isnan
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankwright.basics.number_texts import (
    DIGITS,
    format_interval,
    format_number,
    format_p,
    format_p_equals,
    format_signed,
)
from rankwright.report.blocks import Block, Cell, Chart, Column, Grid, Row, Text
from rankwright.report.notation import Value
from rankwright.report.sections.base import Content, Dot, ReportSection, make_choice, make_dot_chart
from rankwright.report.sections.curves import draw_curves
from rankwright.report.summary import BELOW, Figure, Summary


def _make_content(summary: Summary) -> Content:
    """Make the lead and the blocks of the section."""
    unfinished = summary.results.unfinished
    blocks: list[Block] = [
        *([Text(f"The experiment is {unfinished}.", level="warning")] if unfinished else []),
        *_warn_of_absent(summary),
        *_warn_of_seeds(summary),
        *([Text(f"{summary.results.caution}.", level="warning")] if summary.results.fixed else []),
        make_choice(
            "Show",
            [("means", _make_mean_grid(summary)), *_make_more_grids(summary), ("ranks", _make_rank_grid(summary))],
        ),
        *_draw_charts(summary),
    ]
    sentences = (_write_verdict(summary), _describe_protocol(summary), _count_equal_queries(summary))
    return Content(" ".join(filter(None, sentences)), blocks)


def _write_verdict(summary: Summary) -> str:
    """Return a sentence with the best method, and the methods that do not differ significantly from it."""
    figures = dict(zip(summary.methods, summary.figures[summary.results.measure], strict=True))
    best = [name for name, figure in figures.items() if figure.best]
    if len(best) != 1:
        return ""
    others = {name: figure for name, figure in figures.items() if figure.against is not None}
    alike = [name for name, figure in others.items() if not figure.below]
    found = f"{best[0]} has the highest {summary.decisive}, {format_number(figures[best[0]].mean)}"
    if not others:
        return f"{found}."
    if not alike:
        return f"{found}, significantly above every other method."
    if len(alike) == len(others):
        return f"{found}, but no difference from another method is significant."
    rest = [name for name in others if name not in alike]
    named = rest[0] if len(rest) == 1 else "the others"
    return f"{found}. The difference from {_join_names(alike)} is not significant; that from {named} is."


def _join_names(names: list[str]) -> str:
    """Join names for a sentence: "a, b and c"."""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _describe_protocol(summary: Summary) -> str:
    """Return sentences that say how the methods were selected and evaluated."""
    one = len(summary.results.folds) == 1
    figure = "A figure is the mean over the queries." if one else "A figure is the mean of the folds' means."
    if not summary.has("trials"):
        return figure
    return (
        f"Each method was selected by {summary.decisive} on the validation queries and evaluated on the test "
        f"queries, fold by fold. {figure}"
    )


def _count_equal_queries(summary: Summary) -> str:
    """Return a sentence that counts the queries where no ranking is better than another; empty without such ones."""
    n_pairs = np.asarray(summary.table("queries")["n_pairs"])
    n_equal = int(np.sum(n_pairs == 0))
    if not n_equal:
        return ""
    return (
        f"On {n_equal:,} of the {len(n_pairs):,} test queries all documents have the same grade, as where none is "
        "relevant: all methods are equal there."
    )


def _make_more_grids(summary: Summary) -> list[tuple[str, Block]]:
    """Make the tables of differences and of folds, if there are several methods and folds; return them by name."""
    more: list[tuple[str, Block]] = []
    if any(figure.against for figure in summary.figures[summary.results.measure]):
        more.append(("differences from the best", _make_difference_grid(summary)))
    if len(summary.results.folds) > 1:
        more.append(("folds", _make_fold_grid(summary)))
    return more


def _make_difference_grid(summary: Summary) -> Grid:
    """Make the table of each method's mean minus the best one's, with the p-value, for every measure."""
    columns = [Column("method")]
    for name in summary.measures:
        label = summary.labels[name]
        columns += [Column(label, DIGITS, title=f"{name} minus that of the best"), Column(f"p {label}", 4)]
    rows = []
    for method in summary.ranked:
        m = summary.methods.index(method)
        cells: list[Cell | Value] = []
        for name in summary.measures:
            figure = summary.figures[name][m]
            if figure.against is None:
                cells += [Cell(None if isnan(figure.mean) else 0.0, "best" if figure.best else None), None]
                continue
            p = figure.against.adjusted.randomisation
            cells += [Cell(figure.against.difference, format_signed(figure.against.difference)), Cell(p, format_p(p))]
        rows.append(Row([method, *cells], (method,)))
    caption = "The mean of each method minus that of the best, and p of the randomisation test after Holm's correction."
    return Grid(columns, rows, caption)


def _make_fold_grid(summary: Summary) -> Grid:
    """Make the table of the deciding measure by method and fold."""
    columns = [Column("method"), *(Column(f"fold {fold}", DIGITS) for fold in summary.results.folds)]
    means = summary.results.fold_means()
    best = np.where(np.isnan(means), -np.inf, means).max(axis=0)
    rows = []
    for method in summary.ranked:
        row = means[summary.methods.index(method)]
        cells = [Cell(float(v), emphasis="best" if v == top else "") for v, top in zip(row, best, strict=True)]
        rows.append(Row([method, *cells], (method,)))
    return Grid(columns, rows, f"{summary.decisive} on the test queries of each fold, the best emphasised.")


def _make_mean_grid(summary: Summary) -> Grid:
    """Make the table of each method's mean under every measure, with the uncertainty of the deciding one."""
    efforts = count_candidates(summary)
    seeds = ["seed sd"] if not np.isnan(summary.seed_deviations).all() else []
    columns = [
        Column("method"),
        Column(summary.decisive, DIGITS, title=summary.results.measure),
        Column("std error", DIGITS, title=f"standard error of the mean of {summary.decisive}, over queries"),
        Column("95% interval", title=f"bootstrap interval of the mean of {summary.decisive}, over queries"),
        *(Column(title, DIGITS, title=f"standard deviation of {summary.decisive} between seeds") for title in seeds),
        *([Column("candidates", title="settings of the parameters that were tried on each fold")] if efforts else []),
        Column("mean rank", 2, title="mean of the ranks under all measures"),
        *(Column(summary.labels[name], DIGITS, title=name) for name in summary.measures[1:]),
    ]
    rows = []
    n_ranked = {name: sum(not isnan(each.mean) for each in figures) for name, figures in summary.figures.items()}
    for method in summary.ranked:
        m = summary.methods.index(method)
        spread = summary.spreads[m]
        first, *others = (_make_cell(figures[m], n_ranked[name]) for name, figures in summary.figures.items())
        between = Cell(None if isnan(spread.low) else spread.low, format_interval(spread.low, spread.high))
        between_seeds = [float(summary.seed_deviations[m])] * len(seeds)
        cells: list[Cell | Value] = [
            method,
            first,
            spread.error,
            between,
            *between_seeds,
            *([efforts[method]] if efforts else []),
            float(summary.mean_ranks[m]),
            *others,
        ]
        rows.append(Row(cells, (method,)))
    caption = f"Means on test queries. The best of each measure is emphasised. {summary.options}"
    effort = " A method that tried more candidates had more chances to fit the validation queries." if efforts else ""
    return Grid(columns, rows, caption.strip(), f"{summary.below_note}{effort}".strip())


def count_candidates(summary: Summary) -> dict[str, int]:
    """Return how many settings of its parameters each method tried; nothing where all tried one, or none is known."""
    table = summary.table("trials")
    if not summary.has("trials"):
        return {}
    tried = {m: len(np.unique(table["candidate"][table["method"] == i])) for i, m in enumerate(summary.methods)}
    return tried if max(tried.values()) > 1 else {}


def _make_cell(figure: Figure, n_ranked: int) -> Cell:
    """Make the cell of one method under one measure: the mean, with its rank in the tooltip."""
    if isnan(figure.mean):
        return Cell(None, title="no result on some fold")
    title = f"rank {figure.rank:g} of {n_ranked}"
    if figure.against is not None:
        difference, p = figure.against.difference, figure.against.adjusted.randomisation
        title += f"; {format_signed(difference)} against {figure.against.first}, {format_p_equals(p)}"
    return Cell(figure.mean, mark=BELOW if figure.below else "", title=title, emphasis="best" if figure.best else "")


def _make_rank_grid(summary: Summary) -> Grid:
    """Make the table of the rank of each method under every measure."""
    columns = [
        Column("method"),
        *(Column(summary.labels[name], title=name) for name in summary.measures),
        Column("mean rank", 2, title="mean of the ranks under all measures"),
    ]
    rows = []
    for method in summary.ranked:
        m = summary.methods.index(method)
        figures = [summary.figures[name][m] for name in summary.measures]
        cells = [Cell(f.rank, emphasis="best" if f.best else "", title=format_number(f.mean)) for f in figures]
        rows.append(Row([method, *cells, float(summary.mean_ranks[m])], (method,)))
    return Grid(columns, rows, "Ranks of the methods under each measure, 1 for the best. Equal means share a rank.")


def _draw_charts(summary: Summary) -> list[Block]:
    """Return a list with the choice of charts: means with intervals, and NDCG at 1 to 10; empty if there are none."""
    curves = draw_curves(summary)
    charts: list[tuple[str, Block]] = [("means with intervals", chart) for chart in _draw_means(summary)]
    charts += [("the first k documents", curves)] if curves is not None else []
    return [make_choice("Chart", charts)] if charts else []


def _draw_means(summary: Summary) -> list[Chart]:
    """Return a list with the chart of each method's mean and interval, the best first; empty if there are no means."""
    figures = summary.figures[summary.results.measure]
    dots = [
        Dot(method, figure.mean, spread.low, spread.high)
        for method, figure, spread in zip(summary.methods, figures, summary.spreads, strict=True)
        if not isnan(figure.mean)
    ]
    if not dots:
        return []
    caption = f"{summary.decisive} of each method: the mean and its 95% bootstrap interval over queries."
    if len(dots) > 1:
        caption += " Intervals may overlap although two methods differ significantly, because the tests pair queries."
    axis = {"title": {"text": f"{summary.decisive}, mean over folds"}}
    best_first = sorted(dots, key=lambda dot: -dot.value)
    return [make_dot_chart(best_first, axis, "%{y}: %{x:.4f}", caption)]


def _warn_of_absent(summary: Summary) -> list[Text]:
    """Return a list with a warning if a method has no value on a fold, else an empty list."""
    missing = np.isnan(summary.results.fold_means())
    for_all = missing.all(axis=0)  # a measure may skip every query of a fold
    lacking = [
        f"{method} on fold {_join_folds(summary.results.folds[row])}"
        for method, row in zip(summary.methods, missing & ~for_all, strict=True)
        if row.any()
    ]
    if for_all.any():
        lacking.append(f"any method on fold {_join_folds(summary.results.folds[for_all])}")
    if not lacking:
        return []
    said = f"There is no {summary.decisive} of {'; of '.join(lacking)}. Without all folds there is no mean and no rank."
    return [Text(said, level="warning")]


def _warn_of_seeds(summary: Summary) -> list[Text]:
    """Return a list with a warning if a method has fewer seeds on some folds than on others, else an empty list."""
    values, fold = summary.table("values"), summary.table("queries")["fold"]
    runs = np.unique(np.stack([values["method"], fold[values["query"]], values["seed"]]), axis=1)
    uneven = []
    for m, method in enumerate(summary.methods):
        _, counts = np.unique(runs[1][runs[0] == m], return_counts=True)
        if len(set(counts.tolist())) > 1:
            uneven.append(method)
    if not uneven:
        return []
    return [Text(f"Some folds lack seeds of {_join_names(uneven)}: their means are over fewer runs.", level="warning")]


def _join_folds(folds: NDArray[Any]) -> str:
    """Join the numbers of folds for a sentence, with commas."""
    return ", ".join(map(str, folds))


RESULTS = ReportSection("Which method is best?", ("queries", "values"), _make_content)
