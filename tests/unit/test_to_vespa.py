"""Export to Vespa: JSON of trees, ranking expressions and ONNX, each with a rank profile."""

import json
from pathlib import Path

import numpy as np
import pytest
from tests.exported import CATEGORIES, NAMES, make_data, make_model, make_rows, make_trees, train_trees
from tests.reference.oracle_vespa import score

import rankwright as rw
from rankwright.models.export import vespa_trees
from rankwright.models.export.float32_thresholds import round_down_to_float32
from rankwright.models.model import Model
from rankwright.scorers import Linear, Stumps, Trees, WeightedSum
from rankwright.scorers.lightgbm_text import Forest
from rankwright.scorers.lightgbm_trees import Tree, make_leaf

GOLDEN = json.loads((Path(__file__).parents[1] / "golden" / "vespa.json").read_text())["cases"]
RANK_FEATURES = {
    "bm25": "bm25(title)",
    "clicks": "attribute(clicks)",
    "age": "fieldMatch(title,a).longestSequenceRatio",
    "ratio": "attribute(shop.ratio)",
}


def export(model, folder, name="m.json", **options):
    return rw.export(model, "vespa", folder / name, **options)[0]


def make(scorer, n_features=5, **options):
    return Model("LambdaMART", {}, "ndcg@10", scorer, n_features, NAMES[:n_features], **options)


@pytest.mark.parametrize("kind", ["trees", "deep trees", "trees with missing", "trees with categories"])
def test_trees_have_our_bits(kind, tmp_path):
    model, X = make_model(kind), make_rows(kind)[:20_000]
    assert np.array_equal(score(export(model, tmp_path), X, NAMES), model.scorer(X))


@pytest.mark.parametrize("case", GOLDEN, ids=lambda case: case["kind"])
def test_vespa_itself_returned_these_scores(case, tmp_path):
    X = np.array(case["rows"], dtype=np.float32)
    (tmp_path / "m.model").write_text(case["file"])
    (tmp_path / "m.model.profile.txt").write_text(case["profile"])
    assert score(tmp_path / "m.model", X, case["names"]).tolist() == case["scores"]
    scorer = make_model(case["kind"]).scorer
    ours = scorer(X if scorer.allow_nan else np.nan_to_num(X))
    np.testing.assert_allclose(case["scores"], ours, rtol=1e-13, atol=1e-12)


def test_float32_thresholds_of_large_forests_change_no_decision(tmp_path):
    """A content node keeps thresholds and leaves of large forests in float32."""
    model, X = make_model("trees with missing"), make_rows("trees with missing")[:20_000]
    path = export(model, tmp_path)
    np.testing.assert_allclose(score(path, X, NAMES, narrow=True), model.scorer(X), rtol=1e-6, atol=1e-6)


def test_only_missing_values_exceed_a_threshold_beyond_float32(tmp_path):
    nodes = [0], [1e308], [False], [~0], [~1], [1.0, 2.0]
    tree = Tree.from_nodes(*map(np.array, nodes))
    path = export(make(Trees(Forest.from_trees([tree], 5))), tmp_path)
    X = np.zeros((2, 5), np.float32)
    X[:, 0] = np.finfo(np.float32).max, np.nan
    for narrow in (False, True):
        assert score(path, X, NAMES, narrow=narrow).tolist() == [1.0, 2.0]


def test_linear_models_are_ranking_expressions(tmp_path):
    model, X = make_model("sum of linear"), make_rows("sum of linear")[:5_000]
    path = export(model, tmp_path, "m.expression")
    np.testing.assert_allclose(score(path, X, NAMES), model.scorer(X), rtol=1e-13)
    text = path.read_text().strip()
    assert "* if(isNan(clicks), 0, clicks) +\n" in text
    assert " ".join(text.split()) in " ".join((tmp_path / "m.expression.profile.txt").read_text().split())
    blank = np.full((1, 5), np.nan, np.float32)
    assert np.array_equal(score(path, blank, NAMES), score(path, np.zeros((1, 5), np.float32), NAMES))


def test_rank_features_are_names(tmp_path):
    model, X = make_model("sum of linear and trees"), np.nan_to_num(make_rows("trees")[:1_000])
    names = [RANK_FEATURES.get(name, name) for name in NAMES]
    path = export(model, tmp_path, names=RANK_FEATURES)
    np.testing.assert_allclose(score(path, X, names), model.scorer(X), rtol=1e-12, atol=1e-12)
    profile = (tmp_path / "m.json.profile.txt").read_text()
    assert 'lightgbm("m.json") +' in profile
    assert "function kind() {" in profile  # a plain name is a function
    assert "function bm25" not in profile
    network = make_model("network of relu")
    assert score(export(network, tmp_path, "n.onnx", names=RANK_FEATURES), X[:2], names).shape == (2,)


@pytest.mark.parametrize("name", ["1", "bm25 title", "a-b", "max", "f", "if", "", 'x("y")', "a(b", "ü", "a)b(", "x#y"])
def test_a_name_that_is_no_rank_feature_is_refused(name, tmp_path):
    with pytest.raises(rw.InputError, match=r"Vespa takes rank features such as bm25\(title\)"):
        export(make_model("trees"), tmp_path, names={"age": name})
    assert not list(tmp_path.iterdir())


