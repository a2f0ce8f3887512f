"""The figures of a report, and the tables that show them."""

from __future__ import annotations

import csv as csv_format
import io

import numpy as np
import pytest
from tests.results import handmade, simulated

import rankwright as rw
from rankwright.analysis.significance import bootstrap_interval, compare
from rankwright.basics.aligned_tables import Entry, TextTable, format_aligned
from rankwright.basics.number_texts import MISSING
from rankwright.report.summary import BELOW, Summary
from rankwright.report.text_tables import (
    format_csv,
    format_latex,
    format_markdown,
    make_comparison_table,
    make_results_table,
)

NONE = None
LOW = [0.1, 0.2, 0.15, 0.3, 0.25, 0.2, 0.1, 0.3]
HIGH = [0.2, 0.4, 0.25, 0.6, 0.35, 0.3, 0.4, 0.5]  # above LOW on all eight queries
MIXED = [0.3, 0.3, 0.35, 0.5, 0.45, 0.2, 0.5, 0.3]  # above HIGH on four, below on four


@pytest.fixture
def three() -> Summary:
    """Three methods on eight queries of two folds of one size."""
    return Summary(handmade({"map": {"low": LOW, "high": HIGH, "mixed": MIXED}}, folds=[1, 1, 1, 1, 2, 2, 2, 2]))


def test_a_figure_is_the_mean_of_fold_means_and_needs_all_folds():
    values = {"a": [0.5, 0.7, 0.2], "b": [0.4, 0.6, 0.6], "c": [0.9, 0.9, NONE]}
    figures = Summary(handmade({"map": values}, folds=[1, 1, 2])).figures["map"]
    assert [figure.mean for figure in figures[:2]] == pytest.approx([(0.6 + 0.2) / 2, (0.5 + 0.6) / 2])
    assert np.isnan(figures[2].mean)
    assert np.isnan(figures[2].rank)
    assert [figure.rank for figure in figures[:2]] == [2, 1]
    assert [figure.best for figure in figures] == [False, True, False]
    assert figures[2].against is None


def test_equal_means_share_their_ranks_even_if_rounding_differs():
    values = {"a": [0.1, 0.2, 0.3], "b": [0.3, 0.2, 0.1], "c": [0.1, 0.1, 0.1]}
    figures = Summary(handmade({"map": values}, folds=[1, 1, 1])).figures["map"]
    assert [figure.rank for figure in figures] == [1.5, 1.5, 3]
    assert [figure.best for figure in figures] == [True, True, False]


def test_the_mean_rank_is_over_the_measures_that_have_ranks():
    nothing = [np.nan, np.nan]
    results = handmade(
        {
            "map": {"a": [0.1, 0.1], "b": [0.2, 0.2], "c": [0.3, 0.3]},
            "p@1": {"a": [0.3, 0.3], "b": [0.1, 0.1], "c": [0.2, 0.2]},
            "mrr": {"a": nothing, "b": nothing, "c": nothing},
        },
        folds=[1, 1],
    )
    assert Summary(results).mean_ranks.tolist() == [(3 + 1) / 2, (2 + 3) / 2, (1 + 2) / 2]


def test_significantly_below_the_best_is_a_randomisation_test_with_holm(three):
    low, high, mixed = three.figures["map"]
    assert mixed.best is not high.best
    best = max((high, mixed), key=lambda figure: figure.mean)
    other = min((high, mixed), key=lambda figure: figure.mean)
    assert best.against is None
    assert not other.below
    assert low.below
    # LOW is not above the best on any query, and equal on one: 2 of the 2^7 sign flips are as extreme; Holm takes 3 times.
    zeros = sum(a == b for a, b in zip(LOW, MIXED if best is mixed else HIGH))
    assert low.against.adjusted.randomisation == pytest.approx(3 * 2 / 2 ** (8 - zeros))  # of three pairs


def test_the_spread_of_folds_of_one_size_is_that_of_the_queries(three):
    spread = three.spreads[0]
    assert spread.error == pytest.approx(np.std(LOW, ddof=1) / np.sqrt(8))
    assert (spread.low, spread.high) == pytest.approx(bootstrap_interval(LOW, n=2_000))


def test_the_spread_of_other_folds_weighs_queries_as_the_mean_does():
    x, w = np.array([0.5, 0.9, 0.2]), np.array([0.25, 0.25, 0.5])
    spread = Summary(handmade({"map": {"a": x.tolist()}}, folds=[1, 1, 2])).spreads[0]
    mean = (w * x).sum()
    assert spread.error == pytest.approx(np.sqrt(3 / 2 * (w**2 * (x - mean) ** 2).sum()))
    assert spread.low < mean < spread.high


