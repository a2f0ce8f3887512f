"""The sections of a report as a reader sees them: texts, tables and the data of charts; and awkward results make a page."""

from __future__ import annotations

import dataclasses
import datetime
import json
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go
import pytest
from tests.results import handmade, simulated

import rankwright as rw
from rankwright.analysis.results import Results, Table
from rankwright.experiments.tables import trial_tables
from rankwright.report.blocks import Block, Chart, Choice, Duel, Grid, Section, Text
from rankwright.report.page import make_page, write_report
from rankwright.report.sections import SECTIONS
from rankwright.report.sections import duels_section as duels
from rankwright.report.sections.base import make_layout
from rankwright.report.sections.bounds_section import BOUNDS
from rankwright.report.sections.costs_section import COSTS
from rankwright.report.sections.curves import draw_curves
from rankwright.report.sections.data_section import DATA
from rankwright.report.sections.duels_section import DUELS
from rankwright.report.sections.features_section import IMPORTANCE, MOST_FEATURES, MOST_ROWS, WEIGHTS
from rankwright.report.sections.grades_section import GRADES
from rankwright.report.sections.groups import draw_group_means
from rankwright.report.sections.learning_lines import MOST_POINTS
from rankwright.report.sections.learning_section import LEARNING
from rankwright.report.sections.permutation_section import PERMUTATION
from rankwright.report.sections.polishing_section import POLISHING
from rankwright.report.sections.profiles_section import MOST_CHARTS, PROFILES
from rankwright.report.sections.provenance_section import PROVENANCE, compute_fingerprint
from rankwright.report.sections.published_section import (
    PUBLISHED,
    make_fold_table,
    make_published_table,
    match_published,
)
from rankwright.report.sections.queries_section import QUERIES
from rankwright.report.sections.restarts_section import MOST_STARTS, RESTARTS
from rankwright.report.sections.results_section import RESULTS
from rankwright.report.sections.selection_section import MOST_FAILURES, SELECTION
from rankwright.report.sections.significance_section import SIGNIFICANCE
from rankwright.report.sections.steps_section import MOST_PANELS, STEPS
from rankwright.report.sections.tree_weights_section import TREE_WEIGHTS
from rankwright.report.summary import Summary

QUESTIONS = (
    "Which method is best?", "Could the differences be chance?", "Where does it win and lose?", "Which queries are hard?",
    "Which documents are confused?", "What does it cost?", "How did training go?", "Which parameters were best?",
)  # fmt: skip
TWO = {"map": {"a": [0.5, 0.7, 0.2], "b": [0.4, 0.6, 0.6]}}
FOLDS = [1, 1, 2]


def table(names: str, *rows: tuple[object, ...]) -> Table:
    return {name: np.array([row[i] for row in rows]) for i, name in enumerate(names.split())}


def with_tables(**tables: Table) -> Summary:
    return Summary(handmade(TWO, FOLDS, tables=tables))


def with_tables3(**tables: Table) -> Summary:
    """Return the summary of one method on three folds."""
    return Summary(handmade({"map": {"a": [0.5, 0.7, 0.2]}}, [1, 2, 3], tables=tables))


def leaves(block: Block) -> Iterator[Block]:
    if isinstance(block, Choice):
        for _, option in block.options:
            yield from leaves(option)
    else:
        yield block


def blocks_of(section: Section | None, kind: type) -> list:
    assert section is not None
    return [leaf for block in section.blocks for leaf in leaves(block) if isinstance(leaf, kind)]


def check_chart(chart: Chart) -> None:
    """Plotly refuses what it does not know."""
    plain = chart.to_json()
    data = [{key: value for key, value in trace.items() if key != "method"} for trace in plain["data"]]
    go.Figure(data=data, layout=plain["layout"])


def lines(chart: Chart) -> dict[str, tuple[list, list]]:
    return {trace["method"]: (list(trace["x"]), list(trace["y"])) for trace in drawn(chart)}


def drawn(chart: Chart) -> list[Any]:
    """Return the traces of a chart without bands and rings."""
    extra = (trace for trace in chart.data if "fill" in trace or trace.get("meta", "").endswith(", kept"))
    left_out = [id(trace) for trace in extra]
    return [trace for trace in chart.data if id(trace) not in left_out]


def cells(grid: Grid, column: str) -> list:
    i = [c.name for c in grid.columns].index(column)
    return [getattr(row.cells[i], "value", row.cells[i]) for row in grid.rows]


@pytest.fixture(scope="module")
def full() -> Summary:
    return Summary(simulated(4, 60, n_seeds=2))


# Every section


def test_sections_appear_in_order_when_their_tables_are_there(full):
    built = [section for entry in SECTIONS if (section := entry.build(full)) is not None]
    assert [section.title for section in built] == [
        *QUESTIONS, "Feature weights",
    ]  # fmt: skip
    charts = [chart for section in built for chart in blocks_of(section, Chart)]
    assert len(charts) > 15
    for chart in charts:
        check_chart(chart)


def test_methods_that_climb_have_sections_of_their_own():
    summary = Summary(simulated(10, 20, n_folds=2))
    built = [section for entry in SECTIONS if (section := entry.build(summary)) is not None]
    assert [section.title for section in built] == [
        *QUESTIONS, "Feature weights", "Along each weight", "Restarts",
    ]  # fmt: skip
    assert [section.title for section in built if section.part] == ["Feature weights", "Along each weight", "Restarts"]
    for section in built:
        for chart in blocks_of(section, Chart):
            check_chart(chart)


def test_the_check_of_charts_can_fail():
    with pytest.raises(ValueError, match="no_such_thing"):
        check_chart(Chart([{"type": "bar", "no_such_thing": 1}], {}, "wrong"))


def test_panels_name_their_axes_once_and_shorten_long_names():
    layout = make_layout(["bm25 of the title", "a very long name of a feature 7", "3", "4", "5"], "value", "score")
    assert [note["text"] for note in layout["annotations"]] == [
        *("bm25 of the title", "a very lo…eature 7", "feature 3", "feature 4", "feature 5"),
    ]
    assert [name for name, axis in layout.items() if "title" in axis and axis["title"]["text"] == "score"] == ["yaxis3"]
    below = [name for name, axis in layout.items() if "title" in axis and axis["title"]["text"] == "value"]
    assert below == ["xaxis4", "xaxis5"]


def test_a_section_without_its_tables_does_not_appear():
    summary = with_tables(curve=table("method fold seed k value"))  # a table without rows
    titles = [section.title for section in SECTIONS if section.build(summary) is not None]
    assert titles == [*QUESTIONS[:4]]


def one_seed_failed() -> Results:
    """Two seeds of the second method are there on fold 2, one on fold 1."""
    results = simulated(2, 20, n_folds=2, n_seeds=2)
    values = results.tables["values"]
    fold = results.tables["queries"]["fold"][values["query"]]
    gone = (values["method"] == 1) & (values["seed"] == 1) & (fold == 1)
    return with_values(results, {name: column[~gone] for name, column in values.items()})


def one_fold_failed() -> Results:
    results = simulated(3, 20, n_folds=2)
    tables = {}
    for name, rows in results.tables.items():
        if "method" in rows:
            fold = rows["fold"] if "fold" in rows else results.tables["queries"]["fold"][rows["query"]]
            gone = (rows["method"] == 2) & (fold == 2) & (name != "trials")
            rows = {column: values[~gone] for column, values in rows.items()}
        tables[name] = rows
    trials = tables["trials"]
    failed = (trials["method"] == 2) & (trials["fold"] == 2)
    tables["trials"] = {
        **trials,
        "status": np.where(failed, "failed", trials["status"]),
        "valid": np.where(failed, np.nan, trials["valid"]),
        "chosen": trials["chosen"] & ~failed,
        "error": np.where(failed, "MemoryError", trials["error"]),
    }
    return dataclasses.replace(results, tables=tables)


def with_values(results: Results, values: Table) -> Results:
    return dataclasses.replace(results, tables={**results.tables, "values": values})


def no_values() -> Results:
    results = simulated(2, 10, n_folds=2)
    return with_values(results, {name: column[:0] for name, column in results.tables["values"].items()})


AWKWARD = {
    "a climb": lambda: simulated(10, 12, n_folds=1, n_seeds=2),
    "one method": lambda: simulated(1, 12, n_folds=2),
    "one query": lambda: simulated(2, 1, n_folds=1),
    "one fold": lambda: simulated(2, 12, n_folds=1),
    "several seeds": lambda: simulated(2, 12, n_folds=2, n_seeds=3),
    "one measure": lambda: simulated(2, 12, n_folds=2, measures=("map",), measure="map"),
    "skipped queries": lambda: simulated(
        2, 20, n_folds=2, measures=("map(empty=skip)", "p@1"), measure="map(empty=skip)"
    ),
    "a seed failed": one_seed_failed,
    "a fold failed": one_fold_failed,
    "no values": no_values,
}


@pytest.mark.parametrize("make", AWKWARD.values(), ids=AWKWARD)
def test_awkward_results_make_a_page(make, tmp_path):
    results = make()
    path = write_report(results, tmp_path)
    html = path.read_text(encoding="utf-8")
    assert html.rstrip().endswith("</html>")
    for section in make_page(Summary(results)).sections:
        assert section.title in html
        for chart in blocks_of(section, Chart):
            check_chart(chart)


# Results


def test_results_emphasise_the_best_and_mark_the_worse():
    low, high = np.linspace(0.1, 0.3, 10), np.linspace(0.2, 0.5, 10)
    grid = blocks_of(RESULTS.build(Summary(handmade({"map": {"low": low, "high": high}}, [1] * 10))), Grid)[0]
    assert [row.cells[0] for row in grid.rows] == ["high", "low"]  # the best on top, as in the chart
    second, first = (row.cells[1] for row in grid.rows)
    assert (first.value, first.mark, first.emphasis) == (pytest.approx(low.mean()), "▼", "")
    assert first.title == f"rank 2 of 2; {low.mean() - high.mean():.4f} against high, p = {2 / 2**10:.3f}"
    assert (second.value, second.mark, second.emphasis) == (pytest.approx(high.mean()), "", "best")


def test_results_say_which_folds_are_missing():
    section = RESULTS.build(Summary(handmade({"map": {"a": [0.5, 0.4], "b": [0.1, None]}}, [1, 2])))
    [warning] = blocks_of(section, Text)
    assert warning.level == "warning"
    assert warning.text.startswith("There is no map of b on fold 2.")
    [chart] = blocks_of(section, Chart)
    assert [trace["method"] for trace in chart.data] == ["a"]


def test_results_say_that_a_measure_skips_a_fold():
    [warning] = blocks_of(RESULTS.build(Summary(handmade({"map": {"a": [0.5, np.nan]}}, [1, 2]))), Text)
    assert warning.text.startswith("There is no map of any method on fold 2.")


def test_the_chart_of_results_has_the_best_on_top():
    [chart] = blocks_of(RESULTS.build(with_tables()), Chart)
    assert [trace["y"] for trace in chart.data] == [["b"], ["a"]]
    assert [trace["x"][0] for trace in chart.data] == pytest.approx([0.55, 0.4])


