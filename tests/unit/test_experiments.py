"""Experiments: the protocol, resuming, failing, and what is refused."""

from __future__ import annotations

import json
import re
import shutil
import sqlite3
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from datetime import date

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from tests.conftest import ROOT
from tests.experiments import contents
from tests.warned import may_not_converge

import rankwright as rw
from rankwright.analysis import results as results_module
from rankwright.basics import progress
from rankwright.data.folds import Fold
from rankwright.experiments import experiment_from_json
from rankwright.experiments import experiment_run as running
from rankwright.experiments.storage import locking
from rankwright.experiments.storage.salvaging import open_store
from rankwright.experiments.storage.schema import FILE, decode_table, encode_table
from rankwright.experiments.tables import trial_tables

ALPHAS = [0.01, 1.0, 1000.0]


@pytest.fixture(scope="module")
def queries():
    return rw.make_queries(60, n_docs=12, n_features=8, noise=1.5, random_state=5)


@pytest.fixture(scope="module")
def file(queries, tmp_path_factory):
    path = tmp_path_factory.mktemp("data") / "all.txt"
    rw.write_letor(queries, path)
    return path


def spec(file, **changes):
    content = {
        "data": {"file": str(file), "n_folds": 3, "seed": 1},
        "measure": "ndcg@5",
        "measures": ["ndcg@5", "map", "mrr(empty=skip)"],
        "methods": [
            {"ranker": "regression", "grid": {"alpha": ALPHAS}},
            {"ranker": "adarank", "name": "Boosted", "measure": "map", "set": {"n_estimators": 15}},
            {"ranker": "singlefeature"},
        ],
    }
    return experiment_from_json(content | changes, file.parent)


@pytest.fixture(scope="module")
def done(file, tmp_path_factory):
    folder = tmp_path_factory.mktemp("done")
    return folder, rw.run_experiment(spec(file), folder, rw.Serial())


class TestProtocol:
    def test_equals_selecting_and_evaluating_by_hand(self, file, done):
        results = done[1]
        folds = rw.split_folds(rw.read_letor(file), 3, 1)
        for column, (train, valid, test) in enumerate(folds):
            fitted = [
                rw.select(rw.Regression(), {"alpha": ALPHAS}, train, valid, measure="ndcg@5"),
                rw.AdaRank(measure="map", n_estimators=15).fit(train, valid=valid),
                rw.SingleFeature(measure="ndcg@5").fit(train, valid=valid),
            ]
            for row, ranker in enumerate(fitted):
                found = rw.evaluate(ranker, test, results.measures)
                inside = results.tables["queries"]["fold"] == column + 1
                assert results.tables["queries"]["qid"][inside].tolist() == [str(q) for q in test.qid]
                for name, values in found.per_query.items():
                    np.testing.assert_array_equal(results.values(name)[row, inside], values)
                    assert results.fold_means(name)[row, column] == pytest.approx(found[name], abs=1e-15)
        assert results.methods == ("Regression", "Boosted", "SingleFeature")
        np.testing.assert_allclose(results.means("map"), results.fold_means("map").mean(axis=1))

    def test_every_trial_is_told(self, done):
        trials = done[1].tables["trials"]
        assert len(trials["method"]) == 3 * (len(ALPHAS) + 1 + 1)
        assert [json.loads(text)["alpha"] for text in trials["params"][:3]] == ALPHAS
        assert (trials["status"] == "done").all()
        assert (trials["seconds"] > 0).all()
        for method in range(3):
            for fold in (1, 2, 3):
                group = (trials["method"] == method) & (trials["fold"] == fold)
                assert trials["chosen"][group].sum() == 1
                assert np.argmax(trials["valid"][group]) == np.argmax(trials["chosen"][group])

    def test_of_equals_the_first_is_chosen(self, file, tmp_path):
        methods = [{"ranker": "regression", "grid": {"alpha": [1.0, 1.0, 1.0]}}]
        results = rw.run_experiment(spec(file, methods=methods), tmp_path, rw.Serial())
        assert results.tables["trials"]["chosen"].tolist() == [True, False, False] * 3

    def test_the_documented_queries_work(self, done):
        folder, results = done
        text = (ROOT / "docs" / "experiments.md").read_text()
        statements = re.search(r"```sql\n(.*?)```", text, re.DOTALL)[1].replace("ndcg@10", "ndcg@5")
        with closing(sqlite3.connect(folder / FILE)) as connection:
            found = [connection.execute(line.partition(";")[0]).fetchall() for line in statements.splitlines()]
        assert dict(found[0])["Boosted"] == pytest.approx(np.nanmean(results.values()[1]))
        assert len(found[1]) == 5
        assert len(found[2]) == 9

    def test_models_can_be_taken_out(self, file, done):
        folder, _ = done
        train, valid, test = rw.split_folds(rw.read_letor(file), 3, 1)[1]
        model = rw.read_trial_model(folder, "Boosted", fold=2)
        expected = rw.AdaRank(measure="map", n_estimators=15).fit(train, valid=valid)
        np.testing.assert_array_equal(model.predict(test), expected.predict(test))
        with pytest.raises(rw.InputError, match=r"no model of 'Bosted'; did you mean Boosted\?"):
            rw.read_trial_model(folder, "Bosted")
        with pytest.raises(rw.InputError, match="on fold 9"):
            rw.read_trial_model(folder, "Boosted", fold=9)

    def test_a_measure_that_skips_is_missing(self, done):
        results = done[1]
        relevant = dict.fromkeys(results.tables["documents"]["query"].tolist(), 0.0)
        for query, grade in zip(
            results.tables["documents"]["query"], results.tables["documents"]["grade"], strict=True
        ):
            relevant[query] = max(relevant[query], grade)
        empty = np.array([grade == 0 for grade in relevant.values()])
        assert empty.any()
        np.testing.assert_array_equal(np.isnan(results.values("mrr(empty=skip)")), np.tile(empty, (3, 1)))

    def test_seeds_only_where_they_make_a_difference(self, file, tmp_path):
        results = rw.run_experiment(spec(file, seeds=[4, 5]), tmp_path, rw.Serial())
        assert set(results.tables["trials"]["seed"]) == {0}

    def test_unknown_measure(self, done):
        with pytest.raises(rw.InputError, match="ndcg@7 was not measured"):
            done[1].values("ndcg@7")


