"""Polishing the weights of given scorers."""

from __future__ import annotations

import lightgbm as lgb
import numpy as np
import pytest

import rankwright as rw


@pytest.fixture(scope="module")
def sets():
    queries = rw.make_queries(120, n_docs=20, n_features=10, random_state=1)
    return queries.take(range(70)), queries.take(range(70, 100)), queries.take(range(100, 120))


def outputs(model, X):
    """The output of every tree, a column each."""
    leaves = model.predict(X, pred_leaf=True)
    return np.column_stack(
        [[model.get_leaf_output(tree, int(leaf)) for leaf in leaves[:, tree]] for tree in range(leaves.shape[1])]
    )


def test_models(sets):
    train = sets[0]
    rankers = [rw.Regression().fit(train), rw.AdaRank().fit(train), rw.SingleFeature().fit(train)]
    scores = np.column_stack([ranker.predict(train) for ranker in rankers])
    polished = rw.polish(scores, train, "map")
    assert polished.before == pytest.approx(rw.parse_measure("map").mean(train, scores.sum(axis=1)), abs=1e-12)
    assert polished.after == pytest.approx(rw.parse_measure("map").mean(train, polished(scores)), abs=1e-12)
    assert polished.after > polished.before
    values = [record["train"] for record in polished.history]
    assert values == sorted(values)
    for column in range(3):  # no single weight improves it
        for t in np.linspace(-3, 3, 41):
            other = polished.weights.copy()
            other[column] += t * abs(polished.weights).max()
            assert rw.parse_measure("map").mean(train, scores @ other) <= polished.after + 1e-12


def test_trees_of_a_boosted_model(sets):
    train, valid, _ = sets
    data = lgb.Dataset(train.X, train.y, group=train.sizes, params={"verbose": -1})
    params = {"objective": "lambdarank", "num_leaves": 6, "learning_rate": 0.2, "verbose": -1, "num_threads": 1}
    model = lgb.train(params, data, 15)
    trees, held_out = outputs(model, train.X), outputs(model, valid.X)
    assert trees.sum(axis=1) == pytest.approx(model.predict(train.X), abs=1e-9)
    polished = rw.polish(trees, train, "ndcg@10", valid=(held_out, valid))
    assert polished.weights.shape == (15,)
    assert polished.after >= polished.before
    assert polished.valid_after >= polished.valid_before
    assert polished.valid_after == max(record["valid"] for record in polished.history)


def test_the_history_tells_of_every_step(sets):
    train, valid, _ = sets
    scores, other = train.X[:, [0, 2, 5]].astype(float), valid.X[:, [0, 2, 5]].astype(float)
    for held_out in (None, (other, valid)):
        polished = rw.polish(scores, train, valid=held_out)
        told = {"train"} | (set() if held_out is None else {"valid"})
        assert polished.history[0].keys() == told
        assert all(row.keys() == told | {"column", "weight"} for row in polished.history[1:])
        weights, found = np.ones(3), []
        for row in polished.history:
            if "column" in row:
                weights[row["column"]] = row["weight"]
            assert rw.parse_measure("ndcg@10").for_training().mean(train, scores @ weights) == pytest.approx(
                row["train"], abs=1e-12
            )
            found.append((row.get("valid", row["train"]), weights.tolist()))
        assert polished.weights.tolist() == max(found, key=lambda each: each[0])[1]


def test_what_cannot_be_improved_is_returned(sets):
    train = sets[0]
    perfect = train.y[:, None] + np.zeros((1, 2))
    polished = rw.polish(perfect, train)
    assert polished.weights.tolist() == [1.0, 1.0]
    assert polished.after == polished.before
    assert len(polished.history) == 1


def test_options(sets):
    train = sets[0]
    scores = np.column_stack([train.X[:, 0], -train.X[:, 2], train.X[:, 5]]).astype(np.float64)
    free, bounded = (
        rw.polish(scores, train, n_perturbations=3),
        rw.polish(scores, train, nonnegative=True, n_perturbations=3),
    )
    assert free.weights.min() < 0 <= bounded.weights.min()
    assert free.after > bounded.after
    assert rw.polish(scores, train, start=[1, 0, 0]).before == rw.parse_measure("ndcg@10").mean(train, scores[:, 0])
    assert len(rw.polish(scores, train, max_seconds=0).history) == 1
    same = [rw.polish(scores, train, n_perturbations=3, backend=backend) for backend in (rw.Serial(), rw.Threads(2))]
    assert same[0].weights.tobytes() == same[1].weights.tobytes()
    assert "ndcg@10" in repr(free)


def test_bad_input_is_named(sets):
    train, valid, _ = sets
    scores = np.ones((train.n_docs, 2))
    for arguments, options, message in [
        ((scores[:5], train), {}, "scores have 5 rows; the queries have"),
        ((scores[:, 0], train), {}, "a column per scorer"),
        ((scores * np.nan, train), {}, "expected finite numbers"),
        ((scores, train), {"start": [1]}, "for each of 2 scorers"),
        ((scores, train), {"start": [1, -1], "nonnegative": True}, "negative weights"),
        ((scores, train), {"valid": (np.ones((valid.n_docs, 3)), valid)}, "validation scores of 3 scorers"),
        ((scores, train.X), {}, "expected a Queries"),
    ]:
        with pytest.raises(rw.InputError, match=message):
            rw.polish(*arguments, **options)
    with pytest.raises(rw.InputError, match="there are 2 weights"):
        rw.polish(scores, train)(np.ones((3, 5)))


def test_bad_options_are_named(sets):
    train, valid, _ = sets
    scores, other = np.ones((train.n_docs, 2)), np.ones((valid.n_docs, 2))
    for options, message in [
        ({"valid": valid}, "valid is a Queries; expected a pair of scores and Queries"),
        ({"valid": (valid, other)}, "expected a Queries"),
        ({"max_iter": 0}, "max_iter=0"),
        ({"n_perturbations": 2.5}, "n_perturbations=2.5"),
        ({"max_seconds": "1"}, "max_seconds='1'"),
    ]:
        with pytest.raises(rw.InputError, match=message):
            rw.polish(scores, train, **options)


def test_perturbations_fit_the_spread_of_the_scores_and_not_their_mean(sets):
    train = sets[0]
    scores = train.X[:, :4].astype(float)
    moved = scores + np.array([100.0, -50.0, 7.0, 0.0])  # an offset of a scorer changes no ranking
    first, second = (rw.polish(each, train, n_perturbations=4, random_state=0) for each in (scores, moved))
    np.testing.assert_allclose(first.weights, second.weights, rtol=1e-6)
