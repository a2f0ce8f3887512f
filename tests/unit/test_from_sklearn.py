"""Linear models of scikit-learn become weights that score as they do."""

import numpy as np
import pandas
import pytest
from sklearn import ensemble, linear_model, preprocessing, svm
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline

import rankwright as rw


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = (rng.normal(size=(200, 4)) * [1.0, 100.0, 0.01, 3.0] + [0.0, 500.0, 0.2, -7.0]).astype(np.float32)
    return X, (X[:, 0] + X[:, 3] / 3 + rng.normal(size=200) > -2).astype(int)


ESTIMATORS = [
    linear_model.LinearRegression(),
    linear_model.Ridge(fit_intercept=False),
    linear_model.Lasso(alpha=0.01),
    linear_model.BayesianRidge(),
    linear_model.HuberRegressor(max_iter=1000),
    linear_model.LogisticRegression(max_iter=5000),
    linear_model.SGDClassifier(random_state=0),
    linear_model.RidgeClassifier(),
    svm.LinearSVC(random_state=0),
    svm.SVC(kernel="linear"),
    LinearDiscriminantAnalysis(),
]
SCALERS = [
    preprocessing.StandardScaler(),
    preprocessing.StandardScaler(with_mean=False),
    preprocessing.StandardScaler(with_std=False),
    preprocessing.MinMaxScaler((-1, 2)),
    preprocessing.MaxAbsScaler(),
    preprocessing.RobustScaler(),
]


def check(source, X):
    model = rw.import_model(source)
    score = source.decision_function if hasattr(source, "decision_function") else source.predict
    np.testing.assert_allclose(model.predict(X), np.ravel(score(X.astype(np.float64))), rtol=1e-9, atol=1e-9)
    return model


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=str)
def test_an_estimator(data, estimator):
    X = preprocessing.scale(data[0].astype(np.float64)).astype(np.float32)
    model = check(estimator.fit(X, data[1]), X)
    assert model.params["estimator"] == type(estimator).__name__


@pytest.mark.parametrize("scaler", SCALERS, ids=str)
def test_a_pipeline_is_folded(data, scaler):
    X, y = data
    check(make_pipeline(scaler, "passthrough", linear_model.Ridge()).fit(X, y), X)
    model = check(make_pipeline(scaler, preprocessing.MinMaxScaler(), linear_model.LogisticRegression()).fit(X, y), X)
    assert model.params["estimator"] == f"{type(scaler).__name__} + MinMaxScaler + LogisticRegression"


def test_names_of_a_data_frame_are_kept(data):
    frame = pandas.DataFrame(data[0], columns=list("abcd"))
    pipeline = make_pipeline(preprocessing.StandardScaler(), linear_model.Ridge()).fit(frame, data[1])
    assert rw.import_model(pipeline).features == tuple("abcd")


def test_missing_values_are_refused_with_words_that_fit(data):
    model = rw.import_model(linear_model.Ridge().fit(*data))
    with pytest.raises(rw.InputError, match="this scikit-learn model takes complete features only"):
        model.predict(np.float32([[np.nan, 1, 2, 3]]))


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (linear_model.Ridge(), "this Ridge is not fitted; call fit first"),
        (ensemble.AdaBoostRegressor(n_estimators=2), "found a AdaBoostRegressor; expected a linear"),
        (svm.SVC(kernel="rbf"), "found a SVC; expected a linear model of scikit-learn"),
        (linear_model.PoissonRegressor(), "scores of this PoissonRegressor are not weighted sums"),
        (GridSearchCV(linear_model.Ridge(), {"alpha": [1.0]}, refit=False), "GridSearchCV"),
        (make_pipeline(PCA(2), linear_model.Ridge()), "a pipeline with PCA"),
        (make_pipeline(preprocessing.MinMaxScaler(clip=True), linear_model.Ridge()), "a clipping MinMaxScaler"),
    ],
    ids=str,
)
def test_what_is_not_linear_is_refused(data, source, message):
    if not isinstance(source, linear_model.Ridge):
        source.fit(preprocessing.scale(data[0].astype(np.float64)), data[1])
    with pytest.raises(rw.InputError, match=message):
        rw.import_model(source)


def test_several_outputs_are_refused(data):
    X, y = data
    with pytest.raises(rw.InputError, match="a Ridge with 2 scores a document"):
        rw.import_model(linear_model.Ridge().fit(X, np.stack([y, y], 1)))
    with pytest.raises(rw.InputError, match="a LogisticRegression with 3 scores a document"):
        rw.import_model(linear_model.LogisticRegression(max_iter=500).fit(X[:, :1], np.arange(200) % 3))
