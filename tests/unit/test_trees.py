"""Sums of trees: read, written and scored as LightGBM does, to the bit; and texts that are not what they say."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from functools import cache

import lightgbm as lgb
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.reference import trees as twin

import rankwright as rw
from rankwright.kernels.scorers.tree_scores import compute_leaf_scores, look_up_leaf_values
from rankwright.optimisers.functional_gradient import LeastSquares
from rankwright.optimisers.weak.regression_trees import RegressionTree, check_lightgbm_params
from rankwright.scorers import Trees
from rankwright.scorers.lightgbm_text import Forest, are_valid_names
from rankwright.scorers.lightgbm_trees import Tree

QUIET = {"verbosity": -1, "num_threads": 1, "deterministic": True, "force_col_wise": True}


def columns(kind, n=300, seed=0):
    """Features of one kind, and a target that depends on them."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4)).astype(np.float32)
    target = X[:, 0] + X[:, 1] * X[:, 2] + 0.3 * rng.normal(size=n)
    if kind == "missing":
        X[rng.random(X.shape) < 0.3] = np.nan
        target += np.isnan(X[:, 1])
    elif kind == "whole":
        X = np.round(2 * X)
    elif kind == "constant":
        X[:, 1:3] = 7.0
    elif kind == "zeros":
        X[rng.random(X.shape) < 0.7] = 0.0
        X[::7] = -0.0
    elif kind == "scales":
        X *= np.array([1e-38, 1e-12, 1e12, 1e37], np.float32)
    elif kind == "nothing":
        X[:, 2] = np.nan
    elif kind == "gaps":
        X[:, 0] = np.where(X[:, 0] > 0, X[:, 3], np.nan)  # split at infinity: what is there from what is not
        target = 3.0 * np.isnan(X[:, 0]) + 0.1 * X[:, 1]
    return X, target


KINDS = ("random", "missing", "whole", "constant", "zeros", "scales", "nothing", "gaps")


def grown(X, y, n_estimators=6, **params):
    """LightGBM's regression."""
    params = {**QUIET, "objective": "regression", "num_leaves": 9, "min_data_in_leaf": 5, **params}
    return lgb.train(params, lgb.Dataset(X, y, params=params), n_estimators)


def awkward(X):
    """Documents that training did not see: missing, 0, infinitely little to the side of what it saw."""
    X = X[:60]
    holes = np.where(np.random.default_rng(1).random(X.shape) < 0.4, np.nan, X).astype(np.float32)
    sides = [np.nextafter(X, np.float32(side), dtype=np.float32) for side in (-np.inf, np.inf)]
    extremes = np.array([[0.0] * 4, [-0.0] * 4, [np.nan] * 4, [3e38] * 4, [-3e38] * 4, [1e-45] * 4], np.float32)
    return np.concatenate([X, holes, *sides, extremes])


def check_same(booster, X):
    """Scores and leaves are those of LightGBM, of the twin, and of both after writing and reading."""
    trees = Trees(Forest.from_text(booster.model_to_string()))
    expected = booster.predict(X, raw_score=True)
    leaves = booster.predict(X, pred_leaf=True).reshape(len(X), -1).T
    again = Trees(Forest.from_text(trees.forest.text()))
    for each in (trees, again):
        np.testing.assert_array_equal(each(X), expected)
        np.testing.assert_array_equal(each.leaves(X), leaves)
    dump = booster.dump_model()
    np.testing.assert_array_equal(twin.scores(dump, X), expected)
    np.testing.assert_array_equal(twin.leaves(dump, X), leaves)
    theirs = trees.booster()
    np.testing.assert_array_equal(theirs.predict(X), expected)
    np.testing.assert_array_equal(theirs.predict(X, pred_leaf=True).reshape(len(X), -1).T, leaves)
    return trees


