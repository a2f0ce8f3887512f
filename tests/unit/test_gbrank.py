"""GBRank: its trees and its average against every pair written out, earlier models, weights and parameters."""

from __future__ import annotations

import numpy as np
import pytest
from tests.reference import gbrank as twin
from tests.reference import trees as tree_twin
from tests.warned import may_learn_nothing

import rankwright as rw
from rankwright.objectives import SquaredHinge
from rankwright.scorers import Trees

WEIGHTS = {
    "none": {},
    "queries": {"weight": True},
    "documents": {"doc_weight": True},
    "both": {"weight": True, "doc_weight": True},
}


def judged(seed=0, m=12, n=9, *, grades=4, whole=False, weight=False, doc_weight=False):
    """Queries whose grades depend on a feature and on a product of two, with some of one document or one grade."""
    rng = np.random.default_rng(seed)
    sizes = np.append(rng.integers(2, 2 * n, m - 2), [1, n])
    X = rng.normal(size=(int(sizes.sum()), 4))
    X = np.round(1.5 * X) if whole else X
    y = np.clip(np.round(X[:, 0] + X[:, 1] * X[:, 2] + 0.5 * rng.normal(size=len(X)) + 0.7), 0, grades - 1)
    y[-n:] = 1
    more = {"weight": rng.uniform(0.5, 2.0, m)} if weight else {}
    if doc_weight:
        more["doc_weight"] = rng.uniform(0.2, 2.0, len(X))
    return rw.Queries.from_arrays(X, y, np.repeat(np.arange(m), sizes), **more)


@pytest.mark.parametrize("pair_weighting", ["pair", "query"])
@pytest.mark.parametrize("weights", WEIGHTS.values(), ids=WEIGHTS)
def test_rounds_are_those_of_every_pair_written_out(weights, pair_weighting):
    """h_k = (k h_{k-1} + g_k) / (k + 1), where g_k adds to h_{k-1} what violated pairs want, in the mean of a leaf."""
    queries, margin = judged(whole=True, **weights), 1.0
    ranker = rw.GBRank(n_estimators=6, num_leaves=4, min_child_samples=3, pair_weighting=pair_weighting).fit(queries)
    leaves, h = ranker.scorer_.leaves(queries.X), np.zeros(queries.n_docs)
    assert len(leaves) == 6
    for k, (leaf, tree) in enumerate(zip(leaves, ranker.scorer_.forest.trees, strict=True), 1):
        values = twin.leaf_values(leaf, h, queries, margin, per_query=pair_weighting == "query")
        g = h + values[leaf]
        assert tree.values == pytest.approx(values / (k + 1), rel=1e-4, abs=1e-6)
        h = (k * h + g) / (k + 1)
    assert ranker.predict(queries) == pytest.approx(h, abs=1e-5)
    assert [row["weight"] for row in ranker.history_] == pytest.approx([1 / (k + 1) for k in range(1, 7)])


def test_the_first_split_is_the_best_of_all():
    queries = judged(whole=True)
    ranker = rw.GBRank(n_estimators=1, num_leaves=2, min_child_samples=1).fit(queries)
    gradient, curvature = twin.squares(np.zeros(queries.n_docs), queries, 1.0)
    feature, low, high, _ = tree_twin.best_stump(queries.X, gradient, curvature)
    node = ranker.booster_.dump_model()["tree_info"][0]["tree_structure"]
    assert node["split_feature"] == feature
    assert low <= node["threshold"] < high


@pytest.mark.parametrize("margin", [0.25, 1.0, 3.0])
def test_the_objective_is_that_of_the_wanted_scores(margin):
    """The squared hinge with a margin: its derivatives are those of squared distances from the wanted scores."""
    rng = np.random.default_rng(0)
    for seed in range(3):
        queries = judged(seed, weight=True, doc_weight=seed == 1)
        for scores in (rng.normal(size=queries.n_docs), np.zeros(queries.n_docs), rng.integers(0, 3, queries.n_docs)):
            found = SquaredHinge(margin=margin).prepare(queries)(np.asarray(scores, dtype=float))
            gradient, curvature = twin.squares(scores, queries, margin)
            assert found.gradient == pytest.approx(gradient, abs=1e-9)
            assert found.curvature == pytest.approx(curvature, abs=1e-9)
            losses = [
                weight * (wanted - scores[i]) ** 2 / 2  # each pair is written down for both of its documents
                for i, each in enumerate(twin.wanted(scores, queries, margin))
                for wanted, weight in each
            ]
            assert found.loss == pytest.approx(sum(losses))