class TestArtefacts:
    def test_tables(self, done):
        tables = done[1].tables
        assert {"curve", "history", "weights", "pairs", "scores", "documents"} <= set(tables)
        for table in tables.values():
            assert len({len(column) for column in table.values()}) == 1
        assert set(tables["weights"]["method"]) == {0, 1}  # the single feature has no weights
        assert (np.isnan(tables["history"]["alpha"]) == (tables["history"]["method"] != 1)).all()
        at_five = tables["curve"]["k"] == 5
        np.testing.assert_allclose(tables["curve"]["value"][at_five].reshape(3, 3), done[1].fold_means("ndcg@5").T)

    def test_pairs_are_counted_one_by_one(self, queries):
        scores = np.round(np.random.default_rng(0).normal(size=queries.n_docs), 1)  # with ties
        trained = trial_tables.TrainedRanker(None, rw.split_folds(queries, 3)[0]._replace(test=queries), scores, {})
        table = trial_tables.tabulate_pairs(trained)
        counts = {}
        for rows in queries:
            y, s = queries.y[rows], scores[rows]
            for i in range(len(y)):
                for j in range(len(y)):
                    if y[i] > y[j]:
                        count = counts.setdefault((y[i], y[j]), np.zeros(3))
                        count += (s[i] > s[j], s[i] == s[j], 1)
        assert [(h, l) for h, l in zip(table["high"], table["low"], strict=True)] == [(2, 1), (2, 0), (1, 0)]
        for row, key in enumerate(zip(table["high"], table["low"], strict=True)):
            assert [table[name][row] for name in ("right", "tied", "total")] == counts[key].tolist()
        assert results_module.count_pairs(queries).sum() == table["total"].sum()

    def test_effects_are_weights_on_one_scale(self, queries):
        fold = rw.split_folds(queries, 3)[0]
        ranker = rw.Regression().fit(fold.train)
        table = trial_tables.tabulate_weights(trial_tables.TrainedRanker(ranker, fold, np.zeros(1), {}))
        np.testing.assert_allclose(table["effect"], ranker.coef_ * fold.train.X.astype(float).std(axis=0), rtol=1e-6)

    def test_only_grades_alike(self):
        queries = rw.Queries.from_arrays([[1.0], [2.0]], [1, 1], group=[2])
        fold = Fold(queries, queries, queries)
        table = trial_tables.tabulate_pairs(trial_tables.TrainedRanker(None, fold, np.zeros(2), {}))
        assert all(len(column) == 0 for column in table.values())

    def test_tables_survive_text(self):
        table = {"a": np.array([1.5, np.nan]), "b": np.array(["x", "é"]), "n": np.array([1, 2])}
        back = decode_table(encode_table(table))
        assert back["n"].dtype.kind == "i"
        assert back["b"].tolist() == ["x", "é"]
        np.testing.assert_array_equal(back["a"], table["a"])

    @pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int64, ">f8"])
    def test_long_columns_survive_text(self, dtype):
        column = np.arange(1000).astype(dtype) / (7 if np.dtype(dtype).kind == "f" else 1)
        column = column.astype(dtype)
        if column.dtype.kind == "f":
            column[5] = np.nan
        back = decode_table(encode_table({"a": column}))["a"]
        np.testing.assert_array_equal(back, column)
        assert (back.dtype.kind, back.dtype.itemsize) == (column.dtype.kind, column.dtype.itemsize)

    def test_many_documents_are_not_kept_one_by_one(self, file, tmp_path, monkeypatch):
        monkeypatch.setattr(results_module, "MOST_DOCUMENTS", 10)
        tables = rw.run_experiment(spec(file), tmp_path, rw.Serial()).tables
        assert "documents" not in tables
        assert "scores" not in tables


class TestWhereItRuns:
    @pytest.mark.parametrize("workers", [2, rw.Threads(2), "executor", "dask"])
    def test_the_results_are_the_same(self, file, done, tmp_path, workers):
        if workers == "executor":
            with ThreadPoolExecutor(2) as pool:
                rw.run_experiment(spec(file), tmp_path, pool)
        elif workers == "dask":
            distributed = pytest.importorskip("distributed")
            cluster = distributed.LocalCluster(1, threads_per_worker=1, processes=False, dashboard_address=":0")
            with cluster, distributed.Client(cluster) as client:
                rw.run_experiment(spec(file), tmp_path, client)
        else:
            rw.run_experiment(spec(file), tmp_path, workers)
        assert contents(tmp_path) == contents(done[0])
        if workers == 2:
            trials = rw.read_results(tmp_path).tables["trials"]
            assert (trials["memory_peak"] >= trials["memory_start"]).all()
            assert (trials["memory_start"] > 1e7).all()

    def test_a_measure_of_ones_own(self, file, tmp_path):
        rw.make_measure(lambda grades: float(grades[0] > 0), name="first_is_relevant")
        planned = spec(file, measure="first_is_relevant", measures=["p@1"])
        with pytest.raises(rw.InputError, match="first_is_relevant is a measure of your own"):
            rw.run_experiment(planned, tmp_path / "a", 2)
        results = rw.run_experiment(planned, tmp_path / "b", rw.Serial())
        np.testing.assert_array_equal(results.values("first_is_relevant"), results.values("p@1"))


def spec_of_trees(file):
    """Every ranker of trees: tables as parameters, and a grid of them."""
    small = {"n_estimators": 4, "min_child_samples": 3}
    methods = [
        {
            "ranker": "lambdamart",
            "set": small,
            "grid": {"num_leaves": [2, 6], "lightgbm_params": [{}, {"lambda_l2": 5.0}]},
        },
        {
            "ranker": "lambda-mart",
            "name": "Native",
            "set": {**small, "lambdas": "lightgbm", "lightgbm_params": {"max_depth": 2}},
        },
        {"ranker": "mart", "set": {**small, "n_estimators": 9, "early_stopping_rounds": 2, "polish_rounds": 1}},
        {"ranker": "directrank-trees", "set": {**small, "weight_range": [0.2, 0.4]}, "grid": {"polish_rounds": [0, 2]}},
        {"ranker": "boostedtrees", "set": {**small, "objective": "fidelity", "lightgbm_params": RANDOM_TREES}},
    ]
    return spec(file, methods=methods, measures=["ndcg@5", "map"], data={"file": str(file), "n_folds": 3, "seed": 1})


RANDOM_TREES = {"bagging_fraction": 0.6, "bagging_freq": 1, "feature_fraction": 0.7}