class TestScoresAreThoseOfLightGBM:
    @pytest.mark.parametrize("kind", KINDS)
    def test_features_of_every_kind(self, kind):
        X, y = columns(kind)
        booster = grown(X, y)
        check_same(booster, X)
        trees = check_same(booster, awkward(X))
        assert len(trees) == 6

    def test_what_is_missing_in_prediction_alone_is_zero(self):
        X, y = columns("random")
        trees, holes = Trees(Forest.from_text(grown(X, y).model_to_string())), X.copy()
        holes[:, 1] = np.nan
        filled = np.nan_to_num(holes)
        np.testing.assert_array_equal(trees(holes), trees(filled))
        assert (trees(holes) != trees(X)).any()

    def test_missing_values_have_a_side_of_their_own(self):
        X, y = columns("missing")
        trees = Trees(Forest.from_text(grown(X, y).model_to_string()))
        assert (trees(X) != trees(np.nan_to_num(X))).any()

    def test_what_is_missing_may_be_split_from_all_else(self):
        X, y = columns("gaps")
        trees = Trees(Forest.from_text(grown(X, y).model_to_string()))
        assert np.isposinf(trees.forest.nodes.threshold).any()

    @pytest.mark.parametrize("shift", [-10.0, 0.0, 10.0])
    def test_thresholds_on_both_sides_of_zero(self, shift):
        X, y = columns("random")
        check_same(grown(X + np.float32(shift), y), awkward(X + np.float32(shift)))

    @pytest.mark.parametrize("num_leaves", [2, 3, 255, 256, 257, 400])
    def test_few_leaves_and_many(self, num_leaves):
        rng = np.random.default_rng(0)
        X = rng.normal(size=(1000, 4)).astype(np.float32)
        params = {"num_leaves": num_leaves, "min_data_in_leaf": 1, "max_bin": 1023, "min_data_in_bin": 1}
        booster = grown(X, rng.normal(size=1000), 2, **params)
        trees = check_same(booster, X[:200])
        assert [len(tree.values) for tree in trees.forest.trees] == [num_leaves] * 2
        assert trees.leaves(X).dtype == (np.uint8 if num_leaves <= 256 else np.uint16)
        assert trees.leaves(X).max() == num_leaves - 1

    def test_trees_that_are_leaves(self):
        X, y = columns("random")
        booster = grown(X, y, 1, min_data_in_leaf=200)
        trees = check_same(booster, X)
        assert len(trees.forest.trees[0].values) == 1
        np.testing.assert_allclose(trees(X), y.mean(), rtol=1e-6)
        mixed = Trees(Forest.from_text(grown(X, y).model_to_string()).append_trees(trees.forest))
        np.testing.assert_array_equal(mixed(X), mixed.booster().predict(X))
        assert (mixed.leaves(X)[-1] == 0).all()

    def test_a_constant(self):
        forest = Forest.constant(4)
        X, _ = columns("missing")
        for each in (forest, Forest.from_text(forest.text())):
            assert not Trees(each)(X).any()
            assert Trees(each).leaves(X).tolist() == [[0] * len(X)]
        np.testing.assert_array_equal(Trees(forest).booster().predict(X), np.zeros(len(X)))

    @pytest.mark.parametrize("kind", ["random", "missing"])
    def test_values_multiplied(self, kind):
        X, y = columns(kind)
        booster = grown(X, y)
        weights = [1.0, 0.0, -0.3, 1e-300, 1e300, 1 / 3]
        scaled = Trees(Forest.from_text(booster.model_to_string()).with_weights(weights))
        for t, weight in enumerate(weights):
            for leaf in range(booster.dump_model()["tree_info"][t]["num_leaves"]):
                booster.set_leaf_output(t, leaf, booster.get_leaf_output(t, leaf) * weight)
        np.testing.assert_array_equal(scaled(X), booster.predict(X, raw_score=True))
        np.testing.assert_array_equal(Trees(Forest.from_text(scaled.forest.text()))(X), scaled(X))
        np.testing.assert_array_equal(scaled.booster().predict(X), scaled(X))

    def test_some_trees_and_others(self):
        X, y = columns("random")
        booster = grown(X, y)
        forest = Forest.from_text(booster.model_to_string())
        for n in (1, 3, 6, 10):
            np.testing.assert_array_equal(Trees(forest.take_first(n))(X), booster.predict(X, num_iteration=n))
        assert not Trees(forest.take_first(0))(X).any()
        assert forest.take_first(0).n_features == 4
        rest = Forest.from_text(booster.model_to_string(start_iteration=2))
        np.testing.assert_array_equal(Trees(forest.take_first(2).append_trees(rest))(X), booster.predict(X))

    @pytest.mark.parametrize("n", [0, 1, 63, 64, 65, 16_384, 16_385])
    def test_any_number_of_documents(self, n):
        X, y = columns("missing")
        booster = grown(X, y)
        many, trees = np.resize(X, (n, 4)), Trees(Forest.from_text(booster.model_to_string()))
        expected = np.resize(booster.predict(X), n) if n else np.empty(0)
        np.testing.assert_array_equal(trees(many), expected)
        assert trees.leaves(many).shape == (6, n)
        np.testing.assert_array_equal(trees.leaves(many, rw.Serial()), trees.leaves(many, rw.Threads(3)))

    def test_doubles_and_rows_apart_in_memory(self):
        X, y = columns("missing")
        trees = Trees(Forest.from_text(grown(X, y).model_to_string()))
        for other in (X.astype(np.float64), np.asfortranarray(X), np.repeat(X, 2, axis=0)[::2]):
            np.testing.assert_array_equal(trees(other), trees(X))

    def test_leaves_with_values_and_weights_are_the_scores(self):
        X, y = columns("missing")
        forest = Forest.from_text(grown(X, y).model_to_string())
        leaves, nodes, weights = Trees(forest).leaves(X), forest.nodes, np.array([0.5, -1.0, 0.0, 3.0, 1 / 3, 1e-9])
        found = compute_leaf_scores(leaves, nodes.first_leaf, nodes.value, weights)
        np.testing.assert_array_equal(found, Trees(forest.with_weights(weights))(X))
        np.testing.assert_array_equal(
            look_up_leaf_values(leaves[2], forest.trees[2].values), Trees(Forest(forest.header, forest.trees[2:3]))(X)
        )

    def test_importance_is_that_of_lightgbm(self):
        X, y = columns("missing")
        booster = grown(X, y)
        trees = Trees(Forest.from_text(booster.model_to_string()))
        for kind in ("gain", "split"):
            np.testing.assert_allclose(trees.importance(kind), booster.feature_importance(kind), rtol=1e-5)
        with pytest.raises(rw.InputError, match="'gain' or 'split'"):
            trees.importance("weight")

    def test_contributions_are_those_of_lightgbm_and_add_up(self):
        X, y = columns("missing")
        booster = grown(X, y)
        trees = Trees(Forest.from_text(booster.model_to_string()))
        found = trees.contributions(X)
        np.testing.assert_allclose(found, booster.predict(X, pred_contrib=True), atol=1e-12)
        np.testing.assert_allclose(found.sum(axis=1), trees(X), atol=1e-10)
        assert np.abs(found[:, :4]).max() > 0.1

    def test_what_it_says_of_itself(self):
        trees = Trees(Forest.constant(3))
        assert (trees.allow_nan, len(trees), trees.kind) == (True, 1, "trees")
        assert (trees.accepts(3), trees.accepts(2)) == (True, False)


