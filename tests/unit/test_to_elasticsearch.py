"""Models for the learning to rank plugin of Elasticsearch: their form, what is refused, and scores of its own classes."""

import json
from pathlib import Path

import numpy as np
import pytest
from tests.exported import NAMES, make_model, make_rows
from tests.golden.ltr_engines import list_cases
from tests.reference import ltr_plugin

import rankwright as rw
from rankwright.models.export import ltr_plugin as exporter
from rankwright.models.export.exporting import build_files, find_target, make_request
from rankwright.models.model import Model
from rankwright.scorers import Linear, Stumps, Trees, WeightedSum
from rankwright.scorers.lightgbm_text import Forest
from rankwright.scorers.lightgbm_trees import Tree

TARGET = "elasticsearch"


def make_tree(threshold, missing_left=True, values=(-0.25, 0.5)):
    one = np.array([0])
    return Tree.from_nodes(one, np.array([threshold]), np.array([missing_left]), ~one, ~one - 1, np.array(values))


def wrap(scorer, names=("bm25", "clicks")):
    return Model("LambdaMART", {}, "ndcg@10", scorer, len(names), tuple(names))


def make_trees(*trees, n_features=2):
    return wrap(Trees(Forest.from_trees(trees, n_features)), [f"f{i}" for i in range(n_features)])


def build(model, target=TARGET, path="movies.json", **options):
    request = make_request(model, find_target(target), Path(path), options.get("names"), options.get("model_name"))
    return find_target(target).build(request)


def test_a_tree_is_the_body_of_the_request_that_creates_it():
    files = build(wrap(Trees(Forest.from_trees([make_tree(4.25)], 2))))
    tree = {"nodeid": 0, "depth": 0, "split": "bm25", "split_condition": 4.2500005, "yes": 1, "no": 2, "missing": 1}
    tree["children"] = [{"nodeid": 1, "leaf": -0.25}, {"nodeid": 2, "leaf": 0.5}]
    model = {"type": "model/xgboost+json", "definition": {"splits": [tree]}}
    assert json.loads(files.model) == {"model": {"name": "movies", "model": model}}
    assert files.offset == 0.0


def test_a_linear_model_has_no_intercept():
    files = build(wrap(Linear(np.array([0.5, -0.1]), 2.5)))
    model = {"type": "model/linear", "definition": {"bm25": 0.5, "clicks": -0.1}}
    assert json.loads(files.model)["model"]["model"] == model
    assert files.offset == -2.5
    assert any("intercept 2.5 is left out" in note for note in files.notes)
    assert any("lacks are 0" in note for note in files.notes)


def test_a_constant_is_a_tree_of_one_leaf():
    for scorer in (Trees(Forest.constant(2, 0.625)), WeightedSum([], np.empty(0), 0.625)):
        files = build(wrap(scorer))
        definition = json.loads(files.model)["model"]["model"]["definition"]
        assert definition == {"splits": [{"nodeid": 0, "leaf": 0.625}]}


def test_stumps_of_a_feature_are_one_tree():
    stumps = Stumps(np.array([0, 0, 1]), np.array([1.0, 2.0, 3.0], np.float32), np.ones(3))
    definition = json.loads(build(wrap(stumps)).model)["model"]["model"]["definition"]
    assert len(definition["splits"]) == 2


def test_the_feature_set_has_a_place_for_each_query():
    files = build(wrap(Linear(np.ones(2))))
    features = json.loads(files.beside[".featureset.json"])["featureset"]["features"]
    assert [feature["name"] for feature in features] == ["bm25", "clicks"]
    for feature in features:  # the keys that the plugin knows
        assert feature.keys() == {"name", "params", "template_language", "template"}
        assert list(feature["template"]) == [exporter.PLACEHOLDER]


def test_the_request_logs_features_and_scores():
    body = build(wrap(Linear(np.ones(2))), model_name="best").scoring_request["documents"]["body"]
    assert body["query"]["bool"]["must"][0]["sltr"]["model"] == "best"
    assert body["ext"]["ltr_log"]["log_specs"]["named_query"] == body["query"]["bool"]["must"][0]["sltr"]["_name"]


