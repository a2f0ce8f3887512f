"""Rankers of trees where users meet them: scikit-learn, selection, comparison, threads; and mistakes."""

from __future__ import annotations

import pickle
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import numpy as np
import pytest
import sklearn
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import rankwright as rw

QUICK = {"n_estimators": 4, "num_leaves": 5, "min_child_samples": 3}
RANKERS = (rw.MART, rw.LambdaMART, partial(rw.LambdaMART, lambdas="lightgbm"), rw.DirectRankTrees, rw.BoostedTrees)
RANDOM = {"bagging_fraction": 0.6, "bagging_freq": 1, "feature_fraction": 0.7}


def name_of(ranker):
    return "native" if isinstance(ranker, partial) else ranker.__name__


each_ranker = pytest.mark.parametrize("make", RANKERS, ids=name_of)


@pytest.fixture(scope="module")
def sets():
    queries = rw.make_queries(60, n_docs=12, n_features=8, random_state=2)
    return queries.take(range(36)), queries.take(range(36, 48)), queries.take(range(48, 60))


@pytest.fixture
def routed():
    with sklearn.config_context(enable_metadata_routing=True):
        yield


@each_ranker
class TestScikitLearn:
    @pytest.mark.usefixtures("routed")
    def test_grid_search(self, sets, make):
        train = sets[0]
        qid = np.repeat(train.qid, train.sizes)
        search = GridSearchCV(
            make(**QUICK), {"num_leaves": [2, 6], "lightgbm_params": [None, {"lambda_l2": 5.0}]}, cv=rw.QueryKFold(3)
        )
        search.fit(train.X, train.y, qid=qid)
        assert len(set(search.cv_results_["mean_test_score"])) > 1
        chosen = make(**QUICK | search.best_params_).fit(train)
        assert search.predict(train.X).tobytes() == chosen.predict(train.X).tobytes()
        parts = list(rw.QueryKFold(3).split(train.X, train.y, qid))
        scores = []
        for rows, others in parts:
            fitted = clone(chosen).fit(train.X[rows], train.y[rows], qid=qid[rows])
            scores.append(fitted.score(train.X[others], train.y[others], qid=qid[others]))
        assert search.best_score_ == pytest.approx(np.mean(scores), abs=1e-12)

    @pytest.mark.usefixtures("routed")
    def test_pipelines(self, sets, make):
        train = sets[0]
        qid = np.repeat(train.qid, train.sizes)
        pipeline = make_pipeline(StandardScaler(), make(**QUICK)).fit(train.X, train.y, qid=qid)
        alone = make(**QUICK).fit(StandardScaler().fit_transform(train.X), train.y, qid=qid)
        scaled = StandardScaler().fit(train.X).transform(train.X)
        assert pipeline.predict(train.X).tobytes() == alone.predict(scaled).tobytes()

    def test_clones_own_their_params(self, sets, make):
        given = {"lambda_l2": 1.0, "monotone_constraints": [1] * 8}
        ranker = make(**QUICK, lightgbm_params=given).fit(sets[0])
        copy = clone(ranker)
        assert (copy.get_params(), hasattr(copy, "model_")) == (ranker.get_params(), False)
        copy.lightgbm_params["lambda_l2"] = 9.0
        assert ranker.lightgbm_params["lambda_l2"] == 1.0
        assert given == {"lambda_l2": 1.0, "monotone_constraints": [1] * 8}

    def test_a_fit_stays_what_it_was(self, sets, make):
        given = {"lambda_l2": 1.0}
        ranker = make(**QUICK, lightgbm_params=given, measure="ndcg@3").fit(sets[0])
        before, value = ranker.predict(sets[2]), ranker.score(sets[2])
        importances = ranker.feature_importances_
        given["lambda_l2"] = 77.0
        ranker.set_params(
            num_leaves=2, n_estimators=1, measure="err", lightgbm_params={"max_depth": 1}, polish_rounds=3
        )
        assert ranker.predict(sets[2]).tobytes() == before.tobytes()
        assert ranker.feature_importances_.tolist() == importances.tolist()
        assert ranker.booster_.predict(sets[2].X).tolist() == before.tolist()
        model = ranker.to_model()
        assert (model.params["num_leaves"], model.params["lightgbm_params"], model.measure) == (
            5,
            {"lambda_l2": 1.0},
            "ndcg@3",
        )
        assert model.score(sets[2]) == value
        ranker.set_params(num_leaves=1)
        with pytest.raises(rw.InputError, match="num_leaves=1"):
            ranker.fit(sets[0])
        assert ranker.predict(sets[2]).tobytes() == before.tobytes()

    def test_pickles(self, sets, make):
        ranker = make(**QUICK, polish_rounds=1).fit(sets[0], valid=sets[1])
        copy = pickle.loads(pickle.dumps(ranker))
        assert copy.predict(sets[2]).tobytes() == ranker.predict(sets[2]).tobytes()
        assert copy.booster_.model_to_string() == ranker.booster_.model_to_string()
        assert (copy.history_, copy.lightgbm_params_) == (ranker.history_, ranker.lightgbm_params_)
        assert copy.set_params(warm_start=True, n_estimators=6, polish_rounds=0).fit(sets[0]).to_model() is not None