def test_features_without_names_are_refused(tmp_path):
    """The number of a feature would be a constant in a ranking expression."""
    with pytest.raises(rw.InputError, match="the feature '1'"):
        export(Model("Regression", {}, "ndcg@10", Linear(np.ones(2)), 2), tmp_path)


def test_a_model_name_that_is_no_identifier_is_refused(tmp_path):
    with pytest.raises(rw.InputError, match="give it another with model_name"):
        export(make_model("trees"), tmp_path, "my-model.json")
    export(make_model("trees"), tmp_path, "my-model.json", model_name="my_model")
    assert 'lightgbm("my_model.json")' in (tmp_path / "my-model.json.profile.txt").read_text()


def test_constants_come_last(tmp_path):
    trees = [make_leaf(0.5), *make_trees().forest.trees[:2], make_leaf(0.25)]
    model = make(WeightedSum([Trees(Forest.from_trees(trees, 5))], np.ones(1), 1.0))
    X = make_rows("trees")[:100]
    path = export(model, tmp_path)
    np.testing.assert_allclose(score(path, X, NAMES), model.scorer(X), rtol=1e-14)
    written = json.loads(path.read_text())["tree_info"]
    assert [own["tree_structure"].get("leaf_value") for own in written] == [None, None, 1.75]


def test_categories_are_texts_or_numbers(tmp_path):
    model = make_model("trees with categories")
    written = json.loads(export(model, tmp_path).read_text())
    assert written["pandas_categorical"] == [list(CATEGORIES[4])]
    assert list(written["feature_infos"]) == ["kind"]
    imported = rw.import_model(train_trees(categorical=True))
    path = export(imported, tmp_path)
    (numbers,) = json.loads(path.read_text())["pandas_categorical"]
    assert numbers == list(range(len(numbers)))
    X = make_data()[0]
    assert np.array_equal(score(path, X, NAMES), imported.scorer(X))


def test_an_empty_set_of_categories_goes_right(tmp_path):
    columns = Tree.from_nodes(*map(np.array, ([0], [0.0], [False], [~0], [~1], [1.0, 2.0]))).columns
    kinds = {"decision_type": [1], "cat_boundaries": [0, 1], "cat_threshold": [0]}
    tree = Tree({**columns, **{name: np.array(values) for name, values in kinds.items()}})
    path = export(make(Trees(Forest.from_trees([tree], 1)), 1), tmp_path)
    assert json.loads(path.read_text())["tree_info"][0]["tree_structure"] == {"leaf_value": 2.0}


def test_what_vespa_cannot_hold_is_refused(tmp_path):
    quoted = (None, None, None, None, ('"', "b", "c", "d", "e", "f", "g"))
    trees = make_trees(categorical=True)
    with pytest.raises(rw.InputError, match=r"the category '\"' of the feature 'kind'; Vespa takes texts"):
        export(make(trees, categories=quoted), tmp_path)
    stumps = Stumps(np.array([4]), np.ones(1, np.float32), np.ones(1), np.zeros(1, bool))
    with pytest.raises(rw.InputError, match=r"both a category and a number.*nearest target that can is onnx"):
        export(make(WeightedSum([trees, stumps], np.ones(2))), tmp_path)
    n = 950
    chain = [np.zeros(n, int), np.arange(n) * 1.0, np.zeros(n, bool), ~np.arange(n), np.append(np.arange(1, n), ~n)]
    deep = Tree.from_nodes(*chain, np.arange(n + 1.0))
    with pytest.raises(rw.InputError, match=r"more than 900 levels.*nearest target that can is onnx"):
        export(make(Trees(Forest.from_trees([deep], 5))), tmp_path)
    assert not list(tmp_path.iterdir())


def test_a_tree_of_many_levels_is_written_without_recursion(tmp_path):
    n = 900
    chain = [np.zeros(n, int), np.arange(n) * 1.0, np.zeros(n, bool), ~np.arange(n), np.append(np.arange(1, n), ~n)]
    path = export(make(Trees(Forest.from_trees([Tree.from_nodes(*chain, np.arange(n + 1.0))], 5))), tmp_path)
    assert path.read_text().count("leaf_value") == n + 1


@pytest.mark.parametrize("wrong", [round_down_to_float32, lambda t: np.nextafter(t, np.inf)])
def test_a_wrong_threshold_is_caught(wrong, tmp_path, monkeypatch):
    """The largest float32 up to the threshold is ``<`` for ``<=``; the double above it fails in large forests."""
    monkeypatch.setattr(vespa_trees, "raise_to_next_float32", wrong)
    model, X = make_model("trees with missing"), make_rows("trees with missing")[:20_000]
    assert np.abs(score(export(model, tmp_path), X, NAMES, narrow=True) - model.scorer(X)).max() > 0.01


def test_missing_on_the_wrong_side_is_caught(tmp_path, monkeypatch):
    monkeypatch.setattr(Tree, "missing_left", property(lambda tree: np.zeros(tree.n_splits, bool)))
    X = make_rows("trees with missing")[:20_000]
    path = export(make_model("trees with missing"), tmp_path)
    monkeypatch.undo()
    assert np.abs(score(path, X, NAMES) - make_model("trees with missing").scorer(X)).max() > 0.01
