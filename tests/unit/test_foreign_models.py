"""Tests of models of other libraries wherever a fitted ranker or a model is taken."""

from __future__ import annotations

import pickle
import subprocess
import sys

import lightgbm
import numpy as np
import pandas
import pytest
import sklearn
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from tests.experiments import contents

import rankwright as rw
from rankwright.analysis.evaluation import compute_scores
from rankwright.cli.app import run
from rankwright.data.column_roles import NO_ROLES
from rankwright.models.block_scoring import open_for_model
from rankwright.models.imports.first_columns import describe_first_column
from rankwright.report import format_results
from rankwright.scorers import Trees

QUERIES = rw.make_queries(40, n_docs=12, n_features=6, random_state=3)
TEST = rw.make_queries(25, n_docs=12, n_features=6, random_state=4)
MEASURES = ["ndcg@5", "map"]


def fit_booster(queries=QUERIES, names="auto", **params):
    """Return LightGBM's own Booster, trained on queries."""
    data = lightgbm.Dataset(queries.X, queries.y, group=queries.sizes, feature_name=names)
    params = {"objective": "lambdarank", "num_leaves": 5, "min_data_in_leaf": 5, "verbosity": -1, **params}
    return lightgbm.train(params, data, 8)


@pytest.fixture(scope="module")
def booster():
    return fit_booster()


@pytest.fixture(scope="module")
def xgboost_ranker():
    """Return XGBoost's own estimator, trained on queries."""
    xgboost = pytest.importorskip("xgboost")
    ranker = xgboost.XGBRanker(n_estimators=6, max_depth=3, n_jobs=1)
    return ranker.fit(QUERIES.X, QUERIES.y, qid=QUERIES.row_qid)


@pytest.fixture(scope="module")
def raw(booster):
    """LightGBM's own scores of the test documents."""
    return booster.predict(TEST.X, raw_score=True)


