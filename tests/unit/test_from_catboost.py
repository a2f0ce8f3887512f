"""Models of CatBoost score as CatBoost does: recorded models and scores, and the library where it is installed."""

import json
from pathlib import Path

import numpy as np
import pytest
from tests.golden.models import make_catboost

import rankwright as rw
from rankwright.models.imports import parse_file

FOLDER = Path(__file__).parents[1] / "golden" / "models"


def read_scored(name):
    content = json.loads((FOLDER / f"catboost_{name}.scores.json").read_text())
    return np.array(content["rows"], dtype=np.float32), np.array(content["scores"])


@pytest.mark.parametrize("name", make_catboost.CASES)
def test_recorded_scores(name):
    model = rw.import_model(FOLDER / f"catboost_{name}.json")
    rows, scores = read_scored(name)
    assert np.isnan(rows).any()
    np.testing.assert_allclose(model.predict(rows), scores, rtol=1e-13, atol=1e-15)
    assert model.ranker == "CatBoost"
    assert model.params["n_estimators"] == 6
    assert model.params["objective"] == make_catboost.CASES[name].get("loss_function", "YetiRank")
    assert model.features is None


def test_a_border_belongs_to_the_left_side():
    """Recorded rows lie on borders, so that ``<`` in place of ``<=`` is noticed."""
    content = json.loads((FOLDER / "catboost_symmetric.json").read_text())
    for tree in content["oblivious_trees"]:
        for split in tree["splits"]:
            split["border"] = float(np.nextafter(np.float32(split["border"]), np.float32(-np.inf)))
    rows, scores = read_scored("symmetric")
    moved = parse_file(json.dumps(content).replace("-Infinity", "-3.4028235e38").encode(), "m.json").predict(rows)
    assert not np.allclose(moved, scores)


def test_symmetric_trees_have_counts_for_explanations():
    model = rw.import_model(FOLDER / "catboost_symmetric.json")
    for tree in model.scorer.forest.trees:
        assert tree.columns["internal_count"][0] == tree.columns["leaf_count"].sum() == 300


@pytest.mark.parametrize("name", make_catboost.CASES)
def test_the_library_itself(name):
    pytest.importorskip("catboost")
    model = make_catboost.train(make_catboost.CASES[name])
    X = make_catboost.make_data()[0]
    expected = model.predict(X, prediction_type="RawFormulaVal")
    np.testing.assert_allclose(rw.import_model(model).predict(X), expected, rtol=1e-13, atol=1e-15)


def test_names_of_features():
    content = json.loads((FOLDER / "catboost_symmetric.json").read_text())
    for feature, name in zip(content["features_info"]["float_features"], "abcd", strict=True):
        feature["feature_id"] = name
    assert parse_file(json.dumps(content).encode(), "m.json").features == tuple("abcd")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda c: c["features_info"].update(categorical_features=[{"feature_id": "color"}]),
            "categorical features, such as 'color'",
        ),
        (lambda c: c["features_info"].update(text_features=[{"flat_feature_index": 3}]), "text features, such as 3"),
        (lambda c: c.update(scale_and_bias=[1, [0, 1]]), "several scores a document"),
        (lambda c: c["oblivious_trees"][0]["splits"][0].update(split_type="OnlineCtr"), "split of type 'OnlineCtr'"),
        (lambda c: c["oblivious_trees"][0].update(leaf_values=[0.0] * 16), "several scores a document"),
        (lambda c: c["oblivious_trees"][0].update(leaf_values=[0.0] * 3), "3 leaf_values; expected 8"),
        (lambda c: c["oblivious_trees"][0]["splits"][0].update(float_feature_index=9), "not one of 4"),
    ],
)
def test_what_cannot_be_represented_is_refused(change, message):
    content = json.loads((FOLDER / "catboost_symmetric.json").read_text())
    change(content)
    with pytest.raises(rw.InputError, match=f"m.json: .*{message}"):
        parse_file(json.dumps(content).encode(), "m.json")


def test_the_binary_form_is_refused():
    with pytest.raises(rw.InputError, match=r"CatBoost's binary form; .*format='json'"):
        parse_file(b"CBM1\x00\x00", "m.cbm")


@pytest.mark.parametrize("name", ["symmetric", "depthwise"])
def test_damaged_files_are_one_line(name):
    text = (FOLDER / f"catboost_{name}.json").read_bytes()
    rng = np.random.default_rng(0)
    for at in rng.integers(0, len(text), 400).tolist():
        byte = bytes([int(rng.integers(32, 127))])
        for variant in (text[:at], text[:at] + byte + text[at + 1 :], text[:at] + text[at + 7 :]):
            try:
                model = parse_file(variant, "m.json")
            except rw.InputError as error:
                problem = str(error)
            else:
                problem = ""
                model.scorer(np.zeros((2, model.n_features), np.float32))
            assert "\n" not in problem
    deep = b'{"features_info":{"float_features":[]},"trees":[' + b'{"split":{},"left":' * 100_000
    with pytest.raises(rw.InputError):
        parse_file(deep, "m.json")