def test_the_features_of_rows_are_parameters_of_the_search():
    features = build(wrap(Linear(np.ones(2)))).scoring_request["rows"]["featureset"]["features"]
    assert features[1] == {
        "name": "clicks",
        "params": ["row_value_1", "row_has_1"],
        "template_language": "derived_expression",
        "template": "row_value_1/row_has_1",
    }
    assert [feature["name"] for feature in features] == ["bm25", "clicks"]


def test_files_are_written_together(tmp_path):
    written = rw.export(make_model("trees"), TARGET, tmp_path / "movies.json", names={"bm25": "title score"})
    assert [path.name for path in written] == ["movies.json", "movies.json.featureset.json", "movies.json.parity.json"]
    names = ["title score", *NAMES[1:]]
    parity = tmp_path / "movies.json.parity.json"
    assert json.loads(parity.read_text())["features"] == names
    scores = ltr_plugin.score(tmp_path / "movies.json", read_given_values(parity), names)
    assert rw.check_parity(make_model("trees"), parity, scores).is_equal
    assert not rw.check_parity(make_model("trees"), parity, np.append(scores[1:], 0.0)).is_equal


def read_given_values(path):
    """The features of a parity file's rows, as quotients of the parameters that docs/engines/elasticsearch.md sends."""
    rows = json.loads(path.read_text())["rows"]
    values = np.array([[value or 0.0 for value in row] for row in rows])
    with np.errstate(invalid="ignore"):
        return (values / [[int(value is not None) for value in row] for row in rows]).astype(np.float32)


@pytest.mark.parametrize(
    ("model", "options", "message"),
    [
        (lambda: make_model("network of relu"), {}, "networks: .* the nearest target that can is"),
        (lambda: make_model("rbf kernel sum"), {}, "kernel sum"),
        (lambda: make_model("trees with categories"), {}, "one number; the nearest target that can is"),
        (lambda: make_model("sum of linear and trees"), {}, "either a linear function or trees"),
        (lambda: wrap(Linear(np.ones(2))), {"names": {"bm25": ""}}, "feature 1 has the name ''.*rename it with names="),
        (lambda: wrap(Linear(np.ones(2))), {"names": {"clicks": "\ud800"}}, "feature 2 has the name"),
        (lambda: wrap(Linear(np.ones(2))), {"model_name": "\ud800"}, "the name .* of the model"),
        (lambda: wrap(Linear(np.ones(2))), {"model_name": "x" * 501}, "1 to 500 bytes.*model_name"),
        (
            lambda: wrap(Linear(np.ones(10_001)), [str(i) for i in range(10_001)]),
            {},
            "10001 features; .* at most 10000",
        ),
        (lambda: wrap(Linear(np.array([1e39, 0.0]))), {}, "weight of 1e\\+39"),
        (lambda: make_trees(make_tree(1.0, values=(-3e38, 0.0)), make_tree(1.0, values=(-3e38, 0.0))), {}, "float32"),
        (lambda: make_trees(make_chain(491)), {}, "tree 1 is 491 splits deep; .*max_depth"),
        (lambda: wrap(Linear(np.ones(2))), {"shift": True}, "no least value"),
    ],
)
def test_what_cannot_be_exact_is_refused_and_nothing_is_written(model, options, message, tmp_path):
    own = model()
    with pytest.raises(rw.InputError, match=message):
        rw.export(own, TARGET, tmp_path / "m.json", **options)
    assert not list(tmp_path.iterdir())


def make_chain(n):
    """A tree whose every right child is a split, n of them."""
    node = np.arange(n)
    right = np.append(node[1:], ~n)
    return Tree.from_nodes(node % 2, np.linspace(-1, 1, n), node % 3 == 0, ~node, right, np.linspace(-2, 2, n + 1))


def test_a_deep_tree_is_exact(tmp_path):
    model = make_trees(make_chain(490))
    rw.export(model, TARGET, tmp_path / "m.json")
    X = np.random.default_rng(0).uniform(-1.1, 1.1, (500, 2)).astype(np.float32)
    np.testing.assert_allclose(ltr_plugin.score(tmp_path / "m.json", X, ("f0", "f1")), model.scorer(X), rtol=1e-6)