# Significance


def test_significance_has_a_grid_for_at_most_six_measures(full):
    section = SIGNIFICANCE.build(full)
    [show] = section.blocks
    shown = dict(show.options)
    assert list(shown) == ["matrix", "intervals", "every pair"]
    for choice in (shown["matrix"], shown["every pair"]):
        assert [name for name, _ in choice.options] == ["ndcg@10", "ndcg@1", "ndcg@3", "ndcg@5", "ndcg", "map"]
    grid = shown["every pair"].options[0][1]
    assert len(grid.rows) == 4 * 3 / 2
    assert cells(grid, "queries") == [60] * 6
    assert "Holm" in section.lead


def test_the_matrix_has_every_pair_once_the_best_first(full):
    shown = dict(SIGNIFICANCE.build(full).blocks[0].options)
    matrix, pairs = (shown[name].options[0][1] for name in ("matrix", "every pair"))
    assert [row.cells[0] for row in matrix.rows] == [*full.ranked[:-1]]
    assert [column.method for column in matrix.columns[1:]] == [*full.ranked[1:]]
    found = {
        (row.cells[0], column.method): cell
        for row in matrix.rows
        for column, cell in zip(matrix.columns[1:], row.cells[1:], strict=True)
        if cell.value is not None
    }
    assert len(found) == len(pairs.rows) == 6
    for row in pairs.rows:
        first, second, difference = row.cells[:3]
        is_turned = (second, first) in found
        cell = found[(second, first) if is_turned else (first, second)]
        assert cell.value == pytest.approx(difference.value if is_turned else -difference.value)
        assert bool(cell.mark) == bool(difference.mark)
        assert cell.value >= 0  # the row is the better one
        assert not cell.mark or (cell.mark, difference.mark) == ("▲", "▲" if is_turned else "▼")


def test_simultaneous_intervals_are_wider_and_hold_every_difference(full):
    shown = dict(SIGNIFICANCE.build(full).blocks[0].options)
    chart = shown["intervals"]
    check_chart(chart)
    assert [trace["method"] for trace in chart.data] == [name for name in full.ranked[1:] for _ in range(2)]
    for joint, alone in zip(chart.data[::2], chart.data[1::2], strict=True):
        for end in ("array", "arrayminus"):
            assert joint["error_x"][end][0] > 0.9 * alone["error_x"][end][0]
    assert sum(t["error_x"]["array"][0] for t in chart.data[::2]) > sum(
        t["error_x"]["array"][0] for t in chart.data[1::2]
    )
    grid = shown["every pair"].options[0][1]
    for found in full.comparisons["ndcg@10"]:
        low, high = full.joint_intervals[found.first, found.second]
        assert low < found.difference < high
        assert any(row.cells[4].text == f"[{low:.4f}, {high:.4f}]" for row in grid.rows)
    other = shown["every pair"].options[1][1]
    assert "simultaneous" not in [column.name for column in other.columns]


def test_one_method_has_no_significance():
    assert SIGNIFICANCE.build(Summary(handmade({"map": {"a": [0.5, 0.4]}}, [1, 2]))) is None


# Curves


def test_curves_average_seeds_then_folds():
    rows = [
        (0, 1, 0, 1, 0.2),
        (0, 1, 1, 1, 0.4),
        (0, 2, 0, 1, 0.5),
        (0, 1, 0, 2, 0.1),
        (0, 1, 1, 2, 0.1),
        (0, 2, 0, 2, 0.3),
    ]
    rows += [(1, 1, 0, 1, 0.9), (1, 1, 0, 2, 0.9)]  # nothing on fold 2
    chart = draw_curves(with_tables(curve=table("method fold seed k value", *rows)))
    assert lines(chart).keys() == {"a"}
    x, y = lines(chart)["a"]
    assert x == [1, 2]
    assert y == pytest.approx([((0.2 + 0.4) / 2 + 0.5) / 2, (0.1 + 0.3) / 2])


def test_curves_name_what_was_measured(full):
    chart = draw_curves(full)
    assert chart.layout["yaxis"]["title"]["text"] == "ndcg@k(dialect=letor4)"


# Learning curves


def mean_curve(*rows: tuple[object, ...]) -> tuple[list, list]:
    """Return the curve over folds of one method's training measure: rounds and values."""
    section = LEARNING.build(with_tables(history=table("method fold seed round train", *rows)))
    return lines(dict(section.blocks[0].options)["mean over folds"])["a"]


def test_a_run_that_stopped_keeps_its_last_value():
    rounds, values = mean_curve(
        (0, 1, 0, 1, 1.0), (0, 1, 0, 2, 2.0), (0, 1, 0, 3, 3.0), (0, 2, 0, 1, 3.0), (0, 2, 0, 2, 4.0)
    )
    assert rounds == [1, 2, 3]
    assert values == [(1 + 3) / 2, (2 + 4) / 2, (3 + 4) / 2]


def test_rounds_without_a_number_are_left_out():
    rows = [(0, fold, 0, i, np.nan if i == 1 else float(i)) for fold in (1, 2) for i in (1, 2, 3)]
    assert mean_curve(*rows) == ([2, 3], [2.0, 3.0])


@pytest.mark.parametrize("n", [2, MOST_POINTS, MOST_POINTS + 1, 10_000])
def test_lines_are_thinned_evenly_with_both_ends(n):
    rounds, values = mean_curve(*((0, fold, 0, i, i / n) for fold in (1, 2) for i in range(1, n + 1)))
    assert len(rounds) == min(n, MOST_POINTS)
    assert (rounds[0], rounds[-1]) == (1, n)
    assert np.ptp(np.diff(rounds)) <= 1
    assert values == pytest.approx(np.array(rounds) / n)


def test_learning_curves_offer_folds_and_leave_out_what_learns_in_one_round():
    rows = [(0, fold, 0, k, 0.1 * k, np.nan, fold + k) for fold in (1, 2) for k in (1, 2)]
    rows += [(1, fold, 0, 1, 0.5, 0.5, 0.5) for fold in (1, 2)]
    [choice] = LEARNING.build(with_tables(history=table("method fold seed round train valid loss", *rows))).blocks
    assert [name for name, _ in choice.options] == ["measure", "loss"]
    for _, by_fold in choice.options:
        assert [name for name, _ in by_fold.options] == ["mean over folds", "fold 1", "fold 2"]
        assert all(chart.mentioned == {"a"} for _, chart in by_fold.options)
    loss = dict(choice.options[1][1].options)
    assert lines(loss["mean over folds"])["a"] == ([1, 2], [2.5, 3.5])
    assert lines(loss["fold 2"])["a"] == ([1, 2], [3.0, 4.0])


def test_learning_curves_say_what_each_method_was_judged_by():
    names = "method fold seed round train measure"
    same = [(m, fold, 0, k, 0.1 * k, "ndcg@5") for m in (0, 1) for fold in (1, 2) for k in (1, 2)]
    [by_fold] = LEARNING.build(with_tables(history=table(names, *same))).blocks
    chart = dict(by_fold.options)["mean over folds"]
    assert chart.caption.startswith("ndcg@5 on training queries by round")
    assert chart.layout["yaxis"]["title"]["text"] == "ndcg@5"
    own = [(m, fold, 0, k, 0.1 * k, ("map", "ndcg@5")[m]) for m in (0, 1) for fold in (1, 2) for k in (1, 2)]
    [by_fold] = LEARNING.build(with_tables(history=table(names, *own))).blocks
    chart = dict(by_fold.options)["fold 1"]
    assert chart.layout["yaxis"]["title"]["text"] == "own measure"
    assert chart.caption.startswith("Each method's own measure on training queries by round")
    assert "(a: map, b: ndcg@5)" in chart.caption


CLIMB = "method fold seed restart round feature weight step loss train valid"


def climb(method: int = 0, fold: int = 1, kept: int = 2) -> list[tuple[object, ...]]:
    """Three restarts, of which one has all its records: its best point comes before its last."""
    records = []
    for restart in (1, 2, 3):
        steps = [(0, 0.2, 0.1), (1, 0.3, 0.6), (1, 0.4, 0.7), (2, 0.45, 0.65)] if restart == kept else []
        steps = steps or [(7, 0.5 + restart / 100, 0.5 + restart / 50), (9, 0.6, 0.3)]
        records += [(method, fold, 0, restart, r, 3, 1.0, 0.1, 1 - t, t, v) for r, t, v in steps]
    return records


def test_learning_curves_are_of_the_restart_that_was_kept():
    rows = [*climb(), *climb(fold=2, kept=1)]
    [choice] = LEARNING.build(with_tables(history=table(CLIMB, *rows))).blocks
    assert [name for name, _ in choice.options] == ["measure", "loss"]  # which feature was next is no quantity
    for where, chart in choice.options[0][1].options:
        train, valid = drawn(chart)
        assert (list(train["x"]), list(train["y"])) == ([0, 1, 2, 3], [0.2, 0.3, 0.4, 0.45]), where
        assert (list(valid["x"]), list(valid["y"])) == ([0, 1, 2, 3], [0.1, 0.6, 0.7, 0.65]), where
        assert "by accepted step" in chart.caption
        assert chart.layout["xaxis"]["title"]["text"] == "step (training)"


def test_rounds_and_steps_share_an_axis():
    rows = [(*row, "map") for fold in (1, 2) for row in climb(fold=fold)]
    rows += [(1, fold, 0, np.nan, k, 3, np.nan, np.nan, 1.0, 0.1 * k, 0.1, "map") for fold in (1, 2) for k in (1, 2)]
    [choice] = LEARNING.build(with_tables(history=table(f"{CLIMB} measure", *rows))).blocks
    chart = dict(choice.options[0][1].options)["fold 1"]
    assert [list(trace["x"]) for trace in drawn(chart)] == [[0, 1, 2, 3], [1, 2]] * 2
    assert "by round or accepted step" in chart.caption


def test_without_validation_the_best_in_training_is_kept():
    rows = [row[:-1] for row in climb()]
    section = LEARNING.build(with_tables(history=table(CLIMB.removesuffix(" valid"), *rows)))
    chart, _ = blocks_of(section, Chart)
    assert list(chart.data[0]["y"]) == [0.51, 0.6]  # of the first restart: its last is the highest