def test_weights_and_skipped_queries_count_in_the_spread_as_in_the_mean():
    x, w = np.array([0.5, 0.9, 0.2, 0.4]), np.array([1 / 8, 3 / 8, 1 / 4, 1 / 4])
    results = handmade({"map": {"a": [0.5, 0.9, np.nan, 0.2, 0.4]}}, folds=[1, 1, 1, 2, 2], weight=[1, 3, 9, 2, 2])
    mean = (w * x).sum()
    assert results.means() == pytest.approx([mean])
    assert Summary(results).spreads[0].error == pytest.approx(np.sqrt(4 / 3 * (w**2 * (x - mean) ** 2).sum()))


def test_one_query_has_a_mean_and_no_spread():
    summary = Summary(handmade({"map": {"a": [0.5], "b": [0.25]}}, folds=[1]))
    assert [figure.mean for figure in summary.figures["map"]] == [0.5, 0.25]
    assert not any(figure.below for figure in summary.figures["map"])
    assert np.isnan([summary.spreads[0].error, summary.spreads[0].low, summary.spreads[0].high]).all()
    assert make_comparison_table(summary).rows[0][2].value == -0.25


@pytest.mark.parametrize(
    ("measures", "labels", "options"),
    [
        (["map", "ndcg@5"], ["map", "ndcg@5"], ""),
        (["map(dialect=mslr)"], ["map"], "All measures are computed with dialect=mslr."),
        (
            ["ndcg@5(dialect=mslr)", "map(dialect=mslr)"],
            ["ndcg@5", "map"],
            "All measures are computed with dialect=mslr.",
        ),
        (["ndcg@5(dialect=mslr)", "err@5"], ["ndcg@5", "err@5"], "With dialect=mslr: ndcg@5."),
        (["map(rel=2)", "p@1(rel=1)"], ["map", "p@1"], "With rel=2: map. With rel=1: p@1."),
        (["map(rel=2)", "map"], ["map(rel=2)", "map"], ""),
    ],
)
def test_options_are_said_once(measures, labels, options):
    summary = Summary(handmade({name: {"a": [0.5]} for name in measures}, folds=[1]))
    assert [summary.labels[name] for name in measures] == labels
    assert summary.options == options


def test_the_deciding_measure_comes_first():
    summary = Summary(handmade({"map": {"a": [0.1]}, "mrr": {"a": [0.2]}}, folds=[1], measure="mrr"))
    assert summary.measures == ("mrr", "map")
    assert make_results_table(summary).header == ["method", "mrr", "low", "high", "map", "mean rank"]


def test_the_results_table(three):
    table = make_results_table(three)
    names, means = [row[0].text for row in table.rows], [row[1] for row in table.rows]
    assert names == ["low", "high", "mixed"]
    assert [entry.value for entry in means] == [
        np.mean(LOW),
        pytest.approx(np.mean(HIGH)),
        pytest.approx(np.mean(MIXED)),
    ]
    assert means[0] == Entry(means[0].value, f"{np.mean(LOW):.4f}", best=False, mark=BELOW)
    assert [entry.best for entry in means].count(True) == 1
    assert table.note.startswith(f"{BELOW} significantly below the best")


def test_no_mark_is_said_too():
    table = make_results_table(Summary(handmade({"map": {"high": HIGH, "mixed": MIXED}}, folds=[1] * 8)))
    assert table.note.startswith("No method is significantly below the best")


def test_a_method_without_all_folds_has_dashes():
    table = make_results_table(Summary(handmade({"map": {"a": [0.5, 0.4], "b": [0.1, NONE]}}, folds=[1, 2])))
    assert [entry.text for entry in table.rows[1]] == ["b", MISSING, MISSING, MISSING, MISSING]
    assert list(csv_format.reader(io.StringIO(format_csv(table))))[2] == ["b", "", "", "", ""]
    assert "b & -- & -- & -- & -- " in format_latex(table)


def test_the_comparison_table_counts_the_second_method(three):
    row = make_comparison_table(three).rows[0]
    differences = np.array(HIGH) - np.array(LOW)
    assert [entry.text for entry in row[:3]] == ["low", "high", f"{differences.mean():+.4f}"]
    assert [entry.value for entry in row[5:8]] == [8, 0, 0]
    assert row[8].value == pytest.approx(3 * 2 / 2**8)  # the smallest of three p-values
    assert row[2].mark == "▲"
    assert row[11].value == pytest.approx(differences.mean() / differences.std(ddof=1))


