"""Models for the learning to rank plugin of OpenSearch, whose versions treat missing values differently."""

import numpy as np
import pytest
from tests.exported import make_model, make_rows
from tests.golden.ltr_engines import list_cases
from tests.reference import oracle_opensearch
from tests.unit.test_to_elasticsearch import build, make_tree, make_trees

import rankwright as rw

TARGET = "opensearch"


def find_wrong(model, path, X, version):
    """The rows whose scores differ from the model's."""
    scores = oracle_opensearch.score(path, X, model.features, version)
    return ~np.isclose(scores, model.scorer(X), atol=1e-5)


def list_notes(model):
    return [note for note in build(model, TARGET).notes if "lack a feature" in note]


@pytest.mark.parametrize("case", list_cases(TARGET), ids=str)
@pytest.mark.parametrize("version", ["3.1", "3.7", "3.8"])
def test_scores_are_those_of_the_plugins_classes(case, version, tmp_path):
    case.check_files(TARGET)
    (tmp_path / "m.json").write_text(case.files[TARGET])
    scores = oracle_opensearch.score(tmp_path / "m.json", case.X, case.names, version)
    assert np.array_equal(scores, case.scores[f"opensearch {version}"])


def test_a_model_without_missing_values_is_exact_where_features_always_match(tmp_path):
    model, X = make_model("trees"), make_rows("trees")[:5_000]
    rw.export(model, TARGET, tmp_path / "m.json")
    has_missing = np.isnan(X).any(axis=1)
    for version in ("3.1", "3.7", "3.8"):
        assert not find_wrong(model, tmp_path / "m.json", np.nan_to_num(X), version).any()
    assert not find_wrong(model, tmp_path / "m.json", X, "3.1").any()
    assert not find_wrong(model, tmp_path / "m.json", X, "3.8").any()
    wrong = find_wrong(model, tmp_path / "m.json", X, "3.7")
    assert wrong.any()
    assert not wrong[~has_missing].any()
    (note,) = list_notes(model)
    assert "3.2 to 3.7" in note
    assert "before 3.2" not in note
    assert "match all documents" in note


def test_a_model_of_missing_values_is_exact_from_version_3_8(tmp_path):
    model, X = make_model("trees with missing"), make_rows("trees with missing")[:5_000]
    rw.export(model, TARGET, tmp_path / "m.json")
    assert [find_wrong(model, tmp_path / "m.json", X, v).any() for v in ("3.1", "3.7", "3.8")] == [True, True, False]
    (note,) = list_notes(model)
    assert "before 3.2" in note
    assert "3.2 to 3.7" in note
    assert "use a later version" in note


def test_notes_name_only_the_versions_that_differ():
    assert not list_notes(make_trees(make_tree(-1.0, missing_left=False)))  # 0 and missing values both go right
    (note,) = list_notes(make_trees(make_tree(1.0, missing_left=False)))
    assert "before 3.2" in note
    assert "3.7" not in note
    assert not list_notes(make_model("linear"))
