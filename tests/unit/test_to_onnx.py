"""Export to ONNX: graphs that the checker accepts, and scores that are right to the last bit of single precision."""

import json
import sys

import numpy as np
import onnx
import pytest
from tests.exported import NAMES, make_kernel_sum, make_linear, make_model, make_network, make_rows, make_trees
from tests.reference.oracle_onnx import score

import rankwright as rw
from rankwright.models.export import onnx_trees
from rankwright.models.model import Model
from rankwright.scorers import Linear, Network, Stumps, Trees, WeightedSum
from rankwright.scorers.lightgbm_text import Forest
from rankwright.scorers.lightgbm_trees import Tree


def export(model, folder, **options):
    return rw.export(model, "onnx", folder / "m.onnx", **options)[0]


def make(scorer, n_features=5, **options):
    return Model("LambdaMART", {}, "ndcg@10", scorer, n_features, NAMES[:n_features], **options)


@pytest.mark.parametrize("kind", ["trees with missing", "stumps with missing", "linear", "network of relu"])
def test_scores_are_ours_rounded_once(kind, tmp_path):
    model, X = make_model(kind), make_rows(kind)[:20_000]
    scores = score(export(model, tmp_path), X, NAMES)
    np.testing.assert_array_max_ulp(scores, model.scorer(X).astype(np.float32), 1)


@pytest.mark.parametrize("kind", ["trees with categories", "network of gelu", "laplacian kernel sum", "sum of trees"])
def test_the_checker_accepts_the_graph(kind, tmp_path):
    model = onnx.load(export(make_model(kind), tmp_path))
    onnx.checker.check_model(model, full_check=True)
    assert {own.domain: own.version for own in model.opset_import} == {"": 13, "ai.onnx.ml": 3}
    notes = {own.key: json.loads(own.value) for own in model.metadata_props}
    assert notes["feature_names"] == list(NAMES)
    assert ("categories" in notes) == (kind == "trees with categories")


def test_names_of_features_are_mapped(tmp_path):
    path = export(make_model("linear"), tmp_path, names={"age": "days"})
    assert score(path, np.zeros((1, 5), np.float32), ["bm25", "clicks", "days", "ratio", "kind"]) == np.float32(-2.5)


def test_missing_is_0_where_a_model_takes_complete_features_only(tmp_path):
    X = np.array([[1, 2, 3, 4, 5], [1, 0, 3, 0, 5]], np.float32)
    blank = np.where(X == 0, np.float32(np.nan), X)
    for scorer in (make_linear(), make_network("tanh"), make_kernel_sum("rbf"), make_kernel_sum("laplacian")):
        path = export(make(scorer), tmp_path)
        assert np.array_equal(score(path, blank, NAMES), score(path, X, NAMES))


def test_features_far_from_0_are_scaled_in_double_precision(tmp_path):
    mean, rng = np.full(5, 1.7e9), np.random.default_rng(0)  # such as seconds since 1970
    X = (mean + rng.normal(size=(500, 5)) * 1e4).astype(np.float32)
    weights = [rng.normal(size=(5, 4)), rng.normal(size=(4, 1))]
    scorer = Network(mean, np.full(5, 1e-4), weights, [np.zeros(4), np.zeros(1)], "tanh")
    np.testing.assert_array_max_ulp(score(export(make(scorer), tmp_path), X, NAMES), scorer(X).astype(np.float32), 2)


def test_an_empty_model_is_a_constant(tmp_path):
    empty = Stumps(np.empty(0, int), np.empty(0, np.float32), np.empty(0))
    path = export(make(WeightedSum([empty], np.ones(1), 0.25)), tmp_path)
    assert score(path, np.full((2, 5), np.nan, np.float32), NAMES).tolist() == [0.25, 0.25]


def test_sums_of_several_loops_keep_their_names_apart(tmp_path):
    parts = [make_kernel_sum("laplacian"), make_kernel_sum("laplacian"), make_trees(), Linear(np.zeros(5))]
    scorer = WeightedSum(parts, np.array([1.0, -3.0, 0.5, 1.0]), 2.0)
    X = np.nan_to_num(make_rows("trees")[:1_000])
    np.testing.assert_allclose(score(export(make(scorer), tmp_path), X, NAMES), scorer(X), rtol=2e-6, atol=1e-6)


def test_a_batch_of_one_and_an_empty_batch(tmp_path):
    path = export(make_model("trees"), tmp_path)
    X = make_rows("trees")[:100]
    assert np.array_equal([score(path, X[i : i + 1], NAMES)[0] for i in range(len(X))], score(path, X, NAMES))
    assert len(score(export(make_model("rbf kernel sum"), tmp_path), X[:0], NAMES)) == 0


def split_below(tree, own=onnx_trees._replace_category_splits):
    splits = own(tree)
    return splits._replace(threshold=np.nextafter(splits.threshold, -np.inf))


def send_missing_right(tree, own=onnx_trees._replace_category_splits):
    splits = own(tree)
    return splits._replace(missing_left=np.zeros_like(splits.missing_left))


@pytest.mark.parametrize("wrong", [split_below, send_missing_right])
def test_a_wrong_exporter_is_caught(wrong, tmp_path, monkeypatch):
    monkeypatch.setattr(onnx_trees, "_replace_category_splits", wrong)
    model, X = make_model("trees with missing"), make_rows("trees with missing")[:20_000]
    assert np.abs(score(export(model, tmp_path), X, NAMES) - model.scorer(X)).max() > 0.01


def test_categories_beyond_a_word_and_none_at_all(tmp_path):
    numbers = np.array([0, 1, 5, 31, 32, 40, 63])
    words = np.zeros(2, np.int64)
    np.bitwise_or.at(words, numbers // 32, 1 << (numbers % 32))
    columns = Tree.from_nodes(
        np.zeros(2, int), np.array([0.0, 1.0]), np.zeros(2, bool), np.array([1, ~0]), np.array([~1, ~2]), np.arange(3.0)
    ).columns
    kinds = {
        "decision_type": np.array([1, 1]),
        "cat_boundaries": np.array([0, 2, 3]),
        "cat_threshold": np.array([*words, 0]),
    }
    tree = Tree({**columns, **kinds})
    model = make(Trees(Forest.from_trees([tree], 1)), 1)
    X = np.array([*range(-2, 70), np.nan, 5.5, 1e9], np.float32)[:, None]
    assert np.array_equal(score(export(model, tmp_path), X, NAMES[:1]), model.scorer(X))
    assert set(model.scorer(X)) == {1.0, 2.0}


def test_without_onnx_the_extra_is_named(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(ImportError, match=r"pip install 'rankwright\[onnx\]'"):
        export(make_model("linear"), tmp_path)
    assert not list(tmp_path.iterdir())