@pytest.mark.parametrize("margin", [0.0, -1.0, np.inf, np.nan])
def test_margins_that_are_none(margin):
    with pytest.raises(rw.InputError, match="margin="):
        SquaredHinge(margin=margin).prepare(judged())
    with pytest.raises(rw.InputError, match="margin"):
        rw.GBRank(margin=margin).fit(judged())


def test_the_margin_is_the_unit_of_scores():
    """Without earlier trees a larger margin multiplies all scores, and the ranking stays the same."""
    queries = judged()
    plain = rw.GBRank(n_estimators=8, num_leaves=4, min_child_samples=3).fit(queries)
    larger = rw.GBRank(n_estimators=8, num_leaves=4, min_child_samples=3, margin=4.0).fit(queries)
    assert larger.predict(queries) == pytest.approx(4.0 * plain.predict(queries), abs=1e-4)


def test_the_margin_matters_beside_earlier_trees(tmp_path):
    queries, path = judged(), tmp_path / "mart.json"
    rw.save(rw.MART(n_estimators=3, num_leaves=4, min_child_samples=3).fit(queries), path)
    small, large = (
        rw.GBRank(n_estimators=6, num_leaves=4, min_child_samples=3, init_model=path, margin=margin).fit(queries)
        for margin in (0.1, 5.0)
    )
    assert [row.get("weight") for row in small.history_] == [None, None, None, 1 / 2, 1 / 3, 1 / 4]
    scores = [each.predict(queries) for each in (small, large)]
    assert np.corrcoef(*scores)[0, 1] < 0.999
    h = Trees(small.scorer_.forest.take_first(3))(queries.X)  # h_0
    values = twin.leaf_values(small.scorer_.leaves(queries.X)[3], h, queries, 0.1)
    assert small.scorer_.forest.trees[3].values == pytest.approx(values / 2, rel=1e-4, abs=1e-5)


def test_continuing_is_training_on():
    queries = judged()
    whole = rw.GBRank(n_estimators=9, num_leaves=4, min_child_samples=3).fit(queries)
    ranker = rw.GBRank(n_estimators=4, num_leaves=4, min_child_samples=3, warm_start=True).fit(queries)
    ranker.set_params(n_estimators=9).fit(queries)
    assert ranker.predict(queries).tobytes() == whole.predict(queries).tobytes()
    assert [row["weight"] for row in ranker.history_] == [row["weight"] for row in whole.history_]


def test_training_ends_where_no_pair_violates_the_margin():
    """Two documents a query, told apart by one feature; full steps of both make up the margin at once."""
    X = np.tile([[1.0], [0.0]], (30, 1))
    queries = rw.Queries.from_arrays(X, X[:, 0], np.repeat(np.arange(30), 2))
    ranker = rw.GBRank(n_estimators=50, learning_rate=2.0).fit(queries)
    assert len(ranker.history_) == 1
    assert ranker.predict([[1.0], [0.0]]).tolist() == [1.0, -1.0]


@may_learn_nothing
@pytest.mark.parametrize("grades", [np.zeros(30), np.ones(30)], ids=["none relevant", "all relevant"])
def test_without_pairs_nothing_is_learned(grades):
    X = np.random.default_rng(0).normal(size=(30, 2))
    ranker = rw.GBRank(min_child_samples=1).fit(X, grades, qid=np.repeat(np.arange(3), 10))
    assert not ranker.predict(X).any()


def test_it_learns_what_least_squares_cannot_follow():
    """Grades whose level differs by query: pairs of one query do not see it."""
    rng = np.random.default_rng(0)
    X, level = rng.normal(size=(600, 3)), np.repeat(rng.integers(0, 2, 30) * 2, 20)
    y = np.clip(np.round(X[:, 0] + 1), 0, 2) + level
    queries = rw.Queries.from_arrays(X, y, np.repeat(np.arange(30), 20))
    found = [kind(n_estimators=30, num_leaves=7).fit(queries) for kind in (rw.GBRank, rw.MART)]
    losses = [SquaredHinge().prepare(queries)(5.0 * each.predict(queries)).loss for each in found]
    assert losses[0] < losses[1]


def test_bad_parameters():
    for name, value in {"learning_rate": 0.0, "pair_weighting": "document", "margin": "wide"}.items():
        with pytest.raises(rw.InputError, match=name):
            rw.GBRank(**{name: value}).fit(judged())
