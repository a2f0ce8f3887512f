"""Export to Solr: its slack, missing values, scaling and networks, against what its own classes compute."""

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.exported import N_FEATURES, make_model
from tests.reference import oracle_solr

import rankwright as rw
from rankwright.models.export import solr_thresholds
from rankwright.models.export.exporting import build_files, find_target, make_request
from rankwright.models.export.parity_rows import choose_rows
from rankwright.models.export.solr_thresholds import (
    SLACK,
    ThresholdScaling,
    choose_scaling_of_thresholds,
    find_solr_thresholds,
)
from rankwright.models.model import Model
from rankwright.scorers import Linear, Network, Trees, WeightedSum
from rankwright.scorers.lightgbm_text import Forest
from rankwright.scorers.lightgbm_trees import Tree
from rankwright.scorers.score_parts import split_scorer

GOLDEN = json.loads((Path(__file__).parents[1] / "golden" / "solr.json").read_text())["cases"]
NAMES = ["1", "2"]


def split(threshold: float, *, missing_left: bool = True, feature: int = 0) -> Tree:
    """A tree that is 1 up to the threshold and 2 above it."""
    leaf = np.array([~0])
    side = np.array([missing_left])
    return Tree.from_nodes(np.array([feature]), np.array([threshold]), side, leaf, leaf - 1, np.array([1.0, 2.0]))


def make_tree_model(*trees: Tree) -> Model:
    return Model("LambdaMART", {}, "ndcg@10", Trees(Forest.from_trees(trees, 2)), 2)


def score(model: Model, X, folder: Path, **options):
    rw.export(model, "solr", folder / "m.json", **options)
    return oracle_solr.score(folder / "m.json", X, NAMES)


@pytest.mark.parametrize("case", GOLDEN, ids=lambda case: case["kind"])
def test_the_interpreter_equals_the_classes_of_solr(case, tmp_path):
    (tmp_path / "m.json").write_text(json.dumps(case["model"]))
    (tmp_path / "m.json.features.json").write_text(json.dumps(case["store"]))
    X = np.array(case["rows"], dtype=np.float32)
    expected = np.array(case["scores"], dtype=np.float32)
    assert np.array_equal(oracle_solr.score(tmp_path / "m.json", X, case["features"]), expected)


@given(st.floats(width=32, allow_nan=False, allow_infinity=False))
def test_a_threshold_is_found_wherever_there_is_one(threshold):
    """All float32 numbers near the threshold are tried, which the three guesses must not miss."""
    own = np.float32(threshold)
    (written,), (is_exact,) = find_solr_thresholds(np.array([own]))
    with np.errstate(over="ignore"):
        near, tries = own - SLACK, []
        for direction in (np.float32(-np.inf), np.float32(np.inf)):
            value = near
            for _ in range(20):
                tries.append(value)
                value = np.nextafter(value, direction)
        assert is_exact == any(value + SLACK == own for value in tries)
        assert not is_exact or written + SLACK == own


@pytest.mark.parametrize("thresholds", [[0.5, 20.0], [0.0, -3e-7, 1e-9], [2e-35, 7.0], [-1e-35, 2e-35], [np.inf, 1e-8]])
def test_every_float_is_on_the_side_of_the_model(thresholds, tmp_path):
    model = make_tree_model(*(split(t, missing_left=t >= 0) for t in thresholds))
    near = np.clip(np.array([*thresholds, 0.0, -0.0, 1e-45, 3e38], np.float64), -3e38, 3e38).astype(np.float32)
    near = np.concatenate([near, np.nextafter(near, np.float32(np.inf)), np.nextafter(near, np.float32(-np.inf))])
    X = np.stack([near, near], axis=1)
    assert np.array_equal(score(model, X, tmp_path), model.scorer(X))


def test_ordinary_thresholds_need_no_normalizer(tmp_path):
    rw.export(make_tree_model(split(4.25)), "solr", tmp_path / "m.json")
    written = json.loads((tmp_path / "m.json").read_text())
    assert written["features"] == [{"name": "1"}, {"name": "2"}]
    assert written["params"]["trees"][0]["root"]["threshold"] == "4.249999"


