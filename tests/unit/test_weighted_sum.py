"""Weighted sums of scorers."""

import numpy as np
import pytest

import rankwright as rw
from rankwright.models.model import Model
from rankwright.scorers import Feature, Linear, Stumps, Trees, WeightedSum, read_scorer
from rankwright.scorers.lightgbm_text import Forest


def make_sum():
    stumps = Stumps(np.array([0, 1]), np.array([0.5, 0.0], np.float32), np.array([1.0, -0.25]))
    inner = WeightedSum([stumps, Feature(1, -1)], np.array([2.0, 3.0]), 0.5)
    return WeightedSum([Linear(np.array([2.0, -1.0]), 0.25), inner], np.array([4.0, 0.5]), -1.0)


def test_a_sum_is_the_weighted_sum_of_its_parts():
    X = np.random.default_rng(0).normal(size=(50, 2)).astype(np.float32)
    stumps = 2.0 * ((X[:, 0] > 0.5) - 0.25 * (X[:, 1] > 0.0))
    expected = -1.0 + 4.0 * (X @ np.array([2.0, -1.0]) + 0.25) + 0.5 * (0.5 + stumps - 3.0 * X[:, 1].astype(float))
    np.testing.assert_allclose(make_sum()(X), expected, rtol=1e-12)


def test_parts_of_sums_inside_are_listed_with_the_products_of_weights():
    scorer = make_sum()
    X = np.random.default_rng(1).normal(size=(9, 2)).astype(np.float32)
    total = scorer.sum_intercepts() + sum(weight * part(X) for weight, part in scorer.list_parts())
    assert [part.kind for _, part in scorer.list_parts()] == ["linear", "stumps", "feature"]
    np.testing.assert_allclose(total, scorer(X), rtol=1e-12)


def test_a_sum_of_linear_parts_is_linear():
    parts = [Linear(np.array([1.0, 2.0]), 3.0), Linear(np.array([0.0, 1.0]), 1.0)]
    linear = WeightedSum(parts, np.array([2.0, -1.0]), 0.5).linear
    assert linear is not None
    assert linear.coef.tolist() == [2.0, 3.0]
    assert linear.intercept == 5.5
    assert make_sum().linear is None


def test_missing_values_need_parts_that_take_them():
    trees = Trees(Forest.constant(2, 1.5))
    assert WeightedSum([trees, trees], np.array([1.0, 2.0])).allow_nan
    assert not WeightedSum([trees, Feature(0)], np.array([1.0, 2.0])).allow_nan


def test_a_saved_sum_scores_the_same(tmp_path):
    model = Model("Sum", {}, "ndcg@10", make_sum(), 2)
    rw.save(model, tmp_path / "m.json")
    X = np.random.default_rng(2).normal(size=(20, 2)).astype(np.float32)
    assert np.array_equal(rw.load(tmp_path / "m.json").predict(X), model.predict(X))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"weights": [1.0]}, "1 weights of 2 scorers"),
        ({"scorers": [1, 2]}, "in place of scorers"),
        ({"scorers": []}, "2 weights of 0 scorers"),
        ({"intercept": "x"}, "in place of a weight"),
    ],
)
def test_a_damaged_sum_is_refused(change, message):
    values = {"kind": "sum", **make_sum().to_json(), **change}
    with pytest.raises(rw.InputError, match=message):
        read_scorer(values)


def test_sums_inside_each_other_without_end_are_refused():
    values = {"kind": "linear", "coef": [1.0], "intercept": 0.0}
    for _ in range(20):
        values = {"kind": "sum", "weights": [1.0], "intercept": 0.0, "scorers": [values]}
    with pytest.raises(rw.InputError, match="more than 8 sums"):
        read_scorer(values)