def test_one_method_is_not_compared():
    summary = Summary(handmade({"map": {"a": [0.5, 0.4]}}, folds=[1, 2]))
    assert make_comparison_table(summary).rows == []
    assert make_results_table(summary).note == ""
    assert not make_results_table(summary).rows[0][1].best
    assert format_aligned(make_comparison_table(summary)).splitlines()[2].split()[:2] == ["first", "second"]


def test_seeds_are_averaged_before_anything_else():
    results = simulated(2, 12, n_folds=2, n_seeds=3, measures=("map",), measure="map")
    table, expected = results.tables["values"], np.empty((2, 12))
    for m in range(2):
        for q in range(12):
            expected[m, q] = table["map"][(table["method"] == m) & (table["query"] == q)].mean()
    summary = Summary(results)
    assert summary.comparisons["map"][0].n == 12
    assert summary.comparisons["map"][0].difference == pytest.approx((expected[1] - expected[0]).mean())


HOSTILE = TextTable(
    ["name", "a|b_c"],
    [
        [Entry("x|y*", "x|y*"), Entry(0.25, "0.2500", best=True)],
        [Entry('50% of $1 & "more"', '50% of $1 & "more"'), Entry(-1.5, "-1.5000", mark=BELOW)],
        [Entry("two\nlines, {\\}~^#<", "two\nlines, {\\}~^#<"), Entry(float("nan"), MISSING)],
    ],
    "A caption_1.",
    f"{BELOW} worse.",
)


def test_markdown_has_one_cell_for_each_cell():
    lines = format_markdown(HOSTILE).splitlines()
    assert lines[0] == r"A caption\_1."
    assert lines[2:5] == [r"| name | a\|b\_c |", "| :--- | ---: |", r"| x\|y\* | **0.2500** |"]
    assert lines[5] == r'| 50% of \$1 \& "more" | -1.5000▼ |'
    assert lines[6] == r"| two lines, {\\}\~^#\< | " + f"{MISSING} |"
    assert lines[8] == "▼ worse."


def test_csv_reads_back():
    back = list(csv_format.reader(io.StringIO(format_csv(HOSTILE))))
    assert back == [
        ["name", "a|b_c"],
        ["x|y*", "0.25"],
        ['50% of $1 & "more"', "-1.5"],
        ["two\nlines, {\\}~^#<", ""],
    ]


def test_csv_has_every_digit():
    values = {"a": [1 / 3, 2 / 3, 0.1], "b": [0.7, 1 / 7, 0.2]}
    results = handmade({"map": values}, folds=[1, 1, 2])
    back = list(csv_format.reader(io.StringIO(format_csv(make_results_table(Summary(results))))))
    assert [float(row[1]) for row in back[1:]] == results.means().tolist()


def test_latex_escapes_what_is_special():
    lines = format_latex(HOSTILE).splitlines()
    assert r"\begin{tabular}{lr}" in lines
    assert r"name & a\textbar{}b\_c \\" in lines
    assert r"x\textbar{}y* & \textbf{0.2500} \\" in lines
    assert r"50\% of \$1 \& ''more'' & $-$1.5000\textsuperscript{$\downarrow$} \\" in lines
    assert r"two lines, \{\textbackslash{}\}\textasciitilde{}\textasciicircum{}\#\textless{} & -- \\" in lines
    assert [line for line in lines if "rule" in line] == [r"\toprule", r"\midrule", r"\bottomrule"]
    assert r"\par\smallskip{\footnotesize $\downarrow$ worse.}" in lines


def test_text_keeps_digits_above_each_other():
    table = TextTable(
        ["method", "map"],
        [
            [Entry("A", "A"), Entry(0.5, "0.5000", best=True)],
            [Entry("longer", "longer"), Entry(10.25, "10.2500", mark=BELOW)],
            [Entry("B", "B"), Entry(0.1, "0.1000")],
        ],
        "",
    )
    assert format_aligned(table).splitlines() == [
        "method       map",
        "A        0.5000*",
        "longer  10.2500▼",
        "B        0.1000",
        "",
        "* the best of its column.",
    ]


@pytest.mark.parametrize("name", ["[x] one", "*star"])
def test_latex_names_are_not_taken_for_arguments(name):
    table = TextTable(["method", "map"], [[Entry(name, name), Entry(0.5, "0.5")]], "")
    assert f"{{}}{name} & 0.5 " + r"\\" in format_latex(table).splitlines()


@pytest.mark.parametrize(
    ("words", "escaped"), [("# a", r"\# a"), ("- a", r"\- a"), ("1. a", r"1\. a"), ("a # b - 1.", "a # b - 1.")]
)
def test_markdown_captions_are_no_headings_or_lists(words, escaped):
    assert format_markdown(TextTable(["a"], [], words)).splitlines()[0] == escaped


