"""Section on the significance of the difference of every two methods."""

from __future__ import annotations

from math import isnan

from rankwright.analysis.significance import Comparison, Interval
from rankwright.basics.number_texts import DIGITS, format_interval, format_p, format_signed
from rankwright.report.blocks import Block, Cell, Chart, Column, Grid, Row
from rankwright.report.notation import Value, format_count
from rankwright.report.sections.base import Content, ReportSection, make_choice
from rankwright.report.summary import BELOW, COMPARISON_NOTE, LEVEL, TESTS, Summary, choose_mark, order_p_values

_ROW, _AXES = 30, 90  # pixels for each method, and for the axis
_MATRIX_NOTE = (
    f"Each number is the method of the row minus the method of the column. {{marks}}p < {LEVEL:g} in the randomisation "
    "test, after Holm's correction over all pairs. Choose 'every pair' under Show for each p and interval."
)


def _make_content(summary: Summary) -> Content | None:
    """Make the lead and the blocks of the section; return None if there is nothing to compare."""
    if not summary.shown:
        return None
    lead = (
        "The tests compare methods query by query. Holm's correction keeps the chance of even one false alarm among "
        f"the comparisons of one measure below 5%. Decide by one measure, {summary.decisive}. What is tested are these "
        "trained models on queries like these, not what another training set would bring."
    )
    matrices = [(summary.labels[name], _make_matrix(summary, name)) for name in summary.shown]
    pairs = [(summary.labels[name], _make_grid(summary, name)) for name in summary.shown]
    shown: list[tuple[str, Block]] = [("matrix", make_choice("Measure", matrices))]
    chart = _draw_differences(summary)
    shown += [("intervals", chart)] if chart else []
    shown += [("every pair", make_choice("Measure", pairs))]
    return Content(lead, [make_choice("Show", shown)])


def _make_matrix(summary: Summary, measure: str) -> Grid:
    """Make the matrix of the differences of every two methods, the best first, so that each pair stands there once."""
    found = {(each.first, each.second): each for each in summary.comparisons[measure]}
    compared = {name for pair in found for name in pair}
    names = [name for name in summary.ranked if name in compared]
    columns = [Column("method"), *(Column(name, DIGITS, f"minus {name}", name) for name in names[1:])]
    rows = []
    for i, row in enumerate(names[:-1]):
        cells = [_make_pair(found, row, column) if j >= i else Cell(None, "") for j, column in enumerate(names[1:])]
        rows.append(Row([row, *cells], (row,)))
    label = summary.labels[measure]
    marks = {cell.mark for row in rows for cell in row.cells if isinstance(cell, Cell)} - {""}
    meaning = "No difference is significant: none has " if not marks else f"{' or '.join(sorted(marks))}: significant, "
    return Grid(columns, rows, f"{label}: the difference of every two methods.", _MATRIX_NOTE.format(marks=meaning))


def _make_pair(found: dict[tuple[str, str], Comparison], row: str, column: str) -> Cell:
    """Make the cell of two methods: the mean of the row's method minus that of the column's."""
    each = found[column, row] if (column, row) in found else found[row, column].swap_methods()
    p = format_p(each.adjusted.randomisation)
    title = f"{row} minus {column}: p {p}, 95% interval {format_interval(each.low, each.high)}"
    return Cell(each.difference, format_signed(each.difference), choose_mark(each), title)


def _draw_differences(summary: Summary) -> Chart | None:
    """Draw the difference of each method from the best, with its own interval and the simultaneous one."""
    figures = dict(zip(summary.methods, summary.figures[summary.results.measure], strict=True))
    data = []
    for name in summary.ranked:
        against = figures[name].against
        if against is None or isnan(against.low):
            continue
        joint = find_joint_interval(summary, against)
        alone = Interval(against.low, against.high)
        for (low, high), thickness, opacity, kind in ((joint, 1.5, 1.0, "simultaneous"), (alone, 5, 0.45, "alone")):
            data.append(_make_bar(name, against.difference, (low, high), thickness, opacity, kind))
    if not data:
        return None
    best = next(name for name in summary.ranked if figures[name].against is None)
    caption = (
        f"{summary.decisive} of each method minus that of {best}, with 95% bootstrap intervals. Thick: the interval of "
        "this difference alone. Thin: the simultaneous interval; with 95% confidence all of these hold at once, for "
        "every pair of methods. An interval that contains 0 leaves open which method is better."
    )
    layout = {
        "xaxis": {"title": {"text": f"difference of {summary.decisive}"}, "zerolinewidth": 2},
        "yaxis": {"type": "category", "autorange": "reversed"},
        "showlegend": False,
    }
    return Chart(data, layout, caption, height=_AXES + _ROW * max(len(data) // 2, 3))


def _make_bar(
    name: str, difference: float, ends: tuple[float, float], thickness: float, opacity: float, kind: str
) -> dict[str, object]:
    """Return Plotly's trace of one difference with an interval."""
    low, high = ends
    error = {"type": "data", "symmetric": False, "array": [high - difference], "arrayminus": [difference - low]}
    return {
        "type": "scatter",
        "mode": "markers",
        "x": [difference],
        "y": [name],
        "error_x": {**error, "thickness": thickness, "width": 0},
        "marker": {"size": 9},
        "opacity": opacity,
        "method": name,
        "meta": f"{name}, {kind}",
        "hovertemplate": f"%{{y}}: %{{x:+.4f}} [{low:+.4f}, {high:+.4f}] {kind}<extra></extra>",
    }


def find_joint_interval(summary: Summary, found: Comparison) -> Interval:
    """Return the simultaneous interval of a comparison under the deciding measure."""
    known = summary.joint_intervals
    if (found.first, found.second) in known:
        return known[found.first, found.second]
    low, high = known[found.second, found.first]
    return Interval(-high, -low)


def _make_grid(summary: Summary, measure: str) -> Grid:
    """Make the table of the comparisons of every two methods under a measure."""
    comparisons = summary.comparisons[measure]
    is_decisive = measure == summary.results.measure
    columns = [
        Column("first"),
        Column("second"),
        Column("difference", DIGITS, title="the mean of the second method minus that of the first"),
        Column("95% interval", title="bootstrap interval of the difference"),
        *([Column("simultaneous", title="95% intervals that hold for all pairs at once")] * is_decisive),
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
    rows = [_make_row(found, find_joint_interval(summary, found) if is_decisive else None) for found in comparisons]
    return Grid(columns, rows, caption, COMPARISON_NOTE)


def _make_row(found: Comparison, joint: Interval | None) -> Row:
    """Make the row of a comparison of two methods; ``joint`` is the simultaneous interval, if it is shown."""
    p_values = [
        Cell(p, format_p(p), title=f"{format_p(raw)} before Holm's correction")
        for p, raw in zip(order_p_values(found.adjusted), order_p_values(found.p), strict=True)
    ]
    ends = [Interval(found.low, found.high), *([] if joint is None else [joint])]
    intervals = [Cell(None if isnan(low) else low, format_interval(low, high)) for low, high in ends]
    sign = choose_mark(found)
    title = f"the second method is significantly {'worse' if sign == BELOW else 'better'}" if sign else ""
    difference = Cell(found.difference, format_signed(found.difference), sign, title)
    cells: list[Cell | Value] = [
        found.wins,
        found.ties,
        found.losses,
        *p_values,
        Cell(found.effect, format_signed(found.effect, 2)),
        found.n,
    ]
    return Row([found.first, found.second, difference, *intervals, *cells], (found.first, found.second))


SIGNIFICANCE = ReportSection("Could the differences be chance?", ("queries", "values"), _make_content)