class TestPython:
    def test_evaluate(self, booster, raw):
        expected = rw.evaluate(raw, TEST, MEASURES)
        assert rw.evaluate(booster, TEST, MEASURES).means == expected.means

    def test_evaluate_a_model_of_xgboost(self, xgboost_ranker):
        scores = xgboost_ranker.predict(TEST.X)
        assert compute_scores(xgboost_ranker, TEST) == pytest.approx(scores, abs=1e-6)
        assert rw.evaluate(xgboost_ranker, TEST, "map")["map"] == pytest.approx(rw.evaluate(scores, TEST, "map")["map"])

    def test_an_estimator_of_a_class_of_ones_own(self):
        class Mine(lightgbm.LGBMRanker):
            pass

        own = Mine(n_estimators=5, min_child_samples=5, verbosity=-1).fit(QUERIES.X, QUERIES.y, group=QUERIES.sizes)
        expected = rw.evaluate(own.predict(TEST.X, validate_features=False), TEST, MEASURES)
        assert rw.evaluate(own, TEST, MEASURES).means == expected.means

    def test_a_search_stands_for_its_best_estimator(self):
        search = GridSearchCV(rw.Regression(), {"alpha": [0.1, 10.0]}, cv=rw.QueryKFold(2))
        with sklearn.config_context(enable_metadata_routing=True):
            search.fit(QUERIES.X, QUERIES.y, qid=QUERIES.row_qid)
        assert rw.evaluate(search, TEST, "map").means == rw.evaluate(search.best_estimator_, TEST, "map").means
        assert rw.import_model(search).ranker == "Regression"

    def test_an_own_ranker_stays_what_it_is(self):
        ranker = rw.RankSVM(scale="query").fit(QUERIES)
        model = rw.import_model(ranker)
        assert (model.ranker, model.scaling is None) == ("RankSVM", False)
        np.testing.assert_array_equal(model.predict(TEST), ranker.predict(TEST))
        assert rw.import_model(model) is model

    @pytest.mark.parametrize(
        ("found", "words"),
        [(QUERIES, "an object of Queries"), ({}, "an object of dict"), (rw.RankSVM, "the class RankSVM")],
    )
    def test_what_is_no_model_is_named(self, found, words):
        for use in (rw.import_model, lambda own: rw.evaluate(own, TEST, "map"), lambda own: rw.export(own, "c", "m.c")):
            with pytest.raises(rw.InputError, match=f"found {words}; expected a fitted ranker"):
                use(found)

    def test_compare_scores_takes_models_and_scores(self, booster, raw):
        ranker = rw.Regression().fit(QUERIES)
        found = rw.compare_scores({"ours": ranker, "theirs": booster, "scores": raw}, TEST, MEASURES)
        assert found.methods == ("ours", "theirs", "scores")
        np.testing.assert_array_equal(found.values()[1], found.values()[2])
        assert not np.array_equal(found.values()[0], found.values()[1])

    def test_explain_and_diagnose(self, booster):
        assert str(rw.explain(booster)).startswith("LightGBM: 8 trees")
        found = rw.diagnose(booster, QUERIES, "ndcg@5")
        assert found.values.mean() == pytest.approx(rw.evaluate(booster, QUERIES, "ndcg@5")["ndcg@5"])
        assert found.ranker == "LightGBM"

    def test_linear_models_of_scikit_learn(self):
        ridge = make_pipeline(StandardScaler(), Ridge()).fit(QUERIES.X, QUERIES.y)
        expected = rw.evaluate(ridge.predict(TEST.X), TEST, MEASURES)
        assert rw.evaluate(ridge, TEST, MEASURES).means == pytest.approx(expected.means)
        assert rw.explain(ridge).what.startswith("weights of 6 of 6 features")
        verdict = rw.diagnose(ridge, TEST, "ndcg@5").verdict
        assert (verdict.problem, "What its training minimised" in verdict.text) == ("unknown", True)

    def test_save_and_rank(self, booster, raw, tmp_path):
        rw.save(booster, tmp_path / "m.json")
        model = rw.load(tmp_path / "m.json")
        assert (model.predict(TEST) == raw).all()
        assert model.rank(TEST, k=3).keys() == set(TEST.qid.tolist())

    def test_polish_takes_models(self, booster, xgboost_ranker):
        models = [rw.Regression().fit(QUERIES), booster, xgboost_ranker]
        scores, others = (np.column_stack([compute_scores(m, q) for m in models]) for q in (QUERIES, TEST))
        found = rw.polish(models, QUERIES, "ndcg@5", valid=(models, TEST))
        assert found.weights.tolist() == rw.polish(scores, QUERIES, "ndcg@5", valid=(others, TEST)).weights.tolist()

    def test_polish_model_of_a_library_without_weights_of_its_own(self, tmp_path):
        trees = "".join(
            f'<tree id="{i}" weight="1.0">\n<split>\n<feature> {i} </feature>\n<threshold> 0.5 </threshold>\n'
            '<split pos="left">\n<output> -1.0 </output>\n</split>\n<split pos="right">\n<output> 1.0 </output>\n'
            "</split>\n</split>\n</tree>\n"
            for i in (1, 2, 6)
        )
        (tmp_path / "ranklib.txt").write_text(f"## LambdaMART\n\n<ensemble>\n{trees}</ensemble>\n")
        model = rw.load(tmp_path / "ranklib.txt")
        polished = rw.polish_model(model, QUERIES, "ndcg@5")
        assert rw.evaluate(polished, QUERIES, "ndcg@5")["ndcg@5"] > rw.evaluate(model, QUERIES, "ndcg@5")["ndcg@5"]
        assert isinstance(polished, rw.Model)

    @pytest.mark.parametrize("suffix", ["json", "ubj"])
    def test_trees_of_xgboost_are_continued(self, xgboost_ranker, tmp_path, suffix):
        xgboost_ranker.save_model(tmp_path / f"xgb.{suffix}")
        ranker = rw.LambdaMART(n_estimators=9, init_model=tmp_path / f"xgb.{suffix}").fit(QUERIES)
        trees, earlier = ranker.to_model().scorer.trees.forest, rw.import_model(xgboost_ranker).scorer.trees.forest
        assert len(trees) == 9 > len(earlier)
        assert (Trees(trees.take_first(len(earlier)))(TEST.X) == Trees(earlier)(TEST.X)).all()

    @pytest.mark.parametrize("ranking", ["model.txt", object(), lightgbm])
    def test_other_things_are_refused_with_what_is_taken(self, ranking):
        with pytest.raises(rw.InputError, match="expected a fitted ranker"):
            rw.evaluate(ranking, TEST, "map")

    def test_features_of_another_number(self, booster):
        with pytest.raises(rw.InputError, match="the documents have 4 features; the model was trained on 6"):
            rw.evaluate(booster, rw.make_queries(5, n_features=4, random_state=0), "map")

    def test_no_library_is_imported_to_evaluate_scores_or_our_models(self):
        code = """
import sys, rankwright as rw
from rankwright.scorers import Feature
queries = rw.make_queries(5, random_state=0)
model = rw.Model("mine", {}, "map", Feature(0), queries.n_features)
rw.evaluate(model, queries, "map"); rw.evaluate(queries.X[:, 0], queries, "map")
try:
    rw.evaluate(type("Theirs", (), {"predict": None})(), queries, "map")
except rw.InputError:
    pass
print([name for name in ("lightgbm", "xgboost", "catboost", "sklearn") if name in sys.modules])
"""
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        assert done.stdout.strip() == "[]"