def test_the_zero_split_of_lightgbm_moves_to_0(tmp_path):
    """Values between 0 and 1e-35, which LightGBM takes for 0, are named in a note; the split below 0 stays exact."""
    zero = 1.0000000180025095e-35
    model = make_tree_model(split(zero), split(-zero, missing_left=False, feature=1))
    X = np.array([[0.0, 0.0], [2e-35, -1e-35], [-1.0, -1.1e-35], [-0.0, -1e-13], [1.0, 1.0]], np.float32)
    assert np.array_equal(score(model, X, tmp_path), model.scorer(X))
    features = json.loads((tmp_path / "m.json").read_text())["features"]
    assert ["norm" in feature for feature in features] == [False, True]
    target = find_target("solr")
    files = target.build(make_request(model, target, Path("m.json"), None, None))
    assert files.gaps == [(0, 0.0, 1.01e-35)]
    assert files.notes[0] == "values of 1 between 0 and 1e-35 are above 0 in Solr, and 0 in the model"


@given(st.lists(st.floats(width=32, allow_nan=False, allow_infinity=False), min_size=1, max_size=5))
def test_the_factor_is_the_least_that_is_exact(thresholds):
    own = np.array(thresholds, np.float64)
    found = choose_scaling_of_thresholds(own)
    able = [e for e in range(127) if ThresholdScaling(e).is_exact(own)]
    assert (found.exponent if found else None) == (able[0] if able else None)


def test_thresholds_that_solr_cannot_hold_are_refused(tmp_path):
    model = make_tree_model(split(1e-30), split(1e30))
    with pytest.raises(rw.InputError, match=r"thresholds 9.999999e-31 of feature '1': .*elasticsearch"):
        rw.export(model, "solr", tmp_path / "m.json")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("missing_left", [False, True])
def test_missing_values_take_their_side(missing_left, tmp_path):
    model = make_tree_model(split(4.25, missing_left=missing_left), split(-1.0, missing_left=False, feature=1))
    X = np.array([[np.nan, np.nan], [0.0, np.nan], [9.0, -2.0]], np.float32)
    assert np.array_equal(score(model, X, tmp_path), model.scorer(X))
    store = json.loads((tmp_path / "m.json.features.json").read_text())
    # where a missing value goes as 0 does, Solr's default of 0 is right, also before version 9.2
    assert [entry["params"].get("defaultValue") for entry in store] == [None if missing_left else "NaN"] * 2
    assert ("isNullSameAsZero" in (tmp_path / "m.json").read_text()) is not missing_left
    notes = build_files(model, "solr", tmp_path / "m.json")[1]
    assert any("takes a missing value as 0" in note for note in notes) is missing_left


@pytest.mark.parametrize("depth", [100, 101, 501])
def test_deep_trees_need_a_larger_stack(depth, tmp_path):
    leaves = np.append(~np.arange(depth - 1), ~(depth - 1))
    right = np.append(np.arange(1, depth), ~depth)
    columns = (
        np.zeros(depth, int),
        np.arange(depth) + 0.5,
        np.ones(depth, bool),
        leaves,
        right,
        np.arange(depth + 1.0),
    )
    model = make_tree_model(Tree.from_nodes(*columns))
    if depth > 500:
        with pytest.raises(rw.InputError, match="a tree of 501 levels: it reads at most 500; train with max_depth"):
            rw.export(model, "solr", tmp_path / "m.json")
        return
    notes = build_files(model, "solr", tmp_path / "m.json")[1]
    assert any("SOLR_JAVA_STACK_SIZE" in note for note in notes) is (depth > 100)
    X = np.array([[depth / 2, 0.0], [1e6, 0.0]], np.float32)
    assert np.array_equal(score(model, X, tmp_path), model.scorer(X))


def test_a_shift_and_a_model_without_trees(tmp_path):
    model = make_tree_model(split(0.0, missing_left=True))
    X = np.array([[-1.0, 0.0], [1.0, 0.0]], np.float32)
    np.testing.assert_allclose(score(model, X, tmp_path, shift=True), [0.0, 1.0], atol=1e-6)
    constant = make_tree_model(*Forest.constant(2, 0.25).trees)
    assert score(constant, X, tmp_path).tolist() == [0.25, 0.25]


