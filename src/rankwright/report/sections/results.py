"""Results: every method under every measure."""

from __future__ import annotations

from math import isnan
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankwright.report.blocks import Block, Cell, Chart, Choice, Column, Grid, Row, Text
from rankwright.report.notation import DIGITS, interval, number, p_value, signed
from rankwright.report.sections.base import Content, ReportSection
from rankwright.report.sections.dots import Dot, dot_chart
from rankwright.report.summary import BELOW, Figure, Summary


def _content(summary: Summary) -> Content:
    lead = (
        f"Each method was selected by {summary.decisive} on the validation queries and judged on the test queries, "
        "fold by fold. A figure is the mean of the folds' means."
    )
    blocks: list[Block] = [
        *_absent(summary),
        Choice("Show", [("means", _means(summary)), ("ranks", _ranks(summary))]),
        *_chart(summary),
    ]
    return Content(lead, blocks)


def _means(summary: Summary) -> Grid:
    columns = [
        Column("method"),
        Column(summary.decisive, DIGITS, title=summary.results.measure),
        Column("std error", DIGITS, title=f"standard error of the mean of {summary.decisive}, over queries"),
        Column("95% interval", title=f"bootstrap interval of the mean of {summary.decisive}, over queries"),
        *(Column(summary.labels[name], DIGITS, title=name) for name in summary.measures[1:]),
        Column("mean rank", 2, title="mean of the ranks under all measures"),
    ]
    rows = []
    for m, (method, spread) in enumerate(zip(summary.methods, summary.spreads, strict=True)):
        first, *others = (_cell(summary.figures[name][m], len(summary.methods)) for name in summary.measures)
        between = Cell(None if isnan(spread.low) else spread.low, interval(spread.low, spread.high))
        rows.append(Row([method, first, spread.error, between, *others, float(summary.mean_ranks[m])], (method,)))
    caption = f"Means on test queries. The best of each measure is emphasised. {summary.options}"
    return Grid(columns, rows, caption.strip(), summary.below_note)


def _cell(figure: Figure, n_methods: int) -> Cell:
    if isnan(figure.mean):
        return Cell(None, title="no result on some fold")
    title = f"rank {figure.rank:g} of {n_methods}"
    if figure.against is not None:
        difference, p = figure.against.difference, figure.against.adjusted.randomisation
        title += f"; {signed(difference)} against {figure.against.first}, p = {p_value(p)}"
    return Cell(figure.mean, mark=BELOW if figure.below else "", title=title, emphasis="best" if figure.best else "")


def _ranks(summary: Summary) -> Grid:
    columns = [
        Column("method"),
        *(Column(summary.labels[name], title=name) for name in summary.measures),
        Column("mean rank", 2, title="mean of the ranks under all measures"),
    ]
    rows = []
    for m, method in enumerate(summary.methods):
        figures = [summary.figures[name][m] for name in summary.measures]
        cells = [Cell(f.rank, emphasis="best" if f.best else "", title=number(f.mean)) for f in figures]
        rows.append(Row([method, *cells, float(summary.mean_ranks[m])], (method,)))
    return Grid(columns, rows, "Ranks of the methods under each measure, 1 for the best. Equal means share a rank.")


def _chart(summary: Summary) -> list[Chart]:
    """The deciding measure with its intervals, the best method first."""
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
    return [dot_chart(best_first, axis, "%{y}: %{x:.4f}", caption)]


def _absent(summary: Summary) -> list[Text]:
    """A warning if some method has no value on some fold."""
    missing = np.isnan(summary.results.fold_means())
    for_all = missing.all(axis=0)  # a measure may skip every query of a fold
    lacking = [
        f"{method} on fold {_listed(summary.results.folds[row])}"
        for method, row in zip(summary.methods, missing & ~for_all, strict=True)
        if row.any()
    ]
    if for_all.any():
        lacking.append(f"any method on fold {_listed(summary.results.folds[for_all])}")
    if not lacking:
        return []
    sentence = (
        f"There is no {summary.decisive} of {'; of '.join(lacking)}. Without all folds there is no mean and no rank."
    )
    return [Text(sentence, level="warning")]


def _listed(folds: NDArray[Any]) -> str:
    return ", ".join(map(str, folds))


RESULTS = ReportSection("Results", ("queries", "values"), _content)
