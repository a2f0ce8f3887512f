"""Checks of an engine's scores: rows that differ, and the cause of every kind of difference."""

from __future__ import annotations

import json
import time

import numpy as np
import pytest
from tests.exported import N_FEATURES, NAMES, make_data, make_linear, make_model

import rankwright as rw
from rankwright import cli
from rankwright.models.export.parity import read_parity
from rankwright.models.model import Model
from rankwright.scorers import Linear, Trees
from rankwright.scorers.lightgbm_text import Forest
from rankwright.scorers.lightgbm_trees import Tree
from rankwright.scorers.linear import QueryScaling


def log(X, scores, names=NAMES, size=20):
    """Responses of Elasticsearch with these features and scores."""
    found = {}
    for start in range(0, len(X), size):
        hits = []
        for i in range(start, min(start + size, len(X))):
            features = [
                {"name": n} | ({} if np.isnan(v) else {"value": float(v)}) for n, v in zip(names, X[i], strict=True)
            ]
            hits.append(
                {"_id": f"d{i}", "_score": float(np.float32(scores[i])), "fields": {"_ltrlog": [{"main": features}]}}
            )
        found[f"q{start}"] = {"hits": {"hits": hits}}
    return found


def rows(missing=0.0, n=200):
    X = make_data(missing=missing)[0][:n].copy()
    X[::7, 2] = 0.0
    return X


def change(model, **columns):
    """The model's trees with changed columns; functions of the tree."""
    trees = [Tree({**t.columns, **{name: f(t) for name, f in columns.items()}}) for t in model.scorer.forest.trees]
    return Trees(Forest.from_trees(trees, N_FEATURES))


def check(kind, X, scores, **options):
    return rw.check_scores(make_model(kind), log(X, scores), **options)


@pytest.mark.parametrize(
    "kind", ["linear", "trees", "trees with missing", "network of tanh", "rbf kernel sum", "sum of trees"]
)
def test_scores_that_are_rounded_to_float32_are_equal(kind):
    X = rows(0.3 if make_model(kind).scorer.allow_nan else 0.0)
    found = check(kind, X, make_model(kind).scorer(X))
    assert found.is_equal
    assert found.cause is None
    assert "200 scores are equal" in str(found)


def test_rows_that_differ_are_listed_by_size():
    X = rows()
    scores = make_model("trees").scorer(X)
    scores[[3, 150]] += [0.25, -0.5]
    found = check("trees", X, scores)
    assert found.rows.tolist() == [150, 3]
    assert found.cause is None
    assert "2 of 200 scores differ, by 0.5 at most" in str(found)
    assert "d150 of q140" in str(found)
    assert "most scores are equal" in str(found)
    content = json.loads(json.dumps(found.to_json()))
    assert (content["different"], content["rows"][0]["document"]) == (2, "d150 of q140")


def test_missing_values_as_0():
    X, model = rows(0.3), make_model("trees with missing")
    found = check("trees with missing", X, model.scorer(np.nan_to_num(X)))
    assert found.cause.kind == "missing as 0"
    assert found.cause.n_explained == len(found.rows) > 0


def test_0_as_missing():
    X, model = rows(), make_model("trees with missing")
    assert check("trees with missing", X, model.scorer(np.where(X == 0.0, np.nan, X))).cause.kind == "0 as missing"


@pytest.mark.parametrize("side", ["right", "left", "to the other side"])
def test_missing_values_on_the_wrong_side(side):
    X, model = rows(0.3), make_model("trees with missing")
    sides = {
        "right": lambda tree: np.full(tree.n_splits, 8),
        "left": lambda tree: np.full(tree.n_splits, 10),
        "to the other side": lambda tree: 8 | np.where(tree.missing_left, 0, 2),
    }
    found = check("trees with missing", X, change(model, decision_type=sides[side])(X))
    assert found.cause.sentence == f"missing values go {side} at every split"


def on_thresholds(model):
    """Rows with values at the float32 nearest to thresholds, and the next ones."""
    X = rows(n=180)
    for tree in model.scorer.forest.trees:
        for at, (feature, threshold) in enumerate(
            zip(tree.columns["split_feature"], tree.columns["threshold"], strict=True)
        ):
            nearest = np.float32(threshold)
            X[at::17, feature] = [nearest, np.nextafter(nearest, np.float32(np.inf))][at % 2]
    return X


@pytest.mark.parametrize(
    ("engine", "words"),
    [
        (lambda t: np.nextafter(t.astype(np.float32), np.float32(-np.inf)), "<"),
        (lambda t: t.astype(np.float32), "rounded to float32"),
        (lambda t: t.astype(np.float32) + np.float32(1e-6), "1e-6"),
    ],
)
def test_thresholds(engine, words):
    model = make_model("trees")
    X = on_thresholds(model)
    scores = change(model, threshold=lambda tree: engine(tree.columns["threshold"]).astype(np.float64))(X)
    found = check("trees", X, scores)
    assert found.cause.kind == "thresholds"
    assert words in found.cause.sentence
    assert found.cause.n_explained == len(found.rows) > 0