class TestTrees:
    @pytest.fixture(scope="class")
    @classmethod
    def done(cls, file, tmp_path_factory):
        folder = tmp_path_factory.mktemp("trees")
        return folder, rw.run_experiment(spec_of_trees(file), folder, rw.Serial())

    def test_equals_selecting_and_evaluating_by_hand(self, file, done):
        small = {"n_estimators": 4, "min_child_samples": 3, "measure": "ndcg@5"}
        leaves = {"num_leaves": [2, 6], "lightgbm_params": [{}, {"lambda_l2": 5.0}]}
        for column, (train, valid, test) in enumerate(rw.split_folds(rw.read_letor(file), 3, 1)):
            for row, (ranker, grid) in enumerate(
                [
                    (rw.LambdaMART(**small), leaves),
                    (rw.LambdaMART(**small, lambdas="lightgbm", lightgbm_params={"max_depth": 2}), {}),
                    (rw.MART(**small | {"n_estimators": 9}, early_stopping_rounds=2, polish_rounds=1), {}),
                    (rw.DirectRankTrees(**small, weight_range=(0.2, 0.4)), {"polish_rounds": [0, 2]}),
                    (rw.BoostedTrees(**small, objective="fidelity", lightgbm_params=RANDOM_TREES), {}),
                ]
            ):
                found = rw.evaluate(rw.select(ranker, grid, train, valid), test, "map").per_query["map"]
                inside = done[1].tables["queries"]["fold"] == column + 1
                np.testing.assert_array_equal(done[1].values("map")[row, inside], found)
                model = rw.read_trial_model(done[0], done[1].methods[row], fold=column + 1)
                np.testing.assert_array_equal(rw.evaluate(model, test, "map").per_query["map"], found)

    @pytest.mark.parametrize("workers", [1, rw.Threads(3)])
    def test_the_results_are_the_same_anywhere(self, file, done, tmp_path, workers):
        """In another process, after OpenMP has run in this one; and in threads side by side."""
        rw.run_experiment(spec_of_trees(file), tmp_path, workers)
        assert contents(tmp_path) == contents(done[0])

    def test_cut_off_and_gone_on_with(self, file, done, tmp_path, monkeypatch):
        run, ran = running.run_trial, []

        def stop(task):
            if len(ran) == 11:
                raise KeyboardInterrupt
            ran.append(task.key)
            return run(task)

        monkeypatch.setattr(running, "run_trial", stop)
        with pytest.raises(KeyboardInterrupt):
            rw.run_experiment(spec_of_trees(file), tmp_path, rw.Serial())
        monkeypatch.setattr(running, "run_trial", lambda task: ran.append(task.key) or run(task))
        rw.run_experiment(spec_of_trees(file), tmp_path, rw.Serial())
        assert len(ran) == len(set(ran)) == 3 * (4 + 1 + 1 + 2 + 1)
        assert contents(tmp_path) == contents(done[0])

    def test_the_report_builds(self, done, tmp_path):
        rw.write_report(done[1], tmp_path)
        page = (tmp_path / "report.html").read_text()
        for method in ("LambdaMART", "Native", "MART", "DirectRankTrees", "BoostedTrees"):
            assert method in page

    @pytest.mark.parametrize(
        ("method", "message"),
        [
            ({"ranker": "lambdamart", "set": {"lightgbm_params": {"num_leaves": 3}}}, "lightgbm_params has 'num_leaves'; .*num_leaves"),
            ({"ranker": "lambdamart", "set": {"lightgbm_params": 5}}, "lightgbm_params=5; expected a mapping"),
            ({"ranker": "lambdamart", "set": {"num_leaves": 1}}, "num_leaves=1; expected a whole number of at least 2"),
            ({"ranker": "directranktrees", "set": {"weight_range": [0.5, 0.1]}}, "0 < low <= high"),
            ({"ranker": "lambdamart", "measure": "map", "set": {"lambdas": "lightgbm"}}, "LightGBM has NDCG alone"),
        ],
    )  # fmt: skip
    def test_mistakes(self, file, tmp_path, method, message):
        """They are noticed before anything is created, wherever they are in a grid."""
        name, value = next(iter(method["set"].items()))
        tried = {"ranker": "mart", "name": "Other"}
        with pytest.raises(rw.InputError, match=message):
            rw.run_experiment(spec(file, methods=[tried, method]), tmp_path / "out", rw.Serial())
        grid = {
            **method,
            "set": {},
            "grid": {name: [rw.rankers.find_ranker(method["ranker"])().get_params()[name], value]},
        }
        with pytest.raises(rw.InputError, match=message):
            rw.run_experiment(spec(file, methods=[grid]), tmp_path / "out", rw.Serial())
        assert not (tmp_path / "out").exists()

    def test_a_blend_is_chosen_by_its_own_estimate(self):
        rw.Method("blend", measure="ndcg@10").check_candidates("ndcg@10")
        rw.Method("mart", measure="map").check_candidates("ndcg@10")
        with pytest.raises(rw.InputError, match="blend: measure='map'; expected 'ndcg@10', that of the experiment"):
            rw.Method("blend", name="blend", measure="map").check_candidates("ndcg@10")

    def test_checking_ten_thousand_candidates_takes_no_time(self, file):
        grid = {"learning_rate": [i / 100 for i in range(1, 101)], "num_leaves": [*range(2, 102)]}
        method = rw.Method("lambdamart", grid=grid)
        start = time.process_time()
        method.check_candidates("ndcg@10")
        assert time.process_time() - start < 10.0

    @pytest.mark.parametrize(
        ("method", "message"),
        [
            ({"ranker": "mart", "set": {"weight_range": [0.1, 0.2]}}, "MART has no parameter 'weight_range'"),
            ({"ranker": "mart", "grid": {"lightgbm_params": {"lambda_l2": [1.0, 2.0]}}}, "grid.lightgbm_params is .*; expected a list of values"),
            ({"ranker": "mart", "grid": {"num_leaves": 4}}, "grid.num_leaves is 4; expected a list of values"),
        ],
    )  # fmt: skip
    def test_specs_that_are_none(self, file, method, message):
        with pytest.raises(rw.InputError, match=message):
            spec(file, methods=[method])