def test_the_intercept_of_a_linear_model_is_left_out_with_a_note():
    model = Model("Regression", {}, "ndcg@10", Linear(np.array([0.5, -2.0]), 3.0), 2)
    target = find_target("solr")
    files = target.build(make_request(model, target, Path("m.json"), None, None))
    assert files.offset == -3.0
    assert files.notes[0] == "the intercept 3 is left out, since Solr has none; rankings are the same"
    assert json.loads(files.model)["params"] == {"weights": {"1": 0.5, "2": -2.0}}


@pytest.mark.parametrize("activation", ["relu", "tanh", "sigmoid"])
def test_networks_of_one_shape_are_one_network(activation, tmp_path):
    rng = np.random.default_rng(0)

    def make(width: int, mean: float) -> Network:
        weights = [rng.normal(size=(2, width)), rng.normal(size=(width, 3)), rng.normal(size=(3, 1))]
        biases = [rng.normal(size=len(weight.T)) for weight in weights]
        return Network(np.array([mean, 0.0]), np.array([0.01, 0.0]), weights, biases, activation)

    scorer = WeightedSum([make(4, 1e6), make(5, 1e6 + 3)], np.array([0.5, -2.0]), 0.75)
    X = np.stack([1e6 + rng.normal(size=500) * 100, rng.normal(size=500)], axis=1).astype(np.float32)
    found = score(Model("NeuralRanker", {}, "ndcg@10", scorer, 2), X, tmp_path)
    # scaling is left to normalizers: folded into weights, a mean of 1e6 would cost four digits
    np.testing.assert_allclose(found, scorer(X), atol=2e-5)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"names": {"1": "a,b"}}, "'a,b' of a feature"),
        ({"names": {"1": "a=b"}}, "'a=b' of a feature"),
        ({"model_name": "my model"}, "the name 'my model' of the model"),
    ],
)
def test_names_that_solr_refuses(options, message, tmp_path):
    with pytest.raises(rw.InputError, match=message):
        rw.export(make_tree_model(split(1.0)), "solr", tmp_path / "m.json", **options)
    assert not list(tmp_path.iterdir())


def test_numbers_too_large_for_float32_are_refused(tmp_path):
    with pytest.raises(rw.InputError, match="a weight of 1e\\+39; Solr computes in float32"):
        rw.export(Model("Regression", {}, "map", Linear(np.array([1e39, 0.0])), 2), "solr", tmp_path / "m.json")


def leave_out_slack(monkeypatch):
    own = solr_thresholds.ThresholdScaling.scale
    monkeypatch.setattr(solr_thresholds.ThresholdScaling, "write", lambda self, thresholds: own(self, thresholds))


def compare_below(monkeypatch):
    own = solr_thresholds.round_down_to_float32
    monkeypatch.setattr(
        solr_thresholds, "round_down_to_float32", lambda t: np.nextafter(own(t), np.float32(-np.inf), dtype=np.float32)
    )


def swap_missing(monkeypatch):
    own = Tree.missing_left
    monkeypatch.setattr(Tree, "missing_left", property(lambda tree: ~own.fget(tree)))


@pytest.mark.parametrize("break_exporter", [leave_out_slack, compare_below, swap_missing])
def test_a_wrong_exporter_is_caught(break_exporter, monkeypatch, tmp_path):
    model = make_model("trees with missing")
    X = choose_rows(split_scorer(model.scorer, N_FEATURES), 1_000)
    X[(X > 0.0) & (X < 1.01e-35)] = 0.0  # which a note names
    expected = model.scorer(X)

    def count_differences():
        rw.export(model, "solr", tmp_path / "m.json")
        found = oracle_solr.score(tmp_path / "m.json", X, model.features)
        return int((np.abs(found - expected) > 1e-5).sum())

    assert count_differences() == 0
    break_exporter(monkeypatch)
    assert count_differences() > 0
