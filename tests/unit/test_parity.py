"""Parity files: rows that hurt, scores with sound tolerances, and files that are written together or not at all."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from tests.exported import CATEGORIES, MODELS, N_FEATURES, make_data, make_model, make_rows

import rankwright as rw
from rankwright.basics.file_groups import write_files_atomic
from rankwright.models.export.error_bounds import bound_errors
from rankwright.models.export.parity import read_parity
from rankwright.models.export.parity_rows import choose_rows, leave_gaps
from rankwright.models.model import Model
from rankwright.models.model_json import compute_digest
from rankwright.scorers import Linear, Trees
from rankwright.scorers.lightgbm_text import Forest
from rankwright.scorers.lightgbm_trees import Tree
from rankwright.scorers.score_parts import split_scorer


def export(kind, tmp_path, **options):
    rw.export(make_model(kind), "lightgbm", tmp_path / "m.txt", **options)
    return read_parity(tmp_path / "m.txt.parity.json")


def test_a_parity_file_has_the_scores_of_the_model(tmp_path):
    parity, model = export("trees with missing", tmp_path), make_model("trees with missing")
    assert (parity.target, parity.model_name, parity.offset) == ("lightgbm", "m", 0.0)
    assert (parity.names, parity.digest) == (model.features, compute_digest(model))
    assert parity.X.shape == (1_000, N_FEATURES)
    assert np.array_equal(model.scorer(parity.X), parity.scores)
    assert parity.find_differences(parity.scores) == []
    wrong = parity.scores.copy()
    wrong[7], wrong[9] = wrong[7] + 1e-9, np.nan
    assert parity.find_differences(wrong) == [7, 9]
    with pytest.raises(rw.InputError, match="3 scores; the parity file has 1000 rows"):
        parity.find_differences(parity.scores[:3])


def test_a_shift_is_part_of_the_expected_scores(tmp_path):
    parity = export("trees", tmp_path, shift=True)
    assert parity.scores.min() >= 0.0
    assert np.allclose(parity.scores - parity.offset, make_model("trees").scorer(parity.X), atol=1e-12)


def test_values_are_written_to_the_last_bit(tmp_path):
    parity = export("trees", tmp_path)
    content = json.loads((tmp_path / "m.txt.parity.json").read_text())
    values = np.array([[np.nan if value is None else value for value in row] for row in content["rows"]])
    assert np.array_equal(values, parity.X.astype(np.float64), equal_nan=True)
    assert np.signbit(values[values == 0.0]).any()
    assert not np.signbit(values[values == 0.0]).all()


def test_rows_of_the_data_are_taken(tmp_path):
    X, _ = make_data()
    data = rw.Queries.from_arrays(X, None, group=[len(X)], features=make_model("trees").features)
    parity = export("trees", tmp_path, data=data)
    known = {row.tobytes() for row in X}
    assert sum(row.tobytes() in known for row in parity.X) >= 250


def test_every_split_is_reached_on_both_sides_at_its_threshold():
    for kind in ("trees", "deep trees", "stumps with missing"):
        model = make_model(kind)
        parts = split_scorer(model.scorer, N_FEATURES)
        trees = parts.list_trees()
        X = choose_rows(parts, 4_000)
        leaves = Trees(Forest.from_trees(trees, N_FEATURES)).leaves(X)
        for tree, own in zip(trees, leaves, strict=True):
            assert set(own.tolist()) == set(range(len(tree.values)))
            for feature, threshold in zip(tree.columns["split_feature"], tree.columns["threshold"], strict=True):
                below = X[X[:, feature] <= threshold, feature].max()
                assert np.nextafter(below, np.float32(np.inf)) in X[:, feature]


def test_rows_hold_every_kind_of_value():
    X = choose_rows(split_scorer(make_model("trees").scorer, N_FEATURES), 1_000)[:, 0]
    tiny = np.abs(X[X != 0.0])
    assert np.isnan(X).any()
    assert (tiny < 1e-38).any()
    assert ((tiny > 1e-38) & (tiny < 1e-6)).any()
    assert (np.finfo(np.float32).max == X).any()
    assert not np.isinf(X).any()


def test_categories_are_numbers_of_their_values():
    model = make_model("trees with categories")
    parts = split_scorer(model.scorer, N_FEATURES)
    values = choose_rows(parts, 500, categories=CATEGORIES, has_missing=False)[:, 4]
    assert set(values.tolist()) == set(range(7))


def test_the_same_seed_chooses_the_same_rows():
    parts = split_scorer(make_model("deep trees").scorer, N_FEATURES)
    first, second, third = (choose_rows(parts, 300, seed=seed) for seed in (0, 0, 1))
    assert np.array_equal(first, second, equal_nan=True)
    assert not np.array_equal(first, third, equal_nan=True)


def test_values_in_gaps_are_left_out():
    X = np.array([[0.0], [1e-40], [2e-35], [np.nan]], np.float32)
    assert leave_gaps(X, [(0, 0.0, 1e-35)])[:3].ravel().tolist() == X[[0, 0, 2]].ravel().tolist()


@pytest.mark.parametrize("kind", MODELS)
def test_tolerances_are_far_below_what_a_wrong_leaf_changes(kind):
    """Scores that are rounded to float32 are within the tolerance; it is a small part of the range of scores."""
    model, X = make_model(kind), make_rows(kind)[:1_000]
    scores = model.scorer(X)
    parts = split_scorer(model.scorer, N_FEATURES)
    tolerances = bound_errors(parts, X, "float32")
    assert (np.abs(scores.astype(np.float32) - scores) <= tolerances).all()
    steps = [np.diff(np.sort(tree.values)) for tree in parts.list_trees() if tree.n_splits]
    if steps:
        smallest = np.quantile(np.concatenate(steps), 0.05)
        assert np.median(tolerances) < smallest / 10


@pytest.mark.parametrize("kind", [kind for kind in MODELS if "network" in kind or "kernel" in kind or "linear" in kind])
def test_tolerances_bound_the_errors_of_float32(kind):
    """The scores that the model has when weights, means and features are all computed in float32."""
    model, X = make_model(kind), make_rows(kind)[:5_000]
    parts = split_scorer(model.scorer, N_FEATURES)
    total = np.full(len(X), np.float32(parts.intercept))
    if parts.coef is not None:
        for j, weight in enumerate(parts.coef.astype(np.float32)):
            total += X[:, j] * weight
    for tree in parts.list_trees():
        total += Trees(Forest.from_trees([tree], N_FEATURES))(X).astype(np.float32)
    for weight, network in parts.networks:
        total += np.float32(weight) * score_network(network, X)
    for weight, kernel_sum in parts.kernel_sums:
        total += np.float32(weight) * score_kernel_sum(kernel_sum, X)
    assert total.dtype == np.float32
    assert (np.abs(total - model.scorer(X)) <= bound_errors(parts, X, "float32")).all()


def score_network(network, X):
    x = (X - network.mean.astype(np.float32)) * network.factor.astype(np.float32)
    for layer, (weight, bias) in enumerate(zip(network.weights, network.biases, strict=True)):
        if layer:
            x = activate(network.activation, x)
        x = x @ weight + bias
    return x[:, 0]


def activate(name, x):
    from scipy.special import erf

    one = np.float32(1)
    with np.errstate(over="ignore"):
        sigmoid = one / (one + np.exp(-x))
    gelu = np.float32(0.5) * x * (one + erf(x * np.float32(np.sqrt(0.5))))
    return {"relu": np.maximum(x, 0), "tanh": np.tanh(x), "sigmoid": sigmoid, "silu": x * sigmoid, "gelu": gelu}[name]


def score_kernel_sum(scorer, X):
    x = (X - scorer.mean.astype(np.float32)) * scorer.factor.astype(np.float32)
    z, (name, gamma, coef0, degree) = scorer.landmarks.astype(np.float32), scorer.kernel
    gamma, coef0 = np.float32(gamma), np.float32(coef0)
    if name == "rbf":  # expanded, with its cancellation
        values = np.exp(-gamma * ((x * x).sum(1, keepdims=True) - 2 * x @ z.T + (z * z).sum(1)))
    elif name == "laplacian":
        values = np.exp(-gamma * np.abs(x[:, None] - z).sum(2))
    elif name == "linear":
        values = x @ z.T
    else:
        base = gamma * (x @ z.T) + coef0
        values = np.tanh(base) if name == "sigmoid" else base**degree
    return values @ scorer.dual.astype(np.float32) + np.float32(scorer.intercept)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "not JSON"),
        ("[1]", "not a parity file"),
        ('{"format": "rankwright parity", "version": 2}', "version 2; this release reads version 1"),
        ('{"format": "rankwright parity", "version": 1}', "lacks 'features'"),
    ],
)
def test_a_damaged_parity_file_is_refused(text, message, tmp_path):
    path = tmp_path / "m.parity.json"
    path.write_text(text)
    with pytest.raises(rw.InputError, match=message):
        read_parity(path)


def test_a_digest_is_that_of_the_scores(tmp_path):
    model = make_model("trees with missing")
    rw.save(model, tmp_path / "m.json")
    assert compute_digest(rw.load(tmp_path / "m.json")) == compute_digest(model)
    digests = {compute_digest(make_model(kind)) for kind in MODELS if kind != "imported LightGBM"}
    assert len(digests) == len(MODELS) - 1


def test_files_are_written_together_or_not_at_all(tmp_path, monkeypatch):
    first, second, third = (tmp_path / name for name in ("a", "b", "c"))
    first.write_text("old")
    replace = Path.replace

    def fail_at_third(self, target):
        if Path(target) == third:
            raise OSError(28, "No space left on device")
        return replace(self, target)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "replace", fail_at_third)
        with pytest.raises(OSError, match="No space left on device") as caught:
            write_files_atomic({first: b"new", second: b"2", third: b"3"})
    assert caught.value.filename == str(third)
    assert [path.name for path in tmp_path.iterdir()] == ["a"]
    assert first.read_text() == "old"
    write_files_atomic({first: b"new", second: b"2", third: b"3"})
    assert sorted((path.name, path.read_text()) for path in tmp_path.iterdir()) == [
        ("a", "new"),
        ("b", "2"),
        ("c", "3"),
    ]


def test_an_export_leaves_nothing_where_a_file_beside_it_cannot_be_written(tmp_path):
    (tmp_path / "m.txt.parity.json").mkdir()
    with pytest.raises(IsADirectoryError):
        rw.export(make_model("trees"), "lightgbm", tmp_path / "m.txt")
    assert [path.name for path in tmp_path.iterdir()] == ["m.txt.parity.json"]


def test_rows_whose_terms_float32_cannot_hold_are_left_out(tmp_path):
    scorer = Linear(np.array([1e37, -1e37, 1.0]))
    model = Model("Regression", {}, "ndcg@10", scorer, 3, ("a", "b", "c"))
    rw.export(model, "onnx", tmp_path / "m.onnx")
    parity = read_parity(tmp_path / "m.onnx.parity.json")
    assert 0 < len(parity.X) < 1_000
    assert np.abs(parity.X[:, :2]).max() < 34.0


def test_names_of_two_features_must_differ(tmp_path):
    with pytest.raises(rw.InputError, match="'clicks' is the name of the features bm25 and clicks in the"):
        rw.export(make_model("trees"), "lightgbm", tmp_path / "m.txt", names={"bm25": "clicks"})
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"to": "elasticsaerch"}, "target 'elasticsaerch'; did you mean elasticsearch?"),
        ({"names": ["bm25"]}, r"names=\['bm25'\]; expected texts by feature, such as \{'bm25': 'bm25'\}"),
        ({"names": {"bm25": 3}}, "expected texts by feature"),
        ({"names": {"click": "x"}}, "names: the model has no feature 'click'; did you mean clicks?"),
        ({"model_name": ""}, "the name '' of the model; expected a text"),
        ({"model_name": 3}, "the name 3 of the model; expected a text"),
        ({"data": [[1.0]]}, "data: found an object of list; expected Queries"),
    ],
)
def test_wrong_arguments_are_named(tmp_path, options, message):
    with pytest.raises(rw.InputError, match=message):
        rw.export(make_model("trees"), **{"to": "c", "path": tmp_path / "m.c", **options})
    assert not list(tmp_path.iterdir())


def test_a_tree_is_not_changed_by_the_bound():
    tree = make_model("trees").scorer.forest.trees[0]
    before = Tree(dict(tree.columns)).values.copy()
    bound_errors(split_scorer(make_model("trees").scorer, N_FEATURES), make_rows("trees")[:5], "float64")
    assert np.array_equal(tree.values, before)
