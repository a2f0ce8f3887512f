"""Members of a blend: every kind of them, their names and parameters, and their errors."""

from __future__ import annotations

import pickle

import joblib
import lightgbm
import numpy as np
import pandas as pd
import pytest
import xgboost
from sklearn.base import BaseEstimator, RegressorMixin, clone
from sklearn.ensemble import HistGradientBoostingRegressor, StackingRegressor
from sklearn.exceptions import ConvergenceWarning
from sklearn.frozen import FrozenEstimator
from sklearn.impute import SimpleImputer
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVR
from tests.warned import allow_warnings

import rankwright as rw
from rankwright.rankers import RANKERS
from rankwright.rankers.parameter_names import ParameterNameError
from rankwright.scorers import WeightedSum

QUERIES = rw.make_queries(24, n_docs=10, n_features=5, random_state=0)
FEW = {"n_estimators": 4, "n_restarts": 1, "max_iter": 5, "max_inner_iter": 2}


def blend(*members, **params) -> rw.Blend:
    return rw.Blend(rankers=list(members), **{"n_folds": 2, **params})


def trees(**params) -> rw.MART:
    return rw.MART(**{"num_leaves": 4, "n_estimators": 5, **params})


def check(fitted, queries=QUERIES) -> None:
    """Assert that a fitted blend scores finite numbers, and that its weights add up to 1."""
    assert np.isfinite(fitted.predict(queries)).all()
    assert sum(row["weight"] for row in fitted.members_) == pytest.approx(1.0)


@pytest.mark.parametrize("ranker", RANKERS, ids=lambda ranker: ranker.__name__)
def test_every_ranker_can_be_a_member(ranker, tmp_path):
    member = ranker()
    known = member.get_params(deep=False)
    member.set_params(**{name: value for name, value in FEW.items() if name in known})
    if "training" in known and known.get("hidden", True):
        member.set_params(training={"n_epochs": 2})
    with allow_warnings(ConvergenceWarning, rw.DegenerateModelWarning, rw.IneffectiveParameterWarning):
        fitted = blend(("one", member), trees(), weights="equal").fit(QUERIES)
    check(fitted)
    assert {row["member"] for row in fitted.members_} == {"one", "mart"}
    rw.save(fitted, tmp_path / "m.json")
    assert rw.load(tmp_path / "m.json").predict(QUERIES).tobytes() == fitted.predict(QUERIES).tobytes()