def test_long_climbs_make_a_small_page():
    rows = [(0, fold, 0, 1, k // 7, 3, 1.0, 0.1, 0.5, 0.5 + k / 1e5, 0.5) for fold in (1, 2) for k in range(10_000)]
    section = LEARNING.build(with_tables(history=table(CLIMB, *rows)))
    charts = blocks_of(section, Chart)
    assert sum(len(json.dumps(chart.to_json())) for chart in charts) < 100_000
    assert {len(trace["x"]) for chart in charts for trace in drawn(chart)} == {MOST_POINTS}
    assert all(trace["x"][-1] == 9_999 for chart in charts for trace in drawn(chart))


def test_learning_curves_have_readable_names_and_gaps_a_log_axis():
    rows = [(m, fold, 0, k, 0.1 / k, 10.0**-k, 3.0 + k) for m in (0, 1) for fold in (1, 2) for k in (1, 2)]
    section = LEARNING.build(with_tables(history=table("method fold seed round loss gap imperfect", *rows)))
    options = dict(section.blocks[0].options)
    assert list(options) == ["loss", "duality gap", "imperfect working set"]
    loss, gap, imperfect = (dict(block.options)["fold 1"] for block in options.values())
    assert gap.layout["yaxis"]["type"] == "log"
    assert "type" not in imperfect.layout["yaxis"]
    assert imperfect.layout["yaxis"]["title"]["text"] == "rankings of a query"
    assert imperfect.caption.startswith("Rankings in the imperfect working set of a query, in the mean, by round")
    assert "compare the shapes" in loss.caption
    assert "compare the shapes" not in imperfect.caption
    for chart in (loss, gap, imperfect):
        check_chart(chart)


def test_what_never_changes_is_no_quantity_of_learning_curves():
    rows = [(0, fold, 0, k, 0.1 * k, 7.0) for fold in (1, 2) for k in (1, 2)]
    section = LEARNING.build(with_tables(history=table("method fold seed round loss planes", *rows)))
    assert [block.label for block in section.blocks] == ["Fold"]  # one quantity: the loss


def test_the_kept_round_is_marked_and_the_mean_has_a_band():
    rows = [
        (0, fold, 0, k, k / 40, value)
        for fold, best in ((1, 10), (2, 20), (3, 30))
        for k in range(1, 41)
        for value in [0.1 * fold + 0.5 - 0.01 * abs(k - best) - 0.4 * (k < 3)]
    ]
    section = LEARNING.build(with_tables3(history=table("method fold seed round train valid", *rows)))
    charts = dict(section.blocks[0].options)
    mean, single = charts["mean over folds"], charts["fold 1"]
    rings = [trace for trace in mean.data if trace.get("meta") == "a, kept"]
    assert [ring["x"] for ring in rings] == [[20.0], [20.0]]  # the median, in both panels
    [train, valid] = [trace for trace in single.data if trace.get("meta") == "a, kept"]
    assert (train["x"], valid["x"]) == ([10.0], [10.0])
    assert (train["y"], valid["y"]) == ([pytest.approx(10 / 40)], [pytest.approx(0.6)])
    bands = [trace for trace in mean.data if "fill" in trace]
    assert len(bands) == 2
    assert not any("fill" in trace for trace in single.data)
    centred = np.array([[r[5] for r in rows if r[1] == fold] for fold in (1, 2, 3)])
    error = (centred - centred.mean(axis=1, keepdims=True)).std(axis=0, ddof=1) / np.sqrt(3)
    np.testing.assert_allclose(bands[1]["y"][:40], centred.mean(axis=0) + error)  # upper line, then the lower backwards
    np.testing.assert_allclose(bands[1]["y"][40:][::-1], centred.mean(axis=0) - error)
    low, high = mean.layout["yaxis"]["range"]
    assert low < 0.11  # what training reaches after the first tenth
    assert high > 1.0
    assert single.layout["yaxis"]["range"][0] > 1 / 40  # where training begins
    assert "below the chart" in single.caption
    for chart in charts.values():
        check_chart(chart)


def test_learning_curves_of_stumps_have_readable_names_and_no_curve_of_a_feature():
    names = "method fold seed round feature threshold missing alpha r z gain scanned tried"
    rows = [
        (0, fold, 0, k, 7, 0.5, 1.0, k * 0.1, (-1) ** k * 0.2, 0.9 / k, 1e-3 / k, 5.0 - k, 9.0 - k)
        for fold in (1, 2)
        for k in (1, 2)
    ]
    options = dict(LEARNING.build(with_tables(history=table(names, *rows))).blocks[0].options)
    assert list(options) == [
        "weight of the weak ranker", "edge r of the stump", "normaliser Z", "fall of the loss found by the search",
        "features whose pairs were gone through", "stumps tried pair by pair",
    ]  # fmt: skip
    edge = dict(options["edge r of the stump"].options)["fold 1"]
    assert lines(edge)["a"] == ([1, 2], [0.2, 0.2])  # its sign tells which way a feature counts: no mean of that
    assert edge.caption.startswith("a: Edge of the stump (the size of r")
    gain = dict(options["fall of the loss found by the search"].options)["fold 2"]
    assert gain.layout["yaxis"]["type"] == "log"
    for chart in blocks_of(LEARNING.build(with_tables(history=table(names, *rows))), Chart):
        check_chart(chart)


# Bounds

BOUND = "method fold seed bound measure own loss value least factor exact"


def bound_rows(method: int = 0, folds: tuple[int, ...] = (1, 2)) -> list[tuple[object, ...]]:
    rows = []
    for fold in folds:
        loss = 0.3 + 0.1 * fold
        rows += [
            (method, fold, 0, "type one, exponential", "map", False, loss, 0.7, np.nan, np.nan, 1.0),
            (method, fold, 0, "type two, margin", "map", True, loss, 0.9, 0.8, 10.0**fold, 1.0),
            (method, fold, 0, "type two, hinge, sum", "ndcg", False, 0.1, 2.0, np.nan, np.nan, 0.5),
        ]
    return rows


def test_bounds_beside_the_loss():
    section = BOUNDS.build(with_tables(bounds=table(BOUND, *bound_rows(), *bound_rows(1, (1,)))))
    [chart], [grid] = blocks_of(section, Chart), blocks_of(section, Grid)
    check_chart(chart)
    assert chart.mentioned == {"a"}  # the other has not finished
    marks = {trace["name"]: trace["x"][0] for trace in chart.data if "method" in trace}
    assert marks == {
        "loss": pytest.approx(0.45),
        "type one, exponential": pytest.approx(0.7),
        "objective": pytest.approx(0.9),
        "type two, margin, at its best scale": pytest.approx(0.8),
    }
    assert {trace["name"] for trace in chart.data if "method" not in trace} == marks.keys()
    assert len(grid.rows) == 6
    assert cells(grid, "gap") == pytest.approx([0.25, 0.45, 1.9, 0.3, 0.5, 1.9])
    assert cells(grid, "minimised") == ["", "yes", ""] * 2
    assert cells(grid, "best gap")[1] == pytest.approx(0.35)
    assert cells(grid, "loss")[:2] == pytest.approx([0.45, 0.45])
    assert cells(grid, "best scale")[:2] == pytest.approx([np.nan, 0.8], nan_ok=True)
    assert cells(grid, "factor")[1] == pytest.approx(55.0)
    assert cells(grid, "of")[:3] == ["map", "map", "ndcg"]
    assert cells(grid, "exact")[:3] == [1.0, 1.0, 0.5]


def test_bounds_of_very_different_size_have_a_log_axis():
    rows = [list(row) for row in bound_rows()]
    assert "type" not in blocks_of(BOUNDS.build(with_tables(bounds=table(BOUND, *rows))), Chart)[0].layout["xaxis"]
    for row in rows:
        row[7] *= 10
    assert blocks_of(BOUNDS.build(with_tables(bounds=table(BOUND, *rows))), Chart)[0].layout["xaxis"]["type"] == "log"


# Restarts


def test_restarts_are_seen_at_their_best_points():
    rows = [*climb(), *climb(fold=2, kept=1)]
    section = RESTARTS.build(with_tables(history=table(CLIMB, *rows, *climb(1)[:4])))
    together, first, second, gains = blocks_of(section, Chart)
    np.testing.assert_allclose(together.data[0]["x"][:3], np.array([0.51, 0.4, 0.53]) - np.mean([0.51, 0.4, 0.53]))
    assert (list(first.data[0]["x"]), list(first.data[0]["y"])) == ([0.51, 0.4, 0.53], [0.52, 0.7, 0.56])
    assert first.data[0]["marker"]["line"]["width"].tolist() == [0, 2, 0]
    assert first.data[0]["customdata"].tolist() == [[1, 1], [2, 1], [3, 1]]
    assert (first.mentioned, second.mentioned) == ({"a", "b"}, {"a"})
    assert lines(gains)["a"][1] == pytest.approx([(0.52 + 0.7) / 2, 0.7, 0.7])


def test_restarts_in_figures():
    section = RESTARTS.build(with_tables(history=table(CLIMB, *climb(), *climb(fold=2, kept=1))))
    [grid] = blocks_of(section, Grid)
    train, valid = [[0.51, 0.4, 0.53], [0.4, 0.52, 0.53]], [[0.52, 0.7, 0.56], [0.7, 0.54, 0.56]]
    centred = [(np.array(v) - np.mean(v, axis=1)[:, None]).ravel() for v in (train, valid)]
    expected = [
        3, np.mean(train), np.std(train, axis=1).mean(), 0.53, 0.4, np.mean(valid), np.std(valid, axis=1).mean(), 0.7,
        ((0.7 - 0.52) + 0.0) / 2, np.corrcoef(*centred)[0, 1],
    ]  # fmt: skip
    assert list(grid.rows[0].cells) == ["a", *(pytest.approx(value) for value in expected)]


def test_restarts_without_differences_agree_in_nothing():
    rows = [(0, fold, 0, restart, 1, 0.5, 0.2 + 0.2 * restart) for fold in (1, 2) for restart in (1, 2)]
    section = RESTARTS.build(with_tables(history=table("method fold seed restart round train valid", *rows)))
    assert np.isnan(cells(blocks_of(section, Grid)[0], "agreement")).all()
    assert lines(blocks_of(section, Chart)[-1])["a"][1] == pytest.approx([0.4, 0.6])


def test_one_start_is_no_section():
    rows = [row for row in climb() if row[3] == 2]
    assert RESTARTS.build(with_tables(history=table(CLIMB, *rows))) is None
    assert RESTARTS.build(with_tables(history=table("method fold seed round train", (0, 1, 0, 1, 0.5)))) is None
    without = [row[:-1] for row in climb()]
    assert RESTARTS.build(with_tables(history=table(CLIMB.removesuffix(" valid"), *without))) is None


def test_of_very_many_starts_some_are_shown_and_the_kept_among_them():
    rows = [(0, 1, 0, i, 1, 0, 0.0, 0.0, 0.5, 0.5, 0.9 if i == 777 else 0.5) for i in range(1, 2001)]
    chart, _ = blocks_of(RESTARTS.build(with_tables(history=table(CLIMB, *rows))), Chart)
    assert len(chart.data[0]["x"]) == MOST_STARTS + 1
    assert chart.data[0]["y"].max() == 0.9


# Published figures


def test_published_figures_beside_ours():
    rows = [
        ("a", "map", 0.5, 0.4, "P, table 1", "because"),  # ours: ((0.5 + 0.7) / 2 + 0.2) / 2 = 0.4
        ("b", "map", 0.555, np.nan, "P", "not shown"),  # ours: ((0.4 + 0.6) / 2 + 0.6) / 2 = 0.55
        ("c", "map", 0.3, np.nan, "Q", ""),
        ("a", "ndcg@7", 0.3, np.nan, "Q", ""),
    ]
    summary = with_tables(published=table("method measure value lowest source note", *rows))
    figures = match_published(summary)
    assert [figure.ours for figure in figures] == pytest.approx([0.4, 0.55, np.nan, np.nan], nan_ok=True)
    assert [figure.far for figure in figures] == [True, False, False, False]
    assert [figure.reached for figure in figures] == [True, True, True, True]
    assert not dataclasses.replace(figures[0], lowest=0.41).reached
    [grid] = blocks_of(PUBLISHED.build(summary), Grid)
    assert cells(grid, "difference")[:2] == pytest.approx([-0.1, -0.005])
    assert cells(grid, "ours")[2:] == [None, None]
    [note] = blocks_of(PUBLISHED.build(summary), Text)
    assert note.text == "a, map (-0.1000): because"
    assert [entry.text for entry in make_published_table(summary).rows[0]][2:5] == ["0.5000", "0.4000", "-0.1000"]
    assert [entry.text for entry in make_published_table(summary).rows[2]][2:6] == ["0.3000", "", "", ""]


def test_published_figures_of_folds_beside_ours():
    rows = [
        ("a", "map", 0.5, np.nan, "P", "", "[0.55, 0.45]"),  # ours: (0.5 + 0.7) / 2 and 0.2
        ("b", "map", 0.5, np.nan, "P", "", "[]"),
        ("c", "map", 0.5, np.nan, "P", "", "[0.1, 0.2]"),  # was not run
    ]
    summary = with_tables(published=table("method measure value lowest source note by_fold", *rows))
    found = make_fold_table(summary)
    assert found.header == ["method", "measure", "whose", "fold 1", "fold 2"]
    assert [[entry.text for entry in row] for row in found.rows] == [
        ["a", "map", "published", "0.5500", "0.4500"],
        ["a", "map", "ours", "0.6000", "0.2000"],
    ]
    grid = blocks_of(PUBLISHED.build(summary), Grid)[1]
    assert cells(grid, "fold 2") == pytest.approx([0.45, 0.2])


# Pairs of grades


def test_accuracy_counts_ties_half_and_pools_the_folds():
    rows = [(0, 1, 0, 1, 0, 6, 2, 10), (0, 2, 0, 1, 0, 1, 0, 2), (0, 2, 0, 2, 0, 3, 0, 4), (0, 2, 0, 2, 1, 0, 1, 1)]
    [chart] = blocks_of(
        GRADES.build(with_tables(pairs=table("method fold seed high low right tied total", *rows))), Chart
    )
    assert lines(chart) == {"a": (["2 over 0", "2 over 1", "1 over 0"], [3 / 4, 0.5 / 1, (6 + 2 / 2 + 1) / 12])}
    assert "2 over 0 are a document of grade 2 and one of grade 0" in chart.caption
    assert chart.layout["yaxis"]["range"] == [0.0, 1.0]  # bars begin at nothing


def test_other_grades_are_named_by_number():
    rows = [(0, 1, 0, 3, 0, 1, 0, 2), (0, 2, 0, 1, 0, 1, 0, 2), (0, 2, 0, 3, 1, 0, 0, 0)]
    [chart] = blocks_of(
        GRADES.build(with_tables(pairs=table("method fold seed high low right tied total", *rows))), Chart
    )
    assert lines(chart)["a"] == (["3 over 0", "1 over 0"], [0.5, 0.5])


# Query groups


def with_pairs(n_pairs: Sequence[int], values: Sequence[float] | None = None, **options: Any) -> Chart:
    """Return the chart of means by group for queries with so many pairs of grades."""
    n = len(n_pairs)
    made = np.linspace(0.1, 0.9, n) if values is None else values
    results = handmade({"map": {"a": list(made)}}, options.pop("folds", [1] * n), **options)
    queries = {**results.tables["queries"], "n_pairs": np.array(n_pairs)}
    [(_, chart)] = draw_group_means(
        Summary(dataclasses.replace(results, tables={**results.tables, "queries": queries}))
    )
    return chart


@pytest.mark.parametrize(
    ("n_pairs", "names", "sizes"),
    [
        ([0, 1, 2, 3], ["0-1", "1-2", "2-3", "3-4"], [1, 1, 1, 1]),
        (
            [0, 999, 1000, 7999],
            ["0-1k", "1k-2k", "2k-3k", "3k-4k", "4k-5k", "5k-6k", "6k-7k", "7k-8k"],
            [2, 1, 0, 0, 0, 0, 0, 1],
        ),
        ([*range(99), 10_000], ["0-20", "20-40", "40-60", "60-80", "80-100", "100+"], [20, 20, 20, 20, 19, 1]),
    ],
)
def test_groups_have_round_bounds(n_pairs, names, sizes):
    shown = [f"{name} ({size} {'query' if size == 1 else 'queries'})" for name, size in zip(names, sizes, strict=True)]
    assert list(with_pairs(n_pairs).data[0]["x"]) == shown


@pytest.mark.parametrize("largest", [3, 17, 120, 999, 54_321, 2_000_000])
def test_groups_are_few_and_not_too_few(largest):
    chart = with_pairs(np.linspace(0, largest, 500).astype(int).tolist())
    assert 3 <= len(chart.data[0]["x"]) <= 9


def test_the_mean_of_a_group_leaves_out_skipped_queries():
    chart = with_pairs([0, 0, 2, 2, 2], [0.2, 0.4, np.nan, 0.5, 1.0])
    names, means = lines(chart)["a"]
    assert names == ["0-1 (2 queries)", "1-2 (0 queries)", "2-3 (3 queries)"]
    assert means == pytest.approx([(0.2 + 0.4) / 2, np.nan, (0.5 + 1.0) / 2], nan_ok=True)


def test_queries_count_in_a_group_as_in_the_means():
    chart = with_pairs([0, 0, 0, 1], [0.2, 0.4, 0.8, 0.5], folds=[1, 1, 2, 2], weight=[3.0, 1.0, 5.0, 1.0])
    share = np.array([3 / 4, 1 / 4, 5 / 6])  # of the weight of its fold
    assert lines(chart)["a"][1][0] == pytest.approx(share @ [0.2, 0.4, 0.8] / share.sum())


def test_query_groups_show_the_deciding_measure_and_map(full):
    assert [name for name, _ in draw_group_means(full)] == ["ndcg@10 by pairs", "map by pairs"]
    choice = QUERIES.build(full).blocks[0]
    assert [name for name, _ in choice.options] == ["spread over queries", "ndcg@10 by pairs", "map by pairs"]


def test_one_group_is_no_chart():
    results = handmade(TWO, FOLDS)
    queries = {**results.tables["queries"], "n_pairs": np.full(3, 7)}
    assert draw_group_means(Summary(dataclasses.replace(results, tables={**results.tables, "queries": queries}))) == []


def test_the_spread_over_queries_is_of_quantiles():
    values = {"low": np.linspace(0, 0.5, 101), "high": np.linspace(0, 1, 101)}
    chart = blocks_of(QUERIES.build(Summary(handmade({"map": values}, [1] * 101))), Chart)[0]
    check_chart(chart)
    best, worst = chart.data
    assert (best["method"], worst["method"]) == ("high", "low")
    assert [best[name][0] for name in ("lowerfence", "q1", "median", "q3", "upperfence", "mean")] == pytest.approx(
        [0.05, 0.25, 0.5, 0.75, 0.95, 0.5]
    )


def with_pair_counts(results, n_pairs):
    """Return the results with other numbers of pairs of documents of different grades."""
    queries = {**results.tables["queries"], "n_pairs": np.array(n_pairs)}
    return dataclasses.replace(results, tables={**results.tables, "queries": queries})


def test_hard_queries_are_hard_for_the_best_method_of_each():
    values = {"a": [0.0, 0.9, 0.1, 0.0, np.nan, 0.4, 0.0], "b": [0.0, 0.0, 0.3, 0.2, np.nan, 0.4, 0.0]}
    results = with_pair_counts(
        handmade({"map": values}, [1] * 7), [5, 5, 5, 5, 5, 5, 0]
    )  # nothing can be won on the last
    [grid] = blocks_of(QUERIES.build(Summary(results)), Grid)
    assert cells(grid, "query") == ["q0", "q3", "q2", "q5", "q1"]
    assert cells(grid, "best") == [0.0, 0.2, 0.3, 0.4, 0.9]
    assert cells(grid, "mean") == pytest.approx([0.0, 0.1, 0.2, 0.4, 0.45])
    assert cells(grid, "best methods") == ["none", "b", "b", "all", "a"]
    assert "On 1 of the 5 queries with documents of different grades every method has map 0." in grid.note
    assert grid.caption.startswith("The 5 queries")


def test_hard_queries_that_are_equal_are_counted():
    values = {"a": [0.0] * 9 + [0.5], "b": [0.0] * 9 + [0.4]}
    [grid] = blocks_of(QUERIES.build(Summary(with_pair_counts(handmade({"map": values}, [1] * 10), [5] * 10))), Grid)
    assert len(grid.rows) == 6
    assert grid.caption.startswith("6 of the 9 queries that are hardest")


def test_queries_of_one_grade_are_counted_once_at_the_top():
    results = handmade(TWO, [1, 1, 1])
    assert "the same grade" not in RESULTS.build(Summary(with_pair_counts(results, [5, 1, 2]))).lead
    lead = RESULTS.build(Summary(with_pair_counts(results, [5, 0, 0]))).lead
    assert "On 2 of the 3 test queries all documents have the same grade" in lead


def test_the_one_other_method_of_a_significant_difference_is_named():
    rng = np.random.default_rng(0)
    a = rng.random(60)
    values = {"best": a, "near": a + rng.normal(0, 1e-3, 60) - 1e-5, "far": a - rng.uniform(0.1, 0.3, 60)}
    lead = RESULTS.build(Summary(handmade({"map": values}, [1] * 60))).lead
    assert "is not significant; that from far is." in lead


def test_one_method_has_no_queries_hard_for_all():
    assert blocks_of(QUERIES.build(Summary(handmade({"map": {"a": [0.5, 0.4]}}, [1, 2]))), Grid) == []


# Wins and losses


def ranks_of(*rows: tuple[object, ...], n_docs: int) -> list[list[int]]:
    """Return the ranks of the first query's documents by method, as its page shows them."""
    documents = table("query docid grade", *((0, f"d{i}", i % 2) for i in range(n_docs)))
    scores = table("method fold seed document score", *rows)
    return [list(each) for each in duel_of(with_tables(documents=documents, scores=scores)).queries[0].documents.ranks]


def test_ranks_are_by_score_and_ties_stay_in_order():
    rows = [(0, 1, 0, i, score) for i, score in enumerate([0.1, 0.9, 0.9, 0.5])]
    assert ranks_of(*rows, n_docs=4) == [[4, 1, 2, 3], [0, 0, 0, 0]]


def test_the_first_seed_there_is_ranks():
    rows = [(0, 1, 1, 0, 0.1), (0, 1, 0, 0, 0.7), (0, 1, 1, 1, 0.2), (1, 1, 5, 0, 0.3), (1, 1, 5, 1, 0.4)]
    assert ranks_of(*rows, n_docs=2) == [[1, 2], [2, 1]]


def test_queries_on_which_methods_differ_most_keep_their_documents(monkeypatch):
    values = {"a": [0.1, 0.5, np.nan, 0.0, 0.3], "b": [0.2, 0.5, np.nan, 0.9, np.nan]}
    tables = {
        "documents": table("query docid grade", *((i, f"d{i}", 1) for i in range(5))),
        "scores": table("method fold seed document score", *((m, 1, 0, i, 0.5) for m in (0, 1) for i in range(5))),
    }
    summary = Summary(handmade({"map": values}, [1] * 5, tables=tables))
    size = len(json.dumps(duel_of(summary).queries[0].documents.to_json(), separators=(",", ":")))
    seen = []
    for budget in range(size, 8 * size, size // 2):
        monkeypatch.setattr(duels, "DOCUMENT_BYTES", budget)
        kept = {i for i, query in enumerate(duel_of(summary).queries) if query.documents is not None}
        seen += [kept] if kept and kept not in seen else []
    assert seen == [{3}, {3, 0}, {3, 0, 1}, {3, 0, 1, 4}, {3, 0, 1, 4, 2}]


def duel_of(summary: Summary) -> Duel:
    [duel] = blocks_of(DUELS.build(summary), Duel)
    return duel


def test_the_duel_has_values_and_documents(full):
    duel = duel_of(full)
    assert duel.measures == full.measures
    np.testing.assert_array_equal(duel.values[0], full.results.values("ndcg@10"))
    documents, scores = full.table("documents"), full.table("scores")
    for row, query in enumerate(duel.queries):
        own = np.flatnonzero(documents["query"] == row)
        assert query.documents.ids == documents["docid"][own].tolist()
        given = scores["score"][(scores["method"] == 2) & (scores["seed"] == 0) & np.isin(scores["document"], own)]
        by_rank = np.argsort(-given, kind="stable")
        assert query.documents.ranks[2][by_rank].tolist() == list(range(1, len(own) + 1))


def test_documents_stay_within_their_budget(full, monkeypatch):
    monkeypatch.setattr(duels, "DOCUMENT_BYTES", 6_000)
    duel = duel_of(full)
    kept = [row for row, query in enumerate(duel.queries) if query.documents is not None]
    size = sum(len(json.dumps(duel.queries[row].documents.to_json(), separators=(",", ":"))) for row in kept)
    assert 3_000 < size < 9_000
    spread = np.ptp(full.results.values(), axis=0)
    left = [row for row in range(60) if row not in kept]
    assert spread[kept].min() >= spread[left].max()
    assert f"the {len(kept)} queries (of 60)" in duel.without_documents


def test_a_duel_starts_with_the_best_two():
    values = {"map": {"a": [0.5, 0.7], "b": [0.1, 0.1], "c": [0.6, 0.7]}}
    assert duel_of(Summary(handmade(values, [1, 1]))).start == ("a", "c")


def test_the_verdict_says_what_can_be_told():
    rng = np.random.default_rng(0)
    base = rng.random(40)
    values = {"map": {"low": list(base - 0.5), "high": list(base), "alike": list(base + 0.01 * rng.normal(size=40))}}
    summary = Summary(handmade(values, [1] * 40))
    best, other = sorted(("high", "alike"), key=lambda name: -np.mean(values["map"][name]))
    lead = RESULTS.build(summary).lead
    assert lead.startswith(
        f"{best} has the highest map, {np.mean(values['map'][best]):.4f}. The difference from {other} is not significant;"
    )
    assert "A figure is the mean over the queries." in lead
    assert "validation" not in lead  # no trials: score files were compared


def test_results_fold_by_fold_and_against_the_best():
    choice = next(block for block in RESULTS.build(with_tables()).blocks if isinstance(block, Choice))
    shown = dict(choice.options)
    assert list(shown) == ["means", "differences from the best", "folds", "ranks"]
    assert cells(shown["folds"], "fold 1") == pytest.approx([0.5, 0.6])
    assert cells(shown["folds"], "fold 2") == pytest.approx([0.6, 0.2])
    assert cells(shown["differences from the best"], "map") == pytest.approx([0.0, 0.4 - 0.55])


def test_the_spread_between_seeds_is_shown_where_there_are_several():
    results = simulated(2, 30, n_folds=3, n_seeds=3)
    values, queries = results.tables["values"], results.tables["queries"]
    means = [
        np.mean([values["ndcg@10"][inside & (queries["fold"][values["query"]] == f)].mean() for f in (1, 2, 3)])
        for s in range(3)
        for inside in [(values["method"] == 0) & (values["seed"] == s)]
    ]
    [grid, *_] = blocks_of(RESULTS.build(Summary(results)), Grid)
    order = [results.methods.index(name) for name in cells(grid, "method")]
    assert cells(grid, "seed sd")[order.index(0)] == pytest.approx(np.std(means, ddof=1))
    assert cells(grid, "mean rank") == pytest.approx(Summary(results).mean_ranks[order])
    assert (np.diff(cells(grid, "ndcg@10")) <= 0).all()
    for name in results.measures:
        assert cells(grid, name) == pytest.approx(results.means(name)[order])
    [grid, *_] = blocks_of(RESULTS.build(Summary(simulated(2, 30, n_folds=3))), Grid)
    assert "seed sd" not in [column.name for column in grid.columns]


def test_missing_seeds_are_told():
    results = simulated(2, 20, n_folds=2, n_seeds=2)
    values, fold = results.tables["values"], results.tables["queries"]["fold"]
    lost = (values["method"] == 1) & (values["seed"] == 1) & (fold[values["query"]] == 2)
    fewer = {name: column[~lost] for name, column in values.items()}
    thinned_out = dataclasses.replace(results, tables={**results.tables, "values": fewer})
    [warning] = blocks_of(RESULTS.build(Summary(thinned_out)), Text)
    assert warning.text == f"Some folds lack seeds of {results.methods[1]}: their means are over fewer runs."
    assert blocks_of(RESULTS.build(Summary(results)), Text) == []


def test_many_queries_leave_room_for_fewer_measures(full, monkeypatch):
    monkeypatch.setattr(duels, "VALUE_BYTES", 7 * 4 * 60 * 3)
    assert duel_of(full).measures == ("ndcg@10", "ndcg@1", "ndcg@3")


def test_without_scores_the_duel_has_values_only():
    duel = duel_of(with_tables(documents=table("query docid grade", (0, "d", 1))))
    assert all(query.documents is None for query in duel.queries)
    assert "kept no" in duel.without_documents


# Feature weights


def test_effects_are_relative_to_the_largest_of_a_method():
    rows = [(0, 1, 0, "x", 1.0, 2.0), (0, 2, 0, "x", 1.0, 4.0), (0, 1, 0, "y", 1.0, -1.0), (0, 2, 0, "y", 1.0, -2.0)]
    rows += [(1, fold, 0, "z", 1.0, 100.0) for fold in (1, 2)] + [(1, fold, 0, "y", 1.0, 90.0) for fold in (1, 2)]
    section = WEIGHTS.build(with_tables(weights=table("method fold seed feature weight effect", *rows)))
    together, a, _ = blocks_of(section, Chart)
    assert together.data[0]["y"] == ["x", "z", "y"]
    assert together.data[0]["z"] == [[1.0], [None], [-0.5]]
    assert together.data[1]["z"] == [[None], [1.0], [0.9]]
    assert lines(a)["a"] == ([3.0, -1.5], ["x", "y"])
    assert a.data[0]["error_x"]["array"].tolist() == [np.std([2.0, 4.0]), np.std([-1.0, -2.0])]


def test_the_most_important_features_are_shown(full):
    together, *single = blocks_of(WEIGHTS.build(full), Chart)
    assert all(len(trace["y"]) == MOST_FEATURES for trace in together.data)
    for chart in single:
        effects = np.abs(chart.data[0]["x"])
        assert 0 < len(effects) <= MOST_FEATURES
        assert (effects > 0).all()
        assert (np.diff(effects) <= 0).all()


def test_weights_of_nothing_are_zero():
    rows = [(0, fold, 0, "x", 0.0, 0.0) for fold in (1, 2)]
    [chart] = blocks_of(
        WEIGHTS.build(with_tables(weights=table("method fold seed feature weight effect", *rows))), Chart
    )
    assert lines(chart)["a"] == ([0.0], ["x"])


# Along each weight


PROFILE = "method fold seed feature effect at train valid test measure"


def profile(method: int = 0, fold: int = 1, seed: int = 0, feature: str = "7", scale: float = 1.0, test: float = 0.3):
    """A weight that matters: at 2, training is best; the others are better at 3."""
    places = [(-1.0, 0.1, 0.1, 0.1), (0.0, 0.2, 0.25, test), (2.0, 0.5, 0.4, 0.4), (3.0, 0.4, 0.45, 0.48)]
    return [(method, fold, seed, feature, 2.0 * scale, at * scale, *rest, "map") for at, *rest in places]


def test_profiles_are_changes_from_the_chosen_weight():
    rows = [*profile(scale=0.5), *profile(feature="a <b>", scale=-1.0)[::-1]]
    [chart] = blocks_of(PROFILES.build(with_tables(profiles=table(PROFILE, *rows))), Chart)
    check_chart(chart)
    assert [trace["meta"] for trace in chart.data[::3]] == ["a <b>, training", "feature 7, training"]  # largest first
    training, validation, test = chart.data[3:]
    assert [trace["name"] for trace in chart.data[3:]] == ["training", "validation", "test"]
    assert list(training["x"]) == [-0.5, 0.0, 1.0, 1.5]
    assert list(training["y"]) == pytest.approx([-0.4, -0.3, 0.0, -0.1])
    assert list(validation["y"]) == pytest.approx([-0.3, -0.15, 0.0, 0.05])
    assert list(test["y"]) == pytest.approx([-0.3, -0.1, 0.0, 0.08])
    assert [shape["x0"] for shape in chart.layout["shapes"]] == [-2.0, 1.0]
    assert "0.5000 on training queries, 0.4000 on validation queries, 0.4000 on test queries" in chart.caption
    low, high = chart.layout["yaxis"]["range"]
    assert low < -0.3
    assert 0.08 < high < 0.3
    assert chart.layout["yaxis2"]["matches"] == "y"


def test_profiles_tell_what_each_weight_is_worth():
    rows = [*profile(), *profile(fold=2, test=0.4), *profile(feature="8", scale=-0.5), *profile(1)]
    [grid] = blocks_of(PROFILES.build(with_tables(profiles=table(PROFILE, *rows))), Grid)
    assert [list(row.cells)[:3] for row in grid.rows] == [["a", "7", 2], ["a", "8", 1], ["b", "7", 1]]
    assert list(grid.rows[0].cells)[3:] == pytest.approx([1.0, 0.3, 0.15, (0.1 + 0.0) / 2, 0.05, 0.08])
    assert list(grid.rows[1].cells)[3:] == pytest.approx([-0.5, 0.3, 0.15, 0.1, 0.05, 0.08])


def test_profiles_of_queries_that_have_no_measure_are_left_out():
    rows = [(*row[:8], np.nan, "map") for row in profile()]
    section = PROFILES.build(with_tables(profiles=table(PROFILE, *rows)))
    [chart] = blocks_of(section, Chart)
    assert [trace["name"] for trace in chart.data] == ["training", "validation"]
    assert "test queries" not in chart.caption
    assert [row.cells[6:9:2] for row in blocks_of(section, Grid)[0].rows] == [pytest.approx([np.nan] * 2, nan_ok=True)]


def test_one_deep_fall_does_not_flatten_the_others():
    shallow = [
        (0, 1, 0, name, 1.0, at, 0.5 - 0.01 * abs(at - 1.0), 0.5, 0.5, "map") for name in "xy" for at in (0.0, 1.0, 2.0)
    ]
    deep = [(0, 1, 0, "z", 3.0, at, 0.5 - 0.1 * abs(at - 3.0), 0.5, 0.5, "map") for at in (0.0, 3.0, 6.0)]
    [chart] = blocks_of(PROFILES.build(with_tables(profiles=table(PROFILE, *shallow, *deep))), Chart)
    low, high = chart.layout["yaxis"]["range"]
    assert -0.02 < low < -0.01
    assert 0 < high < 0.01


def test_there_is_a_chart_for_the_first_seed_of_each_fold_and_not_for_too_many():
    rows = [row for fold in (1, 2) for seed in (5, 3) for row in profile(fold=fold, seed=seed, test=0.1 * seed)]
    section = PROFILES.build(with_tables(profiles=table(PROFILE, *rows)))
    assert [name for name, _ in section.blocks[0].options] == ["fold 1", "fold 2"]
    for chart in blocks_of(section, Chart):
        assert chart.data[2]["y"][1] == pytest.approx(0.3 - 0.4)
    many = [row for fold in range(1, 30) for row in profile(fold=fold)]
    assert len(blocks_of(PROFILES.build(with_tables(profiles=table(PROFILE, *many))), Chart)) == MOST_CHARTS


def test_flat_parts_of_a_line_need_their_ends_only():
    steps = [0.0, 0.0, 0.0, 0.0, 0.1, 0.2, 0.2, 0.2]
    rows = [(0, 1, 0, "7", 1.0, float(at), value, value, value, "map") for at, value in enumerate(steps)]
    [chart] = blocks_of(PROFILES.build(with_tables(profiles=table(PROFILE, *rows))), Chart)
    assert [list(trace["x"]) for trace in chart.data] == [[0, 3, 4, 5, 7]] * 3


def test_a_chart_of_profiles_is_not_too_large():
    summary = Summary(simulated(10, 20, n_folds=2))
    sizes = [len(json.dumps(chart.to_json())) for chart in blocks_of(PROFILES.build(summary), Chart)]
    assert len(sizes) == 2
    assert max(sizes) < 120_000


# Step functions


STEP = "method fold seed feature from to value missing range stumps"


def function(*jumps: tuple[float, float], method=0, fold=1, seed=0, feature="7", missing=np.nan, size=None):
    """The step function that changes at these places to these values; its rows."""
    at, value = [np.nan, *(x for x, _ in jumps), np.nan], [0.0, *(y for _, y in jumps)]
    own = (missing, np.ptp(value) if size is None else size, len(jumps))
    return [(method, fold, seed, feature, a, b, v, *own) for a, b, v in zip(at, at[1:], value, strict=False)]


def steps_of(*rows: list[tuple[object, ...]]) -> Section | None:
    return STEPS.build(with_tables(steps=table(STEP, *(row for part in rows for row in part))))


def test_step_functions_of_folds_are_overlaid_with_their_mean():
    section = steps_of(
        function((0.0, 1.0), (10.0, 3.0)), function((5.0, -1.0), fold=2), function((1.0, 0.5), feature="x")
    )
    [chart] = blocks_of(section, Chart)
    check_chart(chart)
    first, second, mean, _, other_mean = chart.data
    assert [trace["meta"] for trace in chart.data] == [
        "feature 7, fold 1", "feature 7, fold 2", "feature 7, mean", "x, fold 1", "x, mean",
    ]  # fmt: skip
    assert (first["x"], first["y"]) == ([-0.8, 0.0, 10.0, 10.8], [0.0, 1.0, 3.0, 3.0])
    assert (second["x"], second["y"]) == ([-0.8, 5.0, 10.8], [0.0, -1.0, -1.0])
    assert (mean["x"], mean["y"]) == ([-0.8, 0.0, 5.0, 10.0, 10.8], [0.0, 0.5, 0.0, 1.0, 1.0])
    assert other_mean["y"] == [0.0, 0.25, 0.25]  # fold 2 does not use it
    assert {trace["line"]["shape"] for trace in chart.data} == {"hv"}
    assert [trace["xaxis"] for trace in chart.data] == ["x", "x", "x", "x2", "x2"]
    assert chart.mentioned == {"a"}
    assert "the 2 features of the largest range" in chart.caption


def test_features_are_told_by_their_mean_range():
    rows = [
        function((0.0, 1.0), (10.0, 3.0)), function((5.0, -1.0), fold=2), function((0.0, 5.0), fold=2, feature="x"),
        function((0.0, 5.0), fold=1, feature="x"), function((0.0, 0.5), (1.0, 0.25), method=1),
    ]  # fmt: skip
    [grid] = blocks_of(steps_of(*rows), Grid)
    assert cells(grid, "feature") == ["x", "7", "7"]
    assert cells(grid, "used") == [2, 2, 1]
    assert [row.cells[2].text for row in grid.rows] == ["2 of 2", "2 of 2", "1 of 1"]
    assert cells(grid, "range") == [5.0, 2.0, 0.5]
    assert cells(grid, "of largest") == [1.0, 0.4, 1.0]
    assert cells(grid, "stumps") == [1.0, 1.5, 2.0]
    assert cells(grid, "values") == ["rises", "rises 1, falls 1", "mixed"]
    assert "missing" not in [column.name for column in grid.columns]


def test_what_a_run_does_not_use_lowers_the_means():
    rows = [*function((0.0, 4.0)), *function((0.0, 1.0), feature="x"), *function((0.0, 1.0), feature="x", fold=2)]
    [grid] = blocks_of(steps_of(rows), Grid)
    assert (cells(grid, "feature"), cells(grid, "range")) == (["7", "x"], [2.0, 1.0])


def test_values_of_missing_features_are_told_where_they_are_worth_something():
    rows = function((0.0, 1.0), missing=0.5), function((0.0, 1.0), missing=0.0, fold=2)
    assert cells(blocks_of(steps_of(*rows), Grid)[0], "missing") == [0.25]


def test_one_fold_has_no_mean_and_the_first_seed_is_drawn():
    rows = function((0.0, 1.0), seed=5), function((0.0, 2.0), seed=3)
    section = steps_of(*rows)
    [trace] = blocks_of(section, Chart)[0].data
    assert trace["y"] == [0.0, 2.0, 2.0]
    assert "mean" not in blocks_of(section, Chart)[0].caption
    assert cells(blocks_of(section, Grid)[0], "range") == [1.5]


def test_thresholds_that_lie_far_apart_have_a_log_axis():
    even = function((0.1, 1.0), (0.2, 2.0), (1.0, 3.0), size=9.0)
    uneven = function((0.1, 1.0), (0.2, 2.0), (100.0, 3.0), feature="x", size=8.0)
    signed = function((-0.1, 1.0), (0.2, 2.0), (100.0, 3.0), feature="y", size=7.0)
    [chart] = blocks_of(steps_of(even, uneven, signed), Chart)
    assert [chart.layout[axis].get("type") for axis in ("xaxis", "xaxis2", "xaxis3")] == [None, "log", None]
    assert 0 < chart.data[1]["x"][0] < 0.1
    [single] = blocks_of(steps_of(function((0.0, 1.0))), Chart)
    low, _, high = single.data[0]["x"]
    assert low < 0 < high


def test_the_charts_of_steps_are_not_too_large():
    ends = np.linspace(0, 1, 99)
    rows = [
        function(*((x + fold / 1000, np.sin(9 * x)) for x in ends), fold=fold, feature=f"{i}", size=30.0 - i)
        for fold in range(1, 11)
        for i in range(30)
    ]
    [chart] = blocks_of(steps_of(*rows), Chart)
    assert len(chart.layout["annotations"]) == MOST_PANELS
    assert len(json.dumps(chart.to_json())) < 500_000


# Selection, time and memory

TRIALS = "method fold seed candidate params status valid seconds predict_seconds memory_peak memory_start chosen error"


def trial(method=0, fold=1, candidate=0, params="{}", status="done", valid=0.5, seconds=1.0, chosen=True, error=""):
    return (method, fold, 0, candidate, params, status, valid, seconds, seconds / 10, 3e6, 1e6, chosen, error)


def test_candidates_with_their_means_and_choices():
    rows = [
        trial(fold=fold, candidate=c, params=json.dumps({"alpha": c}), valid=valid, chosen=chosen)
        for fold, c, valid, chosen in [(1, 0, 0.4, False), (1, 1, 0.5, True), (2, 0, 0.8, True), (2, 1, 0.6, False)]
    ]
    [grid] = blocks_of(SELECTION.build(with_tables(trials=table(TRIALS, *rows, trial(method=1)))), Grid)
    assert cells(grid, "method") == ["a", "a"]
    assert cells(grid, "parameters") == ["alpha=0", "alpha=1"]
    assert cells(grid, "validation map") == pytest.approx([(0.4 + 0.8) / 2, (0.5 + 0.6) / 2])
    assert [row.cells[2].emphasis for row in grid.rows] == ["best", ""]
    assert cells(grid, "chosen") == [1, 1]


def test_one_candidate_is_no_selection():
    assert SELECTION.build(with_tables(trials=table(TRIALS, trial(), trial(fold=2)))) is None


def test_failures_are_told_and_not_counted():
    failed = [
        trial(fold=2, candidate=c, status="failed", valid=np.nan, chosen=False, error=f"ValueError: {c}")
        for c in range(MOST_FAILURES + 2)
    ]
    summary = with_tables(trials=table(TRIALS, trial(seconds=4.0), *failed))
    section = SELECTION.build(summary)
    [warning] = blocks_of(section, Text)
    assert warning.text.startswith("12 trials failed:")
    assert "a, fold 2, seed 0, as by default: ValueError: 9" in warning.text
    assert "ValueError: 10" not in warning.text
    assert warning.text.endswith("And 2 more trials.")
    [grid] = blocks_of(section, Grid)
    assert grid.rows[0].cells[2].value == 0.5
    assert grid.rows[0].cells[2].emphasis == "best"
    [costs] = blocks_of(COSTS.build(summary), Grid)
    assert cells(costs, "all fits, s") == [4.0]


def test_costs_are_of_all_trials_and_of_the_chosen():
    rows = [trial(candidate=0, seconds=1.0, chosen=False), trial(candidate=1, seconds=3.0), trial(fold=2, seconds=5.0)]
    section = COSTS.build(with_tables(trials=table(TRIALS, *rows)))
    [grid] = blocks_of(section, Grid)
    assert list(grid.rows[0].cells) == ["a", 3, 3.0, 4.0, 9.0, pytest.approx(300.0)]
    assert blocks_of(section, Chart) == []  # one method is compared with none


def test_memory_is_shown_where_it_differs():
    rows = [trial(), trial(method=1, seconds=0.5)]
    same = COSTS.build(with_tables(trials=table(TRIALS, *rows)))
    [grid] = blocks_of(same, Grid)
    assert "peak memory, MB" not in [column.name for column in grid.columns]
    assert grid.note == "All methods have about the same peak memory, 3 MB."
    assert cells(grid, "method") == ["b", "a"]  # the fastest first
    found = table(TRIALS, *rows)
    found["memory_peak"] = found["memory_peak"] * [1.0, 3.0]
    [grid] = blocks_of(COSTS.build(with_tables(trials=found)), Grid)
    assert (cells(grid, "peak memory, MB"), cells(grid, "growth, MB")) == ([9.0, 3.0], [8.0, 2.0])


def test_quality_against_cost():
    rows = [trial(seconds=4.0), trial(candidate=1, seconds=2.0, chosen=False), trial(method=1, seconds=0.5)]
    section = COSTS.build(with_tables(trials=table(TRIALS, *rows)))
    charts = dict(section.blocks[0].options)
    assert list(charts) == ["training one model", "training all candidates", "scoring"]
    for chart in charts.values():
        check_chart(chart)
    frontier, a, b = charts["training all candidates"].data
    assert (a["x"], a["y"]) == ([6.0], [pytest.approx(0.4)])
    assert (b["x"], b["y"]) == ([0.5], [pytest.approx(0.55)])
    assert (frontier["x"], frontier["y"]) == ([0.5, 6.0], pytest.approx([0.55, 0.55]))  # b is better and cheaper


# Parameters, data and provenance


def test_the_measure_by_each_parameter():
    settings = [({"alpha": a, "scale": s}, 0.5 - abs(i - 1) / 10 - (s == "query") / 20)
                for i, a in enumerate([0.01, 1.0, 100.0]) for s in ("standard", "query")]  # fmt: skip
    rows = [
        trial(fold=fold, candidate=c, params=json.dumps(own), valid=valid + fold / 10, chosen=c == 2)
        for fold in (1, 2)
        for c, (own, valid) in enumerate(settings)
    ]
    section = SELECTION.build(with_tables(trials=table(TRIALS, *rows)))
    assert [name for name, _ in section.blocks[0].options] == ["each parameter", "all candidates"]
    [chart] = blocks_of(section, Chart)
    check_chart(chart)
    line, points, texts, _ = chart.data
    assert chart.layout["xaxis"]["type"] == "log"
    assert (line["x"], line["y"]) == ([0.01, 1.0, 100.0], pytest.approx([0.55, 0.65, 0.55]))
    assert points["x"] == [0.01, 0.01, 1.0, 1.0, 100.0, 100.0]
    assert points["marker"]["symbol"][2] == "circle"
    assert points["marker"]["symbol"].count("circle-open") == 5
    assert (texts["x"], texts["y"]) == (["standard", "query"], pytest.approx([0.65, 0.6]))


def test_equal_parameters_have_no_chart():
    rows = [trial(candidate=c, params=json.dumps({"alpha": 1.0}), chosen=c == 0) for c in (0, 1)]
    assert blocks_of(SELECTION.build(with_tables(trials=table(TRIALS, *rows))), Chart) == []


def test_permutation_importance_is_shown_for_every_method():
    rows = [(0, f, 0, n, v, 9) for f, x in ((1, 0.1), (2, 0.3)) for n, v in (("x", x), ("y", -0.01), ("z", 0.0))]
    rows += [(1, f, 0, n, v, 9) for f in (1, 2) for n, v in (("x", 0.0), ("y", 0.4), ("z", 0.0))]
    section = PERMUTATION.build(with_tables(permutation=table("method fold seed feature fall queries", *rows)))
    together, best, _ = blocks_of(section, Chart)
    for chart in blocks_of(section, Chart):
        check_chart(chart)
    assert [trace["method"] for trace in together.data] == ["b", "a"]  # as in the results
    assert together.data[0]["y"] == ["y", "x", "z"]
    assert together.data[1]["z"] == [[-0.01], [pytest.approx(0.2)], [0.0]]
    assert (together.layout["coloraxis"]["cmin"], together.layout["coloraxis"]["cmax"]) == (-0.4, 0.4)
    assert next(iter(best.data[0]["y"])) == "y"
    nothing = [(0, f, 0, "x", 0.0, 9) for f in (1, 2)]
    assert PERMUTATION.build(with_tables(permutation=table("method fold seed feature fall queries", *nothing))) is None


def data_table() -> Table:
    names = "fold digest part queries documents features missing fewest median most irrelevant grades"
    rows = [
        (
            fold,
            f"d{fold}",
            part,
            n,
            10 * n,
            4,
            n // 2 * missing,
            5,
            10.0,
            20 + fold,
            1,
            json.dumps({"0": 3 * n, "1": n}),
        )
        for fold, n in ((1, 8), (2, 12))
        for part, missing in (("training", 1), ("test", 0))
    ]
    return table(names, *rows)


def test_the_data_card():
    [grid] = blocks_of(DATA.build(with_tables(data=data_table())), Grid)
    first, second = grid.rows
    assert [getattr(cell, "text", cell) for cell in first.cells] == [
        "training", "10 [8, 12]", "100 [80, 120]", "10 [5, 22]", "1.2%", "1", "0: 75.0%, 1: 25.0%",
    ]  # fmt: skip
    assert second.cells[4].text == "none"
    many = {**data_table(), "grades": np.array(["null"] * 4)}
    assert blocks_of(DATA.build(with_tables(data=many)), Grid)[0].rows[0].cells[-1] == "many"


def test_provenance_is_of_the_last_run():
    runs = table("date command numpy machine", ("May", "one", "1", "m"), ("June", "two <b>", "2", "n"))
    trials = table(TRIALS, trial(), trial(fold=2, status="failed"))
    summary = with_tables(runs=runs, trials=trials, data=data_table())
    [grid] = blocks_of(PROVENANCE.build(summary), Grid)
    said = {row.cells[0]: row.cells[1].value for row in grid.rows}
    assert (said["date"], said["command"], said["versions"], said["machine"]) == (
        "May to June",
        "two <b>",
        "numpy 2",
        "n",
    )
    assert said["runs"].startswith("2;")
    assert said["finished trials"] == "1"
    other = {**data_table(), "digest": np.array(["e1", "e1", "d2", "d2"])}
    assert compute_fingerprint(summary) == said["fingerprint of the data"]
    assert compute_fingerprint(with_tables(data=other)) != said["fingerprint of the data"]
    assert PROVENANCE.build(with_tables(trials=trials)) is None  # a comparison of score files


def test_all_failed_costs_nothing():
    assert COSTS.build(with_tables(trials=table(TRIALS, trial(status="failed", valid=np.nan)))) is None


# The report as files


def test_the_report_is_a_page_and_six_tables(tmp_path):
    results = simulated(2, 12, n_folds=2, measures=("map", "p@1"), measure="map")
    path = write_report(results, tmp_path / "new" / "report", date=datetime.date(2026, 2, 3))
    assert path == tmp_path / "new" / "report" / "report.html"
    names = sorted(file.name for file in (path.parent / "tables").iterdir())
    assert names == sorted(
        f"{table}.{ending}" for table in ("results", "comparisons") for ending in ("csv", "md", "tex")
    )
    assert sorted(file.name for file in path.parent.iterdir()) == ["report.html", "tables"]
    assert "2026-02-03" in path.read_text(encoding="utf-8")


def test_the_same_results_give_the_same_bytes(tmp_path):
    results = simulated(2, 12, n_folds=2, measures=("map",), measure="map")
    assert write_report(results, tmp_path / "a").read_bytes() == write_report(results, tmp_path / "b").read_bytes()


def test_the_page_says_what_was_run(full):
    page = make_page(full)
    assert page.methods == full.methods
    facts = dict(page.facts)
    assert (facts["Methods"], facts["Folds"], facts["Seeds"], facts["Test queries"]) == ("4", "5", "2", "60")
    assert facts["Documents"] == f"{len(full.table('documents')['docid']):,}"


# Trees

NAN = float("nan")
GROWN = "method fold seed round loss train valid weight searched polish kept"


def forest(method: int, fold: int, n: int = 3, *, seed: int = 0, kept: int = 3) -> list[tuple]:
    """Growing three trees and two rounds of polishing: the second tree is the best on validation queries."""
    trees = [(1, 0.50, 0.40, 0.5, 0.9), (2, 0.55, 0.60, 0.3, 0.3), (3, 0.60, 0.45, 0.1, -0.2)][:n]
    rows = [(method, fold, seed, i, 9.0 - i, t, v, w, s, NAN, 1.0 if i == kept else NAN) for i, t, v, w, s in trees]
    steps = [(n + 1, 0.57, 0.61, 1), (n + 2, 0.58, 0.65, 1), (n + 3, 0.59, 0.62, 2)]
    rows += [(method, fold, seed, i, 1 - t, t, v, NAN, NAN, r, 1.0 if i == kept else NAN) for i, t, v, r in steps]
    return rows


def test_learning_curves_end_with_the_last_tree():
    section = LEARNING.build(with_tables(history=table(GROWN, *forest(0, 1, kept=5), *forest(0, 2, kept=2))))
    options = dict(section.blocks[0].options)
    assert list(options) == ["measure", "loss"]  # neither weights, nor rounds of polishing, nor what was kept
    for chart in blocks_of(section, Chart):
        assert all(list(trace["x"]) == [1, 2, 3] for trace in drawn(chart))
        check_chart(chart)
    assert list(dict(options["loss"].options)["fold 1"].data[0]["y"]) == [8.0, 7.0, 6.0]


def test_learning_curves_of_measures_that_some_rounds_lack():
    names = "method fold seed round train valid"
    rows = [
        (0, fold, 0, i, i / 10 if i in (1, 2, 4, 7 - fold) else NAN, i / 10) for fold in (1, 2) for i in range(1, 13)
    ]
    by_fold = dict(LEARNING.build(with_tables(history=table(names, *rows))).blocks[0].options)
    train, valid = drawn(by_fold["mean over folds"])
    assert (list(train["x"]), list(train["y"])) == ([1, 2, 4], [0.1, 0.2, 0.4])  # where both folds have it
    assert list(by_fold["fold 1"].data[0]["x"]) == [1, 2, 4, 6]
    assert (train["mode"], valid["mode"]) == ("lines+markers", "lines")
    assert "some rounds only" in by_fold["fold 1"].caption


def test_a_run_that_ended_keeps_its_last_known_value():
    rounds, values = mean_curve((0, 1, 0, 1, 0.2), (0, 1, 0, 2, NAN), *((0, 2, 0, i, i / 10) for i in (1, 2, 3)))
    assert rounds == [1, 3]
    assert values == pytest.approx([0.15, 0.25])


def test_losses_far_apart_have_a_log_axis():
    names = "method fold seed round loss"
    near = [(m, fold, 0, i, (m + 1) / i) for m in (0, 1) for fold in (1, 2) for i in (1, 2, 3)]
    far = [(*row[:4], row[4] * 1000) if row[0] else row for row in near]
    below = [(*row[:4], -row[4]) if row[0] == 0 else row for row in far]
    for rows, expected in ((near, None), (far, "log"), (below, None)):
        for chart in blocks_of(LEARNING.build(with_tables(history=table(names, *rows))), Chart):
            assert chart.layout["yaxis"].get("type") == expected


def test_tree_weights_count_what_was_clipped():
    second = [(*row[:8], 0.7, *row[9:]) if row[3] == 2 else row for row in forest(0, 2)]  # also clipped from above
    rows = [*forest(0, 1), *second, *[(*row[:7], NAN, NAN, *row[9:]) for row in forest(1, 1)]]
    section = TREE_WEIGHTS.build(with_tables(history=table(GROWN, *rows)))
    [chart] = blocks_of(section, Chart)
    check_chart(chart)
    assert [trace["name"] for trace in chart.data] == ["searched", "given"] * 2
    assert list(chart.data[0]["y"]) == [0.9, 0.3, -0.2]
    assert list(chart.data[1]["y"]) == [0.5, 0.3, 0.1]
    [grid] = blocks_of(section, Grid)
    assert cells(grid, "method") == ["a"]  # the other one searched nothing
    shares = [cells(grid, name)[0] for name in ("raised", "unclipped", "lowered", "not above 0")]
    assert shares == pytest.approx([1 / 3, 1 / 6, 1 / 2, 1 / 3])
    assert (cells(grid, "trees"), cells(grid, "median searched")) == ([3.0], [0.5])


def test_tree_weights_reach_as_far_as_is_usual():
    far = [(0, 1, 0, i, 1e6 if i == 7 else 0.1, 0.1) for i in range(1, 101)]
    names = "method fold seed round searched weight"
    [chart] = blocks_of(TREE_WEIGHTS.build(with_tables(history=table(names, *far))), Chart)
    low, high = chart.layout["yaxis"]["range"]
    assert -0.1 < low < 0.0 < 0.1 < high < 0.2
    assert "A few lie outside" in chart.caption
    wild = [(0, 1, 0, i, (-1) ** i * 50.0 if i > 60 else 0.3, 0.1 + 0.4 * (i % 2)) for i in range(1, 101)]
    [chart] = blocks_of(TREE_WEIGHTS.build(with_tables(history=table(names, *wild))), Chart)
    assert chart.layout["yaxis"]["range"] == pytest.approx([-1.5 - 0.21, 2.0 + 0.21])
    assert "40% of the searched weights lie outside" in chart.caption


def test_no_section_where_no_weight_was_searched_and_nothing_polished():
    summary = with_tables(history=table("method fold seed round train valid", (0, 1, 0, 1, 0.5, 0.5)))
    assert TREE_WEIGHTS.build(summary) is None
    assert POLISHING.build(summary) is None
    nothing = table(GROWN, *[row for row in forest(0, 1, kept=2) if np.isnan(row[9])])
    assert POLISHING.build(with_tables(history=nothing)) is None


def polishing_lines(chart: Chart) -> list[tuple[list, list]]:
    found = [trace for trace in chart.data if trace.get("xaxis") == "x2" and trace["mode"] != "markers"]
    return [(list(trace["x"]), list(trace["y"])) for trace in found]


def test_polishing_begins_with_the_best_tree_and_says_what_was_kept():
    rows = [*forest(0, 1, kept=5), *forest(0, 2, kept=2)]
    section = POLISHING.build(with_tables(history=table(GROWN, *rows)))
    [grid] = blocks_of(section, Grid)
    assert [cells(grid, name) for name in ("runs", "kept", "rounds")] == [[2], [1], [2.0]]
    for part, before, after in (("train", 0.55, (0.58 + 0.55) / 2), ("valid", 0.60, (0.65 + 0.60) / 2)):
        found = [cells(grid, f"{part} {name}")[0] for name in ("before", "after", "gain")]
        assert found == pytest.approx([before, after, after - before])
    charts = dict(section.blocks[1].options)
    assert list(charts) == ["mean over folds", "fold 1", "fold 2"]
    for chart in charts.values():
        check_chart(chart)
    _, valid = polishing_lines(charts["fold 1"])
    assert valid == ([0, 0.5, 1, 2], [0.60, 0.61, 0.65, 0.62])
    marks = [trace for trace in charts["fold 1"].data if trace["mode"] == "markers"]
    assert [(mark["name"], *mark["x"], *mark["y"]) for mark in marks] == [
        ("start of polishing", 2, 0.55), ("start of polishing", 2, 0.60), ("kept", 1, 0.58), ("kept", 1, 0.65),
    ]  # fmt: skip
    assert polishing_lines(charts["mean over folds"]) == [
        ([0, 1, 2], pytest.approx([0.55, 0.58, 0.59])),
        ([0, 1, 2], pytest.approx([0.60, 0.65, 0.62])),
    ]


def test_polishing_without_validation_begins_with_the_last_tree():
    rows = [(*row[:6], NAN, *row[7:]) for row in forest(0, 1, kept=6)]
    section = POLISHING.build(with_tables(history=table(GROWN, *rows)))
    [grid] = blocks_of(section, Grid)
    assert (cells(grid, "train before"), cells(grid, "train after")) == ([0.60], [0.59])
    assert np.isnan(cells(grid, "valid gain")).all()


def test_polishing_that_took_no_step_is_not_counted():
    rows = [*forest(0, 1, kept=5), *[row for row in forest(0, 2, kept=2) if np.isnan(row[9])]]
    [grid] = blocks_of(POLISHING.build(with_tables(history=table(GROWN, *rows))), Grid)
    [row] = grid.rows
    assert row.cells[1].text == "1 of 2"


def test_places_of_steps():
    grown = forest(0, 1, kept=2)[:3]
    rows = [(0, 1, 0, 4 + i, 0.1, 0.6, 0.6, NAN, NAN, r, NAN) for i, r in enumerate([1, 1, 1, 1, 2, 4, 4])]
    section = POLISHING.build(with_tables(history=table(GROWN, *grown, *rows)))
    chart = blocks_of(section, Chart)[-1]
    assert [x for x, _ in polishing_lines(chart)] == [[0, 0.25, 0.5, 0.75, 1, 2, 3.5, 4]] * 2


def test_a_thousand_trees_make_a_small_page():
    rng = np.random.default_rng(0)
    n, runs = 1000, [(m, fold, seed) for m in (0, 1) for fold in (1, 2) for seed in (0, 1)]
    rows = []
    for run in runs:
        rows += [(*run, i, 0.1, *rng.random(3), rng.normal(), NAN, NAN) for i in range(1, n + 1)]
        rows += [(*run, n + i, 0.1, *rng.random(2), NAN, NAN, 1 + i // 50, NAN) for i in range(1, n)]
    summary = with_tables(history=table(GROWN, *rows))
    for section in (LEARNING, TREE_WEIGHTS, POLISHING):
        built = section.build(summary)
        charts = blocks_of(built, Chart)
        assert max(len(trace["x"]) for chart in charts for trace in drawn(chart)) == MOST_POINTS
        assert sum(len(json.dumps(chart.to_json())) for chart in charts) < 400_000


def test_a_trial_leaves_the_history_of_its_trees():
    fold = rw.split_folds(rw.make_queries(45, n_docs=12, n_features=5, noise=1.5, random_state=1), 3, random_state=0)[0]
    ranker = rw.DirectRankTrees(
        n_estimators=6, num_leaves=4, min_child_samples=5, polish_rounds=2, weight_range=(0.1, 0.5)
    ).fit(fold.train, valid=fold.valid)
    made = trial_tables.tabulate_history(trial_tables.TrainedRanker(ranker, fold, np.zeros(1), {}))
    one = {"method": np.zeros(len(made["round"]), int), "fold": np.ones(len(made["round"]), int)}
    found = {**one, "seed": one["method"], **made}
    summary = with_tables(history=found)
    [chart] = blocks_of(TREE_WEIGHTS.build(summary), Chart)
    searched, given = (
        {trace["name"]: list(trace["y"]) for trace in chart.data}[name] for name in ("searched", "given")
    )
    assert given == pytest.approx(np.clip(searched, *ranker.weight_range))
    assert np.nansum(made["kept"]) == 1
    [grid] = blocks_of(POLISHING.build(summary), Grid)
    for part, queries in (("train", fold.train), ("valid", fold.valid)):
        assert cells(grid, f"{part} after") == pytest.approx([ranker.score(queries)])
    growing = np.isnan(made["polish"])
    assert cells(grid, "valid before") == [max(made["valid"][growing])]


def importances(*rows: tuple[int, int, int, str, float, int]) -> Summary:
    return with_tables(importance=table("method fold seed feature gain splits", *rows))


def test_importance_is_a_mean_with_its_spread():
    rows = [
        (0, 1, 0, "1", 0.75, 3), (0, 1, 0, "2", 0.25, 2), (0, 1, 0, "3", 0.0, 0),
        (0, 2, 0, "1", 0.25, 1), (0, 2, 0, "2", 0.75, 2), (0, 2, 0, "3", 0.0, 0),
        (1, 1, 0, "1", 1.0, 9), (1, 2, 0, "1", 1.0, 9), (1, 1, 0, "2", 0.0, 0), (1, 2, 0, "2", 0.0, 0),
    ]  # fmt: skip
    section = IMPORTANCE.build(importances(*rows))
    together, first, second = blocks_of(section, Chart)
    for chart in (together, first, second):
        check_chart(chart)
    assert [trace["method"] for trace in together.data] == ["a", "b"]
    assert together.data[0]["z"] == [[0.5], [0.5], [0.0]]
    assert together.layout["coloraxis"]["cmax"] == 1.0
    [bars] = first.data
    assert (list(bars["y"]), list(bars["x"]), list(bars["error_x"]["array"])) == (["1", "2"], [0.5, 0.5], [0.25, 0.25])
    [grid] = blocks_of(section, Grid)
    assert [row.cells[:2] for row in grid.rows] == [["a", "1"], ["a", "2"], ["b", "1"]]  # what is used
    assert (cells(grid, "splits"), cells(grid, "sd")) == ([2.0, 2.0, 9.0], [0.25, 0.25, 0.0])
    assert cells(grid, "used") == [2, 2, 2]


def test_importance_on_some_folds_is_not_shown():
    assert IMPORTANCE.build(importances((0, 1, 0, "1", 1.0, 3))) is None


def test_importance_of_many_features_is_cut():
    names = [f"f{i}" for i in range(MOST_ROWS + 50)]
    rows = [(0, fold, 0, name, 1 / (i + 1), 1) for fold in (1, 2) for i, name in enumerate(names)]
    section = IMPORTANCE.build(importances(*rows))
    [chart] = blocks_of(section, Chart)
    [grid] = blocks_of(section, Grid)
    assert len(chart.data[0]["y"]) == MOST_FEATURES
    assert cells(grid, "feature") == names[:MOST_ROWS]