class TestSources:
    def test_python_objects(self, queries, tmp_path):
        methods = [rw.Method.from_ranker(rw.Regression(alpha=3.0, measure="map")), "singlefeature"]
        whole = rw.run_experiment(rw.Experiment(queries, methods, "map"), tmp_path / "a", rw.Serial())
        folds = rw.split_folds(queries, 5, 0)
        cut = rw.run_experiment(rw.Experiment(list(folds), methods, "map"), tmp_path / "b", rw.Serial())
        expected = [rw.Regression(alpha=3.0, measure="map").fit(f.train).score(f.test) for f in folds]
        np.testing.assert_allclose(whole.fold_means("map")[0], expected)
        np.testing.assert_array_equal(cut.values("map"), whole.values("map"))

    def test_string_ids_weights_and_names_survive(self, tmp_path):
        X = np.random.default_rng(0).normal(size=(40, 2))
        ids = np.repeat([f"q{i}" for i in range(10)], 4)
        weight = np.arange(1, 11)
        queries = rw.Queries.from_arrays(X, np.arange(40) % 3, ids, weight=weight, features=["bm25", "age"])
        results = rw.run_experiment(rw.Experiment(queries, ["regression"]), tmp_path, rw.Serial())
        assert set(results.tables["queries"]["qid"]) == set(ids)
        assert set(results.tables["weights"]["feature"]) == {"bm25", "age"}
        by_id = dict(zip(queries.qid, weight, strict=True))
        found = results.tables["queries"]
        assert [by_id[q] for q in found["qid"]] == found["weight"].tolist()
        values, fold = results.values()[0], found["fold"]
        expected = np.average(values[fold == 1], weights=found["weight"][fold == 1])
        assert results.fold_means()[0, 0] == pytest.approx(expected)

    def test_trec_runs(self, queries, tmp_path):
        for name, column in (("bm25", 0), ("dense", 2)):
            rw.write_run(queries, queries.X[:, column].astype(float), tmp_path / f"{name}.run")
        lines = [f"{q} 0 {d} {int(y)}\n" for q, d, y in zip(queries.row_qid, queries.docid, queries.y, strict=True)]
        (tmp_path / "qrels").write_text("".join(lines))
        data = {"qrels": "qrels", "runs": ["bm25.run", "dense.run"], "n_folds": 4}
        content = {"data": data, "methods": [{"ranker": "regression"}]}
        results = rw.run_experiment(experiment_from_json(content, tmp_path), tmp_path / "out", rw.Serial())
        assert set(results.tables["weights"]["feature"]) == {"bm25", "dense"}
        assert len(results.tables["queries"]["qid"]) == len(queries)

    def test_grades_are_measured_alike_on_every_fold(self, tmp_path):
        y = np.tile([0, 1, 0, 2], 15)
        y[3] = 4  # one document has a higher grade than all others
        queries = rw.Queries.from_arrays(np.random.default_rng(0).normal(size=(60, 2)), y, np.repeat(np.arange(15), 4))
        experiment = rw.Experiment(queries, ["regression"], "err@3(max=data)", "err@3(max=4)")
        results = rw.run_experiment(experiment, tmp_path, rw.Serial())
        np.testing.assert_array_equal(results.values("err@3(max=data)"), results.values("err@3(max=4)"))

    @pytest.mark.parametrize(
        ("given", "message"),
        [
            (dict(data=5), "data is a int; expected"),
            (dict(data=[]), "no folds"),
            (dict(data=[(1, 2)]), "expected folds of training, validation and test queries"),
            (dict(methods=[]), "no methods"),
            (dict(methods=[5]), "a method is 5"),
            (dict(methods="regresion"), r"unknown ranker 'regresion'; did you mean regression\?"),
            (dict(seeds=[]), "no seeds"),
            (dict(seeds=-1), "seeds=-1"),
        ],
    )
    def test_wrong_python_objects(self, queries, given, message):
        with pytest.raises(rw.InputError, match=message):
            rw.Experiment(**{"data": queries, "methods": ["regression"], **given})

    @may_not_converge
    def test_parameters_may_be_arrays(self, queries, tmp_path, monkeypatch):
        prior = np.linspace(-1, 1, 8)
        methods = [
            rw.DirectRank(prior=prior, alpha=0.1, n_restarts=1, max_iter=2),
            rw.Method("directrank", "Grid", params={"n_restarts": 1, "max_iter": 1}, grid={"prior": [prior, None]}),
            rw.Method("directrank", "Drawn", params={"max_iter": 1}, search=rw.RandomSearch(2, {"prior": {"choice": [prior]}})),
        ]  # fmt: skip
        planned = rw.Experiment(queries, methods)
        assert planned.methods[0].params["prior"] == prior.tolist()
        with pytest.warns(rw.TrialWarning, match="ConvergenceWarning"):
            found = rw.run_experiment(planned, tmp_path, rw.Serial())
        assert (found.tables["trials"]["status"] == "done").all()
        fold = rw.split_folds(queries, 5, 0)[0]
        with pytest.warns(ConvergenceWarning):
            ranker = clone(methods[0]).fit(fold.train, valid=fold.valid)
        expected = rw.evaluate(ranker, fold.test, "ndcg@10")["ndcg@10"]
        assert found.fold_means()[0, 0] == pytest.approx(expected, abs=1e-15)
        monkeypatch.setattr(running, "run_trial", None)  # everything is finished
        with pytest.warns(rw.TrialWarning):
            rw.run_experiment(rw.Experiment(queries, methods), tmp_path, rw.Serial())
        with pytest.raises(rw.InputError, match="the method 'DirectRank' was"):
            rw.run_experiment(rw.Experiment(queries, [rw.DirectRank(prior=prior + 1)]), tmp_path, rw.Serial())
        assert rw.Method.from_ranker(rw.DirectRank(prior=np.array(2.0))).params == {"prior": 2.0}

    def test_natural_python_objects(self, queries, file):
        planned = rw.Experiment(str(file), "regression, adarank", rw.NDCG(5), "ndcg@5, map", np.arange(2))
        assert [method.name for method in planned.methods] == ["Regression", "AdaRank"]
        assert planned.measures == ("ndcg@5", "map")
        assert planned.seeds == (0, 1)
        assert planned.data.files == [file]
        [method] = rw.Experiment(rw.split_folds(queries, 3)[0], [rw.AdaRank(n_estimators=7)]).methods
        assert (method.params, method.measure) == ({"n_estimators": 7}, None)  # it trains on the experiment's measure
        grid = rw.Method("regression", grid={"alpha": np.array([0.5, 1.0], dtype=np.float32)}).grid
        assert grid == {"alpha": [0.5, 1.0]}