class TestText:
    @pytest.mark.parametrize("kind", KINDS)
    def test_reading_what_was_written_changes_nothing(self, kind):
        X, y = columns(kind)
        forest = Forest.from_text(grown(X, y, monotone_constraints=[1, 0, -1, 0]).model_to_string())
        text = forest.text()
        again = Forest.from_text(text)
        assert again.text() == text
        assert again.header == forest.header
        assert again.header["monotone_constraints"] == "1 0 -1 0"
        for one, other in zip(forest.trees, again.trees, strict=True):
            assert one.shrinkage == other.shrinkage
            for name in one.columns:
                np.testing.assert_array_equal(one.columns[name], other.columns[name])

    def test_every_number_is_that_of_lightgbm(self):
        X, y = columns("missing")
        booster = grown(X, y)
        table = booster.trees_to_dataframe()
        for t, tree in enumerate(Forest.from_text(booster.model_to_string()).trees):
            own = table[table.tree_index == t]
            leaves = own[own.split_feature.isna()].set_index("node_index")
            expected = [booster.get_leaf_output(t, leaf) for leaf in range(len(tree.values))]
            assert tree.values.tolist() == expected
            counts = [int(leaves.loc[f"{t}-L{leaf}", "count"]) for leaf in range(len(tree.values))]
            assert tree.columns["leaf_count"].tolist() == counts
            assert sum(counts) == len(X) == tree.columns["internal_count"][0]

    def test_lightgbm_says_the_same_of_what_it_reads(self):
        X, y = columns("missing")
        booster = grown(X, y)
        theirs = Trees(Forest.from_text(booster.model_to_string())).booster()
        one, other = booster.dump_model(), theirs.dump_model()
        assert one["tree_info"] == other["tree_info"]
        assert one["feature_names"] == other["feature_names"]
        assert one["feature_infos"] == other["feature_infos"]
        assert one["monotone_constraints"] == other["monotone_constraints"]

    @pytest.mark.parametrize("params", [{"objective": "lambdarank"}, {"boosting": "dart"}, {"extra_trees": True}])
    def test_other_sums_of_trees(self, params):
        X, y = columns("random")
        params = {**QUIET, "objective": "regression", "num_leaves": 5, **params}
        data = lgb.Dataset(X, np.clip(np.round(y), 0, 3), group=[100, 200], params=params)
        check_same(lgb.train(params, data, 5), X)

    def test_json_keeps_the_bits(self):
        X, y = columns("missing")
        trees = Trees(
            Forest.from_text(grown(X, y).model_to_string()).with_weights([1 / 3, 0.1, 1.0, -2.0, 1e-200, 1e-320])
        )
        again = Trees.from_json(json.loads(json.dumps(trees.to_json())))
        np.testing.assert_array_equal(again(X), trees(X))

    def test_names_that_lightgbm_takes(self):
        assert are_valid_names(["a", "b.c", "größe", "x-1", "(y)"])
        for names in (
            ["a", "a"],
            ["a b"],
            ["a,b"],
            ['"a"'],
            ["a:b"],
            ["[a]"],
            ["{a}"],
            ["a=b"],
            [""],
            ["a\tb"],
            ["a\n"],
        ):
            assert not are_valid_names(names), names

    @pytest.mark.parametrize("name", ["a\x00b", "\x01", "\ud800", "\x7f"])
    def test_names_that_nobody_can_read(self, name):
        assert not are_valid_names([name])
        text = Forest.constant(1).text()
        with pytest.raises(rw.InputError, match="feature_names"):
            Forest.from_text(text.replace("Column_0", name))


