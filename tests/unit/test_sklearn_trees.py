"""Trees and sums of trees of scikit-learn become trees that score as they do."""

import numpy as np
import pandas
import pytest
from sklearn import ensemble, preprocessing, tree
from sklearn.dummy import DummyRegressor
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline

import rankwright as rw
from rankwright.scorers import Trees

N_DOCS, N_FEATURES = 300, 6


def make_rows(missing, random_state=0):
    """Return features with ties, and grades that depend on them and on what is missing."""
    rng = np.random.default_rng(random_state)
    X = (rng.normal(size=(N_DOCS, N_FEATURES)) * [1, 100, 1, 1e-3, 1, 1]).astype(np.float32)
    X[:, 2] = np.round(X[:, 2])
    X[:, 4] = 2.5
    y = np.clip(np.round(X[:, 0] + X[:, 2] + rng.normal(size=N_DOCS)), 0, 4)
    if missing:
        X[rng.random(X.shape) < 0.2] = np.nan
        X[:, 5] = np.where(np.arange(N_DOCS) % 2, np.nan, 1.0)  # only known and missing differ
        y[np.isnan(X[:, 5])] += 2
    return X, y


def place_at_thresholds(model, random_state=0):
    """Return rows whose features are thresholds of the model, or the numbers next to them."""
    rng = np.random.default_rng(random_state)
    nodes = model.scorer.forest.nodes
    X = rng.normal(size=(200, N_FEATURES)).astype(np.float32)
    for feature in range(N_FEATURES):
        own = nodes.threshold[(nodes.feature == feature) & np.isfinite(nodes.threshold)]
        if len(own):
            at = rng.choice(own, len(X)).astype(np.float32)
            sides = [at, np.nextafter(at, np.float32(-np.inf)), np.nextafter(at, np.float32(np.inf))]
            X[:, feature] = np.choose(rng.integers(0, 3, len(X)), sides)
    return X


def check(source, rows, score=None):
    model, score = rw.import_model(source), score or source.predict
    assert isinstance(model.scorer, Trees)
    for X in (*rows, place_at_thresholds(model)):
        np.testing.assert_allclose(model.predict(X), np.ravel(score(X)), rtol=1e-14, atol=1e-14)
    return model


TAKE_MISSING = [
    tree.DecisionTreeRegressor(random_state=0),
    tree.DecisionTreeRegressor(max_depth=3, criterion="absolute_error"),
    tree.DecisionTreeRegressor(max_leaf_nodes=7, ccp_alpha=0.01),
    tree.ExtraTreeRegressor(random_state=0),
    ensemble.RandomForestRegressor(15, random_state=0),
    ensemble.RandomForestRegressor(3, max_depth=2, bootstrap=False, random_state=0),
    ensemble.ExtraTreesRegressor(15, random_state=0),
    ensemble.HistGradientBoostingRegressor(max_iter=25),
    ensemble.HistGradientBoostingRegressor(max_iter=8, max_bins=5, loss="absolute_error", early_stopping=True),
    ensemble.HistGradientBoostingRegressor(max_iter=8, loss="quantile", quantile=0.7, learning_rate=0.5),
]


@pytest.mark.parametrize("estimator", TAKE_MISSING, ids=str)
@pytest.mark.parametrize("missing", [False, True])
def test_regressors_that_take_missing_values(estimator, missing):
    X, y = make_rows(missing)
    model = check(estimator.fit(X, y), [X, make_rows(True, 1)[0], make_rows(False, 2)[0]])
    assert model.params["estimator"] == type(estimator).__name__
    assert model.params["n_estimators"] == getattr(estimator, "n_iter_", len(getattr(estimator, "estimators_", [0])))


@pytest.mark.parametrize(
    "estimator",
    [
        ensemble.GradientBoostingRegressor(n_estimators=12),
        ensemble.GradientBoostingRegressor(n_estimators=12, init="zero", learning_rate=0.7),
        ensemble.GradientBoostingRegressor(n_estimators=12, loss="huber", subsample=0.5, random_state=0),
        ensemble.GradientBoostingRegressor(n_estimators=3, init=DummyRegressor(strategy="median")),
        ensemble.GradientBoostingRegressor(n_estimators=200, n_iter_no_change=2, max_leaf_nodes=9, random_state=0),
    ],
    ids=str,
)
def test_gradient_boosting(estimator):
    X, y = make_rows(False)
    model = check(estimator.fit(X, y), [X, make_rows(False, 1)[0]])
    assert model.params["n_estimators"] == len(estimator.estimators_)


@pytest.mark.parametrize("loss", ["poisson", "gamma"])
def test_the_score_of_a_logarithmic_loss_is_before_the_exponential(loss):
    X, y = make_rows(True)
    estimator = ensemble.HistGradientBoostingRegressor(loss=loss, max_iter=10).fit(X, y + 1)
    check(estimator, [X], lambda rows: np.log(estimator.predict(rows)))