class TestResuming:
    def test_finished_trials_are_not_run_again(self, file, done, tmp_path, monkeypatch):
        run = running.run_trial

        def stop_at_boosted(task):
            if task.key.method == "Boosted" and task.key.fold == 2:
                raise KeyboardInterrupt
            return run(task)

        monkeypatch.setattr(running, "run_trial", stop_at_boosted)
        with pytest.raises(KeyboardInterrupt):
            rw.run_experiment(spec(file), tmp_path, rw.Serial())
        before = rw.read_results(tmp_path)
        assert len(before.tables["trials"]["method"]) == 5 + 3
        assert before.unfinished == "unfinished: 8 of 15 trials, results on 2 of 3 folds"
        assert np.isnan(before.means()[1])
        ran = []
        monkeypatch.setattr(running, "run_trial", lambda task: ran.append(task.key) or run(task))
        rw.run_experiment(spec(file), tmp_path, rw.Serial())
        assert len(ran) == 15 - 8
        assert contents(tmp_path) == contents(done[0])
        ran.clear()
        rw.run_experiment(spec(file), tmp_path, rw.Serial())
        assert ran == []

    def test_methods_can_be_added_and_left_out(self, file, done, tmp_path, monkeypatch):
        methods = spec(file).to_json()["methods"]
        rw.run_experiment(spec(file, methods=methods[1:]), tmp_path, rw.Serial())
        run, ran = running.run_trial, []
        monkeypatch.setattr(running, "run_trial", lambda task: ran.append(task.key.method) or run(task))
        rw.run_experiment(spec(file), tmp_path, rw.Serial())
        assert set(ran) == {"Regression"}
        assert contents(tmp_path) == contents(done[0])
        assert rw.run_experiment(spec(file, methods=methods[:1]), tmp_path, rw.Serial()).methods == ("Regression",)

    @pytest.mark.parametrize(
        ("changes", "message"),
        [
            ({"measure": "map"}, "whose measure is ndcg@5, not map"),
            ({"measures": ["ndcg@5"]}, "whose measures is"),
            ({"methods": [{"ranker": "regression", "grid": {"alpha": [5.0]}}]}, "the method 'Regression' was"),
        ],
    )
    def test_another_experiment_is_refused(self, file, tmp_path, changes, message):
        rw.run_experiment(spec(file), tmp_path, rw.Serial())
        before = contents(tmp_path)
        with pytest.raises(rw.InputError, match=message):
            rw.run_experiment(spec(file, **changes), tmp_path, rw.Serial())
        assert contents(tmp_path) == before

    def test_other_data_are_refused(self, file, queries, tmp_path):
        methods = spec(file).to_json()["methods"]
        rw.run_experiment(spec(file, methods=methods[:1]), tmp_path, rw.Serial())
        rw.write_letor(queries.take(range(1, 60)), tmp_path / "other.txt")
        data = {"file": str(tmp_path / "other.txt"), "n_folds": 3, "seed": 1}
        with pytest.raises(rw.InputError, match=r"on other data \(fold 1 differs\)"):
            rw.run_experiment(spec(file, data=data), tmp_path, rw.Serial())

    @pytest.mark.parametrize("change", ["other file", "edited file", "other seed"])
    def test_other_data_are_refused_when_all_is_finished(self, queries, tmp_path, change):
        rw.write_letor(queries, tmp_path / "data.txt")
        rw.run_experiment(spec(tmp_path / "data.txt"), tmp_path / "out", rw.Serial())
        before, said = contents(tmp_path / "out"), rw.read_results(tmp_path / "out").name
        data = {"file": str(tmp_path / "data.txt"), "n_folds": 3, "seed": 2 if change == "other seed" else 1}
        if change != "other seed":
            data["file"] = str(tmp_path / ("data.txt" if change == "edited file" else "other.txt"))
            rw.write_letor(queries.take(range(59, -1, -1)), data["file"])
        planned = spec(
            tmp_path / "data.txt", data=data, name="Other", methods=[{"ranker": "regression", "name": "New"}]
        )
        with pytest.raises(rw.InputError, match="on other data"):
            rw.run_experiment(planned, tmp_path / "out", rw.Serial())
        assert contents(tmp_path / "out") == before
        assert rw.read_results(tmp_path / "out").name == said  # a refused run changes nothing

    def test_data_may_move(self, queries, tmp_path, monkeypatch):
        rw.write_letor(queries, tmp_path / "a.txt")
        rw.run_experiment(spec(tmp_path / "a.txt"), tmp_path / "out", rw.Serial())
        (tmp_path / "a.txt").rename(tmp_path / "b.txt")
        monkeypatch.setattr(running, "run_trial", None)
        rw.run_experiment(spec(tmp_path / "b.txt"), tmp_path / "out", rw.Serial())

    def test_published_figures_of_other_folds(self, queries, tmp_path):
        figure = rw.PublishedFigure("Regression", "ndcg@10", 0.5, by_fold=[0.4, 0.6])
        planned = rw.Experiment(queries, ["regression"], published=[figure])
        expected = "published: Regression, ndcg@10: by_fold has 2 figures; there are 5 folds"
        with pytest.raises(rw.InputError, match=expected):
            rw.run_experiment(planned, tmp_path / "out")

    def test_what_was_read_before_is_not_used(self, queries, tmp_path):
        methods = [rw.Method("regression")]
        for part in (range(30), range(30, 60)):
            rw.write_letor(queries.take(part), tmp_path / "data.txt")
            out = tmp_path / f"out{part[0]}"
            found = rw.run_experiment(rw.Experiment(tmp_path / "data.txt", methods), out, rw.Serial())
            assert set(found.tables["queries"]["qid"]) == {str(q) for q in queries.take(part).qid}

    def test_other_queries_in_python_are_refused(self, queries, tmp_path):
        rw.run_experiment(rw.Experiment(queries.take(range(30)), ["regression"]), tmp_path, rw.Serial())
        saved = sorted((tmp_path / "data").iterdir())
        with pytest.raises(rw.InputError, match="on other data"):
            rw.run_experiment(rw.Experiment(queries.take(range(30, 60)), ["regression"]), tmp_path, rw.Serial())
        assert sorted((tmp_path / "data").iterdir()) == saved

    def test_mistakes_can_be_corrected(self, file, tmp_path):
        def planned(alpha):
            return spec(file, methods=[{"ranker": "regression", "set": {"alpha": alpha}}])

        with pytest.raises(rw.InputError, match=r"Regression: alpha=-1\.0; expected a finite number of at least 0"):
            rw.run_experiment(planned(-1.0), tmp_path, rw.Serial())
        assert not list(tmp_path.iterdir())  # nothing was created
        results = rw.run_experiment(planned(1.0), tmp_path, rw.Serial())
        assert set(results.tables["trials"]["status"]) == {"done"}

    def test_a_second_process_is_refused(self, file, tmp_path):
        with open_store(tmp_path), pytest.raises(rw.InputError, match="another process is running this experiment"):
            rw.run_experiment(spec(file), tmp_path, rw.Serial())
        rw.run_experiment(spec(file), tmp_path, rw.Serial())

    def test_reading_sees_one_moment(self, file, tmp_path):
        """A reader in a thread of its own, while trials take the places of others."""
        methods = [{"ranker": "regression", "search": {"n_candidates": 40, "alpha": {"log_uniform": [1e-6, 1e3]}}}]
        stop, found = threading.Event(), []

        def look():
            while not stop.is_set():
                try:
                    found.append(rw.read_results(tmp_path).means())
                except Exception as error:
                    found.append(error)

        reader = threading.Thread(target=look)
        reader.start()
        try:
            rw.run_experiment(spec(file, methods=methods), tmp_path, rw.Serial())
        finally:
            stop.set()
            reader.join()
        wrong = [error for error in found if isinstance(error, Exception)]
        early = [error for error in wrong if "has not begun" in str(error) or "no results" in str(error)]
        assert set(map(repr, wrong)) == set(map(repr, early))
        assert len(wrong) < len(found)

    def test_it_can_be_read_while_it_runs(self, file, tmp_path, monkeypatch):
        run, seen = running.run_trial, []

        def look(task):
            if not seen:
                assert np.isnan(rw.read_results(tmp_path).means()).all()
                with pytest.raises(rw.InputError, match="nothing to report"):
                    rw.write_report(rw.read_results(tmp_path), tmp_path)
            seen.append(len(rw.read_results(tmp_path).tables["trials"]["method"]))
            return run(task)

        monkeypatch.setattr(running, "run_trial", look)
        rw.run_experiment(spec(file), tmp_path, rw.Serial())
        assert seen == list(range(15))


