"""Texts count features from 1, as LETOR does; Python counts columns from 0; names are names everywhere."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import numpy as np
import pytest

import rankwright as rw
from rankwright.cli import run
from rankwright.data.feature_numbers import (
    COLUMN_LISTS,
    COLUMN_PARAMETERS,
    convert_columns_to_numbers,
    convert_numbers_to_columns,
)
from rankwright.experiments import Experiment, Method, RandomSearch, read_experiment, read_results, run_experiment
from rankwright.experiments.spec import experiment_from_json
from rankwright.optimisers.weak.regression_trees import LIGHTGBM_NAMES
from rankwright.rankers import RANKERS
from rankwright.report import write_report

N_FEATURES = 5
BY_FEATURE = {"max_bin_by_feature", "feature_contri", "cegb_penalty_feature_lazy", "cegb_penalty_feature_coupled"}
NOT_OF_ONE = {"feature_fraction", "feature_fraction_bynode", "feature_fraction_seed"}


@pytest.fixture(scope="module")
def data(tmp_path_factory) -> Path:
    """Thirty queries of five features, of which the third knows the grade."""
    folder, rng = tmp_path_factory.mktemp("features"), np.random.default_rng(0)
    y = rng.integers(0, 3, 300)
    X = rng.random((300, N_FEATURES))
    X[:, 2] += y
    rw.write_letor(rw.Queries.from_arrays(X, y, group=[10] * 30), folder / "data.txt")
    return folder / "data.txt"


def fit(data: Path, ranker: str, *settings: str) -> int:
    options = [word for setting in settings for word in ("--set", setting)]
    return run(["fit", ranker, "--train", str(data), "--model", str(data.parent / "model.json"), *options])


def test_every_parameter_that_names_features_is_converted():
    names = {name for ranker in RANKERS for name in ranker().get_params(deep=False)}
    assert {name for name in names if "feature" in name or "column" in name} == set(COLUMN_PARAMETERS)
    assert {
        name for name in LIGHTGBM_NAMES if "feature" in name
    } == BY_FEATURE | NOT_OF_ONE  # a value each, or none of one
    assert set(COLUMN_LISTS) <= set(LIGHTGBM_NAMES)


@pytest.mark.parametrize(
    "params",
    [
        {"feature": 0},
        {"feature": "bm25", "sign": -1},
        {"feature": None},
        {"lightgbm_params": {"interaction_constraints": [[0, 1], ["bm25", 4]], "max_bin": 7}},
        {"lightgbm_params": None},
    ],
)
def test_there_and_back(params):
    said = convert_columns_to_numbers(params)
    assert convert_numbers_to_columns(said) == params
    assert (said == params) == ("0" not in json.dumps(params))


@pytest.mark.parametrize("number", [1, 3, N_FEATURES])
def test_the_command_line_counts_from_1_and_says_so_to_the_end(data, number, capsys):
    assert fit(data, "singlefeature", f"feature={number}", "sign=1") == 0
    saved = json.loads((data.parent / "model.json").read_text())
    assert saved["params"]["feature"] == number
    assert saved["scorer"] == {"kind": "feature", "index": number - 1, "sign": 1}
    model = rw.load(data.parent / "model.json")
    assert model.params["feature"] == number - 1  # what SingleFeature takes in Python
    capsys.readouterr()
    assert run(["explain", "--model", str(data.parent / "model.json")]) == 0
    assert capsys.readouterr().out.splitlines()[-1].split()[0] == str(number)
    assert [part.name for part in rw.explain(model)] == [str(number)]


def test_a_feature_without_a_name_is_called_by_its_number(data):
    queries = rw.read_letor(data)
    assert rw.SingleFeature(feature="3").fit(queries).scorer_.index == 2
    assert rw.SingleFeature(feature=2).fit(queries).scorer_.index == 2
    named = rw.Queries.from_arrays(queries.X, queries.y, group=[10] * 30, features=list("34512"))
    assert rw.SingleFeature(feature="3").fit(named).scorer_.index == 0


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("feature=0", "feature=0; expected the name of a feature, or its number, from 1"),
        ("feature=-1", "feature=-1; expected the name of a feature, or its number, from 1"),
        ("feature=6", "there is no feature 6 (in Python column 5); the documents have 5 features"),
        ("feature=bm25", "no feature is called 'bm25'; the names are: 1, 2, 3, 4, 5"),
        ("feature=[1]", "feature=[1]; expected the name of a feature, or its number"),
        ("feature=1.5", "feature=1.5; expected the name of a feature, or its number"),
    ],
)
def test_errors_count_from_1(data, setting, message, capsys):
    assert fit(data, "singlefeature", setting) == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        (
            "lightgbm_params.interaction_constraints=[[0,1]]",
            "interaction_constraints=0; expected the name of a feature",
        ),
        ("lightgbm_params.interaction_constraints=[[1,6]]", "there is no feature 6"),
        ("lightgbm_params.interaction_constraints=[1,2],[3]", "expected lists of features in a list"),
        ('lightgbm_params.interaction_constraints=[["x"]]', "no feature is called 'x'"),
    ],
)
def test_features_that_may_occur_together_count_from_1(data, setting, message, capsys):
    assert fit(data, "mart", setting) == 2
    assert message in capsys.readouterr().err


def test_features_that_may_occur_together_are_those_that_were_named(data):
    assert (
        fit(data, "mart", "lightgbm_params.interaction_constraints=[[4,5]]", "n_estimators=3", "min_child_samples=1")
        == 0
    )
    model = rw.load(data.parent / "model.json")
    assert {part.name for part in rw.explain(model)} <= {"4", "5"}
    assert model.params["lightgbm_params"] == {"interaction_constraints": [[3, 4]]}
    queries = rw.read_letor(data)
    in_python = rw.MART(
        lightgbm_params={"interaction_constraints": [["4", 4]]}, n_estimators=3, min_child_samples=1, random_state=0
    )
    assert in_python.fit(queries).predict(queries).tolist() == model.predict(queries).tolist()


SPEC = """
measure = "ndcg@5"
[data]
file = "data.txt"
n_folds = 3
[[methods]]
ranker = "singlefeature"
name = "fixed"
set = { feature = 3, sign = 1 }
[[methods]]
ranker = "singlefeature"
name = "tried"
grid = { feature = [2, 3] }
[[methods]]
ranker = "singlefeature"
name = "drawn"
search = { n_candidates = 2, seed = 0, feature = { int = [3, 3] } }
"""
IN_PYTHON = [
    Method("singlefeature", "fixed", params={"feature": 2, "sign": 1}),
    Method("singlefeature", "tried", grid={"feature": [1, 2]}),
    Method("singlefeature", "drawn", search=RandomSearch(2, {"feature": {"int": [2, 2]}})),
]


def test_specs_and_results_count_from_1(data, tmp_path):
    (data.parent / "spec.toml").write_text(SPEC)
    planned = read_experiment(data.parent / "spec.toml")
    assert [method.list_candidates() for method in planned.methods] == [
        method.list_candidates() for method in IN_PYTHON
    ]
    assert planned.to_json()["methods"] == tomllib.loads(SPEC)["methods"]
    results = run_experiment(planned, tmp_path, workers=rw.Serial())
    assert results.means()[0] == results.means()[1] == results.means()[2]  # the third is the best
    tried = [json.loads(text)["feature"] for text in results.tables["trials"]["params"]]
    assert sorted(set(tried)) == [2, 3]
    page = write_report(read_results(tmp_path), tmp_path).read_text()
    assert "feature=3" in page
    assert "feature=1" not in page


def test_experiments_from_python_write_the_same_spec(data):
    planned = Experiment(data, [*IN_PYTHON, rw.SingleFeature(feature=4)], "ndcg@5")
    said = planned.to_json()
    assert [method.get("set", {}).get("feature") for method in said["methods"]] == [3, None, None, 5]
    again = experiment_from_json(said, data.parent)
    assert [m.list_candidates() for m in again.methods] == [m.list_candidates() for m in planned.methods]


@pytest.mark.parametrize("part", ["set", "grid", "search"])
def test_a_spec_with_feature_0_is_refused(data, part):
    value = {"set": "0", "grid": "[0, 1]", "search": "{ int = [0, 2] }"}[part]
    (data.parent / "spec.toml").write_text(
        f'[data]\nfile = "data.txt"\n[[methods]]\nranker = "singlefeature"\n{part} = {{ feature = {value} }}\n'
    )
    with pytest.raises(rw.InputError, match=r"methods\[1\]: feature=0; expected the name of a feature"):
        read_experiment(data.parent / "spec.toml")


def test_missing_values_are_told_by_the_name_of_their_feature():
    X = [[0.0, 1.0], [2.0, np.nan]]
    for features, name in ((None, "2"), (["age", "bm25"], "bm25")):
        queries = rw.Queries.from_arrays(X, [0, 1], [1, 1], features=features)
        with pytest.raises(rw.InputError, match=f"row 1, counted from 0, feature {name}"):
            rw.Regression().fit(queries)
