"""Models for Elastic's native learning to rank: their form, the constant that its versions add, and eland's form."""

import json

import lightgbm
import numpy as np
import pytest
from tests.exported import make_model, make_rows
from tests.golden.ltr_engines import list_cases
from tests.reference import oracle_elastic
from tests.unit.test_to_elasticsearch import build, make_response, make_tree, make_trees, wrap

import rankwright as rw
from rankwright.models.export.ltr_plugin import PLACEHOLDER
from rankwright.scorers import Linear, WeightedSum

TARGET = "elastic"


def test_a_tree_is_the_body_of_the_request_that_creates_it():
    files = build(make_trees(make_tree(4.25, values=(0.0, 0.75)), n_features=1), TARGET)
    split = {"node_index": 0, "decision_type": "lte", "threshold": 4.25, "split_feature": 0, "default_left": True}
    nodes = [split | {"left_child": 1, "right_child": 2}]
    nodes += [{"node_index": 1, "leaf_value": 0.0}, {"node_index": 2, "leaf_value": 0.75}]
    kind = {"feature_names": ["f0"], "target_type": "regression"}
    ensemble = {**kind, "aggregate_output": {"weighted_sum": {}}}
    ensemble["trained_models"] = [{"tree": {**kind, "tree_structure": nodes}}]
    extractors = [{"query_extractor": {"feature_name": "f0", "query": {PLACEHOLDER: {}}}}]
    assert json.loads(files.model) == {
        "inference_config": {"learning_to_rank": {"feature_extractors": extractors}},
        "definition": {"trained_model": {"ensemble": ensemble}},
    }
    assert json.loads(files.beside[".extractors.json"]) == extractors
    assert files.offset == 0.0


def test_all_versions_return_the_same_scores(tmp_path):
    model, X = make_model("trees with missing"), make_rows("trees with missing")[:5_000]
    files = build(model, TARGET)
    (tmp_path / "m.json").write_bytes(files.model)
    scores = oracle_elastic.score(tmp_path / "m.json", X, model.features, bounded=True)
    assert np.array_equal(scores, oracle_elastic.score(tmp_path / "m.json", X, model.features, bounded=False))
    assert scores.min() >= 0.0
    assert files.offset > 1.0
    assert any(f"{files.offset:.6g} is added" in note for note in files.notes)
    np.testing.assert_allclose(scores, model.scorer(X) + files.offset, rtol=1e-6)


def test_a_shift_adds_nothing_more(tmp_path):
    rw.export(make_model("trees"), TARGET, tmp_path / "m.json", shift=True)
    scores = oracle_elastic.score(tmp_path / "m.json", make_rows("trees")[:1_000], make_model("trees").features)
    parity = json.loads((tmp_path / "m.json.parity.json").read_text())
    assert scores.min() >= 0.0
    assert parity["offset"] == pytest.approx(build(make_model("trees"), TARGET).offset, rel=1e-4)


def test_the_parity_file_allows_for_the_constant(tmp_path):
    rw.export(make_model("trees"), TARGET, tmp_path / "m.json")
    parity = json.loads((tmp_path / "m.json.parity.json").read_text())
    X = np.array([[np.nan if value is None else value for value in row] for row in parity["rows"]], np.float32)
    scores = oracle_elastic.score(tmp_path / "m.json", X, parity["features"])
    assert (np.abs(scores - parity["scores"]) <= parity["tolerances"]).all()


def test_thresholds_at_the_ends_of_float32_are_exact(tmp_path):
    largest = np.finfo(np.float32).max
    values = np.array([largest, 1e-45, 0.0, -0.0, -1e-45, -largest, np.nan]).astype(np.float32)
    for threshold in (np.inf, float(largest), 1e-35, 0.0, -0.0, -1e-45, -float(largest)):
        model = make_trees(make_tree(threshold, False, (0.0, 1.0)), n_features=1)
        (tmp_path / "m.json").write_bytes(build(model, TARGET).model)
        scores = oracle_elastic.score(tmp_path / "m.json", values[:, None], ("f0",))
        assert np.array_equal(scores, model.scorer(values[:, None])), threshold