@pytest.fixture
def files(tmp_path, booster):
    """A folder with test documents, LightGBM's text, and a model of ours."""
    rw.write_letor(TEST, tmp_path / "test.txt")
    booster.save_model(tmp_path / "lgb.txt")
    rw.save(rw.Regression().fit(QUERIES), tmp_path / "ours.json")
    return tmp_path


class TestCommands:
    def test_compare_names_methods(self, files, capsys, xgboost_ranker):
        xgboost_ranker.save_model(files / "theirs.ubj")
        (files / "b").mkdir()
        (files / "b" / "ours.json").write_bytes((files / "ours.json").read_bytes())
        models = ["lgb.txt", "theirs=lgb.txt", f"xgb={files}/theirs.ubj", "ours.json", "b/ours.json"]
        options = [part for model in models for part in ("--model", model.replace("lgb", f"{files}/lgb"))]
        options = [f"{files}/{each}" if each.endswith("ours.json") else each for each in options]
        assert run(["compare", "--data", f"{files}/test.txt", *options, "--measures", "map"]) == 0
        out = capsys.readouterr().out
        for name in ("lgb ", "theirs ", "xgb ", f"{files}/ours.json ", f"{files}/b/ours.json "):
            assert name in out

    def test_evaluate_predict_and_explain(self, files, raw, capsys):
        data = ["--data", f"{files}/test.txt", "--model", f"{files}/lgb.txt"]
        assert run(["evaluate", *data, "--measures", "map"]) == 0
        assert f"{rw.evaluate(raw, TEST, 'map')['map']:.4f}" in capsys.readouterr().out
        assert run(["predict", *data, "--out", f"{files}/scores.txt"]) == 0
        assert np.loadtxt(files / "scores.txt").tolist() == raw.tolist()
        assert run(["explain", "--model", f"{files}/lgb.txt"]) == 0
        assert "LightGBM: 8 trees" in capsys.readouterr().out

    @pytest.mark.parametrize(
        ("content", "message"),
        [
            (pickle.dumps({"a": 1}), "a pickle, which runs code when it is loaded"),
            (b"tree\nversion=v4\nnum_class=1\n", "LightGBM's text"),
            (b"{}", "not a Rankwright model"),
            (None, "Is a directory"),
        ],
    )
    def test_bad_files_are_one_line(self, files, capsys, content, message):
        path = files / "bad.model"
        path.mkdir() if content is None else path.write_bytes(content)
        options = ["--data", f"{files}/test.txt", "--model", str(path), "--out", f"{files}/out.txt"]
        assert run(["predict", *options]) == 2
        err = capsys.readouterr().err
        assert err.count("\n") == 1
        assert message in err
        assert not (files / "out.txt").exists()

    def test_names_given_twice(self, files, capsys):
        options = ["--model", f"a={files}/lgb.txt", "--scores", f"a={files}/ours.json"]
        assert run(["compare", "--data", f"{files}/test.txt", *options]) == 2
        assert "given twice as a; name methods apart" in capsys.readouterr().err
        assert run(["compare", "--data", f"{files}/test.txt", "--model", "=lgb.txt"]) == 2
        assert "--model =lgb.txt: expected FILE or NAME=FILE" in capsys.readouterr().err


DATA = rw.make_queries(45, n_docs=10, n_features=6, random_state=8)