@cache
def good_text():
    X, y = columns("missing")
    return Forest.from_text(grown(X, y, 2, num_leaves=5).model_to_string()).text()


def line(name, value, nth=0):
    """The good text with another line."""
    found = [*re.finditer(rf"^{name}=.*$", good_text(), re.MULTILINE)][nth]
    return good_text()[: found.start()] + f"{name}={value}" + good_text()[found.end() :]


def without(name):
    return re.sub(rf"^{name}=.*\n", "", good_text(), count=1, flags=re.MULTILINE)


@cache
def hostile_texts():
    bad = {
        "nothing": "",
        "the first line": "tree\n",
        "garbage": "x" * 1_000_000,
        "garbage after a good start": good_text()[:100] + "ÿ" * 1_000_000,
        "zeros": "\0" * 1000,
        "json": "{}",
        "pickle": "\x80\x04\x95cbuiltins\neval\n",
        "another version": line("version", "v99"),
        "no version": without("version"),
        "other line ends": good_text().replace("\n", "\r\n"),
        "two classes": line("num_class", "2"),
        "three trees a round": line("num_tree_per_iteration", "3"),
        "no classes": without("num_class"),
        "no trees": good_text().partition("Tree=0")[0],
        "categories": line("num_cat", "1"),
        "linear leaves": line("is_linear", "1"),
        "a split by category": line("decision_type", "1 2 2 2"),
        "0 for missing": line("decision_type", "6 6 4 4"),
        "a negative kind of split": line("decision_type", "-2 2 2 2"),
        "a cycle": line("left_child", "0 -2 -3 -4"),
        "a longer cycle": line("right_child", "1 2 1 -5"),
        "an island": (
            line("left_child", "-1 2 1 -2").replace(
                re.search("right_child=.*", good_text())[0], "right_child=3 -4 -5 -3", 1
            )
        ),
        "a child far away": line("left_child", "99 -2 -3 -4"),
        "a leaf far away": line("left_child", "-99 -2 -3 -4"),
        "a leaf led to twice": line("left_child", "-1 -1 -3 -4"),
        "a child of 2^63": line("left_child", "9223372036854775808 -2 -3 -4"),
        "the least child": line("left_child", "-9223372036854775808 -2 -3 -4"),
        "children that are not whole": line("left_child", "0.5 -2 -3 -4"),
        "too few children": line("left_child", "-1"),
        "no children": without("right_child"),
        "a feature too many": line("split_feature", "0 1 2 4"),
        "a feature below 0": line("split_feature", "0 1 2 -1"),
        "a feature of 2^32": line("split_feature", "4294967296 1 2 3"),
        "features that are words": line("split_feature", "a b c d"),
        "a threshold that is none": line("threshold", "nan 1 1 1"),
        "a threshold below all": line("threshold", "1 1 -inf 1"),
        "too many thresholds": line("threshold", "1 1 1 1 1"),
        "a value that is none": line("leaf_value", "1 2 nan 4 5"),
        "an infinite value": line("leaf_value", "1 2 -inf 4 5"),
        "a value beyond doubles": line("leaf_value", "1 2 1e400 4 5"),
        "a million digits": line("leaf_value", "9" * 1_000_000 + " 1 2 3 4"),
        "a whole number of a million digits": line("split_feature", "9" * 1_000_000 + " 1 2 3"),
        "hexadecimal": line("leaf_value", "0x1 2 3 4 5"),
        "code": line("leaf_value", "__import__('os').abort() 2 3 4 5"),
        "no values": line("leaf_value", ""),
        "six values": line("leaf_value", "1 2 3 4 5 6"),
        "a count of leaves that is wrong": line("num_leaves", "4"),
        "a count of leaves that is negative": line("num_leaves", "-5"),
        "a count of leaves that is huge": line("num_leaves", "9" * 5000),
        "counts that are not whole": line("leaf_count", "1.5 1 1 1 1"),
        "two counts": line("leaf_count", "1 1"),
        "weights that are none": line("leaf_weight", "nan 1 1 1 1"),
        "gains that are infinite": line("split_gain", "inf 1 1 1"),
        "a shrinkage that is none": line("shrinkage", "nan"),
        "two shrinkages": line("shrinkage", "1 1"),
        "no last feature": without("max_feature_idx"),
        "a last feature that is negative": line("max_feature_idx", "-1"),
        "a last feature in other digits": line("max_feature_idx", "٣"),
        "a last feature that is huge": line("max_feature_idx", "9" * 400),
        "more features than names": line("max_feature_idx", "9999999"),
        "fewer features than names": line("max_feature_idx", "2"),
        "no names": without("feature_names"),
        "names with blanks": line("feature_names", "a b c  d"),
        "names with quotes": line("feature_names", 'a b c "d"'),
        "no infos": without("feature_infos"),
        "infos that are none": line("feature_infos", "[0:1] [0:1] [0:1] x"),
        "too few constraints": line("max_feature_idx", "3\nmonotone_constraints=1"),
        "constraints of 2": line("max_feature_idx", "3\nmonotone_constraints=2 0 0 0"),
    }
    whole = good_text()
    stop = whole.index("end of trees")
    bad |= {"cut between trees": whole[: whole.index("Tree=1")], "no end": whole[:stop]}
    bad |= {f"cut at {at}": whole[:at] for at in range(5, stop - 60, max(1, stop // 25))}
    return bad


class TestHostileTexts:
    @pytest.mark.parametrize("what", sorted(hostile_texts()))
    def test_one_line_that_says_so(self, what, tmp_path):
        text = hostile_texts()[what]
        with pytest.raises(rw.InputError) as error:
            Forest.from_text(text)
        assert "\n" not in str(error.value)
        assert len(str(error.value)) < 200

    @pytest.mark.parametrize("what", ["a cycle", "a feature too many", "code", "garbage", "a value that is none"])
    def test_in_a_saved_model(self, what, tmp_path):
        content = self._saved(tmp_path)
        content["scorer"]["lightgbm"] = hostile_texts()[what]
        self._refused(tmp_path, content)

    @pytest.mark.parametrize("value", [None, 3, [], {}, ["tree"], True, {"__reduce__": "os.abort"}])
    def test_no_text_at_all(self, value, tmp_path):
        content = self._saved(tmp_path)
        content["scorer"]["lightgbm"] = value
        self._refused(tmp_path, content)

    def test_a_model_of_other_features(self, tmp_path):
        content = self._saved(tmp_path)
        content["n_features"] = 5
        self._refused(tmp_path, content)
        del content["scorer"]["lightgbm"]
        self._refused(tmp_path, content)

    def _saved(self, tmp_path):
        queries = rw.make_queries(10, n_features=4, random_state=0)
        rw.save(rw.MART(n_estimators=2, num_leaves=3).fit(queries), tmp_path / "model.json")
        return json.loads((tmp_path / "model.json").read_text())

    def _refused(self, tmp_path, content):
        path = tmp_path / "bad.json"
        path.write_text(json.dumps(content))
        with pytest.raises(rw.InputError, match=r"bad\.json") as error:
            rw.load(path)
        assert "\n" not in str(error.value)

    @pytest.mark.parametrize("data", [b"\xff\xfe tree", b"tree\n\xff\xff\xff", b"tree\nversion=v4\n\x80abc", b"tree\n"])
    def test_files_that_are_not_text(self, data, tmp_path):
        path = tmp_path / "model.txt"
        path.write_bytes(data)
        with pytest.raises(rw.InputError, match=r"model\.txt") as error:
            rw.MART(init_model=path).fit(rw.make_queries(3, random_state=0))
        assert "\n" not in str(error.value)

    @settings(max_examples=250)
    @given(st.data())
    def test_whatever_was_changed_it_is_read_or_refused(self, data):
        """Whatever is read can be scored, and is a tree: every document ends in a leaf."""
        text = good_text()
        for _ in range(data.draw(st.integers(1, 3))):
            at = data.draw(st.integers(0, len(text) - 1))
            length = data.draw(st.sampled_from([0, 1, 1, 2, 10, 300]))
            new = data.draw(st.text("0123456789-.e+ \n=TreABnaif_\x00é", max_size=4))
            text = text[:at] + new + text[at + length :]
        try:
            forest = Forest.from_text(text)
        except rw.InputError:
            return
        X = np.zeros((3, forest.n_features), np.float32)
        X[1], X[2] = np.nan, 1e38
        assert np.isfinite(Trees(forest)(X)).all() or max(np.abs(t.values).max() for t in forest.trees) > 1e290
        assert Forest.from_text(forest.text()).text() == forest.text()

    @settings(max_examples=200)
    @given(st.data())
    def test_children_at_random_make_a_tree_or_are_refused(self, data):
        """A tree is accepted if and only if a walk from its root meets every node and every leaf once."""
        n = data.draw(st.integers(2, 5))
        anything = st.lists(st.integers(-n - 1, n), min_size=2 * n - 2, max_size=2 * n - 2)
        each_once = st.permutations([*range(-n, 0), *range(1, n - 1)])
        children = data.draw(st.one_of(anything, each_once, each_once))
        left, right = children[: n - 1], children[n - 1 :]
        met, stack, ordered = [], [0], True
        while stack and len(met) < 20:
            node = stack.pop()
            met.append(node)
            if 0 <= node < n - 1:
                ordered &= all(c < 0 or c > node for c in (left[node], right[node]))
                stack += [left[node], right[node]]
        is_tree = sorted(met) == [*range(-n, 0), *range(n - 1)] and ordered
        text = small_tree(n, left, right)
        if is_tree:
            assert len(Forest.from_text(text).trees[0].values) == n
        else:
            with pytest.raises(rw.InputError):
                Forest.from_text(text)

    def test_an_endless_chain_is_scored_and_explained_or_refused(self):
        """LightGBM's own SHAP values need memory for the square of the depth; it must not end the process."""
        n = 65_536
        text = small_tree(n, [~i for i in range(n - 1)], [*range(1, n - 1), ~(n - 1)])
        code = (
            "import sys, numpy as np, rankwright as rw\n"
            "from rankwright.scorers import Trees\n"
            "from rankwright.scorers.lightgbm_text import Forest\n"
            "trees = Trees(Forest.from_text(sys.stdin.read()))\n"
            "assert trees(np.ones((2, 1), np.float32)).tolist() == [1.0, 1.0]\n"
            "try:\n"
            "    trees.contributions(np.ones((2, 1), np.float32))\n"
            "except rw.InputError as error:\n"
            "    print(error)\n"
        )
        done = subprocess.run([sys.executable, "-c", code], input=text, text=True, capture_output=True)
        assert done.returncode == 0, done.stderr[-300:]

    def test_too_many_leaves(self):
        n = 65_537
        with pytest.raises(rw.InputError, match="num_leaves"):
            Forest.from_text(small_tree(n, [~i for i in range(n - 1)], [*range(1, n - 1), ~(n - 1)]))

    def test_contributions_of_trees_that_tell_no_counts(self):
        trees = Trees(Forest.from_text(without("leaf_count").replace("leaf_count", "nothing")))
        X, _ = columns("missing")
        assert np.isfinite(trees(X)).all()
        try:
            found = trees.contributions(X)
        except rw.InputError:
            return
        assert np.isfinite(found).all()


def small_tree(n, left, right):
    """The text of one tree over one feature."""
    whole, real = [1] * (n - 1), [1.0] * (n - 1)
    columns = {
        "split_feature": np.zeros(n - 1, np.int64),
        "split_gain": np.array(real),
        "threshold": np.arange(n - 1, dtype=np.float64),
        "decision_type": np.full(n - 1, 2),
        "left_child": np.array(left, np.int64),
        "right_child": np.array(right, np.int64),
        "leaf_value": np.arange(n, dtype=np.float64),
        "leaf_weight": np.ones(n),
        "leaf_count": np.ones(n, np.int64),
        "internal_value": np.array(real),
        "internal_weight": np.array(real),
        "internal_count": np.array(whole),
    }
    return Forest(Forest.constant(1).header, (Tree(columns),)).text()


WITHOUT_LIGHTGBM = """
import sys
sys.modules["lightgbm"] = None  # any import of it fails
import numpy as np
import rankwright as rw
queries = rw.make_queries(20, random_state=0)
folder = sys.argv[1]
for name in ("MART", "LambdaMART", "DirectRankTrees", "BoostedTrees"):
    model = rw.load(f"{folder}/{name}.json")
    np.testing.assert_array_equal(model.predict(queries), np.load(f"{folder}/{name}.npy"))
    assert model.score(queries) > 0
    try:
        getattr(rw, name)().fit(queries)
    except ImportError as error:
        assert "lightgbm" in str(error) and "pip install" in str(error), error
    else:
        raise AssertionError("fitted without LightGBM")
"""


class TestWithoutLightGBM:
    def test_saved_models_predict_the_same_bits_and_fitting_says_what_is_missing(self, tmp_path):
        queries = rw.make_queries(20, random_state=0)
        for ranker in (rw.MART, rw.LambdaMART, rw.DirectRankTrees, rw.BoostedTrees):
            fitted = ranker(n_estimators=5, num_leaves=6, polish_rounds=1).fit(queries)
            rw.save(fitted, tmp_path / f"{ranker.__name__}.json")
            np.save(tmp_path / f"{ranker.__name__}.npy", fitted.predict(queries))
        done = subprocess.run(
            [sys.executable, "-c", WITHOUT_LIGHTGBM, str(tmp_path)], capture_output=True, text=True, cwd=tmp_path
        )
        assert done.returncode == 0, done.stderr[-1000:]


class TestWeakTrees:
    def _queries(self, kind="whole", **more):
        X, target = columns(kind, 120)
        return rw.Queries.from_arrays(X, np.clip(np.round(target + 1), 0, 3), np.arange(120) // 10, **more)

    @pytest.mark.parametrize("seed", range(6))
    def test_a_stump_is_the_best_one(self, seed):
        rng, queries = np.random.default_rng(seed), self._queries()
        g, h = rng.normal(size=120) + queries.X[:, 1], rng.random(120) + 0.5
        params = {"min_data_in_bin": 1, "min_sum_hessian_in_leaf": 0.0}
        tree = RegressionTree(2, 5, params=params).prepare(queries, 1).fit(g, h).trees[0]
        f, low, high, gain = twin.best_stump(queries.X, g, h, min_child_samples=5)
        assert tree.columns["split_feature"].tolist() == [f]
        assert low <= tree.columns["threshold"][0] < high
        assert tree.columns["split_gain"][0] == pytest.approx(gain, rel=1e-4)

    @pytest.mark.parametrize("learning_rate", [1.0, 0.1])
    def test_leaves_are_newton_steps(self, learning_rate):
        rng, queries = np.random.default_rng(0), self._queries("missing")
        g, h = rng.normal(size=120), rng.random(120) + 0.1
        growing = RegressionTree(7, 3, learning_rate).prepare(queries, 1)
        for t in range(3):
            tree = growing.fit(g, h)
            leaf = Trees(tree).leaves(queries.X)[0]
            np.testing.assert_allclose(
                tree.trees[0].values, twin.steps(leaf, g, h, learning_rate), rtol=1e-4, atol=1e-6
            )
            assert growing.n_trees == t + 1
            g = g + 1.0 * Trees(tree)(queries.X)

    @pytest.mark.parametrize("weight", [None, np.arange(12) + 1.0])
    def test_least_squares_trees_are_mean_residuals(self, weight):
        queries = self._queries("missing", weight=weight)
        growing, scores = RegressionTree(6, 4).prepare(queries, 1), np.zeros(120)
        for _ in range(4):
            target = LeastSquares.of(queries)(queries, scores)
            tree = growing.fit(target.gradient, target.curvature)
            leaf = Trees(tree).leaves(queries.X)[0]
            expected = twin.residual_means(leaf, queries, scores)
            np.testing.assert_allclose(tree.trees[0].values, expected, rtol=1e-4, atol=1e-5)
            scores += Trees(tree)(queries.X)
        if weight is not None:
            even = twin.residual_means(leaf, self._queries("missing"), np.zeros(120))
            assert not np.allclose(even, twin.residual_means(leaf, queries, np.zeros(120)), atol=1e-3)

    def test_the_sum_does_not_depend_on_what_the_trees_are_multiplied_by(self):
        """LightGBM is given gradients, so its own scores do not matter."""
        queries, rng = self._queries(), np.random.default_rng(0)
        g, h = rng.normal(size=(2, 120)), np.ones(120)
        growing, other = (RegressionTree(5, 5).prepare(queries, 1) for _ in range(2))
        first = growing.fit(g[0], h)
        scaled = growing.rescale(first, 0.25)
        np.testing.assert_array_equal(Trees(scaled)(queries.X), 0.25 * Trees(first)(queries.X))
        np.testing.assert_array_equal(growing.booster.predict(queries.X), Trees(scaled)(queries.X))
        other.fit(g[0], h)
        assert growing.fit(g[1], h).text() == other.fit(g[1], h).text()

    def test_a_tree_at_a_time_and_no_more(self):
        queries = self._queries()
        growing = RegressionTree(5, 5).prepare(queries, 1)
        before = growing.data
        trees = [growing.fit(np.random.default_rng(i).normal(size=120), np.ones(120)) for i in range(4)]
        assert all(len(tree) == 1 for tree in trees)
        assert growing.data is before
        assert growing.booster.num_trees() == 4

    def test_nothing_to_split(self):
        flat = rw.Queries.from_arrays(np.ones((40, 2)), np.arange(40) % 2, np.arange(40) // 10)
        assert RegressionTree().prepare(flat, 1).fit(np.arange(40.0), np.ones(40)) is None
        queries = self._queries()
        assert (
            RegressionTree(min_child_samples=100).prepare(queries, 1).fit(queries.X[:, 0] * 1.0, np.ones(120)) is None
        )
        growing = RegressionTree(5, 5).prepare(queries, 1)
        assert growing.fit(np.zeros(120), np.ones(120)) is None
        assert growing.fit(queries.X[:, 0] * 1.0, np.ones(120)) is not None

    def test_names_of_features(self):
        X, target = columns("random", 120)
        y, qid = np.clip(np.round(target), 0, 2), np.arange(120) // 10
        for names, expected in (
            (["bm25", "länge", "x.1", "a-b"], "bm25 länge x.1 a-b"),
            (["a b", "c", "d", "e"], "Column_0 Column_1 Column_2 Column_3"),
            (["a:1", "c", "d", "e"], "Column_0 Column_1 Column_2 Column_3"),
        ):
            queries = rw.Queries.from_arrays(X, y, qid, features=names)
            tree = RegressionTree(4, 5).prepare(queries, 1).fit(target * 1.0, np.ones(120))
            assert tree.header["feature_names"] == expected
            assert Trees(Forest.from_text(tree.text())).booster().feature_name() == expected.split()

    def test_errors_of_lightgbm_are_ours(self):
        for params in ({"monotone_constraints": [1]}, {"max_bin": -1}, {"bagging_fraction": 7.0}):
            with pytest.raises(rw.InputError, match="LightGBM") as error:
                RegressionTree(params=params).prepare(self._queries(), 1)
            assert "\n" not in str(error.value)


class TestParameters:
    @pytest.mark.parametrize(
        ("params", "text"),
        [
            ({"num_leaves": 5}, "num_leaves"),
            ({"min_data_in_leaf": 5}, "min_child_samples"),
            ({"num_iterations": 5}, "n_estimators"),
            ({"early_stopping_round": 5}, "early_stopping_rounds"),
            ({"num_threads": 5}, "backend"),
            ({"seed": 5}, "random_state"),
            ({"objective": "binary"}, "objective"),
            ({"metric": "map"}, "measure"),
            ({"lambda_l3": 5}, "did you mean lambda_l2|did you mean lambda_l1"),
            ({"sigmoid": 2.0}, "lambdas='lightgbm'"),
            ({"boosting": "rf"}, "boosting"),
            ({"linear_tree": True}, "linear_tree"),
            ({"zero_as_missing": True}, "zero_as_missing"),
            ({"categorical_feature": [0]}, "categorical_feature"),
            ({"learning_rate": 1.0}, "learning_rate"),
            ({"n_estimators": 5}, "n_estimators"),
            ({3: 5}, "3"),
            (5, "mapping"),
            ([("lambda_l2", 1)], "mapping"),
        ],
    )
    def test_those_that_are_not_theirs_to_set(self, params, text):
        with pytest.raises(rw.InputError, match=text) as error:
            check_lightgbm_params(params, native=False)
        assert "\n" not in str(error.value)

    def test_those_that_are(self):
        assert check_lightgbm_params(None, native=False) == {}
        given = {"lambda_l2": 1.0, "bagging_freq": 1}
        found = check_lightgbm_params(given, native=False)
        assert found == given
        assert found is not given
        assert check_lightgbm_params({"sigmoid": 2.0}, native=True) == {"sigmoid": 2.0}
