"""What a model makes of each feature: the table must be the model, and the text must tell it."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
import sklearn
from hypothesis import given
from hypothesis import strategies as st
from tests.warned import may_learn_nothing

import rankwright as rw
from rankwright.analysis.diagnosis import StepFunction
from rankwright.analysis.explanation import MAX_SHOWN
from rankwright.analysis.feature_effects import describe_trend
from rankwright.experiments.storage.schema import decode_table, encode_table
from rankwright.experiments.tables import trial_tables
from rankwright.experiments.tables.model_tables import MOST_FEATURES, MOST_STEPS, make_steps_table
from rankwright.models.model import Model
from rankwright.scorers import Feature, Linear, Network, Stumps, Trees, WeightedSum, merge_scorers
from rankwright.scorers.lightgbm_text import Forest
from rankwright.scorers.lightgbm_trees import Tree


def model(
    *stumps: tuple[int, float, float] | tuple[int, float, float, bool], n: int = 3, missing: bool = False, **more
):
    """A model of stumps, given by feature, threshold, weight and perhaps the value where the feature is missing."""
    column = [np.array([stump[i] for stump in stumps]) for i in range(3)]
    sides = np.array([len(stump) > 3 and stump[3] for stump in stumps], dtype=bool) if missing else None
    scorer = Stumps(column[0].astype(np.int64), column[1].astype(np.float32), column[2].astype(float), sides)
    return Model("RankBoost", {}, "map", scorer, n, **more)


def scores_by_table(found: rw.Explanation, X: np.ndarray) -> list[float]:
    """The slow twin: look every value up in the table."""
    rows = found.to_pandas().to_dict("records")
    return [
        found.intercept + math.fsum(_value(rows, index, x) for index, x in enumerate(document))
        for document in X.tolist()
    ]


def _value(rows: list[dict], index: int, x: float) -> float:
    own = [row for row in rows if row["index"] == index]
    if math.isnan(x):
        fitting = [row for row in own if row["missing"]]
    else:
        fitting = [row for row in own if not row["missing"] and row["from"] < x <= row["to"]]
    assert len(fitting) == min(len(own), 1)  # exactly one, of a feature that is used
    return sum(row["value"] for row in fitting)


FEW = st.sampled_from([-1.0, 0.0, 0.25, 0.1, 3.0])
STUMP = st.tuples(
    st.integers(0, 2), FEW, st.integers(-(2**34), 2**34).map(lambda grains: grains / 2**32), st.booleans()
)
VALUE = st.one_of(FEW, st.sampled_from([math.nan, 3e38, -3e38, 0.10000001, 1e-40]), st.floats(-4, 4, width=32))


@given(st.lists(STUMP, max_size=12), st.lists(st.tuples(VALUE, VALUE, VALUE), min_size=1, max_size=8))
def test_scores_are_sums_of_values_of_the_table(stumps, documents):
    X = np.array(documents, dtype=np.float32)
    fitted = model(*stumps, missing=True)
    assert scores_by_table(rw.explain(fitted), X) == fitted.predict(X).tolist()


@pytest.mark.parametrize("make", [rw.RankBoost, rw.FRank])
def test_scores_of_trained_rankers_are_sums_of_values_of_the_table(make):
    queries = rw.make_queries(30, n_docs=10, n_features=6, noise=1.5, random_state=1)
    X = queries.X.copy()
    if make.allow_nan:
        X[np.random.default_rng(0).random(X.shape) < 0.2] = np.nan
    queries = queries.with_X(X)
    ranker = make(measure="map", n_estimators=40).fit(queries)
    found = rw.explain(ranker)
    assert scores_by_table(found, queries.X) == ranker.predict(queries).tolist()
    assert sum(part.n_stumps for part in found.parts) == len(ranker.scorer_)
    assert any(part.missing for part in found.parts) == make.allow_nan


def test_a_step_function_has_its_figures():
    found = rw.explain(model((1, 0.5, 1.0), (1, 2.0, -0.25), (1, 2.0, -0.5), (0, 7.0, 0.5), missing=False))
    assert [part.name for part in found.parts] == ["2", "1"]  # the largest range first
    first = found["2"]
    assert first.steps == ((-math.inf, 0.5, 0.0), (0.5, 2.0, 1.0), (2.0, math.inf, 0.25))
    assert (first.index, first.size, first.n_stumps, first.missing, first.trend) == (1, 1.0, 3, None, "mixed")
    assert found["1"].trend == "rises"
    assert not found.to_pandas()["missing"].any()
    with pytest.raises(KeyError, match="does not use '3'; it uses 2, 1"):
        found["3"]


def test_a_missing_value_counts_in_the_range():
    found = rw.explain(model((0, 0.0, -1.0, True), (0, 1.0, 0.75, False), (1, 0.0, 0.5), missing=True))
    first = found.parts[0]
    assert (first.name, first.missing, first.size) == ("1", -1.0, 1.0)
    rows = found.to_pandas()
    nowhere = rows[rows["missing"]]
    assert nowhere[["feature", "value"]].to_numpy().tolist() == [["1", -1.0], ["2", 0.0]]
    assert nowhere[["from", "to"]].isna().all(axis=None)
    beyond = rw.explain(model((0, 0.0, -1.0, True), (0, 1.0, 3.0, False), missing=True)).parts[0]
    assert (beyond.missing, beyond.values.tolist(), beyond.size) == (-1.0, [0.0, -1.0, 2.0], 3.0)


def test_the_table_has_names_and_columns_from_0():
    rows = rw.explain(model((2, 0.5, 1.0), features=("bm25", "tf", "idf"))).to_pandas()
    assert rows.columns.tolist() == ["feature", "index", "from", "to", "value", "missing"]
    assert rows[["feature", "index"]].to_numpy().tolist() == [["idf", 2]] * 2


def test_a_model_of_nothing_is_explained():
    found = rw.explain(model())
    assert len(found) == 0
    assert len(found.to_pandas()) == 0
    assert "0 stumps on 0 of 3 features" in str(found)


def test_the_text_tells_the_most_important():
    stumps = [(i, 0.5, (i + 1) / 4) for i in range(MAX_SHOWN + 2)]
    lines = str(rw.explain(model(*stumps, n=40))).splitlines()
    assert lines[0] == f"RankBoost: {MAX_SHOWN + 2} stumps on {MAX_SHOWN + 2} of 40 features."
    top = lines.index("") + 2
    assert lines[top].split() == ["14", "3.5000", "1", "0.5", "0.5", "rises", "#" * 20]
    assert lines[top + 6].split()[-1] == "#" * 11  # 2 / 3.5 of 20
    assert len(lines) == top + MAX_SHOWN + 1
    assert lines[-1] == "and 2 more, of at most 0.5"
    assert "scaled" not in "".join(lines)
    assert max(map(len, lines)) <= 100


def test_features_scaled_within_queries_are_said_to_be():
    queries = rw.make_queries(20, random_state=0)
    for ranker in (rw.RankBoost(n_estimators=3, scale="query"), rw.Regression(scale="query")):
        assert "Features are scaled within each query first" in " ".join(str(rw.explain(ranker.fit(queries))).split())


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([0, 1, 1, 2], "rises"),
        ([0, -1], "falls"),
        ([0, 10, 9], "mostly rises"),
        ([0, -10, -9], "mostly falls"),
        ([0, 8, 7], "mixed"),
        ([0, 1, 0], "mixed"),
        ([0, 0], "flat"),
    ],
)
def test_trends(values, expected):
    assert describe_trend(np.array(values, dtype=float)) == expected


def test_linear_scorers_have_slopes():
    found = rw.explain(Model("Regression", {}, "map", Linear(np.array([0.5, 0.0, -2.0]), 0.25), 3, ("a", "b", "c")))
    rows = found.to_pandas()
    assert rows.columns.tolist() == ["feature", "index", "weight"]
    assert rows.to_numpy().tolist() == [["c", 2, -2.0], ["a", 0, 0.5]]
    assert found.intercept == 0.25
    assert [line.split() for line in str(found).splitlines()[-2:]] == [
        ["c", "-2", "falls", "#" * 20],
        ["a", "0.5", "rises", "#" * 5],
    ]


def test_scores_of_linear_rankers_are_sums_of_slopes():
    queries = rw.make_queries(20, n_features=6, random_state=2)
    for ranker in (rw.Regression(), rw.AdaRank(n_estimators=5), rw.SingleFeature()):
        found = rw.explain(ranker.fit(queries))
        sums = found.intercept + sum(queries.X[:, part.index].astype(float) * part.weight for part in found.parts)
        np.testing.assert_allclose(ranker.predict(queries), sums, rtol=1e-12)


def test_a_single_feature_has_its_sign():
    found = rw.explain(Model("SingleFeature", {}, "map", Feature(1, -1), 3))
    assert found.to_pandas().to_numpy().tolist() == [["2", 1, -1.0]]


TREES = {
    "mart": rw.MART(n_estimators=8, num_leaves=6),
    "lambdas": rw.LambdaMART(
        n_estimators=8, num_leaves=6, polish_rounds=2, lightgbm_params={"monotone_constraints": [1, 0, -1, 0, 0, 0]}
    ),
    "searched": rw.DirectRankTrees(n_estimators=8, num_leaves=6),
    "boosted": rw.BoostedTrees(n_estimators=8, num_leaves=6),
}


@pytest.mark.parametrize("name", TREES)
def test_trees_have_the_figures_of_their_splits(name):
    queries = rw.make_queries(40, n_docs=15, n_features=6, noise=1.5, random_state=1)
    ranker = sklearn.clone(TREES[name]).fit(queries)
    found = rw.explain(ranker)
    nodes = ranker.booster_.trees_to_dataframe()  # LightGBM's own reading of the model
    splits = nodes[nodes["split_feature"].notna()]
    by_feature = {int(name.removeprefix("Column_")): own for name, own in splits.groupby("split_feature")}
    assert {part.index for part in found.parts} == set(by_feature)
    for part in found.parts:
        own = by_feature[part.index]
        assert part.name == str(part.index + 1)
        assert (part.n_splits, part.n_trees) == (len(own), own["tree_index"].nunique())
        assert (part.low, part.high) == pytest.approx((own["threshold"].min(), own["threshold"].max()))
        assert part.gain == pytest.approx(own["split_gain"].sum() / splits["split_gain"].sum(), rel=1e-4)
        assert part.gain == pytest.approx(ranker.feature_importances_[part.index], rel=1e-12)
        assert part.monotone == ({0: 1, 2: -1}.get(part.index, 0) if name == "lambdas" else 0)
    assert [part.gain for part in found.parts] == sorted((part.gain for part in found.parts), reverse=True)
    assert f"{len(ranker.scorer_)} trees of {len(nodes) - len(splits)} leaves in all" in repr(found)


def test_the_table_and_the_text_of_trees():
    found = rw.explain(trees(("0 0 1", "0.5 -2 7", "6 1 2"), ("2", "3.5", "1"), monotone="0 1 -1"))
    rows = found.to_pandas()
    assert rows.columns.tolist() == ["feature", "index", "gain", "splits", "trees", "from", "to", "monotone"]
    assert rows.to_numpy().tolist() == [
        ["a", 0, 0.7, 2, 1, -2.0, 0.5, 0],
        ["b", 1, 0.2, 1, 1, 7.0, 7.0, 1],
        ["c", 2, 0.1, 1, 1, 3.5, 3.5, -1],
    ]
    text = str(found)
    assert text.splitlines()[0] == "MART: 2 trees of 6 leaves in all, on 3 of 3 features."
    assert "not about the measure" in " ".join(text.split())
    assert [line.split() for line in text.splitlines()[-3:]] == [
        ["a", "0.7000", "2", "1", "-2", "0.5", "free", "#" * 20],
        ["b", "0.2000", "1", "1", "7", "7", "to", "rise", "#" * 6],
        ["c", "0.1000", "1", "1", "3.5", "3.5", "to", "fall", "#" * 3],
    ]


def trees(*splits: tuple[str, str, str], monotone: str) -> Model:
    """A model of chains of splits, each given by features, thresholds and gains."""
    header = Forest.constant(3).header | {"monotone_constraints": monotone}
    made = []
    for features, thresholds, gains in splits:
        n = len(features.split())
        whole = np.arange(n)
        columns = {
            "split_feature": np.array(features.split(), dtype=np.int64),
            "split_gain": np.array(gains.split(), dtype=float),
            "threshold": np.array(thresholds.split(), dtype=float),
            "decision_type": np.full(n, 2),
            "left_child": ~whole,
            "right_child": np.append(whole[1:], ~n),
            "leaf_value": np.ones(n + 1),
        }
        made.append(Tree(columns))
    return Model("MART", {}, "map", Trees(Forest(header, tuple(made))), 3, ("a", "b", "c"))


def test_trees_without_a_split_are_explained():
    found = rw.explain(Model("MART", {}, "map", Trees(Forest.constant(3)), 3))
    assert (len(found), len(found.to_pandas())) == (0, 0)
    assert "0 trees of 0 leaves in all, on 0 of 3 features" in str(found)


def test_saved_models_are_explained_alike(tmp_path):
    queries = rw.make_queries(20, n_features=6, random_state=2)
    for ranker in (rw.RankBoost(n_estimators=9), rw.LambdaMART(n_estimators=5, num_leaves=4)):
        rw.save(ranker.fit(queries), tmp_path / "model.json")
        assert str(rw.explain(rw.load(tmp_path / "model.json"))) == str(rw.explain(ranker))


def test_an_unknown_kind_of_scorer_is_refused():
    class Network:
        kind = "network"

    with pytest.raises(rw.InputError, match="'network'"):
        rw.explain(dataclasses.replace(model(), scorer=Network()))


# The table that a trial leaves for the report


def test_a_trial_leaves_its_steps():
    queries = rw.make_queries(30, n_features=5, random_state=3)
    fold = rw.split_folds(queries, 3)[0]
    ranker = rw.RankBoost(n_estimators=20).fit(fold.train)
    made = trial_tables.tabulate_steps(trial_tables.TrainedRanker(ranker, fold, np.zeros(1), {}))
    table = decode_table(encode_table(made))
    found = rw.explain(ranker)
    assert list(dict.fromkeys(table["feature"].tolist())) == [part.name for part in found.parts]
    for part in found.parts:
        assert isinstance(part, StepFunction)
        own = {name: column[table["feature"] == part.name] for name, column in table.items()}
        low, high, value = zip(*part.steps, strict=True)
        assert own["value"].tolist() == list(value)
        np.testing.assert_array_equal(own["from"], [math.nan, *low[1:]])
        np.testing.assert_array_equal(own["to"], [*high[:-1], math.nan])
        assert set(own["range"]) == {part.size}
        assert set(own["stumps"]) == {part.n_stumps}
        assert set(own["missing"]) == {part.missing}


def test_methods_without_stumps_leave_no_steps():
    queries = rw.make_queries(20, random_state=3)
    fold = rw.split_folds(queries, 3)[0]
    assert (
        trial_tables.tabulate_steps(trial_tables.TrainedRanker(rw.Regression().fit(fold.train), fold, np.zeros(1), {}))
        is None
    )
    assert make_steps_table(model()) is None


@may_learn_nothing
def test_a_trial_of_trees_leaves_their_importance():
    made = rw.make_queries(30, n_features=5, random_state=3)
    for names in (None, ("a", "b", "c", "d", "e")):
        fold = rw.split_folds(made.replace(features=names), 3, random_state=0)[0]
        ranker = rw.LambdaMART(n_estimators=3, num_leaves=3).fit(fold.train)
        table = decode_table(
            encode_table(trial_tables.tabulate_importance(trial_tables.TrainedRanker(ranker, fold, np.zeros(1), {})))
        )
        assert table["feature"].tolist() == list(names or "12345")
        np.testing.assert_allclose(table["gain"], ranker.feature_importances_, rtol=1e-12)
        assert table["splits"].tolist() == ranker.scorer_.importance("split").tolist()
        assert 0.0 in table["gain"]  # features without a split are there, too
    none = rw.MART(n_estimators=2, min_child_samples=10**6).fit(fold.train)
    for other in (none, rw.Regression().fit(fold.train)):
        assert trial_tables.tabulate_importance(trial_tables.TrainedRanker(other, fold, np.zeros(1), {})) is None


def test_the_table_of_a_trial_is_small():
    many = [(f, t / 8, 2.0 ** (-f % 30)) for f in range(MOST_FEATURES + 5) for t in range(2)]
    table = make_steps_table(model(*many, *((0, t / 4, 1.0) for t in range(1000)), n=MOST_FEATURES + 5))
    assert len(np.unique(table["feature"])) == MOST_FEATURES
    own = {name: column[table["feature"] == "1"] for name, column in table.items()}
    assert len(own["value"]) == MOST_STEPS
    assert (own["value"][0], own["value"][-1]) == (0.0, 1002.0)
    np.testing.assert_array_equal(own["to"][:-1], own["from"][1:])
    assert set(own["range"]) == {1002.0}


def test_what_is_not_a_model():
    for other in ("model.json", rw.make_queries(2, random_state=0)):
        with pytest.raises(rw.InputError, match="expected a fitted ranker"):
            rw.explain(other)
    with pytest.raises(rw.InputError, match="expected a fitted ranker"):
        rw.save("model.json", "other.json")


def test_parts_in_their_order():
    found = rw.explain(rw.RankBoost(n_estimators=20).fit(rw.make_queries(20, random_state=0)))
    assert list(found) == list(found.parts)


def sum_changes(trees, feature):
    """By which a feature can change the score of trees alone, if splits were independent: from all pairs of leaves."""
    total = 0.0
    for tree in trees.forest.trees:
        columns = tree.columns

        def ways(node, columns=columns, tree=tree):
            """The values that the tree can have, each with the sides taken at the nodes on the way."""
            if node < 0:
                return [({}, tree.values[~node])]
            sides = ("left_child", "right_child")
            found = [(side, way) for side in sides for way in ways(int(columns[side][node]))]
            return [({**taken, node: side}, value) for side, (taken, value) in found]

        listed = ways(0)
        own = set(np.flatnonzero(columns["split_feature"] == feature).tolist())
        total += max(
            abs(value - other)
            for taken, value in listed
            for also, other in listed
            if all(taken[node] == also[node] for node in taken.keys() & also.keys() if node not in own)
        )
    return total


class TestWeightedSums:
    LINEAR = Linear(np.array([2.0, -1.0, 0.0]), 3.0)
    STUMPS = Stumps(np.array([1, 1]), np.array([0.5, 2.0], np.float32), np.array([1.0, -0.25]))

    @staticmethod
    def explain(*weighted, intercept=0.5):
        scorer = WeightedSum([part for part, _ in weighted], np.array([weight for _, weight in weighted]), intercept)
        return scorer, rw.explain(rw.Model("Blend", {}, "map", scorer, 3))

    def test_linear_parts_are_one_linear_model(self):
        inner = WeightedSum([Feature(2, -1), self.LINEAR], np.array([1.0, 0.5]), 4.0)
        _, found = self.explain((self.LINEAR, 2.0), (inner, 3.0))
        assert {part.name: part.weight for part in found} == {"1": 7.0, "2": -3.5, "3": -3.0}
        assert found.intercept == 0.5 + 2 * 3.0 + 3 * (4.0 + 0.5 * 3.0)

    def test_stumps_are_one_step_function_of_each_feature(self):
        other = Stumps(np.array([1, 0]), np.array([0.5, 9.0], np.float32), np.array([2.0, 1.0]))
        scorer, found = self.explain((self.STUMPS, 2.0), (other, -1.0))
        X = np.array([[a, b, 0] for a in (0, 10) for b in (0, 1, 3)], np.float32)
        for row, score in zip(X, scorer(X), strict=True):
            inside = [step.value for part in found for step in part.steps if step.low < row[part.index] <= step.high]
            assert sum(inside) + found.intercept == score
        assert "missing" not in str(found)

    def test_one_forest_and_a_constant_have_splits(self):
        queries = rw.make_queries(20, n_features=3, random_state=0)
        trees = rw.MART(n_estimators=3, num_leaves=4).fit(queries).to_model().scorer
        _, found = self.explain((trees, 1.0))
        assert [part.gain for part in found] == [part.gain for part in rw.explain(rw.Model("", {}, "map", trees, 3))]

    def test_effects_of_several_kinds_are_added(self):
        _, found = self.explain((self.LINEAR, 1.0), (self.STUMPS, -2.0), (self.trees(), 0.5))
        alone = {part.name: part for part in self.explain((self.trees(), 0.5), (self.trees(), 0.0))[1]}
        assert {part.name: part.weight for part in found} == {"1": 2.0, "2": -1.0, "3": 0.0}
        assert found.intercept == 3.5
        assert found["1"].change == pytest.approx(0.5 * sum_changes(self.trees(), 0))
        assert found["2"].change == pytest.approx(2.0 + 0.5 * sum_changes(self.trees(), 1))
        assert found["2"].n_splits == alone["2"].n_splits + 2
        assert found["3"].size == found["3"].change
        assert found["1"].size == pytest.approx(found["1"].change + 2.0 * (found["1"].high - found["1"].low))
        assert [part.size for part in found] == sorted((part.size for part in found), reverse=True)
        table = found.to_pandas()
        assert table["change"].tolist() == [part.change for part in found]
        assert "2 weights, 2 stumps, 3 trees on 3 of 3 features" in str(found)
        assert "no function" not in str(found)

    def test_a_merged_sum_has_the_same_effects(self):
        parts = [(self.LINEAR, 1.0), (self.STUMPS, -2.0), (self.trees(), 0.5), (self.trees(), 0.0)]
        scorer, found = self.explain(*parts)
        merged = rw.explain(rw.Model("Blend", {}, "map", merge_scorers([scorer], [1.0]), 3))
        for part in found:
            other = merged[part.name]
            assert (other.weight, other.n_splits, other.low, other.high) == (*self.figures(part),)
            assert other.change == pytest.approx(part.change)
        assert merged.intercept == found.intercept

    def test_no_feature_changes_the_score_of_trees_by_more(self):
        trees, rng = self.trees(), np.random.default_rng(0)
        _, found = self.explain((trees, 1.0), (trees, -0.0), (self.STUMPS, 0.0), (self.LINEAR, 1e-12))
        X = np.repeat(rng.normal(0, 500, size=(200, 1, 3)), 40, axis=1).astype(np.float32)
        for feature in range(3):
            varied = X.copy()
            varied[:, :, feature] = rng.normal(0, 500, size=(200, 40))
            change = np.ptp(trees(varied.reshape(-1, 3)).reshape(200, 40), axis=1).max()
            assert 0.0 < change <= found[str(feature + 1)].change * (1 + 1e-12)

    def test_forests_and_stumps_that_are_one_forest_have_effects(self):
        stumps = Stumps(np.array([1]), np.array([0.5], np.float32), np.array([3.0]), np.array([True]))
        merged = merge_scorers([self.trees(), stumps], [1.0, 2.0], 0.75)
        assert isinstance(merged, Trees)
        found = rw.explain(rw.Model("Blend", {}, "map", merged, 3))
        assert found["2"].change == pytest.approx(6.0 + sum_changes(self.trees(), 1))
        assert found.intercept == 0.75

    def test_categories_and_infinite_thresholds_have_no_ends(self):
        tree = Tree.from_nodes(
            np.array([0]), np.array([np.inf]), np.ones(1, bool), np.array([~0]), np.array([~1]), np.array([0.0, 2.0])
        )
        _, found = self.explain((Trees(Forest.from_trees([tree], 3)), 1.0), (self.LINEAR, 0.0), (self.STUMPS, 1.0))
        assert np.isnan(found["1"].low)
        assert found["1"].size == 2.0
        scorer = WeightedSum([self.LINEAR, Trees(Forest.from_trees([tree], 3))], np.ones(2))
        categories = (("a", "b"), None, None)
        assert "rises 2 categories" in str(rw.explain(rw.Model("", {}, "map", scorer, 3, categories=categories)))

    def test_networks_in_a_sum_are_listed_on_their_own(self):
        network = Network(np.zeros(3), np.ones(3), [np.ones((3, 1))], [np.zeros(1)])
        _, found = self.explain((self.LINEAR, 1.0), (self.STUMPS, -2.5), (network, 0.25))
        assert [part.name for part in found] == ["2", "1"]
        assert [(part.name, part.weight) for part in found.rest] == [("1 (network)", 0.25)]
        assert "These are added, and have no function of each feature:" in str(found)

    def test_a_sum_of_networks_is_its_parts(self):
        networks = [Network(np.zeros(3), np.ones(3), [np.full((3, 1), w)], [np.zeros(1)]) for w in (1.0, 2.0)]
        _, found = self.explain((networks[0], 1.0), (networks[1], -2.5))
        assert [part.name for part in found] == ["2 (network)", "1 (network)"]
        assert found.to_pandas()["weight"].tolist() == [-2.5, 1.0]
        assert found.rest == ()

    @staticmethod
    def trees():
        queries = rw.make_queries(20, n_features=3, random_state=0)
        return rw.MART(n_estimators=3, num_leaves=4).fit(queries).to_model().scorer

    @staticmethod
    def figures(part):
        return part.weight, part.n_splits, part.low, part.high

    def test_trees_without_gains_count_splits(self):
        tree = Tree.from_nodes(
            np.array([2, 0, 2]),
            np.ones(3),
            np.ones(3, bool),
            np.array([1, ~0, ~1]),
            np.array([2, ~2, ~3]),
            np.arange(4.0),
        )
        found = rw.explain(rw.Model("RankLib", {}, "map", Trees(Forest.from_trees([tree], 3)), 3))
        assert [(part.name, part.gain) for part in found] == [("3", 2 / 3), ("1", 1 / 3)]
        assert "gains are not known, so splits are counted" in str(found)
