"""merge_scorers: the simplest scorer that equals a weighted sum."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.exported import MODELS, N_FEATURES, make_data, make_linear, make_network, make_stumps, make_trees
from tests.reference.summed import sum_exactly

import rankwright as rw
from rankwright.scorers import Feature, Linear, Scorer, Stumps, Trees, WeightedSum, merge_scorers, read_scorer
from rankwright.scorers.forest_joining import compute_value_gains
from rankwright.scorers.lightgbm_text import Forest

KINDS = sorted(MODELS)
TAKES_MISSING = [kind for kind in KINDS if MODELS[kind]().allow_nan]


@cache
def make(kind: str) -> Scorer:
    return MODELS[kind]()


@cache
def make_rows(missing: float = 0.0) -> np.ndarray:
    """Documents, some of them at thresholds of the trees and stumps, and next to these."""
    X = make_data(60, missing)[0].copy()
    for kind in ("trees", "deep trees", "imported XGBoost"):
        for i, tree in enumerate([tree for tree in make(kind).forest.trees if tree.n_splits][:8]):
            feature, threshold = int(tree.columns["split_feature"][0]), np.float32(tree.columns["threshold"][0])
            X[i, feature], X[i + 8, feature] = threshold, np.nextafter(threshold, np.float32(np.inf))
    stumps = make("stumps")
    X[np.arange(20, 50), stumps.feature] = stumps.threshold
    return X


def check(scorers, weights, intercept, X):
    """Merge, compare with the twin, and with the saved scorer to the bit."""
    merged = merge_scorers(scorers, weights, intercept)
    expected, allowed = sum_exactly(scorers, weights, intercept, X)
    assert (np.abs(merged(X) - expected) <= allowed).all()
    saved = read_scorer(json.loads(json.dumps({"kind": merged.kind, **merged.to_json()})))
    assert saved(X).tobytes() == merged(X).tobytes()
    assert merged(X[:1]).tobytes() == merged(X)[:1].tobytes()
    return merged


def count_kinds(scorer) -> list[str]:
    return [part.kind for part in scorer.scorers] if isinstance(scorer, WeightedSum) else [scorer.kind]


WEIGHTS = st.sampled_from([0.0, 1.0, -1.0, 0.5, -2.25, 1e-3, 1 / 3, 1e6])


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(KINDS), WEIGHTS), min_size=1, max_size=6), WEIGHTS)
def test_scores_are_those_of_the_parts_added_one_by_one(chosen, intercept):
    scorers, weights = [make(kind) for kind, _ in chosen], [weight for _, weight in chosen]
    merged = check(scorers, weights, intercept, make_rows())
    found = count_kinds(merged)
    assert all(found.count(kind) <= 1 for kind in ("linear", "stumps", "trees"))
    assert not isinstance(merged, WeightedSum) or not any(isinstance(part, WeightedSum) for part in merged.scorers)
    assert count_kinds(merge_scorers([merged], [1.0])) == found


@settings(max_examples=30, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(TAKES_MISSING), WEIGHTS), min_size=1, max_size=5))
def test_missing_values_go_where_they_went(chosen):
    scorers, weights = [make(kind) for kind, _ in chosen], [weight for _, weight in chosen]
    assert check(scorers, weights, 0.25, make_rows(0.3)).allow_nan


@pytest.mark.parametrize("kind", KINDS)
def test_missing_values_are_refused_where_a_part_refuses_them(kind):
    merged = merge_scorers([make("trees"), make(kind), make("stumps with missing")], [1.0, 2.0, -1.0])
    assert merged.allow_nan == make(kind).allow_nan


class TestSimplestForm:
    def test_linear_scorers_and_features_are_linear(self):
        merged = check([make_linear(), Feature(2, -1), make("sum of linear")], [2.0, -0.5, 1.0], 3.0, make_rows())
        assert isinstance(merged, Linear)

    def test_trees_and_stumps_are_one_forest(self):
        kinds = (
            "trees",
            "imported XGBoost with missing",
            "stumps with missing",
            "trees with categories",
            "sum of trees",
        )
        merged = check([make(kind) for kind in kinds], [1.0, -2.0, 0.5, 3.0, 1.0], 0.75, make_rows())
        assert isinstance(merged, Trees)

    def test_stumps_are_stumps(self):
        merged = check([make("stumps"), make_stumps(missing=True)], [1.0, -2.0], 0.0, make_rows())
        assert isinstance(merged, Stumps)
        assert not merged.allow_nan

    def test_a_sum_has_one_part_of_each_kind(self):
        kinds = ("network of relu", "linear", "trees", "rbf kernel sum", "stumps", "feature", "deep trees")
        merged = check([make(kind) for kind in kinds], [0.5, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0], 0.75, make_rows())
        assert count_kinds(merged) == ["linear", "trees", "network", "kernel"]
        assert merged.weights.tolist() == [1.0, 1.0, 0.5, 3.0]

    def test_stumps_alone_refuse_missing_values(self):
        merged = check([make("trees"), make("stumps")], [1.0, 2.0], 0.0, make_rows())
        assert count_kinds(merged) == ["stumps", "trees"]

    def test_one_scorer_is_itself(self):
        for kind in KINDS:
            scorer = make(kind)
            if not isinstance(scorer, WeightedSum):
                assert merge_scorers([scorer], [1.0]) is scorer

    def test_one_scorer_several_times_is_there_once(self):
        network, trees = make_network("relu"), make("trees")
        merged = check([network, trees, network, trees], [1.0, 2.0, 0.5, -1.5], 0.0, make_rows())
        assert count_kinds(merged) == ["trees", "network"]
        assert merged.weights.tolist() == [1.0, 1.5]
        assert len(merged.scorers[0]) == len(trees)

    def test_weights_of_0_leave_nothing(self):
        merged = check([make(kind) for kind in KINDS], np.zeros(len(KINDS)), 0.5, make_rows())
        assert merged(make_rows()).tolist() == [0.5] * len(make_rows())
        assert merge_scorers([make("trees"), make("linear")], [2.0, 0.0]).allow_nan
        opposite = merge_scorers([make("trees"), make("trees"), Feature(0)], [2.0, -2.0, 1.0])
        assert opposite.coef.tolist() == [1.0, 0.0, 0.0, 0.0, 0.0]

    def test_features_of_an_unknown_number_stay_alone(self):
        merged = check([Feature(1), Feature(3, -1), Feature(1), make("stumps")], [1.0, 2.0, 0.5, 1.0], 1.0, make_rows())
        assert count_kinds(merged) == ["feature", "feature", "stumps"]
        assert merged.weights.tolist() == [1.5, -2.0, 1.0]
        assert isinstance(merge_scorers([Feature(1), Feature(3)], [1.0, 2.0], n_features=5), Linear)

    def test_a_few_features_of_many_stay_alone_beside_trees(self):
        trees = Trees(Forest.constant(128, 1.0))
        few = merge_scorers([trees, Feature(3), Feature(9, -1)], [1.0, 2.0, 0.5])
        assert count_kinds(few) == ["feature", "feature", "trees"]
        assert few.weights.tolist() == [2.0, -0.5, 1.0]
        many = merge_scorers([trees, *map(Feature, range(3))], np.ones(4))
        assert count_kinds(many) == ["linear", "trees"]

    def test_scorers_of_an_unknown_kind_stay(self):
        @dataclass(frozen=True)
        class Own(Scorer):
            kind = "own"

            def __call__(self, X):
                return X[:, 0].astype(np.float64) ** 2

            def accepts(self, n_features):
                return True

            def to_json(self):
                return {}

        merged = merge_scorers([Own(), make_linear()], [2.0, 1.0])
        X = make_rows()
        assert count_kinds(merged) == ["linear", "own"]
        np.testing.assert_allclose(merged(X), 2.0 * Own()(X) + make_linear()(X), rtol=1e-12)


@pytest.mark.parametrize(
    ("scorers", "weights", "message"),
    [
        ([], [], "0 weights of 0 scorers"),
        ([Feature(0)], [1.0, 2.0], "2 weights of 1 scorers"),
        ([Feature(0)], [np.inf], "not finite"),
        ([Linear(np.ones(2)), Linear(np.ones(3))], [1.0, 1.0], "scorers of 2 and 3 features"),
        ([Linear(np.ones(2)), Feature(2)], [1.0, 1.0], "beyond the 2"),
        ([Linear(np.full(2, 1e300)), Feature(1)], [1e300, 1.0], "smaller weights"),
    ],
)
def test_what_cannot_be_merged_is_refused(scorers, weights, message):
    with pytest.raises(rw.InputError, match=message):
        merge_scorers(scorers, weights)


class TestForests:
    def test_the_booster_of_a_merged_forest_predicts_the_same(self):
        kinds = ("trees", "imported XGBoost", "stumps with missing", "trees with categories", "trees with missing")
        merged = merge_scorers([make(kind) for kind in kinds], [1.0, -2.0, 0.5, 3.0, 1 / 3], 0.75)
        for X in (make_rows(), make_rows(0.3)):
            found = merged.booster().predict(X, num_threads=1)
            assert found.tobytes() == merged(X).tobytes()
        again = rw.import_model(merged.booster()).scorer
        assert again(make_rows(0.3)).tobytes() == merged(make_rows(0.3)).tobytes()

    def test_names_and_ranges_are_those_that_are_known(self):
        merged = merge_scorers([Trees(Forest.constant(N_FEATURES, 1.0)), make_trees()], [1.0, 2.0])
        header = make_trees().forest.header
        assert merged.forest.header == {name: header[name] for name in merged.forest.header}
        other = {**header, "feature_infos": " ".join(["[0:1]", *header["feature_infos"].split()[1:]])}
        mixed = merge_scorers([make_trees(), Trees(Forest(other, make_trees().forest.trees))], [1.0, 2.0])
        assert mixed.forest.header["feature_infos"].split() == ["none", *header["feature_infos"].split()[1:]]

    @pytest.mark.parametrize(
        ("first", "second", "weight", "expected"),
        [
            ("1 0 -1 0 0", "1 -1 -1 0 1", 2.0, "1 0 -1 0 0"),
            ("1 0 -1 0 0", "1 0 -1 0 0", -2.0, None),
            ("1 0 0 0 0", None, 1.0, None),
            ("1 0 0 0 0", "-1 0 0 0 0", 1.0, None),
        ],
    )
    def test_a_feature_is_monotone_if_it_is_in_all_forests(self, first, second, weight, expected):
        forest = make_trees().forest
        held = [{} if signs is None else {"monotone_constraints": signs} for signs in (first, second)]
        scorers = [Trees(Forest({**forest.header, **own}, forest.trees)) for own in held]
        constant = Trees(Forest.constant(N_FEATURES, 2.0))
        merged = merge_scorers([constant, *scorers], [1.0, 1.0, weight], 0.5).forest
        assert merged.header.get("monotone_constraints") == expected
        assert merged.is_monotone == (expected is not None)

    def test_gains_of_several_forests_have_the_units_of_the_score(self):
        a, b = make_trees(), make_trees(n_trees=3, num_leaves=60, missing=0.1)
        merged = merge_scorers([a, b], [1.0, 3.0])
        variances = [np.sum(compute_value_gains(tree)) for tree in merged.forest.trees]
        assert merged.importance().sum() == pytest.approx(sum(variances))
        tree = a.forest.trees[0]
        spread = np.repeat(tree.values, tree.columns["leaf_count"])
        assert variances[0] == pytest.approx(spread.var())
        assert variances[-1] == pytest.approx(9.0 * np.sum(compute_value_gains(b.forest.trees[-1])))
        alone = merge_scorers([a], [3.0])
        assert alone.importance().tolist() == a.importance().tolist()


class TestCapabilities:
    def test_a_sum_of_one_kind_has_what_that_kind_has(self):
        X = make_rows()
        for kind, name in (("sum of linear", "linear"), ("sum of trees", "trees")):
            scorer = make(kind)
            found = getattr(scorer, name)
            np.testing.assert_allclose(found(X), scorer(X), rtol=1e-9)
        assert make("sum of linear").trees is None
        assert make("sum of trees").linear is None
        mixed = make("sum of linear and trees")
        assert (mixed.linear, mixed.trees, mixed.steps) == (None, None, None)

    def test_steps_of_sums_of_stumps(self):
        parts = [make_stumps(missing=True), make_stumps(missing=True)]
        X = make_rows(0.3)
        total = WeightedSum(parts, np.array([2.0, 0.5]))
        steps = total.steps
        values = [steps.get_function(k) for k in range(len(steps.features))]
        scores = np.zeros(len(X))
        for feature, (thresholds, between, missing) in zip(steps.features.tolist(), values, strict=True):
            x = X[:, feature]
            scores += np.where(np.isnan(x), missing, between[np.searchsorted(thresholds, x)])
        np.testing.assert_allclose(scores, total(X), rtol=1e-12, atol=1e-12)
        assert WeightedSum(parts, np.array([2.0, 0.5]), 1.0).steps is None

    def test_categories_of_trees_in_sums(self):
        scorer = merge_scorers([make("trees with categories"), make_linear()], [1.0, 2.0])
        assert scorer.categorical == {4}
        content = {"kind": "sum", **scorer.to_json()}
        assert read_scorer(content).categorical == {4}

    def test_a_saved_sum_with_categories_needs_them(self, tmp_path):
        scorer = merge_scorers([make("trees with categories"), make_linear()], [1.0, 2.0])
        rw.save(rw.Model("Sum", {}, "map", scorer, N_FEATURES), tmp_path / "m.json")
        content = json.loads((tmp_path / "m.json").read_text())
        del content["categories"]
        (tmp_path / "m.json").write_text(json.dumps(content))
        with pytest.raises(rw.InputError, match="split feature 5 by category"):
            rw.load(tmp_path / "m.json")

    def test_prediction_gives_the_callers_rows_to_every_part(self):
        seen = []

        @dataclass(frozen=True)
        class Spy(Scorer):
            kind = "spy"

            def __call__(self, X):
                seen.append(X)
                return np.zeros(len(X))

            def accepts(self, n_features):
                return True

            def to_json(self):
                return {}

        X = make_rows()
        scorer = merge_scorers([Spy(), Spy(), make_linear()], [1.0, 2.0, 1.0])
        rw.Model("Sum", {}, "map", scorer, N_FEATURES).predict(X)
        assert len(seen) == 2
        assert all(np.shares_memory(rows, X) for rows in seen)
