"""Export: checks that all targets share, and LightGBM's own text."""

import lightgbm
import numpy as np
import pytest

import rankwright as rw
from rankwright.models.model import Model
from rankwright.scorers import Linear, Stumps, Trees
from rankwright.scorers.lightgbm_text import Forest
from rankwright.scorers.lightgbm_trees import make_leaf
from rankwright.scorers.score_parts import split_scorer
from rankwright.scorers.stump_trees import convert_stumps_to_trees


@pytest.fixture(scope="module")
def queries():
    return rw.make_queries(30, random_state=0)


@pytest.fixture(scope="module")
def fitted(queries):
    return rw.LambdaMART(n_estimators=5, random_state=0).fit(queries)


def test_lightgbm_reads_an_exported_model(fitted, queries, tmp_path):
    written = rw.export(fitted, "lightgbm", tmp_path / "m.txt")
    assert [path.name for path in written] == ["m.txt", "m.txt.parity.json"]
    booster = lightgbm.Booster(model_file=str(tmp_path / "m.txt"))
    assert np.array_equal(booster.predict(queries.X, raw_score=True), fitted.predict(queries))


def test_a_shift_makes_scores_0_or_more(fitted, queries, tmp_path):
    rw.export(fitted, "lightgbm", tmp_path / "m.txt", shift=True)
    shifted = rw.load(tmp_path / "m.txt").predict(queries)
    scores = fitted.predict(queries)
    assert scores.min() < 0.0 <= shifted.min()
    np.testing.assert_allclose(np.diff(shifted), np.diff(scores), atol=1e-12)


def test_an_imported_booster_scores_the_same(queries):
    booster = lightgbm.train({"verbose": -1, "num_leaves": 7}, lightgbm.Dataset(queries.X, queries.y), 5)
    model = rw.import_model(booster)
    assert np.array_equal(model.predict(queries), booster.predict(queries.X, raw_score=True))


@pytest.mark.parametrize("n_stumps", [0, 1, 20, 500])
def test_stumps_are_trees(n_stumps):
    rng = np.random.default_rng(0)
    for missing in (None, rng.random(n_stumps) < 0.5):
        threshold = rng.normal(size=n_stumps).round(2).astype(np.float32)
        stumps = Stumps(rng.integers(0, 3, n_stumps), threshold, rng.normal(size=n_stumps), missing)
        X = np.concatenate([rng.normal(size=(50, 3)), np.repeat(stumps.threshold[:, None], 3, 1)]).astype(np.float32)
        found = convert_stumps_to_trees(stumps)
        assert len(found) <= (3 if missing is None else 6)
        assert all(2 ** (tree.depth - 1) <= tree.n_splits < 2**tree.depth for tree in found)
        trees = Trees(Forest.from_trees(found or [make_leaf(0.0)], 3))
        np.testing.assert_allclose(trees(X), stumps(X), atol=1e-12)
        X[rng.random(X.shape) < 0.3] = np.nan
        np.testing.assert_allclose(trees(X), stumps(np.nan_to_num(X) if missing is None else X), atol=1e-12)


def test_a_kind_that_a_target_lacks_is_refused(tmp_path):
    model = Model("Regression", {}, "ndcg@10", Linear(np.ones(2)), 2)
    with pytest.raises(rw.InputError, match=r"LightGBM cannot hold linear functions: .* that can is xgboost"):
        rw.export(model, "lightgbm", tmp_path / "m.txt")
    assert not list(tmp_path.iterdir())


def test_parts_of_a_tree_model_are_its_trees(fitted):
    parts = split_scorer(fitted.scorer_, fitted.n_features_in_)
    assert parts.kinds == {"trees"}
    assert len(parts.list_trees()) == 5