def test_a_constant_is_added():
    X, model = rows(), make_model("trees")
    found = check("trees", X, model.scorer(X) + 3.25)
    assert found.cause.kind == "shift"
    assert found.is_shifted
    assert not found.is_equal
    assert "3.25" in found.cause.sentence


def test_one_score_is_too_few_to_find_a_cause():
    X, model = rows(n=1), make_model("trees")
    assert "a log of 1 is too small" in str(check("trees", X, model.scorer(X) + 1.0))
    X = rows(n=2)
    assert check("trees", X, model.scorer(X) + 1.0).cause.kind == "shift"


def test_an_intercept_is_left_out():
    X, model = rows(), make_model("linear")
    found = check("linear", X, model.scorer(X) - make_linear().intercept)
    assert found.cause.sentence == "a constant, 2.5, is added to all scores: the model's intercept is left out"


def test_scores_are_multiplied():
    X, model = rows(), make_model("trees")
    found = check("trees", X, 1.5 * model.scorer(X))
    assert (found.cause.kind, found.cause.sentence) == ("scale", "all scores are multiplied by 1.5")
    assert not found.is_shifted
    found = check("trees", X, 1.5 * model.scorer(X) + 4)
    assert "multiplied by 1.5" in found.cause.sentence
    assert "4" in found.cause.sentence


def test_two_causes_at_once():
    X, model = rows(0.3), make_model("trees with missing")
    found = check("trees with missing", X, model.scorer(np.nan_to_num(X)) + 2.0)
    assert found.cause.kind == "missing as 0"
    assert "missing values are taken as 0, and a constant, 2" in found.cause.sentence


@pytest.mark.parametrize(
    ("order", "words"),
    [
        (np.argsort(NAMES), "sorted by name"),
        (np.argsort(np.argsort(NAMES)), "sorted by name"),
        ([4, 3, 2, 1, 0], "in reverse"),
        ([1, 2, 3, 4, 0], "one place earlier"),
        ([0, 3, 2, 1, 4], "clicks and ratio are swapped"),
    ],
)
@pytest.mark.parametrize("kind", ["linear", "trees"])
def test_feature_order(order, words, kind):
    X, model = rows(), make_model(kind)
    found = check(kind, X, model.scorer(np.ascontiguousarray(X[:, order])))
    assert found.cause.kind == "feature order"
    assert words in found.cause.sentence


def test_the_logistic_function():
    X, model = rows(), make_model("trees")
    assert check("trees", X, 1 / (1 + np.exp(-model.scorer(X)))).cause.kind == "logistic"


def test_another_model():
    X, other = rows(), make_model("deep trees")
    scores = other.scorer(X)
    assert check("trees", X, scores).cause is None
    assert "another version of the model" in str(check("trees", X, scores))
    found = check("trees", X, scores, candidates={"last week": other, "linear": make_model("linear")})
    assert found.cause.sentence == "the engine has the model last week"


def test_documents_outside_of_the_window():
    X, model = rows(), make_model("trees")
    scores = model.scorer(X)
    scores[np.arange(len(X)) % 20 >= 15] = np.linspace(5, 9, 50) ** 2
    assert check("trees", X, scores).cause.kind == "window"


def test_a_large_log_is_tried_on_some_of_its_rows():
    model = make_model("trees with missing")
    X = np.tile(rows(0.3), (30, 1))
    found = check("trees with missing", X, model.scorer(np.nan_to_num(X)))
    assert len(found.rows) > found.cause.n_tried == found.cause.n_explained == 2_000
    assert found.cause.kind == "missing as 0"
    found = check("trees with missing", X, model.scorer(X) + 1.0)
    assert found.is_shifted


def test_a_little_more_than_rounding():
    X, model = rows(), make_model("trees")
    exact = check("trees", X, model.scorer(X))
    assert check("trees", X, model.scorer(X) + 2.5 * exact.tolerances).cause.kind == "rounding"


def test_a_linear_model_takes_missing_values_as_0():
    X, model = rows(0.3), make_model("linear")
    found = check("linear", X, model.scorer(np.nan_to_num(X)))
    assert found.is_equal
    assert "missing values are taken as 0" in str(found)


def test_a_model_that_scales_by_query():
    model = Model("Regression", {}, "ndcg@10", make_linear(), N_FEATURES, NAMES, QueryScaling())
    X = rows(n=40)
    queries = rw.Queries.from_arrays(X, None, np.repeat([0, 1], 20))
    assert rw.check_scores(model, log(X, model.predict(queries.replace(features=NAMES)))).is_equal