@each_ranker
class TestOurOwnTools:
    def test_select(self, sets, make):
        train, valid, _ = sets
        grid = {"num_leaves": [2, 4, 8], "min_child_samples": [3, 20]}
        fitted = [
            make(**QUICK | {"num_leaves": n, "min_child_samples": m}).fit(train, valid=valid)
            for n in grid["num_leaves"]
            for m in grid["min_child_samples"]
        ]
        best = max(fitted, key=lambda ranker: ranker.score(valid))
        for backend in (rw.Serial(), rw.Threads(2), None):
            found = rw.select(make(**QUICK, backend=backend), grid, train, valid)
            assert found.predict(valid).tobytes() == best.predict(valid).tobytes()

    def test_evaluate_and_compare(self, sets, make):
        train, valid, test = sets
        ranker = make(**QUICK).fit(train, valid=valid)
        found = rw.evaluate(ranker, test, ["map", "ndcg@10"])
        assert found["ndcg@10"] == pytest.approx(ranker.score(test), abs=1e-12)
        other = rw.Regression().fit(train)
        scores = {"trees": ranker.predict(test), "line": other.predict(test)}
        results = rw.compare_scores(scores, test, ["map"])
        np.testing.assert_allclose(results.means("map"), [found["map"], rw.evaluate(other, test, "map")["map"]])

    def test_diagnose(self, sets, make):
        train = sets[0]
        ranker = make(**QUICK).fit(train)
        told = str(rw.diagnose(ranker, train))
        assert f"ndcg@10 {ranker.score(train):.4f}" in told
        assert "These seem to be the training queries" in told
        polished = make(**QUICK, polish_rounds=2).fit(train, valid=sets[1])
        assert "These seem to be the training queries" in str(rw.diagnose(polished, train))
        assert "These are not the training queries" in str(rw.diagnose(ranker, sets[2]))


@each_ranker
class TestAtTheSameTime:
    def scores(self, make, sets, seed, backend=None):
        ranker = make(**QUICK, lightgbm_params=RANDOM, random_state=seed, polish_rounds=1, backend=backend)
        return ranker.fit(sets[0], valid=sets[1]).predict(sets[2]).tobytes()

    def test_backends(self, sets, make):
        backends = (rw.Serial(), rw.Threads(2), rw.Threads(5), None)
        assert len({self.scores(make, sets, 0, backend) for backend in backends}) == 1

    def test_fits_in_threads(self, sets, make):
        expected = [self.scores(make, sets, seed) for seed in range(4)]
        assert len(set(expected)) > 1
        with ThreadPoolExecutor(4) as pool:
            assert list(pool.map(lambda seed: self.scores(make, sets, seed, rw.Threads(2)), range(4))) == expected