@pytest.mark.parametrize("name", ["Movies", "-movies", "movies.", "my movies", "m" * 65, "größe"])
def test_a_name_that_elasticsearch_refuses_is_refused(name, tmp_path):
    with pytest.raises(rw.InputError, match=r"lower-case letters.*model_name"):
        rw.export(make_model("trees"), TARGET, tmp_path / "m.json", model_name=name)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", ["m", "movies-2.1_b", "m" * 64])
def test_other_names_are_taken(name):
    request = build(make_model("trees"), TARGET, model_name=name).scoring_request
    assert request["documents"]["body"]["rescore"]["learning_to_rank"]["model_id"] == name
    assert request["rows"]["input"]["field_names"] == list(make_model("trees").features)


@pytest.mark.parametrize("constant", [-0.5, 0.0, 0.75])
def test_a_constant_is_not_negative(constant, tmp_path):
    model = wrap(WeightedSum([], np.empty(0), constant))
    files = build(model, TARGET)
    (tmp_path / "m.json").write_bytes(files.model)
    X = np.zeros((1, 2), np.float32)
    for bounded in (False, True):
        assert oracle_elastic.score(tmp_path / "m.json", X, model.features, bounded) == max(constant, 0.0)
    assert files.offset == max(-constant, 0.0)


def test_scores_beyond_float32_are_refused():
    with pytest.raises(rw.InputError, match="float32"):
        build(make_trees(make_tree(1.0, values=(0.0, 1e39))), TARGET)


def test_linear_models_are_refused(tmp_path):
    with pytest.raises(rw.InputError, match="it has trees only; the nearest target that can is"):
        rw.export(wrap(Linear(np.ones(2))), TARGET, tmp_path / "m.json")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("case", list_cases(TARGET), ids=str)
def test_scores_are_those_of_the_engines_classes(case, tmp_path):
    case.check_files(TARGET)
    (tmp_path / "m.json").write_text(case.files[TARGET])
    assert np.array_equal(oracle_elastic.score(tmp_path / "m.json", case.X, case.names), case.scores[TARGET])


@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_trees_are_those_that_eland_writes(missing):
    eland = pytest.importorskip("eland.ml.transformers.lightgbm", exc_type=ImportError)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(500, 4))
    y = X[:, 0] + X[:, 1] ** 2
    X[rng.random(X.shape) < missing] = np.nan
    fitted = lightgbm.LGBMRegressor(n_estimators=5, num_leaves=8, verbose=-1, n_jobs=1).fit(X, y)
    names = [f"Column_{i}" for i in range(4)]
    theirs = eland.LGBMRegressorTransformer(fitted, names).transform().serialize_model()["trained_model"]["ensemble"]
    files = build(rw.import_model(fitted.booster_), TARGET)
    ours = json.loads(files.model)["definition"]["trained_model"]["ensemble"]
    assert theirs.keys() == ours.keys()

    def walk(nodes, at=0):
        node = nodes[at]
        if "leaf_value" in node:
            return node["leaf_value"]
        # eland sends missing values left where training saw none; LightGBM takes them as 0 there
        left = node["default_left"] if missing else node["threshold"] >= 0.0
        below = [walk(nodes, node[f"{side}_child"]) for side in ("left", "right")]
        return [node["decision_type"], node["threshold"], node["split_feature"], left, *below]

    for own, other in zip(ours["trained_models"], theirs["trained_models"], strict=False):
        assert walk(own["tree"]["tree_structure"]) == walk(other["tree"]["tree_structure"])


def test_check_finds_the_constant(tmp_path):
    model, X = make_model("trees with missing"), make_rows("trees with missing")[:300]
    rw.export(model, TARGET, tmp_path / "m.json")
    scores = oracle_elastic.score(tmp_path / "m.json", X, model.features)
    response = make_response(X, model.features, scores, is_named=True)
    assert rw.check_scores(model, response).is_shifted
    assert rw.check_scores(model, response, parity=tmp_path / "m.json.parity.json").is_equal