def test_csv_has_no_formulas():
    table = TextTable(["method", "map"], [[Entry("=1+1", "=1+1"), Entry(-0.5, "-0.5")]], "")
    assert format_csv(table).splitlines()[1] == "'=1+1,-0.5"


def test_what_is_tested_is_what_is_reported():
    """Folds of two and of six queries: the difference of the means of fold means, not that of the means over queries."""
    a, b = [0.9, 0.8, 0.2, 0.1, 0.2, 0.1, 0.2, 0.1], [0.1, 0.2, 0.45, 0.45, 0.45, 0.45, 0.45, 0.45]
    summary = Summary(handmade({"map": {"a": a, "b": b}}, folds=[1, 1, 2, 2, 2, 2, 2, 2]))
    means = summary.results.means()
    assert means[0] > means[1]
    assert np.mean(a) < np.mean(b)
    [found] = summary.comparisons["map"]
    assert found.difference == pytest.approx(means[1] - means[0])
    assert (found.wins, found.losses) == (6, 2)
    assert summary.figures["map"][0].best
    assert summary.figures["map"][1].against.difference == pytest.approx(means[1] - means[0])


def test_an_interval_stays_within_the_values():
    weight = [1.0, 1.0, 1.0, 40.0]
    results = handmade({"map": {"a": [0.2, 0.3, 0.9, 1.0], "b": [0.1, 0.1, 0.1, 0.3]}}, [1, 1, 2, 2], weight=weight)
    for spread in Summary(results).spreads:
        assert 0.1 <= spread.low <= spread.high <= 1.0


def test_too_few_queries_to_test():
    summary = Summary(handmade({"map": {"a": [0.5], "b": [0.4]}}, folds=[1]))
    assert summary.below_note == "There are too few queries to test differences."


def test_methods_that_are_all_alike_have_no_best():
    summary = Summary(handmade({"map": {"a": [0.5, 0.1], "b": [0.1, 0.5]}}, folds=[1, 1]))
    assert not any(figure.best for figure in summary.figures["map"])


def test_a_method_without_all_folds_is_not_compared():
    values = {"map": {"a": [0.5, 0.1], "b": [0.1, 0.5], "c": [0.2, NONE]}}
    assert [found.second for found in Summary(handmade(values, folds=[1, 2])).comparisons["map"]] == ["b"]


def test_names_of_measures_are_short_where_they_can_be():
    names = ("map(dialect=letor4)", "ndcg@10(dialect=letor4)", "ndcg@10")
    summary = Summary(handmade({name: {"a": [0.5], "b": [0.4]} for name in names}, folds=[1]))
    assert list(summary.labels.values()) == ["map", "ndcg@10(dialect=letor4)", "ndcg@10"]


class TestPrinting:
    """What ``print`` shows of results and comparisons; ``repr`` is one short line."""

    values = np.array([[0.5, 0.25, 0.0, 1.0], [0.75, 0.5, 0.25, 1.0]])

    def test_results_are_a_table_of_means_with_the_best_first(self):
        queries = rw.Queries.from_arrays(np.zeros((8, 1)), [1, 0] * 4, group=[2] * 4)
        good, bad = queries.y, -queries.y
        results = rw.compare_scores({"bad": bad, "good": good}, queries, "ndcg@1,mrr", name="Toy")
        lines = str(results).splitlines()
        assert lines[0] == "Toy: means over 4 test queries, the best ndcg@1 first; ± is its standard error."
        assert [line.split() for line in lines[2:5]] == [
            ["method", "ndcg@1", "mrr", "±", "ndcg@1"],
            ["good", "1.0000*", "1.0000*", "0.0000"],
            ["bad", "0.0000", "0.5000", "0.0000"],
        ]
        assert repr(results) == "Results(Toy: bad, good; 1 fold, 4 test queries)"

    def test_comparisons_are_the_table_of_the_command_line(self):
        found = compare(dict(zip("ab", self.values, strict=True)))
        lines = str(found).splitlines()
        assert lines[0] == "The second method minus the first, paired by query."
        names = "first second difference low high wins ties losses p randomisation p t p Wilcoxon effect queries"
        assert lines[2].split() == names.split()
        assert lines[3].split()[:3] == ["a", "b", "+0.1875"]
        assert lines[3].split()[5:8] == ["3", "1", "0"]
        assert str(found[0]) == str(found)
        assert repr(found) == "Comparisons(b - a)"
        assert str(compare({"a": self.values[0]})).startswith("The second method")
