"""Plots as functions: what they draw, their titles and axes, and what they refuse."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import rankwright as rw
from rankwright.experiments import experiment_from_json

HOSTILE = "<b>x</b>"
QUERIES = rw.make_queries(45, n_docs=8, n_features=5, random_state=0)
TRAIN, VALID = QUERIES.take(range(30)), QUERIES.take(range(30, 45))


@pytest.fixture(scope="module")
def trees():
    return rw.LambdaMART(n_estimators=8, num_leaves=4).fit(TRAIN, valid=VALID)


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    folder = tmp_path_factory.mktemp("plots")
    rw.write_letor(QUERIES, folder / "data.txt")
    methods = [{"ranker": "regression", "name": HOSTILE}, {"ranker": "singlefeature"}, {"ranker": "adarank"}]
    content = {"name": "Three", "data": {"file": "data.txt", "n_folds": 3}, "methods": methods}
    return rw.run_experiment(experiment_from_json(content, Path(folder)), folder / "out", rw.Threads(1))


@pytest.fixture(scope="module")
def found(trees):
    linear = rw.Regression().fit(TRAIN)
    return {name: rw.evaluate(each, VALID, ["ndcg@10", "map"]) for name, each in (("a", trees), (HOSTILE, linear))}


def describe(figure) -> tuple[str, str, str]:
    layout = figure.layout
    return layout.title.text, layout.xaxis.title.text, layout.yaxis.title.text


class TestLearningCurve:
    def test_lines_and_the_model(self, trees):
        for fitted in (trees, trees.to_model()):
            figure = rw.plot.learning_curve(fitted)
            assert describe(figure) == ("LambdaMART: ndcg@10 by round of training", "round", "ndcg@10")
            train, valid, model = figure.data
            assert [train.name, valid.name, model.name] == ["training queries", "validation queries", "the model"]
            assert list(valid.x) == list(range(1, 9))
            assert list(valid.y) == [row["valid"] for row in trees.history_]
            assert list(train.y) == [row["train"] for row in trees.history_]
            kept = next(row for row in trees.history_ if row.get("kept"))
            assert (model.x[0], model.y[0]) == (kept["round"], kept["valid"])

    def test_without_validation_the_training_line_has_the_model(self):
        train, model = rw.plot.learning_curve(rw.AdaRank().fit(TRAIN)).data
        assert model.y[0] in train.y

    def test_restarts_have_lines_and_steps(self):
        ranker = rw.DirectRank(n_restarts=2).fit(TRAIN, valid=VALID)
        figure = rw.plot.learning_curve(ranker)
        assert figure.layout.xaxis.title.text == "step"
        lines = [trace for trace in figure.data if trace.name == "validation queries"]
        assert len(lines) == 2
        assert [bool(line.showlegend) for line in lines] == [True, False]
        assert sum(len(line.y) for line in lines) == len(ranker.history_)
        assert all(list(line.x) == list(range(len(line.x))) for line in lines)

    def test_what_has_no_curve_is_refused(self):
        with pytest.raises(rw.InputError, match="expected a fitted ranker or a Model"):
            rw.plot.learning_curve([1, 2])
        model = rw.Model("LightGBM", {}, "map", rw.Regression().fit(TRAIN).scorer_, 5)
        with pytest.raises(rw.InputError, match="no record of its training"):
            rw.plot.learning_curve(model)


class TestImportance:
    def test_permutation(self, trees):
        found = rw.permutation_importance(trees, VALID, n_repeats=3)
        [bars] = (figure := rw.plot.importance(found)).data
        assert describe(figure) == ("Fall of ndcg@10 when a feature is shuffled", "fall of ndcg@10", "feature")
        assert list(bars.x) == sorted(found.means, reverse=True)
        assert bars.y[0] == found.features[int(np.argmax(found.means))]
        assert max(bars.error_x.array) == found.falls.std(axis=1).max()

    def test_models(self, trees):
        explained = rw.explain(trees)
        for given in (trees, trees.to_model(), explained):
            [bars] = (figure := rw.plot.importance(given, 2)).data
            assert describe(figure)[1] == "gain"
            assert list(zip(bars.y, bars.x, strict=True)) == [(part.name, part.gain) for part in explained][:2]
            assert describe(figure)[0].endswith(f", the first 2 of {len(explained)}")
        ranker = rw.Regression().fit(TRAIN)
        [bars] = rw.plot.importance(ranker).data
        assert sorted(bars.x) == pytest.approx(sorted(ranker.coef_))  # with their signs

    def test_wrong_input(self, trees):
        with pytest.raises(rw.InputError, match="n_features=0"):
            rw.plot.importance(trees, 0)


class TestPerQuery:
    def test_one_is_a_histogram(self, found):
        [bars] = (figure := rw.plot.per_query(found["a"], "map")).data
        assert sorted(bars.x) == sorted(found["a"].per_query["map"])
        title, *axes = describe(figure)
        assert axes == ["map", "queries"]
        assert f"15 queries, mean {found['a']['map']:.4f}" in title
        assert figure.layout.shapes[0].x0 == found["a"]["map"]

    def test_two_are_points(self, found):
        _, points = (figure := rw.plot.per_query(found)).data
        x, y = (each.per_query["ndcg@10"] for each in found.values())
        assert (list(points.x), list(points.y)) == (list(x), list(y))
        assert list(points.text) == list(map(str, VALID.qid))
        title, *axes = describe(figure)
        assert axes == ["ndcg@10 of a", "ndcg@10 of &lt;b&gt;x&lt;/b&gt;"]
        wins, losses = (y > x + 1e-9).sum(), (y < x - 1e-9).sum()
        assert f"better on {wins} of 15 queries and worse on {losses}" in title

    def test_more_are_boxes(self, results):
        boxes = rw.plot.per_query(results).data
        assert [box.name for box in boxes] == ["&lt;b&gt;x&lt;/b&gt;", "SingleFeature", "AdaRank"]
        assert [np.mean(box.y) for box in boxes] == pytest.approx(np.nanmean(results.values(), axis=1))

    def test_wrong_input(self, found):
        with pytest.raises(rw.InputError, match="expected Evaluations, as of"):
            rw.plot.per_query([0.1, 0.2])
        with pytest.raises(rw.InputError, match=r"err@20.* was not evaluated for a; there are ndcg@10, map"):
            rw.plot.per_query(found, "err@20")
        other = rw.evaluate(VALID.X[:, 0], VALID, "ndcg@10")
        fewer = rw.evaluate(VALID.take(range(5)).X[:, 0], VALID.take(range(5)), "ndcg@10")
        with pytest.raises(rw.InputError, match="b has other queries than a"):
            rw.plot.per_query({"a": other, "b": fewer})


class TestCostQuality:
    def test_points_and_the_frontier(self, results):
        line, *points = (figure := rw.plot.cost_quality(results)).data
        assert describe(figure)[1:] == ("seconds to train one model, log scale", "ndcg@10")
        assert figure.layout.xaxis.type == "log"
        assert [point.y[0] for point in points] == results.means().tolist()
        assert [point.error_y.array[0] for point in points] == pytest.approx(results.errors())
        assert line.y[-1] == max(results.means())
        assert describe(rw.plot.cost_quality(results, "scoring"))[1].startswith("milliseconds")

    def test_wrong_input(self, results, trees):
        with pytest.raises(rw.InputError, match=r"cost='scorin'.*scoring"):
            rw.plot.cost_quality(results, "scorin")
        with pytest.raises(rw.InputError, match="expected Results"):
            rw.plot.cost_quality(trees)
        with pytest.raises(rw.InputError, match="expected the results of an experiment"):
            rw.plot.cost_quality(rw.compare_scores({"a": trees}, VALID))


def test_equal_input_gives_equal_figures(trees, results):
    for draw in (lambda: rw.plot.learning_curve(trees), lambda: rw.plot.cost_quality(results)):
        assert draw().to_json() == draw().to_json()


def test_plotly_is_imported_when_a_plot_is_drawn():
    code = "import sys, rankwright as rw; rw.plot; print('plotly' in sys.modules)"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout == "False\n"


class TestExamination:
    def test_lines_and_intervals(self):
        log = rw.simulate_clicks(QUERIES, QUERIES.X[:, 0], swaps="all", n_positions=4, n_sessions=5_000, random_state=0)
        found = rw.estimate_examination(log)
        figure = rw.plot.examination(found, log.truth.examination, names=["found", HOSTILE])
        ours, truth = figure.data
        assert describe(figure)[1:] == ("position", "examination")
        assert (ours.name, list(ours.x), list(ours.y)) == ("found", [1, 2, 3, 4], found.probability.tolist())
        assert list(ours.error_y.array) == (found.high - found.probability).tolist()
        assert list(ours.error_y.arrayminus) == (found.probability - found.low).tolist()
        assert truth.error_y.array is None
        assert HOSTILE not in figure.to_json()

    def test_positions_that_are_not_known_are_left_out(self):
        [line] = rw.plot.examination(rw.Examination(np.array([1.0, np.nan, 0.2]))).data
        assert list(line.x) == [1, 3]

    def test_errors(self):
        for given, options in (((), {}), (([1.0],), {}), ((rw.Examination.from_power(1, 2),), {"names": ["a", "b"]})):
            with pytest.raises(rw.InputError, match="expected one"):
                rw.plot.examination(*given, **options)