class TestWarnings:
    """Warnings of training are kept with the trial, and told once."""

    @pytest.mark.parametrize("workers", [rw.Serial(), 1])
    def test_they_are_kept(self, file, tmp_path, workers):
        methods = [
            {"ranker": "ranksvm", "grid": {"max_iter": [1, 500]}, "set": {"C": 10.0}},
            {"ranker": "regression"},
        ]
        match = r"3 of 9 trials issued warnings, \d of them chosen ones, such as RankSVM on fold \d: ConvergenceWarning: RankSVM did not converge: "  # fmt: skip
        with pytest.warns(rw.TrialWarning, match=match) as told:
            found = rw.run_experiment(spec(file, methods=methods), tmp_path, workers)
        assert len(told) == 1
        trials = found.tables["trials"]
        short = np.array([json.loads(text).get("max_iter") == 1 for text in trials["params"]])
        assert (short == (trials["warnings"] != "")).all()
        assert all("\n" not in text for text in trials["warnings"])
        rw.write_report(found, tmp_path)
        page = (tmp_path / "report.html").read_text()
        assert "3 trials issued warnings" in page
        assert "RankSVM did not converge" in page

    def test_without_any(self, done, tmp_path):
        assert (done[1].tables["trials"]["warnings"] == "").all()
        rw.write_report(done[1], tmp_path)
        assert "issued warnings" not in (tmp_path / "report.html").read_text()


class TestWaiting:
    """Another program that has the store open is waited for, and named."""

    @pytest.fixture
    def hurried(self, monkeypatch):
        monkeypatch.setattr(locking, "_SILENT", 0.3)
        monkeypatch.setattr(locking, "_LONGEST", 1.2)
        monkeypatch.setattr(locking, "_ONE_TRY", 0.05)

    @pytest.mark.parametrize("lock", ["EXCLUSIVE", "IMMEDIATE"])
    def test_it_is_told_who_is_waited_for(self, file, done, tmp_path, hurried, lock):
        shutil.copytree(done[0], tmp_path / "out")
        path, reports = tmp_path / "out" / FILE, []
        with closing(sqlite3.connect(path, isolation_level=None, check_same_thread=False)) as other:
            other.execute(f"BEGIN {lock}")
            timer = threading.Timer(0.7, other.execute, ["ROLLBACK"])
            timer.start()
            try:
                match = r"results\.sqlite: another program has it open; waiting for it"
                with pytest.warns(rw.StoreWarning, match=match), progress.listen(lambda *r: reports.append(r)):
                    rw.run_experiment(spec(file), tmp_path / "out", rw.Serial())
            finally:
                timer.join()
        assert contents(tmp_path / "out") == contents(done[0])
        waits = [(done_, total) for what, done_, total in reports if what == f"waiting for {path}"]
        assert waits[-1][0] == waits[-1][1]  # it ends

    def test_it_ends(self, file, done, tmp_path, hurried):
        shutil.copytree(done[0], tmp_path / "out")
        with closing(sqlite3.connect(tmp_path / "out" / FILE, isolation_level=None)) as other:
            other.execute("BEGIN EXCLUSIVE")
            start = time.monotonic()
            for call in (lambda: rw.read_results(tmp_path / "out"), lambda: rw.run_experiment(spec(file), tmp_path / "out", rw.Serial())):  # fmt: skip
                with pytest.warns(rw.StoreWarning), pytest.raises(rw.InputError, match=r"results\.sqlite: .*locked \(another program has it open\)"):  # fmt: skip
                    call()
            assert time.monotonic() - start < 30
        assert contents(tmp_path / "out") == contents(done[0])

    def test_a_reader_holds_a_writer_up_for_a_moment(self, file, done, tmp_path, hurried, monkeypatch):
        """Trials wait with their transaction, and none is lost."""
        held = sqlite3.connect(":memory:")
        run = running.run_trial

        def hold(task):
            nonlocal held
            if task.key.fold == 2 and task.key.method == "Boosted":
                held = sqlite3.connect(tmp_path / FILE, isolation_level=None, check_same_thread=False)
                held.execute("BEGIN")
                held.execute("SELECT * FROM trials").fetchall()
                threading.Timer(0.6, held.execute, ["ROLLBACK"]).start()
            return run(task)

        monkeypatch.setattr(running, "run_trial", hold)
        with pytest.warns(rw.StoreWarning, match="another program has it open"):
            rw.run_experiment(spec(file), tmp_path, rw.Serial())
        held.close()
        assert contents(tmp_path) == contents(done[0])


class TestFailing:
    def test_a_failed_trial_is_told_and_tried_again(self, file, done, tmp_path, monkeypatch):
        run = running.run_trial

        def fail(task):
            if task.key.method == "SingleFeature" and task.key.fold == 2:
                raise ZeroDivisionError("by zero")
            return run(task)

        monkeypatch.setattr(running, "run_trial", fail)
        results = rw.run_experiment(spec(file), tmp_path, rw.Serial())
        trials = results.tables["trials"]
        failed = trials["status"] == "failed"
        assert failed.sum() == 1
        assert trials["error"][failed].tolist() == ["ZeroDivisionError: by zero"]
        assert np.isnan(results.means()[2])
        assert not np.isnan(results.means()[:2]).any()
        monkeypatch.undo()
        rw.run_experiment(spec(file), tmp_path, rw.Serial())
        assert contents(tmp_path) == contents(done[0])

    def test_a_full_disk_keeps_what_was_finished(self, file, done, tmp_path, monkeypatch):
        connect = sqlite3.connect

        def small(*args, **kwargs):
            connection = connect(*args, **kwargs)
            connection.execute("PRAGMA max_page_count = 32")  # SQLITE_FULL, as from a full disk
            return connection

        monkeypatch.setattr(sqlite3, "connect", small)
        with pytest.raises(rw.InputError, match=r"full; every trial that finished before is kept"):
            rw.run_experiment(spec(file), tmp_path, rw.Serial())
        monkeypatch.undo()
        kept = len(rw.read_results(tmp_path).tables["trials"]["method"])
        assert 0 < kept < 15
        rw.run_experiment(spec(file), tmp_path, rw.Serial())
        assert contents(tmp_path) == contents(done[0])

    def test_a_folder_that_cannot_be(self, file, tmp_path):
        (tmp_path / "taken").write_text("")
        with pytest.raises(rw.InputError, match="not a folder"):
            rw.run_experiment(spec(file), tmp_path / "taken", rw.Serial())
        (tmp_path / "out").mkdir()
        (tmp_path / "out" / FILE).write_text("something else entirely, and long enough to be looked at" * 50)
        with pytest.raises(rw.InputError, match="not the results of an experiment, or damaged throughout"):
            rw.run_experiment(spec(file), tmp_path / "out", rw.Serial())

    def test_validation_queries_without_weight(self, queries, tmp_path):
        weighted = queries.replace(weight=np.array([1.0] + [0.0] * 59))
        with pytest.raises(rw.InputError, match="none of them has any weight"):
            rw.run_experiment(rw.Experiment(weighted, ["regression"]), tmp_path, rw.Serial())

    def test_damaged_files_are_named(self, file, done, tmp_path):
        (tmp_path / "results.lock").write_text("hello world " * 100)
        with pytest.raises(rw.InputError, match=r"results\.lock: file is not a database"):
            rw.run_experiment(spec(file), tmp_path, rw.Serial())
        shutil.copy(done[0] / FILE, tmp_path / FILE)
        with closing(sqlite3.connect(tmp_path / FILE)) as connection, connection:
            connection.execute("UPDATE meta SET value = '{' WHERE key = 'experiment'")
        with pytest.raises(
            rw.InputError, match=r"results\.sqlite is damaged \(a row of meta\); 15 of 15 finished trials are intact"
        ):
            rw.read_results(tmp_path)

    def test_nothing_to_read(self, tmp_path):
        with pytest.raises(rw.InputError, match="no results"):
            rw.read_results(tmp_path)
        (tmp_path / FILE).touch()
        with pytest.raises(rw.InputError, match="has not begun"):
            rw.read_results(tmp_path)
        with closing(sqlite3.connect(tmp_path / "other.sqlite")) as connection:
            connection.execute("CREATE TABLE a (b)")
        (tmp_path / "other").mkdir()
        (tmp_path / "other.sqlite").rename(tmp_path / "other" / FILE)
        with pytest.raises(rw.InputError, match="not the results of an experiment"):
            rw.read_results(tmp_path / "other")
        with open_store(tmp_path):
            pass
        with pytest.raises(rw.InputError, match="has not begun"):
            rw.read_results(tmp_path)