@pytest.fixture
def spec(tmp_path, booster):
    """The file of a spec with a ranker and a model of LightGBM beside it."""
    rw.write_letor(DATA, tmp_path / "all.txt")
    booster.save_model(tmp_path / "lgb.txt")
    path = tmp_path / "spec.toml"
    path.write_text(
        'measure = "ndcg@5"\nmeasures = ["map"]\n[data]\nfile = "all.txt"\nn_folds = 3\n'
        '[[methods]]\nranker = "regression"\n[[methods]]\nmodel = "lgb.txt"\nname = "Theirs"\n'
    )
    return path


def run_serially(experiment, out):
    """Run an experiment that has fixed models in this process."""
    with pytest.warns(rw.FixedModelWarning, match="not trained by this experiment: make sure that it has not seen"):
        return rw.run_experiment(experiment, out, rw.Serial())


class TestExperiments:
    def test_a_model_is_tested_on_every_fold(self, spec, booster, tmp_path):
        results = run_serially(rw.read_experiment(spec), tmp_path / "out")
        assert (results.methods, results.fixed) == (("Regression", "Theirs"), ("Theirs",))
        expected = rw.evaluate(booster, DATA, "ndcg@5")
        by_query = dict(zip(expected.qid.astype(str), expected.per_query["ndcg@5"], strict=True))
        found = dict(zip(results.tables["queries"]["qid"], results.values()[1], strict=True))
        assert found == by_query
        assert len(results.compare()) == 1
        trials = results.tables["trials"]
        assert np.isnan(trials["seconds"][trials["method"] == 1].astype(float)).all()
        assert set(results.tables["importance"]["method"]) == {1}
        assert set(results.tables["weights"]["method"]) == {0}
        assert set(results.tables["bounds"]["method"]) == {0}
        model = rw.read_trial_model(tmp_path / "out", "Theirs", fold=2)
        assert (model.predict(TEST) == booster.predict(TEST.X)).all()
        said = "Theirs was not trained by this experiment: make sure that it has not seen these queries."
        assert said in " ".join(format_results(results).split())
        assert said in rw.write_report(results, tmp_path / "out").read_text()

    def test_resuming_and_a_changed_file(self, spec, tmp_path, monkeypatch):
        run_serially(rw.read_experiment(spec), tmp_path / "out")
        before = contents(tmp_path / "out")
        monkeypatch.setattr(Trees, "__call__", lambda *_: pytest.fail("a finished trial was run again"))
        (tmp_path / "b").mkdir()
        (tmp_path / "lgb.txt").rename(tmp_path / "b" / "other.txt")  # a file may move
        spec.write_text(spec.read_text().replace("lgb.txt", "b/other.txt"))
        run_serially(rw.read_experiment(spec), tmp_path / "out")
        assert contents(tmp_path / "out") == before
        fit_booster(num_leaves=3).save_model(tmp_path / "b" / "other.txt")
        with pytest.raises(rw.InputError, match=r"the method 'Theirs' was .* and is now .*give it another name"):
            rw.run_experiment(rw.read_experiment(spec), tmp_path / "out", rw.Serial())
        assert contents(tmp_path / "out") == before

    def test_models_in_python(self, booster, tmp_path):
        ours = rw.Regression().fit(QUERIES).to_model()
        methods = [rw.Regression(), pickle.loads(pickle.dumps(rw.FixedModel(ours, "Earlier"))), booster]
        folds = rw.split_folds(DATA, 3, random_state=0)
        with pytest.warns(rw.FixedModelWarning, match=r"Earlier, LightGBM were not trained .* they have not seen"):
            results = rw.run_experiment(rw.Experiment(folds, methods, "map"), tmp_path / "out", rw.Serial())
        assert results.methods == ("Regression", "Earlier", "LightGBM")
        expected = np.mean([rw.evaluate(ours, fold.test, "map")["map"] for fold in folds])
        assert results.means()[1] == pytest.approx(expected, abs=1e-12)

    def test_columns_in_another_order_are_found_by_name(self, tmp_path):
        names = [f"f{i}" for i in range(6)]
        own = rw.LambdaMART(n_estimators=5).fit(QUERIES.replace(features=tuple(names))).to_model()
        frame = pandas.DataFrame(DATA.X, columns=names)[names[::-1]]
        frame = frame.assign(extra=1.0, label=DATA.y, qid=DATA.row_qid)
        queries = rw.Queries.from_frame(frame, label="label", qid="qid")
        results = run_serially(rw.Experiment(queries, own, "map"), tmp_path / "out")
        expected = rw.evaluate(own, DATA, "map")
        by_query = dict(zip(expected.qid.astype(str), expected.per_query["map"], strict=True))
        assert dict(zip(results.tables["queries"]["qid"], results.values()[0], strict=True)) == by_query

    @pytest.mark.parametrize(
        ("change", "message"),
        [
            (("lgb.txt", "no.txt"), "no.txt: No such file or directory"),
            (("lgb.txt", "spec.toml"), "spec.toml"),
            (('name = "Theirs"', 'digest = "00"'), "has the digest"),
            (('name = "Theirs"', 'ranker = "mart"'), "a ranker and a model; expected one of them"),
            (('name = "Theirs"', "seed = 1"), "unknown key 'seed'"),
            (('name = "Theirs"', 'name = "Regression"'), "two methods are called 'Regression'"),
        ],
    )
    def test_mistakes_stop_before_anything_starts(self, spec, tmp_path, capsys, change, message):
        spec.write_text(spec.read_text().replace(*change))
        assert run(["experiment", str(spec), "--out", f"{tmp_path}/out"]) == 2
        err = capsys.readouterr().err
        assert err.count("\n") == 1
        assert message in err
        assert not (tmp_path / "out").exists()

    def test_the_option(self, spec, tmp_path, capsys):
        files = ["--data", f"{tmp_path}/all.txt", "--folds", "3", "--model", f"Theirs={tmp_path}/lgb.txt"]
        options = ["--measure", "ndcg@5", "--workers", "threads:1", "--out", f"{tmp_path}/out"]
        assert run(["experiment", *files, "--rankers", "regression", *options]) == 0
        out, err = capsys.readouterr()
        assert "Theirs was not trained by this experiment" in err
        assert "Theirs " in out
        (tmp_path / "out2").mkdir()
        (tmp_path / "lgb.txt").rename(tmp_path / "out2" / "report.html")
        options = ["--model", f"{tmp_path}/out2/report.html", "--out", f"{tmp_path}/out2"]
        assert run(["experiment", *files[:4], *options]) == 2
        assert "report.html" in capsys.readouterr().err

    def test_a_model_of_other_features_fails_its_trials(self, spec, tmp_path):
        fit_booster(rw.make_queries(20, n_features=9, random_state=0)).save_model(tmp_path / "lgb.txt")
        results = run_serially(rw.read_experiment(spec), tmp_path / "out")
        assert "the documents have 6 features; the model was trained on 9" in results.tables["trials"]["error"][-1]