NOT_NUMBERS = (float("nan"), float("inf"), "a", None)
MISTAKES = [
    *((rw.LambdaMART, {"num_leaves": value}, "num_leaves=") for value in (1, 0, -3, 2.5, True, "a", None)),
    *((rw.MART, {"learning_rate": value}, "learning_rate=") for value in (0, 0.0, -0.1, *NOT_NUMBERS)),
    *((rw.MART, {"n_estimators": value}, "n_estimators=") for value in (0, -1, 1.5, "a", None)),
    *((rw.MART, {"min_child_samples": value}, "min_child_samples=") for value in (0, -1, 0.5, None)),
    *((rw.BoostedTrees, {"polish_rounds": value}, "polish_rounds=") for value in (-1, 1.5, True, "a", None)),
    *((rw.MART, {"early_stopping_rounds": value}, "early_stopping_rounds=") for value in (0, -1, 1.5, "a")),
    *(
        (rw.DirectRankTrees, {"weight_range": value}, "weight")
        for value in ((0.5, 0.1), (0.0, 1.0), (-1.0, 1.0), (0.1,), (0.1, 0.2, 0.3), 0.5, "ab", ("a", "b"),
                      (0.1, float("nan")), (0.1, float("inf")), [[0.1, 0.2]], True)
    ),
    (rw.DirectRankTrees, {"interval_point": "x"}, "interval_point='x'"),
    *((rw.LambdaMART, {"lightgbm_params": value}, "expected a mapping") for value in (5, "lambda_l2=1", [("lambda_l2", 1)])),
    (rw.LambdaMART, {"lightgbm_params": {"objective": "binary"}}, "lightgbm_params has 'objective'; the ranker decides it"),
    (rw.LambdaMART, {"lightgbm_params": {"num_leaves": 3}}, "lightgbm_params has 'num_leaves'; .*num_leaves"),
    (rw.MART, {"lightgbm_params": {"learning_rate": 0.3}}, "lightgbm_params has 'learning_rate'; "),
    (rw.MART, {"lightgbm_params": {"seed": 3}}, "lightgbm_params has 'seed'; .*random_state"),
    (rw.MART, {"lightgbm_params": {"num_threads": 3}}, "lightgbm_params has 'num_threads'; .*backend"),
    (rw.MART, {"lightgbm_params": {"lamda_l2": 3}}, "did you mean lambda_l2"),
    (rw.MART, {"lightgbm_params": {3: 4}}, "params has 3"),
    (rw.MART, {"lightgbm_params": {"boosting": "dart"}}, "lightgbm_params has 'boosting'"),
    (rw.MART, {"lightgbm_params": {"lambda_l2": -1}}, r"LightGBM: .*\(lambda_l2\) >= \(0.0\)$"),
    (rw.LambdaMART, {"lightgbm_params": {"sigmoid": 2.0}}, "lightgbm_params has 'sigmoid'; that is for lambdas='lightgbm'"),
    (rw.MART, {"lightgbm_params": {"monotone_constraints": [1]}}, "monotone_constraints"),
    (rw.MART, {"lightgbm_params": {"monotone_constraints": [5] * 8}}, "monotone_constraints"),
    (rw.MART, {"lightgbm_params": {"monotone_constraints": "1,1"}}, "monotone_constraints"),
    *((rw.MART, {"warm_start": value}, "warm_start=") for value in (3, None, "a.json")),
    *((rw.MART, {"init_model": value}, "init_model=") for value in (3, 1.5, True, ["a.json"])),
    *((rw.LambdaMART, {"lambdas": value}, "lambdas=") for value in ("x", None, 3, True)),
    *((rw.BoostedTrees, {"objective": value}, "objective=") for value in ("nothing", 5, None, ["map"])),
    (rw.MART, {"scale": "x"}, "scale='x'"),
    (rw.MART, {"random_state": -1}, "random_state=-1"),
    (rw.MART, {"backend": 4}, "backend=4"),
    (rw.MART, {"measure": "x"}, "unknown measure 'x'"),
]  # fmt: skip


@pytest.mark.parametrize(("ranker", "parameters", "message"), MISTAKES)
def test_mistakes_are_named_in_one_line(sets, ranker, parameters, message):
    wrong = ranker(**{"n_estimators": 2, "min_child_samples": 3} | parameters)
    with pytest.raises(rw.InputError, match=message) as caught:
        wrong.fit(sets[0], valid=sets[1])
    assert "\n" not in str(caught.value)
    assert not hasattr(wrong, "model_")


def test_models_to_go_on_from_that_are_none(sets, tmp_path):
    with pytest.raises(FileNotFoundError):
        rw.MART(init_model=tmp_path / "nothere.json").fit(sets[0])
    (tmp_path / "empty.json").write_text("")
    with pytest.raises(rw.InputError, match=r"empty\.json"):
        rw.MART(init_model=tmp_path / "empty.json").fit(sets[0])
    (tmp_path / "trees.txt").write_text("tree\nversion=v4\n")
    with pytest.raises(rw.InputError, match=r"trees\.txt: "):
        rw.MART(init_model=str(tmp_path / "trees.txt")).fit(sets[0])
    rw.save(rw.Regression().fit(sets[0]), tmp_path / "line.json")
    with pytest.raises(rw.InputError, match="a model of Regression; expected one of trees"):
        rw.MART(init_model=tmp_path / "line.json").fit(sets[0])
    rw.save(rw.MART(**QUICK).fit(rw.make_queries(20, n_features=5, random_state=0)), tmp_path / "five.json")
    with pytest.raises(rw.InputError, match="the documents have 8 features; the model of init_model was trained on 5"):
        rw.MART(init_model=tmp_path / "five.json").fit(sets[0])
