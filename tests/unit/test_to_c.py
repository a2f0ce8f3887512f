"""Export to C: files that compile without a warning, and scores equal to ours to the last bit for trees and stumps."""

import ctypes
import subprocess

import numpy as np
import pytest
from tests.exported import NAMES, make_linear, make_model, make_rows, make_stumps
from tests.reference.oracle_c import compile_library, score

import rankwright as rw
from rankwright.models.export import c_functions
from rankwright.models.model import Model
from rankwright.scorers import Linear, Network, Stumps, Trees, WeightedSum
from rankwright.scorers.lightgbm_text import Forest


def export(model, folder, name="m.c", **options):
    return rw.export(model, "c", folder / name, **options)[0]


def make(scorer, names=NAMES, **options):
    return Model("LambdaMART", {}, "ndcg@10", scorer, len(names), names, **options)


@pytest.mark.parametrize(
    "kind", ["trees", "deep trees", "trees with missing", "trees with categories", "stumps with missing"]
)
def test_trees_and_stumps_have_our_bits(kind, tmp_path):
    model, X = make_model(kind), make_rows(kind)[:20_000]
    assert np.array_equal(score(export(model, tmp_path), X, NAMES), model.scorer(X))


def test_stumps_of_few_and_many_thresholds_have_our_bits(tmp_path):
    rng = np.random.default_rng(0)
    feature = np.repeat([0, 1, 2, 3, 4], [4, 5, 49, 200, 1])
    scorer = Stumps(feature, rng.normal(size=259).astype(np.float32), rng.normal(size=259), rng.random(259) < 0.5)
    X = rng.normal(size=(3_000, 5)).astype(np.float32)
    X[:259] = scorer.threshold[:, None]
    X[rng.random(X.shape) < 0.1] = np.nan
    assert np.array_equal(score(export(make(scorer), tmp_path), X, NAMES), scorer(X))


def test_one_document_scores_as_in_a_batch(tmp_path):
    model, X = make_model("sum of linear and trees"), np.ascontiguousarray(make_rows("trees")[:300])
    path = export(model, tmp_path)
    batch, library = score(path, X, NAMES), compile_library(path)
    library.m_score.restype, library.m_score.argtypes = ctypes.c_double, [ctypes.c_void_p]
    assert np.array_equal([library.m_score(row.ctypes.data) for row in X], batch)


def test_missing_is_0_where_a_model_takes_complete_features_only(tmp_path):
    X = np.array([[1, 2, 3, 4, 5], [1, 0, 3, 0, 5]], np.float32)
    blank = np.where(X == 0, np.float32(np.nan), X)
    for kind in ("linear", "stumps", "network of silu", "poly kernel sum"):
        model = make_model(kind)
        path = export(model, tmp_path)
        assert np.array_equal(score(path, blank, NAMES), score(path, X, NAMES))


def test_names_of_any_kind_are_texts_in_the_file(tmp_path):
    names = ('say "hi"', "back\\slash", "*/ what??/ is", "größe", "a\nb")
    path = export(make(make_linear(), names), tmp_path)
    assert score(path, np.zeros((1, 5), np.float32), names) == -2.5


def test_values_of_categories_are_in_the_file(tmp_path):
    library = compile_library(export(make_model("trees with categories"), tmp_path))
    assert [own.decode() for own in (ctypes.c_char_p * 7).in_dll(library, "m_categories4")] == list("abcdefg")


def test_the_name_of_the_model_begins_the_names_of_functions(tmp_path):
    for name in ("my-model.c", "2024.c", "_m.c", "größe.c"):
        with pytest.raises(rw.InputError, match=r"begins the names of C functions; expected letters"):
            export(make_model("linear"), tmp_path, name)
    assert not list(tmp_path.iterdir())
    assert (
        b"double ranker_2_score("
        in export(make_model("linear"), tmp_path, "my-model.c", model_name="ranker_2").read_bytes()
    )


def test_two_models_live_in_one_program_which_may_be_cpp(tmp_path):
    first, second = export(make_model("sum of trees"), tmp_path, "a.c"), export(make_model("trees"), tmp_path, "b.c")
    both = tmp_path / "both.c"
    both.write_bytes(first.read_bytes() + second.read_bytes())
    compile_library(both)
    head = first.read_text().partition("/* end of declarations */")[0]
    main = '\n#include <cstdio>\nint main() { float x[5] = {1, 2, 3, 4, 5}; std::printf("%.17g", a_score(x)); }\n'
    (tmp_path / "main.cpp").write_text(head + main)
    commands = [
        ["gcc", "-std=c99", "-c", "a.c", "-o", "a.o"],
        ["g++", "-Wall", "-Wextra", "-Werror", "main.cpp", "a.o", "-lm", "-o", "main"],
        ["./main"],
    ]
    try:
        outputs = [subprocess.run(command, cwd=tmp_path, check=True, capture_output=True) for command in commands]
    except FileNotFoundError:
        pytest.skip("g++ is not installed")
    assert float(outputs[-1].stdout) == score(first, np.array([[1, 2, 3, 4, 5]], np.float32), NAMES)[0]


def test_extreme_numbers_and_empty_parts(tmp_path):
    values = [5e-324, 1.7976931348623157e308, -1e-300, 3.0]
    for value in values:
        model = make(Trees(Forest.constant(5, value)))
        assert score(export(model, tmp_path), np.zeros((1, 5), np.float32), NAMES) == value
    empty = Stumps(np.empty(0, int), np.empty(0, np.float32), np.empty(0))
    parts = [empty, Linear(np.full(5, 1e-45)), Network(np.zeros(5), np.ones(5), [np.ones((5, 1))], [np.zeros(1)])]
    model = make(WeightedSum(parts, np.ones(3), 0.25))
    X = np.full((1, 5), np.float32(1e-45))
    np.testing.assert_allclose(score(export(model, tmp_path), X, NAMES), model.scorer(X))
    assert score(export(make(empty), tmp_path), X, NAMES) == 0.0
    assert score(export(make(WeightedSum([empty], np.ones(1), 0.25)), tmp_path), X, NAMES) == 0.25
    assert len(score(export(make(make_stumps(missing=True)), tmp_path), X[:0], NAMES)) == 0


@pytest.mark.parametrize(
    "wrong", [("value <= split", "value < split"), ("&& split->missing_left", "&& !split->missing_left")]
)
def test_a_wrong_exporter_is_caught(wrong, tmp_path, monkeypatch):
    monkeypatch.setattr(c_functions, "_BY_THRESHOLD", c_functions._BY_THRESHOLD.replace(*wrong))
    model, X = make_model("trees with missing"), make_rows("trees with missing")[:20_000]
    assert np.abs(score(export(model, tmp_path), X, NAMES) - model.scorer(X)).max() > 0.01