@pytest.fixture
def texts(tmp_path):
    """A folder with a model that LightGBM trained on text which counts features from 1, and documents as text."""
    for name, queries in (("train", QUERIES), ("test", TEST)):
        rows = [
            f"{grade:g} " + " ".join(f"{i}:{value!r}" for i, value in enumerate(row, 1))
            for grade, row in zip(queries.y, queries.X.tolist(), strict=True)
        ]
        (tmp_path / name).write_text("\n".join(rows) + "\n")
        (tmp_path / f"{name}.query").write_text("\n".join(map(str, queries.sizes.tolist())) + "\n")
    params = {"objective": "lambdarank", "num_leaves": 5, "min_data_in_leaf": 5, "verbosity": -1}
    booster = lightgbm.train(params, lightgbm.Dataset(str(tmp_path / "train"), params=params), 5)
    assert booster.num_feature() == 7
    booster.save_model(tmp_path / "lgb.txt")
    rw.write_letor(TEST, tmp_path / "test.txt")
    return tmp_path


class TestFeatureNumbers:
    @staticmethod
    def predict(folder, data, model):
        assert (
            run(["predict", "--data", f"{folder}/{data}", "--model", f"{folder}/{model}", "--out", f"{folder}/out"])
            == 0
        )
        return np.loadtxt(folder / "out").tolist()

    def test_columns_are_the_indices_of_group_files(self, texts):
        expected = lightgbm.Booster(model_file=texts / "lgb.txt").predict(str(texts / "test"), raw_score=True)
        assert self.predict(texts, "test", "lgb.txt") == expected.tolist()
        (texts / "wide").write_text("0 9:1\n")
        (texts / "wide.query").write_text("1\n")
        with pytest.raises(rw.InputError, match="indices up to 9; the model has 7 features"):
            open_for_model(rw.load(texts / "lgb.txt"), [texts / "wide"], NO_ROLES)

    def test_a_model_of_arrays_leaves_out_an_index_that_no_document_has(self, texts, booster, raw):
        booster.save_model(texts / "arrays.txt")  # of 6 columns; the text has the indices 1 to 6
        assert self.predict(texts, "test", "arrays.txt") == raw.tolist()

    def test_letor_text_may_be_shifted(self, texts, capsys):
        wrong = self.predict(texts, "test.txt", "lgb.txt")
        err = capsys.readouterr().err
        assert "never uses feature 1, and feature 7 is 0 in all documents" in err
        assert run(["import", f"{texts}/lgb.txt", "--model", f"{texts}/m.json", "--drop-first"]) == 0
        right = self.predict(texts, "test.txt", "m.json")
        assert "shifted" not in capsys.readouterr().err
        booster = lightgbm.Booster(model_file=texts / "lgb.txt")
        assert right == booster.predict(np.pad(TEST.X, ((0, 0), (1, 0))), raw_score=True).tolist() != wrong
        assert self.predict(texts, "test", "m.json") == right

    def test_export_and_import_note_an_empty_first_column(self, texts, booster, capsys):
        assert run(["export", f"{texts}/lgb.txt", "--to", "c", "--out", f"{texts}/m.c"]) == 0
        assert "note: the LightGBM model never uses feature 1, its column 0" in capsys.readouterr().err
        assert run(["import", f"{texts}/lgb.txt", "--model", f"{texts}/m.json"]) == 0
        assert "--drop-first" in capsys.readouterr().err
        assert run(["import", f"{texts}/lgb.txt", "--model", f"{texts}/m.json", "--drop-first"]) == 0
        assert run(["export", f"{texts}/m.json", "--to", "c", "--out", f"{texts}/m.c"]) == 0
        assert "never uses" not in capsys.readouterr().out
        assert not describe_first_column(rw.import_model(booster))

    def test_a_first_feature_that_is_used_is_not_dropped(self, booster):
        with pytest.raises(rw.InputError, match="the LightGBM model uses its first feature"):
            rw.import_model(booster, drop_first=True)

    @pytest.mark.parametrize("data", ["test.txt", "test", "test.csv", "test.rwq"])
    def test_documents_may_have_more_features_than_a_text_of_ranklib(self, texts, data):
        (texts / "ca.txt").write_text("## Coordinate Ascent\n1:0.5 4:-0.25\n")
        frame = pandas.DataFrame(TEST.X, columns=[str(i) for i in range(1, 7)])
        frame.assign(label=TEST.y, qid=TEST.row_qid).to_csv(texts / "test.csv", index=False)
        rw.write_queries(TEST, texts / "test.rwq")
        expected = 0.5 * TEST.X[:, 0].astype(float) - 0.25 * TEST.X[:, 3]
        assert self.predict(texts, data, "ca.txt") == pytest.approx(expected.tolist())
        model = rw.load(texts / "ca.txt")
        assert model.predict(TEST) == pytest.approx(expected)
        assert model.predict(TEST.X) == pytest.approx(expected)
        with pytest.raises(rw.InputError, match="the documents have 3 features; the model was trained on 4"):
            model.predict(TEST.X[:, :3])

    def test_documents_with_more_features_are_diagnosed_and_tested(self, tmp_path):
        (tmp_path / "ca.txt").write_text("## Coordinate Ascent\n1:0.5 4:-0.25\n")
        diagnosis = rw.diagnose(rw.load(tmp_path / "ca.txt"), QUERIES, "ndcg@5")
        assert (diagnosis.ranker, len(diagnosis.weight_gains.gain)) == ("RankLib", 4)
        results = run_serially(rw.Experiment(DATA, tmp_path / "ca.txt", "map"), tmp_path / "out")
        weights = results.tables["weights"]
        assert weights["weight"][weights["fold"] == 1].tolist() == [0.5, 0.0, 0.0, -0.25]

    def test_a_model_with_one_feature_more_has_a_way_out(self, texts):
        model = rw.load(texts / "lgb.txt")
        with pytest.raises(rw.InputError, match=r"the LightGBM model has 7\. If it read text .* drop_first=True"):
            rw.evaluate(model, TEST, "map")