@pytest.mark.parametrize(
    "estimator",
    [
        ensemble.GradientBoostingClassifier(n_estimators=10),
        ensemble.GradientBoostingClassifier(n_estimators=10, loss="exponential"),
        ensemble.GradientBoostingClassifier(n_estimators=10, init="zero"),
        ensemble.HistGradientBoostingClassifier(max_iter=10),
    ],
    ids=str,
)
def test_two_classes_are_scored_by_the_decision_function(estimator):
    X, y = make_rows(False)
    check(estimator.fit(X, y > 1), [X], estimator.decision_function)


@pytest.mark.parametrize("estimator", [TAKE_MISSING[0], TAKE_MISSING[4], TAKE_MISSING[7]], ids=str)
@pytest.mark.parametrize("n_docs", [1, 2, 30])
def test_degenerate_trees(estimator, n_docs):
    X, y = make_rows(False)
    if n_docs > 1 or not isinstance(estimator, ensemble.HistGradientBoostingRegressor):
        check(estimator.fit(X[:n_docs], y[:n_docs]), [X])
    check(estimator.fit(X[:30] * 0, y[:30]), [X])
    check(estimator.fit(X[:30], y[:30] * 0), [X])


def test_statistics_of_nodes_are_kept():
    X, y = make_rows(False)
    for estimator in (ensemble.GradientBoostingRegressor(n_estimators=5), ensemble.HistGradientBoostingRegressor()):
        [first, *_] = [each for each in rw.import_model(estimator.fit(X, y)).scorer.forest.trees if each.n_splits]
        assert first.columns["internal_count"][0] == first.columns["leaf_count"].sum() == N_DOCS
        assert (first.columns["split_gain"] > 0).all()
    estimator = tree.DecisionTreeRegressor(max_depth=4).fit(X, y)
    gains = rw.import_model(estimator).scorer.importance()
    np.testing.assert_allclose(gains / gains.sum(), estimator.feature_importances_, atol=1e-12)


def test_names_searches_and_pipelines():
    X, y = make_rows(False)
    frame = pandas.DataFrame(X, columns=list("abcdef"))
    assert rw.import_model(ensemble.RandomForestRegressor(3).fit(frame, y)).features == tuple("abcdef")
    search = GridSearchCV(tree.DecisionTreeRegressor(), {"max_depth": [2, 3]}).fit(X, y)
    check(search, [X])
    check(make_pipeline("passthrough", tree.DecisionTreeRegressor(max_depth=3)).fit(X, y), [X])


class Shifted(tree.DecisionTreeRegressor):
    """A tree that does not predict what it has learned."""

    def predict(self, X):
        return super().predict(X) + 1e-9


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (tree.DecisionTreeClassifier(), "a DecisionTreeClassifier, whose trees vote for classes"),
        (ensemble.RandomForestClassifier(3), "a RandomForestClassifier, whose trees vote for classes"),
        (ensemble.GradientBoostingClassifier(n_estimators=2), "GradientBoostingClassifier with 5 scores a document"),
        (ensemble.HistGradientBoostingClassifier(max_iter=2), "HistGradientBoostingClassifier with 5 scores"),
        (ensemble.HistGradientBoostingRegressor(categorical_features=[2]), "with categorical features"),
        (ensemble.GradientBoostingRegressor(init=tree.DecisionTreeRegressor()), "begins with a DecisionTreeRegressor"),
        (make_pipeline(preprocessing.StandardScaler(), tree.DecisionTreeRegressor()), "expected trees alone"),
        (Shifted(), "predictions of this Shifted are not sums of its trees"),
    ],
    ids=str,
)
def test_what_is_no_sum_of_trees_is_refused(source, message):
    X, y = make_rows(False)
    X[:, 2] -= X[:, 2].min()
    with pytest.raises(rw.InputError, match=message):
        rw.import_model(source.fit(X, y))


def test_unfitted_estimators_and_several_outputs_are_refused():
    X, y = make_rows(False)
    for estimator in (TAKE_MISSING[0], TAKE_MISSING[4], ensemble.HistGradientBoostingRegressor()):
        with pytest.raises(rw.InputError, match="is not fitted; call fit first"):
            rw.import_model(type(estimator)())
    with pytest.raises(rw.InputError, match="a DecisionTreeRegressor with 2 scores a document"):
        rw.import_model(tree.DecisionTreeRegressor().fit(X, np.stack([y, y], 1)))


def test_members_of_a_blend_are_compiled(tmp_path):
    X, y = make_rows(True)
    queries = rw.Queries.from_arrays(X, np.clip(y, 0, 4), qid=np.arange(N_DOCS) // 10)
    members = [ensemble.RandomForestRegressor(5, random_state=0), ensemble.HistGradientBoostingRegressor(max_iter=5)]
    blend = rw.Blend(rankers=members, n_folds=3, random_state=0, measure="ndcg@5").fit(queries)
    assert isinstance(blend.to_model().scorer, Trees)
    rw.save(blend, tmp_path / "blend.json")
    assert np.array_equal(rw.load(tmp_path / "blend.json").predict(queries), blend.predict(queries))
