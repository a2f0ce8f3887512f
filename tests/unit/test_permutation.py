"""Permutation importance, against a slow twin that shuffles and evaluates query by query."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import rankwright as rw
from rankwright.analysis.permutation import draw_permutation, find_varied_features
from rankwright.experiments.tables import trial_tables


@pytest.fixture(scope="module")
def queries():
    """Forty queries of eight documents; the fourth feature is the same for all documents of a query."""
    rng = np.random.default_rng(2)
    X = rng.normal(size=(320, 5)).astype(np.float32)
    X[:, 3] = np.repeat(np.arange(40), 8)
    y = np.clip(np.round(X[:, 0] + 0.5 * X[:, 1] + 0.5 * rng.normal(size=320)), 0, 2)
    return rw.Queries.from_arrays(X, y, group=[8] * 40, weight=np.linspace(1.0, 2.0, 40))


def slow_falls(model, queries, measure, n_repeats, seed):
    """Shuffle one feature of one query at a time, and take the weighted mean of the measure."""
    rng = np.random.default_rng(seed)
    before = rw.evaluate(model, queries, measure)[measure]
    falls = np.zeros((queries.n_features, n_repeats))
    for repeat in range(n_repeats):
        keys = rng.random(queries.n_docs)
        for feature in range(queries.n_features):
            X = np.array(queries.X)
            for rows in queries:
                X[rows, feature] = queries.X[rows, feature][np.argsort(keys[rows], kind="stable")]
            falls[feature, repeat] = before - rw.evaluate(model, queries.replace(X=X), measure)[measure]
    return falls


@pytest.mark.parametrize("measure", ["ndcg@5", "map"])
@pytest.mark.parametrize("scale", ["standard", "query"])
def test_it_is_the_fall_of_the_measure(queries, measure, scale):
    ranker = rw.Regression(scale=scale).fit(queries)
    found = rw.permutation_importance(ranker, queries, measure, n_repeats=3, random_state=7)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        np.testing.assert_allclose(found.falls, slow_falls(ranker, queries, measure, 3, 7), atol=1e-12)
    assert found.value == pytest.approx(rw.evaluate(ranker, queries, measure)[measure])
    assert (found.measure, found.n_queries, found.features) == (measure, 40, tuple("12345"))
    assert found.means.max() > 0.02  # or nothing was compared
    assert not found.falls[3].any()


def test_the_seed_decides(queries):
    model = rw.Regression().fit(queries).to_model()
    one, other, again = (rw.permutation_importance(model, queries, random_state=seed) for seed in (1, 2, 1))
    assert (one.falls == again.falls).all()
    assert (one.falls != other.falls).any()
    assert one.falls.shape == (5, 5)
    assert one.measure == str(model.measure)


def test_rows_may_come_in_any_order(queries):
    ranker = rw.Regression().fit(queries)
    order = np.random.default_rng(0).permutation(queries.n_docs)
    apart = rw.Queries.from_arrays(queries.X[order], queries.y[order], queries.row_qid[order])
    found = rw.permutation_importance(ranker, apart, "map", n_repeats=30)
    plain = rw.permutation_importance(ranker, queries.replace(weight=None), "map", n_repeats=30)
    assert found.value == pytest.approx(plain.value)
    np.testing.assert_allclose(found.means, plain.means, atol=0.02)  # other shuffles of the same values


def test_at_most_so_many_documents(queries):
    ranker = rw.Regression().fit(queries)
    assert rw.permutation_importance(ranker, queries, max_docs=83, n_repeats=1).n_queries == 10
    assert rw.permutation_importance(ranker, queries, max_docs=1, n_repeats=1).n_queries == 1


def test_permutations_keep_queries_together(queries):
    order = draw_permutation(queries, np.random.default_rng(0))
    assert (order // 8 == np.arange(queries.n_docs) // 8).all()
    assert (order != np.arange(queries.n_docs)).mean() > 0.5
    assert find_varied_features(queries).tolist() == [0, 1, 2, 4]
    X = np.array(queries.X)
    X[:, 0] = np.nan
    X[5, 1] = np.nan
    assert find_varied_features(queries.replace(X=X)).tolist() == [1, 2, 4]


def test_it_prints_and_becomes_a_table(queries):
    found = rw.permutation_importance(rw.Regression().fit(queries), queries, "map")
    frame = found.to_pandas()
    assert list(frame.columns) == ["feature", "fall", "deviation"]
    assert (np.diff(frame["fall"]) <= 0).all()
    text = str(found)
    assert text.splitlines()[0].startswith("map is 0.")
    assert text.splitlines()[1].split()[0] == frame["feature"][0]


@pytest.mark.parametrize("options", [{"n_repeats": 0}, {"max_docs": 0}])
def test_it_needs_a_shuffle_and_a_document(queries, options):
    with pytest.raises(rw.InputError, match="expected at least 1"):
        rw.permutation_importance(rw.Regression().fit(queries), queries, **options)


def test_a_trial_leaves_it_for_the_report(queries, monkeypatch):
    fold = rw.split_folds(queries, 3, random_state=0)[0]
    ranker = rw.Regression(measure="map").fit(fold.train)
    trained = trial_tables.TrainedRanker(ranker, fold, np.zeros(1), {}, "ndcg@3")
    made = trial_tables.tabulate_permutation(trained)
    expected = rw.permutation_importance(ranker, fold.test, "ndcg@3", n_repeats=trial_tables.N_SHUFFLES)
    assert made["fall"].tolist() == expected.means.tolist()
    monkeypatch.setattr(trial_tables, "MOST_SHUFFLED", 17 * 3 * 5)  # documents, shuffles, features
    assert set(trial_tables.tabulate_permutation(trained)["queries"]) == {2}
