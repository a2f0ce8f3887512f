"""A difference of two methods is one number, wherever it is shown."""

from __future__ import annotations

import csv
import dataclasses
import io
from itertools import combinations

import numpy as np
import pytest
from tests.results import simulated

from rankwright.analysis.results import Results
from rankwright.basics.aligned_tables import format_aligned
from rankwright.basics.number_texts import format_signed
from rankwright.cli.demo import _describe_comparisons
from rankwright.papers.reproduction import tabulate_t_tests
from rankwright.report.sections.duels_section import DUELS
from rankwright.report.sections.results_section import RESULTS
from rankwright.report.sections.significance_section import SIGNIFICANCE
from rankwright.report.summary import Summary
from rankwright.report.text_tables import format_csv, make_comparison_table, make_results_json

MEASURES = ("ndcg@10", "map(empty=skip)", "p@5")


@pytest.fixture(scope="module", params=["weighted", "not weighted"])
def results(request: pytest.FixtureRequest) -> Results:
    """Folds of different sizes, two seeds, weights of which one is 0, and a measure that skips queries."""
    found = simulated(4, 14, n_folds=4, n_seeds=2, measures=MEASURES, measure="ndcg@10")
    weight = np.random.default_rng(1).integers(0, 9, 14) / 4.0 if request.param == "weighted" else np.ones(14)
    weight[3] *= 0.0 if request.param == "weighted" else 1.0
    values = dict(found.tables["values"])
    values["map(empty=skip)"] = np.where(values["query"] == 5, np.nan, values["map(empty=skip)"])
    tables = {**found.tables, "queries": {**found.tables["queries"], "weight": weight}, "values": values}
    return dataclasses.replace(found, tables=tables)


def differences(results: Results, measure: str) -> dict[tuple[str, str], float]:
    """By two methods the difference of their means: over seeds, by weight over a fold's queries, over folds."""
    table, queries = results.tables["values"], results.tables["queries"]
    means = []
    for method in range(len(results.methods)):
        of_folds = []
        for fold in np.unique(queries["fold"]):
            rows = (table["method"] == method) & (queries["fold"][table["query"]] == fold) & ~np.isnan(table[measure])
            of_folds.append(np.average(table[measure][rows], weights=queries["weight"][table["query"][rows]]))
        means.append(np.mean(of_folds))
    pairs = combinations(range(len(means)), 2)
    return {(results.methods[a], results.methods[b]): means[b] - means[a] for a, b in pairs}


@pytest.mark.parametrize("measure", MEASURES)
def test_a_difference_is_the_difference_of_the_means(results, measure):
    expected, means = differences(results, measure), dict(zip(results.methods, results.means(measure), strict=True))
    for found in results.compare(measure):
        pair = found.first, found.second
        assert found.difference == pytest.approx(expected[pair], abs=1e-11)
        assert means[found.second] - means[found.first] == pytest.approx(expected[pair], abs=1e-11)


@pytest.mark.parametrize("measure", MEASURES)
def test_the_page_shows_one_difference_and_one_count_of_wins(results, measure):
    summary = Summary(results)
    duel = DUELS.build(summary).blocks[0].to_json()
    shown = dict(SIGNIFICANCE.build(summary).blocks[0].options)
    matrix, pairs = (dict(shown[name].options)[summary.labels[measure]] for name in ("matrix", "every pair"))
    assert len(pairs.rows) == 6
    places = {column.name: i for i, column in enumerate(pairs.columns)}
    in_matrix = {
        (row.cells[0], column.method): cell.text
        for row in matrix.rows
        for column, cell in zip(matrix.columns[1:], row.cells[1:], strict=True)
    }
    for row in pairs.rows:
        first, second, difference = row.cells[:3]
        wins, ties, losses = (row.cells[places[name]] for name in ("wins", "ties", "losses"))
        assert in_matrix.get((second, first)) == difference.text or in_matrix[first, second] == format_signed(
            -difference.value
        )
        a, b = duel["methods"].index(first), duel["methods"].index(second)
        tallies = duel["tallies"][duel["measures"].index(summary.labels[measure])]
        assert difference.text == format_signed(differences(results, measure)[first, second])
        assert tallies[a][b] == [wins, ties, losses, difference.text]
        assert tallies[b][a] == [losses, ties, wins, format_signed(-difference.value)]


@pytest.mark.parametrize("measure", MEASURES)
def test_differences_from_the_best_are_the_same(results, measure):
    summary, expected = Summary(results), differences(results, measure)
    shown = dict(RESULTS.build(summary).blocks[-2].options)["differences from the best"]
    column = 1 + 2 * summary.measures.index(measure)
    best = next(row.cells[0] for row in shown.rows if row.cells[column].text == "best")
    for row in shown.rows:
        if row.cells[0] != best:
            pair = (best, row.cells[0])
            value = expected[pair] if pair in expected else -expected[pair[::-1]]
            assert row.cells[column].text == format_signed(value)


def test_tables_texts_and_json_have_the_same_difference(results):
    expected, summary = differences(results, results.measure), Summary(results)
    told = _describe_comparisons(results, results.methods[0]).splitlines()
    written = list(csv.DictReader(io.StringIO(format_csv(make_comparison_table(summary)))))
    tests = [row.split()[:3] for row in format_aligned(tabulate_t_tests(summary, results.measure)).splitlines()]
    for (first, second), value in expected.items():
        [row] = [row for row in written if (row["first"], row["second"]) == (first, second)]
        [found] = [f for f in make_results_json(results)["tests"] if (f["first"], f["second"]) == (first, second)]
        assert float(row["difference"]) == found["difference"] == pytest.approx(value, abs=1e-11)
        assert [first, second, format_signed(value)] in tests
        if first == results.methods[0]:
            assert any(line.startswith(f"{second} against {first}: {format_signed(value)} [") for line in told)


def test_a_query_without_weight_is_no_pair(results):
    weight = results.tables["queries"]["weight"]
    assert {found.n for found in results.compare()} == {int(np.count_nonzero(weight))}
