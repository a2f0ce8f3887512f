"""Section on the significance of the difference of every two methods."""

from __future__ import annotations

from math import isnan

from rankwright.analysis.significance import Comparison
from rankwright.report.blocks import Cell, Column, Grid, Row
from rankwright.report.notation import DIGITS, Value, format_count, format_interval, format_p, format_signed
from rankwright.report.sections.base import Content, ReportSection, make_choice
from rankwright.report.summary import COMPARISON_NOTE, TESTS, Summary, choose_mark, order_p_values


def _make_content(summary: Summary) -> Content | None:
    """Make the lead and the blocks of section "Significance"; return None if there is nothing to show."""
    if not summary.shown:
        return None
    lead = (
        "Could the difference between two methods be chance? The tests compare values query by query, over the test "
        "queries of all folds. Among many comparisons some look significant by chance alone: Holm's correction raises "
        "every p, so that at p < 0.05 the chance of even one false alarm among the comparisons of one measure stays "
        f"below 5%. Decide by one measure, {summary.decisive}. What is tested are these trained models on queries like "
        "these, not what another training set would bring."
    )
    options = [(summary.labels[name], _make_grid(summary, name)) for name in summary.shown]
    return Content(lead, [make_choice("Measure", options)])


def _make_grid(summary: Summary, measure: str) -> Grid:
    """Make the table of the comparisons of every two methods under a measure."""
    comparisons = summary.comparisons[measure]
    columns = [
        Column("first"),
        Column("second"),
        Column("difference", DIGITS, title="the mean of the second method minus that of the first"),
        Column("95% interval", title="bootstrap interval of the difference"),
        Column("wins", title="queries where the second method is better"),
        Column("ties", title="queries where both are equal"),
        Column("losses", title="queries where the second method is worse"),
        *(Column(name, 4, title="two-sided, after Holm's correction") for name in TESTS),
        Column("effect", 2, title="Cohen's d: the mean difference in standard deviations of the differences"),
        Column("queries", title="queries where both methods have a value"),
    ]
    label = summary.labels[measure]
    caption = (
        f"{label}: {format_count(len(comparisons), 'comparison')} of two methods with results on all folds. "
        "Differences are the second minus the first, each query weighted as in the means."
    )
    return Grid(columns, [_make_row(found) for found in comparisons], caption, COMPARISON_NOTE)


def _make_row(found: Comparison) -> Row:
    """Make the row of a comparison of two methods."""
    p_values = [
        Cell(p, format_p(p), title=f"{format_p(raw)} before Holm's correction")
        for p, raw in zip(order_p_values(found.adjusted), order_p_values(found.p), strict=True)
    ]
    between = Cell(None if isnan(found.low) else found.low, format_interval(found.low, found.high))
    sign = choose_mark(found)
    title = f"the second method is significantly {'better' if found.difference > 0 else 'worse'}" if sign else ""
    difference = Cell(found.difference, format_signed(found.difference), sign, title)
    cells: list[Cell | Value] = [
        found.wins,
        found.ties,
        found.losses,
        *p_values,
        Cell(found.effect, format_signed(found.effect, 2)),
        found.n,
    ]
    return Row([found.first, found.second, difference, between, *cells], (found.first, found.second))


SIGNIFICANCE = ReportSection("Significance", ("queries", "values"), _make_content)