def test_thresholds_at_the_ends_of_float32_are_exact(tmp_path):
    largest = np.finfo(np.float32).max
    values = np.array([largest, np.nextafter(largest, np.float32(0)), 1e-45, 0.0, -0.0, -1e-45, -largest, np.nan])
    X = np.repeat(values.astype(np.float32)[:, None], 2, axis=1)
    for threshold in (np.inf, float(largest), 1e-35, 0.0, -0.0, -1e-45, 1e300, -float(largest)):
        for missing_left in (False, True):
            model = make_trees(make_tree(threshold, missing_left))
            rw.export(model, TARGET, tmp_path / "m.json")
            assert np.array_equal(ltr_plugin.score(tmp_path / "m.json", X, ("f0", "f1")), model.scorer(X)), threshold


@pytest.mark.parametrize("seed", range(5))
def test_shifted_scores_are_not_negative_in_float32(seed, tmp_path):
    rng = np.random.default_rng(seed)
    trees = [make_tree(t, values=rng.normal(size=2) * 10 ** rng.uniform(-3, 3)) for t in rng.normal(size=300)]
    model = make_trees(*trees, n_features=1)
    path = tmp_path / "m.json"
    rw.export(model, TARGET, path, shift=True)
    least = json.loads(path.read_text())
    for tree in least["model"]["model"]["definition"]["splits"]:  # let every row reach the least leaf of every tree
        if "children" in tree:
            value = min(child["leaf"] for child in tree["children"])
            for child in tree["children"]:
                child["leaf"] = value
    path.write_text(json.dumps(least))
    room = 1e-4 * sum(np.abs(tree.values).max() for tree in trees)
    assert 0.0 <= ltr_plugin.score(path, np.zeros((1, 1), np.float32), ("f0",))[0] < room


def test_negative_scores_are_noted_unless_shifted():
    assert any("as low as -0.25" in note for note in build(make_trees(make_tree(1.0))).notes)
    assert not any("low as" in note for note in build(make_trees(make_tree(1.0, values=(0.0, 0.5)))).notes)
    shifted = build_files(make_trees(make_tree(1.0)), TARGET, "m.json", shift=True)[1]
    assert not any("low as" in note for note in shifted)


def test_versions_that_take_missing_values_as_0_are_noted():
    notes = build(make_model("trees with missing")).notes
    assert any("before 1.5.9, where a missing value is 0; use a later version" in note for note in notes)
    assert not any("missing value" in note for note in build(make_model("trees")).notes)


@pytest.mark.parametrize("case", list_cases(TARGET), ids=str)
def test_scores_are_those_of_the_plugins_classes(case, tmp_path):
    case.check_files(TARGET)
    (tmp_path / "m.json").write_text(case.files[TARGET])
    assert np.array_equal(ltr_plugin.score(tmp_path / "m.json", case.X, case.names), case.scores[TARGET])


def make_response(X, names, scores, is_named=False):
    """A search response with logged features, as the plugin writes it, or with scores of named queries."""
    hits = []
    for at, (row, score) in enumerate(zip(X.tolist(), scores.tolist(), strict=True)):
        found = {name: value for name, value in zip(names, row, strict=True) if value == value}
        log = [{"name": name} | ({"value": found[name]} if name in found else {}) for name in names]
        features = {"matched_queries": found} if is_named else {"fields": {"_ltrlog": [{"main": log}]}}
        hits.append({"_id": str(at), "_score": score, **features})
    return {"rambo": {"hits": {"hits": hits}}}


@pytest.mark.parametrize("kind", ["trees", "trees with missing", "stumps with missing", "linear"])
def test_check_compares_what_the_plugin_logs(kind, tmp_path):
    model, X = make_model(kind), make_rows(kind)[:300]
    rw.export(model, TARGET, tmp_path / "m.json", shift=kind != "linear")
    response = make_response(X, NAMES, ltr_plugin.score(tmp_path / "m.json", X, NAMES))
    assert rw.check_scores(model, response).is_shifted
    assert rw.check_scores(model, response, parity=tmp_path / "m.json.parity.json").is_equal