class TestTooMany:
    """What cannot work is refused before anything is planned, read or written."""

    @pytest.mark.parametrize("n_folds", [61, 10**6, 2**31])
    def test_folds_of_a_file(self, file, tmp_path, n_folds):
        with pytest.raises(rw.InputError, match=f"60 queries cannot make {n_folds} folds; choose at most 60"):
            rw.run_experiment(spec(file, data={"file": str(file), "n_folds": n_folds}), tmp_path / "out")
        assert not (tmp_path / "out").exists()

    def test_folds_of_runs_and_of_objects(self, queries, tmp_path):
        rw.write_run(queries, queries.X[:, 0].astype(float), tmp_path / "a.run")
        lines = [f"{q} 0 {d} {int(y)}\n" for q, d, y in zip(queries.row_qid, queries.docid, queries.y, strict=True)]
        (tmp_path / "qrels").write_text("".join(lines))
        data = {"qrels": "qrels", "runs": ["a.run"], "n_folds": 1000}
        planned = experiment_from_json({"data": data, "methods": [{"ranker": "regression"}]}, tmp_path)
        with pytest.raises(rw.InputError, match="60 queries cannot make 1000 folds"):
            rw.run_experiment(planned, tmp_path / "out")
        with pytest.raises(rw.InputError, match="4 queries cannot make 5 folds"):
            rw.run_experiment(rw.Experiment(queries.take(range(4)), ["regression"]), tmp_path / "out")
        assert not (tmp_path / "out").exists()

    def test_as_many_folds_as_queries(self, queries, tmp_path):
        rw.write_letor(queries.take(range(6)), tmp_path / "six.txt")
        planned = spec(
            tmp_path / "six.txt", data={"file": "six.txt", "n_folds": 6}, methods=[{"ranker": "singlefeature"}]
        )
        assert len(rw.run_experiment(planned, tmp_path / "out", rw.Serial()).folds) == 6

    def test_trials_and_seeds(self, file, tmp_path):
        values = [i / 100 for i in range(1, 101)]
        grid = {"learning_rate": values, "num_leaves": [*range(2, 102)]}
        planned = spec(file, methods=[{"ranker": "lambdamart", "grid": grid}], seeds=[*range(500)])
        with pytest.raises(rw.InputError, match="15,000,000 trials on 3 folds; expected at most 1,000,000"):
            rw.run_experiment(planned, tmp_path / "out")
        assert not (tmp_path / "out").exists()
        with pytest.raises(rw.InputError, match="1001 seeds; expected at most 1000"):
            rw.Experiment(file, ["regression"], seeds=range(10**9))

    @pytest.mark.parametrize("text", ["[" * 500 + "]" * 500, "{a=" * 500 + "1" + "}" * 500])
    @pytest.mark.parametrize("key", ["name", "methods", "published"])
    def test_lists_inside_lists(self, tmp_path, text, key):
        (tmp_path / "spec.toml").write_text(f"{key} = {text}")
        with pytest.raises(rw.InputError, match=r"spec\.toml: nested too deeply"):
            rw.read_experiment(tmp_path / "spec.toml")

    @pytest.mark.parametrize("depth", [30, 100, 200])
    def test_parameters_inside_parameters(self, file, tmp_path, depth):
        with pytest.raises(rw.InputError, match="alpha has more than 20 lists inside each other"):
            (tmp_path / "spec.toml").write_text(
                f'data.file = "{file}"\n[[methods]]\nranker = "regression"\nset = {{ alpha = {"[" * depth + "]" * depth} }}'
            )
            rw.read_experiment(tmp_path / "spec.toml")

    def test_digits(self, tmp_path):
        (tmp_path / "spec.toml").write_text(f"seeds = [{'9' * 5000}]")
        with pytest.raises(rw.InputError, match=r"spec\.toml: not TOML"):
            rw.read_experiment(tmp_path / "spec.toml")