def test_names_of_the_engine(tmp_path):
    X, model = rows(), make_model("trees")
    hits = log(X, model.scorer(X), ("title", "clicks", "age", "ratio", "kind"))
    assert rw.check_scores(model, hits, names={"bm25": "title"}).is_equal
    (tmp_path / "names.csv").write_text("bm25,title\n")
    assert rw.check_scores(model, hits, names=tmp_path / "names.csv").is_equal
    with pytest.raises(rw.InputError, match="no feature 'bm25'"):
        rw.check_scores(model, hits)


def test_a_model_without_names_takes_the_order_of_the_log():
    named = make_model("trees")
    model = Model(named.ranker, {}, "ndcg@10", named.scorer, N_FEATURES)
    X = rows()
    assert rw.check_scores(model, log(X, model.scorer(X), ("a", "b", "c", "d", "e"))).is_equal
    with pytest.raises(rw.InputError, match="the log has 4 features; the model was trained on 5, without names"):
        rw.check_scores(model, log(X[:, :4], model.scorer(X), ("a", "b", "c", "d")))


def test_solr():
    X, model = rows(), make_model("trees")
    text = [",".join(f"{name}={value}" for name, value in zip(NAMES, row, strict=True)) for row in X.tolist()]
    docs = [
        {"id": i, "score": s, "[features]": t}
        for i, (s, t) in enumerate(zip(model.scorer(X).tolist(), text, strict=True))
    ]
    assert rw.check_scores(model, {"q": {"response": {"docs": docs}}}, engine="solr").is_equal
    del docs[7]["score"]
    with pytest.raises(rw.InputError, match=r"hit 8: no score in the field score; expected a number\. .*--score"):
        rw.check_scores(model, {"q": {"response": {"docs": docs}}})
    docs[7]["score"] = "high"
    with pytest.raises(rw.InputError, match=r"hit 8: the score 'score' is 'high'; expected a number"):
        rw.check_scores(model, {"q": {"response": {"docs": docs}}})


def test_a_document_logged_twice_needs_one_score():
    X, model = rows(), make_model("trees")
    hits = [hit for response in log(X, model.scorer(X)).values() for hit in response["hits"]["hits"]]
    assert rw.check_scores(model, {"q": {"hits": {"hits": [*hits, hits[0]]}}}).is_equal
    with pytest.raises(rw.InputError, match=r"a second time, with the score 7\.5 after .*leave one"):
        rw.check_scores(model, {"q": {"hits": {"hits": [*hits, {**hits[0], "_score": 7.5}]}}})


def test_another_field_of_scores():
    X, model = rows(), make_model("trees")
    responses = log(X, model.scorer(X))
    for response in responses.values():
        for hit in response["hits"]["hits"]:
            hit["fields"]["ltr"] = [hit["_score"]]
            hit["_score"] = None
    assert rw.check_scores(model, responses, score="ltr").is_equal
    with pytest.raises(rw.InputError, match="no score in the field _score"):
        rw.check_scores(model, responses)


def test_a_parity_file_and_the_scores_that_came_back(tmp_path):
    model = make_model("trees with missing")
    rw.export(model, "lightgbm", tmp_path / "m.txt", shift=True)
    parity = read_parity(tmp_path / "m.txt.parity.json")
    assert rw.check_parity(model, tmp_path / "m.txt.parity.json", parity.scores).is_equal
    found = rw.check_parity(model, parity, model.scorer(np.nan_to_num(parity.X)) + parity.offset)
    assert found.cause.kind == "missing as 0"
    found = rw.check_parity(model, parity, model.scorer(parity.X))
    assert found.cause.kind == "shift"
    with pytest.raises(rw.InputError, match="the parity file is of another model"):
        rw.check_parity(make_model("trees"), parity, parity.scores)
    with pytest.raises(rw.InputError, match=r"scores=.*; expected a number for each row"):
        rw.check_parity(model, parity, ["a"])
    assert rw.check_parity(model, parity, parity.scores[:, None]).is_equal
    with pytest.raises(rw.InputError, match=r"scores of shape \(1, 1000\); the parity file has 1000 rows"):
        rw.check_parity(model, parity, parity.scores[None])
    with pytest.raises(rw.InputError, match="3 scores; the parity file has 1000 rows"):
        rw.check_parity(model, parity, parity.scores[:3])