@pytest.mark.parametrize(
    ("member", "kind"),
    [
        (Ridge(), "linear"),
        (lightgbm.LGBMRegressor(n_estimators=5, num_leaves=4, verbose=-1, n_jobs=1), "trees"),
        (lightgbm.LGBMRanker(n_estimators=5, num_leaves=4, verbose=-1, n_jobs=1), "trees"),
        (xgboost.XGBRanker(n_estimators=5, max_depth=2, n_jobs=1), "trees"),
        (xgboost.XGBRegressor(n_estimators=5, max_depth=2, n_jobs=1), "trees"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_members_of_other_libraries_are_compiled(member, kind, tmp_path):
    fitted = blend(member).fit(QUERIES)
    assert fitted.scorer_.kind == kind
    check(blend(member, rw.Regression()).fit(QUERIES.replace(weight=np.arange(24.0))))
    rw.save(fitted, tmp_path / "m.json")
    assert rw.load(tmp_path / "m.json").predict(QUERIES).tobytes() == fitted.predict(QUERIES).tobytes()


@pytest.mark.parametrize("member", [SVR(), KNeighborsRegressor(3)])
def test_other_regressors_live_in_memory_only(member, tmp_path):
    fitted = blend(member, rw.Regression(), weights="equal").fit(QUERIES)
    check(fitted)
    assert isinstance(fitted.scorer_, WeightedSum)
    with pytest.raises(rw.InputError, match=f"contains a {type(member).__name__}, which cannot be written"):
        rw.save(fitted, tmp_path / "m.json")
    assert not (tmp_path / "m.json").exists()
    for copy in (pickle.loads(pickle.dumps(fitted)), clone(fitted).fit(QUERIES)):
        assert copy.predict(QUERIES).tobytes() == fitted.predict(QUERIES).tobytes()
    with pytest.raises(rw.InputError, match=r"a scorer of kind 'estimator', .*can be neither exported nor explained"):
        rw.export(fitted, "c", tmp_path / "m.c")


def test_fitted_models_are_not_fitted_again(tmp_path):
    earlier, later = QUERIES.take(range(10)), QUERIES.take(range(10, 24))
    rw.save(rw.Regression().fit(earlier), tmp_path / "m.json")
    model = rw.load(tmp_path / "m.json")
    with pytest.warns(rw.FixedModelWarning, match="the member regression was trained before"):
        fitted = blend(model, n_folds=3).fit(later)
    ratio = (fitted.scorer_.linear.coef / model.scorer.linear.coef).tolist()
    assert ratio == pytest.approx([ratio[0]] * 5)
    assert ratio[0] > 0
    with pytest.raises(rw.InputError, match=r"the member regression: .*have 5 features; the model was trained on 3"):
        blend(rw.Regression().fit(rw.make_queries(5, n_features=3, random_state=0)).to_model()).fit(later)
    with pytest.raises(rw.InputError, match=r"the member regression: the documents contain NaN"):
        holed = later.X.copy()
        holed[0, 0] = np.nan
        blend(model, trees()).fit(later.with_X(holed))


def test_a_fixed_model_of_trees_is_in_the_blend_once():
    model = trees().fit(QUERIES).to_model()
    with pytest.warns(rw.FixedModelWarning):
        fitted = blend(model, n_folds=4).fit(QUERIES)
    assert len(fitted.scorer_.trees) == len(model.scorer)


def test_a_blend_in_a_blend():
    inner = blend(rw.Regression(), trees(), weights="equal")
    fitted = blend(inner, rw.RankBoost(n_estimators=4)).fit(QUERIES)
    check(fitted)
    assert {row["member"] for row in fitted.members_} == {"blend", "rankboost"}
    assert fitted.get_params()["blend__mart__num_leaves"] == 4
    fitted.set_params(blend__mart__num_leaves=6)
    assert inner.rankers[1].num_leaves == 6


def test_networks():
    pytest.importorskip("torch")
    member = rw.ListNet(hidden=(4,), training={"n_epochs": 2})
    one, other = (blend(member, rw.Regression()).fit(QUERIES) for _ in range(2))
    check(one)
    assert one.predict(QUERIES).tobytes() == other.predict(QUERIES).tobytes()


def test_measures_and_objectives_of_ones_own():
    def first_is_relevant(grades):
        return float(grades[0] > 0)

    measure = rw.make_measure(first_is_relevant, "first")
    check(blend(rw.Regression(), trees(), measure=measure).fit(QUERIES))

    def squares(scores, queries):
        rest = scores - queries.y
        return float(rest @ rest), 2.0 * rest

    check(blend(rw.LinearRanker(objective=squares), trees()).fit(QUERIES))


def test_members_are_trained_on_the_measure_of_the_blend_unless_they_have_one():
    members = [rw.AdaRank(n_estimators=3), ("own", rw.AdaRank(n_estimators=3, measure="map"))]
    seen = [str(each.estimator.measure) for [each] in blend(*members)._list_members(rw.parse_measure("err")).values()]
    assert seen == ["err", "map"]
    assert members[0].measure == "ndcg@10"


class Plain:
    """A regressor with scikit-learn's methods, but without its base class and tags."""

    def get_params(self, deep=True):
        return {}

    def set_params(self, **params):
        return self

    def fit(self, X, y):
        self.coef = np.linalg.lstsq(X, y, rcond=None)[0]
        return self

    def predict(self, X):
        return X @ self.coef


def test_regressors_without_tags_or_with_late_methods():
    for member in (Plain(), StackingRegressor([("ridge", Ridge())])):
        blend = rw.Blend(rankers=[("own", member), rw.Regression()], n_folds=2).fit(QUERIES)
        assert np.isfinite(blend.predict(QUERIES)).all()
        assert np.isfinite(blend.predict(QUERIES.X)).all()


def test_members_that_continue_a_model_may_have_seen_the_queries(tmp_path):
    rw.save(rw.MART(n_estimators=5).fit(QUERIES), tmp_path / "m.json")
    members = [("more", rw.MART(n_estimators=9, init_model=tmp_path / "m.json")), rw.Regression()]
    with pytest.warns(rw.FixedModelWarning, match="the member more was trained before"):
        rw.Blend(rankers=members, n_folds=2).fit(QUERIES)
    frozen = FrozenEstimator(Ridge().fit(QUERIES.X, QUERIES.y))
    with pytest.warns(rw.FixedModelWarning, match="the member frozen was trained before"):
        rw.Blend(rankers=[("frozen", frozen), rw.Regression()], n_folds=2).fit(QUERIES)


class TestErrors:
    def test_scaling_within_queries(self):
        with pytest.raises(rw.InputError, match=r"the member regression: it scales features within .*scale='standard'"):
            blend(rw.Regression(scale="query"), trees()).check_parameters()
        with pytest.raises(rw.InputError, match=r"the member regression: it scales features within each query"):
            blend(rw.Regression(scale="query").fit(QUERIES).to_model(), trees()).fit(QUERIES)

    def test_early_stopping(self):
        said = "MART: early_stopping_rounds has no effect in a blend"
        with pytest.warns(rw.IneffectiveParameterWarning, match=said):
            check(blend(trees(early_stopping_rounds=2)).fit(QUERIES))

    @pytest.mark.parametrize("made", [dict, rw.TrainingOptions])
    def test_options_of_training_in_epochs(self, made, tmp_path):
        pytest.importorskip("torch")
        training = made(n_epochs=2, early_stopping_rounds=3, checkpoint=tmp_path / "state.pt")
        with pytest.warns(rw.IneffectiveParameterWarning) as found:
            check(blend(rw.NeuralRanker(hidden=(3,), training=training)).fit(QUERIES))
        said = "\n".join(str(each.message) for each in found)
        assert "NeuralRanker: early_stopping_rounds has no effect in a blend, whose fits have no validation" in said
        assert "NeuralRanker: checkpoint has no effect in a blend, whose fits would all write to one file" in said
        assert list(tmp_path.iterdir()) == []

    def test_classifiers(self):
        with pytest.raises(
            rw.InputError, match=r"the member gaussiannb: a GaussianNB predicts classes; expected a reg"
        ):
            blend(GaussianNB()).fit(QUERIES)

    @pytest.mark.parametrize("backend", [rw.Serial(), rw.Threads(2)])
    def test_a_member_that_fails_is_named(self, backend):
        class Broken(RegressorMixin, BaseEstimator):
            def fit(self, X, y):
                raise ArithmeticError("it broke")

            def predict(self, X):
                return X[:, 0]

        with pytest.raises(ArithmeticError, match="it broke") as found:
            blend(rw.Regression(), ("fragile", Broken()), backend=backend).fit(QUERIES)
        assert found.value.__notes__ == ["This was raised by fragile, a member of a blend."]
        with pytest.raises(rw.InputError, match=r"^the member mart: num_leaves=-1; expected"):
            blend(rw.Regression(), trees(num_leaves=-1), backend=backend).fit(QUERIES)

    def test_wrong_members(self):
        for rankers, said in (
            ([], "rankers is empty; expected at least one"),
            ("best", "rankers='best'; expected 'default'"),
            (3, "rankers=3; expected 'default' or a list"),
            ([rw.MART], r"found the class MART among the rankers; expected an object: MART\(\)"),
            ([3], "found 3 among the rankers"),
            ([("a", rw.MART()), ("a", rw.MART())], "a member is called 'a'"),
            ([("measure", rw.MART())], "a member is called 'measure'"),
            ([("a__b", rw.MART())], "a member is called 'a__b'"),
        ):
            made = rw.Blend(rankers=rankers)
            for call in (made.check_parameters, lambda made=made: made.fit(QUERIES)):
                with pytest.raises(rw.InputError, match=said):
                    call()
            assert made.get_params()["rankers"] is rankers

    def test_weights_of_documents_and_queries(self):
        weighted = QUERIES.replace(doc_weight=np.linspace(1.0, 2.0, QUERIES.n_docs))
        check(blend(rw.Regression(), trees(), Ridge()).fit(weighted))
        with pytest.raises(rw.InputError, match=r"the member listnet: the documents have weights; ListNet.*takes none"):
            blend(rw.Regression(), rw.ListNet()).fit(weighted)
        with pytest.raises(
            rw.InputError, match=r"the member kneighborsregressor: the documents have weights, and .*takes none"
        ):
            blend(rw.Regression(), KNeighborsRegressor(3)).fit(weighted)
        said = "the member kneighborsregressor, in 2 of 2 fits: KNeighborsRegressor.fit takes no sample_weight"
        with pytest.warns(rw.IneffectiveParameterWarning, match=said):
            blend(rw.Regression(), KNeighborsRegressor(3)).fit(QUERIES.replace(weight=np.arange(24.0)))

    def test_members_that_did_not_converge_are_named_once(self):
        with pytest.warns(ConvergenceWarning) as found:
            blend(rw.Regression(), rw.ListNet(max_iter=1)).fit(QUERIES)
        [message] = [str(each.message) for each in found]
        assert message.startswith("the member listnet, in 2 of 2 fits: ListNet did not converge")

    def test_a_member_that_learns_nothing_is_named_once(self):
        with pytest.warns(rw.DegenerateModelWarning) as found:
            fitted = blend(rw.Regression(), trees(min_child_samples=10_000)).fit(QUERIES)
        [message] = [str(each.message) for each in found]
        assert message.startswith("the member mart learned no ranking in any fold: ")
        check(fitted)
        assert next(row for row in fitted.members_ if row["member"] == "mart")["weight"] == 0.0


def test_missing_values_and_categories():
    X = QUERIES.X.copy()
    X[3, 2] = np.nan
    holed = QUERIES.with_X(X)
    check(blend(trees(), HistGradientBoostingRegressor(max_iter=3)).fit(holed), holed)
    with pytest.raises(
        rw.InputError,
        match=r"the member regression: the training documents contain NaN \(in 1 of \d+ rows, first in row 3, ",
    ):
        blend(trees(), rw.Regression()).fit(holed)
    frame = pd.DataFrame(QUERIES.X[:, :2], columns=["a", "b"]).assign(
        color=pd.Categorical(np.where(QUERIES.y > 0, "red", np.where(QUERIES.X[:, 3] > 0.5, "blue", "green")))
    )
    fitted = blend(trees(), rw.LambdaMART(n_estimators=4, num_leaves=4)).fit(frame, QUERIES.y, qid=QUERIES.row_qid)
    assert np.isfinite(fitted.predict(frame)).all()
    assert fitted.to_model().categories is not None
    with pytest.raises(rw.InputError, match=r"the member regression: feature color has categories"):
        blend(trees(), rw.Regression()).fit(frame, QUERIES.y, qid=QUERIES.row_qid)
    with pytest.raises(rw.InputError, match=r"the member ridge: a Ridge takes numbers only"):
        blend(trees(), Ridge()).fit(frame, QUERIES.y, qid=QUERIES.row_qid)
    assert np.isfinite(rw.AutoRanker().fit(frame, QUERIES.y, qid=QUERIES.row_qid).predict(frame)).all()


def test_a_pipeline_that_imputes_takes_missing_values():
    X = QUERIES.X.copy()
    X[3:30:5, 2] = np.nan
    holed = QUERIES.with_X(X)
    fitted = blend(make_pipeline(SimpleImputer(), KNeighborsRegressor(3)), trees()).fit(holed)
    check(fitted, holed)
    assert np.isfinite(fitted.score(holed))
    with pytest.raises(rw.InputError, match=r"the member ridge: a Ridge failed on documents with missing .* imputer"):
        blend(Ridge(), trees()).fit(holed)
    complete = blend(KNeighborsRegressor(3), trees()).fit(QUERIES)
    with pytest.raises(rw.InputError, match="complete features only"):
        complete.predict(holed)


def test_estimators_of_scikit_learn_are_fitted_in_double_precision():
    seen = []

    class Recorded(Ridge):
        def fit(self, X, y):
            seen.append(X.dtype)
            return super().fit(X, y)

    Recorded.__module__ = Ridge.__module__
    blend(("own", Recorded()), trees()).fit(QUERIES)
    assert set(seen) == {np.dtype(np.float64)}


class TestParameters:
    def test_those_of_members_are_read_and_set_by_name(self):
        made = blend(rw.Regression(), ("small", trees()), trees())
        params = made.get_params()
        assert {"regression", "small", "mart"} <= set(params)
        assert params["small__num_leaves"] == 4
        assert "small" not in made.get_params(deep=False)
        made.set_params(small__num_leaves=8, n_folds=4, regression__alpha=2.0)
        assert (made.rankers[1][1].num_leaves, made.n_folds, made.rankers[0].alpha) == (8, 4, 2.0)
        made.set_params(mart=rw.RankBoost(n_estimators=2))
        assert [name for name, _ in made.rankers] == ["regression", "small", "mart"]
        assert isinstance(dict(made.rankers)["mart"], rw.RankBoost)
        made.set_params(rankers=[trees()], mart__num_leaves=3)
        assert made.rankers[0].num_leaves == 3

    def test_a_new_member_gets_parameters_set_in_the_same_call(self):
        blend = rw.Blend(rankers=[("small", rw.MART())])
        blend.set_params(small__num_leaves=3, small=rw.LambdaMART())
        assert blend.get_params()["small"].num_leaves == 3
        assert isinstance(blend.get_params()["small"], rw.LambdaMART)

    def test_given_names_come_before_those_that_are_made(self):
        blend = rw.Blend(rankers=[rw.MART(), rw.MART(), ("mart-2", rw.MART(num_leaves=5))])
        assert blend.get_params()["mart-2"].num_leaves == 5

    def test_unknown_names_are_errors_with_a_suggestion(self):
        made = blend(rw.Regression(), trees())
        with pytest.raises(ParameterNameError, match="Blend has no parameter 'n_fold'; did you mean n_folds"):
            made.set_params(n_fold=3)
        with pytest.raises(ParameterNameError, match="Blend has no parameter 'n_fold'"):
            made.set_params(rankers=[rw.ListNet()], n_fold=3)
        assert set(dict(made._given_members())) == {"regression", "mart"}  # nothing was set
        model = blend(("old", trees().fit(QUERIES).model_))
        with pytest.raises(rw.InputError, match="old__alpha: the member old is a trained model"):
            model.set_params(old__alpha=3)
        with pytest.raises(ParameterNameError, match="MART has no parameter 'num_leafs'; did you mean num_leaves"):
            made.set_params(mart__num_leafs=3)
        with pytest.raises(ParameterNameError, match="Blend has no parameter 'members'"):
            rw.Blend(members=[])

    def test_clones_are_deep(self):
        made = blend(rw.Regression(), ("small", trees())).fit(QUERIES)
        copy = clone(made)
        copy.set_params(small__num_leaves=9)
        assert made.rankers[1][1].num_leaves == 4
        assert not hasattr(copy, "model_")
        assert "rankers=[Regression()" in repr(made)

    def test_a_grid_over_a_member(self):
        with rw_routing():
            grid = {"mart__num_leaves": [3, 4], "weights": ["equal", "greedy"]}
            search = GridSearchCV(blend(rw.Regression(), trees()), grid, cv=rw.QueryKFold(2), error_score="raise")
            search.fit(QUERIES.X, QUERIES.y, qid=QUERIES.row_qid)
        assert search.best_params_["mart__num_leaves"] in (3, 4)


def rw_routing():
    import sklearn

    return sklearn.config_context(enable_metadata_routing=True)


def test_copies_of_a_fitted_blend(tmp_path):
    fitted = blend(rw.Regression(), trees()).fit(QUERIES)
    joblib.dump(fitted, tmp_path / "m.joblib")
    for copy in (pickle.loads(pickle.dumps(fitted)), joblib.load(tmp_path / "m.joblib")):
        assert copy.predict(QUERIES).tobytes() == fitted.predict(QUERIES).tobytes()
        assert copy.members_ == fitted.members_
        assert copy.estimate_ == fitted.estimate_


def test_what_other_parts_of_the_library_do_with_a_blend(tmp_path):
    fitted = blend(rw.Regression(), trees(), weights="equal").fit(QUERIES)
    rw.save(fitted, tmp_path / "m.json")
    model = rw.load(tmp_path / "m.json")
    assert model.ranker == "Blend"
    assert model.params["rankers"] == ["Regression()", "MART(n_estimators=5, num_leaves=4)"]
    assert str(rw.explain(fitted))
    assert rw.polish_model(fitted, QUERIES).score(QUERIES) >= fitted.score(QUERIES)
    assert str(rw.diagnose(fitted, QUERIES))
    only_trees = blend(trees(), rw.LambdaMART(num_leaves=4, n_estimators=4), weights="equal").fit(QUERIES)
    assert only_trees.scorer_.kind == "trees"
    for to, name in (("lightgbm", "m.txt"), ("c", "m.c"), ("xgboost", "m.ubj")):
        assert rw.export(only_trees, to, tmp_path / name)[0].exists()
    booster = lightgbm.Booster(model_file=str(tmp_path / "m.txt"))
    assert booster.predict(QUERIES.X) == pytest.approx(only_trees.predict(QUERIES), abs=1e-6)
    assert rw.export(fitted, "onnx", tmp_path / "m.onnx")[0].exists()
    linear = blend(rw.Regression(), rw.ListNet(), weights="equal").fit(QUERIES)
    assert linear.scorer_.kind == "linear"
    assert rw.export(linear, "solr", tmp_path / "m.solr.json")[0].exists()