class TestSpecs:
    def test_a_default_grid_leaves_out_what_is_fixed(self, file):
        methods = [
            {"ranker": "lambdamart", "grid": "default"},
            {"ranker": "lambdamart", "name": "Fixed", "set": {"num_leaves": 7, "polish_rounds": 1}, "grid": "default"},
        ]
        usual, fixed = spec(file, methods=methods).methods
        n_leaves = len(rw.LambdaMART.default_grid["num_leaves"])
        assert len(fixed.list_candidates()) * n_leaves == len(usual.list_candidates())
        assert {params["num_leaves"] for params in fixed.list_candidates()} == {7}
        assert {params["num_leaves"] for params in usual.list_candidates()} == {
            *rw.LambdaMART.default_grid["num_leaves"]
        }

    def test_toml(self, file, tmp_path):
        (tmp_path / "spec.toml").write_text(
            f"""
            name = "Mine"
            measure = "map(dialect=letor3)"
            seeds = [1, 2]
            [data]
            file = "{file}"
            [[methods]]
            ranker = "single-feature"
            [[methods]]
            ranker = "regression"
            grid = "default"
            [[methods]]
            ranker = "regression"
            name = "Drawn"
            set = {{ scale = "query" }}
            search = {{ n_candidates = 7, seed = 3, alpha = {{ log_uniform = [0.001, 10] }} }}
            [[published]]
            method = "Drawn"
            measure = "map(dialect=letor3)"
            value = 0.5
            by_fold = [0.4, 0.6]
            """
        )
        planned = rw.read_experiment(tmp_path / "spec.toml")
        spoken = (f"{name}(dialect=letor3)" for name in ("ndcg@1", "ndcg@3", "ndcg@5", "ndcg@10", "map"))
        assert planned.measures == (*spoken, "mrr")  # letor3 has no mrr
        assert planned.curve_measures[9] == "ndcg@10(dialect=letor3)"
        assert [len(method.list_candidates()) for method in planned.methods] == [1, 10, 7]
        drawn = planned.methods[2].list_candidates()
        assert drawn == planned.methods[2].list_candidates()
        assert all(0.001 <= params["alpha"] <= 10 and params["scale"] == "query" for params in drawn)
        again = experiment_from_json(planned.to_json(), tmp_path)
        assert again.to_json() == planned.to_json()

    def test_the_documented_spec_is_one(self, tmp_path):
        text = (ROOT / "docs" / "experiments.md").read_text()
        (tmp_path / "spec.toml").write_text(re.search(r"```toml\n(.*?)```", text, re.DOTALL)[1])
        planned = rw.read_experiment(tmp_path / "spec.toml")
        assert [len(method.list_candidates()) for method in planned.methods] == [1, 8, 20, 2]
        assert planned.seeds == (0, 1, 2)

    def test_all_kinds_of_draws(self):
        space = {
            "a": {"uniform": [-1, 1]},
            "b": {"int": [2, 4]},
            "c": {"choice": ["x", "y"]},
            "d": {"log_uniform": [1e-6, 1e6]},
        }
        drawn = rw.RandomSearch(400, space, seed=1).draw_candidates()
        assert {params["b"] for params in drawn} == {2, 3, 4}
        assert {params["c"] for params in drawn} == {"x", "y"}
        assert abs(np.mean([params["a"] for params in drawn])) < 0.15
        assert abs(np.mean(np.log10([params["d"] for params in drawn]))) < 1.0

    @pytest.mark.parametrize(
        ("changes", "message"),
        [
            ({"mesure": "map"}, r"unknown key 'mesure'; did you mean measure\?"),
            ({"measure": "nope"}, "unknown measure 'nope'"),
            ({"measures": "map"}, "measures is 'map'; expected a list"),
            ({"seeds": ["a"]}, "seeds='a'"),
            ({"seeds": 5}, "seeds is 5; expected a list"),
            ({"seeds": [10**20]}, "seeds=1000"),
            ({"measures": 5}, "measures is 5; expected a list"),
            ({"published": 5}, "published is 5"),
            ({"data": {"file": "b", "n_folds": 0}}, "0 folds; expected at least 3"),
            ({"data": {"file": "b", "seed": -1}}, "data.seed is -1"),
            ({"data": {"file": "a\0b"}}, "expected a path"),
            ({"data": {"file": "~nosuchuser/x"}}, "data.file is '~nosuchuser/x'"),
            ({"data": {"qrels": "b"}}, "data.runs is missing"),
            ({"methods": [{"ranker": "adarank", "name": 5}]}, "a method is called 5"),
            ({"methods": [{"ranker": "regression", "set": {"alpha": date(1979, 5, 27)}}]}, "alpha is datetime.date"),
            (
                {"methods": [{"ranker": "regression", "set": {"alpha": 1.0}, "grid": {"alpha": [1.0]}}]},
                "fixed and tried",
            ),
            ({"methods": [{"ranker": "regression", "search": {}}]}, "search: no parameter"),
            (
                {"methods": [{"ranker": "regression", "search": {"alpha": {"uniform": [0, float("inf")]}}}]},
                "alpha is inf; expected numbers",
            ),
            (
                {"methods": [{"ranker": "adarank", "search": {"n_estimators": {"int": [1.5, 3.5]}}}]},
                "two whole numbers",
            ),
            (
                {
                    "methods": [
                        {"ranker": "regression", "search": {"n_candidates": 10**8, "alpha": {"log_uniform": [1, 2]}}}
                    ]
                },
                "at most 10000",
            ),
            ({"published": [{"method": "x", "measure": "map", "value": "high"}]}, "published.value is 'high'"),
            ({"published": [{"method": "x", "measure": "map", "value": 1, "lowest": "x"}]}, "published.lowest is 'x'"),
            ({"published": [{"method": "x", "measure": "map", "value": 1, "by_fold": 3}]}, "published.by_fold is 3"),
            ({"published": [{"method": "x", "measure": "p@7", "value": 1}]}, "p@7 is not among the measures"),
            ({"data": {}}, "data: expected one of folds"),
            ({"data": {"folds": "a", "file": "b"}}, "data: expected one of folds"),
            ({"data": {"file": "b", "fold": 3}}, r"data: unknown key 'fold'"),
            ({"data": {"file": "b", "n_folds": "3"}}, "data.n_folds is '3'"),
            ({"data": {"file": []}}, "data.file is"),
            ({"methods": []}, "no methods"),
            ({"methods": "adarank"}, "methods is 'adarank'"),
            ({"methods": [{"name": "x"}]}, r"methods\[1\]: expected a table"),
            ({"methods": [{"ranker": "adarnk"}]}, r"unknown ranker 'adarnk'; did you mean adarank\?"),
            ({"methods": [{"ranker": "adarank"}, {"ranker": "adarank"}]}, "two methods are called 'AdaRank'"),
            (
                {"methods": [{"ranker": "regression", "set": {"alfa": 1}}]},
                r"no parameter 'alfa'; did you mean alpha",
            ),
            ({"methods": [{"ranker": "regression", "set": {"backend": 1}}]}, "backend is set by the experiment"),
            ({"methods": [{"ranker": "regression", "grid": {"alpha": 1}}]}, "grid.alpha is 1; expected a list"),
            ({"methods": [{"ranker": "regression", "grid": {"alpha": []}}]}, "expected a list of values"),
            ({"methods": [{"ranker": "regression", "grid": 3}]}, 'expected a table of lists, or "default"'),
            ({"methods": [{"ranker": "regression", "search": {"alpha": [1]}}]}, "expected one of uniform, log"),
            ({"methods": [{"ranker": "regression", "search": {"alpha": {"log_uniform": [0, 1]}}}]}, "above 0"),
            ({"methods": [{"ranker": "regression", "search": {"n_candidates": 0}}]}, "n_candidates=0"),
            ({"published": [{"method": "x"}]}, r"published\[1\]: no measure"),
        ],
    )
    def test_what_is_wrong_is_said(self, file, changes, message):
        with pytest.raises(rw.InputError, match=message):
            spec(file, **changes)

    def test_not_toml(self, tmp_path):
        (tmp_path / "spec.toml").write_text("name = ")
        with pytest.raises(rw.InputError, match=r"spec\.toml: not TOML"):
            rw.read_experiment(tmp_path / "spec.toml")

    def test_parameters_that_text_cannot_hold(self):
        with pytest.raises(rw.InputError, match="expected numbers, texts, lists and tables"):
            rw.Method.from_ranker(rw.Regression(alpha=object()))