def test_a_parity_file_has_the_names_and_the_constant_of_an_engine(tmp_path):
    model, X = make_model("trees with missing"), rows(0.3)
    names = {"bm25": "title_bm25", "kind": "type"}
    rw.export(model, "elasticsearch", tmp_path / "m.json", names=names, shift=True)
    parity = read_parity(tmp_path / "m.json.parity.json")
    assert parity.offset > 0.0
    hits = log(X, model.scorer(X) + parity.offset, parity.names)
    assert rw.check_scores(model, hits, parity=tmp_path / "m.json.parity.json").is_equal
    assert rw.check_scores(model, hits, names=names).cause.kind == "shift"
    found = rw.check_scores(model, log(X, model.scorer(np.nan_to_num(X)) + parity.offset, parity.names), parity=parity)
    assert found.cause.sentence == "missing values are taken as 0"
    with pytest.raises(rw.InputError, match="names with a parity file"):
        rw.check_scores(model, hits, parity=parity, names=names)


def test_a_target_without_missing_values_takes_them_as_0(tmp_path):
    model, X = make_model("trees with missing"), rows(0.3)
    rw.export(model, "ranklib", tmp_path / "m.txt")
    parity = read_parity(tmp_path / "m.txt.parity.json")
    assert rw.check_parity(model, parity, parity.scores).is_equal
    found = rw.check_scores(model, log(X, model.scorer(np.nan_to_num(X)), parity.names), parity=parity)
    assert found.is_equal
    assert "missing values are taken as 0" in str(found)


@pytest.fixture
def folder(tmp_path):
    rw.save(make_model("trees"), tmp_path / "m.json")
    X = rows()
    for name, shift in (("same", 0.0), ("shifted", 1.0)):
        lines = [{"qid": q, "response": r} for q, r in log(X, make_model("trees").scorer(X) + shift).items()]
        (tmp_path / f"{name}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return tmp_path


def run(capsys, *arguments):
    status = cli.run(["check", *map(str, arguments)])
    captured = capsys.readouterr()
    return status, captured.out, captured.err


def test_the_command_says_so_by_its_exit_status(folder, capsys):
    model = folder / "m.json"
    status, out, _ = run(capsys, model, "--logged", folder / "same.jsonl", "--from", "elasticsearch")
    assert (status, "200 scores are equal" in out) == (0, True)
    status, out, _ = run(capsys, model, "--logged", folder / "shifted.jsonl")
    assert (status, "likely cause: a constant, 1, is added" in out) == (1, True)
    status, out, _ = run(capsys, model, "--logged", folder / "shifted.jsonl", "--allow-shift", "--json")
    assert (status, json.loads(out)["cause"]["kind"]) == (0, "shift")


def test_the_command_takes_a_parity_file(folder, capsys):
    rw.export(rw.load(folder / "m.json"), "lightgbm", folder / "m.txt")
    scores = read_parity(folder / "m.txt.parity.json").scores
    (folder / "returned.txt").write_text("".join(f"{score!r}\n" for score in scores.tolist()))
    arguments = [folder / "m.json", "--parity", folder / "m.txt.parity.json", "--scores", folder / "returned.txt"]
    assert run(capsys, *arguments)[0] == 0
    (folder / "returned.txt").write_text("".join(f"{score + 1!r}\n" for score in scores.tolist()))
    assert run(capsys, *arguments)[0] == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "expected either --logged, or --scores with --parity"),
        (["--logged", "{}/same.jsonl", "--scores", "{}/m.json"], "expected either --logged"),
        (["--logged", "{}/same.jsonl", "--parity", "{}/m.json"], "not a parity file"),
        (["--parity", "{}/m.json"], "expected either --logged"),
        (["--parity", "{}/m.json", "--scores", "{}/m.json", "--qid", "x"], "are for --logged"),
        (["--parity", "{}/m.json", "--scores", "{}/same.jsonl"], "expected one score per line"),
        (["--logged", "{}/m.json"], "expected a response with"),
        (["--logged", "{}/same.jsonl", "--from", "lucene"], "engine='lucene'"),
        (["--logged", "{}/none.jsonl"], "No such file"),
    ],
)
def test_bad_input_is_one_line(folder, capsys, arguments, message):
    status, out, err = run(capsys, folder / "m.json", *(argument.format(folder) for argument in arguments))
    assert (status, out, err.count("\n")) == (2, "", 1)
    assert message in err


def test_a_log_of_many_features_is_checked_in_time_that_is_linear_in_them():
    """Neither all pairs of features nor all features for each feature are listed."""
    names = tuple(f"f{i}" for i in range(4_000))
    model = Model("Regression", {}, "ndcg@10", Linear(np.linspace(-1, 1, 4_000)), 4_000, names)
    X = np.random.default_rng(0).normal(size=(20, 4_000)).astype(np.float32)
    start = time.process_time()
    assert rw.check_scores(model, log(X, model.scorer(X) + 100 * (np.arange(20) % 2), names)).cause is None
    assert time.process_time() - start < 10.0
